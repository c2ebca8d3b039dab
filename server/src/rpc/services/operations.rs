//! `canopy.v1.Operations`: the jobs of the queue.

use std::sync::Arc;
use std::time::Duration;

use canopy_proto::v1::operations_server::Operations;
use canopy_proto::v1::{
    CancelOperationRequest, GetOperationRequest, ListOperationsRequest, ListOperationsResponse,
    Operation as OperationMessage, WaitOperationRequest,
};
use tokio::time;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use crate::call;
use crate::clock;
use crate::failure::{CallFailure, shown};
use crate::jobs::job::{JobState, Operation, State};
use crate::jobs::queue::WaitedOperation;
use crate::jobs::workers::Jobs;
use crate::rpc::shared::call_pool::{CallPool, log};
use crate::rpc::shared::deadline::DeadlinePolicy;
use crate::rpc::shared::describe;
use crate::rpc::shared::fields::{COLLECTIVES, Field, Kind};
use crate::rpc::shared::listing::{ListRequest, Listing};
use crate::rpc::shared::status::call_status;
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

/// Time between two looks at an operation of another server.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The service.
#[derive(Clone)]
pub(crate) struct OperationsService {
    jobs: Arc<Jobs>,
    pool: CallPool,
    deadlines: DeadlinePolicy,
}

impl OperationsService {
    pub(crate) const fn new(jobs: Arc<Jobs>, pool: CallPool, deadlines: DeadlinePolicy) -> Self {
        Self { jobs, pool, deadlines }
    }

    /// The operation of this name on this server or another one, unless it is another tenant's.
    async fn find(&self, headers: &MetadataMap, name: &str) -> Result<Operation, CallFailure> {
        let viewer = Viewer::of(headers)?;
        let here = self.jobs.queue.operation(name).map(|operation| operation.describe());
        let found = match here {
            // What a drain ends here goes on elsewhere.
            Some(operation) if self.jobs.table.is_none() || !operation.is_drained() => Some(operation),
            None if self.jobs.table.is_none() => None,
            Some(_) | None => {
                let (jobs, name) = (Arc::clone(&self.jobs), name.to_owned());
                self.pool.work(headers, move |_| Ok(jobs.operation_elsewhere(&name)?)).await?
            }
        };
        let found = found.filter(|operation| viewer.sees(operation.owner()));
        let is_shared = self.pool.is_shared();
        found.ok_or_else(|| CallFailure::no_operation(name, is_shared))
    }

    async fn list(
        &self,
        headers: &MetadataMap,
        request: &ListOperationsRequest,
    ) -> Result<ListOperationsResponse, CallFailure> {
        let ListOperationsRequest { page_size, page_token, filter, order_by } = request;
        let mut listing = Listing::new(FIELDS, &ListRequest { page_size: *page_size, page_token, filter, order_by })?;
        let viewer = Viewer::of(headers)?;
        let mut operations = self.jobs.queue.operations();
        if self.jobs.table.is_some() {
            let (jobs, here) = (Arc::clone(&self.jobs), operations.keys().copied().collect());
            operations.extend(self.pool.work(headers, move |_| Ok(jobs.operations_elsewhere(&here)?)).await?);
        }
        let is_seen = |operation: &Operation| viewer.sees(operation.owner());
        for (number, operation) in operations.into_iter().filter(|(_, operation)| is_seen(operation)) {
            // Newest first.
            listing.show(operation, (u64::MAX - number).to_be_bytes().to_vec());
        }
        let page = listing.finish();
        let mut listed = Vec::with_capacity(page.items.len());
        for operation in page.items {
            // Those of other servers are read only when they are shown.
            let is_whole = !matches!(&operation.result, Some(Ok(made)) if made.plan.is_empty());
            let shown =
                if is_whole { operation } else { self.find(headers, &operation.name).await.unwrap_or(operation) };
            listed.push(describe::operation(&shown));
        }
        let (next_page_token, total_size) = (page.next_page_token, page.total);
        Ok(ListOperationsResponse { operations: listed, next_page_token, total_size })
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
        let until = time::Instant::now() + wanted.min(longest);
        let mut operation = self.find(headers, &request.name).await?;
        if let Some(WaitedOperation::Live(job, mut state)) = self.jobs.queue.operation(&request.name) {
            let ended = state.wait_for(|state| matches!(state, JobState::Done(_)));
            // Late or not: what there is then is the answer.
            let _late = time::timeout_at(until, ended).await.is_err();
            operation = job.describe();
            if operation.is_drained() {
                operation = self.find(headers, &request.name).await?;
            }
        }
        while operation.result.is_none() && time::Instant::now() < until {
            time::sleep_until(until.min(time::Instant::now() + LOOK_INTERVAL)).await;
            operation = self.find(headers, &request.name).await?;
        }
        Ok(describe::operation(&operation))
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
fn require_own(viewer: &Viewer, found: &Operation) -> Result<(), CallFailure> {
    match &found.caller {
        Some(owner) if found.result.is_none() && call::is_guarded() && !viewer.owns(Some(owner)) => {
            Err(CallFailure::NotOwner { what: format!("operation `{}`", shown(&found.name)), owner: owner.clone() })
        }
        Some(_) | None => Ok(()),
    }
}

#[tonic::async_trait]
impl Operations for OperationsService {
    async fn get_operation(&self, request: Request<GetOperationRequest>) -> Result<Response<OperationMessage>, Status> {
        let arrived = clock::now();
        let found = self.find(request.metadata(), &request.get_ref().name).await;
        answer("GetOperation", arrived, found.map(|operation| describe::operation(&operation)))
    }

    async fn list_operations(
        &self,
        request: Request<ListOperationsRequest>,
    ) -> Result<Response<ListOperationsResponse>, Status> {
        let arrived = clock::now();
        answer("ListOperations", arrived, self.list(request.metadata(), request.get_ref()).await)
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
        let (jobs, name, caller) = (Arc::clone(&self.jobs), request.name.clone(), headers.clone());
        let is_shared = self.pool.is_shared();
        let cancel = move |_: &Records| {
            let unknown = || CallFailure::no_operation(&name, is_shared);
            let viewer = Viewer::of(&caller)?;
            let found = match jobs.queue.operation(&name) {
                Some(operation) => Some(operation.describe()),
                None => jobs.operation_elsewhere(&name)?,
            };
            let found = found.filter(|operation| viewer.sees(operation.owner())).ok_or_else(unknown)?;
            require_own(&viewer, &found)?;
            Ok(describe::operation(&jobs.cancel(&name)?.ok_or_else(unknown)?))
        };
        call::concerns(&request.name);
        let call = (&headers, &*request.request_id, &request);
        self.pool.once("CancelOperation", call, cancel, || {}).await.map(Response::new)
    }
}
