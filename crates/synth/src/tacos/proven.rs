//! `tacos-ilp`: schedules in time that are proven to be the fastest, on networks small enough.
//!
//! What the greedy engines find is the proof where it ends at the bound; else integer programs decide horizon after horizon
//! ([`prove_copies`], [`prove_deliveries`]). Of a network with switches, that holds for the way of unwinding them that is best by the
//! greedy engines, and of an allreduce, for its two phases, one after the other.
//!
//! Source: Won et al., section 3.

#[cfg(test)]
mod tests;

use std::num::NonZeroU64;

use canopy_schedule::Shape;
use canopy_tacos::{IlpEffort, TimeProof, prove_copies, prove_deliveries};

use super::planned::{Planned, TransferTask};
use super::{Asked, Method};
use crate::algorithm::{ProvenTime, Synthesized, Task};
use crate::error::SynthesisError;
use crate::progress::Stage;

/// Plans any collective in time, and proves how near to the fastest that is.
///
/// * **In.** Any network. Shares of any sizes. `size_bytes`: as for `tacos`. Chunks for each share as stated, else one.
/// * **Out.** Sends of one chunk each, in steps that begin together. The same for the same request: the effort is counted in
///   variables and conflicts.
/// * **Errors.** [`SynthesisError`]: disconnected, too many sends, stopped.
/// * **Cost.** That of `tacos`, and where it misses the bound, of [`prove_copies`]: some seconds for each horizon.
pub(super) fn planned(task: &Task<'_>) -> Result<Synthesized, SynthesisError> {
    let &Task { topology, request, stop, progress, .. } = task;
    let asked = Asked::new(topology, request, Method::Proven)?;
    let chunks = request.limits.chunks.map_or(1, NonZeroU64::get);
    let (way, best) = asked.best_way(chunks, stop)?;
    let best = asked.improve(&way, best, stop)?;
    progress.report(Stage::Routes, 1, 2);
    let Planned { timed, found, .. } = best;
    let searches = asked.searches(&way);
    let mut phases = Vec::with_capacity(asked.actions.len());
    // Where one search does for both phases, its proof does.
    let each = asked.actions.len() / searches.len();
    let mut proven_best = Vec::with_capacity(found.len());
    for (&search, found) in searches.iter().zip(found) {
        let (network, bound) = (timed.links.network(search), timed.links.bound(search));
        let proven = match &timed.transfers {
            TransferTask::Copies(task) => prove_copies(network, task, found, bound, IlpEffort::STANDARD, stop)?,
            TransferTask::Deliveries(demands, _) => {
                prove_deliveries(network, demands, found, bound, IlpEffort::STANDARD, stop)?
            }
        };
        phases.extend(std::iter::repeat_n(proven.proof, each));
        proven_best.push(proven.sends);
    }
    let sum = |of: fn(&TimeProof) -> u64| phases.iter().map(of).fold(0, u64::saturating_add);
    let total = TimeProof { end: sum(|phase| phase.end), bound: sum(|phase| phase.bound) };
    if phases.len() == 1 {
        phases.clear();
    }
    let is_of_one_unwinding = topology.nodes().len() > topology.rank_count() as usize;
    let time = ProvenTime { total, phases, is_of_one_unwinding };
    let steps = asked.written(&way, Planned::new(chunks, timed, proven_best, asked.actions.len()))?;
    progress.report(Stage::Routes, 2, 2);
    Ok(Synthesized { time_proof: Some(time), ..task.planned(Shape::Steps(steps)) })
}
