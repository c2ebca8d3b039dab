//! `Analysis.ComputeBound`: the best rate that any plan can reach.

use std::sync::Arc;

use canopy_planner::{Bounds, Prepared};
use canopy_proto::v1::{ComputeBoundRequest, ComputeBoundResponse};
use canopy_wire as wire;
use tonic::{Request, Status};

use crate::failure::PlanFailure;
use crate::rpc::shared::admission::Admission;
use crate::rpc::shared::plan_query::PlanQuery;
use crate::rpc::shared::resolve::Resolved;
use crate::rpc::{Decoded, Method, decode};

/// Answers the call.
pub(super) async fn compute_bound(
    admission: &Admission,
    request: Request<ComputeBoundRequest>,
) -> Result<ComputeBoundResponse, Status> {
    let request = request.map(PlanQuery::from);
    let Resolved { request, applied } = admission.resolve(request, Method::ComputeBound).await?;
    let (headers, _, request) = request.into_parts();
    let (jobs, limits) = (Arc::clone(&admission.jobs), admission.resolver.limits);
    let found = admission.pool.compute(Method::ComputeBound.name(), &headers, move |_, seat| {
        let Decoded { order, .. } = decode(request, Method::ComputeBound).map_err(PlanFailure::Request)?;
        let prepared = jobs.planner.prepare(&order, seat)?;
        seat.take_memory(prepared.memory_bytes)?;
        let Prepared { topology, collective, shares, .. } = &prepared;
        let bounds = Bounds::of(topology, *collective, shares, &limits, seat).map_err(PlanFailure::from)?;
        Ok(wire::bounded(&prepared, &bounds))
    });
    let mut reply = found.await.map_err(|status| applied.explain(&status))?;
    reply.warnings.extend(applied.warnings());
    Ok(reply)
}
