//! Every metric of a server: name, meaning, buckets.

/// Counters.
pub(super) const COUNTERS: &[(&str, &str)] = &[
    ("canopy_rpc_requests_total", "Calls ended."),
    ("canopy_clock_jumps_total", "Times the system clock was set; leases and faults use a monotonic clock."),
    ("canopy_connections_refused_total", "Connections closed because a connection limit was reached."),
    ("canopy_plan_requests_total", "Plan requests ended."),
    ("canopy_jobs_redelivered_total", "Jobs of silent servers that are made again, as this server noticed."),
    (
        "canopy_job_results_refused_total",
        "Results of this server that came too late: another one makes the job by then.",
    ),
    ("canopy_plan_fallbacks_total", "Provisional plans sent in place of the requested ones."),
    (
        "canopy_recall_total",
        "Lookups of known schedules of a shape: `made` if they gave a plan without a search, else `unknown`.",
    ),
    ("canopy_synthesis_total", "Syntheses ended."),
    ("canopy_synthesis_cpu_seconds_total", "CPU time of syntheses."),
    (
        "canopy_job_memory_underestimated_total",
        "Syntheses that took a quarter and 64 MiB more memory than was estimated; of those that ran alone.",
    ),
    ("canopy_verifier_failures_total", "Plans that failed the checker; each is a bug."),
    (
        "canopy_rivals_rejected_total",
        "Plans left out of a comparison because they failed a check or their search broke; each is a bug.",
    ),
    (
        "canopy_reproducers_dropped_total",
        "Plans that a check rejected and of which no reproducer was kept: the folder is full, or cannot be written.",
    ),
    ("canopy_export_total", "Files written for runtimes."),
    ("canopy_config_reloads_total", "Reloads of the configuration."),
    (
        "canopy_access_refusals_total",
        "Calls refused before their work began: because of who made them, a quota, or the audit log.",
    ),
    ("canopy_plans_not_stored_total", "Plans delivered that could not be stored."),
    ("canopy_journal_write_failures_total", "Jobs that could not be written down, and would not survive a crash."),
    ("canopy_log_lines_dropped_total", "Log lines dropped because their reader was too slow."),
    ("canopy_tenant_planning_seconds_total", "Time of planning workers, by tenant."),
    ("canopy_quota_refusals_total", "Calls and jobs refused because a quota was used up."),
    ("canopy_audit_write_failures_total", "Failed writes of the audit log."),
    (
        "canopy_audit_files_lost_total",
        "Files of the audit log that were removed, replaced or cut while the server ran.",
    ),
    ("canopy_credentials_reloads_total", "Rules, tokens or certificates read again."),
    ("canopy_cache_evictions_total", "Plans evicted to make room for others."),
    ("canopy_negative_cache_hits_total", "Requests refused from the remembered refusals, without a search."),
    ("canopy_fault_events_total", "Fault reports, by outcome, kind of element and source."),
    ("canopy_fault_flaps_suppressed_total", "Changes of flapping elements that were suppressed."),
    ("canopy_replans_total", "Plans that replaced others of a lease, by how they were made."),
    (
        "canopy_replan_write_failures_total",
        "Failed writes of faults and leases; they are retried, and reports are refused until one succeeds.",
    ),
    ("canopy_topologies_removed_total", "Unused topologies removed to make room for others."),
    (
        "canopy_store_damage_total",
        "Damaged records and entries found, by kind; `database` is a whole database that was moved aside.",
    ),
    ("canopy_store_write_failures_total", "Failed writes to the data directory."),
    ("canopy_store_operations_total", "Reads and writes of the store."),
    ("canopy_store_corruptions_total", "Damaged records found and quarantined."),
];

/// Gauges.
pub(super) const GAUGES: &[(&str, &str)] = &[
    ("canopy_build_info", "Always 1; the labels identify the build."),
    ("canopy_rpc_in_flight", "Calls in progress."),
    ("canopy_connections", "Open connections."),
    ("canopy_synthesis_running", "Running syntheses."),
    ("canopy_synthesis_queue_depth", "Jobs waiting for a planning worker."),
    (
        "canopy_config_reload_success_timestamp_seconds",
        "Time of the last successful reload of the configuration, in Unix seconds.",
    ),
    ("canopy_tls_certificate_expiry_timestamp_seconds", "End of the server's certificate, in Unix seconds."),
    ("canopy_cache_entries", "Cached plans: on disk, and those of them in memory."),
    ("canopy_cache_bytes", "Size of the cached plans in bytes."),
    ("canopy_cache_capacity_bytes", "Capacity of the cache in bytes."),
    ("canopy_cache_pinned_entries", "Pinned plans, which are never evicted."),
    ("canopy_cache_schedules", "Schedules kept for other networks of the same shape."),
    ("canopy_cache_schedule_bytes", "Size of the kept schedules on disk in bytes."),
    ("canopy_negative_cache_entries", "Remembered refusals: requests known to have no plan."),
    ("canopy_reproducers", "Kept reproducers of plans that a check rejected; each is a bug."),
    ("canopy_faults_active", "Elements that count as broken or slow, by kind."),
    ("canopy_queue_held_bytes", "Bytes that unfinished jobs hold."),
    ("canopy_queue_held_bytes_max", "Most bytes that unfinished jobs may hold."),
    ("canopy_job_memory_bytes", "Memory of running syntheses in bytes, by their estimates."),
    ("canopy_job_memory_bytes_max", "Most memory of running syntheses in bytes."),
    (
        "canopy_memory_limit_bytes",
        "Memory that the process may have: the limit of its control group, or all of the machine.",
    ),
    ("canopy_store_quarantined", "Damaged records kept in quarantine."),
    ("canopy_watchers_max", "Most open watches of leases."),
    ("canopy_leases_active", "Leases held."),
    ("canopy_replans_waiting", "Replans waiting to start."),
    ("canopy_topologies", "Stored topologies."),
    ("canopy_topologies_max", "Most stored topologies; an eighth of them is reserved for leases and faults."),
    ("canopy_topology_bytes", "Size of the stored topologies in bytes."),
    ("canopy_disk_bytes", "Size of the disk of the data directory, in bytes."),
    ("canopy_disk_free_bytes", "Bytes that the server may still write to that disk."),
    ("canopy_topology_bytes_max", "Most bytes of stored topologies."),
    ("canopy_audit_writable", "1 if the audit log is writable, else 0."),
    ("canopy_database_reachable", "1 if the database that servers share can be reached, else 0."),
    ("canopy_store_writable", "1 if the data directory is writable, else 0."),
    ("canopy_watchers", "Open watches of leases."),
];

/// Histograms and their buckets.
pub(super) const HISTOGRAMS: &[(&str, &str, &[f64])] = &[
    ("canopy_rpc_duration_seconds", "Time from a call's arrival to the last byte of its answer.", SECONDS),
    ("canopy_rpc_message_bytes", "Size of a message in bytes.", BYTES_OF_MESSAGES),
    ("canopy_plan_latency_seconds", "Time to a plan that was cached, joined or made.", SECONDS),
    ("canopy_plan_quality_ratio", "Achieved algbw ÷ proven bound of a finished plan.", RATIOS),
    ("canopy_synthesis_duration_seconds", "Duration of a synthesis, by stage; stage `all` is the total.", SECONDS),
    (
        "canopy_job_memory_ratio",
        "Memory of a synthesis ÷ its estimate; of those that ran alone and took, or might have, 64 MiB.",
        RATIOS_OF_ESTIMATES,
    ),
    ("canopy_synthesis_queue_wait_seconds", "Time that a job waited before its synthesis.", SECONDS),
    ("canopy_export_duration_seconds", "Time to write a file, read it back and prove it.", SECONDS),
    ("canopy_artifact_bytes", "Size of the files written, in bytes.", BYTES),
    ("canopy_replan_latency_seconds", "Time from the report of a fault to a plan for the remaining network.", SECONDS),
    ("canopy_store_operation_duration_seconds", "Duration of a read or write of the store.", SECONDS_OF_DISK),
];

const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0];
const SECONDS_OF_DISK: &[f64] = &[0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];
const BYTES: &[f64] = &[1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
const RATIOS: &[f64] = &[0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99, 0.999, 1.0];
const RATIOS_OF_ESTIMATES: &[f64] = &[0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 4.0, 10.0];
const BYTES_OF_MESSAGES: &[f64] = &[64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 16777216.0];

/// The number of ranks as a label of few classes.
pub(crate) const fn size_class(ranks: u32) -> &'static str {
    match ranks {
        0..=16 => "le16",
        17..=64 => "le64",
        65..=256 => "le256",
        257..=1024 => "le1024",
        _ => "gt1024",
    }
}
