//! The description of a job.

use std::sync::Arc;

use bytes::Bytes;
use canopy_planner::{Puncture, RequestKey, TenantName, Warning};
use canopy_schedule::CollectiveKind;
use canopy_service::{NOT_STORED, not_stored};
use canopy_wire::Priority;

use super::{Cache, Delivery, Job, JobState, Status, Timings};
use crate::failure::PlanFailure;

/// A job as operators see it.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) name: String,
    pub(crate) request: RequestKey,
    pub(crate) state: State,
    pub(crate) priority: Priority,
    pub(crate) detached: bool,
    pub(crate) waiters: usize,
    pub(crate) kind: CollectiveKind,
    pub(crate) root: Option<u32>,
    /// None: it has ended.
    pub(crate) progress: Option<Status>,
    /// In milliseconds since 1970 UTC.
    pub(crate) created_ms: u64,
    pub(crate) ended_ms: Option<u64>,
    pub(crate) tenant: Option<TenantName>,
    /// The tenant whose call began it, empty for none; none for what the server does by itself.
    pub(crate) caller: Option<String>,
    /// None: it has not ended.
    pub(crate) result: Option<Result<Made, Arc<PlanFailure>>>,
}

/// Where an operation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Queued,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

impl State {
    /// Every state's name.
    pub(crate) const NAMES: &'static [&'static str] = &["queued", "running", "succeeded", "failed", "cancelled"];

    /// The name used in text.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A plan that was made, without its files.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    /// The plan as it is sent.
    pub(crate) plan: Bytes,
    pub(crate) cache: Cache,
    pub(crate) timings: Timings,
    /// Those of the job, then those of the plan.
    pub(crate) warnings: Vec<Warning>,
    pub(crate) puncture: Option<Arc<Puncture>>,
}

impl Made {
    /// One that has not been read from where servers share it.
    pub(crate) fn elsewhere() -> Self {
        let (cache, timings) = (Cache::Joined, Timings::default());
        Self { plan: Bytes::new(), cache, timings, warnings: Vec::new(), puncture: None }
    }
}

/// The name of an operation.
pub(crate) fn operation_name(request: &RequestKey, number: u64) -> String {
    format!("operations/{:.16}-{number}", request.to_string())
}

impl Operation {
    /// Whether it ended because its server does.
    pub(crate) fn is_drained(&self) -> bool {
        matches!(&self.result, Some(Err(failure)) if matches!(**failure, PlanFailure::Draining))
    }

    /// Whose it is alone; empty: everybody's.
    pub(crate) fn owner(&self) -> &str {
        self.tenant.as_ref().map_or("", TenantName::as_str)
    }

    /// Bytes that it holds in memory, roughly: certificates of large networks are long.
    pub(crate) fn weight_bytes(&self) -> usize {
        let result = match &self.result {
            Some(Ok(made)) => {
                let warnings = made.warnings.iter().map(|warning| size_of_val(warning) + warning.text.len());
                let puncture = made.puncture.as_ref().map_or(0, |puncture| size_of_val(puncture.survivors.as_slice()));
                made.plan.len() + warnings.sum::<usize>() + puncture
            }
            Some(Err(failure)) => failure.to_string().len(),
            None => 0,
        };
        size_of::<Self>() + result
    }
}

impl Job {
    /// The operation that this job is.
    pub(crate) fn describe(&self) -> Operation {
        // The state last: a job that has ended here has its end in its ties, too.
        let ties = self.ties.lock();
        let (phase, priority, detached, waiters) = (ties.phase, ties.priority, ties.detached, ties.waiters);
        let ended_unix_ms = ties.ended_unix_ms;
        drop(ties);
        let (state, progress, result) = match self.state() {
            JobState::Working(status) if phase.runs() => (State::Running, Some(status), None),
            JobState::Working(status) => (State::Queued, Some(status), None),
            JobState::Done(Ok(delivery)) => (State::Succeeded, None, Some(Ok(delivery.made()))),
            JobState::Done(Err(failure)) => {
                let state = if failure.is_cancellation() { State::Cancelled } else { State::Failed };
                (state, None, Some(Err(failure)))
            }
        };
        Operation {
            name: self.operation(),
            request: self.key,
            state,
            priority,
            detached,
            waiters,
            kind: self.order.kind,
            root: self.order.root,
            progress,
            created_ms: self.arrived_unix_ms,
            ended_ms: ended_unix_ms.filter(|_| result.is_some()),
            tenant: self.order.tenant.clone(),
            caller: self.bill.as_ref().map(|bill| bill.tenant().to_owned()),
            result,
        }
    }
}

impl Delivery {
    /// Whether the plan was stored, or was there.
    pub(crate) fn is_stored(&self) -> bool {
        self.warnings.iter().all(|warning| warning.code != NOT_STORED)
    }

    /// The plan could not be stored.
    pub(crate) fn note_not_stored(&mut self) {
        self.warnings.push(not_stored());
    }

    /// The plan without its files, and what goes with it.
    pub(crate) fn made(&self) -> Made {
        Made {
            plan: self.plan.header_sent(),
            cache: self.cache,
            timings: self.timings,
            warnings: self.all_warnings(),
            puncture: self.puncture.clone(),
        }
    }

    /// Those of the job, then those of the plan.
    pub(crate) fn all_warnings(&self) -> Vec<Warning> {
        self.warnings.iter().chain(&self.plan.warnings).cloned().collect()
    }
}
