//! Whatever is asked of one server right after another one has acknowledged a fault is answered by that fault.

use canopy_prerequisites::Commits;
use canopy_proto::v1::analysis_client::AnalysisClient;
use canopy_proto::v1::faults_client::FaultsClient;
use canopy_proto::v1::leases_client::LeasesClient;
use canopy_proto::v1::plan_event::Event as PlanStreamEvent;
use canopy_proto::v1::plan_groups_event::Event as GroupsEvent;
use canopy_proto::v1::plan_moving_event::Event as MovingEvent;
use canopy_proto::v1::planner_client::PlannerClient;
use canopy_proto::v1::weigh_faults_event::Event as WeighFaultsEvent;
use canopy_proto::v1::{
    AcquireLeaseRequest, Collective, CollectiveSpec, Fault, FaultEvent, GroupClass, LinkTarget, MovingNetwork,
    OutputFormat, OutputSpec, PlanBundleRequest, PlanGroupsEvent, PlanGroupsRequest, PlanMovingRequest, PlanResponse,
    ReportFaultsRequest, Warning, fault, operation, plan_moving_request,
};
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use super::{Cluster, end_of, plan, prefetch};
use crate::kills::lost;
use crate::support::{request, stated};

/// Two tiers, so that every call has something to say of it.
const NETWORK: &str = "rail:boxes=4,gpus=4,nv=300GB/s,nic=25GB/s";
/// How often all calls are made, unless `CANOPY_CASES` says it.
const ROUNDS: u64 = 1;

/// The calls that take known faults into account.
#[derive(Clone, Copy, Debug)]
enum Call {
    Plan,
    StreamPlan,
    LookUpPlan,
    Prefetch,
    Bound,
    WhatIf,
    PlanBundle,
    PlanGroups,
    FollowGroups,
    PlanMoving,
    AcquireLease,
}

const CALLS: [Call; 11] = [
    Call::Plan,
    Call::Bound,
    Call::StreamPlan,
    Call::WhatIf,
    Call::LookUpPlan,
    Call::Prefetch,
    Call::PlanBundle,
    Call::PlanGroups,
    Call::FollowGroups,
    Call::PlanMoving,
    Call::AcquireLease,
];

/// The number of faults that an answer says it is made around.
fn applied(warnings: &[Warning]) -> u64 {
    let text = |warning: &Warning| warning.text.strip_prefix("planned around ").map(str::to_owned);
    let said = warnings.iter().filter(|warning| warning.code == "FAULTS_APPLIED").find_map(text);
    said.map_or(0, |text| text.split(' ').next().unwrap().parse().unwrap())
}

fn of_reply(reply: &PlanResponse) -> u64 {
    applied(&reply.warnings)
}

fn bundle() -> PlanBundleRequest {
    PlanBundleRequest {
        topology: request(NETWORK).topology,
        collectives: vec![CollectiveSpec { kind: Collective::Allgather.into(), root: None }],
        size_bytes_min: Some(1 << 20),
        size_bytes_max: Some(1 << 20),
        output: Some(OutputSpec { format: OutputFormat::MscclXml.into(), ..OutputSpec::default() }),
        ..PlanBundleRequest::default()
    }
}

fn groups() -> PlanGroupsRequest {
    let class = GroupClass {
        name: "dp".to_owned(),
        over: vec!["dp".to_owned()],
        collective: Collective::Allreduce.into(),
        size_bytes: 1 << 30,
        ..GroupClass::default()
    };
    let topology = request(NETWORK).topology;
    PlanGroupsRequest { topology, layout: "tp=4 dp=4".to_owned(), groups: vec![class], ..PlanGroupsRequest::default() }
}

async fn rates(mut events: Streaming<PlanGroupsEvent>) -> Result<u64, Status> {
    loop {
        if let Some(GroupsEvent::Rates(rates)) = events.message().await?.unwrap().event {
            return Ok(applied(&rates.warnings));
        }
    }
}

impl Call {
    /// The number of faults that the answer is made around.
    async fn ask(self, channel: Channel) -> Result<u64, Status> {
        let asked = request(NETWORK);
        let mut planner = PlannerClient::new(channel.clone());
        match self {
            Self::Plan => plan(channel, asked).await.map(|reply| of_reply(&reply)),
            Self::StreamPlan => {
                let mut events = planner.stream_plan(asked.into_plan()).await?.into_inner();
                loop {
                    if let Some(PlanStreamEvent::Final(reply)) = events.message().await?.unwrap().event {
                        return Ok(of_reply(&reply));
                    }
                }
            }
            Self::LookUpPlan => planner.look_up_plan(asked.into_look_up()).await.map(|reply| of_reply(reply.get_ref())),
            Self::Prefetch => {
                let operation = prefetch(channel.clone(), asked).await?;
                loop {
                    // It may take longer than one call waits.
                    if let Ok(ended) = end_of(channel.clone(), operation.name.clone()).await {
                        let Some(operation::Result::Response(reply)) = ended.result else { panic!("{ended:?}") };
                        return Ok(reply.puncture.map_or(0, |puncture| puncture.faults.len() as u64));
                    }
                }
            }
            Self::Bound => AnalysisClient::new(channel.clone())
                .compute_bound(asked.into_bound())
                .await
                .map(|reply| applied(&reply.get_ref().warnings)),
            Self::WhatIf => {
                let first = AnalysisClient::new(channel.clone())
                    .weigh_faults(asked.into_weigh_faults())
                    .await?
                    .into_inner()
                    .message()
                    .await?
                    .unwrap();
                let Some(WeighFaultsEvent::Started(started)) = first.event else { panic!("{first:?}") };
                Ok(applied(&started.warnings))
            }
            Self::PlanBundle => planner.plan_bundle(bundle()).await.map(|reply| applied(&reply.get_ref().warnings)),
            Self::PlanGroups => rates(planner.plan_groups(groups()).await?.into_inner()).await,
            Self::FollowGroups => rates(planner.follow_groups(groups()).await?.into_inner()).await,
            Self::PlanMoving => {
                let network = MovingNetwork { topology: asked.topology, ..MovingNetwork::default() };
                let first = PlanMovingRequest { request: Some(plan_moving_request::Request::Network(network)) };
                let mut events = planner.plan_moving(tokio_stream::iter([first])).await?.into_inner();
                let first = events.message().await?.unwrap();
                let Some(MovingEvent::Tiers(tiers)) = first.event else { panic!("{first:?}") };
                Ok(applied(&tiers.warnings))
            }
            Self::AcquireLease => {
                let job = "fresh".to_owned();
                let asked = AcquireLeaseRequest { job, specs: vec![asked], ..AcquireLeaseRequest::default() };
                let lease = LeasesClient::new(channel).acquire_lease(asked).await?.into_inner();
                Ok(u64::from(lease.plans[0].current != lease.plans[0].original))
            }
        }
    }

    /// Whether that is what an answer says where so many faults are known.
    fn fits(self, answer: &Result<u64, Status>, known: u64) -> bool {
        match (self, answer) {
            // A plan around the new fault is not there yet; that for the sound network would be.
            (Self::LookUpPlan, Err(status)) => status.code() == Code::NotFound,
            (Self::AcquireLease, Ok(is_around)) => *is_around == 1,
            (_, Ok(found)) => *found == known,
            (_, Err(_)) => false,
        }
    }
}

/// The network card of a GPU, each time another one. One of each box stays.
fn card(number: u64) -> Fault {
    let (from, to) = (format!("b{}g{}", number % 4, number / 4), format!("rail{}", number / 4));
    Fault { target: Some(fault::Target::Link(LinkTarget { from, to, one_way: false })), remaining: None }
}

/// The report of a lost GPU of a network.
pub(super) fn lost_of(network: &str, gpu: u64) -> ReportFaultsRequest {
    let (source, event_id, fault) = ("test".to_owned(), gpu.to_string(), Some(lost(gpu)));
    let event = FaultEvent { source, event_id, fault, ..FaultEvent::default() };
    ReportFaultsRequest { topology: request(network).topology, events: vec![event], ..ReportFaultsRequest::default() }
}

async fn report(channel: Channel, number: u64) {
    let (source, event_id, fault) = ("test".to_owned(), number.to_string(), Some(card(number)));
    let event = FaultEvent { source, event_id, fault, ..FaultEvent::default() };
    let asked = ReportFaultsRequest { topology: request(NETWORK).topology, events: vec![event], ..Default::default() };
    FaultsClient::new(channel).report_faults(asked).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_at_another_server_is_answered_by_the_fault_just_acknowledged() {
    for _ in 0..stated("CANOPY_CASES").unwrap_or(ROUNDS) {
        let Some(cluster) = Cluster::start(Commits::Unsynced).await else { return };
        let mut channels = Vec::new();
        for number in 0..super::REPLICAS {
            channels.push(cluster.replica(number).channel().await);
        }
        // All know the network, and the plan for it when it is sound.
        for channel in &channels {
            assert_eq!(of_reply(&plan(channel.clone(), request(NETWORK)).await.unwrap()), 0);
        }
        let mut wrong = Vec::new();
        for (number, call) in (0..).zip(CALLS) {
            let at = |step: u64| channels[usize::try_from((number + step) % 3).unwrap()].clone();
            report(at(0), number).await;
            let answer = call.ask(at(1)).await;
            if !call.fits(&answer, number + 1) {
                wrong.push((call, number + 1, answer));
            }
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}

/// The same where all connections to the database are cut between the report and the question: who cannot know of the fault says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_the_fault_just_acknowledged_says_that_faults_may_be_missing() {
    let Some(cluster) = Cluster::start(Commits::Unsynced).await else { return };
    let channels = [cluster.replica(0).channel().await, cluster.replica(1).channel().await];
    plan(channels[1].clone(), request("ring:12")).await.unwrap();
    let mut outdated = 0;
    for number in 0..8 {
        let asked = lost_of("ring:12", number);
        // It may be refused, being cut off as well; then it is reported again.
        while let Err(status) = FaultsClient::new(channels[0].clone()).report_faults(asked.clone()).await {
            assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        }
        cluster.query(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity
             where pid <> pg_backend_pid() and application_name = 'canopyd'",
        );
        let reply = AnalysisClient::new(channels[1].clone())
            .compute_bound(request("ring:12").into_bound())
            .await
            .unwrap()
            .into_inner();
        let says_so = reply.warnings.iter().any(|warning| warning.code == "FAULTS_OUTDATED");
        outdated += u64::from(says_so);
        assert!(says_so || applied(&reply.warnings) == number + 1, "{number}: {:?}", reply.warnings);
    }
    eprintln!("{outdated} of 8 answers say that faults may be missing");
}
