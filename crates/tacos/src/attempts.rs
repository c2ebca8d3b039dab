//! Tries several seeds and keeps the best result.

use canopy_optimize::Stop;
use rayon::prelude::*;

use crate::copies::{CopyError, Preference, copy_all};
use crate::network::TimedNetwork;
use crate::sends::Sends;
use crate::symmetry::FreeGroup;
use crate::task::CopyTask;

/// The attempts to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// The first seed.
    pub seed: u64,
    /// Most attempts, at least one; the first that reaches the bound is the last.
    pub count: u32,
    /// Lower bound on the time of every schedule, in ticks: [`lower_bound`](crate::lower_bound).
    pub bound: u64,
    /// Result of the first attempt, if it was made before.
    pub known: Option<Sends>,
}

/// The best of some attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its sends.
    pub sends: Sends,
    /// Its number, from 0: the same alone gives the same sends.
    pub number: u32,
}

impl Attempt {
    /// Less for the better one: which ends first, then which has fewest sends, then which was made first.
    const fn rank(&self) -> (u64, usize, u32) {
        (self.sends.end, self.sends.sends.len(), self.number)
    }
}

impl Attempts {
    /// The best of these: the first alone, then the others on all threads of the caller's pool, until one reaches the bound. The best is
    /// the one that ends first, then that of fewest sends, then the earliest.
    ///
    /// * `attempt`: what comes of a seed, which is that of the attempt of this number.
    /// * **Errors.** That of the first attempt; being stopped later costs no more than the attempts not yet done.
    pub fn best(self, attempt: impl Fn(u32, u64) -> Result<Sends, CopyError> + Sync) -> Result<Attempt, CopyError> {
        let attempt = |number: u32| {
            let sends = attempt(number, self.seed.wrapping_add(number.into()))?;
            Ok::<_, CopyError>(Attempt { sends, number })
        };
        let mut best = match self.known {
            Some(sends) => Attempt { sends, number: 0 },
            None => attempt(0)?,
        };
        let others: Vec<u32> = (1..self.count).collect();
        // Some at a time, as many whatever the number of threads.
        for numbers in others.chunks(AT_A_TIME) {
            if best.sends.end <= self.bound {
                break;
            }
            let found = numbers.par_iter().filter_map(|&number| attempt(number).ok());
            let found = found.min_by_key(Attempt::rank);
            if let Some(found) = found.filter(|found| found.rank() < best.rank()) {
                best = found;
            }
        }
        Ok(best)
    }
}

/// Tries seeds until one reaches the bound, by turns with either count of chunks first.
///
/// * **Errors.** [`CopyError`] of the first attempt; being stopped later costs no more than the attempts not yet done.
/// * **Cost.** That of [`copy_all`] for each attempt. The result does not depend on the number of threads.
pub fn best_of(
    network: &TimedNetwork,
    task: &CopyTask,
    group: &FreeGroup,
    attempts: Attempts,
    stop: &dyn Stop,
) -> Result<Attempt, CopyError> {
    attempts.best(|number, seed| {
        let preference = if number.is_multiple_of(2) { Preference::Neighbours } else { Preference::Holders };
        copy_all(network, task, group, seed, preference, stop)
    })
}

/// Attempts begun together.
const AT_A_TIME: usize = 4;
