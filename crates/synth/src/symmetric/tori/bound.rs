//! The rank that takes longest to get what it needs, whatever the plan: the proof of a bound.

use canopy_schedule::{Certificate, CollectiveKind, CutDirection};
use canopy_topology::{NodeIndex, Topology};

/// The cut around the rank with the slowest links; for an allreduce the partition into single ranks where that proves
/// more. O(nodes + links).
pub(super) fn certificate(topology: &Topology, kind: CollectiveKind) -> Certificate {
    let degrees = topology.degrees();
    // The shares of others enter a rank, and what it adds to their sums leaves it.
    let direction = if kind == CollectiveKind::ReduceScatter { CutDirection::Out } else { CutDirection::In };
    let rate = |&(_, &(into, out)): &(u32, &(u128, u128))| match direction {
        CutDirection::In => into,
        CutDirection::Out => out,
    };
    let slowest = (0..topology.rank_count()).zip(&degrees).min_by_key(rate);
    let (own, least) = slowest.map_or((0, 0), |found| (found.0, rate(&found)));
    let is_of_ranks = topology.capable_nodes().next().is_none();
    let all: u128 = degrees.iter().map(|&(_, out)| out).sum();
    let others = u128::from(topology.rank_count()).saturating_sub(1);
    if kind == CollectiveKind::Allreduce && all < least.saturating_mul(2 * others) && is_of_ranks {
        return Certificate::Partition { sets: topology.ranks().map(|rank| vec![rank.node()]).collect() };
    }
    Certificate::Cut { direction, nodes: vec![NodeIndex::new(own)] }
}
