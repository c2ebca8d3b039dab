//! The calls of a [`Client`] with a single reply.
//!
//! `deadline` is sent to the server and also applies here, with 100 ms more for the server's answer; `None` leaves it
//! to the server's default. No call retries: see [`Retries`](crate::Retries). Calls that change something take a
//! [`RequestId`](crate::RequestId) in their request; all tries of one change share it.

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
    /// Makes a plan or takes it from the cache. Files over 64 KiB are described but not sent.
    plan_metadata = planner.plan(PlanRequest) -> PlanReply;
    /// Takes a plan from the cache, or fails with reason `PLAN_NOT_CACHED`. Files are described but not sent.
    lookup_plan = planner.lookup_plan(PlanRequest) -> PlanReply;
    /// Makes the plans of a job for its communicators, collectives and sizes. Files are described but not sent.
    plan_bundle = planner.plan_bundle(PlanBundleRequest) -> PlanBundleReply;
    /// Finds the best rate that any plan for a request can reach, with the proof.
    bound = planner.bound(PlanRequest) -> BoundReply;
    /// Splits one message over link-disjoint paths.
    paths = planner.paths(PathsRequest) -> PathsReply;
    /// Orders machines so that stock runtimes load the network least.
    order_machines = planner.order_machines(OrderMachinesRequest) -> OrderMachinesReply;
    /// Starts a job that makes a plan and continues without this client.
    prefetch = planner.prefetch(PlanRequest) -> Operation;
    /// Describes a cached plan.
    get_plan = planner.get_plan(GetPlanRequest) -> Plan;
    /// Explains what limits a cached plan, and what is in its files.
    explain_plan = planner.explain_plan(ExplainPlanRequest) -> PlanExplanation;
    /// Simulates a cached plan for messages of several sizes.
    simulate_plan = planner.simulate_plan(SimulatePlanRequest) -> SimulatePlanReply;
    /// Returns a job.
    get_operation = operations.get_operation(GetOperationRequest) -> Operation;
    /// Lists a page of jobs, newest first.
    list_operations = operations.list_operations(ListOperationsRequest) -> ListOperationsReply;
    /// Waits until a job is done or the time-out of the request has passed.
    wait_operation = operations.wait_operation(WaitOperationRequest) -> Operation;
    /// Cancels a job.
    cancel_operation = operations.cancel_operation(CancelOperationRequest) -> Operation;
    /// Lists a page of cached plans.
    list_plans = plan_admin.list_plans(ListPlansRequest) -> ListPlansReply;
    /// Returns the size, uses and age of a cached plan.
    get_plan_summary = plan_admin.get_plan_summary(GetPlanSummaryRequest) -> PlanSummary;
    /// Pins a plan.
    pin_plan = plan_admin.pin_plan(PinPlanRequest) -> PlanSummary;
    /// Unpins a plan.
    unpin_plan = plan_admin.unpin_plan(UnpinPlanRequest) -> PlanSummary;
    /// Removes plans from the cache.
    evict_plans = plan_admin.evict_plans(EvictPlansRequest) -> EvictPlansReply;
    /// Forgets which requests have no plan.
    forget_refusals = plan_admin.forget_refusals(ForgetRefusalsRequest) -> ForgetRefusalsReply;
    /// Stores a topology.
    put_topology = topologies.put_topology(PutTopologyRequest) -> PutTopologyReply;
    /// Describes a stored topology and returns a part of its document.
    get_topology = topologies.get_topology(GetTopologyRequest) -> GetTopologyReply;
    /// Lists a page of stored topologies.
    list_topologies = topologies.list_topologies(ListTopologiesRequest) -> ListTopologiesReply;
    /// Describes a topology or its problem.
    check_topology = topologies.check_topology(CheckTopologyRequest) -> CheckTopologyReply;
    /// Deletes a stored topology.
    delete_topology = topologies.delete_topology(DeleteTopologyRequest) -> DeleteTopologyReply;
    /// Stores a cluster, or replaces the one of its name.
    put_cluster = clusters.put_cluster(PutClusterRequest) -> PutClusterReply;
    /// Describes a stored cluster and names its machines.
    get_cluster = clusters.get_cluster(GetClusterRequest) -> GetClusterReply;
    /// Lists a page of stored clusters.
    list_clusters = clusters.list_clusters(ListClustersRequest) -> ListClustersReply;
    /// Deletes a stored cluster.
    delete_cluster = clusters.delete_cluster(DeleteClusterRequest) -> DeleteClusterReply;
    /// Finds the best networks for collectives with a given number of nodes and ports.
    find = topologies.find(FindRequest) -> FindReply;
    /// Reports faults of elements.
    report_faults = faults.report_faults(ReportFaultsRequest) -> ReportFaultsReply;
    /// Lists a page of broken or slow elements.
    list_faults = faults.list_faults(ListFaultsRequest) -> ListFaultsReply;
    /// Clears faults, whichever source reported them.
    clear_faults = faults.clear_faults(ClearFaultsRequest) -> ClearFaultsReply;
    /// Acquires a lease: records that a job uses plans.
    acquire_lease = leases.acquire_lease(AcquireLeaseRequest) -> Lease;
    /// Extends a lease.
    renew_lease = leases.renew_lease(RenewLeaseRequest) -> Lease;
    /// Releases a lease, or all leases of a job.
    release_lease = leases.release_lease(ReleaseLeaseRequest) -> ReleaseLeaseReply;
    /// Returns a lease.
    get_lease = leases.get_lease(GetLeaseRequest) -> Lease;
    /// Lists a page of leases.
    list_leases = leases.list_leases(ListLeasesRequest) -> ListLeasesReply;
    /// Returns the server's version, capabilities, limits and counters.
    get_status = server_admin.get_status(GetStatusRequest) -> ServerStatus;
    /// Returns the caller's name and tenant, their quotas and the use of them.
    get_quota = server_admin.get_quota(GetQuotaRequest) -> QuotaStatus;
    /// Reads the configuration, the rules of access and the certificates again.
    reload_config = server_admin.reload_config(ReloadConfigRequest) -> ReloadConfigReply;
    /// Returns the settings of a server that are in effect.
    get_config = server_admin.get_config(GetConfigRequest) -> ConfigReply;
    /// Changes which lines a server logs.
    set_log_filter = server_admin.set_log_filter(SetLogFilterRequest) -> SetLogFilterReply;
    /// Returns a server's metrics in the text format of Prometheus.
    get_metrics = server_admin.get_metrics(GetMetricsRequest) -> MetricsReply;
    /// Returns the running and waiting jobs.
    get_queue = server_admin.get_queue(GetQueueRequest) -> QueueStatus;
    /// Shuts the server down in order.
    drain = server_admin.drain(DrainRequest) -> DrainReply;
}

impl Client {
    /// A request with its deadline, tenant and token.
    pub(crate) fn limited<T>(&self, message: T, deadline: Option<Duration>) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(limit) = deadline {
            request.set_timeout(limit);
        }
        self.tenant.iter().for_each(|tenant| tenant.sign(&mut request));
        self.token.iter().for_each(|token| token.sign(&mut request));
        request
    }
}

/// Waits for a call, but not much longer than its deadline.
pub(crate) async fn answer<T>(
    call: impl Future<Output = Result<Response<T>, Status>>,
    deadline: Option<Duration>,
) -> Result<T, ClientError> {
    let answer = async { call.await.map(Response::into_inner).map_err(|status| from_status(&status, deadline)) };
    within(deadline, answer).await
}
