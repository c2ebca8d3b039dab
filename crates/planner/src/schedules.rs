//! Where schedules are kept that were found for a shape: whoever asks for a network of the same shape later is spared the search.

use std::fmt;
use std::sync::Arc;

use canopy_plan::PlanFile;
use canopy_schedule::Shape;
use canopy_topology::Topology;
use parking_lot::Mutex;

use crate::key::ScheduleKey;
use crate::recent::Recent;

/// What a hop, a send or a path takes in memory, roughly.
const PART_BYTES: u64 = 64;
/// What a plan takes beside those.
const PLAN_BYTES: u64 = 4096;

/// Keeps schedules in canonical labels, each as the plan of the network in canonical order. A cache of what can be found again:
/// whoever takes a schedule out relabels it and has it checked like any other.
pub trait Schedules: Send + Sync + fmt::Debug {
    /// Whether any are. Where none is, the search is in the caller's own labels: canonical ones would serve nobody.
    fn are_kept(&self) -> bool {
        true
    }

    /// Whether there is a schedule under this key; reads none.
    fn has(&self, key: &ScheduleKey) -> bool;

    /// The schedule under this key, if it is for this very network. Counts as a use.
    fn get(&self, key: &ScheduleKey, normal: &Topology) -> Option<Arc<PlanFile>>;

    /// Keeps a schedule that has been checked. One that cannot be kept will be found again.
    fn put(&self, key: &ScheduleKey, plan: &Arc<PlanFile>);

    /// Lets go of a schedule that was found to be wrong.
    fn quarantine(&self, key: &ScheduleKey);
}

/// Keeps none: for who looks at a network once.
#[derive(Clone, Copy, Debug)]
pub struct NoSchedules;

impl Schedules for NoSchedules {
    fn are_kept(&self) -> bool {
        false
    }

    fn has(&self, _: &ScheduleKey) -> bool {
        false
    }

    fn get(&self, _: &ScheduleKey, _: &Topology) -> Option<Arc<PlanFile>> {
        None
    }

    fn put(&self, _: &ScheduleKey, _: &Arc<PlanFile>) {}

    fn quarantine(&self, _: &ScheduleKey) {}
}

/// Keeps schedules in memory, those used lately.
#[derive(Debug)]
pub struct SchedulesInMemory(Mutex<Recent<ScheduleKey, Arc<PlanFile>>>);

impl SchedulesInMemory {
    /// Room for about so many bytes of schedules; 0 keeps none.
    pub fn new(bytes_max: u64) -> Self {
        Self(Mutex::new(Recent::new(bytes_max)))
    }
}

impl Schedules for SchedulesInMemory {
    fn has(&self, key: &ScheduleKey) -> bool {
        self.0.lock().get(key).is_some()
    }

    fn get(&self, key: &ScheduleKey, normal: &Topology) -> Option<Arc<PlanFile>> {
        self.0.lock().get(key).filter(|plan| plan.topology == *normal)
    }

    fn put(&self, key: &ScheduleKey, plan: &Arc<PlanFile>) {
        let parts = match &plan.schedule.shape {
            Shape::Forest(forest) => forest.hops.len(),
            Shape::Steps(steps) => steps.sends.len(),
            Shape::Flow(flow) => flow.hops.len(),
        };
        let parts = (parts + plan.topology.nodes().len() + plan.topology.links().len()) as u64;
        self.0.lock().keep(*key, Arc::clone(plan), PLAN_BYTES + PART_BYTES * parts);
    }

    fn quarantine(&self, key: &ScheduleKey) {
        self.0.lock().forget(key);
    }
}
