//! `Planner.Bound`: the best rate that any plan can reach.

use std::sync::Arc;

use canopy_planner::{Bounds, Prepared};
use canopy_proto::v1::{BoundReply, PlanRequest};
use canopy_wire as wire;
use canopy_wire::RequestError;
use tonic::{Request, Status};

use super::PlannerService;
use crate::failure::PlanFailure;
use crate::rpc::shared::resolve::Resolved;
use crate::rpc::{Decoded, Method, decode};

/// Answers the call.
pub(super) async fn bound(service: &PlannerService, request: Request<PlanRequest>) -> Result<BoundReply, Status> {
    let Resolved { request, applied } = service.admission.resolve(request, Method::Bound).await?;
    let (headers, _, request) = request.into_parts();
    let (jobs, limits) = (Arc::clone(&service.admission.jobs), service.resolver().limits);
    let found = service.pool().compute(Method::Bound.name(), &headers, move |_, seat| {
        let Decoded { order, .. } = decode(request, Method::Bound).map_err(PlanFailure::Request)?;
        if order.joint.is_some() {
            let (field, method) = ("joint_collectives", Method::Bound.name());
            return Err(PlanFailure::Request(RequestError::NotApplicable { field, method }).into());
        }
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
