//! Stored schedules of shapes: a later request for a network of the same shape needs no search.

use std::fmt;
use std::sync::Arc;

use canopy_plan::PlanFile;
use canopy_schedule::Shape;
use canopy_topology::Topology;
use parking_lot::Mutex;

use crate::key::ScheduleKey;
use crate::recent::Recent;

/// Rough size in memory of a hop, a send or a path.
const PART_BYTES: u64 = 64;
/// What a plan takes beside those.
const PLAN_BYTES: u64 = 4096;

/// Stores schedules in canonical labels, each as the plan of the network in canonical order. A cache: every schedule
/// can be found again, and users relabel and check what they take from it.
pub trait Schedules: Send + Sync + fmt::Debug {
    /// Whether schedules are stored. If not, searches use the caller's own labels.
    fn are_kept(&self) -> bool {
        true
    }

    /// Whether a schedule is stored under this key; does not read it.
    fn has(&self, key: &ScheduleKey) -> bool;

    /// The schedule under this key, if it is for exactly this network. Counts as a use.
    fn get(&self, key: &ScheduleKey, normal: &Topology) -> Option<Arc<PlanFile>>;

    /// Stores a checked schedule. One that cannot be stored will be found again.
    fn put(&self, key: &ScheduleKey, plan: &Arc<PlanFile>);

    /// Removes a schedule that was found to be wrong.
    fn quarantine(&self, key: &ScheduleKey);
}

/// Stores nothing: for a network that is planned once.
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

/// Keeps the most recently used schedules in memory.
#[derive(Debug)]
pub struct SchedulesInMemory(Mutex<Recent<ScheduleKey, Arc<PlanFile>>>);

impl SchedulesInMemory {
    /// A store of about this many bytes of schedules; 0 stores none.
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
            Shape::Orbits(orbits) => orbits.templates.iter().map(|template| template.parents.len()).sum(),
            Shape::Stages(stages) => stages.exceptions.len() * (1 + stages.grid.places as usize),
        };
        let parts = (parts + plan.topology.nodes().len() + plan.topology.links().len()) as u64;
        self.0.lock().keep(*key, Arc::clone(plan), PLAN_BYTES + PART_BYTES * parts);
    }

    fn quarantine(&self, key: &ScheduleKey) {
        self.0.lock().forget(key);
    }
}
