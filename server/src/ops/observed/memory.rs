//! How much memory it takes to make a plan, beside what was estimated before.
//!
//! The system counts for a process, not for a thread. So only plans that are made alone are measured, and what calls take
//! meanwhile is measured with them: figures are worth something for large plans only.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Time between two looks at the memory of the process: less than a plan takes that needs much of it.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// From this growth or estimate on, a plan is large.
const LARGE_BYTES: u64 = 64 << 20;

/// Measures plans that are made alone.
pub(crate) struct MemoryMeter {
    shared: Arc<Shared>,
}

struct Shared {
    /// The resident memory of this process in bytes, if the system tells it.
    resident: fn() -> Option<u64>,
    runs: Mutex<Runs>,
    changed: Condvar,
}

#[derive(Default)]
struct Runs {
    begun: u64,
    running: usize,
    /// The most that was seen since the first of those running began.
    peak: u64,
    is_over: bool,
}

/// A plan that is being made. It is over when this is dropped.
pub(crate) struct Measure<'a> {
    meter: &'a MemoryMeter,
    /// Its number, and the memory that the process had before; `None` if it was not alone, or nothing is known.
    alone: Option<(u64, u64)>,
}

/// What one large plan took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Growth {
    /// By how much the process grew, in bytes.
    pub(crate) found: u64,
    pub(crate) estimate: u64,
}

impl Growth {
    /// Whether a limit that counts estimates may be exceeded because of this one: by a quarter, and not only by what calls
    /// take meanwhile.
    pub(crate) const fn is_underestimated(self) -> bool {
        let tolerance = if self.estimate / 4 > LARGE_BYTES { self.estimate / 4 } else { LARGE_BYTES };
        self.found > self.estimate.saturating_add(tolerance)
    }

    /// What was found ÷ what was estimated.
    pub(crate) fn ratio(self) -> f64 {
        self.found as f64 / self.estimate.max(1) as f64
    }
}

impl MemoryMeter {
    /// Starts the thread that looks. If it cannot start, memory is only measured when a plan is finished.
    pub(crate) fn start(resident: fn() -> Option<u64>) -> Self {
        let shared = Arc::new(Shared { resident, runs: Mutex::default(), changed: Condvar::new() });
        let watched = Arc::clone(&shared);
        let started = thread::Builder::new().name("canopy-memory".to_owned()).spawn(move || watched.look_on());
        if let Err(error) = started {
            tracing::warn!(%error, "the memory of plans is not watched");
        }
        Self { shared }
    }

    /// A plan is begun.
    pub(crate) fn begin(&self) -> Measure<'_> {
        let mut runs = self.shared.runs.lock();
        runs.begun += 1;
        runs.running += 1;
        let resident = if runs.running == 1 { (self.shared.resident)() } else { None };
        if let Some(resident) = resident {
            runs.peak = resident;
        }
        self.shared.changed.notify_all();
        Measure { meter: self, alone: resident.map(|resident| (runs.begun, resident)) }
    }
}

impl Drop for MemoryMeter {
    fn drop(&mut self) {
        self.shared.runs.lock().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn look_on(&self) {
        let mut runs = self.runs.lock();
        while !runs.is_over {
            if runs.running == 1 {
                self.changed.wait_for(&mut runs, BETWEEN_LOOKS);
                runs.peak = runs.peak.max((self.resident)().unwrap_or_default());
            } else {
                self.changed.wait(&mut runs);
            }
        }
    }
}

impl Measure<'_> {
    /// What it took; `None` if others were made meanwhile, or it was small.
    pub(crate) fn growth(&self, estimate: u64) -> Option<Growth> {
        let (number, before) = self.alone?;
        let runs = self.meter.shared.runs.lock();
        let peak = runs.peak.max((self.meter.shared.resident)()?);
        let found = peak.saturating_sub(before);
        let is_told = runs.begun == number && found.max(estimate) >= LARGE_BYTES;
        is_told.then_some(Growth { found, estimate })
    }
}

impl Drop for Measure<'_> {
    fn drop(&mut self) {
        self.meter.shared.runs.lock().running -= 1;
        self.meter.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_peak_of_a_plan_made_alone_is_found() {
        static RESIDENT: AtomicU64 = AtomicU64::new(50 * MIB);
        let meter = MemoryMeter::start(|| Some(RESIDENT.load(Ordering::Relaxed)));
        let measure = meter.begin();
        RESIDENT.store(450 * MIB, Ordering::Relaxed);
        while meter.shared.runs.lock().peak < 450 * MIB {
            thread::sleep(Duration::from_millis(1));
        }
        RESIDENT.store(60 * MIB, Ordering::Relaxed);
        let growth = |estimate| measure.growth(estimate).unwrap();
        assert_eq!(growth(400 * MIB), Growth { found: 400 * MIB, estimate: 400 * MIB });
        assert!(!growth(336 * MIB).is_underestimated(), "calls may have taken that");
        assert!(growth(300 * MIB).is_underestimated());
        assert!(growth(0).is_underestimated() && growth(0).ratio() > 1e6);
        assert!(!growth(u64::MAX).is_underestimated());
    }

    #[test]
    fn plans_beside_others_and_small_ones_are_not_measured() {
        static RESIDENT: AtomicU64 = AtomicU64::new(0);
        let meter = MemoryMeter::start(|| Some(RESIDENT.load(Ordering::Relaxed)));
        let first = meter.begin();
        let second = meter.begin();
        RESIDENT.store(500 * MIB, Ordering::Relaxed);
        assert_eq!((first.growth(MIB), second.growth(MIB)), (None, None));
        drop(second);
        assert_eq!(first.growth(MIB), None, "the second one was there for a while");
        drop(first);
        let third = meter.begin();
        assert_eq!(third.growth(MIB), None, "it took nothing, and was not expected to");
        assert_eq!(third.growth(64 * MIB), Some(Growth { found: 0, estimate: 64 * MIB }));
        assert_eq!(MemoryMeter::start(|| None).begin().growth(64 * MIB), None);
    }
}
