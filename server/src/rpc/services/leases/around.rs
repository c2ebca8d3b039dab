//! The first plan of a lease where known faults are on the way of the plan for the healthy network: one around them.

use std::sync::Arc;
use std::time::Duration;

use canopy_planner::{Request as Order, RequestKey};
use canopy_topology::Topology;
use canopy_wire::Priority;
use tokio::runtime::Handle;
use tokio::time::{self, Instant};

use super::LeasesService;
use crate::failure::{CallFailure, PlanFailure};
use crate::jobs::job::{Delivery, Goal, Terms, Worker};
use crate::jobs::stand_in::{OnMiss, StandIn};
use crate::replan::{Base, Count, LinkSet, ValidPlan};

/// Longest time that an acquisition waits for a plan around faults: one that needs no search is there in a fraction of it.
const FIRST_PLAN_MAX: Duration = Duration::from_secs(10);
/// How long a provisional plan waits for the one that is wanted, which often takes no longer.
const GRACE: Duration = Duration::from_millis(20);

/// How plans of leases are asked for.
const TERMS: Terms = Terms { priority: Priority::Repair, detached: false, worker: Worker::Planner };

/// A plan, and whether a better one may follow for the same faults.
struct First {
    delivery: Delivery,
    is_provisional: bool,
}

impl LeasesService {
    /// The plan for an order, where it is cached.
    pub(super) fn cached(&self, runtime: &Handle, order: &Order) -> Result<Delivery, Arc<PlanFailure>> {
        let mut lookup = self.queue.submit(RequestKey::of(order), order.clone(), Goal::Lookup, TERMS)?;
        runtime.block_on(lookup.ended())
    }

    /// Which links a plan for the healthy network is on; one that is not cached may be on all of its part, and is made in the
    /// background, as it is wanted once the faults are over.
    pub(super) fn links(&self, base: &Base, (part, order): (&Topology, &Order), found: Option<&Delivery>) -> LinkSet {
        match found {
            Some(found) => LinkSet::projected(base, part, &found.plan.plan.links_used),
            None => {
                let terms = Terms { priority: Priority::Prefetch, detached: true, worker: Worker::Planner };
                // Without room for it now, it is made when it is needed.
                let _later = self.queue.submit(RequestKey::of(order), order.clone(), Goal::Plan, terms);
                LinkSet::projected(base, part, &vec![0xff; part.links().len().div_ceil(8)])
            }
        }
    }

    /// The plan that is valid first: one around the faults that count, from the cache or made now.
    pub(super) fn around(
        &self,
        runtime: &Handle,
        order: &Order,
        (count, ranks): (&Count, u32),
    ) -> Result<ValidPlan, CallFailure> {
        let order = Order { faults: count.losses.to_vec(), ..order.clone() };
        let found = match self.cached(runtime, &order) {
            Ok(delivery) => Ok(First { delivery, is_provisional: false }),
            Err(failure) if matches!(*failure, PlanFailure::NotCached) => runtime.block_on(self.made(order)),
            Err(failure) => Err(failure),
        };
        let failed = |failure| CallFailure::AroundFaults { failure, faults: canopy_wire::in_words(&count.losses) };
        let First { delivery, is_provisional } = found.map_err(failed)?;
        let survivors = delivery.puncture.as_ref().map(|puncture| puncture.survivor_numbers()).unwrap_or_default();
        Ok(ValidPlan::around(&count.losses, delivery.plan.plan.name.clone(), &survivors, ranks, is_provisional))
    }

    /// Has a plan made, and takes one that needs no search if that is there much sooner.
    async fn made(&self, order: Order) -> Result<First, Arc<PlanFailure>> {
        let limit = Instant::now() + FIRST_PLAN_MAX;
        let late = || {
            let deadline_ms = u64::try_from(FIRST_PLAN_MAX.as_millis()).unwrap_or(u64::MAX);
            Arc::new(PlanFailure::Deadline { deadline_ms, stage: "synthesis".into(), operation: None })
        };
        let last = |delivery| First { delivery, is_provisional: false };
        let mut wanted = self.queue.submit(RequestKey::of(&order), order.clone(), Goal::Plan, TERMS)?;
        let stand_in = StandIn::submit(&self.queue, &order, (OnMiss::Fallback, Priority::Repair, FIRST_PLAN_MAX));
        let Some(mut stand_in) = stand_in else {
            return time::timeout_at(limit, wanted.ended()).await.unwrap_or_else(|_| Err(late())).map(last);
        };
        let early = tokio::select! {
            biased;
            outcome = wanted.ended() => match outcome {
                Err(failure) if failure.may_be_stood_in() => stand_in.delivery(limit).await.ok_or(failure),
                outcome => return outcome.map(last),
            },
            found = stand_in.delivery(limit) => found.ok_or_else(late),
        };
        // None of those that need no search has come, or the one that is wanted comes with them.
        let patience = if early.is_ok() { Instant::now() + GRACE } else { limit };
        match time::timeout_at(patience, wanted.ended()).await {
            Ok(Ok(delivery)) => Ok(last(delivery)),
            Ok(Err(failure)) => early.map_err(|_| failure).map(|delivery| First { delivery, is_provisional: true }),
            Err(_) => early.map(|delivery| First { delivery, is_provisional: true }),
        }
    }
}
