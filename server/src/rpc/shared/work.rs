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
    ("Clusters/DeleteCluster", Small),
    ("Clusters/GetCluster", Small),
    ("Clusters/ListClusters", Small),
    ("Clusters/PutCluster", Small),
    ("Faults/ClearFaults", Small),
    ("Faults/ListFaults", Small),
    ("Faults/ReportFaults", Small),
    ("Faults/WatchReplans", Small),
    ("Leases/AcquireLease", Small),
    ("Leases/GetLease", Small),
    ("Leases/ListLeases", Small),
    ("Leases/ReleaseLease", Small),
    ("Leases/RenewLease", Small),
    ("Operations/CancelOperation", Small),
    ("Operations/GetOperation", Small),
    ("Operations/ListOperations", Small),
    ("Operations/WaitOperation", Small),
    ("PlanAdmin/EvictPlans", Small),
    ("PlanAdmin/ExportPlans", Small),
    ("PlanAdmin/ForgetRefusals", Small),
    ("PlanAdmin/GetPlanSummary", Small),
    // Each plan is judged, in the order of the archive: for administrators alone.
    ("PlanAdmin/ImportPlans", Small),
    ("PlanAdmin/ListPlans", Small),
    ("PlanAdmin/PinPlan", Small),
    ("PlanAdmin/UnpinPlan", Small),
    ("Planner/Bound", Computes),
    ("Planner/ExplainPlan", Small),
    ("Planner/FetchArtifact", Small),
    ("Planner/FollowGroups", Computes),
    ("Planner/GetPlan", Small),
    ("Planner/LookupPlan", Small),
    ("Planner/OrderMachines", Computes),
    ("Planner/Paths", Computes),
    ("Planner/Plan", Job),
    ("Planner/PlanBundle", Computes),
    ("Planner/PlanGroups", Computes),
    ("Planner/PlanMoving", Computes),
    ("Planner/PlanStream", Job),
    ("Planner/Prefetch", Job),
    ("Planner/SimulatePlan", Computes),
    ("Planner/WhatIf", Computes),
    ("ServerAdmin/BackUp", Small),
    ("ServerAdmin/CheckStore", Small),
    ("ServerAdmin/Drain", Small),
    ("ServerAdmin/GetConfig", Small),
    ("ServerAdmin/GetMetrics", Small),
    ("ServerAdmin/GetQueue", Small),
    ("ServerAdmin/GetQuota", Small),
    ("ServerAdmin/GetStatus", Small),
    ("ServerAdmin/ReloadConfig", Small),
    ("ServerAdmin/SetLogFilter", Small),
    ("Topologies/CheckTopology", Computes),
    ("Topologies/DeleteTopology", Small),
    ("Topologies/Find", Computes),
    ("Topologies/GetTopology", Small),
    ("Topologies/ListTopologies", Small),
    ("Topologies/PutTopology", Small),
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
        assert!(computes("Bound") && !computes("Plan") && !computes("Nothing"));
    }
}
