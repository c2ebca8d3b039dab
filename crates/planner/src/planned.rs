//! A finished plan: everything that is known of it.

use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;

use canopy_faults::Loss;
use canopy_plan::{PlanFile, Target};
use canopy_schedule::{Bound, CollectiveKind, Schedule, Verdict};
use canopy_synth::ProvenTime;
use canopy_topology::{Rank, Rate, Ratio, Slot};

use crate::key::{PlanKey, ScheduleKey, TopologyKey};

/// A plan that every check has accepted, with its files.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What it is known by.
    pub key: PlanKey,
    /// The network that it was planned on, its schedule, and what is proven of them, in the caller's labels.
    pub plan: PlanFile,
    /// Hashes of the network.
    pub topology_key: TopologyKey,
    /// What the checker says.
    pub verdict: Verdict,
    /// Achieved ÷ bound.
    pub optimality: Ratio,
    /// What is proven of it beside its rate.
    pub proofs: Proofs,
    /// The files that were asked for, in that order.
    pub files: Files,
    /// What everybody who uses it should know.
    pub warnings: Vec<Warning>,
    /// Expression of the family of the network, where its boxes were taken for a hint.
    pub family: Option<String>,
    /// By rank: which device it is; none: nobody says.
    pub rank_map: Option<Vec<Slot>>,
    /// What the network is the rest of; none: it is sound, as far as the request says.
    pub puncture: Option<Arc<Puncture>>,
    /// What was taken from the schedules of shapes or put there, in order.
    pub schedules: Vec<ScheduleKey>,
    /// What was left out of the choice by a fault of the planner's own.
    pub rejected: Vec<Rejection>,
    /// The plan of the sound network whose schedule it was made of.
    pub repaired_from: Option<PlanKey>,
    /// What is said of it and the others that it was planned in common with.
    pub joint: Option<JointSummary>,
    /// How long its stages took.
    pub timings: Timings,
    /// Milliseconds that all of it took.
    pub wall_ms: f64,
    /// Whether it was made from what was known, without a search.
    pub is_recalled: bool,
}

impl Planned {
    /// The best that any plan can reach, with its proof.
    pub const fn bound(&self) -> &Bound {
        &self.plan.bound
    }

    /// What is sent when and where.
    pub const fn schedule(&self) -> &Schedule {
        &self.plan.schedule
    }

    /// What it reaches.
    pub const fn achieved(&self) -> &Rate {
        &self.plan.achieved
    }

    /// Its collective.
    pub const fn kind(&self) -> CollectiveKind {
        self.plan.schedule.collective.kind()
    }
}

/// What is proven of a plan beside its rate.
#[derive(Clone, Debug, Default)]
pub struct Proofs {
    /// As of [`Synthesized::choice_bound`](canopy_synth::Synthesized::choice_bound).
    pub choice_bound: Option<Rate>,
    /// As of [`Synthesized::time_proof`](canopy_synth::Synthesized::time_proof).
    pub time_proof: Option<ProvenTime>,
}

/// Finished files, and what using them demands.
#[derive(Clone, Debug)]
pub struct Files {
    /// The files.
    pub files: Vec<File>,
    /// What was noticed when they were made.
    pub(crate) warnings: Vec<Warning>,
    /// Smallest size in bytes at which every file may be used.
    pub size_bytes_min: u64,
    /// Greatest size in bytes at which every file may be used, inclusive.
    pub size_bytes_max: u64,
    /// Elements of a message must be a multiple of this.
    pub alignment_elements: u64,
}

/// A finished file.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// What was asked for; with the number of instances that it really has.
    pub output: Target,
    /// Its bytes.
    pub content: Vec<u8>,
    /// Instances of the plan in it; 0 for formats without.
    pub instances: u32,
    /// Layers of its routes; 0 for formats without.
    pub layers: u32,
}

/// What somebody should know who uses a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What it is about, in capitals; never changed.
    pub code: Cow<'static, str>,
    /// For people.
    pub text: String,
}

impl Warning {
    /// One of a kind that is known.
    pub const fn new(code: &'static str, text: String) -> Self {
        Self { code: Cow::Borrowed(code), text }
    }
}

/// What faults have left of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Puncture {
    /// Id of the sound network.
    pub base: String,
    /// What is broken or slow in it.
    pub faults: Vec<Loss>,
    /// The ranks that are left, by their numbers in the sound network, rising.
    pub survivors: Vec<Rank>,
}

impl Puncture {
    /// The numbers of the ranks that are left, in the sound network.
    pub fn survivor_numbers(&self) -> Vec<u32> {
        self.survivors.iter().map(|rank| rank.number()).collect()
    }
}

/// Why an algorithm that a plan was compared with has no part in it, by a fault of the planner's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Its name.
    pub algorithm: &'static str,
    /// The check that refused its plan, or `broken`.
    pub reason: &'static str,
    /// What was wrong.
    pub problem: String,
}

/// What a plan says of itself and of those that it is made in common with.
#[derive(Clone, Debug, PartialEq)]
pub struct JointSummary {
    /// Its place among them.
    pub position: usize,
    /// Its ranks on the network of all.
    pub ranks: Vec<Rank>,
    /// Size of its message.
    pub size_bytes: NonZeroU64,
    /// Steps that it would take alone.
    pub steps_alone: u64,
    /// Seconds that it would take alone.
    pub seconds_alone: Ratio,
    /// Seconds that it cannot take less than.
    pub seconds_bound: Ratio,
    /// Number of all of them.
    pub collectives: usize,
    /// Steps of all together.
    pub steps: u64,
    /// Seconds that all together take.
    pub seconds: Ratio,
    /// Seconds of all, one after the other.
    pub seconds_one_by_one: Ratio,
    /// Seconds of the one that takes longest alone.
    pub seconds_longest_alone: Ratio,
}

/// How long the stages of a plan took, in milliseconds.
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
    /// Adds what another search took.
    pub(crate) fn add(&mut self, other: &Self) {
        self.synthesis_ms += other.synthesis_ms;
        self.check_ms += other.check_ms;
        self.lower_ms += other.lower_ms;
    }
}
