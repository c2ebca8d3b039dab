//! What a server looks after every second: whether its store can be written, and how much room is left.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use canopy_planner::{PlanKey, chain};
use canopy_service::asked;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::clock;
use crate::drain::DrainHandle;
use crate::jobs::queue::Queue;
use crate::metrics::Metrics;
use crate::replan::{FaultLogs, Leases};
use crate::rpc::{GATED, OPEN, Shared};
use crate::store::topologies::TopologyStore;
use crate::store::{Opened, Others, Records, Recovery, Upkeep};

/// Time between two looks.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Says what was done to the store when it was opened.
pub(super) fn tell_of(opened: &Opened) {
    if let Some((path, reason)) = &opened.moved_aside {
        tracing::error!(path = %path.display(), reason, "the store was damaged and was moved aside");
    }
    if let Some(done) = &opened.migration {
        let (from, to, records, left_behind) = (done.from, done.to, done.records, done.left_behind);
        tracing::info!(from, to, records, left_behind, "the store was migrated");
    }
    if !opened.recovery.is_empty() {
        let Recovery { restored, lost, quarantined } = opened.recovery;
        tracing::warn!(restored, lost, quarantined, "the index of the store was repaired from its files");
    }
}

/// The topologies that leases, faults or what is known of pinned plans are on.
pub(super) fn topologies_in_use(leases: &Leases, fault_logs: &FaultLogs, records: &Records) -> BTreeSet<PlanKey> {
    let mut used: BTreeSet<PlanKey> = leases.bases().into_iter().chain(fault_logs.bases()).collect();
    let pinned = records.pinned(usize::MAX).unwrap_or_default();
    let summaries = pinned.iter().filter_map(|key| records.summary(key).ok().flatten());
    used.extend(summaries.filter_map(|summary| asked::topology_of(&summary.asked)));
    used
}

/// Ends detached jobs that are planned for longer than a caller might wait, for as long as the server lives.
pub(super) async fn end_overlong_jobs(queue: Queue, limit: Duration) {
    let mut ticks = tokio::time::interval(UPKEEP_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for operation in queue.end_overlong(limit) {
            tracing::warn!(operation, limit_s = limit.as_secs(), "a detached job took too long and was ended");
        }
    }
}

/// Mends the store whenever it cannot be written, and says so meanwhile, until the server drains.
pub(super) async fn keep_up(
    (upkeep, others): (Upkeep, Option<Others>),
    topologies: TopologyStore,
    metrics: Metrics,
    health: HealthReporter,
    drain: DrainHandle,
) {
    let mut ticks = tokio::time::interval(UPKEEP_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut serves = true;
    loop {
        tokio::select! {
            biased;
            () = drain.started() => return,
            _ = ticks.tick() => {}
        }
        let (mender, kept) = (upkeep.clone(), topologies.clone());
        let looked = spawn_blocking(move || (mender.mend(), kept.usage().ok())).await;
        let (can_write, kept) = looked.unwrap_or((false, None));
        if let Some(kept) = kept {
            metrics.set("canopy_topologies", &[], kept.count as f64);
            metrics.set("canopy_topologies_max", &[], kept.count_max as f64);
            metrics.set("canopy_topology_bytes", &[], kept.bytes as f64);
            metrics.set("canopy_topology_bytes_max", &[], kept.bytes_max as f64);
            metrics.count_is("canopy_topologies_removed_total", &[], kept.removed);
        }
        if let Some(room) = upkeep.room() {
            metrics.set("canopy_disk_free_bytes", &[], room.free as f64);
            metrics.set("canopy_disk_bytes", &[], room.total as f64);
        }
        if let Some(others) = &others {
            metrics.set("canopy_database_reachable", &[], f64::from(u8::from(others.trouble().is_none())));
        }
        metrics.set("canopy_store_writable", &[], f64::from(u8::from(can_write)));
        metrics.count_is("canopy_store_write_failures_total", &[], upkeep.failures());
        for (space, count) in upkeep.damages() {
            metrics.count_is("canopy_store_damage_total", &[("space", space.into())], count);
        }
        if can_write != serves && !drain.is_draining() {
            serves = can_write;
            let status = if serves { ServingStatus::Serving } else { ServingStatus::NotServing };
            say_of_gated(&health, status).await;
        }
    }
}

/// Has what is in memory follow what other servers change in the store that they share.
pub(super) fn follow_others(mut news: watch::Receiver<u64>, shared: &Shared) -> impl Future<Output = ()> + use<> {
    let follow = Arc::new(shared.follow());
    async move {
        while news.changed().await.is_ok() {
            let follow = Arc::clone(&follow);
            if let Ok(Err(error)) = spawn_blocking(move || follow()).await {
                tracing::error!(error = chain(&error), "changes of other servers could not be followed");
            }
        }
    }
}

/// Says that all services serve.
pub(super) async fn say_that_all_serve(health: &HealthReporter) {
    for name in GATED.into_iter().chain(OPEN) {
        health.set_service_status(name, ServingStatus::Serving).await;
    }
}

/// Says of all services that begin something, and of the server as a whole, whether they serve.
pub(super) async fn say_of_gated(health: &HealthReporter, status: ServingStatus) {
    for name in GATED.into_iter().chain([""]) {
        health.set_service_status(name, status).await;
    }
}

/// Writes down again and again what the clock of leases and faults says, for the next process on the directory.
pub(super) async fn write_clock_down(data_dir: PathBuf) {
    /// What a crash of the machine may cost where its time of day is wrong afterwards.
    const INTERVAL: Duration = Duration::from_secs(60);
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        ticks.tick().await;
        let directory = data_dir.clone();
        // Where that fails, so do reports and leases, which say so.
        let _written = spawn_blocking(move || clock::write_down(&directory)).await;
    }
}
