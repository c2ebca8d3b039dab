//! One computation: whether it goes on, what it has been charged for, and the memory that it holds.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use canopy_optimize::Stop;
use canopy_training::job::Room;
use parking_lot::{Mutex, MutexGuard};

use super::{Computing, State};
use crate::clock;
use crate::failure::PlanFailure;
use crate::quota::Bill;

/// Time that a computation goes on before others have their turn.
pub(super) const SLICE: Duration = Duration::from_millis(50);
/// Time between two looks at whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Memory up to which a computation does not wait for that of others, and is not counted.
const SMALL_BYTES: u64 = 16 << 20;
/// Time between two questions for memory that others hold.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// A computation.
pub(crate) struct Seat {
    me: Weak<Self>,
    computing: Computing,
    bill: Option<Bill>,
    /// When its caller has no use for an answer any more.
    end: Instant,
    is_left: AtomicBool,
    /// Whether it goes on, for its own threads, which look here first.
    goes_on: AtomicBool,
    /// When to look next, in nanoseconds since `begun`.
    next_look: AtomicU64,
    begun: Instant,
    times: Mutex<Times>,
    memory: Mutex<Memory>,
}

/// When it went on last.
struct Times {
    /// None: it stands still.
    slice: Option<Instant>,
    /// Up to when it has been charged, if it goes on.
    charged: Instant,
}

#[derive(Default)]
struct Memory {
    /// What it takes, and what of it is counted in the memory of planning.
    needed: u64,
    counted: u64,
    refusal: Option<PlanFailure>,
}

impl Seat {
    pub(super) fn new(computing: Computing, bill: Option<Bill>, end: Instant) -> Arc<Self> {
        let now = clock::now();
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            computing,
            bill,
            end,
            is_left: AtomicBool::new(false),
            goes_on: AtomicBool::new(false),
            next_look: AtomicU64::new(0),
            begun: now,
            times: Mutex::new(Times { slice: None, charged: now }),
            memory: Mutex::default(),
        })
    }

    pub(super) fn tenant(&self) -> &str {
        self.bill.as_ref().map_or("", Bill::tenant)
    }

    pub(super) fn weight(&self) -> u64 {
        self.bill.as_ref().map_or(1, Bill::weight)
    }

    /// Its caller has gone.
    pub(super) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    /// It goes on from now on.
    pub(super) fn goes_on(&self, now: Instant) {
        *self.times.lock() = Times { slice: Some(now), charged: now };
        self.goes_on.store(true, Ordering::Relaxed);
    }

    /// It stands still from now on; how long it went on, if it did.
    pub(super) fn stands_still(&self, now: Instant) -> Option<Duration> {
        self.charge(now);
        self.goes_on.store(false, Ordering::Relaxed);
        self.times.lock().slice.take().map(|since| now.duration_since(since))
    }

    /// Charges the time since the last charge, if it goes on.
    fn charge(&self, now: Instant) {
        let mut times = self.times.lock();
        if let (Some(bill), Some(_)) = (&self.bill, times.slice) {
            bill.charge_planning(now.saturating_duration_since(times.charged));
        }
        times.charged = now;
    }

    /// Whether it is to end. Where it is not its turn, this returns when it is.
    pub(crate) fn is_over(&self) -> bool {
        if self.is_left.load(Ordering::Relaxed) {
            return true;
        }
        let now = clock::now();
        let since = u64::try_from(now.saturating_duration_since(self.begun).as_nanos()).unwrap_or(u64::MAX);
        if self.goes_on.load(Ordering::Relaxed) && since < self.next_look.load(Ordering::Relaxed) {
            return now >= self.end;
        }
        let next = since.saturating_add(u64::try_from(LOOK_EVERY.as_nanos()).unwrap_or(u64::MAX));
        self.next_look.store(next, Ordering::Relaxed);
        self.charge(now);
        self.stands_in_line(now)
    }

    /// Gives its place to those whose turn it is, and waits for its own. Returns whether it is to end.
    fn stands_in_line(&self, now: Instant) -> bool {
        let shared = &self.computing.0;
        let mut state = shared.state.lock();
        let slice = self.times.lock().slice;
        if slice.is_some_and(|since| now.saturating_duration_since(since) >= SLICE) && !state.waiting.is_empty() {
            state.give_up_place(self);
            self.wait_for_turn(&mut state);
        }
        loop {
            let now = clock::now();
            if state.is_over || self.is_left.load(Ordering::Relaxed) || now >= self.end {
                return true;
            }
            if self.goes_on.load(Ordering::Relaxed) {
                return false;
            }
            let _awake = shared.changed.wait_until(&mut state, self.end);
        }
    }

    /// Puts it at the end of the line.
    fn wait_for_turn(&self, state: &mut MutexGuard<'_, State>) {
        if let Some(me) = self.me.upgrade() {
            state.stand_in_line(me, None);
        }
        self.computing.go_on(state);
    }

    /// Takes memory before it is allocated; waits for what others hold, unless it holds some itself.
    ///
    /// # Errors
    /// There will never be so much, or others hold it.
    pub(crate) fn take_memory(&self, bytes: u64) -> Result<(), PlanFailure> {
        let mut memory = self.memory.lock();
        let needed = memory.needed.saturating_add(bytes);
        let queue = &self.computing.0.queue;
        queue.check_memory(needed)?;
        if needed > SMALL_BYTES {
            let wanted = needed - memory.counted;
            if !queue.take_memory(wanted) {
                if memory.counted > 0 {
                    return Err(queue.no_memory(wanted));
                }
                self.wait_for_memory(wanted)?;
            }
            memory.counted = needed;
        }
        memory.needed = needed;
        Ok(())
    }

    /// Stands still until others have given so much memory back.
    fn wait_for_memory(&self, wanted: u64) -> Result<(), PlanFailure> {
        let shared = &self.computing.0;
        let mut state = shared.state.lock();
        state.give_up_place(self);
        self.computing.go_on(&mut state);
        loop {
            let now = clock::now();
            if state.is_over || self.is_left.load(Ordering::Relaxed) || now >= self.end {
                return Err(PlanFailure::Stopped);
            }
            if shared.queue.take_memory(wanted) {
                break;
            }
            let _awake = shared.changed.wait_until(&mut state, self.end.min(now + ASK_EVERY));
        }
        // It goes on when it asks next, as it is its turn.
        self.wait_for_turn(&mut state);
        Ok(())
    }

    /// Why it was given no memory, if that is so.
    pub(super) fn refusal(&self) -> Option<PlanFailure> {
        self.memory.lock().refusal.take()
    }

    /// It has ended: its memory and its place are free.
    pub(super) fn finish(&self) {
        let counted = std::mem::take(&mut self.memory.lock().counted);
        self.computing.0.queue.give_memory_back(counted);
        let mut state = self.computing.0.state.lock();
        self.computing.leave(&mut state, self);
        self.computing.go_on(&mut state);
    }
}

/// Solvers ask whether anybody waits.
impl Stop for Seat {
    fn is_requested(&self) -> bool {
        self.is_over()
    }
}

/// Solvers take memory; why there is none is told in place of their own error.
impl Room for Seat {
    fn take(&self, bytes: u64) -> bool {
        let refusal = self.take_memory(bytes).err();
        let is_taken = refusal.is_none();
        self.memory.lock().refusal = refusal;
        is_taken
    }

    fn give_back(&self, bytes: u64) {
        let mut memory = self.memory.lock();
        memory.needed = memory.needed.saturating_sub(bytes);
        let counted = if memory.needed > SMALL_BYTES { memory.needed } else { 0 };
        let free = memory.counted.saturating_sub(counted);
        memory.counted -= free;
        self.computing.0.queue.give_memory_back(free);
    }
}
