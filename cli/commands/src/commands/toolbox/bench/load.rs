//! Many calls at once, and what came of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use canopy_client::{Client, ClientError, FileName, Jitter, Retries, RetryPolicy};
use canopy_proto::v1::{CacheOutcome, PlanResponse, PlanSpec};
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
    /// How long the server says that it took, in nanoseconds, of the calls that it says so of.
    pub(super) server: Histogram<u64>,
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
    /// How long the server says that it took.
    server: Option<Duration>,
}

impl From<PlanResponse> for Brought {
    fn from(reply: PlanResponse) -> Self {
        let total = reply.timings.as_ref().and_then(|timings| timings.total.and_then(|total| total.try_into().ok()));
        Self { bytes: 0, cache: reply.cache(), plan: reply.plan.map(|plan| plan.name), server: total }
    }
}

impl Load {
    /// Calls LookUpPlan.
    pub(super) async fn lookup(self, clients: &[Client], requests: Supply<PlanSpec>) -> Result<Measured, Failure> {
        self.put(clients, requests, async |client: Client, request: PlanSpec, limit| {
            client.look_up_plan(request.into_look_up(), Some(limit)).await.map(Brought::from)
        })
        .await
    }

    /// Calls Plan.
    pub(super) async fn plan(self, clients: &[Client], requests: Supply<PlanSpec>) -> Result<Measured, Failure> {
        self.put(clients, requests, async |client: Client, request: PlanSpec, limit| {
            client.plan_metadata(request.into_plan(), Some(limit)).await.map(Brought::from)
        })
        .await
    }

    /// Calls FetchPlanFile and takes every byte.
    pub(super) async fn content(self, clients: &[Client], file: FileName) -> Result<Measured, Failure> {
        self.put(clients, Supply::of(vec![file]), async |client: Client, file: FileName, limit| {
            let mut once = Retries::new(RetryPolicy::NEVER, Jitter::seeded(0));
            let artifact = client.download(&file, Some(limit), &mut once, &mut |_| Ok(())).await?;
            Ok(Brought { bytes: artifact.size_bytes, plan: Some(file.plan), ..Brought::default() })
        })
        .await
    }

    /// Keeps `concurrency` tasks calling until `count` calls have been made, with one argument after another. The tasks
    /// take the connections in turn. Making an argument does not count as part of a call.
    async fn put<A, C, F>(self, clients: &[Client], arguments: Supply<A>, call: C) -> Result<Measured, Failure>
    where
        A: Clone + Send + Sync + 'static,
        C: Fn(Client, A, Duration) -> F + Copy + Send + 'static,
        F: Future<Output = Result<Brought, ClientError>> + Send,
    {
        let begun = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        let started = clock::now();
        for (_, client) in (0..u64::from(self.concurrency).min(self.count)).zip(clients.iter().cycle()) {
            let (client, arguments, begun) = (client.clone(), arguments.clone(), Arc::clone(&begun));
            tasks.spawn(async move {
                // A histogram of its own would take much more memory than the latencies of one task.
                let (mut latencies, mut server, mut tally) = (Vec::new(), Vec::new(), Tally::default());
                loop {
                    let number = begun.fetch_add(1, Ordering::Relaxed);
                    if number >= self.count {
                        break;
                    }
                    let argument = match arguments.at(number) {
                        Ok(argument) => argument,
                        Err(failure) => {
                            tally.fail(failure);
                            break;
                        }
                    };
                    let called = clock::now();
                    let outcome = call(client.clone(), argument, self.limit).await;
                    latencies.push(called.elapsed());
                    server.extend(outcome.as_ref().ok().and_then(|brought| brought.server));
                    tally.note(outcome);
                }
                (latencies, server, tally)
            });
        }
        let mut shares = Vec::new();
        while let Some(joined) = tasks.join_next().await {
            shares.push(joined.map_err(|error| Failure::fault(error.to_string()))?);
        }
        let elapsed = started.elapsed();
        let (mut latencies, mut server) = (histogram()?, histogram()?);
        let mut tally = Tally::default();
        for (some, by_server, counts) in shares {
            for (times, histogram) in [(some, &mut latencies), (by_server, &mut server)] {
                for time in times {
                    histogram.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
                }
            }
            tally.add(counts);
        }
        Ok(Measured { latencies, server, elapsed, tally })
    }
}

fn histogram() -> Result<Histogram<u64>, Failure> {
    Histogram::new_with_bounds(1, LATENCY_NANOS_MAX, DIGITS)
        .map_err(|error| Failure::fault(format!("cannot measure latencies: {error}")))
}

/// Arguments of calls, by the number of the call.
#[derive(Clone)]
pub(super) struct Supply<A>(Arc<dyn Fn(u64) -> Result<A, Failure> + Send + Sync>);

impl<A: Clone + Send + Sync + 'static> Supply<A> {
    /// One of these after another, again and again.
    pub(super) fn of(arguments: Vec<A>) -> Self {
        Self::made(move |number| {
            let place = usize::try_from(number % (arguments.len() as u64).max(1)).unwrap_or(0);
            arguments.get(place).cloned().ok_or_else(|| Failure::fault("there is nothing to ask for"))
        })
    }

    /// Made for each call.
    pub(super) fn made(make: impl Fn(u64) -> Result<A, Failure> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    fn at(&self, number: u64) -> Result<A, Failure> {
        (self.0)(number)
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
                    CacheOutcome::Unspecified => {}
                }
                if let Some(plan) = brought.plan
                    && !self.plans.contains(&plan)
                {
                    self.plans.insert(plan);
                }
            }
            Err(error) => self.fail(error.into()),
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.failed += 1;
        self.error.get_or_insert(failure);
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
