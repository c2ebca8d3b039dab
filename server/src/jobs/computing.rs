//! Computations of calls that no job makes: bounds, orders of machines, groups of jobs and the like.
//!
//! Each runs on threads of its own, a few of them at a time. The others stand still where they ask whether anybody
//! waits
//! for their answer: tenants take turns by their weights, as they do in the queue, but for slices of a computation, so
//! that a short call does not wait for the end of long ones. What a computation takes is charged while it runs, and its
//! memory is part of the memory of planning.
//!
//! A computation that nobody waits for ends where it asks next.

mod seat;

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use canopy_planner::chain;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::sync::oneshot;

use self::seat::SLICE;
pub(crate) use self::seat::Seat;
use super::queue::{Queue, Turns};
use super::threads::{panic_text, step_back};
use crate::call::{self, CallContext};
use crate::clock;
use crate::failure::{CallFailure, PlanFailure};
use crate::quota::Bill;
use crate::reading::STACK_BYTES;

/// Fewest computations that go on at once, and the most.
const PLACES_MIN: usize = 2;
const PLACES_MAX: usize = 8;
/// Most threads of one computation.
const THREADS_MAX: usize = 4;
/// Most computations that have begun, of one tenant and of all, but for the first of each: they hold memory, whether
/// they go
/// on or stand still.
const BEGUN_OF_TENANT_MAX: usize = 8;
const BEGUN_MAX: usize = 64;
/// Most computations that wait to begin, of one tenant.
const WAITING_MAX: usize = 1024;

/// Where calls compute; clones share it.
#[derive(Clone)]
pub(crate) struct Computing(Arc<Shared>);

struct Shared {
    places: usize,
    threads: usize,
    /// Whether computations go behind other threads of the process.
    steps_back: bool,
    /// Whose memory computations take a part of.
    queue: Queue,
    state: Mutex<State>,
    /// A computation may go on, or is to end.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of the latest place in the line.
    number: u64,
    /// No more computations, and those that have begun end.
    is_over: bool,
    turns: Turns,
    /// Computations that go on, and those that have begun.
    going_on: usize,
    begun: usize,
    begun_of: HashMap<String, usize>,
    /// Computations that wait to begin or to go on, by their places in the line.
    waiting: BTreeMap<u64, Waiting>,
    /// Threads without a computation.
    idle: Vec<ThreadPool>,
}

/// A computation that waits.
struct Waiting {
    seat: Arc<Seat>,
    /// What it begins with; none if it has begun.
    work: Option<Work>,
}

type Work = Box<dyn FnOnce(&Seat) + Send>;

/// A call that waits for its computation; dropping this ends it.
struct Caller {
    computing: Computing,
    seat: Arc<Seat>,
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.seat.leave();
        let mut state = self.computing.0.state.lock();
        let is_own = |waiting: &Waiting| Arc::ptr_eq(&waiting.seat, &self.seat) && waiting.work.is_some();
        let unbegun: Vec<(u64, Waiting)> = state.waiting.extract_if(.., |_, waiting| is_own(waiting)).collect();
        self.computing.0.changed.notify_all();
        drop(state);
        // What it holds may take time to be dropped.
        drop(unbegun);
    }
}

impl Computing {
    /// Computations within the memory of this queue; in a server beside whose calls nothing else matters, they do not
    /// step back.
    pub(crate) fn new(queue: Queue, steps_back: bool) -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self::with(queue, steps_back, processors.clamp(PLACES_MIN, PLACES_MAX), processors.min(THREADS_MAX))
    }

    fn with(queue: Queue, steps_back: bool, places: usize, threads: usize) -> Self {
        let shared = Shared { places, threads, steps_back, queue, state: Mutex::default(), changed: Condvar::new() };
        Self(Arc::new(shared))
    }

    /// Computes for the present call, in the turn of its tenant, until `end`. Dropping the future ends the computation.
    ///
    /// # Errors
    /// Those of the work; too many wait, or the server ends.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        end: Instant,
        work: impl FnOnce(&Seat) -> Result<T, CallFailure> + Send + 'static,
    ) -> Result<T, CallFailure> {
        let (sender, answer) = oneshot::channel();
        let context = CallContext::current();
        let runtime = tokio::runtime::Handle::current();
        let caller = self.enter(call::bill(), end, move |seat| {
            let done = {
                let _in_call = context.as_ref().map(CallContext::enter);
                let _in_runtime = runtime.enter();
                catch_unwind(AssertUnwindSafe(|| work(seat)))
            };
            let panicked = |panic: Box<dyn Any + Send>| {
                Err(CallFailure::Broken { what: format!("a computation panicked: {}", panic_text(panic.as_ref())) })
            };
            // That there was no room is the reason, whatever the work made of it.
            let done = match (done.unwrap_or_else(panicked), seat.refusal()) {
                (Err(_), Some(refusal)) => Err(refusal.into()),
                (done, _) => done,
            };
            // Its place is free by the time that its caller goes on.
            seat.finish();
            let _gone = sender.send(done);
        })?;
        let answered = answer.await;
        drop(caller);
        answered.unwrap_or_else(|_| Err(PlanFailure::Draining.into()))
    }

    /// Puts a computation in line.
    fn enter(
        &self,
        bill: Option<Bill>,
        end: Instant,
        work: impl FnOnce(&Seat) + Send + 'static,
    ) -> Result<Caller, PlanFailure> {
        let mut state = self.0.state.lock();
        if state.is_over {
            return Err(PlanFailure::Draining);
        }
        let tenant = bill.as_ref().map_or("", Bill::tenant);
        let of_tenant = state.waiting.values().filter(|waiting| waiting.seat.tenant() == tenant);
        let waiting = of_tenant.filter(|waiting| waiting.work.is_some()).count();
        if waiting >= WAITING_MAX {
            return Err(PlanFailure::QueueFull { waiting, limit: WAITING_MAX });
        }
        let seat = Seat::new(self.clone(), bill, end);
        state.stand_in_line(Arc::clone(&seat), Some(Box::new(work)));
        self.go_on(&mut state);
        Ok(Caller { computing: self.clone(), seat })
    }

    /// Ends all computations, and takes no more.
    pub(crate) fn abort(&self) {
        let mut state = self.0.state.lock();
        state.is_over = true;
        // Those that wait to begin have nobody to tell why but their callers, who see that they are gone.
        let waiting = std::mem::take(&mut state.waiting);
        let (unbegun, begun) = waiting.into_iter().partition(|(_, waiting)| waiting.work.is_some());
        let _dropped: BTreeMap<u64, Waiting> = unbegun;
        state.waiting = begun;
        self.0.changed.notify_all();
    }

    /// Waits until no computation runs, for so long at most; whether that is so.
    pub(crate) fn wait_until_idle(&self, patience: Duration) -> bool {
        let until = clock::now() + patience;
        let mut state = self.0.state.lock();
        while state.begun > 0 {
            if self.0.changed.wait_until(&mut state, until).timed_out() {
                return state.begun == 0;
            }
        }
        true
    }

    /// Has computations go on, or begin, for as long as there are places.
    fn go_on(&self, state: &mut MutexGuard<'_, State>) {
        while state.going_on < self.0.places {
            let Some(number) = state.next() else { return };
            let Some(Waiting { seat, work }) = state.waiting.remove(&number) else { return };
            state.going_on += 1;
            state.turns.begin(seat.tenant(), seat.weight(), SLICE);
            seat.goes_on(clock::now());
            match work {
                None => {
                    self.0.changed.notify_all();
                }
                Some(work) => self.begin(state, seat, work),
            }
        }
    }

    /// Begins a computation on threads of its own.
    fn begin(&self, state: &mut MutexGuard<'_, State>, seat: Arc<Seat>, work: Work) {
        state.begun += 1;
        *state.begun_of.entry(seat.tenant().to_owned()).or_default() += 1;
        let pool = match state.idle.pop().map_or_else(|| self.threads(), Ok) {
            Ok(pool) => Arc::new(pool),
            Err(error) => {
                tracing::error!(error = chain(&error), "threads for a computation cannot be started");
                // Its caller hears that its computation was dropped.
                drop(work);
                self.leave(state, &seat);
                return;
            }
        };
        let (computing, own) = (self.clone(), Arc::clone(&pool));
        pool.spawn(move || {
            work(&seat);
            computing.keep(own);
        });
    }

    fn threads(&self) -> Result<ThreadPool, rayon::ThreadPoolBuildError> {
        let steps_back = self.0.steps_back;
        let threads = ThreadPoolBuilder::new().num_threads(self.0.threads).stack_size(STACK_BYTES);
        let threads = threads.thread_name(|number| format!("canopy-call-{number}")).start_handler(move |_| {
            if steps_back {
                step_back();
            }
        });
        threads.build()
    }

    /// Keeps threads for the next computation, if there are not enough of them.
    fn keep(&self, pool: Arc<ThreadPool>) {
        let Some(pool) = Arc::into_inner(pool) else { return };
        let mut state = self.0.state.lock();
        if state.idle.len() < self.0.places && !state.is_over {
            state.idle.push(pool);
        }
    }

    /// A computation that had begun has ended.
    fn leave(&self, state: &mut MutexGuard<'_, State>, seat: &Seat) {
        state.give_up_place(seat);
        state.waiting.retain(|_, waiting| !std::ptr::eq(&*waiting.seat, seat));
        state.begun -= 1;
        if let Some(count) = state.begun_of.get_mut(seat.tenant()) {
            *count -= 1;
            if *count == 0 {
                state.begun_of.remove(seat.tenant());
            }
        }
        self.0.changed.notify_all();
    }
}

impl State {
    /// Puts a computation at the end of the line.
    fn stand_in_line(&mut self, seat: Arc<Seat>, work: Option<Work>) {
        self.number += 1;
        self.waiting.insert(self.number, Waiting { seat, work });
    }

    /// The computation whose turn it is: of the tenant that had least, the one that has waited longest.
    fn next(&self) -> Option<u64> {
        let begun_of = |tenant: &str| self.begun_of.get(tenant).copied().unwrap_or(0);
        // Each tenant may have one, however many others have.
        let may_begin = |tenant: &str| match begun_of(tenant) {
            0 => true,
            begun => begun < BEGUN_OF_TENANT_MAX && self.begun < BEGUN_MAX,
        };
        let is_ready = |waiting: &Waiting| waiting.work.is_none() || may_begin(waiting.seat.tenant());
        let ready = self.waiting.iter().filter(|(_, waiting)| is_ready(waiting));
        let place = |(number, waiting): &(&u64, &Waiting)| (self.turns.of(waiting.seat.tenant()), **number);
        ready.min_by_key(place).map(|(number, _)| *number)
    }

    /// A computation stands still from now on, or has ended.
    fn give_up_place(&mut self, seat: &Seat) {
        if let Some(took) = seat.stands_still(clock::now()) {
            self.going_on -= 1;
            self.turns.end(seat.tenant(), seat.weight(), SLICE, took);
        }
    }
}
