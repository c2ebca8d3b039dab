//! Every method that is served: which standard roles may call it, and what it does.
//!
//! This table is the one place that says so. The server refuses what is not listed, and its tests compare the table with
//! the descriptions of all services.

use serde::{Deserialize, Serialize};

/// A role that every server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standard {
    /// Reads plans, jobs, networks, leases and the state of the server.
    Viewer,
    /// A scheduler: asks for plans and holds leases, beside what a viewer does.
    Planner,
    /// A node agent or health monitor: says what has broken and what works again.
    FaultReporter,
    /// Looks after what is stored: all of the above, and pins, evicts, names clusters and exports.
    Operator,
    /// Everything, also what can hurt others: imports and the end of the server.
    Admin,
}

impl Standard {
    /// All, from the least to the most.
    pub const ALL: [Self; 5] = [Self::Viewer, Self::Planner, Self::FaultReporter, Self::Operator, Self::Admin];

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Planner => "planner",
            Self::FaultReporter => "fault-reporter",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// The methods of its rows.
    pub fn methods(self) -> MethodSet {
        let place = 1_u8 << (self as u8);
        let rows = METHODS.iter().enumerate().filter(|(_, method)| method.roles & place != 0);
        rows.fold(MethodSet::default(), |all, (at, _)| all.with(at))
    }
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It reads.
    Reads,
    /// It computes, and what it finds may be kept for the next caller; nothing that anybody relies on changes.
    Computes,
    /// It changes what others rely on: it goes into the audit log.
    Changes,
}

/// A method, and the roles that may call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Service and method, such as `canopy.v1.Planner/Plan`; pages of the operators' port are `http/PATH`.
    pub path: &'static str,
    /// What it does.
    pub effect: Effect,
    /// Whether callers without an identity may call it, too.
    pub open: bool,
    /// Whether it changes what all tenants share: it is not for callers that act for one of them.
    pub shared: bool,
    /// Whether its answers go on as long as the caller likes.
    pub endless: bool,
    /// Whether it has no deadline but the one that is stated: there may be any time between two messages, of either side.
    pub conversation: bool,
    /// One bit for each of [`Standard::ALL`].
    roles: u8,
}

impl Method {
    /// Its place in [`METHODS`].
    fn place(path: &str) -> Option<usize> {
        METHODS.binary_search_by(|method| method.path.cmp(path)).ok()
    }
}

/// The method of this path.
pub fn method(path: &str) -> Option<&'static Method> {
    METHODS.get(Method::place(path)?)
}

const V: u8 = 1 << Standard::Viewer as u8;
const P: u8 = 1 << Standard::Planner as u8;
const F: u8 = 1 << Standard::FaultReporter as u8;
const O: u8 = 1 << Standard::Operator as u8;
const A: u8 = 1 << Standard::Admin as u8;

/// Roles that read.
const READERS: u8 = V | P | O | A;
/// Roles that request plans.
const PLANNERS: u8 = P | O | A;
/// Roles that report faults.
const REPORTERS: u8 = F | O | A;
/// Roles that manage what is stored.
const OPERATORS: u8 = O | A;
/// Everybody with an identity.
const ALL: u8 = V | P | F | O | A;

const fn row(path: &'static str, roles: u8, effect: Effect) -> Method {
    Method { path, effect, open: false, shared: false, endless: false, conversation: false, roles }
}

const fn open(path: &'static str) -> Method {
    Method { path, effect: Reads, open: true, shared: false, endless: false, conversation: false, roles: ALL }
}

const fn endless(path: &'static str, roles: u8) -> Method {
    Method { path, effect: Reads, open: false, shared: false, endless: true, conversation: false, roles }
}

const fn conversation(path: &'static str, roles: u8) -> Method {
    Method { path, effect: Computes, open: false, shared: false, endless: true, conversation: true, roles }
}

const fn shared(path: &'static str, roles: u8) -> Method {
    Method { path, effect: Changes, open: false, shared: true, endless: false, conversation: false, roles }
}

use Effect::{Changes, Computes, Reads};

/// All methods, sorted by path.
pub const METHODS: &[Method] = &[
    row("canopy.v1.Analysis/ComputeBound", PLANNERS, Computes),
    row("canopy.v1.Analysis/FindNetworks", PLANNERS, Computes),
    row("canopy.v1.Analysis/FindPaths", PLANNERS, Computes),
    row("canopy.v1.Analysis/OrderMachines", PLANNERS, Computes),
    row("canopy.v1.Analysis/WeighFaults", PLANNERS, Computes),
    row("canopy.v1.Faults/ClearFaults", REPORTERS, Changes),
    row("canopy.v1.Faults/ListFaults", READERS | F, Reads),
    row("canopy.v1.Faults/ReportFaults", REPORTERS, Changes),
    row("canopy.v1.Leases/AcquireLease", PLANNERS, Changes),
    row("canopy.v1.Leases/GetLease", READERS, Reads),
    row("canopy.v1.Leases/ListLeases", READERS, Reads),
    row("canopy.v1.Leases/ReleaseLease", PLANNERS, Changes),
    row("canopy.v1.Leases/RenewLease", PLANNERS, Changes),
    endless("canopy.v1.Leases/WatchLeases", READERS),
    row("canopy.v1.Networks/CheckTopology", PLANNERS, Computes),
    shared("canopy.v1.Networks/DeleteCluster", OPERATORS),
    shared("canopy.v1.Networks/DeleteTopology", OPERATORS),
    row("canopy.v1.Networks/GetCluster", READERS, Reads),
    row("canopy.v1.Networks/GetTopology", READERS, Reads),
    row("canopy.v1.Networks/ListClusters", READERS, Reads),
    row("canopy.v1.Networks/ListTopologies", READERS, Reads),
    shared("canopy.v1.Networks/PutCluster", OPERATORS),
    row("canopy.v1.Networks/PutTopology", PLANNERS, Changes),
    row("canopy.v1.Operations/CancelOperation", PLANNERS, Changes),
    row("canopy.v1.Operations/GetOperation", READERS, Reads),
    row("canopy.v1.Operations/ListOperations", READERS, Reads),
    row("canopy.v1.Operations/WaitOperation", READERS, Reads),
    conversation("canopy.v1.Planner/FollowGroups", PLANNERS),
    row("canopy.v1.Planner/LookUpPlan", READERS, Reads),
    row("canopy.v1.Planner/Plan", PLANNERS, Computes),
    row("canopy.v1.Planner/PlanBundle", PLANNERS, Computes),
    row("canopy.v1.Planner/PlanGroups", PLANNERS, Computes),
    conversation("canopy.v1.Planner/PlanMoving", PLANNERS),
    row("canopy.v1.Planner/PrefetchPlan", PLANNERS, Changes),
    row("canopy.v1.Planner/StreamPlan", PLANNERS, Computes),
    row("canopy.v1.Plans/EvictPlans", OPERATORS, Changes),
    row("canopy.v1.Plans/ExplainPlan", READERS, Reads),
    row("canopy.v1.Plans/ExportPlans", OPERATORS, Reads),
    row("canopy.v1.Plans/FetchPlanFile", READERS, Reads),
    row("canopy.v1.Plans/GetPlan", READERS, Reads),
    row("canopy.v1.Plans/GetPlanSummary", READERS, Reads),
    row("canopy.v1.Plans/ImportPlans", A, Changes),
    row("canopy.v1.Plans/ListPlans", READERS, Reads),
    row("canopy.v1.Plans/PinPlan", OPERATORS, Changes),
    row("canopy.v1.Plans/SimulatePlan", READERS, Reads),
    row("canopy.v1.Plans/UnpinPlan", OPERATORS, Changes),
    Method { effect: Reads, ..shared("canopy.v1.Server/BackUp", A) },
    row("canopy.v1.Server/CheckStore", OPERATORS, Reads),
    row("canopy.v1.Server/Drain", A, Changes),
    shared("canopy.v1.Server/ForgetRefusals", OPERATORS),
    row("canopy.v1.Server/GetConfig", OPERATORS, Reads),
    row("canopy.v1.Server/GetMetrics", READERS, Reads),
    row("canopy.v1.Server/GetQueue", READERS, Reads),
    row("canopy.v1.Server/GetQuota", ALL, Reads),
    row("canopy.v1.Server/GetStatus", ALL, Reads),
    row("canopy.v1.Server/ReloadConfig", A, Changes),
    row("canopy.v1.Server/SetLogFilter", A, Changes),
    open("grpc.health.v1.Health/Check"),
    open("grpc.health.v1.Health/Watch"),
    row("grpc.reflection.v1.ServerReflection/ServerReflectionInfo", ALL, Reads),
    row("grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", ALL, Reads),
    row("http/debug/queue", OPERATORS, Reads),
    open("http/healthz"),
    row("http/metrics", READERS, Reads),
    open("http/readyz"),
];

/// Earlier names of methods, with the present ones: roles of a site may still name them.
const FORMER: &[(&str, &str)] = &[
    ("canopy.v1.Clusters/DeleteCluster", "canopy.v1.Networks/DeleteCluster"),
    ("canopy.v1.Clusters/GetCluster", "canopy.v1.Networks/GetCluster"),
    ("canopy.v1.Clusters/ListClusters", "canopy.v1.Networks/ListClusters"),
    ("canopy.v1.Clusters/PutCluster", "canopy.v1.Networks/PutCluster"),
    ("canopy.v1.Faults/WatchReplans", "canopy.v1.Leases/WatchLeases"),
    ("canopy.v1.PlanAdmin/EvictPlans", "canopy.v1.Plans/EvictPlans"),
    ("canopy.v1.PlanAdmin/ExportPlans", "canopy.v1.Plans/ExportPlans"),
    ("canopy.v1.PlanAdmin/ForgetRefusals", "canopy.v1.Server/ForgetRefusals"),
    ("canopy.v1.PlanAdmin/GetPlanSummary", "canopy.v1.Plans/GetPlanSummary"),
    ("canopy.v1.PlanAdmin/ImportPlans", "canopy.v1.Plans/ImportPlans"),
    ("canopy.v1.PlanAdmin/ListPlans", "canopy.v1.Plans/ListPlans"),
    ("canopy.v1.PlanAdmin/PinPlan", "canopy.v1.Plans/PinPlan"),
    ("canopy.v1.PlanAdmin/UnpinPlan", "canopy.v1.Plans/UnpinPlan"),
    ("canopy.v1.Planner/Bound", "canopy.v1.Analysis/ComputeBound"),
    ("canopy.v1.Planner/ExplainPlan", "canopy.v1.Plans/ExplainPlan"),
    ("canopy.v1.Planner/FetchArtifact", "canopy.v1.Plans/FetchPlanFile"),
    ("canopy.v1.Planner/GetPlan", "canopy.v1.Plans/GetPlan"),
    ("canopy.v1.Planner/LookupPlan", "canopy.v1.Planner/LookUpPlan"),
    ("canopy.v1.Planner/OrderMachines", "canopy.v1.Analysis/OrderMachines"),
    ("canopy.v1.Planner/Paths", "canopy.v1.Analysis/FindPaths"),
    ("canopy.v1.Planner/PlanStream", "canopy.v1.Planner/StreamPlan"),
    ("canopy.v1.Planner/Prefetch", "canopy.v1.Planner/PrefetchPlan"),
    ("canopy.v1.Planner/SimulatePlan", "canopy.v1.Plans/SimulatePlan"),
    ("canopy.v1.Planner/WhatIf", "canopy.v1.Analysis/WeighFaults"),
    ("canopy.v1.ServerAdmin/BackUp", "canopy.v1.Server/BackUp"),
    ("canopy.v1.ServerAdmin/CheckStore", "canopy.v1.Server/CheckStore"),
    ("canopy.v1.ServerAdmin/Drain", "canopy.v1.Server/Drain"),
    ("canopy.v1.ServerAdmin/GetConfig", "canopy.v1.Server/GetConfig"),
    ("canopy.v1.ServerAdmin/GetMetrics", "canopy.v1.Server/GetMetrics"),
    ("canopy.v1.ServerAdmin/GetQueue", "canopy.v1.Server/GetQueue"),
    ("canopy.v1.ServerAdmin/GetQuota", "canopy.v1.Server/GetQuota"),
    ("canopy.v1.ServerAdmin/GetStatus", "canopy.v1.Server/GetStatus"),
    ("canopy.v1.ServerAdmin/ReloadConfig", "canopy.v1.Server/ReloadConfig"),
    ("canopy.v1.ServerAdmin/SetLogFilter", "canopy.v1.Server/SetLogFilter"),
    ("canopy.v1.Topologies/CheckTopology", "canopy.v1.Networks/CheckTopology"),
    ("canopy.v1.Topologies/DeleteTopology", "canopy.v1.Networks/DeleteTopology"),
    ("canopy.v1.Topologies/Find", "canopy.v1.Analysis/FindNetworks"),
    ("canopy.v1.Topologies/GetTopology", "canopy.v1.Networks/GetTopology"),
    ("canopy.v1.Topologies/ListTopologies", "canopy.v1.Networks/ListTopologies"),
    ("canopy.v1.Topologies/PutTopology", "canopy.v1.Networks/PutTopology"),
];

/// Some of [`METHODS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MethodSet(u128);

const _: () = assert!(METHODS.len() <= u128::BITS as usize, "a set has a bit for each method");

impl MethodSet {
    const fn with(self, place: usize) -> Self {
        Self(self.0 | 1 << place)
    }

    /// The methods that `pattern` names, by a present or a former name: one, or with `/*` at its end all of a service.
    pub(crate) fn named(pattern: &str) -> Self {
        let service = pattern.strip_suffix('*').filter(|service| service.ends_with('/'));
        let is_meant = |path: &str| service.map_or(path == pattern, |service| path.starts_with(service));
        let former = FORMER.iter().filter(|(former, _)| is_meant(former)).filter_map(|(_, path)| Method::place(path));
        let rows = METHODS.iter().enumerate().filter(|(_, method)| is_meant(method.path)).map(|(at, _)| at);
        rows.chain(former).fold(Self::default(), Self::with)
    }

    /// The methods of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it holds none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it holds the method of this path.
    pub fn has(self, path: &str) -> bool {
        Method::place(path).is_some_and(|place| self.0 & (1 << place) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_so_that_paths_are_found() {
        assert!(METHODS.is_sorted_by(|a, b| a.path < b.path));
        assert!(METHODS.iter().all(|row| method(row.path) == Some(row)));
        assert_eq!(method("canopy.v1.Planner/Nothing"), None);
    }

    #[test]
    fn an_operator_does_what_the_smaller_roles_do_and_an_admin_does_all() {
        let of = Standard::methods;
        let smaller = of(Standard::Viewer).and(of(Standard::Planner)).and(of(Standard::FaultReporter));
        assert_eq!(of(Standard::Operator).and(smaller), of(Standard::Operator));
        assert_eq!(of(Standard::Planner).and(of(Standard::Viewer)), of(Standard::Planner));
        assert!(METHODS.iter().all(|row| of(Standard::Admin).has(row.path)));
        assert!(!of(Standard::Operator).has("canopy.v1.Server/Drain"));
        assert!(!of(Standard::FaultReporter).has("canopy.v1.Plans/ListPlans"));
    }

    #[test]
    fn who_reads_changes_nothing() {
        let viewer = Standard::Viewer.methods();
        assert!(METHODS.iter().all(|row| row.effect == Reads || !viewer.has(row.path)));
    }

    #[test]
    fn earlier_names_are_those_of_methods() {
        for (former, path) in FORMER {
            assert!(method(path).is_some() && method(former).is_none(), "{former}");
            assert_eq!(MethodSet::named(former), MethodSet::named(path), "{former}");
        }
        assert!(MethodSet::named("canopy.v1.Topologies/*").has("canopy.v1.Networks/GetTopology"));
        assert!(MethodSet::named("canopy.v1.Planner/*").has("canopy.v1.Plans/GetPlan"));
    }

    #[test]
    fn patterns_name_a_method_or_a_service() {
        assert!(MethodSet::named("canopy.v1.Leases/*").has("canopy.v1.Leases/GetLease"));
        assert!(!MethodSet::named("canopy.v1.Leases/*").has("canopy.v1.Planner/Plan"));
        assert!(MethodSet::named("canopy.v1.Planner/Plan").has("canopy.v1.Planner/Plan"));
        assert!(!MethodSet::named("canopy.v1.Planner/Plan").has("canopy.v1.Planner/StreamPlan"));
        for nothing in ["", "*", "canopy.v1.Planner", "canopy.v1.Pla*", "canopy.v1.Planner/", "nothing/*"] {
            assert!(MethodSet::named(nothing).is_empty(), "{nothing}");
        }
    }
}
