//! Every metric of a server: name, meaning, buckets.

/// What is counted.
pub(super) const COUNTERS: &[(&str, &str)] = &[
    ("canopy_rpc_requests_total", "Calls that have ended."),
    (
        "canopy_clock_jumps_total",
        "Times that the clock of the system was set; leases and faults go by one that is not.",
    ),
    ("canopy_connections_refused_total", "Connections that were closed at once for lack of a place."),
    ("canopy_plan_requests_total", "Requests for a plan that have ended."),
    ("canopy_plan_fallbacks_total", "Plans that were sent in place of the ones asked for."),
    ("canopy_recall_total", "Looks for what is known of a shape: a plan `made` of it without a search, or `unknown`."),
    ("canopy_synthesis_total", "Syntheses that have ended."),
    ("canopy_synthesis_cpu_seconds_total", "Time that syntheses had a processor."),
    ("canopy_verifier_failures_total", "Plans that failed their own checks; each is a bug."),
    (
        "canopy_rivals_rejected_total",
        "Plans that were compared with others and left out because they failed a check or their search broke; each is a bug.",
    ),
    ("canopy_export_total", "Files that were written for a runtime."),
    ("canopy_config_reloads_total", "Times that the configuration was read again while serving."),
    ("canopy_cache_evictions_total", "Plans that made room for others."),
    ("canopy_negative_cache_hits_total", "Requests that were refused without a search, because it is remembered."),
    ("canopy_fault_events_total", "Reports of faults, by what became of them."),
    ("canopy_fault_flaps_suppressed_total", "Changes of elements that came too often to be passed on."),
    ("canopy_replans_total", "Plans that took the place of others for a lease, by how they came about."),
    (
        "canopy_replan_write_failures_total",
        "Times that faults and leases could not be written down; they are tried again, and reports refused until then.",
    ),
    ("canopy_topologies_removed_total", "Topologies that nothing used and that went because others needed the room."),
    (
        "canopy_store_damage_total",
        "Damaged records and entries that were met, by what they are of; `database`: one that was moved aside.",
    ),
    ("canopy_store_write_failures_total", "Times that something could not be written to the data directory."),
    ("canopy_store_operations_total", "Reads and writes of the store."),
    ("canopy_store_corruptions_total", "Damaged records that were met and put into quarantine."),
];

/// What is so at the moment.
pub(super) const GAUGES: &[(&str, &str)] = &[
    ("canopy_build_info", "Always 1; the labels tell the build."),
    ("canopy_rpc_in_flight", "Calls that have not ended."),
    ("canopy_connections", "Connections that are open."),
    ("canopy_synthesis_running", "Syntheses that run."),
    ("canopy_synthesis_queue_depth", "Jobs that no planning worker has taken yet."),
    (
        "canopy_config_reload_success_timestamp_seconds",
        "When the configuration was last read without an error, in seconds since 1970 UTC.",
    ),
    ("canopy_cache_entries", "Plans in the cache: on the disk, and of those the ones in memory."),
    ("canopy_cache_bytes", "Bytes of the plans in the cache."),
    ("canopy_cache_capacity_bytes", "Most bytes of plans the cache may hold."),
    ("canopy_cache_pinned_entries", "Plans in the store that are never evicted."),
    ("canopy_cache_schedules", "Schedules that are kept to serve other networks of their shapes."),
    ("canopy_cache_schedule_bytes", "Bytes of those schedules on the disk."),
    ("canopy_negative_cache_entries", "Requests that are remembered to have no plan."),
    ("canopy_faults_active", "Elements of networks that count as broken or slow."),
    ("canopy_leases_active", "Leases that are held."),
    ("canopy_replans_waiting", "Plans of leases that are to be made anew and have not begun."),
    ("canopy_topologies", "Topologies that are kept."),
    ("canopy_topologies_max", "Most topologies that may be kept; an eighth of them is for leases and faults alone."),
    ("canopy_topology_bytes", "Bytes of the topologies that are kept."),
    ("canopy_topology_bytes_max", "Most bytes of topologies that may be kept."),
    ("canopy_store_writable", "1 where the data directory takes what is written, 0 until it does again."),
    ("canopy_watchers", "Calls that watch what becomes of leases."),
];

/// How much or how long things were, and the buckets that they are counted in.
pub(super) const HISTOGRAMS: &[(&str, &str, &[f64])] = &[
    ("canopy_rpc_duration_seconds", "Time from a call's arrival to the last byte of its answer.", SECONDS),
    ("canopy_rpc_message_bytes", "Length of a message.", BYTES_OF_MESSAGES),
    ("canopy_plan_latency_seconds", "Time to a plan that was found, joined or made.", SECONDS),
    ("canopy_plan_quality_ratio", "Throughput of a finished plan ÷ its proven bound.", RATIOS),
    ("canopy_synthesis_duration_seconds", "Time of a synthesis, by stage; stage `all` is the whole.", SECONDS),
    ("canopy_synthesis_queue_wait_seconds", "Time a job waited before its synthesis.", SECONDS),
    ("canopy_export_duration_seconds", "Time to write a file, read it back and prove it.", SECONDS),
    ("canopy_artifact_bytes", "Size of the files that were written.", BYTES),
    ("canopy_replan_latency_seconds", "Time from the report of a fault to a plan for what it leaves.", SECONDS),
    ("canopy_store_operation_duration_seconds", "Time of a read or write of the store.", SECONDS_OF_DISK),
];

const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0];
const SECONDS_OF_DISK: &[f64] = &[0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];
const BYTES: &[f64] = &[1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
const RATIOS: &[f64] = &[0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99, 0.999, 1.0];
const BYTES_OF_MESSAGES: &[f64] = &[64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 16777216.0];

/// What a counter means.
pub(super) fn help(name: &str) -> &'static str {
    COUNTERS.iter().find(|(other, _)| *other == name).map_or("", |(_, help)| help)
}

/// Ranks of a topology as a label: few classes, whatever is asked for.
pub(crate) const fn size_class(ranks: u32) -> &'static str {
    match ranks {
        0..=16 => "le16",
        17..=64 => "le64",
        65..=256 => "le256",
        257..=1024 => "le1024",
        _ => "gt1024",
    }
}
