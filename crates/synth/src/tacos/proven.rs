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

use canopy_optimize::Stop;
use canopy_schedule::{Action, ChunkLayout, Collective, Shape, Shares};
use canopy_tacos::{
    Attempts, CopyTask, Demand, IlpEffort, Sends, TimedNetwork, deliver_best, delivery_bound, lower_bound,
    prove_copies, prove_deliveries,
};
use canopy_topology::Topology;

use super::times::Clock;
use super::unwound::{Patterns, Unwound};
use super::{ATTEMPTED_SENDS_MAX, ATTEMPTS_MAX, Asked, refused, sends};
use crate::algorithm::{Algorithm, TreeLimits};
use crate::error::SynthesisError;
use crate::parts::{phase_actions, require_room};
use crate::progress::{Progress, Stage};
use crate::reach::{ask, require_reach};

/// How near a schedule in time is to the fastest of as many chunks on its network, switches unwound as in it.
///
/// Both numbers count the same ticks; steps, where all links are alike and latencies are left out of account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeProof {
    /// When the schedule ends; of an allreduce, of its two phases together.
    pub end: u64,
    /// None ends before, phase by phase: proven.
    pub bound: u64,
}

impl TimeProof {
    /// Whether none is faster.
    pub const fn is_optimal(&self) -> bool {
        self.end <= self.bound
    }
}

/// Plans any collective in time, and proves how near to the fastest that is.
///
/// * **In.** Any network. Shares of any sizes. `size_bytes`: as for `tacos`. Chunks for each share as stated, else one.
/// * **Out.** Sends of one chunk each, in steps that begin together. The same for the same request: the effort is counted in
///   variables and conflicts.
/// * **Errors.** [`SynthesisError`]: disconnected, too many sends, stopped.
/// * **Cost.** That of `tacos`, and where it misses the bound, of [`prove_copies`]: some seconds for each horizon.
pub(crate) fn plan(
    topology: &Topology,
    (collective, shares): (Collective, &Shares),
    (limits, size_bytes): (TreeLimits, Option<NonZeroU64>),
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<(Shape, TimeProof), SynthesisError> {
    require_reach(topology, collective, shares)?;
    let actions = phase_actions(collective.kind()).unwrap_or(&[Action::Copy]);
    let asked = Asked { topology, collective, shares, algorithm: Algorithm::Tacos, actions, size_bytes, seed: 0 };
    let chunks = limits.chunks.map_or(1, NonZeroU64::get);
    require_room(asked.sends(chunks))?;
    let mut best: Option<Draft> = None;
    for patterns in Patterns::all(topology) {
        ask(stop)?;
        let draft = Draft::of(&asked, Unwound::of(topology, &patterns, stop)?, chunks, stop)?;
        if best.as_ref().is_none_or(|best| draft.is_faster_than(best)) {
            best = Some(draft);
        }
    }
    let best = best.ok_or_else(|| SynthesisError::Broken { what: "tacos: no way to unwind switches".to_owned() })?;
    progress.report(Stage::Routes, 1, 2);
    let proven = best.proven(chunks, stop)?;
    progress.report(Stage::Routes, 2, 2);
    Ok(proven)
}

/// A schedule of the greedy engines.
struct Draft {
    unwound: Unwound,
    clock: Clock,
    phases: Vec<Phase>,
}

/// A phase of it.
struct Phase {
    action: Action,
    /// For sums, the network turned around.
    network: TimedNetwork,
    errand: Errand,
    known: Sends,
    bound: u64,
}

/// What is to be brought where.
enum Errand {
    Copies(CopyTask),
    /// Of each, its chunk in the schedule, too.
    Deliveries(Vec<Demand>, Vec<u32>),
}

impl Draft {
    fn of(asked: &Asked<'_>, unwound: Unwound, chunks: u64, stop: &dyn Stop) -> Result<Self, SynthesisError> {
        let layout = ChunkLayout::new(asked.collective, asked.topology.rank_count(), chunks, asked.shares)?;
        let clock = Clock::for_chunks(&unwound, layout.size(), asked.size_bytes);
        let network = clock.network(&unwound)?;
        let phase = |&action: &Action| {
            let network = if action == Action::Reduce { network.transposed() } else { network.clone() };
            if phase_actions(asked.collective.kind()).is_some() {
                let task = asked.task(&layout)?;
                let bound = lower_bound(&network, &task).ok_or_else(not_connected)?;
                let known = asked.copied(&network, &task, stop)?;
                return Ok(Phase { action, network, errand: Errand::Copies(task), known, bound });
            }
            let (demands, numbers) = asked.demands(&layout)?;
            let bound = delivery_bound(&network, &demands).ok_or_else(not_connected)?;
            let count = (ATTEMPTED_SENDS_MAX / (demands.len() as u64).max(1)).clamp(1, ATTEMPTS_MAX);
            let attempts = Attempts { seed: 0, count: u32::try_from(count).expect("few"), bound };
            let known = deliver_best(&network, &demands, attempts, stop).map_err(refused)?.sends;
            Ok(Phase { action, network, errand: Errand::Deliveries(demands, numbers), known, bound })
        };
        let phases = asked.actions.iter().map(phase).collect::<Result<_, SynthesisError>>()?;
        Ok(Self { unwound, clock, phases })
    }

    /// Whether a share is through sooner.
    fn is_faster_than(&self, other: &Self) -> bool {
        let end = |draft: &Self| draft.phases.iter().map(|phase| u128::from(phase.known.end)).sum();
        self.clock.cross(end(self), &other.clock) < other.clock.cross(end(other), &self.clock)
    }

    /// The schedule that is proven to be best, or the best that is found, in steps.
    fn proven(self, chunks: u64, stop: &dyn Stop) -> Result<(Shape, TimeProof), SynthesisError> {
        let mut time = TimeProof { end: 0, bound: 0 };
        let mut phases = Vec::with_capacity(self.phases.len());
        for Phase { action, network, errand, known, bound } in self.phases {
            let known = (known, bound);
            let proven = match &errand {
                Errand::Copies(task) => prove_copies(&network, task, known, IlpEffort::STANDARD, stop)?,
                Errand::Deliveries(demands, _) => {
                    prove_deliveries(&network, demands, known, IlpEffort::STANDARD, stop)?
                }
            };
            time.end = time.end.saturating_add(proven.proof.end);
            time.bound = time.bound.saturating_add(proven.proof.bound);
            let mut phase = proven.sends;
            if action == Action::Reduce {
                phase = phase.reversed(&network);
            }
            if let Errand::Deliveries(_, numbers) = &errand {
                phase.sends.iter_mut().for_each(|sent| sent.chunk = numbers[sent.chunk as usize]);
            }
            phases.push((action, phase));
        }
        let steps = sends::write(chunks, &self.unwound, phases.into_iter())?;
        Ok((Shape::Steps(steps), time))
    }
}

fn not_connected() -> SynthesisError {
    SynthesisError::Broken { what: "tacos: an unwound network is not connected".to_owned() }
}
