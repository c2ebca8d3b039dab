//! Plans: cached, new, recalled, in the background, with short deadlines, and left before they end.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use canopy_proto::v1::operation::Result as Ended;
use canopy_proto::v1::{
    CancelOperationRequest, Collective, EvictPlansRequest, Operation, PlanResponse, PrefetchPlanRequest,
    WaitOperationRequest,
};

use crate::caller::{Caller, Unkept};
use crate::ledger::Kind;
use crate::requests::{NEW_COUNT, cached, new, request};

/// How long one wait for an operation takes at most; the next one follows.
const WAIT: Duration = Duration::from_secs(10);
/// Waits for one operation, after which it counts as stuck.
const WAITS_MAX: usize = 12;
/// Rest between recalls of the large plan, which take a worker and the network for themselves.
const BETWEEN_RECALLS: Duration = Duration::from_secs(1);

/// Asks for cached plans as fast as answers come.
pub(super) async fn cached_plans(mut caller: Caller) {
    let all = cached();
    while !caller.is_over() {
        let request = all[caller.random.below(all.len())].clone();
        // How each call ended is in the ledger.
        let _noted = match caller.random.below(8) {
            0 => caller.stream(Kind::StreamPlan, request).await.map(drop),
            1..=3 => {
                let call = caller.client.plan_metadata(request.into_plan(), None);
                caller.call(Kind::PlanCached, call).await.map(drop)
            }
            _ => caller.call(Kind::Lookup, caller.client.look_up_plan(request.into_look_up(), None)).await.map(drop),
        };
    }
}

/// Asks for the plans of a finite set in turn; more of them than the store holds.
pub(super) async fn new_plans(mut caller: Caller) {
    while !caller.is_over() {
        let request = new(caller.random.below(NEW_COUNT));
        let _noted = caller.call(Kind::PlanNew, caller.client.plan_metadata(request.into_plan(), None)).await;
    }
}

/// Removes a large plan and asks for it again, which its kept schedule answers, and reads all of its files.
pub(super) async fn recalls(mut caller: Caller, network: String) {
    let wanted = request(&network, Collective::AllToAll);
    while !caller.is_over() {
        if let Ok(reply) = caller.stream(Kind::Recall, wanted.clone()).await {
            evict(&mut caller, &reply).await;
        }
        caller.pause(BETWEEN_RECALLS).await;
    }
}

async fn evict(caller: &mut Caller, reply: &PlanResponse) {
    let names = reply.plan.iter().map(|plan| plan.name.clone()).collect();
    let asked = EvictPlansRequest { names, request_id: caller.request_id(), ..EvictPlansRequest::default() };
    let _noted = caller.call(Kind::Evict, caller.client.evict_plans(asked, None)).await;
}

/// How operations ended that were started without a caller to wait for them.
#[derive(Default)]
pub(crate) struct Operations(Mutex<Counts>);

/// Numbers of operations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) acknowledged: u64,
    pub(crate) succeeded: u64,
    /// Failed with a reason that the load provokes.
    pub(crate) cancelled: u64,
    /// Ended, and replaced by later ones before this program looked.
    pub(crate) forgotten: u64,
    /// Not done after [`WAITS_MAX`] waits, or failed for another reason; with what is known of them.
    pub(crate) bad: Vec<String>,
}

impl Operations {
    fn note(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn counts(&self) -> Counts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Starts jobs in the background, cancels some, and waits for all.
pub(super) async fn prefetches(mut caller: Caller, operations: &Operations) {
    while !caller.is_over() {
        let spec = new(caller.random.below(NEW_COUNT));
        let request = PrefetchPlanRequest { request_id: caller.request_id(), ..spec.into_prefetch() };
        let call = caller.client.prefetch_plan(request, None);
        let Ok(operation) = caller.call(Kind::Prefetch, call).await else { continue };
        operations.note(|counts| counts.acknowledged += 1);
        if caller.random.below(8) == 0 {
            let asked = CancelOperationRequest { name: operation.name.clone(), request_id: caller.request_id() };
            let _noted = caller.call(Kind::CancelOperation, caller.client.cancel_operation(asked, None)).await;
        }
        let ended = wait(&caller, operation).await;
        operations.note(|counts| match ended {
            Ok(Some(operation)) => match operation.result {
                Some(Ended::Response(_)) => counts.succeeded += 1,
                Some(Ended::Error(error)) if canopy_wire::reason_of(&error) == "OPERATION_CANCELLED" => {
                    counts.cancelled += 1
                }
                result => counts.bad.push(format!("{}: {result:?}", operation.name)),
            },
            Ok(None) => counts.forgotten += 1,
            Err(problem) => counts.bad.push(problem),
        });
    }
}

/// Waits until an operation is done, also beyond the end of the load; `None` if it makes room for later ones.
async fn wait(caller: &Caller, mut operation: Operation) -> Result<Option<Operation>, String> {
    let name = operation.name.clone();
    for _ in 0..WAITS_MAX {
        if operation.done {
            return Ok(Some(operation));
        }
        let timeout = prost_types::Duration::try_from(WAIT).ok();
        let asked = WaitOperationRequest { name: name.clone(), timeout };
        match caller.call(Kind::WaitOperation, caller.client.wait_operation(asked, None)).await {
            Ok(answer) => operation = answer,
            Err(reason) if reason == "OPERATION_UNKNOWN" => return Ok(None),
            Err(reason) => return Err(format!("{name}: {reason}")),
        }
    }
    Err(format!("{name} is not done: {:?}", operation.metadata.map(|metadata| metadata.state())))
}

/// Leaves calls after milliseconds, and sends deadlines that most searches miss.
pub(super) async fn impatient(mut caller: Caller) {
    while !caller.is_over() {
        let request = new(caller.random.below(NEW_COUNT));
        let patience = Duration::from_millis(caller.random.between(1, 20) as u64);
        match caller.random.below(3) {
            0 => {
                let mut client = caller.client.clone();
                let call = async { client.plan(request.into_plan(), None, &mut Unkept).await };
                caller.call_and_leave(Kind::PlanNew, patience, call).await;
            }
            1 => {
                let call = caller.client.plan_metadata(request.into_plan(), None);
                caller.call_and_leave(Kind::PlanNew, patience, call).await;
            }
            _ => {
                let call = caller.client.plan_metadata(request.into_plan(), Some(patience));
                let _noted = caller.call(Kind::ShortDeadline, call).await;
            }
        }
        caller.pause(Duration::from_millis(5)).await;
    }
}
