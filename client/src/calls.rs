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
    plan_metadata = planner.plan(PlanRequest) -> PlanResponse;
    /// Takes a plan from the cache, or fails with reason `PLAN_NOT_CACHED`. Files are described but not sent.
    look_up_plan = planner.look_up_plan(LookUpPlanRequest) -> PlanResponse;
    /// Makes the plans of a job for its communicators, collectives and sizes. Files are described but not sent.
    plan_bundle = planner.plan_bundle(PlanBundleRequest) -> PlanBundleResponse;
    /// Finds the best rate that any plan for a request can reach, with the proof.
    compute_bound = analysis.compute_bound(ComputeBoundRequest) -> ComputeBoundResponse;
    /// Splits one message over link-disjoint paths.
    find_paths = analysis.find_paths(FindPathsRequest) -> FindPathsResponse;
    /// Orders machines so that stock runtimes load the network least.
    order_machines = analysis.order_machines(OrderMachinesRequest) -> OrderMachinesResponse;
    /// Starts a job that makes a plan and continues without this client.
    prefetch_plan = planner.prefetch_plan(PrefetchPlanRequest) -> Operation;
    /// Describes a cached plan.
    get_plan = plans.get_plan(GetPlanRequest) -> Plan;
    /// Explains what limits a cached plan, and what is in its files.
    explain_plan = plans.explain_plan(ExplainPlanRequest) -> PlanExplanation;
    /// Simulates a cached plan for messages of several sizes.
    simulate_plan = plans.simulate_plan(SimulatePlanRequest) -> SimulatePlanResponse;
    /// Returns a job.
    get_operation = operations.get_operation(GetOperationRequest) -> Operation;
    /// Lists a page of jobs, newest first.
    list_operations = operations.list_operations(ListOperationsRequest) -> ListOperationsResponse;
    /// Waits until a job is done or the time-out of the request has passed.
    wait_operation = operations.wait_operation(WaitOperationRequest) -> Operation;
    /// Cancels a job.
    cancel_operation = operations.cancel_operation(CancelOperationRequest) -> Operation;
    /// Lists a page of cached plans.
    list_plans = plans.list_plans(ListPlansRequest) -> ListPlansResponse;
    /// Returns the size, uses and age of a cached plan.
    get_plan_summary = plans.get_plan_summary(GetPlanSummaryRequest) -> PlanSummary;
    /// Pins a plan.
    pin_plan = plans.pin_plan(PinPlanRequest) -> PlanSummary;
    /// Unpins a plan.
    unpin_plan = plans.unpin_plan(UnpinPlanRequest) -> PlanSummary;
    /// Removes plans from the cache.
    evict_plans = plans.evict_plans(EvictPlansRequest) -> EvictPlansResponse;
    /// Forgets which requests have no plan.
    forget_refusals = server.forget_refusals(ForgetRefusalsRequest) -> ForgetRefusalsResponse;
    /// Stores a topology.
    put_topology = networks.put_topology(PutTopologyRequest) -> PutTopologyResponse;
    /// Describes a stored topology and returns a part of its document.
    get_topology = networks.get_topology(GetTopologyRequest) -> GetTopologyResponse;
    /// Lists a page of stored topologies.
    list_topologies = networks.list_topologies(ListTopologiesRequest) -> ListTopologiesResponse;
    /// Describes a topology or its problem.
    check_topology = networks.check_topology(CheckTopologyRequest) -> CheckTopologyResponse;
    /// Deletes a stored topology.
    delete_topology = networks.delete_topology(DeleteTopologyRequest) -> DeleteTopologyResponse;
    /// Stores a cluster, or replaces the one of its name.
    put_cluster = networks.put_cluster(PutClusterRequest) -> PutClusterResponse;
    /// Describes a stored cluster and names its machines.
    get_cluster = networks.get_cluster(GetClusterRequest) -> GetClusterResponse;
    /// Lists a page of stored clusters.
    list_clusters = networks.list_clusters(ListClustersRequest) -> ListClustersResponse;
    /// Deletes a stored cluster.
    delete_cluster = networks.delete_cluster(DeleteClusterRequest) -> DeleteClusterResponse;
    /// Finds the best networks for collectives with a given number of nodes and ports.
    find_networks = analysis.find_networks(FindNetworksRequest) -> FindNetworksResponse;
    /// Reports faults of elements.
    report_faults = faults.report_faults(ReportFaultsRequest) -> ReportFaultsResponse;
    /// Lists a page of broken or slow elements.
    list_faults = faults.list_faults(ListFaultsRequest) -> ListFaultsResponse;
    /// Clears faults, whichever source reported them.
    clear_faults = faults.clear_faults(ClearFaultsRequest) -> ClearFaultsResponse;
    /// Acquires a lease: records that a job uses plans.
    acquire_lease = leases.acquire_lease(AcquireLeaseRequest) -> Lease;
    /// Extends a lease.
    renew_lease = leases.renew_lease(RenewLeaseRequest) -> Lease;
    /// Releases a lease, or all leases of a job.
    release_lease = leases.release_lease(ReleaseLeaseRequest) -> ReleaseLeaseResponse;
    /// Returns a lease.
    get_lease = leases.get_lease(GetLeaseRequest) -> Lease;
    /// Lists a page of leases.
    list_leases = leases.list_leases(ListLeasesRequest) -> ListLeasesResponse;
    /// Returns the server's version, capabilities, limits and counters.
    get_status = server.get_status(GetStatusRequest) -> ServerStatus;
    /// Returns the caller's name and tenant, their quotas and the use of them.
    get_quota = server.get_quota(GetQuotaRequest) -> QuotaStatus;
    /// Reads the configuration, the rules of access and the certificates again.
    reload_config = server.reload_config(ReloadConfigRequest) -> ReloadConfigResponse;
    /// Returns the settings of a server that are in effect.
    get_config = server.get_config(GetConfigRequest) -> GetConfigResponse;
    /// Changes which lines a server logs.
    set_log_filter = server.set_log_filter(SetLogFilterRequest) -> SetLogFilterResponse;
    /// Returns a server's metrics in the text format of Prometheus.
    get_metrics = server.get_metrics(GetMetricsRequest) -> GetMetricsResponse;
    /// Returns the running and waiting jobs.
    get_queue = server.get_queue(GetQueueRequest) -> QueueStatus;
    /// Shuts the server down in order.
    drain = server.drain(DrainRequest) -> DrainResponse;
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
