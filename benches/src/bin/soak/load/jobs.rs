//! Jobs with leases, and the faults of their networks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use canopy_proto::v1::{
    AcquireLeaseRequest, ClearFaultsRequest, FaultEvent, Lease, PlanSpec, ReleaseLeaseRequest, RenewLeaseRequest,
    ReportFaultsRequest, ReportOutcome,
};

use crate::caller::Caller;
use crate::ledger::Kind;
use crate::requests::{LEASED, expression, faults, leased};

/// Lifetime of leases that are renewed or released.
const LONG: i64 = 300;
/// Lifetime of leases that expire.
const SHORT: i64 = 1;
/// Tries to acquire a lease while its plan is removed again and again.
const TRIES: usize = 20;

/// What the load knows of its leases: shared with those that follow the events.
#[derive(Default)]
pub(crate) struct Leases(Mutex<Known>);

/// Leases by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Held to the end, with the plan that each began with.
    pub(crate) held: BTreeMap<String, String>,
    /// Left to expire.
    pub(crate) expiring: BTreeSet<String>,
    pub(crate) released: u64,
    /// Reports that changed which faults count.
    pub(crate) changes: u64,
    /// Reports with another outcome than the load expects.
    pub(crate) refused: Vec<String>,
}

impl Leases {
    fn note(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn known(&self) -> Known {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Acquires a lease on the plan of a network; makes the plan if it is not cached.
async fn acquire(caller: &mut Caller, network: usize, job: &str, seconds: i64) -> Option<Lease> {
    for _ in 0..TRIES {
        let wanted = PlanSpec { fault_policy: 0, ..leased(network) };
        let ttl = Some(prost_types::Duration { seconds, nanos: 0 });
        let (job, request_id) = (job.to_owned(), caller.request_id());
        let asked = AcquireLeaseRequest { job, specs: vec![wanted], ttl, request_id, ..AcquireLeaseRequest::default() };
        match caller.call(Kind::AcquireLease, caller.client.acquire_lease(asked, None)).await {
            Ok(lease) => return Some(lease),
            Err(reason) if reason == "PLAN_NOT_CACHED" => {
                // The plan of the healthy network is what a lease is on.
                let healthy = PlanSpec { fault_policy: 2, ..leased(network) };
                let call = caller.client.plan_metadata(healthy.into_plan(), None);
                let _noted = caller.call(Kind::PlanAroundFaults, call).await;
            }
            Err(_) => return None,
        }
    }
    None
}

/// Holds a lease from the start to the end, and renews it.
pub(super) async fn holder(mut caller: Caller, number: usize, leases: Arc<Leases>) {
    let network = number % LEASED.len();
    let Some(lease) = acquire(&mut caller, network, &format!("held-{number}"), LONG).await else { return };
    let began_with = lease.plans.first().map(|plan| plan.current.clone()).unwrap_or_default();
    leases.note(|known| _ = known.held.insert(lease.name.clone(), began_with));
    while !caller.is_over() {
        let pause = Duration::from_millis(caller.random.between(100, 1000) as u64);
        caller.pause(pause).await;
        let asked = RenewLeaseRequest { name: lease.name.clone(), ..RenewLeaseRequest::default() };
        let _noted = caller.call(Kind::RenewLease, caller.client.renew_lease(asked, None)).await;
    }
}

/// Acquires leases for a moment: most are released, some are left to expire.
pub(super) async fn passing(mut caller: Caller, number: usize, leases: Arc<Leases>) {
    for round in 0_u64.. {
        if caller.is_over() {
            return;
        }
        let network = caller.random.below(LEASED.len());
        let expires = caller.random.below(4) == 0;
        let job = format!("passing-{number}-{}", round % 100);
        let lease = acquire(&mut caller, network, &job, if expires { SHORT } else { LONG }).await;
        let Some(Lease { name, .. }) = lease else { continue };
        let pause = Duration::from_millis(caller.random.below(300) as u64);
        caller.pause(pause).await;
        if expires {
            leases.note(|known| _ = known.expiring.insert(name));
            continue;
        }
        let asked = ReleaseLeaseRequest { name, request_id: caller.request_id(), ..ReleaseLeaseRequest::default() };
        if caller.call(Kind::ReleaseLease, caller.client.release_lease(asked, None)).await.is_ok() {
            leases.note(|known| known.released += 1);
        }
    }
}

/// Breaks links of a leased network and heals them; sometimes an operator clears all of them.
pub(super) async fn faulty(mut caller: Caller, network: usize, leases: Arc<Leases>) {
    let elements = faults(network);
    let mut broken = vec![false; elements.len()];
    let mut topology = String::new();
    for number in 0_u64.. {
        if caller.is_over() {
            break;
        }
        if caller.random.below(20) == 0 && !topology.is_empty() {
            clear(&mut caller, &topology).await;
            broken.fill(false);
        }
        let index = caller.random.below(elements.len());
        broken[index] = !broken[index];
        let event = FaultEvent {
            source: "soak".to_owned(),
            event_id: format!("{network}-{number}"),
            fault: Some(elements[index].clone()),
            cleared: !broken[index],
            ..FaultEvent::default()
        };
        let topology_source = Some(expression(LEASED[network]));
        let asked = ReportFaultsRequest { topology: topology_source, events: vec![event], job: String::new() };
        if let Ok(reply) = caller.call(Kind::ReportFaults, caller.client.report_faults(asked, None)).await {
            topology = reply.topology;
            for outcome in reply.outcomes {
                leases.note(|known| match outcome.outcome() {
                    ReportOutcome::Applied => known.changes += 1,
                    ReportOutcome::Refused | ReportOutcome::Unspecified => known.refused.push(format!("{outcome:?}")),
                    _ => {}
                });
            }
        }
        let _noted =
            caller.call(Kind::PlanAroundFaults, caller.client.plan_metadata(leased(network).into_plan(), None)).await;
        let pause = Duration::from_millis(caller.random.between(50, 1500) as u64);
        caller.pause(pause).await;
    }
    if !topology.is_empty() {
        clear(&mut caller, &topology).await;
    }
}

async fn clear(caller: &mut Caller, topology: &str) {
    let (topology, request_id) = (topology.to_owned(), caller.request_id());
    let asked = ClearFaultsRequest { topology, request_id, ..ClearFaultsRequest::default() };
    let _noted = caller.call(Kind::ClearFaults, caller.client.clear_faults(asked, None)).await;
}
