//! Allreduce at its own optimum, which is that of no allgather on uneven networks.

use canopy_schedule::CollectiveKind::Allreduce;
use canopy_schedule::{Collective, Shares, certified_bound};
use canopy_synth::{Never, bound};
use canopy_topology::{
    Attributes, Capacity, Latency, NodeKind, Rate, Topology, TopologyDraft, TopologyLimits, generate,
};
use proptest::prelude::*;

use crate::forest::validator::{Judged, plan, plan_shares};

fn generated(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

/// The plan, which has to reach the certified bound exactly.
#[track_caller]
pub(crate) fn optimal(topology: &Topology) -> Judged {
    let judged = plan(topology, Allreduce);
    let collective = Collective::new(Allreduce, None, topology.rank_count()).unwrap();
    let bound = bound(topology, collective, &Shares::Equal, &Never).unwrap();
    assert_eq!(certified_bound(topology, collective, &Shares::Equal, &bound.certificate).as_ref(), Ok(&bound.upper));
    assert_eq!(judged.algbw, bound.upper);
    judged
}

/// Rate in bytes per second, depth and number of different trees of both phases.
#[track_caller]
fn check(expression: &str, algbw: &str, depth_max: usize, batches: usize) {
    let judged = optimal(&generated(expression));
    assert_eq!(judged.algbw, algbw.parse::<Rate>().unwrap(), "{expression}");
    let found = (judged.depth_max(), judged.batches());
    assert!(found.0 <= depth_max && found.1 <= batches, "{expression}: depth and trees are {found:?}");
}

#[test]
fn uneven_networks_reach_their_strength() {
    check("mesh:1x3", "25000000000", 1, 2);
    check("mesh:4x4", "40000000000", 6, 16);
    check("mesh:10x10", "500000000000/11", 15, 30);
    check("torus:4x4,down=00-01", "155000000000/3", 6, 24);
    check("dgx-a100:boxes=2,degrade=b0g3-ib*1/2", "518750000000/3", 6, 48);
    check("dgx-a100:boxes=4,faults=gpus:1+seed:1", "387500000000/3", 4, 40);
    check("mi250:boxes=1,nodes-down=b0g5", "150000000000", 8, 24);
    check("rail:boxes=16,nodes-down=b0g5", "635000000000/3", 10, 300);
    check("mi250:boxes=2,nodes-down=b0g5", "161250000000", 14, 260);
}

/// One tree of each piece makes one of the network, so boxes of many kinds cost no more than one of each.
#[test]
fn punctured_clusters_are_planned_in_pieces() {
    check("dgx-a100:boxes=32,faults=nics:3@1/2+gpus:2+seed:1", "3156250000000/31", 4, 200);
    check("mi250:boxes=8,nodes-down=b0g5", "1016000000000/7", 18, 80);
}

/// A reduce-scatter followed by an allgather has lower trees, and so is kept where it is as fast.
#[test]
fn even_networks_keep_their_two_phases() {
    for (expression, algbw) in [
        ("ring:8", "200000000000/7"),
        ("torus:4x4", "160000000000/3"),
        ("dgx-a100:boxes=2", "520000000000/3"),
        ("mi250:boxes=2", "531200000000/3"),
    ] {
        let judged = optimal(&generated(expression));
        assert_eq!(judged.algbw, algbw.parse::<Rate>().unwrap(), "{expression}");
        assert_eq!(judged.shares, Shares::Equal, "{expression}: every rank adds up its share");
    }
}

/// Shares that are asked for are those that ranks add up.
#[test]
fn shares_that_are_asked_for_are_kept() {
    let mesh = generated("mesh:1x3");
    for weights in [vec![2, 1, 2], vec![0, 1, 0]] {
        let shares = Shares::Weighted(weights);
        assert_eq!(plan_shares(&mesh, Allreduce, shares.clone()).shares, shares);
    }
    // All of it at the one in the middle is what the optimum does, too.
    assert_eq!(plan(&mesh, Allreduce).shares, Shares::Weighted(vec![0, 1, 0]));
}

/// Links off and back with other latencies are taken in pairs as far as they go.
#[test]
fn links_of_different_latencies_are_paired() {
    let mut draft = TopologyDraft::default();
    for id in ["a", "b", "c"] {
        draft.add_compute(id);
    }
    for (from, to, capacity, latency) in
        [("a", "b", 5, 1), ("a", "b", 3, 2), ("b", "a", 2, 1), ("b", "a", 6, 7), ("b", "c", 8, 1), ("c", "b", 8, 9)]
    {
        let capacity = Capacity::from_bytes_per_sec(capacity).unwrap();
        draft.add_link(from, to, capacity, Latency::from_nanos(latency));
    }
    let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
    assert_eq!(optimal(&topology).algbw, Rate::new(8_u32, 1_u32).unwrap());
}

/// Trees that are gone up and down have room for 3 on what goes both ways; other trees down use what goes one way, too:
/// 5 + 4 + 4 leave the ranks, for two passages of each tree.
#[test]
fn switches_out_of_balance_are_no_obstacle() {
    let mut draft = TopologyDraft::default();
    for id in ["a", "b", "c"] {
        draft.add_compute(id);
    }
    draft.add_switch("s");
    for (id, there, back) in [("a", 5, 4), ("b", 4, 4), ("c", 4, 6)] {
        for (from, to, capacity) in [(id, "s", there), ("s", id, back)] {
            draft.add_link(from, to, Capacity::from_bytes_per_sec(capacity).unwrap(), Latency::from_nanos(0));
        }
    }
    let judged = optimal(&draft.build(&TopologyLimits::STANDARD).unwrap());
    assert_eq!(judged.algbw, Rate::new(13_u32, 4_u32).unwrap());
}

/// Links as (from, to, capacity, latency), both ways, between ranks and switches: ranks come first.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    ranks: usize,
    switches: usize,
    boxes: Vec<Option<u8>>,
    links: Vec<(usize, usize, u64, u64)>,
}

impl Plan {
    pub(crate) fn topology(&self) -> Topology {
        let mut draft = TopologyDraft::default();
        let id = |node: usize| format!("n{node:02}");
        for node in 0..self.ranks + self.switches {
            let kind = if node < self.ranks { NodeKind::Compute } else { NodeKind::PLAIN_SWITCH };
            let box_name = self.boxes.get(node).copied().flatten().map(|name| format!("box{name}"));
            draft.add_node(id(node), kind, Attributes { box_name, ..Attributes::default() });
        }
        for &(from, to, capacity, latency) in self.links.iter().filter(|link| link.0 != link.1) {
            let (capacity, latency) = (Capacity::from_bytes_per_sec(capacity).unwrap(), Latency::from_nanos(latency));
            draft.add_both(&id(from), &id(to), capacity, latency);
        }
        draft.build(&TopologyLimits::STANDARD).unwrap()
    }

    /// The least capacity between these ranks and all others, wherever the switches belong.
    fn between(&self, set: usize) -> u64 {
        let crossing = |set: usize| {
            let links = self.links.iter().filter(|&&(from, to, ..)| (set >> from ^ set >> to) & 1 == 1);
            links.map(|link| link.2).sum::<u64>()
        };
        (0..1_usize << self.switches).map(|switches| crossing(set | switches << self.ranks)).min().unwrap()
    }

    /// The least `½Σλ(V_i)/(p−1)` over all partitions of the ranks, by trying each.
    fn weakest_partition(&self) -> Rate {
        let between: Vec<u64> = (0..1 << self.ranks).map(|set| self.between(set)).collect();
        let mut best: Option<(u64, u64)> = None;
        // Sets that hold the lowest rank that is left, then what is left without them.
        let mut open = vec![((1_usize << self.ranks) - 1, 0_u64, 0_u64)];
        while let Some((left, sum, parts)) = open.pop() {
            if left == 0 {
                if parts > 1 && best.is_none_or(|(a, b)| sum * b < a * (parts - 1)) {
                    best = Some((sum, parts - 1));
                }
                continue;
            }
            let lowest = left & left.wrapping_neg();
            let mut others = left ^ lowest;
            loop {
                let part = others | lowest;
                open.push((left ^ part, sum + between[part], parts + 1));
                if others == 0 {
                    break;
                }
                others = (others - 1) & (left ^ lowest);
            }
        }
        let (sum, divisor) = best.expect("two ranks make a partition");
        Rate::new(sum, 2 * divisor).unwrap()
    }
}

/// Any networks of a few ranks and switches with links alike in both directions; a tour makes them connected.
pub(crate) fn both_ways() -> impl Strategy<Value = Plan> {
    (2_usize..=8, 0_usize..=4).prop_flat_map(|(ranks, switches)| {
        let nodes = ranks + switches;
        let capacity = prop_oneof![8 => 1_u64..8, 2 => 1_u64..100, 1 => Just(1_000_003)];
        let links = proptest::collection::vec((0..nodes, 0..nodes, capacity.clone(), 0_u64..2), 0..3 * nodes);
        let tour = (Just((0..nodes).collect::<Vec<_>>()).prop_shuffle(), proptest::collection::vec(capacity, nodes));
        let boxes = proptest::collection::vec(proptest::option::of(0_u8..3), ranks);
        (links, tour, boxes).prop_map(move |(mut links, (tour, capacities), boxes)| {
            links.extend(tour.windows(2).zip(capacities).map(|(pair, capacity)| (pair[0], pair[1], capacity, 0)));
            Plan { ranks, switches, boxes, links }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// The plan reaches the bound, and the bound is the weakest of all partitions.
    #[test]
    fn two_way_networks_reach_their_weakest_partition(network in both_ways()) {
        prop_assert_eq!(optimal(&network.topology()).algbw, network.weakest_partition());
    }

    #[test]
    fn equal_networks_give_equal_plans(network in both_ways()) {
        let (once, again) = (plan(&network.topology(), Allreduce), plan(&network.topology(), Allreduce));
        prop_assert_eq!((once.forest, once.shares), (again.forest, again.shares));
    }
}
