//! The planner, with the schedules that are kept in the store.

use std::sync::Arc;

use canopy_planner::{Context, Planned, Recalled, Request as Order, ScheduleKey};
use canopy_synth::Stop;
use canopy_topology::TopologyLimits;
use canopy_wire as wire;
use canopy_wire::StoredPlan;

use crate::clock;
use crate::failure::PlanFailure;
use crate::jobs::planner::{Planner, Prepared, Produced, Recall, Watch};
use crate::store::schedules::{ScheduleOptions, StoredSchedules};
use crate::store::{MemoryStore, Store, StoreError};

/// Plans with canopy's own libraries.
#[derive(Debug)]
pub struct Pipeline {
    planner: canopy_planner::Planner,
    schedules: StoredSchedules,
}

impl Pipeline {
    /// A planner for topologies within these limits that keeps schedules as long as it lives.
    pub fn new(limits: TopologyLimits) -> Self {
        let in_memory = ScheduleOptions::of(ScheduleOptions::MEMORY_BYTES, limits);
        Self::keeping(Arc::new(MemoryStore::default()), in_memory)
    }

    /// A planner that keeps schedules in a store.
    pub fn keeping(schedules: Arc<dyn Store>, options: ScheduleOptions) -> Self {
        let schedules = StoredSchedules::new(schedules, options);
        Self { planner: canopy_planner::Planner::new(options.limits), schedules }
    }

    fn context<'a>(&'a self, stop: &'a dyn Stop, watch: &'a dyn Watch) -> Context<'a> {
        Context { stop, watch, clock: &clock::elapsed_millis, schedules: &self.schedules }
    }
}

fn produced(order: &Order, planned: Planned) -> Produced {
    let (timings, is_recalled) = (planned.timings, planned.is_recalled);
    let warnings = planned.warnings.clone();
    Produced { plan: StoredPlan::new(wire::plan(order, planned), warnings), timings, is_recalled }
}

impl Planner for Pipeline {
    fn prepare(&self, order: &Order, stop: &dyn Stop) -> Result<Prepared, PlanFailure> {
        Ok(self.planner.prepare(order, stop)?)
    }

    fn recall(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Recall, PlanFailure> {
        Ok(match self.planner.recall(order, prepared, self.context(stop, watch))? {
            Recalled::Made(planned) => Recall::Made(Box::new(produced(order, *planned))),
            Recalled::Unknown(key) => Recall::Unknown(key),
        })
    }

    fn is_known(&self, schedule: &ScheduleKey) -> bool {
        self.planner.is_known(schedule, &self.schedules)
    }

    fn kept(&self) -> Result<(usize, u64), StoreError> {
        self.schedules.usage()
    }

    fn forget(&self, schedules: &[ScheduleKey]) {
        self.schedules.remove(schedules);
    }

    fn produce(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Produced, PlanFailure> {
        Ok(produced(order, self.planner.produce(order, prepared, self.context(stop, watch))?))
    }
}
