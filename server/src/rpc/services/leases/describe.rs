//! Leases on the wire.

use canopy_proto::v1;
use canopy_wire::timestamp;

use crate::clock;
use crate::replan::{Item, Lease, LeaseTerms, ValidPlan};
use crate::rpc::shared::status::operation_error;
use crate::store::topologies::id_of;

/// A lease. `is_replanning`: of an item, whether another plan is being made.
pub(super) fn lease(lease: &Lease, is_replanning: impl Fn(u32) -> bool) -> v1::Lease {
    let LeaseTerms { job, tenant, priority, items, created_ms, .. } = &*lease.terms;
    let plan = |((number, item), valid): ((u32, &Item), &ValidPlan)| v1::LeasedPlan {
        original: item.original_key().plan_id(),
        current: valid.plan.clone(),
        is_replanning: is_replanning(number),
        error: valid.error.clone().map(operation_error),
        survivors: valid.survivors(item.ranks),
        faults: valid.faults.clone(),
    };
    v1::Lease {
        name: lease.name(),
        job: job.clone(),
        topology: lease.base().map(|key| id_of(&key)).unwrap_or_default(),
        plans: (0..).zip(items).zip(&lease.state.items).map(plan).collect(),
        priority: *priority,
        create_time: Some(timestamp(clock::shown_ms(*created_ms))),
        expire_time: Some(timestamp(clock::shown_ms(lease.state.expire_ms))),
        tenant: tenant.clone(),
    }
}
