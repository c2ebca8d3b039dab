//! Plans that stand in for those that do not come.

use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use canopy_proto::v1::{OnMiss, PlanRequest, QualityPolicy};
use canopy_server::{Order, Pipeline, PlanFailure, Planner, Prepared, Produced, Watch};
use canopy_synth::{Algorithm, Stop, SynthesisError};
use canopy_topology::TopologyLimits;
use tonic::{Code, Request};
use tonic_types::StatusExt as _;

use crate::support::{TestServer, request, stream};

/// Makes plans of `direct` like the real planner, and no others.
struct OnlyDirect {
    inner: Pipeline,
    /// How searches end: at once with this, or never.
    end: Option<SynthesisError>,
    idle: (Mutex<()>, Condvar),
}

impl OnlyDirect {
    fn new(end: Option<SynthesisError>) -> Arc<Self> {
        Arc::new(Self { inner: Pipeline::new(TopologyLimits::STANDARD), end, idle: Default::default() })
    }
}

impl Planner for OnlyDirect {
    fn prepare(&self, order: &Order, stop: &dyn Stop) -> Result<Prepared, PlanFailure> {
        self.inner.prepare(order, stop)
    }

    fn produce(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Produced, PlanFailure> {
        if order.algorithm == Algorithm::Direct {
            return self.inner.produce(order, prepared, stop, watch);
        }
        if let Some(end) = &self.end {
            return Err(PlanFailure::Synthesis(end.clone()));
        }
        let mut idle = self.idle.0.lock().unwrap();
        while !stop.is_requested() {
            idle = self.idle.1.wait_timeout(idle, Duration::from_millis(5)).unwrap().0;
        }
        Err(PlanFailure::Stopped)
    }
}

fn asking(on_miss: OnMiss, deadline: Duration) -> Request<PlanRequest> {
    let quality = Some(QualityPolicy { on_miss: on_miss.into(), ..QualityPolicy::default() });
    let mut request = Request::new(PlanRequest { quality, ..request("ring:6") });
    request.set_timeout(deadline);
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_plan_is_stood_in_for_even_while_every_worker_searches() {
    let server =
        TestServer::start_with(|options| options.worker_count = NonZeroUsize::new(1).unwrap(), OnlyDirect::new(None))
            .await;
    // The only worker is busy for ever.
    let started = server.client().prefetch(request("ring:9")).await.unwrap().into_inner();
    let mut client = server.client();
    let asked = client.plan(asking(OnMiss::Fallback, Duration::from_millis(1500)));
    let reply = tokio::time::timeout(Duration::from_millis(1600), asked).await.expect("in time").unwrap().into_inner();
    let fallback = reply.fallback.unwrap();
    assert_eq!((fallback.reason.as_str(), fallback.operation.as_str()), ("DEADLINE", ""));
    assert_eq!(reply.warnings.iter().filter(|warning| warning.code == "FALLBACK_USED").count(), 1);
    let plan = reply.plan.unwrap();
    assert_eq!((plan.algorithm.as_str(), plan.checked.len()), ("direct", 5));
    // It is cached under its own key, not under that of the plan which was asked for.
    let late = server.client().plan(asking(OnMiss::Fail, Duration::from_millis(300))).await.unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
    assert_eq!(late.get_error_details().error_info().unwrap().reason, "SOLVER_TIME_LIMIT");
    assert!(!started.done);
    server.drain.start();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_late_ends_with_a_stand_in_and_names_the_job_that_goes_on() {
    let server = TestServer::start_with(|_| {}, OnlyDirect::new(None)).await;
    let mut asked = asking(OnMiss::BestSoFar, Duration::from_millis(1000));
    asked.get_mut().detached = true;
    let streamed = stream(&server, asked).await.unwrap();
    let fallback = streamed.header.fallback.unwrap();
    assert!(fallback.operation.starts_with("operations/"), "{fallback:?}");
    let plan = streamed.header.plan.unwrap();
    assert_eq!((plan.algorithm.as_str(), plan.artifacts[0].size_bytes), ("direct", streamed.files[0].len() as u64));
    server.drain.start();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_search_cannot_plan_is_stood_in_for_and_what_nobody_can_is_not() {
    let end = SynthesisError::TooManyTrees { trees_per_rank: 9, rank_count: 6 };
    let server = TestServer::start_with(|_| {}, OnlyDirect::new(Some(end))).await;
    let minute = Duration::from_secs(30);
    let reply = server.client().plan(asking(OnMiss::Fallback, minute)).await.unwrap().into_inner();
    let fallback = reply.fallback.unwrap();
    assert!(fallback.reason != "DEADLINE" && !fallback.text.is_empty(), "{fallback:?}");
    let refused = server.client().plan(asking(OnMiss::Fail, minute)).await.unwrap_err();
    assert_eq!(refused.get_error_details().error_info().unwrap().reason, fallback.reason);
    let mut wrong = asking(OnMiss::Fallback, minute);
    wrong.get_mut().topology = request("ring:1").topology;
    assert_eq!(server.client().plan(wrong).await.unwrap_err().code(), Code::InvalidArgument);
    server.stop().await;
}
