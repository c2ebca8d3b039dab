//! Boxes of PCI switches: switches that only pass on are left out, and links that the optimum can do without.

use canopy_optimize::Never;
use canopy_schedule::{CollectiveKind, Shares};
use canopy_topology::{Attributes, Capacity, Latency, NodeKind, Topology, TopologyDraft, TopologyLimits};
use proptest::prelude::*;

use super::both_ways;
use super::pieces::{in_pieces, machines};
use crate::forest::chains::Shortened;
use crate::forest::decomposition::take_apart;
use crate::forest::instance::{Instance, Roots};
use crate::forest::network::Network;
use crate::forest::spare::without_spare_links;

/// Boxes of four ranks, each with a PCI switch and a NIC of its own, and two processors for two PCI switches each; in
/// units of one byte per second: ranks have 12, NICs this much, processors 5 to each other.
fn pci_boxes(boxes: usize, nic: u64) -> Topology {
    let mut draft = TopologyDraft::default();
    let capacity = |number| Capacity::from_bytes_per_sec(number).unwrap();
    let mut links = Vec::new();
    for host in 0..boxes {
        let attributes = Attributes { box_name: Some(format!("box{host}")), ..Attributes::default() };
        for rank in 0..4 {
            draft.add_node(format!("r{host}.{rank}"), NodeKind::Compute, attributes.clone());
            let (pci, nic_node, cpu) =
                (format!("p{host}.{rank}"), format!("n{host}.{rank}"), format!("c{host}.{}", rank / 2));
            links.extend([
                (format!("r{host}.{rank}"), pci.clone(), 12),
                (pci.clone(), cpu, 12),
                (pci, nic_node.clone(), 12),
                (nic_node, "leaf".to_owned(), nic),
            ]);
        }
        links.push((format!("c{host}.0"), format!("c{host}.1"), 5));
    }
    let mut switches: Vec<&String> =
        links.iter().flat_map(|(a, b, _)| [a, b]).filter(|id| !id.starts_with('r')).collect();
    switches.sort_unstable();
    switches.dedup();
    switches.into_iter().for_each(|id| {
        draft.add_switch(id.clone());
    });
    for (a, b, rate) in &links {
        draft.add_both(a, b, capacity(*rate), Latency::from_nanos(0));
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// Capacities and demands of an allgather, in trees.
fn numbers(topology: &Topology) -> (Vec<i128>, Vec<i128>) {
    let instance = Instance::new(topology, Roots::All(&Shares::Equal), None, &Never).unwrap();
    let capacities = instance.capacities.iter().map(|&capacity| i128::try_from(capacity).unwrap());
    (capacities.collect(), instance.demands.iter().map(|&demand| demand.into()).collect())
}

/// NICs go, and nothing else does: between PCI switch and leaf there is one link each way for two.
#[test]
fn nics_only_pass_on() {
    let topology = pci_boxes(3, 13);
    let (network, (capacities, demands)) = (Network::of(&topology), numbers(&topology));
    let short = Shortened::of(&network, &capacities, &demands);
    let switches = |network: &Network<'_>| network.node_count - network.terminal_count;
    assert_eq!((switches(&network), switches(&short.network)), (12 + 12 + 6 + 1, 12 + 6 + 1));
    assert_eq!((network.links.len(), short.network.links.len()), (2 * (12 * 4 + 3), 2 * (12 * 3 + 3)));
    assert!(short.network.switches_are_balanced(&short.capacities));
    // Each stands for links that follow one another, from end to end.
    let names = |network: &Network<'_>, node: u32| match node.checked_sub(network.terminal_count) {
        Some(switch) => network.switch_names[switch as usize].to_owned(),
        None => node.to_string(),
    };
    for (link, way) in short.network.links.iter().zip(short.ways()) {
        let parts: Vec<_> = way.iter().map(|part| network.links[part.index()]).collect();
        assert!(parts.windows(2).all(|pair| pair[0].to == pair[1].from));
        let ends = (names(&network, parts[0].from), names(&network, parts[parts.len() - 1].to));
        assert_eq!((names(&short.network, link.from), names(&short.network, link.to)), ends);
    }
}

/// Where NICs bring all that ranks take, processors are spare, and what is left is a star; where they bring half, those
/// of a box need no link between them, but ranks need each other's NICs.
#[test]
fn processors_are_spare_beside_fast_nics() {
    for (nic, nodes) in [(13, 64 + 1), (6, 64 + 64 + 1)] {
        let topology = pci_boxes(16, nic);
        let (network, (capacities, demands)) = (Network::of(&topology), numbers(&topology));
        let fewer = without_spare_links(&network, &capacities, &demands, &Never).unwrap().unwrap();
        let short = Shortened::of(&network, &fewer, &demands);
        assert_eq!(short.network.node_count, nodes, "{nic}");
        let apart = take_apart(&short.network, &short.capacities, &short.demands, &Never).unwrap();
        assert_eq!(apart.largest() == 0, nic == 13, "a star is written down");
    }
    let (_, algbw) = in_pieces(&pci_boxes(16, 13), CollectiveKind::Allgather);
    assert_eq!(algbw.to_string(), "256/21");
}

/// Two hives of a box, each with one way out and a link between them: the hives are tight, not the box.
#[test]
fn hives_of_a_box_are_tight() {
    let ids = |host: usize| (0..4).map(move |rank| format!("r{host}.{rank}"));
    let mut draft = TopologyDraft::default();
    let capacity = |number| Capacity::from_bytes_per_sec(number).unwrap();
    for host in 0..12 {
        let attributes = Attributes { box_name: Some(format!("box{}", host / 2)), ..Attributes::default() };
        ids(host).for_each(|id| draft.add_node(id, NodeKind::Compute, attributes.clone()));
    }
    draft.add_switch("leaf");
    for host in 0..12 {
        draft.add_switch(format!("p{host}"));
        let ranks: Vec<String> = ids(host).collect();
        for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 0)] {
            draft.add_both(&ranks[from], &ranks[to], capacity(24), Latency::from_nanos(0));
        }
        ranks.iter().for_each(|rank| draft.add_both(rank, &format!("p{host}"), capacity(12), Latency::from_nanos(0)));
        draft.add_both(&format!("p{host}"), "leaf", capacity(12), Latency::from_nanos(0));
    }
    for host in [0, 2, 4, 6, 8, 10] {
        draft.add_both(&format!("p{host}"), &format!("p{}", host + 1), capacity(12), Latency::from_nanos(0));
    }
    let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
    let tight = super::pieces::tight_clusters(&topology);
    assert_eq!(tight.iter().filter(|ranks| ranks.len() == 4).count(), 12, "{tight:?}");
    in_pieces(&topology, CollectiveKind::Allgather);
}

/// Leaves of pairs whose halves need both their way to the leaf and what the other half has: no pair is tight, so a leaf
/// is one piece. Its trees are written down: one enters a pair, goes to the other half, and leaves for all other pairs.
#[test]
fn pairs_on_a_leaf_are_written_down() {
    for there in [24, 23] {
        let mut draft = TopologyDraft::default();
        let capacity = |number| Capacity::from_bytes_per_sec(number).unwrap();
        for rank in 0..144 {
            draft.add_compute(format!("r{rank:03}"));
        }
        for leaf in ["leaf0", "leaf1", "leaf2", "spine"] {
            draft.add_switch(leaf);
        }
        for rank in 0..144 {
            let (id, leaf) = (format!("r{rank:03}"), format!("leaf{}", rank / 48));
            draft.add_both(&id, &leaf, capacity(24), Latency::from_nanos(0));
            if rank % 2 == 0 {
                draft.add_both(&id, &format!("r{:03}", rank + 1), capacity(there), Latency::from_nanos(0));
            }
        }
        for leaf in ["leaf0", "leaf1", "leaf2"] {
            draft.add_both(leaf, "spine", capacity(600), Latency::from_nanos(0));
        }
        let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
        let tight: Vec<usize> = super::pieces::tight_clusters(&topology).iter().map(Vec::len).collect();
        assert_eq!(tight, [48, 48, 48]);
        let (forest, _) = in_pieces(&topology, CollectiveKind::Allgather);
        let (depth, trees) = (super::pieces::depth_max(&forest), forest.phases[0].trees.len());
        assert!(depth <= 3 && trees <= 230, "{there}: {depth} hops, {trees} trees");
        in_pieces(&topology, CollectiveKind::ReduceScatter);
    }
}

/// What joins leaves may be worth more than all ranks below: it tears neither leaf from its ranks.
#[test]
fn leaves_are_found_below_fat_uplinks() {
    for uplink in [3, 96, 960] {
        let ranks: Vec<String> = (0..24).map(|rank| format!("r{rank:02}")).collect();
        let leaf = |rank: usize| ["s0", "s1", "s2"][rank / 8];
        let mut links: Vec<(&str, &str, u64)> =
            ranks.iter().enumerate().map(|(rank, id)| (id.as_str(), leaf(rank), 12)).collect();
        links.extend([("s0", "s1", uplink), ("s1", "s2", uplink), ("s2", "s0", uplink)]);
        let topology = both_ways(&format!("{} s0 s1 s2", ranks.join(" ")), &links);
        let tight = super::pieces::tight_clusters(&topology);
        assert_eq!(tight.iter().map(Vec::len).collect::<Vec<_>>(), [8, 8, 8], "{uplink}: {tight:?}");
    }
}

/// A switch of one neighbour more than two stays, and one whose leaving would unbalance another.
#[test]
fn switches_that_choose_stay() {
    let topology =
        both_ways("a b c s1 s2", &[("a", "s1", 2), ("b", "s1", 2), ("c", "s1", 2), ("a", "s2", 1), ("b", "s2", 3)]);
    let network = Network::of(&topology);
    let capacities: Vec<i64> =
        topology.links().iter().map(|link| i64::try_from(link.capacity.bytes_per_sec()).unwrap()).collect();
    let short = Shortened::of(&network, &capacities, &[1, 1, 1, 0, 0]);
    assert_eq!(short.network.switch_names, ["s1"]);
    let direct = short.network.links.iter().zip(&short.capacities).find(|(way, _)| (way.from, way.to) == (0, 1));
    assert_eq!(direct.map(|(_, capacity)| *capacity), Some(1));
}

proptest! {
    /// Whatever the network, what is left without spare links admits the same trees.
    #[test]
    fn what_is_left_is_enough(topology in machines()) {
        let (network, (capacities, demands)) = (Network::of(&topology), numbers(&topology));
        if let Some(fewer) = without_spare_links(&network, &capacities, &demands, &Never).unwrap() {
            prop_assert!(fewer.iter().zip(&capacities).all(|(left, before)| left <= before));
            let short = Shortened::of(&network, &fewer, &demands);
            let apart = take_apart(&short.network, &short.capacities, &short.demands, &Never);
            prop_assert!(apart.is_ok());
        }
    }
}
