//! What those who are attacked notice of it: how long they wait.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use canopy_proto::v1::planner_client::PlannerClient;
use tonic::transport::Channel;

use crate::access::Shows;
use crate::processor::{waited_here, waited_to_answer};
use crate::support::{Process, request};

/// Lookups of a cached plan, one after another, unless `CANOPY_LOOKUPS` says how many.
const LOOKUPS: usize = 100;
/// Plans for networks that nobody has planned for.
const NEW_PLANS: usize = 5;

/// What was measured.
#[derive(Clone, Copy)]
pub(super) struct Times {
    /// The 99th percentile of the lookups, without the time for which other processes had the processors.
    pub(super) lookup_p99: Duration,
    /// The longest wait for a new plan.
    pub(super) new_plan: Duration,
}

/// Looks a plan up, and has new ones made, as the caller who shows this.
#[expect(clippy::disallowed_methods, reason = "the test measures")]
pub(super) async fn times(process: &Process, shows: &Shows, network: &'static str, number: &AtomicU64) -> Times {
    let (address, id, shows) = (process.address("tcp"), process.id(), shows.clone());
    let count = std::env::var("CANOPY_LOOKUPS").map_or(LOOKUPS, |text| text.parse().expect("a number"));
    let new: Vec<String> =
        (0..NEW_PLANS).map(|_| format!("torus:4x4,lat={}ns", 1000 + number.fetch_add(1, Ordering::Relaxed))).collect();
    // A thread that does nothing else, so that all of its waiting is for these calls.
    let measured = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let endpoint = Channel::from_shared(format!("http://{address}")).unwrap();
            let mut client = PlannerClient::new(endpoint.connect().await.unwrap());
            let mut lookups = Vec::with_capacity(count);
            for _ in 0..count {
                let waited = || waited_here() + waited_to_answer(id);
                let (waited_before, started) = (waited(), Instant::now());
                client.look_up_plan(shows.with(request(network).into_look_up())).await.unwrap();
                let elapsed = started.elapsed();
                lookups.push(elapsed.saturating_sub(waited().saturating_sub(waited_before)));
            }
            let mut new_plan = Duration::ZERO;
            for network in new {
                let started = Instant::now();
                client.plan(shows.with(request(&network).into_plan())).await.unwrap();
                new_plan = new_plan.max(started.elapsed());
            }
            lookups.sort_unstable();
            Times { lookup_p99: lookups[count * 99 / 100], new_plan }
        })
    });
    measured.await.unwrap()
}
