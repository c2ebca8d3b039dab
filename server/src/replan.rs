//! Replanning for running jobs when something breaks: fault logs, leases on plans, and replacement plans.
//!
//! ```text
//! reports ─▶ fault logs ──(what counts has changed)──▶ for each lease on the topology: does its plan cross it?
//!                                                    │ yes                      │ no, or it is gone
//!                                                    ▼                          ▼
//!                                     queue: by priority, once per window    the plan stays, or comes back from the cache
//!                                                    │
//!                                                    ▼
//!                      cache ─ hit ─▶ event          queue: a plan that stands in ─▶ event, the one asked for ─▶ event
//! ```
//! An event is on the disk before anybody is told, and before the lease says the same.

mod bases;
mod concerned;
#[cfg(test)]
mod crashes;
mod event;
mod event_log;
mod fault_logs;
mod in_turn;
mod leases;
mod link_set;
mod network;
mod options;
#[cfg(test)]
mod others;
mod placed;
mod plans_ahead;
mod replan_queue;
mod resynthesis;
mod scope;
mod snapshot;
mod suspects;
mod write_behind;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use canopy_planner::{PlanKey, chain};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet, spawn_blocking};
use tokio::time;

use self::plans_ahead::PlansAhead;
use self::replan_queue::{HeldPlan, ReplanQueue};
use self::resynthesis::Resynthesis;
use crate::clock;
use crate::drain::DrainHandle;
use crate::jobs::planner::Planner;
use crate::jobs::queue::Queue;
use crate::metrics::Metrics;
use crate::store::topologies::TopologyStore;
use crate::store::{Records, Store, StoreError};
use crate::tasks;

pub(crate) use self::bases::{Base, Bases};
#[cfg(test)]
pub(crate) use self::event::whole_events;
pub(crate) use self::event::{Change, Event};
pub(crate) use self::event_log::{EventLog, EventOptions, Expired, START};
pub(crate) use self::fault_logs::{Count, Entered, FaultLogs, ReportError, SYSTEM_CLOCK};
pub(crate) use self::leases::{Item, Lease, LeaseOptions, LeaseState, LeaseTerms, Leases, ValidPlan, number_of};
pub(crate) use self::link_set::LinkSet;
pub(crate) use self::network::{Network, entry_by_host};
pub use self::options::ReplanOptions;
pub(crate) use self::placed::Placed;
pub(crate) use self::scope::{Audience, Scope};
pub(crate) use self::snapshot::Snapshot;

/// Seats whose plans are made at once; the queue decides what of it runs.
const AT_ONCE: usize = 16;
/// How long after a failure that may pass a held plan is tried again.
const RETRY_MS: u64 = 1000;
/// Longest time between two looks at what has expired.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Shortest time between two shows of figures.
const SHOW_INTERVAL_MS: u64 = 1000;
/// Most faults of a plan that are written down with its lease, and told.
const FAULTS_NOTED_MAX: usize = 64;

/// The spaces of the store that replanning keeps its things in.
pub(crate) struct ReplanSpaces {
    pub(crate) faults: Arc<dyn Store>,
    pub(crate) leases: Arc<dyn Store>,
    pub(crate) replans: Arc<dyn Store>,
}

/// Watches over leases. Clones share it.
#[derive(Clone)]
pub(crate) struct Replanner {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Queue,
    planner: Arc<dyn Planner>,
    records: Records,
    topologies: TopologyStore,
    bases: Bases,
    fault_logs: FaultLogs,
    leases: Leases,
    events: EventLog,
    /// Shortest time between two plans anew for one held plan.
    window_ms: u64,
    plans_ahead: bool,
    pinned_ahead: usize,
    metrics: Metrics,
    state: Mutex<State>,
    /// Something may have to be done.
    stir: Notify,
    /// Something is to be written down that nobody waits for.
    unwritten: Notify,
    begun: Instant,
    /// The last attempt to learn what other servers have acknowledged, and why that is not known, if it is not.
    learned: Mutex<(u64, Option<String>)>,
}

/// What is known of held plans beyond what is written down, and who is in line.
struct State {
    /// By the time of [`Shared::elapsed_ms`], as nobody sets that clock.
    replan_queue: ReplanQueue,
    held_plans: HashMap<HeldPlan, Known>,
    /// By topology and plan: the links of it that the plans of held plans are on.
    links: HashMap<(PlanKey, String), Arc<LinkSet>>,
    running: usize,
    /// Topologies whose leases are to be looked at.
    stirred: Vec<PlanKey>,
    /// When figures were last shown.
    shown_ms: Option<u64>,
}

/// What is known of the plan that is valid in a held plan.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Of a plan that is not the original: its id, and the links that it is on.
    links: Option<(String, Arc<LinkSet>)>,
    /// The making of another one.
    running: Option<Running>,
}

/// A plan that is being made.
#[derive(Clone, Debug)]
struct Running {
    /// What counted when it began.
    digest: leases::Avoided,
    /// By [`Shared::elapsed_ms`].
    begun_ms: u64,
    abort: Option<AbortHandle>,
}

impl Replanner {
    /// Reads what is kept, and makes the leases say what the events say of them.
    ///
    /// # Errors
    /// The engine failed.
    pub(crate) fn open(
        spaces: ReplanSpaces,
        (queue, planner, records, topologies, bases): (Queue, Arc<dyn Planner>, Records, TopologyStore, Bases),
        metrics: Metrics,
        options: &ReplanOptions,
    ) -> Result<Self, StoreError> {
        let fault_logs = FaultLogs::open(spaces.faults, options.policy(), SYSTEM_CLOCK)?;
        let leases = Leases::open(spaces.leases, LeaseOptions::STANDARD)?;
        let events = EventLog::open(spaces.replans, EventOptions::STANDARD)?;
        let told = leases.clone();
        events.when_heard(move |event| resynthesis::apply(&told, event));
        resynthesis::catch_up(&leases, &events)?;
        let state = State {
            replan_queue: ReplanQueue::new(options.pace()),
            held_plans: HashMap::new(),
            links: HashMap::new(),
            running: 0,
            stirred: leases.bases(),
            shown_ms: None,
        };
        let (state, stir, unwritten, begun) = (Mutex::new(state), Notify::new(), Notify::new(), clock::now());
        let window_ms = options.pace().window_ms;
        let &ReplanOptions { plans_ahead, pinned_ahead, .. } = options;
        let shared = Shared {
            queue,
            planner,
            records,
            topologies,
            bases,
            fault_logs,
            leases,
            events,
            window_ms,
            plans_ahead,
            pinned_ahead,
            metrics,
            state,
            stir,
            unwritten,
            begun,
            learned: Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    pub(crate) fn bases(&self) -> &Bases {
        &self.shared.bases
    }

    pub(crate) fn fault_logs(&self) -> &FaultLogs {
        &self.shared.fault_logs
    }

    pub(crate) fn leases(&self) -> &Leases {
        &self.shared.leases
    }

    pub(crate) fn events(&self) -> &EventLog {
        &self.shared.events
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Has the leases on a topology looked at soon.
    pub(crate) fn stir(&self, base: PlanKey) {
        self.shared.state.lock().stirred.push(base);
        self.shared.stir.notify_one();
    }

    /// Has the leases looked at soon that scopes matter to in which other things count.
    pub(crate) fn stir_changed(&self) {
        self.shared.stir.notify_one();
    }

    /// Learns what other servers have changed, and has looked at soon what that matters to.
    ///
    /// # Errors
    /// The engine failed.
    pub(crate) fn follow(&self) -> Result<(), StoreError> {
        self.shared.leases.follow_others()?;
        self.shared.fault_logs.follow()?;
        self.shared.events.follow()?;
        self.stir_changed();
        Ok(())
    }

    /// Notes whether it is known what all servers had acknowledged when the attempt of this number to learn it began; else
    /// why not.
    pub(crate) fn note_learned(&self, attempt: u64, trouble: Option<String>) {
        let mut learned = self.shared.learned.lock();
        if attempt >= learned.0 {
            *learned = (attempt, trouble);
        }
    }

    /// Why it is not known what other servers have acknowledged, if that could not be learned last.
    pub(crate) fn unlearned(&self) -> Option<String> {
        self.shared.learned.lock().1.clone()
    }

    /// Whether another plan is being made for a held plan, or will be.
    pub(crate) fn is_replanning(&self, lease: u64, item: u32) -> bool {
        let state = self.shared.state.lock();
        state.replan_queue.contains((lease, item))
            || state.held_plans.get(&(lease, item)).is_some_and(|known| known.running.is_some())
    }

    /// Number of leases that some scopes matter to, and whose plans cross what counts as broken or slow, or have until now.
    pub(crate) fn concerned(&self, scopes: &[Scope]) -> usize {
        self.shared.concerned(scopes).len()
    }

    /// Number of leases on a topology whose requests place its ranks on machines that it does not name.
    pub(crate) fn placed_on(&self, key: &PlanKey, base: &Arc<Base>) -> usize {
        let held = self.shared.leases.held_on(key);
        let placed = held
            .iter()
            .filter(|held| Network::new(*key, Arc::clone(base), held.placed.as_ref(), Audience::Everyone).is_placed());
        self.shared.leases.holding(key, placed.map(|held| &held.plan)).len()
    }

    /// Makes plans anew until the server drains. What is not done then is begun again by its successor.
    pub(crate) async fn run(self, drain: DrainHandle) {
        // They end with this task.
        let mut running = JoinSet::new();
        let writer = tasks::spawn("writer", write_behind::run(Arc::clone(&self.shared), drain.clone()));
        let ahead = self
            .shared
            .plans_ahead
            .then(|| tasks::spawn("plans_ahead", PlansAhead::default().run(Arc::clone(&self.shared), drain.clone())));
        loop {
            let shared = Arc::clone(&self.shared);
            // May read topologies from the disk.
            let looked = spawn_blocking(move || shared.look()).await;
            let wake = looked.unwrap_or_else(|error| {
                tracing::error!(%error, "leases could not be read");
                None
            });
            while let Some(resynthesis) = begun(&self.shared).await {
                let shared = Arc::clone(&self.shared);
                let held_plan = resynthesis.held_plan();
                let occupied = Occupied { shared: Arc::clone(&shared), held_plan, ended: resynthesis.ended() };
                let begun = running.spawn(async move {
                    // The held plan is free whatever becomes of it.
                    let _seat = occupied;
                    resynthesis.run(&shared).await;
                });
                if let Some(Running { abort, .. }) =
                    self.shared.state.lock().held_plans.get_mut(&held_plan).and_then(|known| known.running.as_mut())
                {
                    *abort = Some(begun);
                }
            }
            while running.try_join_next().is_some() {}
            let (now, elapsed) = (self.shared.leases.now_ms(), self.shared.elapsed_ms());
            let replan_queue = self.shared.state.lock().replan_queue.next_wake(elapsed);
            let waits =
                [wake.map(|wake| wake.saturating_sub(now)), replan_queue.map(|wake| wake.saturating_sub(elapsed))];
            let wait = waits.into_iter().flatten().min().map(Duration::from_millis);
            let wait = wait.unwrap_or(LOOK_INTERVAL).clamp(Duration::from_millis(5), LOOK_INTERVAL);
            tokio::select! {
                _stirred = time::timeout(wait, self.shared.stir.notified()) => {}
                () = drain.started() => break,
            }
        }
        running.shutdown().await;
        // Both look at the drain before all else.
        let _ended = writer.join().await;
        if let Some(ahead) = ahead {
            let _ended = ahead.join().await;
        }
    }
}

/// The next held plan that may have its plan made anew. What counts for it may take a moment to find out.
async fn begun(shared: &Arc<Shared>) -> Option<Resynthesis> {
    let shared = Arc::clone(shared);
    let begun = spawn_blocking(move || shared.begin()).await;
    begun.unwrap_or_else(|error| {
        tracing::error!(%error, "a plan could not be started");
        None
    })
}

/// A held plan whose plan is being made; dropping it frees the held plan.
struct Occupied {
    shared: Arc<Shared>,
    held_plan: HeldPlan,
    /// Tells what the resynthesis has begun on other threads.
    ended: Arc<AtomicBool>,
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let mut state = self.shared.state.lock();
        state.running = state.running.saturating_sub(1);
        if let Some(known) = state.held_plans.get_mut(&self.held_plan) {
            known.running = None;
        }
        // What counts may be other things by now.
        if let Some(base) = self.shared.leases.get(self.held_plan.0).and_then(|lease| lease.base()) {
            state.stirred.push(base);
        }
        drop(state);
        self.shared.stir.notify_one();
    }
}

impl Shared {
    /// Lets the time of the fault logs pass, and puts in line who needs another plan. Returns when to look again.
    fn look(&self) -> Option<u64> {
        clock::observe();
        let (changed, wake) = self.fault_logs.tick();
        if !changed.is_empty() {
            self.unwritten.notify_one();
        }
        let mut bases = self.bases_of(&changed);
        bases.append(&mut self.state.lock().stirred);
        bases.sort_unstable();
        bases.dedup();
        for key in bases {
            match self.bases.get(&key) {
                Ok(Some(base)) => self.look_at(&key, &base),
                // It was deleted: nothing can be planned on it.
                Ok(None) => tracing::error!(topology = %key, "leases refer to a topology that is no longer stored"),
                Err(error) => tracing::error!(topology = %key, error = chain(&error), "a topology could not be read"),
            }
        }
        self.forget_the_released();
        self.show();
        wake
    }

    /// Whether nothing is to be done but to think ahead.
    fn is_calm(&self) -> bool {
        let state = self.state.lock();
        let is_idle = state.running == 0 && state.replan_queue.len() == 0;
        drop(state);
        is_idle && self.queue.searches() == 0 && !self.queue.is_wanted()
    }

    /// Shows figures, at most once in a second: counting takes a look at all faults.
    fn show(&self) {
        let (now, mut state) = (self.elapsed_ms(), self.state.lock());
        if state.shown_ms.is_some_and(|shown| now < shown.saturating_add(SHOW_INTERVAL_MS)) {
            return;
        }
        state.shown_ms = Some(now);
        let waiting = state.replan_queue.len();
        drop(state);
        let (active, held_back) = self.fault_logs.totals();
        for (kind, count) in active {
            self.metrics.set("canopy_faults_active", &[("kind", kind.into())], count as f64);
        }
        self.metrics.count_is("canopy_fault_flaps_suppressed_total", &[], held_back);
        self.metrics.set("canopy_leases_active", &[], self.leases.len() as f64);
        self.metrics.set("canopy_replans_waiting", &[], waiting as f64);
    }

    /// Leases that are gone want no plans.
    fn forget_the_released(&self) {
        let mut state = self.state.lock();
        let State { replan_queue, held_plans, links, .. } = &mut *state;
        let is_held = |held_plan: &HeldPlan| self.leases.get(held_plan.0).is_some();
        let gone: Vec<HeldPlan> = replan_queue.held_plans().filter(|held_plan| !is_held(held_plan)).copied().collect();
        gone.into_iter().for_each(|held_plan| replan_queue.strike(held_plan));
        let mut vain = Vec::new();
        held_plans.retain(|held_plan, known| {
            let stays = is_held(held_plan);
            let running = known.running.iter();
            vain.extend(running.filter(|_| !stays).filter_map(|running| running.abort.clone()));
            stays || known.running.is_some()
        });
        links.retain(|_, links| Arc::strong_count(links) > 1);
        drop(state);
        vain.iter().for_each(AbortHandle::abort);
    }

    /// The next held plan that may have its plan made anew.
    fn begin(&self) -> Option<Resynthesis> {
        loop {
            let mut state = self.state.lock();
            if state.running >= AT_ONCE {
                return None;
            }
            let begun_ms = self.elapsed_ms();
            let held_plan = state.replan_queue.next(begun_ms)?;
            state.running += 1;
            let running = Running { digest: [0; 32], begun_ms, abort: None };
            state.held_plans.entry(held_plan).or_default().running = Some(running);
            drop(state);
            let resynthesis = self.leases.get(held_plan.0).map(|lease| {
                let count = self.count_for(&lease, held_plan.1);
                Resynthesis::new(lease, held_plan.1, count, self.leases.now_ms())
            });
            let mut state = self.state.lock();
            let Some(resynthesis) = resynthesis else {
                state.running = state.running.saturating_sub(1);
                state.held_plans.remove(&held_plan);
                continue;
            };
            if let Some(running) = state.held_plans.get_mut(&held_plan).and_then(|known| known.running.as_mut()) {
                running.digest = resynthesis.digest();
            }
            return Some(resynthesis);
        }
    }

    /// What counts for a plan of a lease; none: the topology cannot be read.
    fn count_for(&self, lease: &Lease, item: u32) -> Option<Count> {
        let key = lease.base()?;
        let item = lease.terms.items.get(item as usize)?;
        let base = self.bases.get(&key).ok().flatten()?;
        let placed = self.leases.placed(&key, &item.original_key());
        Some(Network::new(key, base, placed.as_ref(), lease.audience()).count(&self.fault_logs))
    }

    /// Time since the start in milliseconds.
    fn elapsed_ms(&self) -> u64 {
        u64::try_from(clock::now().duration_since(self.begun).as_millis()).unwrap_or(u64::MAX)
    }
}
