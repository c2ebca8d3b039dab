//! Descriptions of jobs and their plans on the wire.

use canopy_planner::{Puncture, Warning};
use canopy_proto::v1;
use canopy_wire as wire;
use canopy_wire::duration_of_ms;
use canopy_wire::fraction;
use canopy_wire::{collective_on_the_wire, timestamp};
use prost::Message as _;

use crate::jobs::job::{Cache, Delivery, Made, Operation, State, Status, Timings};
use crate::rpc::shared::status::to_operation_error;

/// A job as operators see it.
pub(in crate::rpc) fn operation(operation: &Operation) -> v1::Operation {
    let metadata = v1::OperationMetadata {
        request_key: operation.request.to_string(),
        state: state(operation.state).into(),
        priority: operation.priority.number(),
        detached: operation.detached,
        waiters: u32::try_from(operation.waiters).unwrap_or(u32::MAX),
        collective: Some(v1::CollectiveSpec {
            kind: collective_on_the_wire(operation.kind).into(),
            root: operation.root,
        }),
        progress: operation.progress.as_ref().map(progress),
        create_time: Some(timestamp(operation.created_ms)),
        end_time: operation.ended_ms.map(timestamp),
        tenant: operation.owner().to_owned(),
    };
    let result = operation.result.as_ref().map(|result| match result {
        Ok(made) => v1::operation::Result::Response(reply(made)),
        Err(failure) => v1::operation::Result::Error(to_operation_error(failure)),
    });
    v1::Operation { name: operation.name.clone(), metadata: Some(metadata), done: result.is_some(), result }
}

const fn state(state: State) -> v1::OperationState {
    match state {
        State::Queued => v1::OperationState::Queued,
        State::Running => v1::OperationState::Running,
        State::Succeeded => v1::OperationState::Succeeded,
        State::Failed => v1::OperationState::Failed,
        State::Cancelled => v1::OperationState::Cancelled,
    }
}

/// How far a job is.
pub(in crate::rpc) fn progress(status: &Status) -> v1::Progress {
    v1::Progress {
        stage: status.stage.to_string(),
        done: status.done,
        total: status.total,
        bound: fraction(&status.bound),
        incumbent: fraction(&status.incumbent),
    }
}

/// What goes with a plan.
pub(in crate::rpc) fn besides(delivery: &Delivery) -> v1::PlanResponse {
    let Delivery { cache, timings, puncture, .. } = delivery;
    reply_of(*cache, timings, &delivery.all_warnings(), puncture.as_deref())
}

fn reply(Made { plan, cache, timings, warnings, puncture }: &Made) -> v1::PlanResponse {
    // It was encoded here.
    let plan = v1::Plan::decode(plan.clone()).ok();
    v1::PlanResponse { plan, ..reply_of(*cache, timings, warnings, puncture.as_deref()) }
}

fn reply_of(cache: Cache, timings: &Timings, warnings: &[Warning], puncture: Option<&Puncture>) -> v1::PlanResponse {
    let cache = match cache {
        Cache::Hit => v1::CacheOutcome::Hit,
        Cache::Miss => v1::CacheOutcome::Miss,
        Cache::Joined => v1::CacheOutcome::Joined,
    };
    v1::PlanResponse {
        plan: None,
        cache: cache.into(),
        timings: Some(v1::Timings {
            queue: duration_of_ms(timings.queue_ms),
            canonical: duration_of_ms(timings.canonical_ms),
            ..wire::timings(timings.planned)
        }),
        warnings: wire::warnings(warnings),
        fallback: None,
        puncture: puncture.map(wire::puncture),
    }
}
