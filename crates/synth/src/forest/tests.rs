//! The stages one by one. What they make together is tested from outside, in `tests/forest`.

mod coarse;
mod completion;
mod joined;
mod limits;
mod logical;
mod lower;
mod modes;
mod packing;
mod parents;
mod pieces;
mod relays;
mod rooted;
mod scaling;
mod spared;
mod splitting;
mod translated;

use canopy_topology::{Capacity, Latency, Topology, TopologyDraft, TopologyLimits};

/// Links in both directions; ids that start with `s` are switches.
pub(super) fn both_ways(nodes: &str, links: &[(&str, &str, u64)]) -> Topology {
    let directed: Vec<_> = links.iter().flat_map(|&(a, b, capacity)| [(a, b, capacity), (b, a, capacity)]).collect();
    one_way(nodes, &directed)
}

/// Directed links; ids that start with `s` are switches.
pub(super) fn one_way(nodes: &str, links: &[(&str, &str, u64)]) -> Topology {
    let mut draft = TopologyDraft::default();
    for id in nodes.split(' ') {
        if id.starts_with('s') { draft.add_switch(id) } else { draft.add_compute(id) }
    }
    for (from, to, capacity) in links {
        draft.add_link(*from, *to, Capacity::from_bytes_per_sec(*capacity).unwrap(), Latency::from_nanos(0));
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// Two boxes of two ranks: 2 to the switch of the box, 1 to the switch between them. Nodes a0 a1 b0 b1 sa sb sx are
/// 0 to 6.
fn two_boxes() -> Topology {
    let ranks = ["a0", "a1", "b0", "b1"];
    let inner = ranks.map(|rank| (rank, if rank.starts_with('a') { "sa" } else { "sb" }, 2));
    let outer = ranks.map(|rank| (rank, "sx", 1));
    both_ways("a0 a1 b0 b1 sa sb sx", &[inner, outer].concat())
}
