//! How many rank-to-rank hops in a row any schedule needs, by the distances in the topology alone.

use std::collections::VecDeque;

use canopy_schedule::{Collective, CollectiveKind, Shares};
use canopy_topology::{NodeIndex, Rank, Topology};
use rayon::prelude::*;

/// Proven lower bound on the number of steps, and on the length in transfers of the longest chain of dependencies.
///
/// A byte that rank `t` is promised and only rank `s` has (or that `s` has to add to) passes `d(s, t)` transfers one after
/// the other at least, where `d` counts the ranks that a path enters, as a transfer may cross any number of switches. So
/// the bound is the greatest `d` over the pairs that the collective promises: the diameter for allgather, reduce-scatter,
/// allreduce and all-to-all, the eccentricity of the root for the others. Shares and blocks of weight 0 promise nothing.
///
/// * **Source.** Zhao 2026, chapter 3: `T_L ≥ diameter`. Counting neighbours says no more: in `t` steps a rank of degree `d`
///   reaches at most `1 + d + … + dᵗ` ranks, the Moore bound, and distances are that count done on the topology itself.
/// * **None.** A rank is promised what cannot reach it.
/// * **Cost.** A breadth-first search, O(nodes + links), for each rank, or for the root; on the threads of the caller's
///   pool.
pub(crate) fn depth_bound(topology: &Topology, collective: Collective, shares: &Shares) -> Option<u32> {
    let has_share = |rank: Rank| shares.weight(rank) > 0;
    let all = |_: Rank| true;
    match (collective.kind(), collective.root()) {
        (CollectiveKind::Broadcast, Some(root)) => eccentricity(topology, root, &all),
        (CollectiveKind::Scatter, Some(root)) => eccentricity(topology, root, &has_share),
        (CollectiveKind::Reduce, Some(root)) => eccentricity(&topology.transposed(), root, &all),
        (CollectiveKind::Gather, Some(root)) => eccentricity(&topology.transposed(), root, &has_share),
        (CollectiveKind::Allgather, _) => diameter(topology, &|from, _| has_share(from)),
        (CollectiveKind::ReduceScatter, _) => diameter(topology, &|_, to| has_share(to)),
        (CollectiveKind::AllToAll, _) => diameter(topology, &|from, to| shares.block(from, to) > 0),
        _ => diameter(topology, &|_, _| true),
    }
}

/// Greatest distance from a rank to one that wants something of it.
fn diameter(topology: &Topology, is_wanted: &(impl Fn(Rank, Rank) -> bool + Sync)) -> Option<u32> {
    let ranks: Vec<Rank> = topology.ranks().collect();
    let greatest = ranks.into_par_iter().map(|source| eccentricity(topology, source, &|rank| is_wanted(source, rank)));
    greatest.try_reduce(|| 0, |a, b| Some(a.max(b)))
}

/// Greatest number of ranks entered on a shortest way from `source` to a wanted rank.
fn eccentricity(topology: &Topology, source: Rank, is_wanted: &impl Fn(Rank) -> bool) -> Option<u32> {
    let mut distances: Vec<Option<u32>> = vec![None; topology.nodes().len()];
    *distances.get_mut(source.index())? = Some(0);
    // Entering a switch costs nothing, so what is reached that way comes first: the queue stays in order of distance.
    let mut queue = VecDeque::from([(0, source.node())]);
    while let Some((distance, node)) = queue.pop_front() {
        if distances[node.index()] != Some(distance) {
            continue;
        }
        for link in topology.links_from(node) {
            let to: NodeIndex = topology.link(link).to;
            let is_rank = topology.rank_of(to).is_some();
            let reached = distance + u32::from(is_rank);
            if distances[to.index()].is_none_or(|known| reached < known) {
                distances[to.index()] = Some(reached);
                if is_rank { queue.push_back((reached, to)) } else { queue.push_front((reached, to)) }
            }
        }
    }
    let wanted = topology.ranks().filter(|&rank| is_wanted(rank));
    wanted.map(|rank| distances[rank.index()]).try_fold(0, |most, distance| Some(most.max(distance?)))
}
