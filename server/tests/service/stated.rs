//! Limits that the comments of the interface state are those that the server keeps: what is at a limit is not refused for
//! it, and what is beyond is, by the name of its field.

mod limits;
mod requests;

use std::fs;
use std::path::Path;

use canopy_proto::v1::faults_client::FaultsClient;
use canopy_proto::v1::leases_client::LeasesClient;
use canopy_proto::v1::networks_client::NetworksClient;
use canopy_proto::v1::operations_client::OperationsClient;
use canopy_proto::v1::{
    AcquireLeaseRequest, EvictPlansRequest, FindNetworksRequest, FindPathsRequest, ListClustersRequest,
    ListFaultsRequest, ListLeasesRequest, ListOperationsRequest, ListPlansRequest, ListTopologiesRequest,
    OrderMachinesRequest, PlanBundleRequest, PlanGroupsRequest, PlanSpec, ReportFaultsRequest, SimulatePlanRequest,
    WeighFaultsRequest,
};
use canopy_wire::reason_of;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use self::limits::LIMITS;
use crate::support::{TestServer, request};

/// A call whose request has a limit.
enum Call {
    Plan(PlanSpec),
    Bundle(PlanBundleRequest),
    Groups(PlanGroupsRequest),
    Paths(FindPathsRequest),
    Order(OrderMachinesRequest),
    Networks(FindNetworksRequest),
    Weigh(WeighFaultsRequest),
    Report(ReportFaultsRequest),
    Lease(AcquireLeaseRequest),
    Evict(EvictPlansRequest),
    Simulate(SimulatePlanRequest),
    Lists(u32),
}

/// A limit: the field, the words of its comment, what keeps it and what does not, and the path in refusals.
struct Limit {
    field: &'static str,
    words: &'static str,
    kept: &'static [u64],
    broken: &'static [u64],
    path: &'static str,
    call: fn(u64) -> Call,
}

/// Stated limits that other tests keep, and what is no limit of a request.
const ELSEWHERE: &[(&str, &str)] = &[
    ("ListFaultsRequest.page_size", "every list is asked for the limit of ListPlansRequest.page_size"),
    ("ListLeasesRequest.page_size", "every list is asked for the limit of ListPlansRequest.page_size"),
    ("ListTopologiesRequest.page_size", "every list is asked for the limit of ListPlansRequest.page_size"),
    ("ListClustersRequest.page_size", "every list is asked for the limit of ListPlansRequest.page_size"),
    ("ListOperationsRequest.page_size", "every list is asked for the limit of ListPlansRequest.page_size"),
    ("RunningGroups.seconds", "wire::groups"),
    ("PlanGroupsRequest.best_order", "a limit of what is looked at, not of the request"),
    ("MovingNetwork.topology", "service::moving"),
    ("MovingMatrix.bytes", "service::moving"),
    ("GetTopologyRequest.offset", "service::topologies"),
    ("ClusterDescription.hosts", "service::clusters"),
    ("PutClusterRequest.name", "service::clusters"),
    ("RankSlot.device", "an index"),
    ("PlanSpec.shares", "crates/schedule"),
    ("PlanSpec.size_bytes_min", "wire::plan_request"),
    ("JointSpec.position", "wire::plan_request"),
    ("JointCollective.name", "service::joint"),
    ("PlanBundleRequest.collectives", "there are eight kinds, and each may be there once"),
    ("PlanBundleRequest.margin", "no limit"),
    ("FetchPlanFileRequest.offset", "service::cached"),
    ("SetLogFilterRequest.lasts", "service::operators"),
    ("DeviceTarget.index", "an index"),
    ("Fraction.exact", "wire::fraction"),
    ("TopologyDocument.content", "a setting of the server"),
    ("Node.id", "crates/topology"),
    ("Link.bandwidth", "wire::request"),
];

/// Messages that are parts of requests.
const PARTS: &[&str] = &[
    "BundleCommunicator",
    "ClusterDescription",
    "DeviceTarget",
    "Fault",
    "FaultEvent",
    "Fraction",
    "GroupClass",
    "JointBundleSpec",
    "JointCollective",
    "JointSpec",
    "Link",
    "MovingMatrix",
    "MovingNetwork",
    "Node",
    "OutputSpec",
    "PlanSpec",
    "Punctured",
    "RankGroups",
    "RankSlot",
    "RunningGroups",
    "TopologyDocument",
];

/// Fields of requests with their comments, each on one line: `Message.field`.
fn comments() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/canopy/v1");
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let (mut message, mut comment) = (String::new(), String::new());
        for line in fs::read_to_string(entry.unwrap().path()).unwrap().lines() {
            let line = line.trim();
            if let Some(words) = line.strip_prefix("//") {
                comment.push_str(words);
                continue;
            }
            if let Some(name) = line.strip_prefix("message ") {
                message = name.trim_end_matches(['{', '}', ' ']).to_owned();
            } else if let Some((field, _)) = line.split_once(" = ") {
                let name = field.rsplit(' ').next().unwrap();
                if message.ends_with("Request") || PARTS.contains(&message.as_str()) {
                    found.push((format!("{message}.{name}"), comment.clone()));
                }
            }
            comment.clear();
        }
    }
    found
}

/// Whether a comment states a limit.
fn states_a_limit(comment: &str) -> bool {
    let before =
        |mark: &str| comment.match_indices(mark).any(|(at, _)| comment[..at].ends_with(|c: char| c.is_ascii_digit()));
    ["at most", "> 0", "less than", "more than 0", "from 0", "from 1", "from 2"]
        .iter()
        .any(|words| comment.contains(words))
        || before(" to ") && !comment.contains("KiB to")
}

#[test]
fn every_stated_limit_is_checked_and_stated_as_it_is() {
    let comments = comments();
    for limit in LIMITS {
        let stated = comments.iter().find(|(field, _)| field == limit.field);
        let (_, comment) = stated.unwrap_or_else(|| panic!("there is no {}", limit.field));
        assert!(comment.contains(limit.words), "{}: `{}` is not in `{comment}`", limit.field, limit.words);
    }
    let is_known = |field: &str| {
        LIMITS.iter().any(|limit| limit.field == field) || ELSEWHERE.iter().any(|(known, _)| *known == field)
    };
    let unknown: Vec<_> =
        comments.iter().filter(|(field, comment)| states_a_limit(comment) && !is_known(field)).collect();
    assert!(unknown.is_empty(), "check these limits: {unknown:#?}");
}

/// Why a call is refused for its form: the reason, and the field.
fn refusal<T>(answer: Result<T, Status>) -> Option<(String, String)> {
    let status = answer.err()?;
    let details = status.get_error_details();
    let reason = details.error_info().map(|info| info.reason.clone()).unwrap_or_default();
    let field = match status.code() {
        Code::InvalidArgument => details.bad_request()?.field_violations.first()?.field.clone(),
        Code::ResourceExhausted => details.quota_failure()?.violations.first()?.subject.clone(),
        _ => return None,
    };
    Some((reason, field))
}

async fn refused(server: &TestServer, plan: &str, call: Call) -> Option<(String, String)> {
    let channel = || server.channel.clone();
    match call {
        Call::Plan(spec) => refusal(server.client().plan(spec.into_plan()).await),
        Call::Bundle(asked) => refusal(server.client().plan_bundle(asked).await),
        Call::Groups(asked) => refusal(server.client().plan_groups(asked).await),
        Call::Paths(asked) => refusal(server.analysis().find_paths(asked).await),
        Call::Order(asked) => refusal(server.analysis().order_machines(asked).await),
        Call::Networks(asked) => refusal(server.analysis().find_networks(asked).await),
        Call::Weigh(asked) => refusal(server.analysis().weigh_faults(asked).await),
        Call::Report(asked) => {
            let answer = FaultsClient::new(channel()).report_faults(asked).await;
            let outcomes = answer.as_ref().map(|reply| reply.get_ref().outcomes.clone()).unwrap_or_default();
            let error = outcomes.into_iter().find_map(|outcome| outcome.error);
            // A single event is refused in the answer, in words that name its field.
            error.map(|error| (reason_of(&error), error.message)).or_else(|| refusal(answer))
        }
        Call::Lease(asked) => refusal(LeasesClient::new(channel()).acquire_lease(asked).await),
        Call::Evict(asked) => refusal(server.plans().evict_plans(asked).await),
        Call::Simulate(asked) => {
            let name = plan.to_owned();
            refusal(server.plans().simulate_plan(SimulatePlanRequest { name, ..asked }).await)
        }
        Call::Lists(page_size) => {
            let plans = ListPlansRequest { page_size, ..ListPlansRequest::default() };
            let faults = ListFaultsRequest { page_size, ..ListFaultsRequest::default() };
            let leases = ListLeasesRequest { page_size, ..ListLeasesRequest::default() };
            let topologies = ListTopologiesRequest { page_size, ..ListTopologiesRequest::default() };
            let clusters = ListClustersRequest { page_size, ..ListClustersRequest::default() };
            let operations = ListOperationsRequest { page_size, ..ListOperationsRequest::default() };
            let all = [
                refusal(server.plans().list_plans(plans).await),
                refusal(FaultsClient::new(channel()).list_faults(faults).await),
                refusal(LeasesClient::new(channel()).list_leases(leases).await),
                refusal(NetworksClient::new(channel()).list_topologies(topologies).await),
                refusal(NetworksClient::new(channel()).list_clusters(clusters).await),
                refusal(OperationsClient::new(channel()).list_operations(operations).await),
            ];
            assert!(all.iter().all(|found| found == &all[0]), "{all:?}");
            all.into_iter().next().flatten()
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_at_a_limit_is_not_refused_for_it_and_what_is_beyond_is() {
    let server = TestServer::start().await;
    let plan = server.client().plan(request("ring:4").into_plan()).await.unwrap().into_inner().plan.unwrap().name;
    for Limit { field, kept, broken, path, call, .. } in LIMITS {
        for number in *kept {
            let found = refused(&server, &plan, call(*number)).await;
            let is_for_it = found.as_ref().is_some_and(|(_, place)| place.starts_with(path));
            assert!(!is_for_it, "{field}: {number} is refused: {found:?}");
        }
        for number in *broken {
            let found = refused(&server, &plan, call(*number)).await;
            let is_for_it = found.as_ref().is_some_and(|(_, place)| place.contains(path));
            assert!(is_for_it, "{field}: {number} is taken, or refused for something else: {found:?}");
        }
    }
    server.stop().await;
}
