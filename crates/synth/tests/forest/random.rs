//! Random networks: the rate of every forest equals the bound of the best of all cuts, found by trying each.

use canopy_schedule::CollectiveKind::{self, Allgather, Allreduce, Broadcast, Reduce, ReduceScatter};
use canopy_schedule::Shares;
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, bound, synthesize};
use canopy_topology::{Attributes, Capacity, Latency, NodeKind, Rate, Topology, TopologyDraft, TopologyLimits};
use proptest::prelude::*;

use crate::validator::{plan, plan_shares};

/// The least bound on algbw over all cuts.
fn best_cut(topology: &Topology, kind: CollectiveKind) -> Rate {
    best_cut_of(topology, kind, &Shares::Equal)
}

/// The same for these shares.
fn best_cut_of(topology: &Topology, kind: CollectiveKind, shares: &Shares) -> Rate {
    let nodes = topology.nodes().len();
    let ranks = topology.rank_count();
    let rank_mask = (1_u32 << ranks) - 1;
    let links: Vec<(u32, u32, u64)> = topology
        .links()
        .iter()
        .map(|link| (link.from.number(), link.to.number(), link.capacity.bytes_per_sec()))
        .collect();
    let is_in = |set: u32, node: u32| set >> node & 1 == 1;
    let weight_in = |set: u32| -> u64 {
        topology.ranks().filter(|rank| is_in(set, rank.number())).map(|rank| shares.weight(rank)).sum()
    };
    let mut best: Option<(u64, u64)> = None;
    for set in 1..(1_u32 << nodes) - 1 {
        let inside = weight_in(set);
        if matches!(kind, Allgather | ReduceScatter) && inside == 0
            || set & rank_mask == 0
            || set & rank_mask == rank_mask
        {
            continue;
        }
        let crosses = |&&(from, to, _): &&(u32, u32, u64)| match kind {
            Allgather | Broadcast => is_in(set, from) && !is_in(set, to),
            _ => !is_in(set, from) && is_in(set, to),
        };
        let divisor = match kind {
            Broadcast | Reduce if !is_in(set, 0) => continue,
            Broadcast | Reduce => 1,
            _ => inside,
        };
        let capacity: u64 = links.iter().filter(crosses).map(|link| link.2).sum();
        let factor = if matches!(kind, Allgather | ReduceScatter) { weight_in(rank_mask) } else { 1 };
        let smaller = |(c, d): (u64, u64)| factor * capacity * d < c * divisor;
        if best.is_none_or(smaller) {
            best = Some((factor * capacity, divisor));
        }
    }
    let (numerator, denominator) = best.expect("two ranks make a cut");
    Rate::new(numerator, denominator).unwrap()
}

/// Links as (from, to, capacity, latency) between `ranks + switches` nodes, ranks first.
fn build(ranks: usize, switches: usize, boxes: &[Option<u8>], links: &[(usize, usize, u64, u64)]) -> Topology {
    let mut draft = TopologyDraft::default();
    for node in 0..ranks + switches {
        let kind = if node < ranks { NodeKind::Compute } else { NodeKind::PLAIN_SWITCH };
        let box_name = boxes.get(node).copied().flatten().map(|name| format!("box{name}"));
        draft.add_node(format!("n{node:02}"), kind, Attributes { box_name, ..Attributes::default() });
    }
    for &(from, to, capacity, latency) in links.iter().filter(|link| link.0 != link.1) {
        let capacity = Capacity::from_bytes_per_sec(capacity).unwrap();
        draft.add_link(format!("n{from:02}"), format!("n{to:02}"), capacity, Latency::from_nanos(latency));
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// Sums of weighted closed walks: as much enters each node as leaves it. One walk visits all ranks.
fn eulerian() -> impl Strategy<Value = Topology> {
    (2_usize..8, 0_usize..7).prop_flat_map(|(ranks, switches)| {
        let nodes = ranks + switches;
        let walk = (proptest::collection::vec(0..nodes, 2..=nodes), 1_u64..13, 0_u64..2);
        let tour = (Just((0..ranks).collect::<Vec<_>>()).prop_shuffle(), 1_u64..5, Just(0));
        let boxes = proptest::collection::vec(proptest::option::of(0_u8..3), nodes);
        (tour, proptest::collection::vec(walk, 0..7), boxes).prop_map(move |(tour, mut walks, boxes)| {
            walks.push(tour);
            let closed = |(walk, capacity, latency): &(Vec<usize>, u64, u64)| {
                let next = walk.iter().cycle().skip(1);
                let step = |(&from, &to): (&usize, &usize)| (from, to, *capacity, *latency);
                walk.iter().zip(next).map(step).collect::<Vec<_>>()
            };
            let links: Vec<_> = walks.iter().flat_map(closed).collect();
            build(ranks, switches, &boxes, &links)
        })
    })
}

/// Boxes of ranks around switches, with links alike in both directions: the shape of real machines.
fn boxes() -> impl Strategy<Value = Topology> {
    (1_usize..4, 1_usize..5, 1_usize..3, any::<bool>()).prop_flat_map(|(boxes, per_box, spines, named)| {
        let ranks = (boxes * per_box).max(2);
        let links = proptest::collection::vec((1_u64..20, 0_u64..6), ranks * (1 + spines));
        links.prop_map(move |capacities| {
            let mut both = Vec::new();
            for (position, &(inner, outer)) in capacities.iter().enumerate() {
                let (rank, port) = (position / (1 + spines), position % (1 + spines));
                // The first port of a rank goes to the switch of its box, the others to the spines.
                let (to, capacity) = match port {
                    0 => (ranks + rank / per_box, inner),
                    _ => (ranks + ranks.div_ceil(per_box) + port - 1, outer + u64::from(port == 1)),
                };
                if capacity > 0 {
                    both.extend([(rank, to, capacity, 0), (to, rank, capacity, 0)]);
                }
            }
            let names: Vec<_> = (0..ranks).map(|rank| u8::try_from(rank / per_box).ok().filter(|_| named)).collect();
            build(ranks, ranks.div_ceil(per_box) + spines, &names, &both)
        })
    })
}

/// Any capacities between ranks; a tour makes the network connected.
fn without_switches() -> impl Strategy<Value = Topology> {
    (2_usize..8).prop_flat_map(|ranks| {
        let links = proptest::collection::vec((0..ranks, 0..ranks, 1_u64..10, 0_u64..2), 0..20);
        links.prop_map(move |mut links| {
            links.extend((0..ranks).map(|rank| (rank, (rank + 1) % ranks, 1, 0)));
            build(ranks, 0, &[], &links)
        })
    })
}

/// Switches balanced, ranks not: an Eulerian network plus any links between ranks.
fn balanced_switches() -> impl Strategy<Value = Topology> {
    (eulerian(), proptest::collection::vec((0_usize..8, 0_usize..8, 1_u64..10), 1..8)).prop_map(|(topology, more)| {
        let ranks = topology.rank_count() as usize;
        let mut links: Vec<_> = topology
            .links()
            .iter()
            .map(|link| (link.from.index(), link.to.index(), link.capacity.bytes_per_sec(), link.latency.nanos()))
            .collect();
        links.extend(more.iter().map(|&(from, to, capacity)| (from % ranks, to % ranks, capacity, 0)));
        build(ranks, topology.nodes().len() - ranks, &[], &links)
    })
}

/// Any links through any switches, on top of a cycle through all nodes: as much enters a switch as leaves it by chance.
fn unbalanced() -> impl Strategy<Value = Topology> {
    (2_usize..6, 1_usize..4).prop_flat_map(|(ranks, switches)| {
        let nodes = ranks + switches;
        let links = proptest::collection::vec((0..nodes, 0..nodes, 1_u64..10, 0_u64..2), 0..16);
        let cycle = Just((0..nodes).collect::<Vec<_>>()).prop_shuffle();
        (cycle, 1_u64..5, links).prop_map(move |(cycle, around, mut links)| {
            links.extend((0..nodes).map(|at| (cycle[at], cycle[(at + 1) % nodes], around, 0)));
            build(ranks, switches, &[], &links)
        })
    })
}

/// Boxes of ranks, some of whose links are slower one way.
fn degraded() -> impl Strategy<Value = Topology> {
    let slower = proptest::collection::vec((any::<proptest::sample::Index>(), 1_u64..5), 1..4);
    (boxes(), slower).prop_map(|(topology, slower)| {
        let ranks = topology.rank_count() as usize;
        let mut links: Vec<_> = topology
            .links()
            .iter()
            .map(|link| (link.from.index(), link.to.index(), link.capacity.bytes_per_sec(), link.latency.nanos()))
            .collect();
        for (place, divisor) in slower {
            let capacity = &mut links[place.index(topology.links().len())].2;
            *capacity = capacity.div_ceil(divisor);
        }
        let names: Vec<_> = topology
            .ranks()
            .map(|rank| topology.node(rank.node()).attributes.box_name.as_ref()?.trim_start_matches("box").parse().ok())
            .collect();
        build(ranks, topology.nodes().len() - ranks, &names, &links)
    })
}

/// Whether more leaves some switch than enters it, in the direction of the data. Dead ends do not count.
fn some_switch_multiplies(topology: &Topology, kind: CollectiveKind) -> bool {
    let switches = topology.rank_count() as usize..topology.nodes().len();
    switches.into_iter().any(|switch| {
        let sum = |is_out: bool| -> u64 {
            let ends = |link: &&canopy_topology::Link| if is_out { link.from } else { link.to }.index() == switch;
            topology.links().iter().filter(ends).map(|link| link.capacity.bytes_per_sec()).sum()
        };
        if matches!(kind, Allgather | Broadcast) { sum(true) > sum(false) } else { sum(false) > sum(true) }
    })
}

/// Every network with a path between all ranks has a plan; it states no more than any cut allows, all that the bound says can be reached,
/// and all there is where no switch would have to copy or to add up.
fn check_planned(topology: &Topology) -> Result<(), TestCaseError> {
    for kind in [Allgather, ReduceScatter, Broadcast, Reduce] {
        let collective = canopy_schedule::Collective::new(kind, None, topology.rank_count()).unwrap();
        let bound = bound(topology, collective, &Shares::Equal, &Never).unwrap();
        let (reached, limit) = (plan(topology, kind).algbw, best_cut(topology, kind));
        prop_assert_eq!(&bound.upper, &limit, "{}", kind);
        prop_assert_eq!(&bound.lower, &reached, "{}", kind);
        prop_assert!(reached == limit || some_switch_multiplies(topology, kind), "{}", kind);
    }
    plan(topology, Allreduce);
    Ok(())
}

/// Each collective with a bound of its own reaches it.
fn check_optimal(topology: &Topology) -> Result<(), TestCaseError> {
    for kind in [Allgather, ReduceScatter, Broadcast, Reduce] {
        prop_assert_eq!(plan(topology, kind).algbw, best_cut(topology, kind), "{}", kind);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn eulerian_networks_are_planned_optimally(topology in eulerian()) {
        check_optimal(&topology)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn boxes_are_planned_optimally(topology in boxes()) {
        check_optimal(&topology)?;
    }

    #[test]
    fn any_network_without_switches_is_planned_optimally(topology in without_switches()) {
        check_optimal(&topology)?;
    }

    /// Shares of different sizes, some of size 0, are spread as fast as any cut allows.
    #[test]
    fn weighted_shares_are_planned_optimally(
        topology in prop_oneof![eulerian(), boxes(), balanced_switches()],
        weights in proptest::collection::vec(prop_oneof![Just(0), Just(1), 1..20_u64, 1..1_000_000_u64], 12),
        source in 0..12_usize,
    ) {
        let mut weights = weights[..topology.rank_count() as usize].to_vec();
        let source = source % weights.len();
        weights[source] += 1;
        let shares = Shares::Weighted(weights);
        for kind in [Allgather, ReduceScatter] {
            let planned = plan_shares(&topology, kind, shares.clone());
            prop_assert_eq!(planned.algbw, best_cut_of(&topology, kind, &shares), "{}", kind);
        }
    }

    #[test]
    fn unbalanced_switches_are_planned_as_well_as_the_bound_says(topology in unbalanced()) {
        check_planned(&topology)?;
    }

    #[test]
    fn links_slower_one_way_are_planned_as_well_as_the_bound_says(topology in degraded()) {
        check_planned(&topology)?;
    }

    #[test]
    fn balanced_switches_suffice(topology in balanced_switches()) {
        check_optimal(&topology)?;
    }

    /// Both phases run at their own best rate, so together no slower than one after the other.
    #[test]
    fn allreduce_is_as_fast_as_its_phases(topology in balanced_switches()) {
        let time = |kind| 1.0 / best_cut(&topology, kind).gigabytes_per_sec();
        let together = 1.0 / plan(&topology, Allreduce).algbw.gigabytes_per_sec();
        prop_assert!(together <= (time(Allgather) + time(ReduceScatter)) * (1.0 + 1e-12));
    }

    #[test]
    fn equal_requests_give_equal_schedules(topology in eulerian()) {
        let collective = canopy_schedule::Collective::new(Allgather, None, topology.rank_count()).unwrap();
        let request = SynthesisRequest::new(collective, Algorithm::Auto);
        let once = synthesize(&topology, &request, &Never, &Silent);
        prop_assert_eq!(once, synthesize(&topology, &request, &Never, &Silent));
    }
}
