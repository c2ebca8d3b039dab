//! `/debug/queue`: what runs and what waits, as JSON for a person at a terminal.

use serde::Serialize;

use crate::clock;
use crate::jobs::queue::QueueCounts;

/// The page.
#[derive(Debug, Serialize)]
pub(super) struct QueuePage {
    waiting: usize,
    running: usize,
    length_max: usize,
    held_bytes: usize,
    held_bytes_max: usize,
    priorities: Vec<PriorityLine>,
    /// Those that run first, then those that wait, the next one first.
    jobs: Vec<JobLine>,
}

#[derive(Debug, Serialize)]
struct PriorityLine {
    priority: &'static str,
    waiting: usize,
    running: usize,
}

#[derive(Debug, Serialize)]
struct JobLine {
    operation: String,
    request: String,
    state: &'static str,
    priority: &'static str,
    collective: &'static str,
    algorithm: &'static str,
    stage: String,
    done: u64,
    total: u64,
    waiters: usize,
    detached: bool,
    age_ms: u64,
}

impl QueuePage {
    /// The page of a queue at this moment.
    pub(super) fn of(counts: &QueueCounts) -> Self {
        let now_ms = clock::unix_ms();
        let job = |job: &std::sync::Arc<crate::jobs::job::Job>| {
            let operation = job.describe();
            let progress = operation.progress.unwrap_or_default();
            JobLine {
                operation: operation.name,
                state: operation.state.name(),
                priority: operation.priority.name(),
                collective: job.order.kind.name(),
                algorithm: job.order.algorithm.name(),
                stage: progress.stage.into_owned(),
                done: progress.done,
                total: progress.total,
                waiters: operation.waiters,
                detached: operation.detached,
                age_ms: now_ms.saturating_sub(job.arrived_unix_ms),
                request: operation.request.to_string(),
            }
        };
        let priorities = counts.priorities.iter().map(|&(priority, waiting, running)| PriorityLine {
            priority: priority.name(),
            waiting,
            running,
        });
        Self {
            waiting: counts.waiting,
            running: counts.running,
            length_max: counts.limits.length_max,
            held_bytes: counts.held_bytes,
            held_bytes_max: counts.limits.bytes_max,
            priorities: priorities.collect(),
            jobs: counts.jobs.iter().map(job).collect(),
        }
    }
}
