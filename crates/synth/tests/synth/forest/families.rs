//! Random small networks by family, and the best cut of each, found by trying all.

use canopy_schedule::CollectiveKind::{self, Allgather, Broadcast, Reduce, ReduceScatter};
use canopy_schedule::Shares;
use canopy_topology::{
    Attributes, Capacity, Latency, NodeIndex, NodeKind, Rank, Rate, Topology, TopologyDraft, TopologyLimits, generate,
};
use proptest::prelude::*;

/// The least bound on algbw over all cuts; the root counts only where there is one.
pub(crate) fn best_cut(topology: &Topology, kind: CollectiveKind, root: u32) -> Rate {
    best_cut_of(topology, kind, root, &Shares::Equal)
}

/// The same for these shares.
pub(crate) fn best_cut_of(topology: &Topology, kind: CollectiveKind, root: u32, shares: &Shares) -> Rate {
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
            Broadcast | Reduce if !is_in(set, root) => continue,
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
pub(crate) fn build(
    ranks: usize,
    switches: usize,
    boxes: &[Option<u8>],
    links: &[(usize, usize, u64, u64)],
) -> Topology {
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

/// The same network with switches that multicast and aggregate.
pub(crate) fn with_capable_switches(topology: &Topology) -> Topology {
    let mut draft = TopologyDraft::default();
    for node in topology.nodes() {
        let kind = match node.kind {
            kind @ (NodeKind::Compute | NodeKind::Forwarder) => kind,
            NodeKind::Switch { .. } => NodeKind::Switch { multicast: true, aggregate: true },
        };
        draft.add_node(node.id.clone(), kind, node.attributes.clone());
    }
    for link in topology.links() {
        let id = |node: NodeIndex| topology.node(node).id.clone();
        draft.add_link(id(link.from), id(link.to), link.capacity, link.latency);
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// As [`build`] takes them.
fn links_of(topology: &Topology) -> Vec<(usize, usize, u64, u64)> {
    let links = topology.links().iter();
    links
        .map(|link| (link.from.index(), link.to.index(), link.capacity.bytes_per_sec(), link.latency.nanos()))
        .collect()
}

/// As [`build`] takes them.
fn boxes_of(topology: &Topology) -> Vec<Option<u8>> {
    let name = |rank: Rank| topology.node(rank.node()).attributes.box_name.as_ref();
    topology.ranks().map(|rank| name(rank)?.trim_start_matches("box").parse().ok()).collect()
}

/// Sums of weighted closed walks: as much enters each node as leaves it. One walk visits all ranks.
pub(crate) fn eulerian() -> impl Strategy<Value = Topology> {
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
pub(crate) fn boxes() -> impl Strategy<Value = Topology> {
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
pub(crate) fn without_switches() -> impl Strategy<Value = Topology> {
    (2_usize..8).prop_flat_map(|ranks| {
        let links = proptest::collection::vec((0..ranks, 0..ranks, 1_u64..10, 0_u64..2), 0..20);
        links.prop_map(move |mut links| {
            links.extend((0..ranks).map(|rank| (rank, (rank + 1) % ranks, 1, 0)));
            build(ranks, 0, &[], &links)
        })
    })
}

/// Switches balanced, ranks not: an Eulerian network plus any links between ranks.
pub(crate) fn balanced_switches() -> impl Strategy<Value = Topology> {
    (eulerian(), proptest::collection::vec((0_usize..8, 0_usize..8, 1_u64..10), 1..8)).prop_map(|(topology, more)| {
        let ranks = topology.rank_count() as usize;
        let mut links = links_of(&topology);
        links.extend(more.iter().map(|&(from, to, capacity)| (from % ranks, to % ranks, capacity, 0)));
        build(ranks, topology.nodes().len() - ranks, &[], &links)
    })
}

/// Any links through any switches, on top of a cycle through all nodes: as much enters a switch as leaves it by chance.
pub(crate) fn unbalanced() -> impl Strategy<Value = Topology> {
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
pub(crate) fn degraded() -> impl Strategy<Value = Topology> {
    let slower = proptest::collection::vec((any::<proptest::sample::Index>(), 1_u64..5), 1..4);
    (boxes(), slower).prop_map(|(topology, slower)| {
        let ranks = topology.rank_count() as usize;
        let mut links = links_of(&topology);
        for (place, divisor) in slower {
            let capacity = &mut links[place.index(topology.links().len())].2;
            *capacity = capacity.div_ceil(divisor);
        }
        build(ranks, topology.nodes().len() - ranks, &boxes_of(&topology), &links)
    })
}

/// Networks with links alike in both directions that lost some of them, or some ranks. What is left may fall apart.
pub(crate) fn punctured() -> impl Strategy<Value = Topology> {
    let lost = proptest::collection::vec((any::<proptest::sample::Index>(), any::<bool>()), 1..4);
    (prop_oneof![boxes(), eulerian()], lost).prop_map(|(topology, lost)| {
        let ranks = topology.rank_count() as usize;
        let mut links = links_of(&topology);
        for (place, is_rank) in lost {
            let Some(&(from, to, ..)) = links.get(place.index(links.len().max(1))) else { break };
            if is_rank && from < ranks && ranks > 2 {
                // It keeps what it needs to take part.
                links.iter_mut().filter(|link| link.0 == from || link.1 == from).for_each(|link| link.2 = 1);
            } else {
                links.retain(|link| (link.0, link.1) != (from, to) && (link.1, link.0) != (from, to));
            }
        }
        build(ranks, topology.nodes().len() - ranks, &boxes_of(&topology), &links)
    })
}

/// Fabrics with less between the tiers than below them.
pub(crate) fn oversubscribed() -> impl Strategy<Value = Topology> {
    let leaf_spine = (1_u32..4, 1_u32..3, 1_u32..3, 1_u32..5);
    let leaf_spine = leaf_spine.prop_map(|(leaves, hosts, spines, oversub)| {
        format!("leaf-spine:leaves={},hosts={hosts},spines={spines},oversub={oversub},host-bw=24GB/s", leaves + 1)
    });
    let rail = (2_u32..4, 2_u32..4, 1_u64..9, 1_u64..9);
    let rail = rail.prop_map(|(boxes, gpus, nv, nic)| {
        format!("rail:boxes={},gpus={},nv={nv}B/s,nic={nic}B/s", boxes, gpus.min(5 - boxes))
    });
    prop_oneof![leaf_spine, rail].prop_map(|expression| {
        generate(&expression, &TopologyLimits::STANDARD).unwrap_or_else(|error| panic!("{expression}: {error}"))
    })
}
