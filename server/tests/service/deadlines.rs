//! Deadlines at a thousand ranks while others keep every worker busy.

use std::time::{Duration, Instant};

use canopy_proto::v1::{OnMiss, PlanRequest, QualityPolicy};
use canopy_server::Pipeline;
use canopy_topology::TopologyLimits;
use tonic::{Code, Request};
use tonic_types::StatusExt as _;

use crate::support::{TestServer, once_in_three, request};

/// What an answer may take on top of the deadline.
const GRACE: Duration = Duration::from_millis(100);

/// From here on the server has time to say in its own words that time is up.
const OWN_WORDS: Duration = Duration::from_millis(500);

/// Whatever comes of a request, it comes in time: a plan, one that stands in, or the stage in which time was up.
#[tokio::test(flavor = "multi_thread")]
async fn every_deadline_is_kept_at_a_thousand_ranks_under_load() {
    let limits = TopologyLimits::STANDARD;
    let planner = std::sync::Arc::new(Pipeline::new(limits));
    let moment = Duration::from_millis(100);
    let server =
        TestServer::start_with(|options| (options.limits, options.drain_timeout) = (limits, moment), planner).await;
    for number in 0..3 {
        server.client().prefetch(network(number)).await.unwrap();
    }
    let mut number = 3;
    for deadline in [50, 100, 200, 500, 1_000].map(Duration::from_millis) {
        for on_miss in [OnMiss::Fail, OnMiss::BestSoFar] {
            let in_time = once_in_three(async |_| {
                number += 1;
                kept(&server, network(number), deadline, on_miss).await
            });
            in_time.await.unwrap_or_else(|late| panic!("{deadline:?}, {on_miss:?}: {late:?}"));
        }
    }
    server.drain.start();
    server.stop().await;
}

/// A network that no other request is for.
fn network(number: u32) -> PlanRequest {
    request(&format!("dgx-a100:boxes=125,degrade=b{number}g3-ib*1/2"))
}

/// Whether an answer comes in time, or how it is late.
async fn kept(server: &TestServer, request: PlanRequest, deadline: Duration, on_miss: OnMiss) -> Result<(), String> {
    let quality = Some(QualityPolicy { on_miss: on_miss.into(), ..QualityPolicy::default() });
    let mut asked = Request::new(PlanRequest { quality, ..request });
    asked.set_timeout(deadline);
    let started = now();
    let answer = server.client().plan(asked).await;
    let elapsed = started.elapsed();
    if elapsed > deadline + GRACE {
        return Err(format!("an answer took {elapsed:?}"));
    }
    let Err(status) = answer else { return Ok(()) };
    assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{status:?}");
    let words = status.get_error_details().error_info().map(|info| info.reason.clone());
    if deadline >= OWN_WORDS && words.as_deref() != Some("SOLVER_TIME_LIMIT") {
        return Err(format!("{status:?}"));
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "how long an answer takes is what is tested")]
fn now() -> Instant {
    Instant::now()
}
