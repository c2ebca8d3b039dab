//! What a planner needs besides the request: a stop signal, an observer, a clock, and stored schedules.

use std::fmt;

use canopy_synth::{Never, Stop};
use canopy_topology::Rate;

use crate::error::PlanError;
use crate::key::ScheduleKey;
use crate::planned::Rejection;
use crate::schedules::Schedules;

/// What a planner needs besides the request. It never changes which plan is found, except that a search without stored
/// schedules keeps the caller's labels.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Polled now and then for a request to stop.
    pub stop: &'a dyn Stop,
    /// Receives progress.
    pub watch: &'a dyn Watch,
    /// Measures the stages.
    pub clock: &'a dyn Clock,
    /// Stored schedules.
    pub schedules: &'a dyn Schedules,
}

impl<'a> Context<'a> {
    /// A context without a stop signal, observer or clock, which stores schedules here.
    pub fn new(schedules: &'a dyn Schedules) -> Self {
        Self { stop: &Never, watch: &Unwatched, clock: &Untimed, schedules }
    }

    /// Stops the work between two stages if a stop is requested.
    pub(crate) fn ask(&self) -> Result<(), PlanError> {
        if self.stop.is_requested() { Err(PlanError::Stopped) } else { Ok(()) }
    }

    /// Milliseconds since a reading of the clock.
    pub(crate) fn since(&self, started_ms: f64) -> f64 {
        self.clock.now_ms() - started_ms
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("schedules", &self.schedules).finish_non_exhaustive()
    }
}

/// A monotonic clock.
pub trait Clock: Sync {
    /// Milliseconds since a fixed moment.
    fn now_ms(&self) -> f64;
}

impl<F: Fn() -> f64 + Sync> Clock for F {
    fn now_ms(&self) -> f64 {
        self()
    }
}

/// Observes the progress of a plan. Called often, so it must return quickly.
pub trait Watch: Sync {
    /// `done` of `total` steps of a stage are done; `total` is 0 if unknown.
    fn stage(&self, stage: &'static str, done: u64, total: u64);

    /// The bound is known.
    fn bound(&self, algbw: &Rate);

    /// A plan has been found and checked.
    fn incumbent(&self, algbw: &Rate);

    /// Something happened that does not affect the plan.
    fn note(&self, note: Note<'_>) {
        let _nobody_listens = note;
    }
}

/// Events that do not affect the plan.
#[derive(Clone, Copy, Debug)]
pub enum Note<'a> {
    /// A rival was left out of the comparison because of a bug of the planner.
    Rejected(&'a Rejection),
    /// A rival algorithm has no plan for this request, which is ordinary.
    NoRival {
        /// Its name.
        algorithm: &'static str,
        /// Why.
        reason: &'a PlanError,
    },
    /// A stored schedule is wrong and is computed again.
    WrongSchedule {
        /// Its key.
        key: &'a ScheduleKey,
        /// What is wrong with it.
        reason: &'a PlanError,
    },
    /// A schedule cannot be repaired for the remaining network.
    NotRepaired {
        /// Why.
        reason: &'a (dyn std::error::Error + 'static),
    },
}

/// No observer.
struct Unwatched;

impl Watch for Unwatched {
    fn stage(&self, _: &'static str, _: u64, _: u64) {}
    fn bound(&self, _: &Rate) {}
    fn incumbent(&self, _: &Rate) {}
}

/// No clock: every duration is 0.
struct Untimed;

impl Clock for Untimed {
    fn now_ms(&self) -> f64 {
        0.0
    }
}
