//! Faults, leases and watches of a process that is killed.

use std::collections::BTreeMap;
use std::time::Duration;

use canopy_proto::v1::faults_client::FaultsClient;
use canopy_proto::v1::leases_client::LeasesClient;
use canopy_proto::v1::replan_event::Event;
use canopy_proto::v1::{
    AcquireLeaseRequest, DeviceTarget, Fault, FaultEvent, FetchPlanFileRequest, ListFaultsRequest, ListLeasesRequest,
    OutputFormat, PlanSpec, ReplanEvent, ReplanStage, ReportFaultsRequest, WatchLeasesRequest, fault,
    fetch_plan_file_event,
};
use tokio::time::timeout;
use tonic::Streaming;
use tonic::transport::Channel;

use crate::support::{Process, request, stated};

/// Long enough to plan anew that it can be killed meanwhile.
const LARGE: &str = "torus:16x16";
const SMALL: &str = "ring:6";
/// What is left of it takes a search.
const SEARCHED: &str = "torus:6x6";

fn start(folder: Option<tempfile::TempDir>) -> Process {
    let arrange = |command: &mut std::process::Command, _| {
        command.args(["--replan-window", "100ms", "--fault-debounce", "200ms", "--plan-ahead=false"]);
    };
    match folder {
        None => Process::start(arrange),
        Some(folder) => Process::start_in(folder, arrange),
    }
}

async fn lease(process: &Process, job: &str, request: PlanSpec) {
    let mut planner = process.client().await;
    planner.prefetch_plan(request.clone().into_prefetch()).await.unwrap();
    while planner.look_up_plan(request.clone().into_look_up()).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let asked = AcquireLeaseRequest { job: job.to_owned(), specs: vec![request], ..AcquireLeaseRequest::default() };
    LeasesClient::new(process.channel().await).acquire_lease(asked).await.unwrap();
}

async fn faults(process: &Process) -> FaultsClient<Channel> {
    FaultsClient::new(process.channel().await)
}

async fn lose(process: &Process, expression: &str, gpu: &str) {
    let device = DeviceTarget { node: gpu.to_owned(), ..DeviceTarget::default() };
    let fault = Some(Fault { target: Some(fault::Target::Device(device)), remaining: None });
    let (source, event_id) = ("test".to_owned(), format!("{expression} {gpu}"));
    let events = vec![FaultEvent { source, event_id, fault, ..FaultEvent::default() }];
    let asked = ReportFaultsRequest { topology: request(expression).topology, events, ..Default::default() };
    faults(process).await.report_faults(asked).await.unwrap();
}

async fn watch(process: &Process, resume_token: &str) -> Streaming<ReplanEvent> {
    let asked = WatchLeasesRequest { resume_token: resume_token.to_owned(), ..WatchLeasesRequest::default() };
    {
        let mut events = LeasesClient::new(process.channel().await).watch_leases(asked).await.unwrap().into_inner();
        let first = events.message().await.unwrap().unwrap();
        assert!(matches!(first.event, Some(Event::Started(_))), "{first:?}");
        events
    }
}

/// Events up to one that nothing better follows.
async fn until_final(events: &mut Streaming<ReplanEvent>) -> Vec<ReplanEvent> {
    let mut seen = Vec::new();
    loop {
        let event = timeout(Duration::from_secs(120), events.message()).await.expect("in time").unwrap().unwrap();
        let is_final = matches!(&event.event, Some(Event::Superseded(superseded)) if superseded.is_final);
        seen.push(event);
        if is_final {
            return seen;
        }
    }
}

/// Killed while a plan is made anew: the faults, the leases and the place of a watch are there again, the plan is made, and it is
/// told of once.
#[tokio::test(flavor = "multi_thread")]
async fn a_kill_loses_no_fault_no_lease_and_no_event() {
    let process = start(None);
    lease(&process, "small", request(SMALL)).await;
    lease(&process, "large", request(LARGE)).await;
    let mut events = watch(&process, "").await;
    lose(&process, SMALL, "3").await;
    let token = until_final(&mut events).await.pop().unwrap().resume_token;
    // It may be through before anybody looks: what follows is true then, too.
    let (_, ended) = process.syntheses().await;
    lose(&process, LARGE, "5.5").await;
    process.wait_until_synthesis_begins(ended).await;

    let process = start(Some(process.crash()));
    let listed = faults(&process).await.list_faults(ListFaultsRequest::default()).await.unwrap().into_inner();
    assert_eq!(listed.total_size, 2);
    let leases = LeasesClient::new(process.channel().await).list_leases(ListLeasesRequest::default()).await;
    assert_eq!(leases.unwrap().into_inner().total_size, 2);
    let told = until_final(&mut watch(&process, &token).await).await;
    assert!(told.iter().all(|event| event.job == "large"), "{told:?}");

    let process = start(Some(process.crash()));
    let mut events = watch(&process, &token).await;
    let again = until_final(&mut events).await;
    assert_eq!(again, told);
    let more = timeout(Duration::from_secs(1), events.message()).await;
    assert!(more.is_err(), "{more:?}");
    let mut sequences: BTreeMap<u64, usize> = BTreeMap::new();
    again.iter().for_each(|event| *sequences.entry(event.sequence).or_default() += 1);
    assert!(sequences.values().all(|&times| times == 1));
}

/// A plan around a fault has a worker, and memory, though searches have all there is of both.
#[tokio::test(flavor = "multi_thread")]
async fn a_repair_begins_at_once_though_all_workers_search() {
    let process = Process::start(|command, _| {
        command.args(["--workers", "2", "--replan-window", "20ms", "--fault-debounce", "50ms", "--plan-ahead=false"]);
        command.args(["--drain-timeout", "0s"]);
    });
    lease(&process, "job", request(SEARCHED)).await;
    let mut events = watch(&process, "").await;
    let (_, ended) = process.syntheses().await;
    for number in 0..8 {
        let large = request(&format!("dgx-a100:boxes=125,degrade=b{number}g3-ib*1/2"));
        process.client().await.prefetch_plan(large.into_prefetch()).await.unwrap();
    }
    while process.syntheses().await.0 < 2 {
        assert!(process.syntheses().await.1 < ended + 6, "two searches run for a while");
    }
    lose(&process, SEARCHED, "23").await;
    until_final(&mut events).await;
    assert!(process.syntheses().await.1 < ended + 8, "searches were going on all the time");
    let figure = async |what: &str| {
        let name = format!("canopy_synthesis_queue_wait_seconds_{what}{{priority=\"repair\"}}");
        process.metric(&name).await.unwrap_or_default()
    };
    let (waited, repairs) = (figure("sum").await, figure("count").await);
    eprintln!("{repairs} repairs waited {waited} s for a worker");
    assert!(repairs >= 1.0 && waited <= 0.2 * repairs, "{repairs} repairs waited {waited} s");
}

/// A lease on more ranks than trees can be written for: the rule is made again around each fault, and a rank gets its
/// steps. `CANOPY_BOXES` says how many boxes there are.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_on_very_many_ranks_is_planned_again_by_rule() {
    let boxes = stated("CANOPY_BOXES").unwrap_or(1300);
    let network = format!("dgx-h100:boxes={boxes},faults=nics:7+gpus:3+seed:1");
    let process = crate::kills::start(None);
    lease(&process, "many", request(&network)).await;
    let mut events = watch(&process, "").await;
    for (lost, gpu) in (1..).zip(["b50g3", "b51g3", "b700g0"]) {
        lose(&process, &network, gpu).await;
        let told = until_final(&mut events).await;
        let [ReplanEvent { event: Some(Event::Superseded(told)), .. }] = told.as_slice() else { panic!("{told:?}") };
        let optimality = told.optimality.as_ref().unwrap();
        eprintln!("{} after {:?}", optimality.exact, told.elapsed);
        assert_eq!((told.stage(), told.survivors.len() as u64), (ReplanStage::Optimum, 8 * boxes - 3 - lost));
        assert!(optimality.value > 0.995, "{}", optimality.exact);
        let wanted = FetchPlanFileRequest {
            name: told.new_plan.clone(),
            format: OutputFormat::Json.into(),
            ranks: vec![17],
            ..FetchPlanFileRequest::default()
        };
        let mut parts = process.plans().await.fetch_plan_file(wanted).await.unwrap().into_inner();
        let mut file = Vec::new();
        while let Some(part) = parts.message().await.unwrap() {
            if let Some(fetch_plan_file_event::Event::Content(piece)) = part.event {
                file.extend_from_slice(&piece.data);
            }
        }
        let steps = canopy_plan::parse_rank_steps(std::str::from_utf8(&file).unwrap()).unwrap();
        assert_eq!((steps.rank, u64::from(steps.rank_count)), (17, 8 * boxes - 3 - lost));
    }
}
