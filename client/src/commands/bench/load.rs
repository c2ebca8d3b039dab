//! Many calls at once, and what came of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use canopy_client::{Client, ClientError, FileName, Jitter, Retries, RetryPolicy};
use canopy_proto::v1::{CacheOutcome, PlanReply, PlanRequest};
use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use crate::clock;
use crate::exit::Failure;

/// Longest latency that is told from longer ones, in nanoseconds: an hour.
const LATENCY_NANOS_MAX: u64 = 3_600_000_000_000;
/// Significant digits of latencies.
const DIGITS: u8 = 3;

/// So many calls, so many of them at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) count: u64,
    pub(super) concurrency: u32,
    /// Longest time of one call.
    pub(super) limit: Duration,
}

/// What came of the calls.
#[derive(Debug)]
pub(super) struct Measured {
    /// Latencies of all calls, in nanoseconds, also of those that failed.
    pub(super) latencies: Histogram<u64>,
    pub(super) elapsed: Duration,
    pub(super) tally: Tally,
}

/// Counts over some calls.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) failed: u64,
    /// The first failure.
    pub(super) error: Option<Failure>,
    pub(super) bytes: u64,
    pub(super) hits: u64,
    pub(super) joined: u64,
    pub(super) misses: u64,
    /// Ids of the plans in the answers.
    pub(super) plans: BTreeSet<String>,
}

/// What one call brought.
#[derive(Debug, Default)]
struct Brought {
    bytes: u64,
    cache: CacheOutcome,
    plan: Option<String>,
}

impl From<PlanReply> for Brought {
    fn from(reply: PlanReply) -> Self {
        Self { bytes: 0, cache: reply.cache(), plan: reply.plan.map(|plan| plan.id) }
    }
}

impl Load {
    /// Calls LookupPlan.
    pub(super) async fn lookup(self, clients: &[Client], requests: Vec<PlanRequest>) -> Result<Measured, Failure> {
        self.put(clients, requests, async |client: Client, request: PlanRequest, limit| {
            client.lookup_plan(request, Some(limit)).await.map(Brought::from)
        })
        .await
    }

    /// Calls Plan.
    pub(super) async fn plan(self, clients: &[Client], requests: Vec<PlanRequest>) -> Result<Measured, Failure> {
        self.put(clients, requests, async |client: Client, request: PlanRequest, limit| {
            client.plan_metadata(request, Some(limit)).await.map(Brought::from)
        })
        .await
    }

    /// Calls FetchArtifact and takes every byte.
    pub(super) async fn content(self, clients: &[Client], file: FileName) -> Result<Measured, Failure> {
        self.put(clients, vec![file], async |client: Client, file: FileName, limit| {
            let mut once = Retries::new(RetryPolicy::NEVER, Jitter::seeded(0));
            let artifact = client.download(&file, Some(limit), &mut once, &mut |_| Ok(())).await?;
            Ok(Brought { bytes: artifact.size_bytes, plan: Some(file.plan), ..Brought::default() })
        })
        .await
    }

    /// Keeps `concurrency` tasks calling until `count` calls have been made, with one argument after another. The tasks
    /// take the connections in turn.
    async fn put<A, C, F>(self, clients: &[Client], arguments: Vec<A>, call: C) -> Result<Measured, Failure>
    where
        A: Clone + Send + Sync + 'static,
        C: Fn(Client, A, Duration) -> F + Copy + Send + 'static,
        F: Future<Output = Result<Brought, ClientError>> + Send,
    {
        let (begun, arguments) = (Arc::new(AtomicU64::new(0)), Arc::new(arguments));
        let mut tasks = JoinSet::new();
        let started = clock::now();
        for (_, client) in (0..u64::from(self.concurrency).min(self.count)).zip(clients.iter().cycle()) {
            let (client, arguments, begun) = (client.clone(), Arc::clone(&arguments), Arc::clone(&begun));
            tasks.spawn(async move {
                // A histogram of its own would take much more memory than the latencies of one task.
                let (mut latencies, mut tally) = (Vec::new(), Tally::default());
                loop {
                    let number = begun.fetch_add(1, Ordering::Relaxed);
                    if number >= self.count {
                        break;
                    }
                    let place = usize::try_from(number % (arguments.len() as u64).max(1)).unwrap_or(0);
                    let Some(argument) = arguments.get(place) else { break };
                    let called = clock::now();
                    let outcome = call(client.clone(), argument.clone(), self.limit).await;
                    latencies.push(called.elapsed());
                    tally.note(outcome);
                }
                (latencies, tally)
            });
        }
        let mut shares = Vec::new();
        while let Some(joined) = tasks.join_next().await {
            shares.push(joined.map_err(|error| Failure::fault(error.to_string()))?);
        }
        let elapsed = started.elapsed();
        let mut latencies = Histogram::new_with_bounds(1, LATENCY_NANOS_MAX, DIGITS)
            .map_err(|error| Failure::fault(format!("cannot measure latencies: {error}")))?;
        let mut tally = Tally::default();
        for (some, counts) in shares {
            for latency in some {
                latencies.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
            }
            tally.add(counts);
        }
        Ok(Measured { latencies, elapsed, tally })
    }
}

impl Tally {
    fn note(&mut self, outcome: Result<Brought, ClientError>) {
        match outcome {
            Ok(brought) => {
                self.bytes += brought.bytes;
                match brought.cache {
                    CacheOutcome::Hit => self.hits += 1,
                    CacheOutcome::Joined => self.joined += 1,
                    CacheOutcome::Miss => self.misses += 1,
                    CacheOutcome::Stale | CacheOutcome::Unspecified => {}
                }
                if let Some(plan) = brought.plan
                    && !self.plans.contains(&plan)
                {
                    self.plans.insert(plan);
                }
            }
            Err(error) => {
                self.failed += 1;
                self.error.get_or_insert_with(|| error.into());
            }
        }
    }

    fn add(&mut self, mut other: Self) {
        self.failed += other.failed;
        self.bytes += other.bytes;
        self.hits += other.hits;
        self.joined += other.joined;
        self.misses += other.misses;
        self.plans.append(&mut other.plans);
        self.error = self.error.take().or(other.error);
    }
}
