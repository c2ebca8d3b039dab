//! Query of the calls for plans and bounds: a spec, and the terms of the call.

use canopy_proto::v1;

/// Spec and terms of a call; terms that the call does not have are unset.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanQuery {
    pub(crate) spec: v1::PlanSpec,
    /// Least achieved ÷ bound that is accepted.
    pub(crate) minimum_optimality: Option<v1::Fraction>,
    /// What to do without the plan: an [`OnMiss`](v1::OnMiss) by its number.
    pub(crate) on_miss: i32,
    /// A [`Priority`](v1::Priority) by its number.
    pub(crate) priority: i32,
    pub(crate) detached: bool,
}

impl From<v1::PlanSpec> for PlanQuery {
    fn from(spec: v1::PlanSpec) -> Self {
        Self { spec, ..Self::default() }
    }
}

// A request without a spec is refused as one whose spec says nothing: for the network that it lacks.

impl From<v1::PlanRequest> for PlanQuery {
    fn from(request: v1::PlanRequest) -> Self {
        let v1::PlanRequest { spec, minimum_optimality, on_miss, priority, detached, request_id: _ } = request;
        Self { spec: spec.unwrap_or_default(), minimum_optimality, on_miss, priority, detached }
    }
}

impl From<v1::LookUpPlanRequest> for PlanQuery {
    fn from(v1::LookUpPlanRequest { spec, minimum_optimality }: v1::LookUpPlanRequest) -> Self {
        Self { minimum_optimality, ..spec.unwrap_or_default().into() }
    }
}

impl From<v1::PrefetchPlanRequest> for PlanQuery {
    fn from(v1::PrefetchPlanRequest { spec, priority, request_id: _ }: v1::PrefetchPlanRequest) -> Self {
        Self { priority, ..spec.unwrap_or_default().into() }
    }
}

impl From<v1::ComputeBoundRequest> for PlanQuery {
    fn from(request: v1::ComputeBoundRequest) -> Self {
        let v1::ComputeBoundRequest { topology, collective, shares, ranks, transit, placement, fault_policy } = request;
        let all = v1::PlanSpec::default();
        v1::PlanSpec { topology, collective, shares, ranks, transit, placement, fault_policy, ..all }.into()
    }
}

impl From<v1::WeighFaultsRequest> for PlanQuery {
    fn from(request: v1::WeighFaultsRequest) -> Self {
        let v1::WeighFaultsRequest { topology, collective, ranks, transit, placement, fault_policy, .. } = request;
        let spec =
            v1::PlanSpec { topology, collective, ranks, transit, placement, fault_policy, ..v1::PlanSpec::default() };
        Self { priority: request.priority, ..spec.into() }
    }
}
