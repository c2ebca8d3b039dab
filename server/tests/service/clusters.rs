//! Stored clusters: requests name machines, faults belong to devices of the cluster.

use canopy_proto::Exact as _;
use canopy_proto::v1::cluster_description::Fabric;
use canopy_proto::v1::networks_client::NetworksClient;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    ClearFaultsRequest, ClusterDescription, ClusterNodes, DeleteClusterRequest, Fault, FaultScope, GetClusterRequest,
    HostKind, ListClustersRequest, ListFaultsRequest, PlanResponse, PlanSpec, PutClusterRequest, PutClusterResponse,
    ReportFaultsRequest, ReportFaultsResponse, TopologyDocument, TopologySource, fault,
};
use canopy_wire::fraction_of;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::replans::{acquire, event, faults, link, next_final, silence, start, watch};
use crate::support::{TestServer, request};

const DUMP: &str = include_str!("../../../crates/import/tests/data/four-gpus.xml");
const CONF: &str =
    "SwitchName=leaf1 Nodes=gpu[01-04]\nSwitchName=leaf2 Nodes=gpu[05-08]\nSwitchName=spine Switches=leaf[1-2]\n";

fn clusters(server: &TestServer) -> NetworksClient<Channel> {
    NetworksClient::new(server.channel.clone())
}

fn file(text: &str) -> TopologyDocument {
    TopologyDocument { format: 0, content: text.to_owned().into() }
}

fn described(rates: &str) -> ClusterDescription {
    let hosts = vec![HostKind { file: Some(file(DUMP)), nodes: String::new() }];
    ClusterDescription { fabric: Some(Fabric::File(file(CONF))), hosts, rates: rates.to_owned() }
}

pub(crate) async fn put(server: &TestServer, rates: &str) -> PutClusterResponse {
    let (name, description) = ("clusters/prod".to_owned(), Some(described(rates)));
    let asked = PutClusterRequest { name, description, ..PutClusterRequest::default() };
    clusters(server).put_cluster(asked).await.unwrap().into_inner()
}

pub(crate) fn part(nodes: &[&str]) -> TopologySource {
    let nodes = nodes.iter().map(|node| (*node).to_owned()).collect();
    TopologySource { source: Some(Source::Cluster(ClusterNodes { cluster: "clusters/prod".to_owned(), nodes })) }
}

fn on(nodes: &[&str]) -> PlanSpec {
    PlanSpec { topology: Some(part(nodes)), ..request("") }
}

async fn plan(server: &TestServer, nodes: &[&str]) -> PlanResponse {
    server.client().plan(on(nodes).into_plan()).await.unwrap().into_inner()
}

async fn report(server: &TestServer, nodes: &[&str], (id, fault): (&str, Fault)) -> ReportFaultsResponse {
    let events = vec![event(id, fault, false)];
    let asked = ReportFaultsRequest { topology: Some(part(nodes)), events, ..ReportFaultsRequest::default() };
    faults(server).report_faults(asked).await.unwrap().into_inner()
}

fn around(reply: &PlanResponse) -> usize {
    reply.puncture.as_ref().map_or(0, |puncture| puncture.faults.len())
}

fn switch(name: &str) -> Fault {
    Fault { target: Some(fault::Target::SwitchName(name.to_owned())), remaining: None }
}

fn reason(status: &Status) -> (Code, String) {
    (status.code(), status.get_error_details().error_info().map(|info| info.reason.clone()).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_name_their_machines_and_share_what_was_found_for_the_shape() {
    let server = start().await;
    let stored = put(&server, "").await;
    let cluster = stored.cluster.unwrap();
    assert_eq!((stored.created, cluster.nodes, cluster.ranks, cluster.switches), (true, 8, 32, 3));
    assert!(!stored.understood.is_empty() && stored.assumed.iter().any(|line| line.contains("from leaf to spine")));
    assert!(!put(&server, "").await.changed);
    let first = plan(&server, &["gpu[01-02]", "gpu05"]).await;
    let facts = first.plan.unwrap();
    let first_id = facts.name.clone();
    assert_eq!((facts.quality.unwrap().optimality.exact(), facts.topology.unwrap().ranks), ("1/1", 12));
    let synthesised = server.statistics.synthesis_count();
    let other = plan(&server, &["gpu07", "gpu08", "gpu03"]).await;
    assert_ne!(other.plan.unwrap().name, first_id, "its files name other machines");
    assert_eq!(server.statistics.synthesis_count(), synthesised, "the shape is the same: nothing is searched");
    assert_eq!(plan(&server, &["gpu01,gpu02,gpu05"]).await.plan.unwrap().name, first_id);
    // The cluster may change: what was planned for it stays, and other rates make other plans.
    assert!(put(&server, "nic=200Gb/s").await.changed);
    assert_ne!(plan(&server, &["gpu[01-02]", "gpu05"]).await.plan.unwrap().name, first_id);
    let got = clusters(&server).get_cluster(GetClusterRequest { name: cluster.name }).await.unwrap().into_inner();
    assert_eq!((got.nodes.len(), got.nodes[7].as_str()), (8, "gpu08"));
    assert_eq!(got.description.unwrap(), described("nic=200Gb/s"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_the_fabric_concerns_all_parts_that_have_the_element_and_no_others() {
    let server = start().await;
    put(&server, "").await;
    let lease = acquire(&server, "far", vec![on(&["gpu04", "gpu06"])]).await;
    acquire(&server, "near", vec![on(&["gpu01", "gpu02"])]).await;
    let mut events = watch(&server, "").await;
    // It is reported for another part than those that jobs run on, and for the whole of it.
    let half = Fault { remaining: Some(fraction_of(1, 2)), ..link("leaf1", "spine", None) };
    let told = report(&server, &["gpu03", "gpu08"], ("1", half)).await;
    assert_eq!(
        (told.outcomes[0].scope(), told.outcomes[0].element.as_str()),
        (FaultScope::Cluster, "link:leaf1=spine")
    );
    let (moved, superseded) = next_final(&mut events).await;
    assert_eq!((moved.lease, moved.job.as_str(), superseded.optimality.exact()), (lease.name, "far", "1/1"));
    silence(&mut events, 500).await;
    assert_eq!(around(&plan(&server, &["gpu03", "gpu07"]).await), 1);
    assert_eq!(around(&plan(&server, &["gpu07", "gpu08"]).await), 0);
    let host = Fault { target: Some(fault::Target::Host("gpu07".to_owned())), remaining: None };
    let told = report(&server, &[], ("2", host)).await;
    assert_eq!((told.outcomes[0].scope(), told.active), (FaultScope::Host, 2));
    let lost = server.client().plan(on(&["gpu07", "gpu08", "gpu06"]).into_plan()).await.unwrap().into_inner();
    assert_eq!((around(&lost), lost.plan.unwrap().topology.unwrap().ranks), (1, 8));
    report(&server, &[], ("3", switch("leaf2"))).await;
    let split = server.client().plan(on(&["gpu06", "gpu08"]).into_plan()).await.unwrap_err();
    assert_eq!(reason(&split), (Code::FailedPrecondition, "TOPOLOGY_DISCONNECTED".to_owned()));
    let asked = ListFaultsRequest { filter: "scope = cluster".to_owned(), ..ListFaultsRequest::default() };
    let listed = faults(&server).list_faults(asked).await.unwrap().into_inner().faults;
    let listed: Vec<_> = listed.iter().map(|known| (known.topology.as_str(), known.text.as_str())).collect();
    assert_eq!(listed, [("clusters/prod", "link:leaf1=spine*1/2"), ("clusters/prod", "switch:leaf2")]);
    let asked = ClearFaultsRequest { topology: "clusters/prod".to_owned(), ..ClearFaultsRequest::default() };
    let cleared = faults(&server).clear_faults(asked).await.unwrap().into_inner();
    assert_eq!((cleared.cleared, cleared.active), (3, 0), "its machines are cleared as well");
    let (back, _) = next_final(&mut events).await;
    assert_eq!(back.job, "far");
    assert_eq!(around(&plan(&server, &["gpu06", "gpu08"]).await), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_survives_the_server_and_goes_when_it_is_deleted() {
    let server = start().await;
    put(&server, "").await;
    let directory = server.stop().await;
    let planner = canopy_server::Pipeline::new(canopy_topology::TopologyLimits::STANDARD);
    let server = TestServer::start_in(directory, |_| {}, std::sync::Arc::new(planner)).await;
    assert_eq!(plan(&server, &["gpu01", "gpu05"]).await.plan.unwrap().quality.unwrap().optimality.exact(), "1/1");
    let asked = ListClustersRequest { filter: "ranks > 30".to_owned(), ..ListClustersRequest::default() };
    let listed = clusters(&server).list_clusters(asked).await.unwrap().into_inner();
    assert_eq!((listed.total_size, listed.clusters[0].name.as_str()), (1, "clusters/prod"));
    let deleted = DeleteClusterRequest { name: "clusters/prod".to_owned(), ..DeleteClusterRequest::default() };
    assert!(clusters(&server).delete_cluster(deleted.clone()).await.unwrap().into_inner().freed_bytes > 1000);
    let gone = clusters(&server).delete_cluster(deleted).await.unwrap_err();
    assert_eq!(reason(&gone), (Code::NotFound, "CLUSTER_UNKNOWN".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_part_of_a_cluster_is_refused_with_its_field() {
    let server = start().await;
    let unknown = server.client().plan(on(&["gpu01", "gpu02"]).into_plan()).await.unwrap_err();
    assert_eq!(reason(&unknown), (Code::NotFound, "CLUSTER_UNKNOWN".to_owned()));
    put(&server, "").await;
    for (nodes, problem) in [
        (vec!["gpu01", "gpu09"], "node `gpu09` is not in the cluster"),
        (vec!["gpu01", "gpu01"], "gpu01 twice"),
        (vec!["gpu[01-"], "a bracket does not close"),
    ] {
        let refused = server.client().plan(on(&nodes).into_plan()).await.unwrap_err();
        assert_eq!(reason(&refused), (Code::InvalidArgument, "CLUSTER_NODES_INVALID".to_owned()));
        assert!(refused.message().contains(problem), "{nodes:?}: {}", refused.message());
        let violations = refused.get_error_details().bad_request().unwrap().field_violations.clone();
        assert_eq!(violations[0].field, "spec.topology.cluster.nodes");
    }
    let asked = PutClusterRequest { name: "clusters/prod".to_owned(), ..PutClusterRequest::default() };
    let refused = clusters(&server).put_cluster(asked).await.unwrap_err();
    assert_eq!(reason(&refused), (Code::InvalidArgument, "CLUSTER_INVALID".to_owned()));
    let asked = PutClusterRequest { name: "prod".to_owned(), description: Some(described("")), ..Default::default() };
    let refused = clusters(&server).put_cluster(asked).await.unwrap_err();
    assert_eq!(reason(&refused), (Code::InvalidArgument, "CLUSTER_NAME_INVALID".to_owned()));
}
