//! What a planner is given beside the request: who may stop it, who watches it, the time, and the schedules that are kept.

use std::fmt;

use canopy_synth::{Never, Stop};
use canopy_topology::Rate;

use crate::error::PlanError;
use crate::key::ScheduleKey;
use crate::planned::Rejection;
use crate::schedules::Schedules;

/// What a planner is given beside the request. Nothing of it changes which plan is found,
/// but that who keeps no schedules has one of a search in labels of their own.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Asked now and then whether to go on.
    pub stop: &'a dyn Stop,
    /// Is told how far the plan is.
    pub watch: &'a dyn Watch,
    /// Tells how long stages take.
    pub clock: &'a dyn Clock,
    /// Where schedules are looked for and kept.
    pub schedules: &'a dyn Schedules,
}

impl<'a> Context<'a> {
    /// Of somebody who waits for the plan, however long it takes, and keeps schedules here.
    pub fn new(schedules: &'a dyn Schedules) -> Self {
        Self { stop: &Never, watch: &Unwatched, clock: &Untimed, schedules }
    }

    /// Ends the work between two stages when nobody waits for it.
    pub(crate) fn ask(&self) -> Result<(), PlanError> {
        if self.stop.is_requested() { Err(PlanError::Stopped) } else { Ok(()) }
    }

    /// Milliseconds since a time of the clock.
    pub(crate) fn since(&self, started_ms: f64) -> f64 {
        self.clock.now_ms() - started_ms
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("schedules", &self.schedules).finish_non_exhaustive()
    }
}

/// A clock that never goes back.
pub trait Clock: Sync {
    /// Milliseconds since some moment, always the same.
    fn now_ms(&self) -> f64;
}

impl<F: Fn() -> f64 + Sync> Clock for F {
    fn now_ms(&self) -> f64 {
        self()
    }
}

/// Is told how far a plan is. Called often: answers quickly.
pub trait Watch: Sync {
    /// `done` of `total` steps of a stage are done; `total` is 0 while not known.
    fn stage(&self, stage: &'static str, done: u64, total: u64);

    /// The bound is known.
    fn bound(&self, algbw: &Rate);

    /// A plan has been found and checked.
    fn incumbent(&self, algbw: &Rate);

    /// Something happened that the plan does not suffer from.
    fn note(&self, note: Note<'_>) {
        let _nobody_listens = note;
    }
}

/// What happened beside the way to a plan.
#[derive(Clone, Copy, Debug)]
pub enum Note<'a> {
    /// A plan that others were compared with was left out by a fault of the planner's own.
    Rejected(&'a Rejection),
    /// An algorithm to compare with has no plan for this request, which is ordinary.
    NoRival {
        /// Its name.
        algorithm: &'static str,
        /// Why.
        reason: &'a PlanError,
    },
    /// A kept schedule is wrong, and is searched for again.
    WrongSchedule {
        /// Where it was kept.
        key: &'a ScheduleKey,
        /// What is wrong with it.
        reason: &'a PlanError,
    },
    /// A schedule cannot be made to fit what is left of its network.
    NotRepaired {
        /// Why.
        reason: &'a (dyn std::error::Error + 'static),
    },
}

/// Nobody who watches.
struct Unwatched;

impl Watch for Unwatched {
    fn stage(&self, _: &'static str, _: u64, _: u64) {}
    fn bound(&self, _: &Rate) {}
    fn incumbent(&self, _: &Rate) {}
}

/// No clock: nothing takes any time.
struct Untimed;

impl Clock for Untimed {
    fn now_ms(&self) -> f64 {
        0.0
    }
}
