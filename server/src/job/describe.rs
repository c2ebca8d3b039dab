//! What a job says of itself on the wire.

use canopy_proto::v1;

use super::{Delivery, Job, JobState, Status};
use crate::clock::timestamp;
use crate::pipeline::collective_on_the_wire;
use crate::status::to_operation_error;
use crate::store::plan_header;

impl Job {
    /// The operation that this job is.
    pub(crate) fn describe(&self) -> v1::Operation {
        // The state last: a job that has ended here has its end in its ties, too.
        let ties = self.ties();
        let (phase, priority, detached, waiters) = (ties.phase, ties.priority, ties.detached, ties.waiters);
        let ended_unix_ms = ties.ended_unix_ms;
        drop(ties);
        let (state, progress, result) = match self.state() {
            JobState::Working(status) if phase.runs() => (v1::OperationState::Running, Some(status.progress()), None),
            JobState::Working(status) => (v1::OperationState::Queued, Some(status.progress()), None),
            JobState::Done(Ok(delivery)) => {
                let response = v1::operation::Result::Response(delivery.reply());
                (v1::OperationState::Succeeded, None, Some(response))
            }
            JobState::Done(Err(failure)) => {
                let state = match failure.is_cancellation() {
                    true => v1::OperationState::Cancelled,
                    false => v1::OperationState::Failed,
                };
                (state, None, Some(v1::operation::Result::Error(to_operation_error(&failure))))
            }
        };
        let metadata = v1::OperationMetadata {
            request_key: self.key.to_string(),
            state: state.into(),
            priority: priority.on_the_wire().into(),
            detached,
            waiters: u32::try_from(waiters).unwrap_or(u32::MAX),
            collective: Some(v1::CollectiveSpec {
                kind: collective_on_the_wire(self.order.kind).into(),
                root: self.order.root,
            }),
            progress,
            create_time: Some(timestamp(self.arrived_unix_ms)),
            end_time: ended_unix_ms.filter(|_| result.is_some()).map(timestamp),
            tenant: self.order.tenant.as_ref().map(|tenant| tenant.as_str().to_owned()).unwrap_or_default(),
        };
        v1::Operation { name: self.operation(), metadata: Some(metadata), done: result.is_some(), result }
    }
}

impl Status {
    /// The status on the wire.
    pub(crate) fn progress(&self) -> v1::Progress {
        v1::Progress {
            stage: self.stage.to_owned(),
            done: self.done,
            total: self.total,
            bound: self.bound.clone(),
            incumbent: self.incumbent.clone(),
        }
    }
}

impl Delivery {
    /// The plan without content, and what goes with it.
    fn reply(&self) -> v1::PlanReply {
        v1::PlanReply { plan: Some(plan_header(&self.plan.plan, 0)), ..self.besides() }
    }

    /// What goes with the plan.
    pub(crate) fn besides(&self) -> v1::PlanReply {
        let mut warnings = self.warnings.clone();
        warnings.extend_from_slice(&self.plan.warnings);
        let (cache, timings) = (self.cache.into(), Some(self.timings));
        let puncture = self.puncture.as_deref().cloned();
        v1::PlanReply { plan: None, cache, timings, warnings, fallback: None, puncture }
    }
}
