//! Figures that the parts of a server keep anyway, for observers.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use canopy_service::Memory;

use crate::clock;
use crate::jobs::queue::QueueCounts;
use crate::jobs::workers::Jobs;
use crate::metrics::{Metrics, Value};
use crate::ops::telemetry;

/// Counters of a server since its start.
#[derive(Clone)]
pub struct Statistics {
    jobs: Arc<Jobs>,
}

impl std::fmt::Debug for Statistics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Statistics").finish_non_exhaustive()
    }
}

impl Statistics {
    pub(crate) fn of(jobs: &Arc<Jobs>) -> Self {
        Self { jobs: Arc::clone(jobs) }
    }

    /// Syntheses started.
    pub fn synthesis_count(&self) -> u64 {
        self.jobs.synthesis_count.load(Ordering::Relaxed)
    }

    /// Damaged records found and quarantined.
    pub fn corruption_count(&self) -> u64 {
        self.jobs.records.corruption_count()
    }

    /// Waiting requests.
    pub fn waiting_count(&self) -> usize {
        self.jobs.queue.waiting()
    }
}

/// The same without a hold on the server: who only looks must not keep the store open.
#[derive(Clone, Debug)]
pub(crate) struct WeakStatistics(Weak<Jobs>);

impl WeakStatistics {
    pub(crate) fn upgrade(&self) -> Option<Statistics> {
        self.0.upgrade().map(|jobs| Statistics { jobs })
    }
}

/// The figures read when the metrics are shown.
impl Statistics {
    pub(crate) fn downgrade(&self) -> WeakStatistics {
        WeakStatistics(Arc::downgrade(&self.jobs))
    }

    /// The running and waiting jobs.
    pub(crate) fn queue(&self) -> QueueCounts {
        self.jobs.queue.counts()
    }

    /// Has the metrics show the figures of now.
    pub(crate) fn show(&self, metrics: &Metrics) {
        for (priority, waiting, planning) in self.jobs.queue.loads() {
            let label = [("priority", priority.name().into())];
            metrics.set("canopy_synthesis_queue_depth", &label, waiting as f64);
            metrics.set("canopy_synthesis_running", &label, planning as f64);
        }
        let queue = self.jobs.queue.room();
        metrics.set("canopy_queue_held_bytes", &[], queue.held_bytes as f64);
        metrics.set("canopy_queue_held_bytes_max", &[], queue.limits.bytes_max as f64);
        metrics.set("canopy_job_memory_bytes", &[], queue.planning_bytes as f64);
        metrics.set("canopy_job_memory_bytes_max", &[], queue.limits.memory_bytes_max as f64);
        if let Some(bytes) = Memory::of_process().in_all() {
            metrics.set("canopy_memory_limit_bytes", &[], bytes as f64);
        }
        metrics.count_is("canopy_log_lines_dropped_total", &[], telemetry::dropped_lines());
        metrics.count_is("canopy_clock_jumps_total", &[], clock::jump_count());
        metrics.count_is("canopy_store_corruptions_total", &[], self.corruption_count());
        const DISK: &[(&str, Value)] = &[("tier", Value::Borrowed("disk"))];
        const MEMORY: &[(&str, Value)] = &[("tier", Value::Borrowed("memory"))];
        if let Some(reproducers) = &self.jobs.reproducers {
            metrics.set("canopy_reproducers", &[], reproducers.kept_count() as f64);
            metrics.count_is("canopy_reproducers_dropped_total", &[], reproducers.dropped_count());
        }
        let refusals = self.jobs.refusals.counts();
        metrics.set("canopy_negative_cache_entries", &[], refusals.kept as f64);
        metrics.count_is("canopy_negative_cache_hits_total", &[], refusals.served);
        let records = &self.jobs.records;
        let memory = records.memory_usage();
        metrics.count_is("canopy_cache_evictions_total", DISK, records.eviction_count());
        metrics.count_is("canopy_cache_evictions_total", MEMORY, memory.evictions);
        metrics.set("canopy_cache_entries", MEMORY, memory.records as f64);
        metrics.set("canopy_cache_bytes", MEMORY, memory.bytes as f64);
        metrics.set("canopy_cache_capacity_bytes", MEMORY, memory.bytes_max as f64);
        // A store that fails shows its last figures; its operations count as errors.
        if let Ok(usage) = records.usage() {
            metrics.set("canopy_cache_entries", DISK, usage.records as f64);
            metrics.set("canopy_cache_bytes", DISK, usage.bytes as f64);
            metrics.set("canopy_cache_capacity_bytes", DISK, usage.bytes_max as f64);
            metrics.set("canopy_cache_pinned_entries", DISK, usage.pinned as f64);
            metrics.set("canopy_store_quarantined", &[], usage.quarantined as f64);
        }
        if let Ok((schedules, bytes)) = self.jobs.planner.kept() {
            metrics.set("canopy_cache_schedules", &[], schedules as f64);
            metrics.set("canopy_cache_schedule_bytes", &[], bytes as f64);
        }
    }
}
