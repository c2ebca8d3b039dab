//! The calls of a [`Client`] that are answered by one message.
//!
//! `deadline` is sent to the server and also holds here, with 100 ms for the server's own words; none leaves it to the
//! server's default. None of them tries twice: see [`Retries`](crate::Retries). Those that change something take a
//! [`RequestId`](crate::RequestId) in their request, which all tries of one change share.

use std::time::Duration;

use canopy_proto::v1;
use tonic::{Request, Response, Status};

use crate::client::{Client, within};
use crate::error::{ClientError, from_status};

/// Makes one method per remote procedure.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $service:ident . $procedure:ident ($request:ident) -> $reply:ident;)*) => {
        impl Client {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// See [`ClientError`].
                pub async fn $name(
                    &self,
                    request: v1::$request,
                    deadline: Option<Duration>,
                ) -> Result<v1::$reply, ClientError> {
                    let mut service = self.$service.clone();
                    answer(service.$procedure(self.limited(request, deadline)), deadline).await
                }
            )*
        }
    };
}

calls! {
    /// Makes a plan, or takes it from the cache. Files over 64 KiB are described but not sent.
    plan_metadata = planner.plan(PlanRequest) -> PlanReply;
    /// Takes a plan from the cache, or is refused with reason `PLAN_NOT_CACHED`. Files are described but not sent.
    lookup_plan = planner.lookup_plan(PlanRequest) -> PlanReply;
    /// Makes the plans of a job for its communicators, collectives and sizes. Files are described but not sent.
    plan_bundle = planner.plan_bundle(PlanBundleRequest) -> PlanBundleReply;
    /// Finds the best rate that any plan for a request can reach, with the proof.
    bound = planner.bound(PlanRequest) -> BoundReply;
    /// Divides one message among paths without a link in common.
    paths = planner.paths(PathsRequest) -> PathsReply;
    /// Starts the making of a plan, which goes on without this client.
    prefetch = planner.prefetch(PlanRequest) -> Operation;
    /// Describes a cached plan.
    get_plan = planner.get_plan(GetPlanRequest) -> Plan;
    /// Says what limits a cached plan and what is in its files.
    explain_plan = planner.explain_plan(ExplainPlanRequest) -> PlanExplanation;
    /// One job.
    get_operation = operations.get_operation(GetOperationRequest) -> Operation;
    /// A page of jobs, newest first.
    list_operations = operations.list_operations(ListOperationsRequest) -> ListOperationsReply;
    /// Waits until a job is done or the time-out of the request has passed.
    wait_operation = operations.wait_operation(WaitOperationRequest) -> Operation;
    /// Stops a job.
    cancel_operation = operations.cancel_operation(CancelOperationRequest) -> Operation;
    /// A page of cached plans.
    list_plans = plan_admin.list_plans(ListPlansRequest) -> ListPlansReply;
    /// What is known of a cached plan: its size, uses and age.
    get_plan_summary = plan_admin.get_plan_summary(GetPlanSummaryRequest) -> PlanSummary;
    /// Keeps a plan from being evicted.
    pin_plan = plan_admin.pin_plan(PinPlanRequest) -> PlanSummary;
    /// Lets a plan be evicted again.
    unpin_plan = plan_admin.unpin_plan(UnpinPlanRequest) -> PlanSummary;
    /// Removes plans from the cache.
    evict_plans = plan_admin.evict_plans(EvictPlansRequest) -> EvictPlansReply;
    /// Forgets which requests were found to have no plan.
    forget_refusals = plan_admin.forget_refusals(ForgetRefusalsRequest) -> ForgetRefusalsReply;
    /// Stores a topology.
    put_topology = topologies.put_topology(PutTopologyRequest) -> PutTopologyReply;
    /// Describes a stored topology and brings a part of its document.
    get_topology = topologies.get_topology(GetTopologyRequest) -> GetTopologyReply;
    /// A page of stored topologies.
    list_topologies = topologies.list_topologies(ListTopologiesRequest) -> ListTopologiesReply;
    /// Says what a topology is, or what is wrong with it.
    check_topology = topologies.check_topology(CheckTopologyRequest) -> CheckTopologyReply;
    /// Removes a stored topology.
    delete_topology = topologies.delete_topology(DeleteTopologyRequest) -> DeleteTopologyReply;
    /// Networks of so many nodes and ports that are best for collectives.
    find = topologies.find(FindRequest) -> FindReply;
    /// Says what has happened to elements of a topology.
    report_faults = faults.report_faults(ReportFaultsRequest) -> ReportFaultsReply;
    /// A page of what is broken or slow.
    list_faults = faults.list_faults(ListFaultsRequest) -> ListFaultsReply;
    /// Takes faults back, whoever reported them.
    clear_faults = faults.clear_faults(ClearFaultsRequest) -> ClearFaultsReply;
    /// Notes that a job runs on plans.
    acquire_lease = leases.acquire_lease(AcquireLeaseRequest) -> Lease;
    /// Extends a lease.
    renew_lease = leases.renew_lease(RenewLeaseRequest) -> Lease;
    /// Ends a lease, or all of a job.
    release_lease = leases.release_lease(ReleaseLeaseRequest) -> ReleaseLeaseReply;
    /// One lease.
    get_lease = leases.get_lease(GetLeaseRequest) -> Lease;
    /// A page of leases.
    list_leases = leases.list_leases(ListLeasesRequest) -> ListLeasesReply;
    /// What the server is, can do, and has done.
    get_status = server_admin.get_status(GetStatusRequest) -> ServerStatus;
    /// What runs and what waits.
    get_queue = server_admin.get_queue(GetQueueRequest) -> QueueStatus;
    /// Ends the server in order.
    drain = server_admin.drain(DrainRequest) -> DrainReply;
}

impl Client {
    /// A request with its deadline, and whose it is.
    pub(crate) fn limited<T>(&self, message: T, deadline: Option<Duration>) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(limit) = deadline {
            request.set_timeout(limit);
        }
        self.tenant.iter().for_each(|tenant| tenant.sign(&mut request));
        request
    }
}

/// Waits for what comes of a call, but not much longer than its deadline.
pub(crate) async fn answer<T>(
    call: impl Future<Output = Result<Response<T>, Status>>,
    deadline: Option<Duration>,
) -> Result<T, ClientError> {
    let answer = async { call.await.map(Response::into_inner).map_err(|status| from_status(&status, deadline)) };
    within(deadline, answer).await
}
