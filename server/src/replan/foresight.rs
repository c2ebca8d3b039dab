//! Plans for faults that have not happened: of what jobs run on, one element at a time, the most harmful first, while nothing else
//! is to be done.
//!
//! Faults that are alike leave networks of one shape, and what is kept for a shape serves all of them: one of each kind is planned for.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use canopy_canonical::{Budget, WORK_SERVED};
use canopy_faults::{Directory, Loss, Remaining, SingleKind, singles};
use canopy_synth::{Stop, bound};
use canopy_topology::Rate;
use tokio::task::spawn_blocking;
use tokio::time;

use super::Shared;
use super::bases::Base;
use super::course::order_for;
use super::leases::HeldKey;
use crate::clock;
use crate::drain::DrainHandle;
use crate::job::{Goal, Terms, Worker};
use crate::key::RequestKey;
use crate::order::{Order, Priority};
use crate::planner::Prepared;

/// How long nothing else must have been there to do before anything is planned ahead.
const CALM: Duration = Duration::from_secs(2);
/// How often is asked whether something else is to be done.
const GLANCE: Duration = Duration::from_millis(50);
/// Most faults that are planned for ahead of each plan that is held.
const FAULTS_MAX: usize = 64;
/// Longest time for one of these plans; what takes longer is left for when it is needed.
const SEARCH_MAX: Duration = Duration::from_secs(60);
/// Longest time in which the harm of one fault is weighed.
const WEIGHING_MAX: Duration = Duration::from_secs(5);
/// From so many on, plans that nobody holds any more are no longer remembered to have been planned for.
const DONE_MAX: usize = 4096;
/// Ranks from which on harm is not weighed: their bounds take long themselves.
const WEIGHED_RANKS_MAX: u32 = 512;

/// What has been planned for ahead.
#[derive(Default)]
pub(super) struct Foresight {
    ahead: Option<Ahead>,
    done: HashSet<HeldKey>,
    /// The size of `done` at which it is looked through.
    done_max: usize,
}

/// A plan that is held, and the faults that are still to be planned for.
struct Ahead {
    held: HeldKey,
    /// What was asked for, on the sound network.
    sound: Order,
    /// The most harmful last.
    losses: Vec<Loss>,
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

    /// Plans for one fault; false: there is none left, or something else is to be done.
    async fn step(&mut self, shared: &Arc<Shared>) -> bool {
        if self.ahead.is_none() {
            self.ahead = tokio::select! {
                found = self.look_for_more(shared) => found,
                () = others(shared, 0) => None,
            };
        }
        let Some(ahead) = &mut self.ahead else { return false };
        match ahead.losses.pop().filter(|_| shared.leases.holder(&ahead.held).is_some()) {
            Some(loss) => make(shared, Order { faults: vec![loss], ..ahead.sound.clone() }).await,
            None => {
                self.done.insert(ahead.held);
                self.ahead = None;
            }
        }
        true
    }

    /// Takes up the plan of a lease that nothing was planned ahead of yet.
    async fn look_for_more(&mut self, shared: &Arc<Shared>) -> Option<Ahead> {
        if self.done.len() >= self.done_max {
            self.done.retain(|held| shared.leases.holder(held).is_some());
            self.done_max = DONE_MAX.max(2 * self.done.len());
        }
        let (held, lease) = shared.leases.other_than(|held| self.done.contains(held))?;
        let item = (0..).zip(&lease.deed.items).find(|(_, item)| item.original_key() == held.plan);
        let (number, links) = item.map(|(number, item)| (number, item.links.clone()))?;
        let errand = Errand::default();
        let (stop, reader) = (errand.stop(), Arc::clone(shared));
        let found = spawn_blocking(move || {
            let base = reader.bases.get(&held.base).ok().flatten()?;
            let (sound, _) = order_for(&reader, &lease, number, &[]).ok()?;
            let losses = ranked(&reader, &base, &links, &sound, &stop);
            Some((sound, losses))
        });
        let found = found.await.ok().flatten();
        if found.is_none() {
            // It cannot be planned for, and will not be asked for again.
            self.done.insert(held);
        }
        found.map(|(sound, losses)| Ahead { held, sound, losses })
    }
}

/// Work on another thread, which is told to end when this is dropped.
#[derive(Default)]
struct Errand(Arc<AtomicBool>);

impl Errand {
    fn stop(&self) -> Recalled {
        Recalled { recalled: Arc::clone(&self.0), until: None }
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether an errand is of no use any more.
#[derive(Clone)]
struct Recalled {
    recalled: Arc<AtomicBool>,
    until: Option<Instant>,
}

impl Recalled {
    /// The same, and after a while in any case.
    fn within(&self, limit: Duration) -> Self {
        Self { until: Some(clock::now() + limit), ..self.clone() }
    }
}

impl Stop for Recalled {
    fn is_requested(&self) -> bool {
        self.recalled.load(Ordering::Relaxed) || self.until.is_some_and(|until| clock::now() > until)
    }
}

/// Single faults on the way of a plan that is on these links, one of each kind that is alike, the most harmful last.
fn ranked(shared: &Shared, base: &Base, links: &[u8], sound: &Order, stop: &Recalled) -> Vec<Loss> {
    let directory = Directory::new(base.topology());
    let kinds = [SingleKind::Link, SingleKind::Nic, SingleKind::Gpu];
    let budget = Budget { work_max: WORK_SERVED, stop: &|| stop.is_requested() };
    let Ok(alike) = singles(&directory, &kinds, &[], budget) else { return Vec::new() };
    let losses = alike.into_iter().filter_map(|alike| {
        let target = alike.targets.into_iter().next()?;
        let loss = Loss { target, remaining: Remaining::GONE };
        super::touched(base, std::slice::from_ref(&loss)).meets_bytes(links).then_some(loss)
    });
    let mut losses: Vec<Loss> = losses.take(FAULTS_MAX).collect();
    if base.topology().rank_count() > WEIGHED_RANKS_MAX {
        losses.reverse();
        return losses;
    }
    let mut weighed: Vec<_> = losses.into_iter().map(|loss| (harm(shared, sound, &loss, stop), loss)).collect();
    // What leaves no plan at all has nothing that could be kept.
    weighed.retain(|(left, _)| left.is_some());
    weighed.sort_by(|(a, _), (b, _)| b.cmp(a));
    weighed.into_iter().map(|(_, loss)| loss).collect()
}

/// The bound that a fault leaves; none: no plan is possible, or that is not known.
fn harm(shared: &Shared, sound: &Order, loss: &Loss, stop: &Recalled) -> Option<Rate> {
    let order = Order { faults: vec![loss.clone()], ..sound.clone() };
    let stop = stop.within(WEIGHING_MAX);
    let Prepared { topology, collective, shares, .. } = shared.planner.prepare(&order, &stop).ok()?;
    bound(&topology, collective, &shares, &stop).ok().map(|bound| bound.upper)
}

/// Has a plan made, unless that takes long or something else is to be done.
async fn make(shared: &Arc<Shared>, order: Order) {
    let terms = Terms { priority: Priority::Prefetch, detached: false, worker: Worker::Planner };
    let Ok(mut job) = shared.queue.submit(RequestKey::of(&order), order, Goal::Plan, terms) else { return };
    tokio::select! {
        _outcome = time::timeout(SEARCH_MAX, job.ended()) => {}
        () = others(shared, 1) => {}
    }
}

/// Waits until there are more jobs than one's own.
async fn others(shared: &Shared, own: usize) {
    while shared.jobs() <= own {
        time::sleep(GLANCE).await;
    }
}
