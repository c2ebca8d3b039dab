//! When the average starts anew.

/// Iterations between two looks at how far a step goes.
const MEASURE_EVERY: u64 = 8;
/// A restart is due when steps are this much shorter than the first after the last restart,
const SUFFICIENT: f64 = 0.2;
/// or this much shorter and growing again,
const NECESSARY: f64 = 0.8;
/// or when this share of all iterations has gone by since.
const SHARE_OF_ALL: f64 = 0.36;

/// Counts iterations and decides on restarts by how far steps go, which is how far the iterate is from a solution.
///
/// **Source.** Lu and Yang, *Restarted Halpern PDHG for linear programming*, 2024, and the constants of PDLP (Applegate 2021).
#[derive(Debug)]
pub(super) struct Restarts {
    inner: u64,
    total: u64,
    first: f64,
    last: f64,
}

impl Restarts {
    pub(super) const fn new() -> Self {
        Self { inner: 0, total: 0, first: 0.0, last: f64::INFINITY }
    }

    /// Iterations since the last restart.
    pub(super) const fn inner(&self) -> u64 {
        self.inner
    }

    /// All iterations.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// Whether the next step is to be measured.
    pub(super) const fn is_measured(&self) -> bool {
        self.inner.is_multiple_of(MEASURE_EVERY)
    }

    /// Counts a step with its length, if that was measured; whether to restart where it led.
    pub(super) fn after_step(&mut self, length: Option<f64>) -> bool {
        let is_first = self.inner == 0;
        self.inner += 1;
        self.total += 1;
        let Some(length) = length else { return false };
        if is_first {
            self.first = length;
            return false;
        }
        let due = length <= SUFFICIENT * self.first
            || length <= NECESSARY * self.first && length > self.last
            || self.inner as f64 >= SHARE_OF_ALL * self.total as f64;
        self.last = length;
        if due {
            (self.inner, self.last) = (0, f64::INFINITY);
        }
        due
    }
}
