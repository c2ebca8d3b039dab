//! Plans for faults that have not happened: of what jobs run on, one element at a time, the most harmful first, while nothing else
//! is to be done.
//!
//! Faults that are alike leave networks of one shape, and what is kept for a shape serves all of them: one of each kind is planned for.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use canopy_canonical::{Budget, WORK_SERVED};
use canopy_faults::{Directory, Loss, Remaining, SingleKind, singles};
use canopy_synth::{Stop, bound};
use canopy_topology::Rate;
use tokio::task::spawn_blocking;
use tokio::time;

use super::Shared;
use super::course::order_for;
use super::leases::{Lease, key_from};
use crate::clock;
use crate::drain::DrainHandle;
use crate::job::{Goal, Terms, Worker};
use crate::key::{PlanKey, RequestKey};
use crate::order::{Order, Priority};
use crate::planner::Prepared;

/// How long nothing else must have been there to do before anything is planned ahead.
const CALM: Duration = Duration::from_secs(2);
/// Most faults that are planned for ahead of each plan that is held.
const FAULTS_MAX: usize = 64;
/// Longest time for one of these plans; what takes longer is left for when it is needed.
const SEARCH_MAX: Duration = Duration::from_secs(60);
/// Most plans whose faults are remembered to have been planned for.
const DONE_MAX: usize = 4096;
/// Ranks from which on harm is not weighed: their bounds take long themselves.
const WEIGHED_RANKS_MAX: u32 = 512;

/// What has been planned for ahead.
#[derive(Default)]
pub(super) struct Foresight {
    /// By plan held: faults that are still to be planned for, the most harmful last.
    ahead: BTreeMap<PlanKey, Vec<Loss>>,
    done: HashSet<PlanKey>,
}

impl Foresight {
    /// Plans ahead as long as the server runs and has nothing else to do.
    pub(super) async fn run(mut self, shared: Arc<Shared>, drain: DrainHandle) {
        while !drain.is_draining() {
            tokio::select! {
                () = drain.started() => return,
                () = time::sleep(CALM) => {}
            }
            while shared.is_calm() {
                let step = self.step(&shared);
                let went_on = tokio::select! {
                    () = drain.started() => return,
                    went_on = step => went_on,
                };
                if !went_on {
                    break;
                }
            }
        }
    }

    /// Plans for one fault; false: there is none left.
    async fn step(&mut self, shared: &Arc<Shared>) -> bool {
        if self.ahead.is_empty() {
            self.look_for_more(shared).await;
        }
        let Some(mut entry) = self.ahead.first_entry() else { return false };
        let plan = *entry.key();
        let Some(loss) = entry.get_mut().pop() else {
            entry.remove();
            self.done.insert(plan);
            return true;
        };
        let held = shared.leases.select(|lease| items_of(lease, &plan).next().is_some());
        let Some((lease, item)) = held.first().and_then(|lease| Some((lease, items_of(lease, &plan).next()?))) else {
            self.ahead.remove(&plan);
            return true;
        };
        let (reader, lease) = (Arc::clone(shared), lease.clone());
        let order = spawn_blocking(move || order_for(&reader, &lease, item, &[loss])).await;
        if let Ok(Ok((order, false))) = order {
            make(shared, order).await;
        }
        true
    }

    /// Takes up the plans of leases that nothing was planned ahead of yet.
    async fn look_for_more(&mut self, shared: &Arc<Shared>) {
        if self.done.len() > DONE_MAX {
            self.done.clear();
        }
        let known: BTreeSet<PlanKey> = self.done.iter().copied().collect();
        let shared = Arc::clone(shared);
        let found = spawn_blocking(move || {
            let leases = shared.leases.select(|_| true);
            let new = leases.into_iter().find_map(|lease| {
                let (item, plan) = (0..).zip(&lease.deed.items).find_map(|(number, item)| {
                    let plan = key_from(&item.original)?;
                    (!known.contains(&plan)).then_some((number, plan))
                })?;
                Some((lease, item, plan))
            });
            let (lease, item, plan) = new?;
            Some((plan, ranked(&shared, &lease, item).unwrap_or_default()))
        });
        if let Ok(Some((plan, losses))) = found.await {
            self.ahead.insert(plan, losses);
        }
    }
}

/// Which items of a lease hold this plan.
fn items_of<'a>(lease: &'a Lease, plan: &'a PlanKey) -> impl Iterator<Item = u32> + use<'a> {
    let items = (0..).zip(&lease.deed.items);
    items.filter(|(_, item)| key_from(&item.original).as_ref() == Some(plan)).map(|(number, _)| number)
}

/// Single faults on the way of a plan, one of each kind that is alike, the most harmful last.
fn ranked(shared: &Arc<Shared>, lease: &Lease, item: u32) -> Option<Vec<Loss>> {
    let base = shared.bases.get(&lease.base()?).ok().flatten()?;
    let held = lease.deed.items.get(item as usize)?;
    let directory = Directory::new(base.topology());
    let kinds = [SingleKind::Link, SingleKind::Nic, SingleKind::Gpu];
    let alike = singles(&directory, &kinds, &[], Budget { work_max: WORK_SERVED, stop: &|| false }).ok()?;
    let losses = alike.into_iter().filter_map(|alike| {
        let target = alike.targets.into_iter().next()?;
        let loss = Loss { target, remaining: Remaining::GONE };
        super::touched(&base, std::slice::from_ref(&loss)).meets_bytes(&held.links).then_some(loss)
    });
    let mut losses: Vec<Loss> = losses.take(FAULTS_MAX).collect();
    if base.topology().rank_count() <= WEIGHED_RANKS_MAX {
        let (order, _) = order_for(shared, lease, item, &[]).ok()?;
        let harm = |loss: &Loss| harm(shared, &order, loss);
        let mut weighed: Vec<_> = losses.into_iter().map(|loss| (harm(&loss), loss)).collect();
        // What leaves no plan at all has nothing that could be kept.
        weighed.retain(|(left, _)| left.is_some());
        weighed.sort_by(|(a, _), (b, _)| b.cmp(a));
        losses = weighed.into_iter().map(|(_, loss)| loss).collect();
    } else {
        losses.reverse();
    }
    Some(losses)
}

/// The bound that a fault leaves; none: no plan is possible, or that is not known.
fn harm(shared: &Arc<Shared>, order: &Order, loss: &Loss) -> Option<Rate> {
    let order = Order { faults: vec![loss.clone()], ..order.clone() };
    let Prepared { topology, collective, shares, .. } = shared.planner.prepare(&order, &canopy_synth::Never).ok()?;
    bound(&topology, collective, &shares, &Patience::new()).ok().map(|bound| bound.upper)
}

/// Gives up after a while.
struct Patience(Instant);

impl Patience {
    fn new() -> Self {
        Self(clock::now())
    }
}

impl Stop for Patience {
    fn is_requested(&self) -> bool {
        clock::now().duration_since(self.0) > Duration::from_secs(5)
    }
}

/// Has a plan made, unless that takes long or something else is to be done.
async fn make(shared: &Arc<Shared>, order: Order) {
    let terms = Terms { priority: Priority::Prefetch, detached: false, worker: Worker::Planner };
    let Ok(mut job) = shared.queue.submit(RequestKey::of(&order), order, Goal::Plan, terms) else { return };
    let others = async {
        // Its own job is one of those that run.
        while shared.jobs() <= 1 {
            time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        _outcome = time::timeout(SEARCH_MAX, job.ended()) => {}
        () = others => {}
    }
}
