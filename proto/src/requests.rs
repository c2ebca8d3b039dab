//! The requests of the calls that plan what a [`PlanSpec`] says, with all else unset.

use crate::v1::{
    ComputeBoundRequest, LookUpPlanRequest, PlanRequest, PlanSpec, PrefetchPlanRequest, WeighFaultsRequest,
};

impl PlanSpec {
    /// Has it planned.
    pub fn into_plan(self) -> PlanRequest {
        PlanRequest { spec: Some(self), ..PlanRequest::default() }
    }

    /// Looks it up.
    pub fn into_look_up(self) -> LookUpPlanRequest {
        LookUpPlanRequest { spec: Some(self), ..LookUpPlanRequest::default() }
    }

    /// Has it planned for later.
    pub fn into_prefetch(self) -> PrefetchPlanRequest {
        PrefetchPlanRequest { spec: Some(self), ..PrefetchPlanRequest::default() }
    }

    /// Bounds what any plan for its network and collective can reach.
    pub fn into_bound(self) -> ComputeBoundRequest {
        let Self { topology, collective, shares, ranks, transit, placement, fault_policy, .. } = self;
        ComputeBoundRequest { topology, collective, shares, ranks, transit, placement, fault_policy }
    }

    /// Weighs the faults of its network for its collective.
    pub fn into_weigh_faults(self) -> WeighFaultsRequest {
        let Self { topology, collective, ranks, transit, placement, fault_policy, .. } = self;
        WeighFaultsRequest {
            topology,
            collective,
            ranks,
            transit,
            placement,
            fault_policy,
            ..WeighFaultsRequest::default()
        }
    }
}
