//! Provisional plans: made before the requested one, and sent if that one is not ready in time.
//!
//! There is one of `direct`, which needs next to no time. Who takes the best so far gets better ones while the search goes
//! on: the same order with a large tolerance, one of `tacos`, and the same order with a small tolerance. Each is a plan of
//! its own, the same whenever it is asked for; only which of them is sent is a matter of time.

use std::time::Duration;

use canopy_planner::{Request as Order, RequestKey};
use canopy_schedule::CollectiveKind;
use canopy_synth::{Algorithm, SumOptions, Tolerance, TreeLimits};
use canopy_topology::Ratio;
use canopy_wire::Exact as _;
use canopy_wire::Priority;
use tokio::sync::watch;
use tokio::time::{self, Instant};

use crate::jobs::job::{Delivery, Goal, Terms, Worker};
use crate::jobs::queue::{Queue, Subscription};

/// What to do when the plan that was asked for is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OnMiss {
    /// Refuse.
    #[default]
    Fail,
    /// Answer with a plan that stands in.
    Fallback,
    /// The same, and accept a plan that is not good enough.
    BestSoFar,
}

/// Parts of the best rate that better and better plans may lack. What lies between takes about as long as the last.
const RUNGS: [(u32, u32); 2] = [(1, 4), (1, 64)];

/// Of the time that a call has, the part after which better plans than the quick ones are begun: most searches have ended
/// by then, and nothing was begun in vain.
const PATIENCE: u32 = 20;

/// The part of the time of a call that a plan in time may take.
const IN_TIME_SHARE: u32 = 4;

/// Jobs beside the one that makes the plan. They end with the call, unless others want their plans.
pub(crate) struct StandIn {
    /// Those that need next to no time.
    quick: Vec<Subscription>,
    /// Better ones, for who wants the best so far.
    ladder: Option<Ladder>,
    /// The best plan that is there, of which ever better ones take the place.
    best: watch::Sender<Option<Delivery>>,
}

/// Plans within smaller and smaller tolerances, and a plan in time, one after the other.
struct Ladder {
    queue: Queue,
    /// The quickest first.
    rungs: Vec<Rung>,
    priority: Priority,
    begins: Instant,
}

/// A better plan.
#[derive(Debug)]
struct Rung {
    order: Order,
    /// What its plan is taken to reach: a plan at hand that reaches as much makes it needless.
    least: Ratio,
    /// How long others wait for it.
    patience: Duration,
}

impl StandIn {
    /// Puts the quick jobs in line, before everything that can wait. None: the caller wants no such plan, there is no
    /// quicker one, or there is no room; what was asked for may come all the same.
    pub(crate) fn submit(
        queue: &Queue,
        order: &Order,
        (on_miss, priority, work): (OnMiss, Priority, Duration),
    ) -> Option<Self> {
        if on_miss == OnMiss::Fail {
            return None;
        }
        // Quick, and of use only if it is there when it is needed.
        let terms = Terms { priority: Priority::Repair, detached: false, worker: Worker::Planner };
        let submit = |quick: Order| queue.submit(RequestKey::of(&quick), quick, Goal::Plan, terms).ok();
        let quick: Vec<Subscription> = order.stand_ins().into_iter().filter_map(submit).collect();
        if quick.is_empty() {
            return None;
        }
        let ladder = (on_miss == OnMiss::BestSoFar).then(|| Ladder {
            queue: queue.clone(),
            rungs: rungs(order, work),
            priority,
            begins: Instant::now() + work / PATIENCE,
        });
        Some(Self { quick, ladder, best: watch::Sender::default() })
    }

    /// The best plan so far, as it changes: each reaches more than the one before.
    pub(crate) fn best(&self) -> watch::Receiver<Option<Delivery>> {
        self.best.subscribe()
    }

    /// Has better and better plans made, until there is none left to make.
    pub(crate) async fn improve(&mut self) {
        let Self { quick, ladder, best } = self;
        let climb = async {
            if let Some(ladder) = ladder {
                time::sleep_until(ladder.begins).await;
                ladder.climb(best).await;
            }
        };
        let end = async { while take_quick(quick, best).await {} };
        tokio::join!(end, climb);
    }

    /// The same without waiting for a search that has ended, as far as time goes.
    pub(crate) async fn improve_by(&mut self, limit: Instant) {
        self.take_those_that_are_there().await;
        if let Some(ladder) = &mut self.ladder {
            let _in_time = time::timeout_at(limit, ladder.climb(&self.best)).await;
        }
    }

    /// The best plan that is there, or else comes by `limit`.
    pub(crate) async fn delivery(&mut self, limit: Instant) -> Option<Delivery> {
        self.take_those_that_are_there().await;
        while self.best.borrow().is_none() {
            if time::timeout_at(limit, take_quick(&mut self.quick, &self.best)).await != Ok(true) {
                break;
            }
        }
        self.best.borrow().clone()
    }

    /// Takes the plans of quick jobs that have ended.
    async fn take_those_that_are_there(&mut self) {
        while time::timeout(Duration::ZERO, take_quick(&mut self.quick, &self.best)).await == Ok(true) {}
    }
}

/// Waits until one of the quick jobs has ended, and keeps its plan if it is the best; says whether there was one to wait for.
async fn take_quick(quick: &mut Vec<Subscription>, best: &watch::Sender<Option<Delivery>>) -> bool {
    let (ended, plan) = match &mut quick[..] {
        [] => return false,
        [only] => (0, only.ended().await.ok()),
        [first, second, ..] => tokio::select! {
            biased;
            outcome = first.ended() => (0, outcome.ok()),
            outcome = second.ended() => (1, outcome.ok()),
        },
    };
    quick.remove(ended);
    keep_better(best, plan);
    true
}

/// Replaces the best plan by one that reaches more.
fn keep_better(best: &watch::Sender<Option<Delivery>>, plan: Option<Delivery>) {
    best.send_if_modified(|best| {
        let is_better = plan.as_ref().map(optimality) > best.as_ref().map(optimality);
        if is_better {
            best.clone_from(&plan);
        }
        is_better
    });
}

impl Ladder {
    /// Makes one plan after the other, but none that a plan at hand is sure to be as good as.
    async fn climb(&mut self, best: &watch::Sender<Option<Delivery>>) {
        while !self.rungs.is_empty() {
            let Rung { order, least, patience } = self.rungs.remove(0);
            let reached = best.borrow().as_ref().and_then(optimality);
            if reached.is_some_and(|reached| reached >= least) {
                continue;
            }
            let terms = Terms { priority: self.priority, detached: false, worker: Worker::Beside };
            let Ok(mut job) = self.queue.submit(RequestKey::of(&order), order, Goal::Plan, terms) else { return };
            if let Ok(ended) = time::timeout(patience, job.ended()).await {
                keep_better(best, ended.ok());
            }
        }
    }
}

/// Better and better plans, for a call that has so much time.
fn rungs(order: &Order, work: Duration) -> Vec<Rung> {
    let promised = |(order, least)| Rung { order, least, patience: work };
    let mut rungs: Vec<Rung> = RUNGS.into_iter().filter_map(|part| rung(order, part)).map(promised).collect();
    // It promises nothing, comes after the first that does, and does not keep the second waiting for long.
    let in_time = in_time(order).map(|(order, least)| Rung { order, least, patience: work / IN_TIME_SHARE });
    let place = rungs.len().min(1);
    rungs.splice(place..place, in_time);
    rungs
}

/// The same order chunk by chunk in time, which promises nothing, and most often reaches nearly all of the bound in some part of
/// the time that trees take; `None` where blocks are for one rank each, of which there may be too many for that.
fn in_time(order: &Order) -> Option<(Order, Ratio)> {
    let is_copied = !matches!(order.kind, CollectiveKind::Gather | CollectiveKind::Scatter | CollectiveKind::AllToAll);
    let is_searched = order.algorithm.resolved(order.kind) == Algorithm::Forest;
    let (limits, sums) = (TreeLimits::NONE, SumOptions::AUTO);
    let near = Order { algorithm: Algorithm::Tacos, limits, sums, ..order.clone() };
    (is_copied && is_searched).then_some((near, Ratio::new(1_u32, 1_u32)?))
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

/// What a plan reaches of the bound.
fn optimality(delivery: &Delivery) -> Option<Ratio> {
    delivery.plan.plan.quality.as_ref()?.optimality.read()
}
