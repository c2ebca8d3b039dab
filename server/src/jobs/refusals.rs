//! Requests known to have no plan, so that a repeat costs no search.
//!
//! What is remembered is a refusal that follows from the request alone, such as a network that falls apart or a plan
//! that no runtime has room for; never one that another moment might not bring: deadlines, cancelled jobs, lack of
//! room, faults. It is kept under the key of the plan that would have been, in memory only, for a limited time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use canopy_planner::PlanKey;
use lru::LruCache;
use parking_lot::Mutex;

use crate::failure::{PlanFailure, follows_from_request};

/// How much is remembered, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusalOptions {
    /// Most refusals; those that have not been asked for the longest make room for others. 0 keeps none.
    pub count_max: usize,
    /// Longest time; zero keeps none.
    pub lifetime: Duration,
}

impl RefusalOptions {
    /// 4,096 of them, for ten minutes.
    pub const STANDARD: Self = Self { count_max: 4096, lifetime: Duration::from_secs(600) };
}

/// The refusals that a server remembers; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Refusals {
    options: RefusalOptions,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug)]
struct Known {
    by_key: LruCache<PlanKey, Entry>,
    served: u64,
}

#[derive(Debug)]
struct Entry {
    failure: Arc<PlanFailure>,
    since: Instant,
}

/// How much is remembered, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RefusalCounts {
    /// Refusals that are remembered; some of them may be too old to be given again.
    pub(crate) kept: usize,
    /// Requests that were refused without a search.
    pub(crate) served: u64,
}

impl Refusals {
    pub(crate) fn new(options: RefusalOptions) -> Self {
        let known = Known { by_key: LruCache::unbounded(), served: 0 };
        Self { options, known: Arc::new(Mutex::new(known)) }
    }

    /// Why there is no plan under this key, if that is known at `now`. Counts as a use. O(1).
    pub(crate) fn find(&self, key: &PlanKey, now: Instant) -> Option<PlanFailure> {
        let mut known = self.known.lock();
        let Entry { failure, since } = known.by_key.get(key)?;
        let (failure, age) = (Arc::clone(failure), now.saturating_duration_since(*since));
        if age >= self.options.lifetime {
            known.by_key.pop(key);
            return None;
        }
        known.served += 1;
        Some(PlanFailure::Remembered { failure, age })
    }

    /// Remembers why there is no plan under this key, if that follows from the request alone. O(1).
    pub(crate) fn learn(&self, key: &PlanKey, failure: &Arc<PlanFailure>, now: Instant) {
        let RefusalOptions { count_max, lifetime } = self.options;
        if count_max == 0 || lifetime.is_zero() || !follows_from_request(failure) {
            return;
        }
        let mut known = self.known.lock();
        known.by_key.put(*key, Entry { failure: Arc::clone(failure), since: now });
        while known.by_key.len() > count_max {
            known.by_key.pop_lru();
        }
    }

    /// Forgets all of them, and says how many there were.
    pub(crate) fn clear(&self) -> usize {
        let mut known = self.known.lock();
        std::mem::replace(&mut known.by_key, LruCache::unbounded()).len()
    }

    pub(crate) fn counts(&self) -> RefusalCounts {
        let known = self.known.lock();
        RefusalCounts { kept: known.by_key.len(), served: known.served }
    }
}

#[cfg(test)]
mod tests {
    use canopy_planner::PlanError;
    use canopy_synth::{BoundError, SynthesisError};

    use super::*;
    use crate::clock;

    const KEPT: RefusalOptions = RefusalOptions { count_max: 2, lifetime: Duration::from_secs(60) };

    fn key(number: u8) -> PlanKey {
        PlanKey::from_bytes([number; 32])
    }

    fn lasting() -> Arc<PlanFailure> {
        Arc::new(PlanFailure::Planning(PlanError::Bound(BoundError::TooLarge)))
    }

    #[test]
    fn a_refusal_is_given_again_until_it_is_too_old() {
        let (refusals, start) = (Refusals::new(KEPT), clock::now());
        refusals.learn(&key(1), &lasting(), start);
        let found = refusals.find(&key(1), start + Duration::from_secs(59)).unwrap();
        let PlanFailure::Remembered { failure, age } = &found else { panic!("{found}") };
        assert_eq!((failure.to_string(), *age), (lasting().to_string(), Duration::from_secs(59)));
        assert_eq!(found.to_string(), lasting().to_string(), "the words are the same");
        // Being asked for does not make it live longer.
        assert!(refusals.find(&key(1), start + Duration::from_secs(60)).is_none());
        assert_eq!(refusals.counts(), RefusalCounts { kept: 0, served: 1 });
    }

    #[test]
    fn those_not_asked_for_the_longest_make_room() {
        let (refusals, now) = (Refusals::new(KEPT), clock::now());
        for number in [1, 2] {
            refusals.learn(&key(number), &lasting(), now);
        }
        assert!(refusals.find(&key(1), now).is_some());
        refusals.learn(&key(3), &lasting(), now);
        let there = [1, 2, 3].map(|number| refusals.find(&key(number), now).is_some());
        assert_eq!(there, [true, false, true]);
        // Learning one again takes no room.
        refusals.learn(&key(3), &lasting(), now);
        assert_eq!((refusals.clear(), refusals.counts().kept), (2, 0));
        assert!(refusals.find(&key(1), now).is_none());
        let nothing = Refusals::new(RefusalOptions { lifetime: Duration::ZERO, ..KEPT });
        nothing.learn(&key(1), &lasting(), now);
        assert_eq!(nothing.counts().kept, 0);
    }

    #[test]
    fn what_another_moment_may_bring_is_not_remembered() {
        let (refusals, now) = (Refusals::new(RefusalOptions::STANDARD), clock::now());
        let passing = [
            PlanFailure::Stopped,
            PlanFailure::CancelledByOperator,
            PlanFailure::Planning(PlanError::Synthesis(SynthesisError::Stopped)),
            PlanFailure::Planning(PlanError::Bound(BoundError::Stopped)),
            PlanFailure::Planning(PlanError::Bound(BoundError::Broken { what: "x".to_owned() })),
            PlanFailure::Planning(PlanError::Rejected { check: "load", problem: "x".to_owned() }),
            PlanFailure::Panicked { request: canopy_planner::RequestKey::from_bytes([0; 32]) },
            PlanFailure::Abandoned { starts: 2 },
            PlanFailure::NotCached,
            PlanFailure::QueueFull { waiting: 1, limit: 1 },
            PlanFailure::JobMemory { needed: 2, limit: 1 },
            PlanFailure::Draining,
            PlanFailure::Deadline { deadline_ms: 1, stage: "trees".into(), operation: None },
        ];
        for failure in passing {
            let failure = Arc::new(failure);
            refusals.learn(&key(1), &failure, now);
            assert!(refusals.find(&key(1), now).is_none(), "{failure}");
        }
        for failure in [lasting(), Arc::new(PlanFailure::Planning(PlanError::Synthesis(SynthesisError::NoTrees)))] {
            refusals.learn(&key(1), &failure, now);
            assert!(refusals.find(&key(1), now).is_some(), "{failure}");
        }
    }
}
