use canopy_topology::{DraftLink, TopologyDraft, TopologyLimits, generate};
use proptest::prelude::*;

use super::*;
use crate::check::check;
use crate::matrix::Matrix;
use crate::plan::plan;
use crate::tiers::Fabric;

const GB: u64 = 1_000_000_000;

fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn network(expression: &str) -> Network {
    Network::recognise(&topology(expression), &[]).unwrap()
}

#[track_caller]
fn refused(expression: &str, expected: &str) {
    let refusal = Network::recognise(&topology(expression), &[]).map(|network| network.tiers).unwrap_err();
    assert_eq!(refusal.to_string(), expected);
}

fn gone(id: &str) -> Fault {
    Fault::Node { id: id.to_owned() }
}

fn cut(from: &str, to: &str) -> Fault {
    Fault::Link { from: from.to_owned(), to: to.to_owned(), both_ways: true }
}

#[test]
fn machines_and_rails_have_the_rates_of_their_links() {
    let in_pairs = |tiers: Tiers, rate: u64| {
        let (ranks, size) = (tiers.ranks(), tiers.box_size());
        let link = |link: usize| if link / size % size == link % size { 0 } else { rate * GB };
        tiers.in_pairs((0..ranks * size).map(link).collect()).unwrap()
    };
    let even = |fabric, boxes, size, inner, outer| Tiers::even(fabric, boxes, size, inner * GB, outer * GB).unwrap();
    for (expression, expected) in [
        ("dgx-a100:boxes=4", even(Fabric::Full, 4, 8, 300, 25)),
        ("dgx-h100:boxes=2", even(Fabric::Full, 2, 8, 450, 50)),
        ("hgx:boxes=2,gpus=4,nics=8", even(Fabric::Full, 2, 4, 450, 100)),
        ("rail:boxes=4,gpus=8", even(Fabric::Rails, 4, 8, 450, 50)),
        ("rail:boxes=4,gpus=8,spine=200GB/s", even(Fabric::Full, 4, 8, 450, 50)),
        ("pod:boxes=4,su=2", even(Fabric::Full, 4, 8, 450, 50)),
        ("mi300x:boxes=2", in_pairs(even(Fabric::Full, 2, 8, 448, 50), 64)),
        ("gb200-nvl72:racks=2", even(Fabric::Full, 2, 72, 900, 50)),
        ("dgx-a100", even(Fabric::Full, 1, 8, 300, 0)),
        ("complete:8,bw=1GB/s", in_pairs(even(Fabric::Full, 1, 8, 7, 0), 1)),
        ("leaf-spine:leaves=4,hosts=4,spines=2", even(Fabric::Full, 16, 1, 25, 25)),
        ("fat-tree:k=4", even(Fabric::Full, 16, 1, 25, 25)),
        // A box of one rank may have its switch.
        ("dgx-h100:boxes=4,gpus=1", even(Fabric::Full, 4, 1, 50, 50)),
        ("rail:boxes=4,gpus=1", even(Fabric::Full, 4, 1, 50, 50)),
    ] {
        let found = network(expression);
        assert_eq!(found.tiers, expected, "{expression}");
        assert_eq!((found.lost, found.dead_nics), (vec![], vec![]), "{expression}");
    }
}

#[test]
fn other_networks_are_refused_with_what_does_not_fit() {
    refused(
        "leaf-spine:leaves=4,hosts=4,spines=2,oversub=2",
        "switch `leaf0` has 50000000000 B/s to the switches above it and 100000000000 B/s to those above from its ranks; \
         a fabric of several switches must block nowhere",
    );
    refused(
        "hgx:boxes=2,nics=4",
        "switch `b0nic0` has 50000000000 B/s to the switches above it and 100000000000 B/s to those above from its ranks; \
         a fabric of several switches must block nowhere",
    );
    let pairs =
        "no link leads from `b0g0` to `b0g3` of its box, and no switch joins them; join a box by a switch or all pairs";
    refused("mi250:boxes=2", pairs);
    refused(
        "ring:4",
        "no link leads from `0` to `2` of its box, and no switch joins them; join a box by a switch or all pairs",
    );
    refused(
        "dgx-a100:boxes=2,nodes-down=ib",
        "no switch joins `b0g0` with `b1g0`; give each rank a link to the switch of its rail, or to that of all ranks",
    );
    refused(
        "dgx-a100:boxes=2,nodes-down=b1g3",
        "`b1g7` is in a box of 7 ranks and `b0g0` in one of 8; use boxes of the same number of ranks",
    );
    refused("rail:boxes=129,gpus=8", "the network has 1032 ranks; 1024 is the limit, so divide it");
}

#[test]
fn faults_change_rates_and_name_what_they_take() {
    let whole = topology("rail:boxes=3,gpus=2,nv=10GB/s,nic=4GB/s");
    let slow =
        Fault::Degrade { from: "b0g0".into(), to: "rail0".into(), both_ways: false, numerator: 1, denominator: 2 };
    let found = Network::recognise(&whole, &[slow, cut("b1g1", "rail1"), gone("b2g0")]).unwrap();
    let rates = found.tiers.rates();
    assert_eq!(rates.outer_out, [2 * GB, 4 * GB, 4 * GB, 0, 0, 4 * GB]);
    assert_eq!(rates.outer_in, [4 * GB, 4 * GB, 4 * GB, 0, 0, 4 * GB]);
    assert_eq!(rates.inner_out, [10 * GB; 6]);
    assert_eq!((found.lost, found.dead_nics, found.topology.rank_count()), (vec![4], vec![3], 5));
    let rail = Network::recognise(&whole, &[gone("rail1")]).unwrap();
    assert_eq!(rail.dead_nics, [1, 3, 5]);
}

#[test]
fn ranks_without_a_link_to_other_boxes_have_dead_nics() {
    for (expression, dead, fabric) in [
        ("rail:boxes=3,gpus=4,down=b0g3-rail3+b2g1-rail1", vec![3, 9], Fabric::Rails),
        ("dgx-a100:boxes=2,down=b0g0-ib", vec![0], Fabric::Full),
        ("dgx-a100:boxes=2,down=b1g7-ib+b1g6-ib", vec![14, 15], Fabric::Full),
        ("mi300x:boxes=2,down=b0g0-ib", vec![0], Fabric::Full),
        ("mi300x:boxes=3,down=b2g7-ib", vec![23], Fabric::Full),
    ] {
        let found = network(expression);
        assert_eq!((found.dead_nics, found.tiers.fabric()), (dead, fabric), "{expression}");
    }
}

#[test]
fn faults_that_leave_no_two_tiers_are_refused() {
    let text = |expression: &str, faults: &[Fault]| {
        Network::recognise(&topology(expression), faults).map(|network| network.tiers).unwrap_err().to_string()
    };
    assert!(text("leaf-spine:leaves=4,hosts=4,spines=2", &[gone("spine0")]).contains("block"));
    assert_eq!(text("dgx-a100:boxes=2", &[gone("b9")]), "the topology has no node `b9`; name one of its ids");
    let others = network("mi300x:boxes=2").tiers;
    let lost = Network::recognise(&topology("mi300x:boxes=2"), &[gone("b0g1")]).unwrap();
    assert_eq!(lost.tiers.rates().inner_out[0], 6 * 64 * GB);
    assert_eq!(lost.tiers.rates().inner_out[8..], others.rates().inner_out[8..]);
    assert_eq!(lost.lost, [1]);
    assert_eq!(lost.tiers.pairs()[..8], [0, 0, 64, 64, 64, 64, 64, 64].map(|rate| rate * GB));
    assert_eq!(lost.tiers.pairs()[8..16], [0; 8]);
    let dead = Network::recognise(&topology("mi300x:boxes=2"), &[cut("b0g1", "b0g2")]).unwrap().tiers;
    assert_eq!((dead.pairs()[8 + 2], dead.pairs()[2 * 8 + 1], dead.rates().inner_out[1]), (0, 0, 6 * 64 * GB));
}

fn one_way(from: &str, to: &str) -> Fault {
    Fault::Link { from: from.to_owned(), to: to.to_owned(), both_ways: false }
}

/// A rank whose link to its box is dead in one direction still has its NIC, and the other direction.
#[test]
fn ranks_that_are_cut_off_from_their_box_keep_their_nics() {
    let pairs = |fault: Fault| {
        let found = Network::recognise(&topology("dgx-a100:boxes=2,gpus=2"), &[fault]).unwrap();
        assert_eq!((found.lost, found.dead_nics), (vec![], vec![]));
        assert_eq!(found.tiers.rates().outer_out, [25 * GB; 4]);
        found.tiers.pairs().iter().map(|rate| *rate > 0).collect::<Vec<_>>()
    };
    let (no, yes) = (false, true);
    assert_eq!(pairs(one_way("b0g0", "b0nv")), [no, no, yes, no, no, yes, yes, no]);
    assert_eq!(pairs(one_way("b0nv", "b0g0")), [no, yes, no, no, no, yes, yes, no]);
    assert_eq!(pairs(cut("b0nv", "b0g0")), [no, no, no, no, no, yes, yes, no]);
    assert_eq!(pairs(gone("b0nv")), [no, no, no, no, no, yes, yes, no]);
    assert_eq!(pairs(one_way("b1g1", "b1nv")), [no, yes, yes, no, no, yes, no, no]);
}

/// Whatever can get to its receiver over any links does, at the time that is stated.
#[test]
fn ranks_that_are_cut_off_are_sent_what_can_reach_them() {
    let bytes = |rank: u64| (0..8).map(|to| u64::from(to != rank) * (1_000_000 * (1 + rank) + to)).collect::<Vec<_>>();
    let matrix = Matrix::new(8, (0..8).flat_map(bytes).collect()).unwrap();
    for expression in ["dgx-a100:boxes=4,gpus=2", "rail:boxes=4,gpus=2", "mi300x:boxes=4,gpus=2", "rail:boxes=2,gpus=4"]
    {
        let healthy = topology(expression);
        for link in healthy.links() {
            let [from, to] = [link.from, link.to].map(|node| healthy.node(node).id.as_str());
            let found = Network::recognise(&healthy, &[one_way(from, to)]).unwrap();
            let planned =
                plan(&found.tiers, &matrix, None).unwrap_or_else(|error| panic!("{expression} {from}>{to}: {error}"));
            let time = check(&found.tiers, &matrix, &planned.parts).unwrap().time.to_float();
            let least = planned.prices.least_time(&found.tiers, &matrix).unwrap().to_float();
            assert!((0.95..1.000_001).contains(&(least / time)), "{expression} {from}>{to}: {least} of {time}");
        }
    }
}

/// The same network under other names of its switches, with its links in another order.
fn relabelled(topology: &Topology, order: &[u32]) -> Topology {
    let ranks = topology.rank_count() as usize;
    let name = |index: usize| match index < ranks {
        true => topology.nodes()[index].id.clone(),
        false => format!("s{}", order[index % order.len()] as usize * 1_000 + index),
    };
    let mut draft = TopologyDraft::default();
    for (index, node) in topology.nodes().iter().enumerate() {
        draft.add_node(name(index).as_str(), node.kind, node.attributes.clone());
    }
    let mut links: Vec<_> = topology.links().iter().enumerate().collect();
    links.sort_by_key(|(index, _)| order[index % order.len()]);
    for (_, link) in links {
        let (from, to) = (name(link.from.index()), name(link.to.index()));
        draft.links.push(DraftLink { from, to, capacity: link.capacity, latency: link.latency, count: 1 });
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

proptest! {
    #[test]
    fn names_of_switches_and_the_order_of_links_change_nothing(
        family in 0_usize..5,
        boxes in 2_usize..5,
        gpus in 2_usize..5,
        order in proptest::collection::vec(0_u32..100, 7..30),
    ) {
        let expression = match family {
            0 => format!("dgx-h100:boxes={boxes},gpus={gpus}"),
            1 => format!("rail:boxes={boxes},gpus={gpus}"),
            2 => format!("mi300x:boxes={boxes},gpus={gpus}"),
            3 => format!("pod:boxes={boxes},su=2,gpus={gpus},nic=48GB/s"),
            _ => format!("leaf-spine:leaves={boxes},hosts={gpus},spines=2"),
        };
        let healthy = topology(&expression);
        let found = Network::recognise(&healthy, &[]).unwrap();
        let other = Network::recognise(&relabelled(&healthy, &order), &[]).unwrap();
        prop_assert_eq!(found.tiers, other.tiers);
    }

    #[test]
    fn faults_never_raise_a_rate(
        nodes in proptest::collection::vec(0_usize..40, 0..4),
        links in proptest::collection::vec((0_usize..200, 1_u64..10), 0..6),
    ) {
        let healthy = topology("rail:boxes=3,gpus=4");
        let id = |index: usize| healthy.nodes()[index % healthy.nodes().len()].id.clone();
        let mut faults: Vec<Fault> = nodes.iter().map(|&index| gone(&id(index))).collect();
        faults.extend(links.iter().map(|&(index, numerator)| {
            let link = healthy.links()[index % healthy.links().len()];
            let (from, to) = (id(link.from.index()), id(link.to.index()));
            Fault::Degrade { from, to, both_ways: false, numerator, denominator: 10 }
        }));
        let whole = Network::recognise(&healthy, &[]).unwrap().tiers;
        let Ok(found) = Network::recognise(&healthy, &faults) else { return Ok(()) };
        let all = |tiers: &Tiers| {
            let rates = tiers.rates().clone();
            [rates.inner_out, rates.inner_in, rates.outer_out, rates.outer_in].concat()
        };
        prop_assert!(all(&found.tiers).iter().zip(all(&whole)).all(|(left, whole)| *left <= whole));
        prop_assert!(found.lost.iter().all(|&rank| found.tiers.rates().outer_out[rank as usize] == 0));
    }
}
