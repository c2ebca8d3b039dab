//! Networks in pieces: the same rate as in one piece, whatever the clusters, and found where they should be.

use std::collections::BTreeSet;

use canopy_optimize::Never;
use canopy_schedule::{Collective, CollectiveKind, Forest, Schedule, Shape, Shares, check, compile};
use canopy_topology::{
    Attributes, Capacity, Latency, NodeKind, Rate, Topology, TopologyDraft, TopologyLimits, generate,
};
use proptest::prelude::*;

use crate::bound::bound;
use crate::forest::clusters::{Detail, find_clusters};
use crate::forest::condition::Condition;
use crate::forest::instance::{Instance, Roots};
use crate::forest::network::Network;
use crate::forest::plan_from;
use crate::forest::trim::trim;
use crate::limits::TreeLimits;
use crate::progress::Silent;

/// A plan of a network taken apart whatever its size, with its rate as the checker finds it.
pub(super) fn in_pieces(topology: &Topology, kind: CollectiveKind) -> (Forest, Rate) {
    in_pieces_of(topology, kind, Shares::Equal)
}

/// The same with these shares.
pub(super) fn in_pieces_of(topology: &Topology, kind: CollectiveKind, shares: Shares) -> (Forest, Rate) {
    let root = matches!(kind, CollectiveKind::Broadcast | CollectiveKind::Reduce);
    let root = root.then_some(canopy_topology::Rank::new(0));
    let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
    let forest = plan_from(topology, collective, &shares, TreeLimits::NONE, 0, &Never, &Silent).unwrap();
    let (algorithm, shape) = ("forest".to_owned(), Shape::Forest(forest.clone()));
    let schedule = Schedule { collective, algorithm, shares, shape };
    let algbw = check(topology, &compile(topology, &schedule).unwrap()).unwrap().algbw;
    if kind != CollectiveKind::Allreduce {
        // The lower one is that of what the network keeps once all switches are balanced; mostly it is the upper one.
        assert_eq!(algbw, bound(topology, collective, &schedule.shares, &Never).unwrap().lower, "{kind}");
    }
    (forest, algbw)
}

/// Greatest number of hops between a root and a rank.
pub(super) fn depth_max(forest: &Forest) -> u32 {
    let mut max = 0;
    for tree in forest.phases.iter().flat_map(|phase| &phase.trees) {
        let mut depths = std::collections::BTreeMap::from([(tree.root, 0)]);
        for hop in forest.hops_of(tree) {
            let depth = depths[&hop.from] + 1;
            depths.insert(hop.to, depth);
            max = max.max(depth);
        }
    }
    max
}

/// The ranks of the clusters of a topology that can be made tight for an allgather.
pub(super) fn tight_clusters(topology: &Topology) -> Vec<Vec<u32>> {
    let network = Network::of(topology);
    let instance = Instance::new(topology, Roots::All(&Shares::Equal), None, &Never).unwrap();
    let capacities: Vec<i128> = instance.capacities.iter().map(|&capacity| capacity.try_into().unwrap()).collect();
    let demands: Vec<i128> = instance.demands.iter().map(|&demand| demand.into()).collect();
    let clusters = find_clusters(&network, &capacities, Detail::Parts, &Never).unwrap();
    let edges = network.links.iter().zip(&capacities).map(|(link, &capacity)| (link.from, link.to, capacity));
    let mut condition = Condition::new(edges, demands, network.terminal_count, &Never).unwrap();
    let tight = trim(&network, &capacities, clusters, &mut condition).unwrap();
    assert!(condition.violation().unwrap().is_none());
    let ranks = |nodes: &[u32]| nodes.iter().copied().filter(|&node| node < network.terminal_count).collect();
    tight.clusters.iter().map(|cluster| ranks(&cluster.nodes)).collect()
}

fn generated(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

/// Boxes by name; racks and pods of a fat tree by their switches, two levels of them.
#[test]
fn clusters_are_found_where_machines_have_them() {
    assert_eq!(tight_clusters(&generated("mi250:boxes=4")).len(), 4);
    assert_eq!(
        tight_clusters(&generated("dgx-a100:boxes=4")),
        [0, 8, 16, 24].map(|first| (first..first + 8).collect::<Vec<_>>())
    );
    assert_eq!(tight_clusters(&generated("leaf-spine:leaves=4,hosts=6,spines=2,oversub=3")).len(), 4);
    let sizes: Vec<usize> = tight_clusters(&generated("fat-tree:k=8,oversub=2")).iter().map(Vec::len).collect();
    assert_eq!(sizes, [vec![4; 32], vec![16; 8]].concat());
    assert_eq!(tight_clusters(&generated("complete:12")), [] as [Vec<u32>; 0]);
}

/// Every collective the forest plans, on machines whose boxes differ once one of them has slow links.
#[test]
fn every_collective_works_in_pieces() {
    let mut draft = TopologyDraft::default();
    for host in 0..3 {
        let attributes = Attributes { box_name: Some(format!("box{host}")), ..Attributes::default() };
        (0..4).for_each(|gpu| draft.add_node(format!("g{host}{gpu}"), NodeKind::Compute, attributes.clone()));
        draft.add_switch(format!("s{host}"));
        for gpu in 0..4 {
            let (gpu, nic) = (format!("g{host}{gpu}"), if (host, gpu) == (1, 2) { 3 } else { 4 });
            draft.add_both(
                &gpu,
                &format!("s{host}"),
                Capacity::from_bytes_per_sec(40).unwrap(),
                Latency::from_nanos(0),
            );
            draft.add_both(&gpu, "spine", Capacity::from_bytes_per_sec(nic).unwrap(), Latency::from_nanos(9));
        }
    }
    draft.add_switch("spine");
    let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
    for kind in [
        CollectiveKind::Allgather,
        CollectiveKind::ReduceScatter,
        CollectiveKind::Allreduce,
        CollectiveKind::Broadcast,
        CollectiveKind::Reduce,
    ] {
        in_pieces(&topology, kind);
    }
}

/// Boxes that differ in nothing but the shares of their ranks, some of which have none.
#[test]
fn weighted_shares_work_in_pieces() {
    for expression in ["dgx-a100:boxes=4", "mi250:boxes=2", "rail:boxes=4", "fat-tree:k=4", "torus:4x4"] {
        let topology = generated(expression);
        let weights = |weight: &dyn Fn(u64) -> u64| (0..u64::from(topology.rank_count())).map(weight).collect();
        let irregular: Vec<u64> = weights(&|rank| rank * rank % 7);
        let one_box: Vec<u64> = weights(&|rank| u64::from(rank < 8));
        let alone: Vec<u64> = weights(&|rank| u64::from(rank == 5));
        let bytes: Vec<u64> = weights(&|rank| 1_000_000_007 + 13 * rank);
        for weights in [irregular, one_box, alone, bytes] {
            for kind in [CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce] {
                in_pieces_of(&topology, kind, Shares::Weighted(weights.clone()));
            }
        }
    }
}

/// Boxes around one switch: who has too much to send to everyone is helped by others, without any search.
#[test]
fn stars_of_boxes_stay_flat_whatever_the_shares() {
    let topology = generated("dgx-a100:boxes=16");
    let weights = (0..u64::from(topology.rank_count())).map(|rank| rank * rank % 101).collect();
    let (forest, _) = in_pieces_of(&topology, CollectiveKind::Allgather, Shares::Weighted(weights));
    assert!(depth_max(&forest) <= 8, "{} hops", depth_max(&forest));
    assert!(forest.phases[0].trees.len() <= 1024, "{} trees", forest.phases[0].trees.len());
}

/// What a latency costs per message: from sixteen boxes on no rank of these machines is more than so many hops away.
#[test]
fn trees_of_large_machines_are_flat() {
    for (expression, hops) in
        [("dgx-a100:boxes=16", 2), ("dgx-h100:boxes=16", 2), ("rail:boxes=16", 2), ("mi250:boxes=16", 7)]
    {
        let (forest, _) = in_pieces(&generated(expression), CollectiveKind::Allgather);
        assert!(depth_max(&forest) <= hops, "{expression}: {} hops", depth_max(&forest));
    }
}

/// Dead GPUs and slow links make boxes unequal: those with fewer ranks have capacity to spare, which the others use.
#[test]
fn damaged_machines_stay_flat_and_fast() {
    for (expression, hops, trees) in [
        ("dgx-a100:boxes=16,nodes-down=b3g2+b7g5", 2, 200),
        ("dgx-a100:boxes=16,degrade=b0g3-ib*1/2+b5g1-ib*1/2", 3, 500),
        ("mi250:boxes=16,nodes-down=b3g2+b7g5", 12, 1600),
    ] {
        let (forest, _) = in_pieces(&generated(expression), CollectiveKind::Allgather);
        assert!(depth_max(&forest) <= hops, "{expression}: {} hops", depth_max(&forest));
        assert!(forest.phases[0].trees.len() <= trees, "{expression}: {} trees", forest.phases[0].trees.len());
    }
}

/// A box whose switch is thinner than what its NICs let in needs all of its links, so no boundary can be tight; boxes of
/// unequal sizes are not symmetric either. All trees are written down, three hops at most.
#[test]
fn boxes_with_fast_nics_and_missing_ranks_are_flat() {
    let rails = "rail:boxes=12,gpus=6,nv=60GB/s,nic=50GB/s";
    assert_eq!(tight_clusters(&generated(&format!("{rails},nodes-down=b3g2"))), [] as [Vec<u32>; 0]);
    for (topology, trees_per_rank) in [
        (generated(&format!("{rails},nodes-down=b3g2+b7g5")), 5),
        (generated(&format!("{rails},faults=nics:3@1/2+seed:1")), 2),
        (generated(&format!("{rails},faults=nics:2@1/2+gpus:3+seed:2")), 3),
        (generated("rail:boxes=12,gpus=6,nv=200GB/s,nic=50GB/s,nodes-down=b3g2+b7g5"), 4),
        // A spine above the rails is not needed, and in the way of symmetry.
        (generated(&format!("{rails},spine=100GB/s,nodes-down=b3g2+b7g5")), 5),
        (generated(&format!("{rails},spine=100GB/s")), 11),
        (around_one_switch(&[6, 6, 5, 6, 4, 6], 60, 50), 7),
        (around_one_switch(&[1, 6, 5, 6, 4, 6], 200, 40), 4),
    ] {
        in_pieces(&topology, CollectiveKind::ReduceScatter);
        let (forest, _) = in_pieces(&topology, CollectiveKind::Allgather);
        let (hops, trees) = (depth_max(&forest), forest.phases[0].trees.len());
        let ranks = topology.rank_count() as usize;
        assert!(hops <= 3 && trees <= trees_per_rank * ranks, "{ranks} ranks: {hops} hops, {trees} trees");
    }
}

/// Boxes of four, the router of each joined with all of its group of three, and each group with each: groups are tight,
/// whichever routers lead to other groups.
#[test]
fn dragonflies_of_boxes_fall_into_groups() {
    let mut draft = TopologyDraft::default();
    let capacity = |number| Capacity::from_bytes_per_sec(number).unwrap();
    let mut join = Vec::new();
    for host in 0..12 {
        for rank in 0..4 {
            draft.add_compute(format!("r{host:02}.{rank}"));
            join.push((format!("r{host:02}.{rank}"), format!("r{host:02}.{}", (rank + 1) % 4), 400));
            join.push((format!("r{host:02}.{rank}"), format!("s{host:02}"), 50));
        }
        draft.add_switch(format!("s{host:02}"));
        let others = (host + 1..12).filter(|other| other / 3 == host / 3);
        join.extend(others.map(|other| (format!("s{host:02}"), format!("s{other:02}"), 80)));
    }
    for (one, other) in (0..4).flat_map(|other| (0..other).map(move |one| (one, other))) {
        let (first, second) = (3 * one + (other + 1) % 3, 3 * other + one % 3);
        join.push((format!("s{first:02}"), format!("s{second:02}"), 40));
    }
    join.iter().for_each(|(a, b, rate)| draft.add_both(a, b, capacity(*rate), Latency::from_nanos(0)));
    let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
    let groups: BTreeSet<Vec<u32>> = tight_clusters(&topology).into_iter().filter(|ranks| ranks.len() > 4).collect();
    assert_eq!(groups, (0..4).map(|group| (12 * group..12 * (group + 1)).collect()).collect());
    in_pieces(&topology, CollectiveKind::Allgather);
}

/// Boxes of so many ranks, with `inner` to the switch of the box and `outer` to the one outside.
fn around_one_switch(boxes: &[usize], inner: u64, outer: u64) -> Topology {
    let mut draft = TopologyDraft::default();
    let capacity = |number| Capacity::from_bytes_per_sec(number).unwrap();
    for (host, &ranks) in boxes.iter().enumerate() {
        let attributes = Attributes { box_name: Some(format!("box{host}")), ..Attributes::default() };
        (0..ranks).for_each(|rank| draft.add_node(format!("r{host}.{rank}"), NodeKind::Compute, attributes.clone()));
        draft.add_switch(format!("s{host}"));
        for rank in (0..ranks).map(|rank| format!("r{host}.{rank}")) {
            draft.add_both(&rank, &format!("s{host}"), capacity(inner), Latency::from_nanos(0));
            draft.add_both(&rank, "spine", capacity(outer), Latency::from_nanos(9));
        }
    }
    draft.add_switch("spine");
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// Machines in two levels: ranks on a switch of their box or on each other, boxes on switches of their pod, pods on a
/// spine, with any capacities, some through a relay of its own, boxes named or not.
pub(super) fn machines() -> impl Strategy<Value = Topology> {
    let shape = (1_usize..4, 1_usize..4, 1_usize..4, any::<bool>(), 0_usize..3);
    shape.prop_flat_map(|(pods, boxes, ranks, named, kind)| {
        let count = (pods * boxes * ranks).max(2);
        let capacities = proptest::collection::vec(prop_oneof![Just(4_u64), Just(8), 1_u64..12], 3 * count + 12);
        capacities.prop_map(move |capacities| {
            let mut draft = TopologyDraft::default();
            let mut join = Vec::new();
            for rank in 0..count {
                let (of_box, of_pod) = (rank / ranks, rank / ranks / boxes);
                let id = format!("r{rank:02}");
                let box_name = named.then(|| format!("box{of_box}"));
                draft.add_node(id.clone(), NodeKind::Compute, Attributes { box_name, ..Attributes::default() });
                let [inner, outer, extra] = [0, 1, 2].map(|port| capacities[3 * rank + port]);
                match kind {
                    0 => join.push((id.clone(), format!("b{of_box}"), 5 * inner)),
                    1 if rank % ranks > 0 => join.push((id.clone(), format!("r{:02}", rank - 1), 3 * inner)),
                    _ => join.push((id.clone(), format!("b{of_box}"), inner)),
                }
                if extra > 9 {
                    join.push((id.clone(), format!("n{rank}"), outer));
                    join.push((format!("n{rank}"), format!("p{of_pod}"), outer));
                } else {
                    join.push((id, format!("p{of_pod}"), outer));
                }
            }
            for (pod, &capacity) in (0..count.div_ceil(ranks * boxes)).zip(&capacities[3 * count..]) {
                join.push((format!("p{pod}"), "spine".to_owned(), 2 * capacity));
            }
            let mut switches: Vec<String> = join.iter().flat_map(|(a, b, _)| [a.clone(), b.clone()]).collect();
            switches.retain(|id| !id.starts_with('r'));
            switches.sort_unstable();
            switches.dedup();
            switches.into_iter().for_each(|id| draft.add_switch(id));
            for (a, b, capacity) in join {
                draft.add_both(&a, &b, Capacity::from_bytes_per_sec(capacity).unwrap(), Latency::from_nanos(0));
            }
            draft.build(&TopologyLimits::STANDARD).unwrap()
        })
    })
}

/// Machines some of whose links keep a part of their capacity one way.
fn one_way_slower() -> impl Strategy<Value = Topology> {
    let slower = proptest::collection::vec((any::<proptest::sample::Index>(), 1_u64..4), 1..4);
    (machines(), slower).prop_map(|(topology, slower)| {
        let mut draft = TopologyDraft::default();
        for node in topology.nodes() {
            draft.add_node(node.id.clone(), node.kind, node.attributes.clone());
        }
        let mut capacities: Vec<u64> = topology.links().iter().map(|link| link.capacity.bytes_per_sec()).collect();
        for (place, divisor) in slower {
            let capacity = &mut capacities[place.index(topology.links().len())];
            *capacity = capacity.div_ceil(divisor + 1);
        }
        for (link, capacity) in topology.links().iter().zip(capacities) {
            let id = |node| topology.node(node).id.clone();
            let capacity = Capacity::from_bytes_per_sec(capacity).unwrap();
            draft.add_link(id(link.from), id(link.to), capacity, link.latency);
        }
        draft.build(&TopologyLimits::STANDARD).unwrap()
    })
}

/// Sums of closed walks over ranks and switches, one of which visits all ranks: balanced everywhere, and of no shape.
pub(super) fn walks() -> impl Strategy<Value = Topology> {
    (3_usize..12, 0_usize..6).prop_flat_map(|(ranks, switches)| {
        let nodes = ranks + switches;
        let walk = (proptest::collection::vec(0..nodes, 2..=nodes), 1_u64..20, any::<bool>());
        let tour = (Just((0..ranks).collect::<Vec<_>>()).prop_shuffle(), 1_u64..5, Just(true));
        (tour, proptest::collection::vec(walk, 0..8)).prop_map(move |(tour, mut walks)| {
            walks.push(tour);
            let mut draft = TopologyDraft::default();
            (0..ranks).for_each(|rank| draft.add_compute(format!("r{rank:02}")));
            (0..switches).for_each(|switch| draft.add_switch(format!("s{switch}")));
            let id = |node: usize| if node < ranks { format!("r{node:02}") } else { format!("s{}", node - ranks) };
            for (walk, capacity, both_ways) in &walks {
                let capacity = Capacity::from_bytes_per_sec(*capacity).unwrap();
                for (&from, &to) in walk.iter().zip(walk.iter().cycle().skip(1)).filter(|(from, to)| from != to) {
                    draft.add_link(id(from), id(to), capacity, Latency::from_nanos(0));
                    if *both_ways {
                        draft.add_link(id(to), id(from), capacity, Latency::from_nanos(0));
                    }
                }
            }
            draft.build(&TopologyLimits::STANDARD).unwrap()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn machines_in_pieces_reach_the_bound(topology in machines()) {
        in_pieces(&topology, CollectiveKind::Allgather);
        in_pieces(&topology, CollectiveKind::Broadcast);
    }

    /// Links slower one way leave ranks that take in more than they send out, or less.
    #[test]
    fn machines_with_links_slower_one_way_reach_what_they_can(topology in one_way_slower()) {
        in_pieces(&topology, CollectiveKind::Allgather);
        in_pieces(&topology, CollectiveKind::ReduceScatter);
        in_pieces(&topology, CollectiveKind::Broadcast);
    }

    #[test]
    fn networks_of_no_shape_reach_the_bound(topology in walks()) {
        in_pieces(&topology, CollectiveKind::Allgather);
        in_pieces(&topology, CollectiveKind::ReduceScatter);
    }
}

/// Boxes alike whose nodes are in any order are one kind of piece.
#[test]
fn the_order_of_nodes_makes_no_kinds_of_pieces() {
    let topology = generated("mi250:boxes=5");
    let mut order: Vec<usize> = (0..topology.nodes().len()).collect();
    order.sort_by_key(|&node| (node * 7919) % 101);
    let mut draft = TopologyDraft::default();
    for &node in &order {
        let node = &topology.nodes()[node];
        draft.add_node(node.id.clone(), node.kind, node.attributes.clone());
    }
    for link in topology.links() {
        let id = |end: canopy_topology::NodeIndex| topology.nodes()[end.index()].id.clone();
        draft.add_link(id(link.from), id(link.to), link.capacity, link.latency);
    }
    let shuffled = draft.build(&TopologyLimits::STANDARD).unwrap();
    assert_ne!(shuffled, topology);
    assert_eq!((kinds_of_pieces(&topology), kinds_of_pieces(&shuffled)), (2, 2));
    let (forest, _) = in_pieces(&shuffled, CollectiveKind::Allgather);
    assert_eq!(forest.phases[0].trees.len(), 80);
}

/// How many pieces a network falls into that differ.
fn kinds_of_pieces(topology: &Topology) -> usize {
    let network = Network::of(topology);
    let instance = Instance::new(topology, Roots::All(&Shares::Equal), None, &Never).unwrap();
    let capacities: Vec<i128> = instance.capacities.iter().map(|&capacity| capacity.try_into().unwrap()).collect();
    let demands: Vec<i128> = instance.demands.iter().map(|&demand| demand.into()).collect();
    let apart = crate::forest::decomposition::take_apart(&network, &capacities, &demands, &Never).unwrap();
    crate::forest::piece::pieces(&network, &demands, &apart.tight, &Never)
        .unwrap()
        .0
        .iter()
        .fold(Vec::new(), |mut kinds, piece| {
            let signature = piece.signature();
            if !kinds.contains(&signature) {
                kinds.push(signature);
            }
            kinds
        })
        .len()
}
