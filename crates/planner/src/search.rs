//! From a request that has been read to a plan with its files, in four steps.
//!
//! | step | what it does | where |
//! |---|---|---|
//! | known | takes the plan that is kept for the shape, or finds the bound | `known` |
//! | searched | makes one plan within given limits, and has it checked | `attempt` |
//! | fitted | the same with its files; with fewer trees where a runtime has no room | `fitted` |
//! | compared | the fastest of several for small messages, where the choice is open | `compared` |
//!
//! A [`Case`] says what is planned and never changes; a [`Search`] is what has been found for it so far.

mod attempt;
mod compared;
mod fitted;
mod joint;
mod known;
mod labels;
mod rejections;
mod repair;

use std::sync::Arc;

use canopy_plan::PlanFile;
use canopy_schedule::{Bound, Certificate};
use canopy_synth::{Algorithm, Found, SumOptions};
use canopy_topology::{Topology, TopologyLimits};

pub(crate) use self::attempt::Attempt;
pub(crate) use self::compared::best;
pub(crate) use self::fitted::{Fitted, first_limits, that_fit};
pub(crate) use self::joint::{JointMade, Joints, prepared as joint_prepared};
pub(crate) use self::known::start;
pub(crate) use self::labels::Labels;
pub(crate) use self::rejections::Rejections;
pub(crate) use self::repair::Repair;
use crate::context::Context;
use crate::key::ScheduleKey;
use crate::planned::Timings;
use crate::prepared::Prepared;
use crate::request::Request;

/// What is planned, and how.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) request: &'a Request,
    pub(crate) prepared: &'a Prepared,
    pub(crate) context: Context<'a>,
    /// What a plan file that is read back may hold.
    pub(crate) limits: &'a TopologyLimits,
    /// Where its schedules come from.
    pub(crate) source: Source<'a>,
    /// How schedules are searched for: as asked for, or one of the algorithms among which that leaves the choice.
    pub(crate) algorithm: Algorithm,
    /// What is asked of the sums of an allreduce.
    pub(crate) sums: SumOptions,
    /// What is searched: the network in canonical order or as it was prepared, perhaps with the boxes of its family.
    pub(crate) network: &'a Topology,
    /// Keeps a schedule, beside what else is to be done.
    pub(crate) keep: &'a dyn Fn(ScheduleKey, Arc<PlanFile>),
}

/// Where the schedules of a case come from.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// They are kept in these labels, or searched for in them where that is allowed.
    Kept { labels: &'a Labels, may_search: bool },
    /// They are searched for in the caller's labels, and not kept.
    Searched,
    /// They are made of the one of the sound network.
    Repaired(&'a Repair),
    /// They are a part of a joint one.
    Joint(&'a JointMade),
}

/// What has been found for a case.
pub(crate) struct Search<'a> {
    pub(crate) case: Case<'a>,
    /// The plan within the request's own limits, in canonical labels, if it is known.
    known: Option<Arc<PlanFile>>,
    /// Proven, whatever plans reach.
    bound: Bound,
    /// Its certificate in the labels it was found with.
    certificate: Certificate,
    /// What the bound was found with on the network that is searched; the flow of an all-to-all, once there is one.
    found: Option<Found>,
    pub(crate) record: Record,
}

/// What was done on the way.
pub(crate) struct Record {
    /// Of all attempts together.
    pub(crate) timings: Timings,
    /// Whether anything was searched for.
    pub(crate) has_searched: bool,
    /// What was taken from the schedules of the shape or put there, in order.
    pub(crate) schedules: Vec<ScheduleKey>,
    /// What has no part in the plan by a fault of our own.
    pub(crate) rejections: Rejections,
}

impl Record {
    /// Nothing was done yet.
    pub(crate) const fn new() -> Self {
        Self {
            timings: Timings { bound_ms: 0.0, synthesis_ms: 0.0, check_ms: 0.0, lower_ms: 0.0 },
            has_searched: false,
            schedules: Vec::new(),
            rejections: Rejections::new(),
        }
    }
}

impl<'a> Case<'a> {
    /// The labels in which schedules are kept; none for what stays in the caller's.
    const fn labels(&self) -> Option<&'a Labels> {
        match self.source {
            Source::Kept { labels, .. } => Some(labels),
            Source::Searched | Source::Repaired(_) | Source::Joint(_) => None,
        }
    }
}

impl<'a> Search<'a> {
    /// A search for another plan of the same request by one of the algorithms that it leaves the choice among, in the caller's labels,
    /// where there may be another flow.
    fn by(&self, algorithm: Algorithm) -> Self {
        let network = &self.case.prepared.topology;
        Self {
            case: Case { algorithm, network, source: Source::Searched, ..self.case },
            known: None,
            bound: self.bound.clone(),
            certificate: self.certificate.clone(),
            found: None,
            record: Record::new(),
        }
    }

    /// Proven.
    pub(crate) const fn bound(&self) -> &Bound {
        &self.bound
    }

    /// Takes over what was done for a plan to compare with. It is made at once rather than searched for: a shape whose trees are known
    /// needs no search.
    fn take_over(&mut self, other: Record) {
        self.record.timings.add(&other.timings);
        self.record.rejections.append(other.rejections);
    }
}
