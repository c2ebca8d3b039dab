//! `canopy.v1.Operations`: the jobs of the queue.

use std::time::Duration;

use canopy_proto::v1::operations_server::Operations;
use canopy_proto::v1::{
    CancelOperationRequest, GetOperationRequest, ListOperationsReply, ListOperationsRequest,
    Operation as OperationMessage, WaitOperationRequest,
};
use tokio::time;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use super::call_pool::{CallPool, log, shown};
use super::describe;
use super::fields::{COLLECTIVES, Field, Kind};
use super::listing::{ListRequest, Listing};
use crate::call;
use crate::clock;
use crate::failure::CallFailure;
use crate::jobs::job::{JobState, Operation, State};
use crate::jobs::queue::{Queue, WaitedOperation};
use crate::rpc::deadline::DeadlinePolicy;
use crate::rpc::status::call_status;
use crate::store::Records;
use crate::tenant::Viewer;

const PRIORITIES: &[&str] = &["prefetch", "interactive", "job-start", "repair"];

/// What operations are listed by.
const FIELDS: &[Field<Operation>] = &[
    Field { name: "name", kind: Kind::Text(|operation| operation.name.clone()) },
    Field { name: "state", kind: Kind::Word(State::NAMES, |operation| operation.state.name()) },
    Field { name: "priority", kind: Kind::Word(PRIORITIES, |operation| operation.priority.name()) },
    Field { name: "detached", kind: Kind::Flag(|operation| operation.detached) },
    Field { name: "done", kind: Kind::Flag(|operation| operation.result.is_some()) },
    Field { name: "collective", kind: Kind::Word(COLLECTIVES, |operation| operation.kind.name()) },
    Field { name: "created", kind: Kind::Time(|operation| operation.created_ms) },
];

/// The service.
#[derive(Clone)]
pub(crate) struct OperationsService {
    queue: Queue,
    pool: CallPool,
    deadlines: DeadlinePolicy,
}

impl OperationsService {
    pub(crate) const fn new(queue: Queue, pool: CallPool, deadlines: DeadlinePolicy) -> Self {
        Self { queue, pool, deadlines }
    }

    /// The operation of this name, unless it is another tenant's.
    fn find(&self, headers: &MetadataMap, name: &str) -> Result<WaitedOperation, CallFailure> {
        let viewer = Viewer::of(headers)?;
        let found = self.queue.operation(name).filter(|operation| viewer.sees(operation.tenant()));
        found.ok_or_else(|| CallFailure::OperationUnknown { name: shown(name) })
    }

    fn list(&self, headers: &MetadataMap, request: &ListOperationsRequest) -> Result<ListOperationsReply, CallFailure> {
        let ListOperationsRequest { page_size, page_token, filter } = request;
        let mut listing =
            Listing::new(FIELDS, &ListRequest { page_size: *page_size, page_token, filter, order_by: "" })?;
        let viewer = Viewer::of(headers)?;
        let is_seen = |operation: &Operation| viewer.sees(operation.owner());
        for (number, operation) in self.queue.operations().into_iter().filter(|(_, operation)| is_seen(operation)) {
            // Newest first.
            listing.show(operation, (u64::MAX - number).to_be_bytes().to_vec());
        }
        let page = listing.finish();
        Ok(ListOperationsReply {
            operations: page.items.iter().map(describe::operation).collect(),
            next_page_token: page.next_page_token,
        })
    }

    /// Waits at most so long for the end, and answers with what there is then.
    async fn wait(
        &self,
        headers: &MetadataMap,
        request: WaitOperationRequest,
        longest: Duration,
    ) -> Result<OperationMessage, CallFailure> {
        let wanted = match request.timeout {
            Some(timeout) => Duration::try_from(timeout).map_err(|_| CallFailure::Timeout)?,
            None => longest,
        };
        let mut operation = self.find(headers, &request.name)?;
        if let WaitedOperation::Live(_, state) = &mut operation {
            let ended = state.wait_for(|state| matches!(state, JobState::Done(_)));
            // Late or not: what there is then is the answer.
            let _late = time::timeout(wanted.min(longest), ended).await.is_err();
        }
        Ok(describe::operation(&operation.describe()))
    }
}

/// Logs a call and encodes its end.
fn answer<T>(
    method: &'static str,
    arrived: std::time::Instant,
    answer: Result<T, CallFailure>,
) -> Result<Response<T>, Status> {
    log(method, arrived, answer.as_ref().err());
    answer.map(Response::new).map_err(|failure| call_status(&failure))
}

/// Whether the caller may end a job. Where callers are told apart, it must act for the tenant whose call began the job.
fn require_own(viewer: &Viewer, found: &WaitedOperation, name: &str) -> Result<(), CallFailure> {
    match found {
        WaitedOperation::Live(job, _)
            if call::is_guarded() && job.bill.is_some() && !viewer.owns(Some(job.tenant())) =>
        {
            Err(CallFailure::NotOwner { what: format!("operation `{}`", shown(name)), owner: job.tenant().to_owned() })
        }
        WaitedOperation::Live(..) | WaitedOperation::Ended(_) => Ok(()),
    }
}

#[tonic::async_trait]
impl Operations for OperationsService {
    async fn get_operation(&self, request: Request<GetOperationRequest>) -> Result<Response<OperationMessage>, Status> {
        let arrived = clock::now();
        let found = self
            .find(request.metadata(), &request.get_ref().name)
            .map(|operation| describe::operation(&operation.describe()));
        answer("GetOperation", arrived, found)
    }

    async fn list_operations(
        &self,
        request: Request<ListOperationsRequest>,
    ) -> Result<Response<ListOperationsReply>, Status> {
        answer("ListOperations", clock::now(), self.list(request.metadata(), request.get_ref()))
    }

    async fn wait_operation(
        &self,
        request: Request<WaitOperationRequest>,
    ) -> Result<Response<OperationMessage>, Status> {
        let arrived = clock::now();
        let (headers, _, request) = request.into_parts();
        let longest = self.deadlines.apply(&headers).work;
        answer("WaitOperation", arrived, self.wait(&headers, request, longest).await)
    }

    async fn cancel_operation(
        &self,
        request: Request<CancelOperationRequest>,
    ) -> Result<Response<OperationMessage>, Status> {
        let (headers, _, request) = request.into_parts();
        let (this, name, caller) = (self.clone(), request.name.clone(), headers.clone());
        let cancel = move |_: &Records| {
            let found = this.find(&caller, &name)?;
            require_own(&Viewer::of(&caller)?, &found, &name)?;
            let cancelled =
                this.queue.cancel(&name).ok_or_else(|| CallFailure::OperationUnknown { name: shown(&name) })?;
            Ok(describe::operation(&cancelled))
        };
        call::concerns(&request.name);
        let call = (&headers, &*request.request_id, &request);
        self.pool.once("CancelOperation", call, cancel, || {}).await.map(Response::new)
    }
}
