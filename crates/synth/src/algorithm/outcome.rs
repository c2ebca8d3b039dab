//! What a synthesizer is given, and what it answers.

use canopy_optimize::Stop;
use canopy_schedule::{FormChoice, Schedule, Shape};
use canopy_tacos::TimeProof;
use canopy_topology::{Rate, Topology};

use super::{Algorithm, SynthesisRequest};
use crate::concurrent::AllToAllFlow;
use crate::progress::Progress;

/// What is to be planned, by which algorithm, and whom to ask and to tell meanwhile.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "of what is asked and told nothing is known")]
pub struct Task<'a> {
    /// The network.
    pub topology: &'a Topology,
    /// What is asked of it.
    pub request: &'a SynthesisRequest,
    /// The one that plans: another than the request's where that leaves the choice.
    pub algorithm: Algorithm,
    /// The flow of this very all-to-all on this network, where one is there already.
    pub known: Option<&'a AllToAllFlow>,
    /// Asked regularly.
    pub stop: &'a dyn Stop,
    /// Told about every stage.
    pub progress: &'a dyn Progress,
}

impl Task<'_> {
    /// The same by another algorithm.
    #[must_use]
    pub const fn by(self, algorithm: Algorithm) -> Self {
        Self { algorithm, ..self }
    }

    /// A schedule of this shape, of which there is nothing else to say.
    pub fn planned(&self, shape: Shape) -> Synthesized {
        let SynthesisRequest { collective, ref shares, .. } = *self.request;
        let (algorithm, shares) = (self.algorithm.name().to_owned(), shares.clone());
        let schedule = Schedule { collective, algorithm, shares, shape };
        Synthesized { schedule, form: None, choice_bound: None, time_proof: None }
    }
}

/// A schedule with the reasons for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synthesized {
    /// As of [`synthesize`](crate::synthesize()).
    pub schedule: Schedule,
    /// The form of an allreduce made of trees; none for everything else.
    pub form: Option<FormChoice>,
    /// The greatest algbw of any choice among the paths that those of the schedule were chosen from, one for each pair of
    /// ranks, in bytes per second. None where no such choice was made, and where prices of links prove nothing of it.
    pub choice_bound: Option<Rate>,
    /// How near to the fastest its time is, where that was proven. Ticks are steps where all links are alike and latencies are left
    /// out of account.
    pub time_proof: Option<ProvenTime>,
}

/// What is proven of the time of a schedule, of all schedules of as many chunks, for messages of the size that was stated.
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
