//! Finished plans.

use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;

use canopy_faults::Loss;
use canopy_plan::{PlanFile, Target};
use canopy_schedule::{Bound, CollectiveKind, Schedule, Verdict};
use canopy_synth::ProvenTime;
use canopy_topology::{Rank, Rate, Ratio, Slot};

use crate::key::{PlanKey, ScheduleKey, TopologyKey};

/// A plan that has passed every check, with its files.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Its key.
    pub key: PlanKey,
    /// Its network, its schedule, and what is proven of them, in the caller's labels.
    pub plan: PlanFile,
    /// Hashes of the network.
    pub topology_key: TopologyKey,
    /// The checker's verdict.
    pub verdict: Verdict,
    /// Whether each link carries anything; `None` where the schedule is to be asked.
    pub links_used: Option<Vec<bool>>,
    /// Achieved ÷ bound.
    pub optimality: Ratio,
    /// The bound as of [`bound_with_nvls`](crate::bound_with_nvls).
    pub with_nvls: Option<Rate>,
    /// Proofs besides its rate.
    pub proofs: Proofs,
    /// The requested files, in order.
    pub files: Files,
    /// Warnings for its users.
    pub warnings: Vec<Warning>,
    /// Generator expression of the network's family, if the family's boxes served as a hint.
    pub family: Option<String>,
    /// The device of each rank; `None` if unknown.
    pub rank_map: Option<Vec<Slot>>,
    /// The healthy network and its faults; `None` if the request states no faults.
    pub puncture: Option<Arc<Puncture>>,
    /// Keys of stored schedules that were read or written, in order.
    pub schedules: Vec<ScheduleKey>,
    /// Rivals that were left out because of a bug of the planner.
    pub rejected: Vec<Rejection>,
    /// The plan of the healthy network whose schedule was repaired.
    pub repaired_from: Option<PlanKey>,
    /// Its part in a joint schedule.
    pub joint: Option<JointSummary>,
    /// Durations of its stages.
    pub timings: Timings,
    /// Total time in milliseconds.
    pub wall_ms: f64,
    /// Whether it was made without a search.
    pub is_recalled: bool,
}

impl Planned {
    /// The best rate that any plan can reach, with its proof.
    pub const fn bound(&self) -> &Bound {
        &self.plan.bound
    }

    /// The schedule.
    pub const fn schedule(&self) -> &Schedule {
        &self.plan.schedule
    }

    /// The rate it reaches.
    pub const fn achieved(&self) -> &Rate {
        &self.plan.achieved
    }

    /// Its collective.
    pub const fn kind(&self) -> CollectiveKind {
        self.plan.schedule.collective.kind()
    }
}

/// Proofs about a plan besides its rate.
#[derive(Clone, Debug, Default)]
pub struct Proofs {
    /// As of [`Synthesized::choice_bound`](canopy_synth::Synthesized::choice_bound).
    pub choice_bound: Option<Rate>,
    /// As of [`Synthesized::time_proof`](canopy_synth::Synthesized::time_proof).
    pub time_proof: Option<ProvenTime>,
}

/// Finished files, and the conditions of their use.
#[derive(Clone, Debug)]
pub struct Files {
    /// The files.
    pub files: Vec<File>,
    /// Warnings from making them.
    pub(crate) warnings: Vec<Warning>,
    /// Smallest size in bytes that every file serves.
    pub size_bytes_min: u64,
    /// Largest size in bytes that every file serves, inclusive.
    pub size_bytes_max: u64,
    /// Elements of a message must be a multiple of this.
    pub alignment_elements: u64,
}

/// A finished file.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// The requested target, with the actual number of instances.
    pub output: Target,
    /// Its content.
    pub content: Vec<u8>,
    /// Instances of the plan in it; 0 for formats without.
    pub instances: u32,
    /// Layers of its routes; 0 for formats without.
    pub layers: u32,
}

/// A warning for the users of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Stable code in capitals.
    pub code: Cow<'static, str>,
    /// Text for people.
    pub text: String,
}

impl Warning {
    /// A warning with a known code.
    pub const fn new(code: &'static str, text: String) -> Self {
        Self { code: Cow::Borrowed(code), text }
    }
}

/// A network with faults.
#[derive(Clone, Debug, PartialEq)]
pub struct Puncture {
    /// Id of the healthy network.
    pub base: String,
    /// Its broken or slow elements.
    pub faults: Vec<Loss>,
    /// The surviving ranks, by their ranks in the healthy network, ascending.
    pub survivors: Vec<Rank>,
}

impl Puncture {
    /// The surviving ranks, by their ranks in the healthy network.
    pub fn survivor_numbers(&self) -> Vec<u32> {
        self.survivors.iter().map(|rank| rank.number()).collect()
    }
}

/// A rival that was left out of a comparison because of a bug of the planner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Its name.
    pub algorithm: &'static str,
    /// The check that its plan failed, or `broken`.
    pub reason: &'static str,
    /// What was wrong.
    pub problem: String,
}

/// A plan's part in a joint schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct JointSummary {
    /// Its index among the joint plans.
    pub position: usize,
    /// Its ranks in the common network.
    pub ranks: Vec<Rank>,
    /// Size of its message.
    pub size_bytes: NonZeroU64,
    /// Steps that it takes alone.
    pub steps_alone: u64,
    /// Seconds that it takes alone.
    pub seconds_alone: Ratio,
    /// Lower bound on its time alone, in seconds.
    pub seconds_bound: Ratio,
    /// Number of joint collectives.
    pub collectives: usize,
    /// Steps of the joint schedule.
    pub steps: u64,
    /// Time of the joint schedule in seconds.
    pub seconds: Ratio,
    /// Time of all, one after the other, in seconds.
    pub seconds_one_by_one: Ratio,
    /// Time of the one that takes longest alone, in seconds.
    pub seconds_longest_alone: Ratio,
}

/// Durations of the stages of a plan, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timings {
    /// The search for the bound, with its proof.
    pub bound_ms: f64,
    /// The search for schedules.
    pub synthesis_ms: f64,
    /// The checker.
    pub check_ms: f64,
    /// Writing files, reading them back, proofs and emulators.
    pub lower_ms: f64,
}

impl Timings {
    /// Adds the durations of another search.
    pub(crate) fn add(&mut self, other: &Self) {
        self.synthesis_ms += other.synthesis_ms;
        self.check_ms += other.check_ms;
        self.lower_ms += other.lower_ms;
    }
}
