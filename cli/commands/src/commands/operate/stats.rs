//! `canopy server stats`: what a server holds, has done and is doing.

use canopy_proto::v1::{GetQueueRequest, GetStatusRequest, QueueStatus, ServerStatus, SharingServer};
use serde::Serialize;

use crate::exit::Failure;
use crate::output::{bytes_in_words, print_json};
use crate::protocol_words::word;
use crate::stdout::print;
use crate::table::count;

use super::jobs;
use super::{CommonArgs, Entry, ask, table};

/// Show the contents, counters and queue of the server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy server stats
  canopy server stats --server unix:/run/canopy/canopy.sock --json")]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    common: CommonArgs,
}

/// JSON object of the command.
#[derive(Serialize)]
struct Stats {
    version: String,
    draining: bool,
    archive_key: String,
    uptime_seconds: i64,
    plans: u64,
    pinned_plans: u64,
    plan_bytes: u64,
    schedules: u64,
    schedule_bytes: u64,
    syntheses: u64,
    corruptions: u64,
    refusals: u64,
    refusals_served: u64,
    waiting: u64,
    running: u64,
    workers: u32,
    queue_length_max: u64,
    held_bytes: u64,
    held_bytes_max: u64,
    priorities: Vec<PriorityRow>,
    servers: Vec<ServerRow>,
    jobs: Vec<jobs::Row>,
}

#[derive(Serialize)]
struct PriorityRow {
    priority: String,
    waiting: u64,
    running: u64,
}

/// A server that shares the database.
#[derive(Serialize)]
struct ServerRow {
    name: String,
    role: String,
    class: String,
    age_seconds: i64,
    heard_seconds_ago: i64,
    running: u64,
    answers: bool,
}

/// Asks and prints.
pub(crate) async fn run(args: StatsArgs) -> Result<(), Failure> {
    args.common.server.require_server().await?;
    let (status, queue) = ask(&args.common, async |client, left| {
        Ok((client.get_status(GetStatusRequest {}, left).await?, client.get_queue(GetQueueRequest {}, left).await?))
    })
    .await?;
    let stats = stats(status, queue);
    if args.common.json { print_json("stats", &stats) } else { print(&readable(stats)) }
}

fn stats(status: ServerStatus, queue: QueueStatus) -> Stats {
    let (counts, limits) = (status.counts.unwrap_or_default(), status.limits.unwrap_or_default());
    let priority = |row: &canopy_proto::v1::PriorityStatus| PriorityRow {
        priority: word(row.priority().as_str_name(), "PRIORITY"),
        waiting: row.waiting,
        running: row.running,
    };
    Stats {
        version: status.version,
        draining: status.draining,
        archive_key: status.archive_key,
        uptime_seconds: status.uptime.map_or(0, |uptime| uptime.seconds),
        plans: counts.plans,
        pinned_plans: counts.pinned_plans,
        plan_bytes: counts.plan_bytes,
        schedules: counts.schedules,
        schedule_bytes: counts.schedule_bytes,
        syntheses: counts.syntheses,
        corruptions: counts.corruptions,
        refusals: counts.refusals,
        refusals_served: counts.refusals_served,
        waiting: counts.waiting,
        running: counts.running,
        workers: limits.workers,
        queue_length_max: queue.length_max,
        held_bytes: queue.held_bytes,
        held_bytes_max: queue.held_bytes_max,
        priorities: queue.priorities.iter().map(priority).collect(),
        servers: status.servers.into_iter().map(server).collect(),
        jobs: queue.operations.into_iter().map(jobs::Row::of).collect(),
    }
}

impl Entry for ServerRow {
    const NAME: &'static str = "servers";
    const HEADING: &'static [&'static str] = &["SERVER", "ROLE", "CLASS", "TAKES PART FOR", "HEARD", "JOBS#"];

    fn cells(self) -> Vec<String> {
        let name = if self.answers { format!("{} (answers)", self.name) } else { self.name };
        let role = if self.role.is_empty() { "unknown".to_owned() } else { self.role };
        let heard = format!("{} s ago", self.heard_seconds_ago);
        vec![name, role, self.class, uptime(self.age_seconds), heard, self.running.to_string()]
    }
}

fn server(server: SharingServer) -> ServerRow {
    ServerRow {
        name: server.name,
        role: server.role,
        class: server.class,
        age_seconds: server.age.map_or(0, |age| age.seconds),
        heard_seconds_ago: server.heard_ago.map_or(0, |ago| ago.seconds),
        running: server.running,
        answers: server.answers,
    }
}

fn readable(stats: Stats) -> String {
    let times = |number: u64| if number == 1 { "once".to_owned() } else { format!("{number} times") };
    let state = if stats.draining { ", draining" } else { "" };
    let mut lines = vec![
        format!("canopy {}, up {}{state}", stats.version, uptime(stats.uptime_seconds)),
        format!(
            "plans      {} cached, {} pinned, {}",
            stats.plans,
            stats.pinned_plans,
            bytes_in_words(stats.plan_bytes)
        ),
        format!("schedules  {}, {}", stats.schedules, bytes_in_words(stats.schedule_bytes)),
        format!("searches   {} since the start", stats.syntheses),
        format!(
            "refusals   {} known to have no plan, answered {}",
            count(stats.refusals, "request"),
            times(stats.refusals_served)
        ),
        format!("damage     {} found since the start", count(stats.corruptions, "damaged record")),
        format!(
            "queue      {} running on {}, {} waiting of at most {}",
            stats.running,
            count(stats.workers, "worker"),
            stats.waiting,
            stats.queue_length_max
        ),
        format!(
            "memory     {} of {} held by requests",
            bytes_in_words(stats.held_bytes),
            bytes_in_words(stats.held_bytes_max)
        ),
    ];
    lines.push(format!("archives   signed with {}", stats.archive_key));
    for row in &stats.priorities {
        if row.running > 0 || row.waiting > 0 {
            lines.push(format!("  {}: {} running, {} waiting", row.priority, row.running, row.waiting));
        }
    }
    if !stats.servers.is_empty() {
        lines.push(table(stats.servers));
    }
    if !stats.jobs.is_empty() {
        lines.push(table(stats.jobs));
    }
    lines.join("\n")
}

/// `2 h 5 min`, `3 min`, `12 s`: how long a server has been up.
fn uptime(seconds: i64) -> String {
    match (seconds / 86_400, seconds % 86_400 / 3_600, seconds % 3_600 / 60) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}
