//! Plans that stand in for those that do not come.

use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use canopy_planner::PlanError;
use canopy_proto::Exact as _;
use canopy_proto::v1::operations_client::OperationsClient;
use canopy_proto::v1::plan_event::Event;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::{
    CacheOutcome, Collective, CollectiveSpec, FetchPlanFileEvent, FetchPlanFileRequest, GetPlanRequest,
    GetPlanSummaryRequest, OnMiss, OutputFormat, Plan, PlanRequest, WaitOperationRequest, fetch_plan_file_event,
};
use canopy_server::{Options, Order, Pipeline, PlanFailure, Planner, Prepared, Produced, Watch};
use canopy_synth::{Algorithm, Stop, SynthesisError};
use canopy_topology::{Ratio, TopologyLimits};
use tonic::{Code, Request};
use tonic_types::StatusExt as _;

use crate::bare::answered;
use crate::support::{GatedPlanner, Streamed, TestServer, request, stream};

/// Makes plans of `direct` like the real planner, those that may lack a part of the rate if told to, and no others.
struct OnlyDirect {
    inner: Pipeline,
    with_tolerance: bool,
    /// How searches end: at once with this, or never.
    end: Option<SynthesisError>,
    idle: (Mutex<()>, Condvar),
}

impl OnlyDirect {
    fn new(end: Option<SynthesisError>) -> Arc<Self> {
        Self::made(false, end)
    }

    fn and_near(end: Option<SynthesisError>) -> Arc<Self> {
        Self::made(true, end)
    }

    fn made(with_tolerance: bool, end: Option<SynthesisError>) -> Arc<Self> {
        let inner = Pipeline::new(TopologyLimits::STANDARD);
        Arc::new(Self { inner, with_tolerance, end, idle: Default::default() })
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
        let is_near = order.limits.tolerance.is_some();
        if order.algorithm == Algorithm::Direct || (is_near && self.with_tolerance) {
            return self.inner.produce(order, prepared, stop, watch);
        }
        if let Some(end) = &self.end {
            return Err(PlanFailure::Planning(PlanError::Synthesis(end.clone())));
        }
        let mut idle = self.idle.0.lock().unwrap();
        while !stop.is_requested() {
            idle = self.idle.1.wait_timeout(idle, Duration::from_millis(5)).unwrap().0;
        }
        Err(PlanFailure::Stopped)
    }
}

fn asking(on_miss: OnMiss, deadline: Duration) -> Request<PlanRequest> {
    let mut request = Request::new(PlanRequest { on_miss: on_miss.into(), ..request("ring:6").into_plan() });
    request.set_timeout(deadline);
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_plan_is_stood_in_for_even_while_every_worker_searches() {
    let server =
        TestServer::start_with(|options| options.worker_count = NonZeroUsize::new(1).unwrap(), OnlyDirect::new(None))
            .await;
    // The only worker is busy for ever.
    let started = server.client().prefetch_plan(request("ring:9").into_prefetch()).await.unwrap().into_inner();
    // After the deadline the server itself cuts off every answer but that time is up: one that comes is in time.
    let mut client = server.bare().await;
    let asked = client.plan(asking(OnMiss::Fallback, Duration::from_millis(4000)));
    let reply = answered(asked).await.unwrap().into_inner();
    let fallback = reply.fallback.unwrap();
    assert_eq!((fallback.reason.as_str(), fallback.operation.as_str()), ("DEADLINE", ""));
    assert_eq!(reply.warnings.iter().filter(|warning| warning.code == "FALLBACK_USED").count(), 1);
    let plan = reply.plan.unwrap();
    assert_eq!((plan.algorithm.as_str(), plan.checked.len()), ("direct", 5));
    // It is cached under its own key, not under that of the plan which was asked for.
    let late = answered(client.plan(asking(OnMiss::Fail, Duration::from_millis(4000)))).await.unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
    assert_eq!(late.get_error_details().error_info().unwrap().reason, "SOLVER_TIME_LIMIT");
    assert!(!started.done);
    server.drain.start();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_late_ends_with_a_stand_in_and_names_the_job_that_goes_on() {
    let server = TestServer::start_with(|_| {}, OnlyDirect::new(None)).await;
    let mut asked = asking(OnMiss::BestSoFar, Duration::from_millis(4000));
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
    wrong.get_mut().spec.as_mut().unwrap().topology = request("ring:1").topology;
    assert_eq!(server.client().plan(wrong).await.unwrap_err().code(), Code::InvalidArgument);
    server.stop().await;
}

/// Boxes that need all of their links, of which some lack one: `direct` is far from the best rate.
const RAIL: &str = "rail:boxes=4,nv=60GB/s,nic=50GB/s,faults=gpus:2+seed:1";

/// Twenty times what is nearly the best takes on a processor of its own.
const LONG_MS: u64 = 20_000;

fn optimality(plan: &Plan) -> Ratio {
    plan.quality.as_ref().unwrap().optimality.read().unwrap()
}

fn quarters(numerator: u32) -> Ratio {
    Ratio::new(numerator, 4_u32).unwrap()
}

/// Better and better plans come beside a search that does not end, and while its only worker is busy; progress says so.
#[tokio::test(flavor = "multi_thread")]
async fn the_best_so_far_is_sent_when_time_is_up() {
    let planner = OnlyDirect::and_near(None);
    let server = TestServer::start_with(|options| options.worker_count = NonZeroUsize::new(1).unwrap(), planner).await;
    let asked = |on_miss, millis| {
        let mut asked = asking(on_miss, Duration::from_millis(millis));
        asked.get_mut().spec.as_mut().unwrap().topology = request(RAIL).topology;
        asked
    };
    let Streamed { events, header, .. } = stream(&server, asked(OnMiss::BestSoFar, LONG_MS)).await.unwrap();
    assert_eq!(header.fallback.unwrap().reason, "DEADLINE");
    let plan = header.plan.unwrap();
    let reached = optimality(&plan);
    assert_eq!((plan.algorithm.as_str(), plan.checked.len()), ("forest", 5));
    assert!(quarters(3) <= reached && reached < quarters(4), "{reached}");
    let warning = header.warnings.iter().find(|warning| warning.code == "FALLBACK_USED").unwrap();
    assert!(warning.text.contains(&format!("this provisional one reaches {reached} of the bound")), "{}", warning.text);
    let reported = events.iter().any(|event| matches!(&event.event, Some(Event::Progress(p)) if p.incumbent.is_some()));
    assert!(reported, "{events:?}");
    // It is a plan of its own: a search that may lack a part finds it, the one that was asked for does not.
    let quick =
        answered(server.bare().await.plan(asked(OnMiss::Fallback, 4_000))).await.unwrap().into_inner().plan.unwrap();
    assert_eq!(quick.algorithm, "direct");
    assert!(optimality(&quick) < reached);
    server.drain.start();
    server.stop().await;
}

/// A search that fails for the size of its numbers is no reason to wait for the deadline, nor to take the worst.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_made_exactly_is_made_nearly() {
    let end = SynthesisError::TooManyTrees { trees_per_rank: 9, rank_count: 6 };
    let server = TestServer::start_with(|_| {}, OnlyDirect::and_near(Some(end))).await;
    let mut asked = asking(OnMiss::BestSoFar, Duration::from_secs(60));
    asked.get_mut().spec.as_mut().unwrap().topology = request(RAIL).topology;
    let reply = answered(server.bare().await.plan(asked)).await.unwrap().into_inner();
    assert_eq!(reply.fallback.unwrap().reason, "TOO_MANY_TREES");
    let plan = reply.plan.unwrap();
    assert!(optimality(&plan) >= Ratio::new(63_u32, 64_u32).unwrap(), "{}", optimality(&plan));
    server.stop().await;
}

/// The json file of a plan as it is fetched, and what the first event says of its successor.
async fn fetched(server: &TestServer, plan: &str) -> (Vec<u8>, String) {
    let format = OutputFormat::Json.into();
    let wanted = FetchPlanFileRequest { name: plan.to_owned(), format, ..FetchPlanFileRequest::default() };
    let mut events = server.plans().fetch_plan_file(wanted).await.unwrap().into_inner();
    let (mut bytes, mut successor) = (Vec::new(), None);
    while let Some(FetchPlanFileEvent { event, superseded_by }) = events.message().await.unwrap() {
        successor.get_or_insert(superseded_by);
        if let Some(fetch_plan_file_event::Event::Content(piece)) = event {
            bytes.extend_from_slice(&piece.data);
        }
    }
    (bytes, successor.unwrap())
}

/// What stands in for a large all-to-all is checked, comes while the only worker and the search go on, and can be fetched.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_all_to_all_is_stood_in_for_while_every_worker_searches() {
    let one = |options: &mut Options| options.worker_count = NonZeroUsize::new(1).unwrap();
    let server = TestServer::start_with(one, OnlyDirect::new(None)).await;
    let started = server.client().prefetch_plan(request("ring:9").into_prefetch()).await.unwrap().into_inner();
    let mut asked = asking(OnMiss::BestSoFar, Duration::from_secs(60));
    asked.get_mut().spec.as_mut().unwrap().topology = request("torus:8x8x9").topology;
    asked.get_mut().spec.as_mut().unwrap().collective =
        Some(CollectiveSpec { kind: Collective::AllToAll.into(), root: None });
    let mut events = server.bare().await.stream_plan(asked).await.unwrap().into_inner();
    // Neither the search nor its worker ever ends: the deadline is the only other end.
    let plan = loop {
        match events.message().await.unwrap().unwrap().event.unwrap() {
            Event::Candidate(reply) => break reply.plan.unwrap(),
            Event::Final(reply) => panic!("{reply:?}"),
            Event::Accepted(_) | Event::Progress(_) | Event::Content(_) => {}
        }
    };
    assert_eq!((plan.algorithm.as_str(), plan.checked.len()), ("direct", 5));
    assert!(optimality(&plan) > Ratio::new(9_u32, 10_u32).unwrap(), "{}", optimality(&plan));
    let (bytes, _) = fetched(&server, &plan.name).await;
    assert_eq!(bytes.len() as u64, plan.artifacts[0].size_bytes);
    // Trees of 576 ranks are written link by link: paths of six and more hops would take ten times the bytes.
    assert!(bytes.starts_with(br#"{"canopy":6,"#) && bytes.len() < 4 << 20, "{}", bytes.len());
    assert!(!started.done);
    server.drain.start();
    server.stop().await;
}

/// A plan that came under a deadline stays what it was: the finished one has an id of its own, which the first one says
/// once it is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_provisional_plan_is_superseded_under_a_new_id() {
    let (planner, gate) = GatedPlanner::holding(|order| order.algorithm != Algorithm::Direct);
    let server = TestServer::start_with(|_| {}, planner).await;
    let mut asked = asking(OnMiss::Fallback, Duration::from_millis(4000));
    asked.get_mut().detached = true;
    let reply = answered(server.bare().await.plan(asked)).await.unwrap().into_inner();
    let (provisional, fallback) = (reply.plan.unwrap().name, reply.fallback.unwrap());
    assert!(fallback.plan.starts_with("plans/") && fallback.plan != provisional, "{fallback:?}");
    let get = async |name: &str| {
        let wanted = GetPlanRequest { name: name.to_owned(), placement: None };
        server.plans().get_plan(wanted).await.map(tonic::Response::into_inner)
    };
    assert_eq!(get(&provisional).await.unwrap().superseded_by, "");
    assert_eq!(get(&fallback.plan).await.unwrap_err().code(), Code::NotFound);
    let (before, successor) = fetched(&server, &provisional).await;
    assert_eq!(successor, "");

    gate.open();
    let mut operations = OperationsClient::new(server.channel.clone());
    let ended = operations.wait_operation(WaitOperationRequest { name: fallback.operation, timeout: None }).await;
    assert!(ended.unwrap().into_inner().done);
    let finished = get(&fallback.plan).await.unwrap();
    assert_eq!((finished.superseded_by.as_str(), finished.algorithm.as_str()), ("", "forest"));
    let described = get(&provisional).await.unwrap();
    assert_eq!((&described.superseded_by, described.algorithm.as_str()), (&fallback.plan, "direct"));
    assert_eq!(fetched(&server, &provisional).await, (before, fallback.plan.clone()));
    let again = server.client().plan(request("ring:6").into_plan()).await.unwrap().into_inner();
    assert_eq!((again.cache(), again.plan.unwrap().name), (CacheOutcome::Hit, fallback.plan.clone()));
    let mut admin = PlansClient::new(server.channel.clone());
    let summary = admin.get_plan_summary(GetPlanSummaryRequest { name: provisional }).await.unwrap().into_inner();
    assert_eq!((summary.superseded_by, summary.algorithm.as_str()), (fallback.plan, "direct"));
    assert!(summary.age.is_some() && summary.size_bytes > 0);
    server.stop().await;
}
