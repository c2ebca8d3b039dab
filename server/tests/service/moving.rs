//! Traffic that changes, planned matrix by matrix on one stream.

use canopy_proto::Exact as _;
use canopy_wire::reason_of;
use std::sync::Arc;
use std::time::Duration;

use canopy_proto::v1::plan_moving_event::Event;
use canopy_proto::v1::plan_moving_request::Request as Message;
use canopy_proto::v1::{
    ClearFaultsRequest, FaultPolicy, MovingMatrix, MovingNetwork, MovingPlan, MovingRefusal, MovingTiers,
    PlanMovingEvent, PlanMovingRequest, TopologySource,
};
use canopy_server::Pipeline;
use canopy_topology::{Ratio, TopologyLimits};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};
use tonic_types::StatusExt as _;

use crate::replans::{event, faults, gpu, link, report, source, start};
use crate::support::TestServer;

const RAIL: &str = "rail:boxes=4,gpus=4,nv=300GB/s,nic=25GB/s";
const INNER: u64 = 300_000_000_000;
const OUTER: u64 = 25_000_000_000;
/// Ranks of that network, and of its boxes.
const RANKS: usize = 16;
const SIZE: usize = 4;
/// Streams that one connection may have.
const PER_CONNECTION: usize = 8;

/// One stream, from the caller's side.
struct Moving {
    messages: mpsc::Sender<PlanMovingRequest>,
    events: Streaming<PlanMovingEvent>,
}

fn network(topology: Option<TopologySource>) -> PlanMovingRequest {
    let network = MovingNetwork { topology, fault_policy: FaultPolicy::Apply.into(), any_routes: false };
    PlanMovingRequest { request: Some(Message::Network(network)) }
}

fn matrix(number: u64, bytes: Vec<u64>) -> PlanMovingRequest {
    PlanMovingRequest { request: Some(Message::Matrix(MovingMatrix { number, bytes })) }
}

/// Bytes between all ranks but from a rank to itself, some much more than others.
fn uneven(ranks: usize, seed: usize) -> Vec<u64> {
    let of = |from: usize, to: usize| ((from * 31 + to * 17 + seed * 7) % 23).pow(3) as u64 * 1000;
    (0..ranks * ranks).map(|at| if at / ranks == at % ranks { 0 } else { of(at / ranks, at % ranks) }).collect()
}

impl Moving {
    async fn begin(server: &TestServer, first: PlanMovingRequest) -> Result<Self, Status> {
        let (messages, waiting) = mpsc::channel(64);
        messages.send(first).await.unwrap();
        let events = server.client().plan_moving(ReceiverStream::new(waiting)).await?.into_inner();
        Ok(Self { messages, events })
    }

    /// A stream on a network, with what is said of it.
    async fn on(server: &TestServer, expression: &str) -> (Self, MovingTiers) {
        let mut moving = Self::begin(server, network(Some(source(expression)))).await.unwrap();
        let tiers = moving.tiers().await;
        (moving, tiers)
    }

    async fn send(&self, message: PlanMovingRequest) {
        self.messages.send(message).await.unwrap();
    }

    /// What comes next; none: the stream has ended in order.
    async fn next(&mut self) -> Result<Option<Event>, Status> {
        let message = timeout(Duration::from_secs(20), self.events.message()).await.expect("it comes in time")?;
        Ok(message.map(|message| message.event.expect("every message says something")))
    }

    async fn tiers(&mut self) -> MovingTiers {
        match self.next().await.unwrap() {
            Some(Event::Tiers(tiers)) => tiers,
            other => panic!("{other:?}"),
        }
    }

    async fn plan(&mut self) -> MovingPlan {
        match self.next().await.unwrap() {
            Some(Event::Plan(plan)) => plan,
            other => panic!("{other:?}"),
        }
    }

    async fn refusal(&mut self) -> (u64, Code, String) {
        match self.next().await.unwrap() {
            Some(Event::Refusal(MovingRefusal { number, error: Some(error) })) => {
                (number, Code::from(error.code), reason_of(&error))
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Code, reason and field of a status.
fn told(status: &Status) -> (Code, String, String) {
    let details = status.get_error_details();
    let field = details.bad_request().map(|request| request.field_violations[0].field.clone()).unwrap_or_default();
    (status.code(), details.error_info().map(|info| info.reason.clone()).unwrap_or_default(), field)
}

fn ratio(text: &str) -> Ratio {
    text.parse().unwrap()
}

/// Adds a plan up again: every byte arrives, over rails and boxes as they are, in the time that it states.
fn check(plan: &MovingPlan, wanted: &[u64]) {
    let mut arrived = vec![0; RANKS * RANKS];
    let mut loads = vec![[0_u64; 4]; RANKS];
    for part in 0..plan.bytes.len() {
        let of = |list: &[u32]| list[part] as usize;
        let (from, to, leaves, enters) = (of(&plan.from), of(&plan.to), of(&plan.leaves), of(&plan.enters));
        let bytes = plan.bytes[part];
        arrived[from * RANKS + to] += bytes;
        if from / SIZE == to / SIZE {
            assert_eq!((leaves, enters), (from, to));
            loads[from][0] += bytes;
            loads[to][1] += bytes;
            continue;
        }
        assert_eq!((leaves / SIZE, enters / SIZE, leaves % SIZE), (from / SIZE, to / SIZE, enters % SIZE));
        for (start, end) in [(from, leaves), (enters, to)] {
            if start != end {
                loads[start][0] += bytes;
                loads[end][1] += bytes;
            }
        }
        loads[leaves][2] += bytes;
        loads[enters][3] += bytes;
    }
    assert_eq!(arrived, wanted);
    let rates = [INNER, INNER, OUTER, OUTER];
    let times = loads.iter().flat_map(|loads| loads.iter().zip(rates));
    let busiest = times.map(|(&load, rate)| Ratio::new(load, rate).unwrap()).max().unwrap();
    assert_eq!(ratio(plan.seconds.exact()), busiest);
    assert!(ratio(plan.seconds_bound.exact()) <= busiest, "{} {}", plan.seconds_bound.exact(), plan.seconds.exact());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_byte_arrives_in_the_time_that_is_stated() {
    let server = start().await;
    let (mut moving, tiers) = Moving::on(&server, RAIL).await;
    assert_eq!((tiers.ranks, tiers.box_size, tiers.rails), (16, 4, true));
    assert_eq!((&*tiers.lost_ranks, &*tiers.dead_nics, tiers.warnings.len()), (&[][..], &[][..], 0));
    assert!(tiers.topology.is_some());
    for (number, seed) in [(1, 3), (2, 4), (7, 5)] {
        let bytes = uneven(RANKS, seed);
        moving.send(matrix(number, bytes.clone())).await;
        let plan = moving.plan().await;
        assert_eq!((plan.number, plan.skipped), (number, 0));
        check(&plan, &bytes);
    }
    // What was sent before the end is planned.
    moving.send(matrix(8, vec![0; RANKS * RANKS])).await;
    let Moving { messages, events } = moving;
    drop(messages);
    let mut moving = Moving { messages: mpsc::channel(1).0, events };
    let plan = moving.plan().await;
    assert_eq!((plan.number, plan.bytes.len(), ratio(plan.seconds.exact())), (8, 0, ratio("0")));
    assert_eq!(moving.next().await.unwrap(), None);
    server.stop().await;
}

/// Bytes within a box that is no faster than its NICs: the bound counts routes that leave it, whether a plan has them or not.
#[tokio::test(flavor = "multi_thread")]
async fn routes_of_any_kind_are_those_that_the_caller_takes() {
    let server = start().await;
    for expression in ["dgx-h100:boxes=2,gpus=2,nv=50GB/s,nic=50GB/s", "rail:boxes=2,gpus=2,nv=50GB/s,nic=50GB/s"] {
        for any_routes in [false, true] {
            let topology = Some(source(expression));
            let first = MovingNetwork { topology, fault_policy: FaultPolicy::Apply.into(), any_routes };
            let first = PlanMovingRequest { request: Some(Message::Network(first)) };
            let mut moving = Moving::begin(&server, first).await.unwrap();
            moving.tiers().await;
            let mut bytes = vec![0; 16];
            bytes[1] = 1_000_000_000;
            moving.send(matrix(1, bytes)).await;
            let plan = moving.plan().await;
            assert_eq!(
                (ratio(plan.seconds_bound.exact()), plan.bytes.iter().sum()),
                (ratio("1/100"), 1_000_000_000_u64)
            );
            assert_eq!(
                (plan.relayed.is_empty(), ratio(plan.seconds.exact()) < ratio("1/99")),
                (!any_routes, any_routes)
            );
            for relayed in plan.relayed {
                let part = relayed.part as usize;
                assert_eq!((relayed.ranks.last(), plan.leaves[part], plan.enters[part]), (Some(&1), 0, 1));
                assert_eq!(relayed.ranks.len(), relayed.by_nic.len());
                assert!(relayed.by_nic[0]);
            }
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_latest_matrix_wins() {
    let server = start().await;
    let (mut moving, _) = Moving::on(&server, "rail:boxes=32,gpus=8").await;
    for number in 1..=50 {
        moving.send(matrix(number, uneven(256, 3))).await;
    }
    let (mut plans, mut skipped, mut last) = (0, 0, 0);
    while last < 50 {
        let plan = moving.plan().await;
        assert!(plan.number > last);
        (plans, skipped, last) = (plans + 1, skipped + plan.skipped, plan.number);
    }
    assert_eq!(plans + skipped, 50);
    assert!(plans < 50, "planning takes longer than reading");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_that_come_meanwhile_count_from_the_next_matrix_on() {
    let server = start().await;
    let (mut moving, _) = Moving::on(&server, RAIL).await;
    let bytes = uneven(RANKS, 1);
    moving.send(matrix(1, bytes.clone())).await;
    assert!(moving.plan().await.leaves.contains(&3));
    report(&server, RAIL, vec![event("1", link("b0g3", "rail3", None), false)]).await;
    moving.send(matrix(2, bytes.clone())).await;
    let tiers = moving.tiers().await;
    assert_eq!((tiers.dead_nics, tiers.lost_ranks, &*tiers.warnings[0].code), (vec![3], vec![], "FAULTS_APPLIED"));
    let plan = moving.plan().await;
    let across = (0..plan.bytes.len()).filter(|&part| plan.from[part] / 4 != plan.to[part] / 4);
    assert!(across.clone().all(|part| plan.leaves[part] != 3 && plan.enters[part] != 3));
    assert!(across.clone().any(|part| plan.from[part] == 3), "others send for it");
    // Faults elsewhere change nothing here.
    report(&server, "dgx-a100:boxes=2", vec![event("2", gpu("b0g3"), false)]).await;
    moving.send(matrix(3, bytes.clone())).await;
    assert_eq!(moving.plan().await.number, 3);
    // A rank that is lost has no traffic.
    report(&server, RAIL, vec![event("3", gpu("b1g1"), false)]).await;
    moving.send(matrix(4, bytes.clone())).await;
    assert_eq!(moving.tiers().await.lost_ranks, [5]);
    assert_eq!(moving.refusal().await, (4, Code::InvalidArgument, "MOVING_MATRIX_INVALID".to_owned()));
    let left: Vec<u64> =
        (0..).zip(&bytes).map(|(at, &bytes)| if at / 16 == 5 || at % 16 == 5 { 0 } else { bytes }).collect();
    moving.send(matrix(5, left)).await;
    assert_eq!(moving.plan().await.number, 5);
    // What a rank cannot send to its box takes routes that were not asked for.
    let reported = report(&server, RAIL, vec![event("4", link("b2g0", "b2nv", None), false)]).await;
    moving.send(matrix(6, vec![0; 256])).await;
    assert_eq!(moving.tiers().await.dead_nics, [3]);
    assert_eq!(moving.plan().await.number, 6);
    moving.send(matrix(7, (0..256).map(|at| u64::from(at == 8 * 16 + 9)).collect())).await;
    assert_eq!(moving.refusal().await, (7, Code::FailedPrecondition, "MOVING_APART".to_owned()));
    let all = ClearFaultsRequest { topology: reported.topology, ..ClearFaultsRequest::default() };
    faults(&server).clear_faults(all).await.unwrap();
    moving.send(matrix(8, bytes.clone())).await;
    let tiers = moving.tiers().await;
    assert_eq!((tiers.dead_nics, tiers.lost_ranks, tiers.warnings), (vec![], vec![], vec![]));
    check(&moving.plan().await, &bytes);
    server.stop().await;
}

/// A fabric that blocks is none: matrices are refused until it is mended.
#[tokio::test(flavor = "multi_thread")]
async fn matrices_are_refused_while_faults_leave_no_two_tiers() {
    const FABRIC: &str = "leaf-spine:leaves=4,hosts=4,spines=2";
    let server = start().await;
    let (mut moving, _) = Moving::on(&server, FABRIC).await;
    let reported = report(&server, FABRIC, vec![event("1", link("leaf0", "spine0", None), false)]).await;
    for number in [1, 2] {
        moving.send(matrix(number, vec![0; 256])).await;
        assert_eq!(moving.refusal().await, (number, Code::FailedPrecondition, "MOVING_NETWORK".to_owned()));
    }
    let all = ClearFaultsRequest { topology: reported.topology, ..ClearFaultsRequest::default() };
    faults(&server).clear_faults(all).await.unwrap();
    moving.send(matrix(3, vec![0; 256])).await;
    moving.tiers().await;
    assert_eq!(moving.plan().await.number, 3);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_ignored_where_the_caller_says_so() {
    let server = start().await;
    report(&server, RAIL, vec![event("1", link("b0g3", "rail3", None), false)]).await;
    let fault_policy = FaultPolicy::Ignore.into();
    let first = MovingNetwork { topology: Some(source(RAIL)), fault_policy, any_routes: false };
    let first = PlanMovingRequest { request: Some(Message::Network(first)) };
    let mut moving = Moving::begin(&server, first).await.unwrap();
    assert_eq!(moving.tiers().await.dead_nics, [0; 0]);
    let (_, tiers) = Moving::on(&server, RAIL).await;
    assert_eq!(tiers.dead_nics, [3]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_out_of_turn_end_the_stream() {
    let server = start().await;
    let invalid = |field: &str| (Code::InvalidArgument, "MOVING_REQUEST_INVALID".to_owned(), field.to_owned());
    for (first, field) in [(matrix(1, vec![]), "matrix"), (PlanMovingRequest { request: None }, "request")] {
        let mut moving = Moving::begin(&server, first).await.unwrap();
        assert_eq!(told(&moving.next().await.unwrap_err()), invalid(field));
    }
    let again = network(Some(source(RAIL)));
    for (second, field) in [
        (again, "network"),
        (matrix(4, vec![0; 256]), "matrix.number"),
        (PlanMovingRequest { request: None }, "request"),
    ] {
        let (mut moving, _) = Moving::on(&server, RAIL).await;
        moving.send(matrix(4, vec![0; 256])).await;
        moving.plan().await;
        moving.send(second).await;
        assert_eq!(told(&moving.next().await.unwrap_err()), invalid(field));
    }
    // Who says nothing gets nothing.
    let (messages, waiting) = mpsc::channel(1);
    drop(messages);
    let mut events = server.client().plan_moving(ReceiverStream::new(waiting)).await.unwrap().into_inner();
    assert_eq!(events.message().await.unwrap(), None);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_matrix_that_cannot_be_is_refused_and_the_stream_goes_on() {
    let server = start().await;
    let (mut moving, _) = Moving::on(&server, RAIL).await;
    let with = |at: usize, bytes: u64| {
        let mut all = vec![0; 256];
        all[at] = bytes;
        all
    };
    let wrong = [vec![], vec![0; 255], with(17, 1), with(1, (1 << 60) + 1), vec![u64::MAX; 256]];
    for (number, bytes) in (1..).zip(wrong) {
        moving.send(matrix(number, bytes)).await;
        assert_eq!(moving.refusal().await, (number, Code::InvalidArgument, "MOVING_MATRIX_INVALID".to_owned()));
    }
    moving.send(matrix(9, with(1, 1 << 60))).await;
    assert_eq!(moving.plan().await.bytes, [1 << 60]);
    let dead = (0..4)
        .map(|place| event(&place.to_string(), link(&format!("b0g{place}"), &format!("rail{place}"), None), false));
    report(&server, RAIL, dead.collect()).await;
    moving.send(matrix(10, with(15, 5))).await;
    assert_eq!(moving.tiers().await.dead_nics, [0, 1, 2, 3]);
    assert_eq!(moving.refusal().await, (10, Code::FailedPrecondition, "MOVING_APART".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn networks_of_another_kind_are_refused() {
    let server = start().await;
    for expression in ["ring:5", "hgx:boxes=2,nics=4", "leaf-spine:leaves=4,hosts=4,spines=2,oversub=2"] {
        let mut moving = Moving::begin(&server, network(Some(source(expression)))).await.unwrap();
        let status = moving.next().await.unwrap_err();
        assert_eq!(told(&status).0, Code::FailedPrecondition, "{status:?}");
        assert_eq!(told(&status).1, "MOVING_NETWORK", "{status:?}");
    }
    let mut moving = Moving::begin(&server, network(None)).await.unwrap();
    assert_eq!(told(&moving.next().await.unwrap_err()).0, Code::InvalidArgument);
    let mut moving = Moving::begin(&server, network(Some(source("nonsense:7")))).await.unwrap();
    let status = moving.next().await.unwrap_err();
    assert_eq!(told(&status).2, "topology.expression", "{status:?}");
    let unknown = canopy_proto::v1::topology_source::Source::Name(format!("topologies/{:032}", 7));
    let mut moving = Moving::begin(&server, network(Some(TopologySource { source: Some(unknown) }))).await.unwrap();
    assert_eq!(moving.next().await.unwrap_err().code(), Code::NotFound);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_has_so_many_streams_and_one_that_ends_makes_room() {
    let server = start().await;
    let mut open = Vec::new();
    for _ in 0..PER_CONNECTION {
        open.push(Moving::on(&server, RAIL).await.0);
    }
    let full = Moving::begin(&server, network(Some(source(RAIL)))).await.map(|_| ()).unwrap_err();
    assert_eq!((told(&full).0, &*told(&full).1), (Code::ResourceExhausted, "MOVING_STREAMS_FULL"));
    // Its caller goes away without a word.
    drop(open.pop());
    let freed = async {
        loop {
            match Moving::begin(&server, network(Some(source(RAIL)))).await {
                Ok(moving) => return moving,
                Err(status) => assert_eq!(status.code(), Code::ResourceExhausted),
            }
        }
    };
    let mut moving = timeout(Duration::from_secs(20), freed).await.expect("the place is free soon");
    assert_eq!(moving.tiers().await.ranks, 16);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_outlives_the_longest_deadline_and_keeps_its_own() {
    let planner = Arc::new(Pipeline::new(TopologyLimits::STANDARD));
    let short = Duration::from_millis(1500);
    let server =
        TestServer::start_with(|options| (options.default_deadline, options.max_deadline) = (short, short), planner);
    let server = server.await;
    let (mut moving, _) = Moving::on(&server, RAIL).await;
    assert!(timeout(2 * short, moving.events.message()).await.is_err(), "nothing is due");
    moving.send(matrix(1, uneven(RANKS, 1))).await;
    assert_eq!(moving.plan().await.number, 1);
    let (messages, waiting) = mpsc::channel(1);
    messages.send(network(Some(source(RAIL)))).await.unwrap();
    let mut request = tonic::Request::new(ReceiverStream::new(waiting));
    request.set_timeout(short / 2);
    let mut events = server.bare().await.plan_moving(request).await.unwrap().into_inner();
    assert!(events.message().await.unwrap().is_some());
    let late = timeout(Duration::from_secs(20), events.message()).await.expect("it ends").unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_ends_open_streams() {
    let server = start().await;
    let (mut moving, _) = Moving::on(&server, RAIL).await;
    server.drain.start();
    let status = moving.next().await.unwrap_err();
    assert_eq!((told(&status).0, &*told(&status).1), (Code::Unavailable, "DRAINING"));
    server.stop().await;
}
