//! A process that makes a bundle by itself gives the answer of a server.

use std::time::Duration;

use canopy_planner::Watch;
use canopy_proto::v1::{
    BundleCommunicator, Collective, CollectiveSpec, FaultPolicy, JointBundleSpec, JointCollective, OutputFormat,
    OutputSpec, PlanBundleRequest, PlanBundleResponse,
};
use canopy_service::bundle::Bundled;
use canopy_service::{Limits, Outcome, PlanService, ServerReason, ServiceError};
use canopy_store::{Space, StoreError, open_store};
use canopy_synth::Never;
use canopy_topology::{Rate, TopologyLimits};
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::support::{TestServer, request};

/// Nobody watches.
struct Unseen;

impl Watch for Unseen {
    fn stage(&self, _: &'static str, _: u64, _: u64) {}
    fn bound(&self, _: &Rate) {}
    fn incumbent(&self, _: &Rate) {}
}

fn collective(kind: Collective) -> CollectiveSpec {
    CollectiveSpec { kind: kind.into(), root: None }
}

/// Files for a runtime, or its advice.
fn bundle(network: &str, output: OutputSpec) -> PlanBundleRequest {
    PlanBundleRequest {
        topology: request(network).topology,
        communicators: vec![
            BundleCommunicator { name: "all".to_owned(), ranks: Vec::new() },
            BundleCommunicator { name: "pair".to_owned(), ranks: vec![2, 0] },
        ],
        collectives: vec![collective(Collective::Allgather), collective(Collective::Allreduce)],
        size_bytes_min: Some(1 << 16),
        size_bytes_max: Some(1 << 24),
        output: Some(output),
        ..PlanBundleRequest::default()
    }
}

fn joint(network: &str) -> PlanBundleRequest {
    let part = |name: &str, ranks: std::ops::Range<u32>, kind| JointCollective {
        name: name.to_owned(),
        ranks: ranks.collect(),
        collective: Some(collective(kind)),
        size_bytes: Some(1 << 20),
        chunks: Some(1),
    };
    let collectives = vec![part("up", 0..8, Collective::Allgather), part("down", 8..16, Collective::Allgather)];
    let topology = request(network).topology;
    let joint = Some(JointBundleSpec { collectives, outputs: Vec::new() });
    PlanBundleRequest { topology, joint, ..PlanBundleRequest::default() }
}

fn here(
    folder: &std::path::Path,
    request: PlanBundleRequest,
    time: Duration,
) -> Result<Outcome<Box<Bundled>>, ServiceError> {
    let limits = Limits { topology: TopologyLimits::STANDARD, store_bytes: 1 << 30, memory_bytes: 1 << 30 };
    PlanService::new(folder, limits).plan_bundle(request, canopy_store::clock::now() + time, &Never, &Unseen)
}

/// The reply without what differs from run to run.
fn told(mut reply: PlanBundleResponse) -> PlanBundleResponse {
    for item in reply.joint.iter_mut().flat_map(|joint| &mut joint.items) {
        item.timings = None;
        item.cache = 0;
        item.plan
            .iter_mut()
            .filter_map(|plan| plan.provenance.as_mut())
            .for_each(|provenance| provenance.wall_time = None);
    }
    reply
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_a_process_makes_is_that_of_a_server() {
    let server = TestServer::start().await;
    let folder = tempfile::tempdir().unwrap();
    let xml = OutputSpec { format: OutputFormat::MscclXml.into(), ..OutputSpec::default() };
    let advice = OutputSpec { profile: Some("nccl".to_owned()), ..OutputSpec::default() };
    let long = Duration::from_secs(600);
    let asked = [
        bundle("ring:4", xml.clone()),
        bundle("dgx-a100:boxes=2", advice),
        bundle("torus:2x3,faults=links:1", xml.clone()),
        joint("mesh:4x4"),
        // These are refused.
        bundle("ring:2", xml.clone()),
        bundle("nonsense:4", xml.clone()),
        PlanBundleRequest { fault_policy: 77, ..bundle("ring:4", xml.clone()) },
        PlanBundleRequest { priority: 77, ..joint("mesh:4x4") },
        PlanBundleRequest { output: None, ..bundle("ring:4", xml.clone()) },
        joint("mesh:2x3"),
    ];
    for asked in asked {
        let mut call = tonic::Request::new(asked.clone());
        call.set_timeout(long);
        let there = server.client().plan_bundle(call).await.map(tonic::Response::into_inner);
        let place = folder.path().to_owned();
        let here = tokio::task::spawn_blocking(move || here(&place, asked, long)).await.unwrap();
        match (there, here) {
            (Ok(there), Ok(Outcome::Answered(here))) => {
                let files = here.reply.items.iter().flat_map(|item| &item.files);
                for file in files {
                    let artifact = file.artifact.as_ref().unwrap();
                    let content = here.files.of(&file.plan, artifact).unwrap();
                    assert_eq!(canopy_wire::sha256_hex(content), artifact.sha256);
                }
                assert_eq!(told(there), told(here.reply));
            }
            (Err(there), Err(here)) => {
                let refusal = here.refusal();
                let reason = there.get_error_details().error_info().unwrap().reason.clone();
                assert_eq!((there.code(), reason), (Code::from(i32::from(refusal.code)), refusal.reason.to_string()));
                assert_eq!(there.message(), canopy_planner::chain(&here));
            }
            (there, here) => panic!("{there:?}, and here {here:?}"),
        }
    }
    server.stop().await;
}

/// What only a server knows is not passed over.
#[test]
fn what_only_a_server_knows_is_left_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let long = Duration::from_secs(60);
    let reason = |asked: PlanBundleRequest| match here(folder.path(), asked, long) {
        Ok(Outcome::NeedsServer(reason)) => Some(reason),
        _ => None,
    };
    let opened = open_store(folder.path()).unwrap();
    opened.space(Space::Faults).put(&canopy_planner::PlanKey::from_bytes([1; 32]), b"anything", b"").unwrap();
    assert!(matches!(here(folder.path(), joint("mesh:4x4"), long), Err(ServiceError::Store(StoreError::InUse { .. }))));
    drop(opened);
    assert_eq!(reason(joint("mesh:4x4")), Some(ServerReason::KnownFaults));
    let ignoring = PlanBundleRequest { fault_policy: FaultPolicy::Ignore.into(), ..joint("mesh:4x4") };
    assert_eq!(reason(ignoring), None);
    let stored = canopy_proto::v1::TopologySource {
        source: Some(canopy_proto::v1::topology_source::Source::Name("topologies/ab".to_owned())),
    };
    let asked = PlanBundleRequest { topology: Some(stored), ..joint("mesh:4x4") };
    assert_eq!(reason(asked), Some(ServerReason::StoredNetwork));
    let other = tempfile::tempdir().unwrap();
    assert!(matches!(here(other.path(), joint("mesh:4x4"), Duration::ZERO), Err(ServiceError::Late)));
}
