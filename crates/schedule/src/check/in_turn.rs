//! What numbered steps cost where each route carries its sends one after the other, exactly.
//!
//! A replay: routes are lanes that share links evenly, and nothing waits but for its lane and for what it depends on.
//! It reads transfers alone, and knows nothing of how their order was found.

mod chains;
mod lanes;
mod ticks;

use canopy_topology::Topology;

use super::error::LoadError;
use super::seconds::Seconds;
use crate::route::RouteIndex;
use crate::transfer::TransferGraph;
use chains::Chains;
use lanes::Lanes;
use ticks::Ticks;

/// When the last transfer ends if nothing has a latency, for chunks of one byte.
///
/// * **Model.** A lane is a route that carries anything. It has `capacity / lanes` of each of its links, where so many
///   lanes pass the link, and is as fast as the least of these; so lanes together never claim more than a link has.
///   Transfers are in an order that keeps steps and dependencies: each lane takes its parts of them in that order, each
///   part once the lane is free and all that the transfer depends on has ended, for chunks · time of a chunk. A
///   transfer ends with the last of its parts.
/// * **In.** A graph whose structure is right, with a step for each transfer, in order.
/// * **Errors.** [`LoadError::NothingMoves`].
/// * **Cost.** O(links of all routes + carriers and dependencies of all transfers). Where the times of lanes have no
///   common unit that 128 bits can count, also the lengths of the chains of sends whose ends are compared and too close
///   to tell apart by their leading 126 bits.
pub(super) fn seconds_in_turn(topology: &Topology, graph: &TransferGraph) -> Result<Seconds, LoadError> {
    let lanes = Lanes::of(topology, graph);
    let count = graph.steps.last().map_or(0, |step| step.saturating_add(1));
    if let Some(mut ticks) = Ticks::of(&lanes)
        && let Some(end) = last_end(graph, &mut ticks)
    {
        return Ok(ticks.seconds(count, end));
    }
    let mut chains = Chains::of(&lanes, graph);
    let end = last_end(graph, &mut chains).ok_or(LoadError::NothingMoves)?;
    Ok(chains.seconds(count, end))
}

/// Times that can be compared and grow by what lanes take.
trait Clock {
    type Time: Copy;

    /// The time when nothing has been sent.
    const START: Self::Time;

    fn later(&self, a: Self::Time, b: Self::Time) -> Self::Time;

    /// When a lane that begins at a time has carried some chunks; `None` if that cannot be counted.
    fn after(&mut self, begin: Self::Time, lane: RouteIndex, chunks: u64) -> Option<Self::Time>;
}

/// The end of the last transfer; `None` if there is no transfer, or a time cannot be counted.
fn last_end<C: Clock>(graph: &TransferGraph, clock: &mut C) -> Option<C::Time> {
    let mut free_at = vec![C::START; graph.routes.len()];
    let mut ends: Vec<C::Time> = Vec::with_capacity(graph.transfers.len());
    for transfer in &graph.transfers {
        let waited = graph.dependencies_of(transfer).iter().map(|&before| ends[before as usize]);
        let ready = waited.reduce(|a, b| clock.later(a, b)).unwrap_or(C::START);
        let mut end = ready;
        for carrier in graph.carriers_of(transfer) {
            let lane = carrier.route;
            let begin = clock.later(free_at[lane.index()], ready);
            let own = clock.after(begin, lane, carrier.chunk_count)?;
            free_at[lane.index()] = own;
            end = clock.later(end, own);
        }
        ends.push(end);
    }
    ends.into_iter().reduce(|a, b| clock.later(a, b))
}
