//! The groups of a job, planned together.

use canopy_proto::Exact as _;
use canopy_wire::fraction;
use canopy_wire::reason_of;
use std::time::Duration;

use canopy_proto::v1::plan_groups_event::Event;
use canopy_proto::v1::{
    ClearFaultsRequest, Collective, FaultPolicy, Fraction, GroupClass, GroupLengths, GroupPlan, GroupRates,
    GroupsSettled, GroupsStage, OutputFormat, PlanGroupsEvent, PlanGroupsRequest, RunningGroups,
};
use canopy_topology::{Ratio, TopologyLimits, generate, read_document};
use tokio::time::timeout;
use tonic::{Code, Request, Status, Streaming};
use tonic_types::StatusExt as _;

use crate::replans::{event, faults, gpu, link, report, source, start};
use crate::support::{TestServer, both_outputs};

const RAIL: &str = "rail:boxes=4,gpus=8,nv=300GB/s,nic=25GB/s";

fn class(name: &str) -> GroupClass {
    GroupClass {
        name: name.to_owned(),
        over: vec![name.to_owned()],
        collective: Collective::Allreduce.into(),
        size_bytes: 1_000_000_000,
        ..GroupClass::default()
    }
}

/// Tensor groups in boxes and data groups over rails.
fn job() -> PlanGroupsRequest {
    PlanGroupsRequest {
        topology: Some(source(RAIL)),
        layout: "tp=8 dp=4".to_owned(),
        groups: vec![class("tp"), class("dp")],
        ..PlanGroupsRequest::default()
    }
}

/// What a stream has sent.
#[derive(Default)]
struct Sent {
    stages: Vec<GroupsStage>,
    rates: GroupRates,
    lengths: GroupLengths,
    levels_of_lengths: Vec<u32>,
    network: Vec<u8>,
    plans: Vec<GroupPlan>,
}

async fn planned(server: &TestServer, request: impl tonic::IntoRequest<PlanGroupsRequest>) -> Result<Sent, Status> {
    let mut events = server.client().plan_groups(request).await?.into_inner();
    let (sent, settled) = round(&mut events).await?;
    assert_eq!(settled, None, "rounds are those of FollowGroups");
    Ok(sent)
}

/// What is sent until a round, or the stream, has ended.
async fn round(events: &mut Streaming<PlanGroupsEvent>) -> Result<(Sent, Option<GroupsSettled>), Status> {
    let mut sent = Sent::default();
    while let Some(message) = events.message().await? {
        match message.event.unwrap() {
            Event::Progress(progress) => sent.stages.push(progress.stage()),
            Event::Rates(rates) => {
                assert!(sent.rates == GroupRates::default() && sent.lengths.links.is_empty());
                sent.rates = rates;
            }
            Event::Lengths(lengths) => {
                assert!(sent.plans.is_empty());
                sent.levels_of_lengths.push(lengths.level);
                sent.lengths.links.extend(lengths.links);
            }
            Event::Network(network) => sent.network.extend_from_slice(&network.piece),
            Event::Plan(plan) => sent.plans.push(plan),
            Event::Settled(settled) => return Ok((sent, Some(settled))),
        }
    }
    Ok((sent, None))
}

fn ratio(text: &str) -> Ratio {
    text.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rates_are_sent_with_their_proof_and_what_others_reach() {
    let server = TestServer::start().await;
    let sent = planned(&server, job()).await.unwrap();
    assert_eq!(sent.stages, [GroupsStage::Solve, GroupsStage::Compare]);
    let rates = &sent.rates;
    // 50/3 GB/s each.
    assert_eq!((rates.seconds.exact(), rates.seconds_bound.exact()), ("3/50", "3/50"));
    assert_eq!(rates.seconds_rings.exact(), "3/50");
    assert!(ratio(rates.seconds_phases.exact()) > ratio("3/50") && ratio(rates.seconds_alone.exact()) > ratio("3/50"));
    let classes: Vec<_> =
        rates.classes.iter().map(|class| (class.name.as_str(), class.groups, class.ranks, class.size_bytes)).collect();
    assert_eq!(classes, [("tp", 4, 8, 1_000_000_000), ("dp", 8, 4, 1_000_000_000)]);
    assert!(rates.lost_ranks.is_empty() && rates.warnings.is_empty() && sent.plans.is_empty());
    assert!(!sent.lengths.links.is_empty() && sent.lengths.links.iter().all(|link| link.length != "0"));

    let alone = planned(&server, PlanGroupsRequest { without_comparison: true, ..job() }).await.unwrap();
    assert_eq!(alone.stages, [GroupsStage::Solve]);
    assert_eq!((alone.rates.seconds.exact(), alone.rates.seconds_rings.exact()), ("3/50", ""));
    assert_eq!(alone.rates.classes[0].seconds_alone.exact(), "");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_group_has_a_plan_in_its_share_which_is_kept() {
    let server = TestServer::start().await;
    let asked = PlanGroupsRequest { outputs: both_outputs(), without_comparison: true, ..job() };
    let sent = planned(&server, asked.clone()).await.unwrap();
    let names: Vec<&str> = sent.plans.iter().map(|plan| plan.name.as_str()).collect();
    assert_eq!(names[..5], ["tp.0", "tp.1", "tp.2", "tp.3", "dp.0"]);
    assert_eq!(names.len(), 12);
    let expected = generate(RAIL, &TopologyLimits::STANDARD).unwrap();
    assert_eq!(read_document(&sent.network, None, &TopologyLimits::STANDARD).unwrap().topology, expected);
    assert_eq!(sent.plans[5].ranks, [1, 9, 17, 25]);
    for group in &sent.plans {
        let plan = group.plan.as_ref().unwrap();
        let achieved = ratio(plan.quality.as_ref().unwrap().achieved.exact());
        // Shares are whole bytes per second.
        assert!(achieved > ratio("16666600000") && achieved <= ratio("50000000000/3"), "{}: {achieved}", group.name);
        assert_eq!(plan.artifacts.len(), 2);
        assert!(plan.artifacts.iter().all(|file| file.content.is_none()));
    }
    let again = planned(&server, asked).await.unwrap();
    let ids =
        |sent: &Sent| -> Vec<String> { sent.plans.iter().map(|group| group.plan.clone().unwrap().name).collect() };
    assert_eq!(ids(&sent), ids(&again));
    let syntheses = server.statistics.synthesis_count();
    assert!(syntheses <= 12, "{syntheses} searches");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_that_can_be_faster_are_if_levels_are_asked_for() {
    let server = TestServer::start().await;
    let asked = PlanGroupsRequest { levels: true, without_comparison: true, outputs: both_outputs(), ..job() };
    let sent = planned(&server, asked).await.unwrap();
    let levels = &sent.rates.levels;
    assert_eq!(levels.len(), 2, "{levels:?}");
    // Data groups have no more than their NICs; tensor groups have what these leave of the switches.
    assert_eq!((levels[0].seconds.exact(), &levels[0].groups), ("3/50", &(4..12).collect()));
    assert_eq!(levels[1].groups, [0, 1, 2, 3]);
    assert!(levels.iter().all(|level| level.seconds == level.seconds_bound));
    assert!(ratio(levels[1].seconds.exact()) < ratio("1/100"));
    assert_eq!(sent.rates.seconds.exact(), "3/50");
    assert_eq!(sent.levels_of_lengths, [0, 1]);
    for group in &sent.plans {
        let level = &levels[usize::from(group.name.starts_with("tp"))];
        let plan = group.plan.as_ref().unwrap();
        let achieved = plan.quality.as_ref().unwrap().achieved.read::<Ratio>().unwrap().to_f64();
        let seconds = 1e9 / achieved;
        assert!((ratio(group.seconds.exact()).to_f64() / seconds - 1.0).abs() < 1e-12, "{}: {seconds}", group.name);
        assert!((seconds / ratio(level.seconds.exact()).to_f64() - 1.0).abs() < 1e-6, "{}: {seconds}", group.name);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_best_order_of_dimensions_is_taken_if_that_is_asked_for() {
    let server = TestServer::start().await;
    // Data groups in boxes, and tensor groups over rails, which send ten times as much.
    let heavy = GroupClass { size_bytes: 10_000_000_000, ..class("tp") };
    let wrong = PlanGroupsRequest {
        layout: "dp=8 tp=4".to_owned(),
        groups: vec![heavy, class("dp")],
        without_comparison: true,
        ..job()
    };
    let stated = planned(&server, wrong.clone()).await.unwrap().rates;
    assert!(stated.orders.is_empty() && stated.rank_order.is_empty());
    let asked = PlanGroupsRequest { best_order: true, outputs: both_outputs(), ..wrong.clone() };
    let sent = planned(&server, asked).await.unwrap();
    let rates = &sent.rates;
    let layouts: Vec<&str> = rates.orders.iter().map(|order| order.layout.as_str()).collect();
    assert_eq!((layouts, rates.best_order), (vec!["dp=8 tp=4", "tp=4 dp=8"], 1));
    assert_eq!((&rates.orders[0].seconds, &rates.orders[1].seconds), (&stated.seconds, &rates.seconds));
    assert!(ratio(rates.seconds.exact()) < ratio(stated.seconds.exact()));
    // Rank 1 of the layout has the second place among data groups, which is four ranks on.
    assert_eq!(rates.rank_order[..3], [0, 4, 8]);
    assert_eq!(rates.rank_order[8], 1);
    let ranks = |name: &str| sent.plans.iter().find(|plan| plan.name == name).unwrap().ranks.clone();
    assert_eq!((ranks("tp.0"), ranks("dp.1")), (vec![0, 1, 2, 3], (0..8).map(|box_of| 1 + 4 * box_of).collect()));

    let right = PlanGroupsRequest { layout: "tp=4 dp=8".to_owned(), best_order: true, ..wrong };
    let rates = planned(&server, right).await.unwrap().rates;
    assert_eq!((rates.best_order, rates.orders[1].seconds.exact()), (0, ""), "prices exclude the other order");
    assert!(
        rates.rank_order.is_empty() && ratio(rates.orders[1].seconds_bound.exact()) >= ratio(rates.seconds.exact())
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_planned_around_known_faults() {
    let server = start().await;
    report(&server, RAIL, vec![event("1", gpu("b0g3"), false)]).await;
    let sent = planned(&server, job()).await.unwrap();
    assert_eq!(sent.rates.lost_ranks, [3]);
    assert_eq!(sent.rates.topology.as_ref().unwrap().ranks, 31);
    assert_eq!(sent.rates.warnings[0].code, "FAULTS_APPLIED");
    // The others lend their NICs, which no runtime knows how to do.
    let asked = PlanGroupsRequest { outputs: both_outputs(), ..job() };
    let status = planned(&server, asked.clone()).await.err().unwrap();
    assert_eq!(status.get_error_details().error_info().unwrap().reason, "GROUPS_FORWARD", "{status}");
    let json = both_outputs().into_iter().filter(|output| output.format == i32::from(OutputFormat::Json)).collect();
    planned(&server, PlanGroupsRequest { outputs: json, ..asked.clone() }).await.unwrap();
    // The groups of the lost rank go on without it; ranks keep their numbers.
    let asked = PlanGroupsRequest { members_only: true, ..asked };
    let sent = planned(&server, asked.clone()).await.unwrap();
    let ranks = |name: &str| sent.plans.iter().find(|plan| plan.name == name).unwrap().ranks.clone();
    assert_eq!(ranks("tp.0"), [0, 1, 2, 4, 5, 6, 7]);
    assert_eq!((ranks("dp.3"), ranks("dp.4")), (vec![11, 19, 27], vec![4, 12, 20, 28]));

    let pairs = GroupClass { next: true, collective: 0, ..class("dp") };
    let sent = planned(&server, PlanGroupsRequest { groups: vec![pairs], ..asked.clone() }).await.unwrap();
    // Three of each pipeline, but two of that which lost its first stage.
    assert_eq!(sent.plans.len(), 23);
    assert!(sent.plans.iter().all(|plan| plan.name != "dp.9"));

    let healthy = PlanGroupsRequest { fault_policy: FaultPolicy::Ignore.into(), ..job() };
    assert_eq!(planned(&server, healthy).await.unwrap().rates.topology.unwrap().ranks, 32);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_cannot_be_planned_are_refused_with_the_field() {
    let server = TestServer::start().await;
    let refused = async |request: PlanGroupsRequest| {
        let status = planned(&server, request).await.err().unwrap();
        let details = status.get_error_details();
        let field = details.bad_request().map(|bad| bad.field_violations[0].field.clone()).unwrap_or_default();
        (status.code(), details.error_info().unwrap().reason.clone(), field)
    };
    let input = |reason: &str, field: &str| (Code::InvalidArgument, reason.to_owned(), field.to_owned());
    for (asked, expected) in [
        (PlanGroupsRequest { topology: None, ..job() }, input("FIELD_MISSING", "topology")),
        (PlanGroupsRequest { layout: String::new(), ..job() }, input("FIELD_MISSING", "layout")),
        (PlanGroupsRequest { layout: "tp=8 dp=5".to_owned(), ..job() }, input("GROUPS_INVALID", "layout")),
        (PlanGroupsRequest { layout: "tp=8 dp=0".to_owned(), ..job() }, input("GROUPS_INVALID", "layout")),
        (PlanGroupsRequest { groups: Vec::new(), ..job() }, input("FIELD_MISSING", "groups")),
        (
            PlanGroupsRequest { groups: vec![GroupClass { size_bytes: 0, ..class("tp") }], ..job() },
            input("GROUPS_INVALID", "groups[0].size_bytes"),
        ),
        (
            PlanGroupsRequest { groups: vec![class("tp"), class("pp")], ..job() },
            input("GROUPS_INVALID", "groups[1].over"),
        ),
        (PlanGroupsRequest { priority: 99, ..job() }, input("ENUM_VALUE_UNKNOWN", "priority")),
        (PlanGroupsRequest { fault_policy: 99, ..job() }, input("ENUM_VALUE_UNKNOWN", "fault_policy")),
        (
            PlanGroupsRequest { topology: Some(source("ring:3/")), ..job() },
            input("TOPOLOGY_MALFORMED", "topology.expression"),
        ),
    ] {
        assert_eq!(refused(asked).await, expected);
    }
    // Without the help of other ranks, no way leads over a ring from one of every second rank to the next.
    let every_second = PlanGroupsRequest {
        topology: Some(source("ring:4")),
        layout: "tp=2 dp=2".to_owned(),
        groups: vec![class("dp")],
        members_only: true,
        ..PlanGroupsRequest::default()
    };
    let apart = (Code::FailedPrecondition, "GROUPS_APART".to_owned(), String::new());
    assert_eq!(refused(every_second).await, apart);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_ends_a_call() {
    let server = TestServer::start().await;
    // Random groups on a grid have no symmetry to speak of.
    let mut asked = Request::new(PlanGroupsRequest {
        topology: Some(source("rail:boxes=64,gpus=8,nv=300GB/s,nic=25GB/s,faults=nics:9+seed:3")),
        layout: "tp=8 pp=8 dp=8".to_owned(),
        groups: vec![class("tp"), class("dp"), GroupClass { next: true, collective: 0, ..class("pp") }],
        ..PlanGroupsRequest::default()
    });
    asked.set_timeout(Duration::from_millis(150));
    let status = planned(&server, asked).await.err().unwrap();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    server.stop().await;
}

/// The next round of a stream that is followed.
async fn followed(events: &mut Streaming<PlanGroupsEvent>) -> (Sent, GroupsSettled) {
    let (sent, settled) = timeout(Duration::from_secs(60), round(events)).await.expect("a round comes").unwrap();
    (sent, settled.expect("the stream goes on"))
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_have_all_groups_planned_again_together() {
    let server = start().await;
    let json = both_outputs().into_iter().take(1).collect();
    let request = PlanGroupsRequest { outputs: json, without_comparison: true, ..job() };
    let mut events = server.client().follow_groups(request).await.unwrap().into_inner();
    let (healthy, settled) = followed(&mut events).await;
    assert_eq!((settled.round, settled.error, healthy.plans.len()), (0, None, 12));
    // A dead NIC of one box slows all data groups, and each has another plan.
    let dead = vec![event("1", link("b0g3", "rail3", None), false)];
    let reported = report(&server, RAIL, dead).await;
    let (hit, settled) = followed(&mut events).await;
    assert_eq!((settled.round, settled.error, hit.plans.len()), (1, None, 12));
    assert_eq!(hit.rates.warnings[0].code, "FAULTS_APPLIED");
    assert!(ratio(hit.rates.seconds.exact()) > ratio(healthy.rates.seconds.exact()));
    let ids = |sent: &Sent| -> Vec<String> { sent.plans.iter().map(|plan| plan.plan.clone().unwrap().name).collect() };
    assert!(ids(&hit).iter().zip(ids(&healthy)).any(|(new, old)| *new != old));
    // Faults elsewhere, and those that change nothing, begin no round; groups that cannot go on end none.
    report(&server, "dgx-a100:boxes=2", vec![event("2", gpu("b0g3"), false)]).await;
    let cut =
        (0..8).map(|gpu| event(&format!("c{gpu}"), link(&format!("b1g{gpu}"), &format!("rail{gpu}"), None), false));
    report(&server, RAIL, cut.collect()).await;
    let (_, settled) = followed(&mut events).await;
    let error = settled.error.expect("data groups are apart");
    assert_eq!((settled.round, &*reason_of(&error)), (2, "GROUPS_APART"), "{}", error.message);
    let all = ClearFaultsRequest { topology: reported.topology, ..ClearFaultsRequest::default() };
    faults(&server).clear_faults(all).await.unwrap();
    let (again, settled) = followed(&mut events).await;
    assert_eq!((settled.round, settled.error), (3, None));
    assert_eq!((&again.rates, ids(&again)), (&healthy.rates, ids(&healthy)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_round_that_fails_ends_the_stream_and_readers_that_go_make_room() {
    let server = start().await;
    let mut wrong = job();
    wrong.layout = "tp=8 dp=5".to_owned();
    let mut events = server.client().follow_groups(wrong).await.unwrap().into_inner();
    assert_eq!(round(&mut events).await.map(|_| ()).unwrap_err().code(), Code::InvalidArgument);
    let mut open = Vec::new();
    let full = loop {
        match server.client().follow_groups(job()).await {
            Ok(events) => open.push(events),
            Err(full) => break full,
        }
    };
    assert_eq!((full.code(), open.len()), (Code::ResourceExhausted, 8), "{full:?}");
    drop(open);
    let freed = async {
        while server.client().follow_groups(job()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(60), freed).await.expect("places are free soon");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_is_planned_beside_jobs_that_run() {
    let server = TestServer::start().await;
    let half = |ranks: std::ops::Range<u32>| -> Vec<u32> { ranks.collect() };
    let json = || both_outputs().into_iter().take(1).collect();
    // Two jobs on halves of all boxes: their data groups share each box's switch and nothing else.
    let asked = PlanGroupsRequest {
        layout: "tp=8 dp=2".to_owned(),
        ranks: half(16..32),
        outputs: json(),
        max_chunks: Some(1),
        ..job()
    };
    let alone = planned(&server, asked.clone()).await.unwrap();
    assert_eq!(alone.plans.len(), 10);
    assert_eq!(alone.plans[2].ranks, [16, 24]);
    // The same job on all ranks, whose groups end after twice the time that they need, leaves half.
    let PlanGroupsRequest { layout, groups, .. } = job();
    let running = RunningGroups { layout, groups, seconds: fraction("3/25"), ..RunningGroups::default() };
    let beside = PlanGroupsRequest { running: vec![running.clone()], outputs: json(), ..job() };
    let sent = planned(&server, beside).await.unwrap();
    assert_eq!((sent.rates.seconds.exact(), sent.rates.seconds_bound.exact()), ("3/25", "3/25"));
    let network = read_document(&sent.network, None, &TopologyLimits::STANDARD).unwrap();
    let healthy = generate(RAIL, &TopologyLimits::STANDARD).unwrap();
    assert!(network.topology.links().iter().zip(healthy.links()).all(|(left, all)| left.capacity <= all.capacity));
    for (seconds, code, reason) in [
        ("1/25", Code::FailedPrecondition, "GROUPS_TOO_FAST"),
        ("3/50", Code::FailedPrecondition, "GROUPS_APART"),
        ("soon", Code::InvalidArgument, "FRACTION_INVALID"),
    ] {
        let running = RunningGroups { seconds: Some(Fraction::new(seconds, 0.0)), ..running.clone() };
        let refused = planned(&server, PlanGroupsRequest { running: vec![running], ..job() }).await.map(|_| ());
        let status = refused.unwrap_err();
        let told = status.get_details_error_info().map(|info| info.reason).unwrap_or_default();
        assert_eq!((status.code(), told.as_str()), (code, reason), "{status:?}");
    }
    let nowhere = PlanGroupsRequest { ranks: half(17..33), ..asked };
    let status = planned(&server, nowhere).await.map(|_| ()).unwrap_err();
    assert!(status.message().contains("rank 32 is named, and the network has 32 ranks"), "{status:?}");
    server.stop().await;
}
