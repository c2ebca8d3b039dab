//! Tasks of synthesizers, and their answers.

use canopy_optimize::Stop;
use canopy_schedule::{FormChoice, Schedule, Shape};
use canopy_tacos::TimeProof;
use canopy_topology::{Rate, Topology};

use super::{Algorithm, SynthesisRequest};
use crate::found::Found;
use crate::progress::Progress;

/// A task: the network, the request, the algorithm, and callbacks for stopping and progress.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "callbacks have no debug output")]
pub struct Task<'a> {
    /// The network.
    pub topology: &'a Topology,
    /// The request.
    pub request: &'a SynthesisRequest,
    /// The algorithm that plans; it differs from the request's if that leaves the choice.
    pub algorithm: Algorithm,
    /// What the bound of this request on this network was found with, if it is known.
    pub known: Option<&'a Found>,
    /// Polled regularly.
    pub stop: &'a dyn Stop,
    /// Receives every stage.
    pub progress: &'a dyn Progress,
}

impl Task<'_> {
    /// The task with another algorithm.
    #[must_use]
    pub const fn by(self, algorithm: Algorithm) -> Self {
        Self { algorithm, ..self }
    }

    /// A schedule of this shape without further facts.
    pub fn planned(&self, shape: Shape) -> Synthesized {
        let SynthesisRequest { collective, ref shares, .. } = *self.request;
        let (algorithm, shares) = (self.algorithm.name().to_owned(), shares.clone());
        let schedule = Schedule { collective, algorithm, shares, shape };
        Synthesized { schedule, form: None, choice_bound: None, time_proof: None }
    }
}

/// A schedule with facts about its synthesis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synthesized {
    /// As of [`synthesize`](crate::synthesize()).
    pub schedule: Schedule,
    /// The form of an allreduce of trees; `None` otherwise.
    pub form: Option<FormChoice>,
    /// The greatest algbw of any choice among the paths that those of the schedule were chosen from, one for each pair of
    /// ranks, in bytes per second. None where no such choice was made, and where prices of links prove nothing of it.
    pub choice_bound: Option<Rate>,
    /// How near to the fastest its time is, if that was proven. Ticks are steps where all links are alike and latencies
    /// are left out of account.
    pub time_proof: Option<ProvenTime>,
}

/// Proven bounds on the time among schedules with equally many chunks, for messages of the stated size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenTime {
    /// Of all phases, one after the other.
    pub total: TimeProof,
    /// Of an allreduce, each phase by itself: sums, then copies. Nothing is proven of schedules in which phases overlap. Empty where there is one
    /// phase only.
    pub phases: Vec<TimeProof>,
    /// Whether the network has switches: then only schedules on the links are meant into which these were unwound for this one.
    pub is_of_one_unwinding: bool,
}
