//! Every metric of a server: name, kind, meaning, buckets.

use metrics::{KeyName, Recorder as _};
use metrics_exporter_prometheus::PrometheusRecorder;

/// How a metric behaves.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

use Kind::{Counter, Gauge, Histogram};

pub(super) const HELP: &[(Kind, &str, &str)] = &[
    (Gauge, "canopy_build_info", "Always 1; the labels tell the build."),
    (Counter, "canopy_rpc_requests_total", "Calls that have ended."),
    (Histogram, "canopy_rpc_duration_seconds", "Time from a call's arrival to the last byte of its answer."),
    (Gauge, "canopy_rpc_in_flight", "Calls that have not ended."),
    (Histogram, "canopy_rpc_message_bytes", "Length of a message."),
    (
        Counter,
        "canopy_clock_jumps_total",
        "Times that the clock of the system was set; leases and faults go by one that is not.",
    ),
    (Gauge, "canopy_connections", "Connections that are open."),
    (Counter, "canopy_connections_refused_total", "Connections that were closed at once for lack of a place."),
    (Counter, "canopy_plan_requests_total", "Requests for a plan that have ended."),
    (Histogram, "canopy_plan_latency_seconds", "Time to a plan that was found, joined or made."),
    (Counter, "canopy_plan_fallbacks_total", "Plans that were sent in place of the ones asked for."),
    (Histogram, "canopy_plan_quality_ratio", "Throughput of a finished plan ÷ its proven bound."),
    (
        Counter,
        "canopy_recall_total",
        "Looks for what is known of a shape: a plan `made` of it without a search, or `unknown`.",
    ),
    (Counter, "canopy_synthesis_total", "Syntheses that have ended."),
    (Histogram, "canopy_synthesis_duration_seconds", "Time of a synthesis, by stage; stage `all` is the whole."),
    (Counter, "canopy_synthesis_cpu_seconds_total", "Time that syntheses had a processor."),
    (Gauge, "canopy_synthesis_running", "Syntheses that run."),
    (Gauge, "canopy_synthesis_queue_depth", "Jobs that no planning worker has taken yet."),
    (Histogram, "canopy_synthesis_queue_wait_seconds", "Time a job waited before its synthesis."),
    (Counter, "canopy_verifier_failures_total", "Plans that failed their own checks; each is a bug."),
    (
        Counter,
        "canopy_rivals_rejected_total",
        "Plans that were compared with others and left out because they failed a check or their search broke; each is a bug.",
    ),
    (Counter, "canopy_export_total", "Files that were written for a runtime."),
    (Histogram, "canopy_export_duration_seconds", "Time to write a file, read it back and prove it."),
    (Histogram, "canopy_artifact_bytes", "Size of the files that were written."),
    (Counter, "canopy_config_reloads_total", "Times that the configuration was read again while serving."),
    (
        Gauge,
        "canopy_config_reload_success_timestamp_seconds",
        "When the configuration was last read without an error, in seconds since 1970 UTC.",
    ),
    (Gauge, "canopy_cache_entries", "Plans in the cache: on the disk, and of those the ones in memory."),
    (Gauge, "canopy_cache_bytes", "Bytes of the plans in the cache."),
    (Gauge, "canopy_cache_capacity_bytes", "Most bytes of plans the cache may hold."),
    (Gauge, "canopy_cache_pinned_entries", "Plans in the store that are never evicted."),
    (Gauge, "canopy_cache_schedules", "Schedules that are kept to serve other networks of their shapes."),
    (Gauge, "canopy_cache_schedule_bytes", "Bytes of those schedules on the disk."),
    (Counter, "canopy_cache_evictions_total", "Plans that made room for others."),
    (Gauge, "canopy_negative_cache_entries", "Requests that are remembered to have no plan."),
    (
        Counter,
        "canopy_negative_cache_hits_total",
        "Requests that were refused without a search, because it is remembered.",
    ),
    (Counter, "canopy_fault_events_total", "Reports of faults, by what became of them."),
    (Gauge, "canopy_faults_active", "Elements of networks that count as broken or slow."),
    (Counter, "canopy_fault_flaps_suppressed_total", "Changes of elements that came too often to be passed on."),
    (Gauge, "canopy_leases_active", "Leases that are held."),
    (Gauge, "canopy_replans_waiting", "Plans of leases that are to be made anew and have not begun."),
    (Counter, "canopy_replans_total", "Plans that took the place of others for a lease, by how they came about."),
    (Histogram, "canopy_replan_latency_seconds", "Time from the report of a fault to a plan for what it leaves."),
    (
        Counter,
        "canopy_replan_write_failures_total",
        "Times that faults and leases could not be written down; they are tried again, and reports refused until then.",
    ),
    (Gauge, "canopy_topologies", "Topologies that are kept."),
    (
        Gauge,
        "canopy_topologies_max",
        "Most topologies that may be kept; an eighth of them is for leases and faults alone.",
    ),
    (Gauge, "canopy_topology_bytes", "Bytes of the topologies that are kept."),
    (Gauge, "canopy_topology_bytes_max", "Most bytes of topologies that may be kept."),
    (
        Counter,
        "canopy_topologies_removed_total",
        "Topologies that nothing used and that went because others needed the room.",
    ),
    (Gauge, "canopy_store_writable", "1 where the data directory takes what is written, 0 until it does again."),
    (
        Counter,
        "canopy_store_damage_total",
        "Damaged records and entries that were met, by what they are of; `database`: one that was moved aside.",
    ),
    (Counter, "canopy_store_write_failures_total", "Times that something could not be written to the data directory."),
    (Gauge, "canopy_watchers", "Calls that watch what becomes of leases."),
    (Counter, "canopy_store_operations_total", "Reads and writes of the store."),
    (Histogram, "canopy_store_operation_duration_seconds", "Time of a read or write of the store."),
    (Counter, "canopy_store_corruptions_total", "Damaged records that were met and put into quarantine."),
];

const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0];
const SECONDS_OF_DISK: &[f64] = &[0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];
const BYTES: &[f64] = &[1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
const RATIOS: &[f64] = &[0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99, 0.999, 1.0];
const BYTES_OF_MESSAGES: &[f64] = &[64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 16777216.0];

pub(super) const BUCKETS: &[(&str, &[f64])] = &[
    ("canopy_rpc_duration_seconds", SECONDS),
    ("canopy_rpc_message_bytes", BYTES_OF_MESSAGES),
    ("canopy_plan_latency_seconds", SECONDS),
    ("canopy_plan_quality_ratio", RATIOS),
    ("canopy_synthesis_duration_seconds", SECONDS),
    ("canopy_export_duration_seconds", SECONDS),
    ("canopy_replan_latency_seconds", SECONDS),
    ("canopy_synthesis_queue_wait_seconds", SECONDS),
    ("canopy_store_operation_duration_seconds", SECONDS_OF_DISK),
    ("canopy_artifact_bytes", BYTES),
];

/// What a metric means.
pub(super) fn help(name: &str) -> &'static str {
    HELP.iter().find(|(_, other, _)| *other == name).map_or("", |(.., help)| help)
}

pub(super) fn describe(recorder: &PrometheusRecorder, kind: Kind, name: &'static str, help: &'static str) {
    let name = KeyName::from_const_str(name);
    match kind {
        Counter => recorder.describe_counter(name, None, help.into()),
        Gauge => recorder.describe_gauge(name, None, help.into()),
        Histogram => recorder.describe_histogram(name, None, help.into()),
    }
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
