//! The plan that is sent when the one that was asked for does not come.
//!
//! There is one of `direct`, which needs next to no time. Who takes the best so far gets better ones while the search goes
//! on: the same order with a tolerance, a large one first. Each is a plan of its own, the same whenever it is asked
//! for; only which of them is sent is a matter of time.

use std::time::Duration;

use canopy_synth::Tolerance;
use canopy_topology::Ratio;
use tokio::sync::watch;
use tokio::time::{self, Instant};

use super::decode::OnMiss;
use crate::job::{Delivery, Goal, JobState, Terms, Worker};
use crate::key::RequestKey;
use crate::order::{Order, Priority};
use crate::queue::{Queue, Subscription};

/// Parts of the best rate that better and better plans may lack. What lies between takes about as long as the last.
const RUNGS: [(u32, u32); 2] = [(1, 4), (1, 64)];

/// Of the time that a call has, the part after which better plans than `direct` are begun: most searches have ended by
/// then, and nothing was begun in vain.
const PATIENCE: u32 = 20;

/// Jobs beside the one that makes the plan. They end with the call, unless others want their plans.
#[derive(Debug)]
pub(crate) struct StandIn {
    /// Of an algorithm that needs next to no time.
    quick: Subscription,
    /// Better ones, for who wants the best so far.
    ladder: Option<Ladder>,
}

/// Plans within smaller and smaller tolerances, one after the other.
#[derive(Debug)]
struct Ladder {
    queue: Queue,
    /// Orders, the quickest first, and what their plans reach at least.
    rungs: Vec<(Order, Ratio)>,
    priority: Priority,
    begins: Instant,
    best: Option<Delivery>,
    /// What the best reaches, in bytes per second; empty while there is none.
    rate: watch::Sender<String>,
}

impl StandIn {
    /// Puts the first job in line, before everything that can wait. None: the caller wants no such plan, there is no
    /// quicker one, or there is no room; what was asked for may come all the same.
    pub(crate) fn submit(
        queue: &Queue,
        order: &Order,
        (on_miss, priority, work): (OnMiss, Priority, Duration),
    ) -> Option<Self> {
        if on_miss == OnMiss::Fail {
            return None;
        }
        let quick = order.stand_in()?;
        // Quick, and of use only if it is there when it is needed.
        let terms = Terms { priority: Priority::Repair, detached: false, worker: Worker::Planner };
        let quick = queue.submit(RequestKey::of(&quick), quick, Goal::Plan, terms).ok()?;
        let ladder = (on_miss == OnMiss::BestSoFar).then(|| Ladder {
            queue: queue.clone(),
            rungs: RUNGS.into_iter().filter_map(|part| rung(order, part)).collect(),
            priority,
            begins: Instant::now() + work / PATIENCE,
            best: None,
            rate: watch::Sender::default(),
        });
        Some(Self { quick, ladder })
    }

    /// The rate of the best plan so far, as it changes; none where only one is made.
    pub(crate) fn incumbent(&self) -> Option<watch::Receiver<String>> {
        self.ladder.as_ref().map(|ladder| ladder.rate.subscribe())
    }

    /// Has better and better plans made, until there is none left to make.
    pub(crate) async fn improve(&mut self) {
        if let Some(ladder) = &mut self.ladder {
            time::sleep_until(ladder.begins).await;
            ladder.climb(&self.quick).await;
        }
    }

    /// The same without waiting for a search that has ended, as far as time goes.
    pub(crate) async fn improve_by(&mut self, limit: Instant) {
        if let Some(ladder) = &mut self.ladder {
            let _in_time = time::timeout_at(limit, ladder.climb(&self.quick)).await;
        }
    }

    /// The best plan that is there, or else comes by `limit`.
    pub(crate) async fn delivery(&mut self, limit: Instant) -> Option<Delivery> {
        let best = self.ladder.as_mut().and_then(|ladder| ladder.best.take());
        let limit = if best.is_some() { Instant::now() } else { limit };
        // Where the limit has passed already, this looks once.
        let quick = time::timeout_at(limit, plan_of(&mut self.quick)).await.ok().flatten();
        match (best, quick) {
            (Some(best), Some(quick)) => Some(if optimality(&quick) > optimality(&best) { quick } else { best }),
            (best, quick) => best.or(quick),
        }
    }
}

impl Ladder {
    /// Makes one plan after the other, but none that a plan at hand is sure to be as good as.
    async fn climb(&mut self, quick: &Subscription) {
        while !self.rungs.is_empty() {
            let (order, least) = self.rungs.remove(0);
            let reached = match &*quick.state.borrow() {
                JobState::Done(Ok(quick)) => optimality(quick),
                JobState::Done(Err(_)) | JobState::Working(_) => None,
            };
            if reached.max(self.best.as_ref().and_then(optimality)).is_some_and(|known| known >= least) {
                continue;
            }
            let terms = Terms { priority: self.priority, detached: false, worker: Worker::Beside };
            let Ok(mut job) = self.queue.submit(RequestKey::of(&order), order, Goal::Plan, terms) else { return };
            let Some(delivery) = plan_of(&mut job).await else { continue };
            if self.best.as_ref().is_none_or(|best| optimality(&delivery) > optimality(best)) {
                let quality = delivery.plan.plan.quality.as_ref();
                self.rate.send_replace(quality.map(|quality| quality.achieved.clone()).unwrap_or_default());
                self.best = Some(delivery);
            }
        }
    }
}

/// The same order within a tolerance, and what its plan reaches of the bound where the plan that was asked for reaches all
/// of it; `None` where that makes nothing quicker.
fn rung(order: &Order, (numerator, denominator): (u32, u32)) -> Option<(Order, Ratio)> {
    let tolerance = Tolerance::new(numerator, denominator)?;
    let wide = |known: Tolerance| {
        let (above, below) = known.parts();
        u64::from(above) * u64::from(denominator) >= u64::from(numerator) * u64::from(below)
    };
    let mut near = order.clone();
    near.limits.tolerance = Some(tolerance);
    let applies = near.limits.require_applicable(near.algorithm, near.kind).is_ok();
    let is_wider = order.limits.tolerance.is_some_and(wide);
    let least = Ratio::new(denominator - numerator, denominator)?;
    (applies && !is_wider).then_some((near, least))
}

/// The plan of a job that ends with one.
async fn plan_of(job: &mut Subscription) -> Option<Delivery> {
    match &*job.state.wait_for(|state| matches!(state, JobState::Done(_))).await.ok()? {
        JobState::Done(outcome) => outcome.clone().ok(),
        JobState::Working(_) => None,
    }
}

/// What a plan reaches of the bound.
fn optimality(delivery: &Delivery) -> Option<Ratio> {
    delivery.plan.plan.quality.as_ref()?.optimality.parse().ok()
}
