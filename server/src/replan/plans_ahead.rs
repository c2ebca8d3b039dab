//! Plans for faults that have not happened: of what jobs run on and of what operators have pinned, one element at a time, the most
//! harmful first, while nothing else is to be done.
//!
//! Faults that are alike leave networks of one shape, and what is kept for a shape serves all of them: one of each kind is planned for.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use canopy_canonical::{Budget, WORK_SERVED};
use canopy_faults::{Directory, Loss, Remaining, singles};
use canopy_planner::{PlanKey, Request as Order, RequestKey};
use canopy_service::asked;
use canopy_synth::{Stop, bound};
use canopy_topology::{FaultKind, Rate};
use canopy_wire::Priority;
use tokio::task::spawn_blocking;
use tokio::time;

use super::Shared;
use super::bases::Base;
use super::leases::{HeldKey, Lease};
use super::link_set::{LinkSet, touched};
use super::resynthesis::order_for;
use crate::clock;
use crate::drain::DrainHandle;
use crate::jobs::job::{Goal, Terms, Worker};
use crate::jobs::planner::Prepared;
use crate::reading::read_deeply;
use crate::store::Lookup;
use crate::store::topologies::id_of;

/// How long nothing else must have been there to do before anything is planned ahead.
const CALM: Duration = Duration::from_secs(2);
/// How often is asked whether something else is to be done.
const GLANCE: Duration = Duration::from_millis(50);
/// Most faults that are planned for ahead of each plan that is held.
const FAULTS_MAX: usize = 64;
/// Plans that are made at once where other servers take part.
const AT_ONCE: usize = 8;
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
pub(super) struct PlansAhead {
    ahead: Option<Ahead>,
    done: HashSet<Subject>,
    /// The size of `done` at which it is looked through.
    done_max: usize,
}

/// Whose faults are planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Subject {
    /// A plan that leases hold.
    Held(HeldKey),
    /// One that an operator has pinned.
    Pinned(PlanKey),
}

/// A plan whose single faults are still to be planned for.
struct Ahead {
    subject: Subject,
    /// What was asked for, on the sound network.
    sound: Order,
    /// The most harmful last.
    losses: Vec<Loss>,
}

impl PlansAhead {
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

    /// Plans for one fault, or for some at once where other servers take part; false: there is none left, or something else is to be
    /// done.
    async fn step(&mut self, shared: &Arc<Shared>) -> bool {
        if self.ahead.is_none() {
            self.ahead = tokio::select! {
                found = self.look_for_more(shared) => found,
                () = others(shared, 0) => None,
            };
        }
        let Some(ahead) = &mut self.ahead else { return false };
        let at_once = if shared.queue.table().is_some() { AT_ONCE } else { 1 };
        let rest = ahead.losses.len().saturating_sub(at_once);
        let losses = if is_held(shared, &ahead.subject) { ahead.losses.split_off(rest) } else { Vec::new() };
        if losses.is_empty() {
            self.done.insert(ahead.subject);
            self.ahead = None;
        } else {
            let orders = losses.into_iter().rev().map(|loss| Order { faults: vec![loss], ..ahead.sound.clone() });
            make(shared, orders.collect()).await;
        }
        true
    }

    /// Takes up a plan that nothing was planned ahead of yet: of leases, then of operators.
    async fn look_for_more(&mut self, shared: &Arc<Shared>) -> Option<Ahead> {
        if self.done.len() >= self.done_max {
            self.done.retain(|subject| is_held(shared, subject));
            self.done_max = DONE_MAX.max(2 * self.done.len());
        }
        loop {
            let held = shared.leases.other_than(|held| self.done.contains(&Subject::Held(*held)));
            let errand = Errand::default();
            let (stop, reader) = (errand.stop(), Arc::clone(shared));
            let (subject, found) = match held {
                Some((held, lease)) => {
                    let found = spawn_blocking(move || of_lease(&reader, &held, &lease, &stop)).await;
                    (Subject::Held(held), found)
                }
                None => {
                    let key = self.next_pinned(shared).await?;
                    (Subject::Pinned(key), spawn_blocking(move || of_pinned(&reader, &key, &stop)).await)
                }
            };
            match found.ok().flatten() {
                Some((sound, losses)) => return Some(Ahead { subject, sound, losses }),
                // It cannot be planned for, and is not looked at again.
                None => self.done.insert(subject),
            };
        }
    }

    /// A pinned plan of which nothing was planned ahead yet.
    async fn next_pinned(&self, shared: &Arc<Shared>) -> Option<PlanKey> {
        if shared.pinned_ahead == 0 {
            return None;
        }
        let reader = Arc::clone(shared);
        // The ledger is held while plans are written.
        let pinned = spawn_blocking(move || reader.records.pinned(reader.pinned_ahead)).await;
        pinned.ok()?.ok()?.into_iter().find(|key| !self.done.contains(&Subject::Pinned(*key)))
    }
}

/// Whether anybody still wants plans ahead of this one. What is pinned is taken to stay so.
fn is_held(shared: &Shared, subject: &Subject) -> bool {
    match subject {
        Subject::Held(held) => shared.leases.holder(held).is_some(),
        Subject::Pinned(_) => true,
    }
}

/// What was asked for where a lease holds a plan, and the faults to be planned for.
fn of_lease(shared: &Shared, held: &HeldKey, lease: &Lease, stop: &Recalled) -> Option<(Order, Vec<Loss>)> {
    let (number, item) = (0..).zip(&lease.terms.items).find(|(_, item)| item.original_key() == held.plan)?;
    let base = shared.bases.get(&held.base).ok().flatten()?;
    let (sound, _) = order_for(shared, lease, number, &[]).ok()?;
    let losses = ranked(shared, &base, &item.links, &sound, stop);
    Some((sound, losses))
}

/// The same of a pinned plan. None: it is not known what it was asked for by.
fn of_pinned(shared: &Shared, key: &PlanKey, stop: &Recalled) -> Option<(Order, Vec<Loss>)> {
    let summary = shared.records.summary(key).ok().flatten()?;
    let sound =
        asked::decode(&summary.asked, |key| shared.topologies.get(&id_of(key)).ok()?.map(|entry| entry.document))?;
    let Ok(Lookup::Found(stored)) = shared.records.peek(key) else { return None };
    let (topology, _) = read_deeply(&sound.topology, shared.bases.limits(), &|| stop.is_requested()).ok()?;
    let prepared = shared.planner.prepare(&sound, stop).ok()?;
    let base = Base::new(topology);
    let links = LinkSet::projected(&base, &prepared.topology, &stored.plan.links_used).into_bytes();
    let losses = ranked(shared, &base, &links, &sound, stop);
    Some((sound, losses))
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
    let kinds = [FaultKind::Links, FaultKind::Nics, FaultKind::Gpus];
    let budget = Budget { work_max: WORK_SERVED, stop: &|| stop.is_requested() };
    let Ok(alike) = singles(&directory, &kinds, &[], budget) else { return Vec::new() };
    let losses = alike.into_iter().filter_map(|alike| {
        let target = alike.targets.into_iter().next()?;
        let loss = Loss { target, remaining: Remaining::GONE };
        touched(base, std::slice::from_ref(&loss)).meets_bytes(links).then_some(loss)
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

/// Has plans made, unless that takes long or something else is to be done.
async fn make(shared: &Arc<Shared>, orders: Vec<Order>) {
    let terms = Terms { priority: Priority::Prefetch, detached: false, worker: Worker::Planner };
    let submit = |order: Order| shared.queue.submit(RequestKey::of(&order), order, Goal::Plan, terms).ok();
    let jobs: Vec<_> = orders.into_iter().filter_map(submit).collect();
    let own = jobs.len();
    let all = async {
        for mut job in jobs {
            let _outcome = time::timeout(SEARCH_MAX, job.ended()).await;
        }
    };
    tokio::select! {
        () = all => {}
        () = others(shared, own) => {}
    }
}

/// Waits until more is searched for than one's own. Whoever finds what is there takes no time worth speaking of.
async fn others(shared: &Shared, own: usize) {
    while shared.queue.searches() <= own && !shared.queue.is_wanted() {
        time::sleep(GLANCE).await;
    }
}
