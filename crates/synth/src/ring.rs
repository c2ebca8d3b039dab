//! `ring`: data goes around a closed walk through all ranks, both ways where that is faster.
//!
//! Three stages: an order of the ranks in which neighbours are near each other (`order`, with `cycle` and `improve`);
//! a closed walk in that order, on physical routes (`walk`); trees and paths along the walk. On a ring of equal links
//! nothing is faster. `nics` has rings that libraries lay across boxes, one for each NIC, to compare with.

mod cycle;
mod improve;
mod nearness;
mod nics;
mod order;
mod walk;

#[cfg(test)]
mod tests;

use canopy_optimize::Stop;
use canopy_schedule::{Action, ChunkLayout, Collective, Shape, Shares};
use canopy_topology::{LinkIndex, Rank, Topology};

use crate::algorithm::{ALL_COLLECTIVES, Memory, Paths, Rival, SynthesisRequest, Synthesized, Synthesizer, Task};
use crate::error::SynthesisError;
use crate::load::seconds_per_byte;
use crate::parts::{FlowParts, ForestParts, pairs, phase_actions, require_room, roots, weight_between};
use crate::progress::Stage;
use crate::reach::{ask, disconnected, first_unreachable, require_reach};
use walk::{Arcs, Walk};

pub use nics::{NicRings, NicRingsError, nic_rings};

/// A ring of all ranks.
pub(crate) static RING: Synthesizer = Synthesizer {
    memory: Memory { paths: Paths::AroundRing, ..Memory::USUAL },
    // A walk that comes by a rank again has shorter ways than half of it.
    rival: Some(Rival { place: 12, ..Rival::PAIRS }),
    ..Synthesizer::new("ring", "a ring of all ranks, in both directions where links allow it", ALL_COLLECTIVES, plan)
};

/// Plans a collective around a ring.
///
/// Allgather: each rank's share goes around in a chain of N−1 hops, half of it each way if k = 2; shares
/// of any weights, in the same order. Reduce-scatter is the
/// same towards the rank, allreduce both in turn; broadcast and reduce have chains of one root. Gather, scatter and
/// all-to-all send each block the shorter way around, half of it each way where both are equally long. Where the walk
/// comes by a rank again, the rank forwards without receiving for a second time. One way around is used if both
/// together are no faster, as on one-way links.
///
/// * **Source.** Patarasuk and Yuan 2009 for allreduce; the rest is folklore.
/// * **In.** Any topology on which all ranks reach each other, whatever the collective. **Out.** k = 1 or 2.
/// * **Errors.** Disconnected; no ring, where only some collectives have no use for one; too many hops; stopped.
/// * **Cost.** That of [`order::ring_order`], then O(N · length of the walk).
fn plan(task: &Task<'_>) -> Result<Synthesized, SynthesisError> {
    let &Task { topology, request, stop, progress, .. } = task;
    let &SynthesisRequest { collective, ref shares, .. } = request;
    // Up to two chunks for each unit of weight.
    ChunkLayout::new(collective, topology.rank_count(), 2, shares)?;
    if let Some((from, to)) = topology.first_unreachable() {
        let is_needed = first_unreachable(topology, collective, shares).is_some();
        return Err(if is_needed { disconnected(topology, from, to) } else { no_ring(topology, from, to) });
    }
    require_reach(topology, collective, shares)?;
    ask(stop)?;
    let order = order::ring_order(topology, stop)?;
    progress.report(Stage::Routes, 0, 2);
    let forward = Walk::new(topology, &order, stop)?;
    let one_way = lay(topology, collective, shares, &[&forward], stop)?;
    progress.report(Stage::Routes, 1, 2);
    let reversed: Vec<Rank> = order.into_iter().rev().collect();
    let backward = Walk::new(topology, &reversed, stop)?;
    let both_ways = lay(topology, collective, shares, &[&forward, &backward], stop)?;
    progress.report(Stage::Routes, 2, 2);
    let is_faster = seconds_per_byte(topology, &both_ways) < seconds_per_byte(topology, &one_way);
    Ok(task.planned(if is_faster { both_ways } else { one_way }))
}

fn no_ring(topology: &Topology, from: Rank, to: Rank) -> SynthesisError {
    let id = |rank: Rank| topology.node(rank.node()).id.clone();
    SynthesisError::NoRing { from: id(from), from_rank: from.number(), to: id(to), to_rank: to.number() }
}

/// Puts a collective on one walk or on one in each direction; k is the number of walks.
fn lay(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    walks: &[&Walk],
    stop: &dyn Stop,
) -> Result<Shape, SynthesisError> {
    let Some(actions) = phase_actions(collective.kind()) else {
        return paths(topology, collective, shares, walks, stop);
    };
    let roots = roots(collective, topology.rank_count(), shares);
    chains(topology, actions, &roots, walks.len() as u64, |_| walks, stop)
}

/// Chains along walks: each root's share in equal parts on the walks that `walks_of` names for its place among the roots.
fn chains<'a>(
    topology: &Topology,
    actions: &[Action],
    roots: &[(Rank, u64)],
    chunks_per_share: u64,
    walks_of: impl Fn(usize) -> &'a [&'a Walk],
    stop: &dyn Stop,
) -> Result<Shape, SynthesisError> {
    let tree_count = (roots.len() * actions.len()) as u64 * chunks_per_share;
    require_room(tree_count.saturating_mul(u64::from(topology.rank_count())))?;
    let mut parts = ForestParts::new(chunks_per_share);
    for &action in actions {
        parts.add_phase(action);
        for (place, &(root, weight)) in roots.iter().enumerate() {
            ask(stop)?;
            for walk in walks_of(place) {
                match action {
                    Action::Copy => parts.add_tree(root, weight, walk.chain_from(root).cloned())?,
                    Action::Reduce => parts.add_tree(root, weight, walk.chain_to(root).into_iter().cloned())?,
                }
            }
        }
    }
    Ok(Shape::Forest(parts.finish()))
}

/// Each block on the shortest way along one of the walks; in equal parts on two equally short ones.
fn paths(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    walks: &[&Walk],
    stop: &dyn Stop,
) -> Result<Shape, SynthesisError> {
    let pairs = pairs(collective, topology.rank_count(), shares)?;
    let chunks_per_share = walks.len() as u64;
    let mut parts = FlowParts::new(topology, chunks_per_share);
    for pairs in pairs.chunk_by(|first, second| first.0 == second.0) {
        ask(stop)?;
        let arcs: Vec<Arcs<'_>> = walks.iter().map(|walk| walk.arcs_from(pairs[0].0)).collect();
        for &(source, destination) in pairs {
            let ways: Vec<(usize, Vec<LinkIndex>)> = arcs.iter().map(|arcs| arcs.to(destination)).collect();
            let least = ways.iter().map(|(hops, _)| *hops).min().expect("one walk or two");
            let shortest = || ways.iter().filter(|(hops, _)| *hops == least);
            let weight = weight_between(collective, shares, (source, destination));
            let chunk_count = weight * (chunks_per_share / shortest().count() as u64);
            for (_, links) in shortest() {
                parts.add_path(source, destination, chunk_count, links)?;
            }
        }
    }
    Ok(Shape::Flow(parts.finish()))
}
