//! What becomes of running jobs when something breaks: books of faults, leases on plans, and plans that take the place of others.
//!
//! ```text
//! reports ─▶ books ──(what counts has changed)──▶ for each lease on the topology: does its plan cross it?
//!                                                    │ yes                      │ no, or it is gone
//!                                                    ▼                          ▼
//!                                     docket: by priority, once per window    the plan stays, or comes back from the cache
//!                                                    │
//!                                                    ▼
//!                      cache ─ hit ─▶ event          queue: a plan that stands in ─▶ event, the one asked for ─▶ event
//! ```
//! An event is on the disk before anybody is told, and before the lease says the same.

mod bases;
mod books;
mod course;
mod docket;
mod events;
mod footprint;
mod foresight;
mod leases;
mod options;
mod scribe;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use canopy_faults::{Directory, Loss};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet, spawn_blocking};
use tokio::time;

pub(crate) use self::bases::{Base, Bases};
pub(crate) use self::books::{Books, Entered, ReportError, SYSTEM_CLOCK};
use self::course::Course;
use self::docket::{Docket, Seat};
pub(crate) use self::events::{EventLog, EventOptions, Expired};
pub(crate) use self::footprint::LinkSet;
use self::foresight::Foresight;
pub(crate) use self::leases::{Deed, Item, Lease, LeaseError, LeaseOptions, Leases, Standing, Valid, number_of};
pub use self::options::ReplanOptions;
use crate::clock;
use crate::drain::DrainHandle;
use crate::failure::chain;
use crate::key::PlanKey;
use crate::metrics::Metrics;
use crate::planner::Planner;
use crate::queue::Queue;
use crate::store::{Records, Store, StoreError};
use crate::tasks;
use crate::topologies::Shelf;

/// Seats whose plans are made at once; the queue decides what of it runs.
const AT_ONCE: usize = 16;
/// How long after a failure that may pass a seat is tried again.
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
    shelf: Shelf,
    bases: Bases,
    books: Books,
    leases: Leases,
    events: EventLog,
    /// Shortest time between two plans anew for one seat.
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
}

/// What is known of seats beyond what is written down, and who is in line.
struct State {
    /// By the time of [`Shared::elapsed_ms`], as nobody sets that clock.
    docket: Docket,
    seats: HashMap<Seat, Known>,
    /// By topology and plan: the links of it that the plans of seats are on.
    links: HashMap<(PlanKey, String), Arc<LinkSet>>,
    running: usize,
    /// Topologies whose leases are to be looked at.
    stirred: Vec<PlanKey>,
    /// When figures were last shown.
    shown_ms: Option<u64>,
}

/// What is known of the plan that is valid in a seat.
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

impl fmt::Debug for Replanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replanner").field("leases", &self.shared.leases).finish_non_exhaustive()
    }
}

/// What a seat needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// Its plan stays.
    Nothing,
    /// A plan for what counts now.
    Plan,
}

impl Replanner {
    /// Reads what is kept, and makes the leases say what the events say of them.
    ///
    /// # Errors
    /// The engine failed.
    pub(crate) fn open(
        spaces: ReplanSpaces,
        (queue, planner, records, shelf, bases): (Queue, Arc<dyn Planner>, Records, Shelf, Bases),
        metrics: Metrics,
        options: &ReplanOptions,
    ) -> Result<Self, StoreError> {
        let books = Books::open(spaces.faults, options.policy(), SYSTEM_CLOCK)?;
        let leases = Leases::open(spaces.leases, LeaseOptions::STANDARD)?;
        let events = EventLog::open(spaces.replans, EventOptions::STANDARD)?;
        course::catch_up(&leases, &events);
        let state = State {
            docket: Docket::new(options.pace()),
            seats: HashMap::new(),
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
            shelf,
            bases,
            books,
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
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    pub(crate) fn bases(&self) -> &Bases {
        &self.shared.bases
    }

    pub(crate) fn books(&self) -> &Books {
        &self.shared.books
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
        self.shared.lock().stirred.push(base);
        self.shared.stir.notify_one();
    }

    /// Whether another plan is being made for a seat, or will be.
    pub(crate) fn is_replanning(&self, lease: u64, item: u32) -> bool {
        let state = self.shared.lock();
        state.docket.contains((lease, item))
            || state.seats.get(&(lease, item)).is_some_and(|known| known.running.is_some())
    }

    /// Leases whose plans cross what counts as broken or slow in a topology, or have until now.
    pub(crate) fn concerned(&self, key: &PlanKey, base: &Base) -> usize {
        let count = self.shared.books.count(key);
        let losses = count.map(|count| count.losses).unwrap_or_default();
        let touched = touched(base, &losses);
        self.shared.leases.concerned(key, |links| touched.meets_bytes(links)).len()
    }

    /// Makes plans anew until the server drains. What is not done then is begun again by its successor.
    pub(crate) async fn run(self, drain: DrainHandle) {
        // They end with this task.
        let mut courses = JoinSet::new();
        let scribe = tasks::spawn("scribe", scribe::run(Arc::clone(&self.shared), drain.clone()));
        let ahead = self
            .shared
            .plans_ahead
            .then(|| tasks::spawn("foresight", Foresight::default().run(Arc::clone(&self.shared), drain.clone())));
        loop {
            let shared = Arc::clone(&self.shared);
            // May read topologies from the disk.
            let looked = spawn_blocking(move || shared.look()).await;
            let wake = looked.unwrap_or_else(|error| {
                tracing::error!(%error, "leases could not be looked at");
                None
            });
            while let Some(course) = self.shared.begin() {
                let shared = Arc::clone(&self.shared);
                let seat = course.seat();
                let occupied = Occupied { shared: Arc::clone(&shared), seat, ended: course.ended() };
                let begun = courses.spawn(async move {
                    // The seat is free whatever becomes of it.
                    let _seat = occupied;
                    course.run(&shared).await;
                });
                if let Some(Running { abort, .. }) =
                    self.shared.lock().seats.get_mut(&seat).and_then(|known| known.running.as_mut())
                {
                    *abort = Some(begun);
                }
            }
            while courses.try_join_next().is_some() {}
            let (now, elapsed) = (self.shared.leases.now_ms(), self.shared.elapsed_ms());
            let docket = self.shared.lock().docket.next_wake(elapsed);
            let waits = [wake.map(|wake| wake.saturating_sub(now)), docket.map(|wake| wake.saturating_sub(elapsed))];
            let wait = waits.into_iter().flatten().min().map(Duration::from_millis);
            let wait = wait.unwrap_or(LOOK_INTERVAL).clamp(Duration::from_millis(5), LOOK_INTERVAL);
            tokio::select! {
                _stirred = time::timeout(wait, self.shared.stir.notified()) => {}
                () = drain.started() => break,
            }
        }
        courses.shutdown().await;
        // Both look at the drain before all else.
        let _ended = scribe.join().await;
        if let Some(ahead) = ahead {
            let _ended = ahead.join().await;
        }
    }
}

/// A seat whose plan is being made; dropping it frees the seat.
struct Occupied {
    shared: Arc<Shared>,
    seat: Seat,
    /// Tells what the course has begun on other threads.
    ended: Arc<AtomicBool>,
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let mut state = self.shared.lock();
        state.running = state.running.saturating_sub(1);
        if let Some(known) = state.seats.get_mut(&self.seat) {
            known.running = None;
        }
        // What counts may be other things by now.
        if let Some(base) = self.shared.leases.get(self.seat.0).and_then(|lease| lease.base()) {
            state.stirred.push(base);
        }
        drop(state);
        self.shared.stir.notify_one();
    }
}

impl Shared {
    /// Lets the time of the books pass, and puts in line who needs another plan. Returns when to look again.
    fn look(&self) -> Option<u64> {
        let (mut bases, wake) = self.books.tick();
        if !bases.is_empty() {
            self.unwritten.notify_one();
        }
        bases.append(&mut self.lock().stirred);
        bases.sort_unstable();
        bases.dedup();
        for key in bases {
            match self.bases.get(&key) {
                Ok(Some(base)) => self.look_at(&key, &base),
                // It was deleted: nothing can be planned on it.
                Ok(None) => tracing::error!(topology = %key, "leases are on a topology that is not stored any more"),
                Err(error) => tracing::error!(topology = %key, error = chain(&error), "a topology could not be read"),
            }
        }
        self.forget_the_released();
        self.show();
        wake
    }

    /// Puts those in line whose plans on a topology do not do any more. O(plans held on it · links / 8 + leases concerned + seats).
    fn look_at(&self, key: &PlanKey, base: &Base) {
        let losses = self.books.count(key).map(|count| count.losses).unwrap_or_default();
        let all = Counting { losses: &losses, touched: touched(base, &losses), digest: course::digest(&losses) };
        let (mut added, now) = (HashMap::new(), self.elapsed_ms());
        let mut numbers = self.leases.concerned(key, |links| all.touched.meets_bytes(links));
        {
            // Those whose plan is made for what counts no more are concerned as well.
            let state = self.lock();
            numbers.extend(state.docket.seats().chain(state.seats.keys()).map(|(number, _)| number));
        }
        let concerned = numbers.into_iter().filter_map(|number| self.leases.get(number));
        for lease in concerned.filter(|lease| lease.base().as_ref() == Some(key)) {
            for ((number, item), valid) in (0..).zip(&lease.deed.items).zip(&lease.standing.items) {
                let seat = (lease.deed.number, number);
                let known = self.lock().seats.get(&seat).cloned().unwrap_or_default();
                if let Some(running) = &known.running {
                    // It has had its time, and its plan would be for what does not count any more.
                    if running.digest != all.digest && running.begun_ms.saturating_add(self.window_ms) <= now {
                        running.abort.iter().for_each(AbortHandle::abort);
                    }
                    continue;
                }
                match all.need(base, item, valid, &known, &mut added) {
                    Need::Nothing => self.lock().docket.strike(seat),
                    Need::Plan => self.lock().docket.enter(seat, lease.priority(), 0),
                }
            }
        }
    }

    /// Whether nothing is to be done but to think ahead.
    fn is_calm(&self) -> bool {
        let state = self.lock();
        let is_idle = state.running == 0 && state.docket.len() == 0;
        drop(state);
        is_idle && self.queue.searches() == 0
    }

    /// Shows figures, at most once in a second: counting takes a look at all faults.
    fn show(&self) {
        let (now, mut state) = (self.elapsed_ms(), self.lock());
        if state.shown_ms.is_some_and(|shown| now < shown.saturating_add(SHOW_INTERVAL_MS)) {
            return;
        }
        state.shown_ms = Some(now);
        let waiting = state.docket.len();
        drop(state);
        let (active, held_back) = self.books.totals();
        self.metrics.set("canopy_faults_active", &[], active as f64);
        self.metrics.count_is("canopy_fault_flaps_suppressed_total", &[], held_back);
        self.metrics.set("canopy_leases_active", &[], self.leases.len() as f64);
        self.metrics.set("canopy_replans_waiting", &[], waiting as f64);
    }

    /// Leases that are gone want no plans.
    fn forget_the_released(&self) {
        let mut state = self.lock();
        let State { docket, seats, links, .. } = &mut *state;
        let is_held = |seat: &Seat| self.leases.get(seat.0).is_some();
        let gone: Vec<Seat> = docket.seats().filter(|seat| !is_held(seat)).copied().collect();
        gone.into_iter().for_each(|seat| docket.strike(seat));
        let mut vain = Vec::new();
        seats.retain(|seat, known| {
            let stays = is_held(seat);
            let running = known.running.iter();
            vain.extend(running.filter(|_| !stays).filter_map(|running| running.abort.clone()));
            stays || known.running.is_some()
        });
        links.retain(|_, links| Arc::strong_count(links) > 1);
        drop(state);
        vain.iter().for_each(AbortHandle::abort);
    }

    /// The next seat that may have its plan made anew.
    fn begin(&self) -> Option<Course> {
        loop {
            let mut state = self.lock();
            if state.running >= AT_ONCE {
                return None;
            }
            let begun_ms = self.elapsed_ms();
            let seat = state.docket.next(begun_ms)?;
            let Some(lease) = self.leases.get(seat.0) else { continue };
            let Some(base) = lease.base() else { continue };
            let course = Course::new(lease, seat.1, self.books.count(&base), self.leases.now_ms());
            state.running += 1;
            state.seats.entry(seat).or_default().running =
                Some(Running { digest: course.digest(), begun_ms, abort: None });
            return Some(course);
        }
    }

    /// Time since the start in milliseconds.
    fn elapsed_ms(&self) -> u64 {
        u64::try_from(clock::now().duration_since(self.begun).as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What counts as broken or slow in a topology.
struct Counting<'a> {
    losses: &'a [Loss],
    touched: LinkSet,
    digest: leases::Avoided,
}

impl Counting<'_> {
    /// What a seat needs. `added`: by what plans avoid, the links touched by what counts beside it.
    fn need(
        &self,
        base: &Base,
        item: &Item,
        valid: &Valid,
        known: &Known,
        added: &mut HashMap<Vec<u8>, Option<LinkSet>>,
    ) -> Need {
        if !self.touched.meets_bytes(&item.links) {
            // The original does: it stays, or comes back.
            return if valid.avoided.is_empty() { Need::Nothing } else { Need::Plan };
        }
        if valid.avoided == self.digest {
            return if valid.is_provisional { Need::Plan } else { Need::Nothing };
        }
        if valid.avoided.is_empty() || valid.plan.is_empty() {
            return Need::Plan;
        }
        let Some((_, links)) = known.links.as_ref().filter(|(plan, _)| *plan == valid.plan) else { return Need::Plan };
        let beside = added.entry(valid.avoided.clone()).or_insert_with(|| {
            let avoided: Vec<Loss> = valid.faults.iter().map(|text| text.parse()).collect::<Result<_, _>>().ok()?;
            let still = avoided.iter().all(|loss| self.losses.binary_search(loss).is_ok());
            let is_whole = course::digest(&avoided).as_slice() == valid.avoided;
            let new: Vec<Loss> =
                self.losses.iter().filter(|loss| avoided.binary_search(loss).is_err()).cloned().collect();
            (still && is_whole).then(|| touched(base, &new))
        });
        match beside {
            Some(beside) if !beside.meets(links) => Need::Nothing,
            _ => Need::Plan,
        }
    }
}

/// The links that losses touch. All of them are known to mean something on this topology.
fn touched(base: &Base, losses: &[Loss]) -> LinkSet {
    match Directory::new(base.topology()).resolve(losses) {
        Ok(faults) => LinkSet::touched(base, &faults),
        Err(error) => {
            tracing::error!(error = chain(&error), "a fault in the book means nothing on its topology");
            LinkSet::all(base)
        }
    }
}
