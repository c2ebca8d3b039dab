//! Requests whose plan is known, answered at once without the queue, a thread or the disk.
//!
//! What a request's text comes to never changes: equal texts mean equal topologies, hence equal plan keys and
//! warnings. Whether the plan is still there is asked of the records each time.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use canopy_planner::{PlanKey, Puncture, RequestKey, Warning};
use parking_lot::Mutex;

use crate::jobs::job::{Cache, Delivery, Job, Timings};
use crate::store::Records;

/// Most requests that are remembered; the first to come are the first to go.
const REQUESTS_MAX: usize = 16_384;
/// Most warnings, and most faults, of a request that is remembered; those with more take the long way.
const WARNINGS_MAX: usize = 16;

/// What some requests come to; clones share it.
#[derive(Clone)]
pub(crate) struct Answers {
    records: Records,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    answers: HashMap<RequestKey, Answer>,
    arrivals: VecDeque<RequestKey>,
}

#[derive(Clone)]
struct Answer {
    plan: PlanKey,
    /// Those of the reading of the topology.
    warnings: Vec<Warning>,
    puncture: Option<Arc<Puncture>>,
}

/// A plan that was found, and whether the uses of plans should be written down by now.
pub(crate) struct Found {
    pub(crate) delivery: Delivery,
    pub(crate) write_back: bool,
}

impl Answers {
    pub(crate) fn new(records: Records) -> Self {
        Self { records, known: Arc::default() }
    }

    /// The plan of a request that was answered before, if it is in memory; counts as a use. Never touches the disk.
    pub(crate) fn find(&self, key: &RequestKey) -> Option<Found> {
        let Answer { plan: plan_key, warnings, puncture } = self.known.lock().answers.get(key).cloned()?;
        let plan = self.records.remembered(&plan_key)?;
        let write_back = self.records.count_use(&plan_key);
        let delivery = Delivery { plan, cache: Cache::Hit, timings: Timings::default(), warnings, puncture };
        Some(Found { delivery, write_back })
    }

    /// Remembers what a request came to. Only what came from the store: a fresh plan may not have got there.
    pub(crate) fn learn(&self, key: &RequestKey, delivery: &Delivery) {
        let faults = delivery.puncture.as_ref().map_or(0, |puncture| puncture.faults.len());
        if delivery.cache != Cache::Hit || delivery.warnings.len().max(faults) > WARNINGS_MAX {
            return;
        }
        let Some(plan) = PlanKey::from_digits(&delivery.plan.plan.content_key) else { return };
        let mut known = self.known.lock();
        let (warnings, puncture) = (delivery.warnings.clone(), delivery.puncture.clone());
        if known.answers.insert(*key, Answer { plan, warnings, puncture }).is_some() {
            return;
        }
        known.arrivals.push_back(*key);
        if known.arrivals.len() > REQUESTS_MAX
            && let Some(first) = known.arrivals.pop_front()
        {
            known.answers.remove(&first);
        }
    }

    /// Notes that a plan is sent in place of the one that a job is for, and tells which that is if it is known by now.
    pub(crate) fn stood_in(&self, delivery: &Delivery, job: &Job) -> Option<PlanKey> {
        let plan = PlanKey::from_digits(&delivery.plan.plan.content_key)?;
        let wanted = job.stood_in_by(plan)?;
        self.records.note_stand_in(&plan, &wanted);
        Some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use canopy_wire::StoredPlan;

    use super::*;
    use crate::store::{Lookup, MemoryStore};

    fn request(number: u32) -> RequestKey {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        RequestKey::from_bytes(bytes)
    }

    fn stored(key: PlanKey) -> StoredPlan {
        let mut stored = StoredPlan::default();
        stored.plan.content_key = key.to_string();
        stored.plan.artifacts.resize_with(1, Default::default);
        stored.plan.artifacts[0].content = Some("{}".into());
        stored
    }

    fn delivery(plan: Arc<StoredPlan>, cache: Cache) -> Delivery {
        let warnings = vec![Warning::new("GUESSED", "a guess".to_owned())];
        Delivery { plan, cache, timings: Timings::default(), warnings, puncture: None }
    }

    #[test]
    fn a_request_is_answered_while_its_plan_is_there() {
        let records = Records::new(Arc::new(MemoryStore::default()));
        let answers = Answers::new(records.clone());
        let key = PlanKey::from_bytes([7; 32]);
        records.put(&key, &stored(key)).unwrap();
        let Lookup::Found(plan) = records.get(&key).unwrap() else { panic!("it was put") };
        answers.learn(&request(1), &delivery(Arc::clone(&plan), Cache::Miss));
        assert!(answers.find(&request(1)).is_none(), "only what came from the store is remembered");
        answers.learn(&request(1), &delivery(plan, Cache::Hit));
        let found = answers.find(&request(1)).unwrap().delivery;
        assert_eq!((found.cache, &*found.warnings[0].code), (Cache::Hit, "GUESSED"));
        assert!(answers.find(&request(2)).is_none());
        assert_eq!(records.summary(&key).unwrap().unwrap().hits, 2);
        records.evict(&key).unwrap();
        assert!(answers.find(&request(1)).is_none(), "what was evicted is not served");
    }

    #[test]
    fn no_more_requests_are_remembered_than_the_limit() {
        let records = Records::new(Arc::new(MemoryStore::default()));
        let answers = Answers::new(records);
        let plan = Arc::new(stored(PlanKey::from_bytes([7; 32])));
        for number in 0..=u32::try_from(REQUESTS_MAX).unwrap() {
            answers.learn(&request(number), &delivery(Arc::clone(&plan), Cache::Hit));
        }
        let known = answers.known.lock();
        assert_eq!((known.answers.len(), known.arrivals.len()), (REQUESTS_MAX, REQUESTS_MAX));
        assert!(!known.answers.contains_key(&request(0)));
    }
}
