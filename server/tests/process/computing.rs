//! Calls that compute: in turn, charged while they run, within the memory of planning, and over when nobody waits.

use std::time::Duration;

use canopy_proto::v1::analysis_client::AnalysisClient;
use canopy_proto::v1::networks_client::NetworksClient;
use canopy_proto::v1::planner_client::PlannerClient;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::server_client::ServerClient;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    BundleCommunicator, CheckTopologyRequest, Collective, CollectiveSpec, FindNetworksRequest, FindPathsRequest,
    GetQuotaRequest, GroupClass, OrderMachinesRequest, OutputFormat, OutputSpec, PlanBundleRequest, PlanGroupsRequest,
    PlanSpec, SimulatePlanRequest, TopologySource,
};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};

use crate::access::{Issued, Shows, reason};
use crate::processor::processor_time;
use crate::support::{Process, request, spawn};

/// So long a test waits for what must come at some time.
const PATIENCE: Duration = Duration::from_secs(120);
/// Processor time that may pass until work has ended that nobody waits for: about half a second on each of two
/// processors,
/// and as much again for what ends with it.
const GRACE: Duration = Duration::from_secs(2);
/// Callers of a second tenant, by tokens of the issuer.
const BLUE: &str = "[[grant]]\nissuer = \"site\"\nsubject = \"blue\"\nroles = [\"operator\"]\ntenants = [\"blue\"]\n";
/// Seconds of planning in an hour that no test here uses up. What is used comes back at this rate, more slowly than one
/// computation uses it.
const MUCH: u32 = 2_000;
/// The same for short calls: a millisecond is seen for a fifth of a second.
const LITTLE: u32 = 20;

fn quotas(seconds: u32) -> String {
    format!("[quotas]\ndefault = {{ planning_seconds_per_hour = {seconds} }}\n")
}

/// A server, a channel to it, and callers of tenants red and blue, with so much memory and planning time.
async fn serving(memory: &str, seconds: u32) -> (Process, Channel, Shows, Shows) {
    let issued = Issued::new();
    let rules = format!("{BLUE}{}", quotas(seconds));
    let process = Process::start(|command, folder| {
        issued.serve_with(command, &folder, &rules);
        command.args(["--job-memory-bytes", memory]);
    });
    let channel = process.channel().await;
    (process, channel, issued.token("operator"), issued.jwt("blue", "canopy"))
}

fn source(expression: &str) -> Option<TopologySource> {
    Some(TopologySource { source: Some(Source::Expression(expression.to_owned())) })
}

fn of(expression: &str, kind: Collective) -> PlanSpec {
    let collective = Some(CollectiveSpec { kind: kind.into(), root: None });
    PlanSpec { collective, ..request(expression) }
}

/// One group of some ranks.
fn group(expression: &str, ranks: u32, kind: Collective) -> PlanGroupsRequest {
    let class = GroupClass {
        name: "all".to_owned(),
        over: vec!["a".to_owned()],
        collective: kind.into(),
        size_bytes: 1 << 20,
        ..GroupClass::default()
    };
    PlanGroupsRequest {
        topology: source(expression),
        layout: format!("a={ranks}"),
        ranks: (0..ranks).collect(),
        groups: vec![class],
        ..PlanGroupsRequest::default()
    }
}

async fn whole<T>(events: Result<tonic::Response<Streaming<T>>, Status>) -> Result<(), Status> {
    let mut events = events?.into_inner();
    while events.message().await?.is_some() {}
    Ok(())
}

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bound,
    Paths,
    OrderMachines,
    WhatIf,
    PlanGroups,
    FollowGroups,
    PlanBundle,
    SimulatePlan,
    CheckTopology,
    Find,
}

/// All of them.
const KINDS: [Kind; 10] = [
    Kind::Bound,
    Kind::Paths,
    Kind::OrderMachines,
    Kind::WhatIf,
    Kind::PlanGroups,
    Kind::FollowGroups,
    Kind::PlanBundle,
    Kind::SimulatePlan,
    Kind::CheckTopology,
    Kind::Find,
];

/// Calls that go on for much longer than any test here.
const LONG: [Kind; 4] = [Kind::Bound, Kind::WhatIf, Kind::PlanGroups, Kind::FollowGroups];

/// A request for one caller.
struct Caller {
    channel: Channel,
    shows: Shows,
}

impl Caller {
    fn with<T>(&self, message: T) -> Request<T> {
        let mut asked = self.shows.with(message);
        asked.set_timeout(PATIENCE);
        asked
    }

    fn planner(&self) -> PlannerClient<Channel> {
        PlannerClient::new(self.channel.clone()).max_decoding_message_size(64 << 20)
    }

    fn analysis(&self) -> AnalysisClient<Channel> {
        AnalysisClient::new(self.channel.clone()).max_decoding_message_size(64 << 20)
    }

    /// Makes a call that has an answer soon.
    async fn short(&self, kind: Kind) -> Result<(), Status> {
        let (mut planner, mut analysis) = (self.planner(), self.analysis());
        match kind {
            Kind::Bound => {
                analysis.compute_bound(self.with(of("ring:5", Collective::Allgather).into_bound())).await.map(drop)
            }
            Kind::Paths => {
                let asked = FindPathsRequest {
                    topology: source("ring:5"),
                    target_rank: 2,
                    size_bytes: 1 << 20,
                    ..FindPathsRequest::default()
                };
                analysis.find_paths(self.with(asked)).await.map(drop)
            }
            Kind::OrderMachines => {
                let asked =
                    OrderMachinesRequest { topology: source("rail:boxes=4,gpus=2"), ..OrderMachinesRequest::default() };
                analysis.order_machines(self.with(asked)).await.map(drop)
            }
            Kind::WhatIf => {
                let asked = of("ring:5", Collective::Allgather).into_weigh_faults();
                whole(analysis.weigh_faults(self.with(asked)).await).await
            }
            Kind::PlanGroups => {
                whole(planner.plan_groups(self.with(group("ring:5", 5, Collective::Allgather))).await).await
            }
            Kind::FollowGroups => {
                let asked = self.with(group("ring:5", 5, Collective::Allgather));
                let mut events = planner.follow_groups(asked).await?.into_inner();
                events.message().await?;
                events.message().await.map(drop)
            }
            Kind::PlanBundle => {
                let asked = PlanBundleRequest {
                    topology: source("ring:4"),
                    communicators: vec![BundleCommunicator { name: "all".to_owned(), ..BundleCommunicator::default() }],
                    collectives: vec![CollectiveSpec { kind: Collective::Allgather.into(), root: None }],
                    size_bytes_max: Some(1 << 20),
                    output: Some(OutputSpec { format: OutputFormat::MscclXml.into(), ..OutputSpec::default() }),
                    ..PlanBundleRequest::default()
                };
                planner.plan_bundle(self.with(asked)).await.map(drop)
            }
            Kind::SimulatePlan => {
                let outputs = vec![OutputSpec { format: OutputFormat::Json.into(), ..OutputSpec::default() }];
                let asked = PlanSpec { outputs, ..request("ring:5") };
                let plan = planner.plan(self.with(asked.into_plan())).await?.into_inner().plan.unwrap_or_default();
                let asked = SimulatePlanRequest {
                    name: plan.name,
                    sizes_bytes: vec![1 << 20],
                    ..SimulatePlanRequest::default()
                };
                PlansClient::new(self.channel.clone()).simulate_plan(self.with(asked)).await.map(drop)
            }
            Kind::CheckTopology => {
                let asked = CheckTopologyRequest { topology: source("ring:5") };
                NetworksClient::new(self.channel.clone()).check_topology(self.with(asked)).await.map(drop)
            }
            Kind::Find => analysis
                .find_networks(self.with(FindNetworksRequest { nodes: 12, degree: 4, bidirectional: false }))
                .await
                .map(drop),
        }
    }

    /// Makes a call that has no answer for a long time.
    async fn long(&self, kind: Kind) -> Result<(), Status> {
        let (mut planner, mut analysis) = (self.planner(), self.analysis());
        match kind {
            Kind::Bound => analysis
                .compute_bound(self.with(of("random-regular:n=500,d=8,seed=1", Collective::AllToAll).into_bound()))
                .await
                .map(drop),
            Kind::WhatIf => {
                let asked = of("random-regular:n=500,d=8,seed=2", Collective::AllToAll).into_weigh_faults();
                whole(analysis.weigh_faults(self.with(asked)).await).await
            }
            Kind::PlanGroups => {
                let asked = group("random-regular:n=600,d=8,seed=1", 600, Collective::Allgather);
                whole(planner.plan_groups(self.with(asked)).await).await
            }
            Kind::FollowGroups => {
                let asked = group("random-regular:n=600,d=8,seed=2", 600, Collective::Allgather);
                whole(planner.follow_groups(self.with(asked)).await).await
            }
            other => unreachable!("{other:?} has no long call"),
        }
    }

    /// Seconds of planning that its tenant has used, begun ones counted.
    async fn planned(&self) -> u64 {
        let mut admin = ServerClient::new(self.channel.clone());
        let quota = admin.get_quota(self.shows.with(GetQuotaRequest::default())).await.unwrap();
        let of_tenant = quota.into_inner().of_tenant;
        of_tenant.iter().find(|one| one.quota == "planning_seconds_per_hour").map_or(0, |one| one.used)
    }

    /// Waits until so many seconds of planning are used.
    async fn wait_until_planned(&self, seconds: u64) {
        let looking = async {
            while self.planned().await < seconds {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, looking).await.expect("time is charged while the call goes on");
    }
}

/// Processor time until the process has none for a while.
async fn quiet(process: &Process) -> Duration {
    let before = processor_time(process.id());
    let mut last = before;
    let ending = async {
        loop {
            sleep(Duration::from_millis(250)).await;
            let now = processor_time(process.id());
            if now - std::mem::replace(&mut last, now) <= Duration::from_millis(20) {
                return now - before;
            }
        }
    };
    timeout(PATIENCE, ending).await.expect("the work ends")
}

/// Each long call is charged while it goes on, keeps no other tenant's call of any kind, and ends with its caller.
#[tokio::test(flavor = "multi_thread")]
async fn long_calls_of_one_tenant_keep_nobody_else_and_end_with_their_callers() {
    let (process, channel, red, blue) = serving("4294967296", MUCH).await;
    let blue = Caller { channel: channel.clone(), shows: blue };
    for (round, kind) in (1..).zip(LONG) {
        let calls: Vec<JoinHandle<Result<(), Status>>> = (0..3)
            .map(|_| {
                let red = Caller { channel: channel.clone(), shows: red.clone() };
                spawn(async move { red.long(kind).await })
            })
            .collect();
        let watcher = Caller { channel: channel.clone(), shows: red.clone() };
        let used = watcher.planned().await;
        watcher.wait_until_planned(used + 2).await;
        for short in KINDS {
            timeout(PATIENCE, blue.short(short)).await.unwrap_or_else(|_| panic!("{short:?} beside {kind:?}")).unwrap();
            assert!(!calls.iter().any(JoinHandle::is_finished), "{kind:?} is over before {short:?}");
        }
        calls.iter().for_each(JoinHandle::abort);
        let worked = quiet(&process).await;
        eprintln!("round {round}, {kind:?}: {worked:?} of work after the callers had gone");
        assert!(worked <= GRACE, "{kind:?}: {worked:?} of work after the callers had gone");
    }
    process.signal("TERM");
    assert_eq!(process.end().0, Some(0));
}

/// Each kind of call that computes is charged to its tenant, as short as it is.
#[tokio::test(flavor = "multi_thread")]
async fn every_call_that_computes_is_charged() {
    for kind in KINDS {
        let (_process, channel, red, _) = serving("4294967296", LITTLE).await;
        let red = Caller { channel, shows: red };
        assert_eq!(red.planned().await, 0);
        red.short(kind).await.unwrap();
        red.wait_until_planned(1).await;
    }
}

/// What needs more memory than planning has is refused before it is allocated, with what to do.
#[tokio::test(flavor = "multi_thread")]
async fn computations_beyond_the_memory_of_planning_are_refused() {
    let (process, channel, red, _) = serving("268435456", MUCH).await;
    let red = Caller { channel, shows: red };
    let (mut planner, mut analysis) = (red.planner(), red.analysis());
    // 100,000 links, whose inverse would have 80 GB.
    let groups = group("random-regular:n=1000,d=100,seed=1", 2, Collective::Allgather);
    let bound = of("random-regular:n=2000,d=8", Collective::AllToAll);
    let what_if = of("complete:600", Collective::Allgather).into_weigh_faults();
    for (kind, refused) in [
        (Kind::PlanGroups, whole(planner.plan_groups(red.with(groups.clone())).await).await),
        (Kind::FollowGroups, whole(planner.follow_groups(red.with(groups)).await).await),
        (Kind::Bound, analysis.compute_bound(red.with(bound.into_bound())).await.map(drop)),
        (Kind::WhatIf, whole(analysis.weigh_faults(red.with(what_if)).await).await),
    ] {
        let refused = refused.unwrap_err();
        assert_eq!(
            (refused.code(), &*reason(&refused)),
            (Code::ResourceExhausted, "MEMORY_BUDGET"),
            "{kind:?}: {refused:?}"
        );
        assert!(refused.message().contains("job_memory_bytes"), "{refused:?}");
    }
    // It goes on to serve.
    red.short(Kind::PlanGroups).await.unwrap();
    process.signal("TERM");
    assert_eq!(process.end().0, Some(0));
}

/// A drain ends computations within its time-out.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_ends_computations() {
    for kind in LONG {
        let issued = Issued::new();
        let process = Process::start(|command, folder| {
            issued.serve_with(command, &folder, &quotas(MUCH));
            command.args(["--drain-timeout", "100ms"]);
        });
        let red = Caller { channel: process.channel().await, shows: issued.token("operator") };
        let watcher = Caller { channel: process.channel().await, shows: issued.token("operator") };
        let call = spawn(async move { red.long(kind).await });
        watcher.wait_until_planned(1).await;
        process.signal("TERM");
        assert!(timeout(PATIENCE, call).await.expect("the drain ends it").unwrap().is_err(), "{kind:?}");
        assert_eq!(process.end().0, Some(0), "{kind:?}");
    }
}
