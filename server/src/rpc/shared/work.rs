//! What the work of each method is limited by.

/// What limits the work of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// The length of its message, the limits of topologies, or what is stored.
    Small,
    /// A job of the queue.
    Job,
    /// Nothing but its deadline: it computes by `CallPool::compute`.
    Computes,
}

use Work::{Computes, Job, Small};

/// Every method of `canopy.v1`, sorted.
const WORK: &[(&str, Work)] = &[
    ("Analysis/ComputeBound", Computes),
    ("Analysis/FindNetworks", Computes),
    ("Analysis/FindPaths", Computes),
    ("Analysis/OrderMachines", Computes),
    ("Analysis/WeighFaults", Computes),
    ("Faults/ClearFaults", Small),
    ("Faults/ListFaults", Small),
    ("Faults/ReportFaults", Small),
    ("Leases/AcquireLease", Small),
    ("Leases/GetLease", Small),
    ("Leases/ListLeases", Small),
    ("Leases/ReleaseLease", Small),
    ("Leases/RenewLease", Small),
    ("Leases/WatchLeases", Small),
    ("Networks/CheckTopology", Computes),
    ("Networks/DeleteCluster", Small),
    ("Networks/DeleteTopology", Small),
    ("Networks/GetCluster", Small),
    ("Networks/GetTopology", Small),
    ("Networks/ListClusters", Small),
    ("Networks/ListTopologies", Small),
    ("Networks/PutCluster", Small),
    ("Networks/PutTopology", Small),
    ("Operations/CancelOperation", Small),
    ("Operations/GetOperation", Small),
    ("Operations/ListOperations", Small),
    ("Operations/WaitOperation", Small),
    ("Planner/FollowGroups", Computes),
    ("Planner/LookUpPlan", Small),
    ("Planner/Plan", Job),
    ("Planner/PlanBundle", Computes),
    ("Planner/PlanGroups", Computes),
    ("Planner/PlanMoving", Computes),
    ("Planner/PrefetchPlan", Job),
    ("Planner/StreamPlan", Job),
    ("Plans/EvictPlans", Small),
    ("Plans/ExplainPlan", Small),
    ("Plans/ExportPlans", Small),
    ("Plans/FetchPlanFile", Small),
    ("Plans/GetPlan", Small),
    ("Plans/GetPlanSummary", Small),
    // Each plan is judged, in the order of the archive: for administrators alone.
    ("Plans/ImportPlans", Small),
    ("Plans/ListPlans", Small),
    ("Plans/PinPlan", Small),
    ("Plans/SimulatePlan", Computes),
    ("Plans/UnpinPlan", Small),
    ("Server/BackUp", Small),
    ("Server/CheckStore", Small),
    ("Server/Drain", Small),
    ("Server/ForgetRefusals", Small),
    ("Server/GetConfig", Small),
    ("Server/GetMetrics", Small),
    ("Server/GetQueue", Small),
    ("Server/GetQuota", Small),
    ("Server/GetStatus", Small),
    ("Server/ReloadConfig", Small),
    ("Server/SetLogFilter", Small),
];

/// Whether the method of this name, without its service, may compute.
pub(in crate::rpc) fn computes(name: &str) -> bool {
    let has_name = |path: &str| path.split_once('/').is_some_and(|(_, method)| method == name);
    WORK.iter().any(|(path, work)| has_name(path) && *work == Computes)
}

#[cfg(test)]
mod tests {
    use canopy_access::{Effect, METHODS};

    use super::*;

    #[test]
    fn every_method_says_what_limits_its_work() {
        let own = METHODS.iter().filter_map(|method| Some((method.path.strip_prefix("canopy.v1.")?, method.effect)));
        let own: Vec<(&str, Effect)> = own.collect();
        assert_eq!(
            own.iter().map(|(path, _)| *path).collect::<Vec<_>>(),
            WORK.iter().map(|(path, _)| *path).collect::<Vec<_>>()
        );
        for ((path, effect), (_, work)) in own.iter().zip(WORK) {
            // What computes by its effect is no small work.
            assert!(*effect != Effect::Computes || *work != Small, "{path}");
        }
        assert!(computes("ComputeBound") && !computes("Plan") && !computes("Nothing"));
    }
}
