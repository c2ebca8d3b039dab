//! Topologies that are kept, named by requests, and looked at.

use canopy_proto::Exact as _;
use canopy_proto::v1::networks_client::NetworksClient;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    CheckTopologyRequest, DeleteTopologyRequest, DocumentFormat, GetStatusRequest, GetTopologyRequest,
    ListTopologiesRequest, PlanSpec, PutTopologyRequest, PutTopologyResponse, Topology, TopologyDocument,
    TopologySource,
};
use canopy_server::Pipeline;
use canopy_topology::TopologyLimits;
use tonic::Code;
use tonic::transport::Channel;
use tonic_types::StatusExt as _;

use crate::cached::check_refused;
use crate::support::{TestServer, request};

const YAML: &str = "\
canopy: 1
name: pair
nodes: [{id: a, host: left}, {id: b}]
links: [{from: a, to: b, bandwidth: 1GB/s, both: true}]
";

fn client(server: &TestServer) -> NetworksClient<Channel> {
    NetworksClient::new(server.channel.clone())
}

fn source(source: Source) -> Option<TopologySource> {
    Some(TopologySource { source: Some(source) })
}

fn yaml(text: &str) -> Option<TopologySource> {
    let content = text.to_owned().into();
    source(Source::Document(TopologyDocument { format: DocumentFormat::Yaml.into(), content }))
}

async fn put(server: &TestServer, topology: Option<TopologySource>) -> PutTopologyResponse {
    let request = PutTopologyRequest { topology, request_id: String::new() };
    client(server).put_topology(request).await.unwrap().into_inner()
}

#[tokio::test]
async fn a_stored_topology_is_found_again_in_either_form_also_by_a_successor() {
    let server = TestServer::start().await;
    let first = put(&server, yaml(YAML)).await;
    let stored = first.topology.unwrap();
    assert!(first.created && stored.name.starts_with("topologies/"));
    assert_eq!((stored.display_name.as_str(), stored.summary.as_ref().unwrap().links), ("pair", 2));
    let again = put(&server, yaml(&YAML.replace("1GB/s", "1000000000B/s"))).await;
    assert_eq!((again.created, again.topology.as_ref()), (false, Some(&stored)), "the same, written otherwise");
    assert!(put(&server, source(Source::Expression("ring:5".to_owned()))).await.created);

    let directory = server.stop().await;
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let server = TestServer::start_in(directory, |_| {}, std::sync::Arc::new(pipeline)).await;
    for format in [DocumentFormat::Json, DocumentFormat::Yaml] {
        let request =
            GetTopologyRequest { name: stored.name.clone(), format: format.into(), ..GetTopologyRequest::default() };
        let reply = client(&server).get_topology(request).await.unwrap().into_inner();
        assert_eq!(reply.topology.as_ref(), Some(&stored));
        let document = reply.document.unwrap();
        assert_eq!(document.content.len() as u64, reply.document_size_bytes);
        assert_eq!(reply.document_sha256, crate::support::sha256(&document.content));
        let back = put(&server, source(Source::Document(document))).await;
        assert_eq!((back.created, back.topology.as_ref()), (false, Some(&stored)), "attributes survive");
    }
    let list = ListTopologiesRequest { filter: "ranks<5 OR name=none".to_owned(), ..ListTopologiesRequest::default() };
    let list = client(&server).list_topologies(list).await.unwrap().into_inner();
    assert_eq!((list.topologies.as_slice(), list.total_size), (std::slice::from_ref(&stored), 1));
    let mut admin = canopy_proto::v1::server_client::ServerClient::new(server.channel.clone());
    let counts = admin.get_status(GetStatusRequest {}).await.unwrap().into_inner().counts.unwrap();
    assert_eq!(counts.topologies, 2);

    let name = || stored.name.clone();
    let delete = || DeleteTopologyRequest { name: name(), request_id: String::new() };
    assert_eq!(client(&server).delete_topology(delete()).await.unwrap().into_inner().freed_bytes, stored.size_bytes);
    let status = client(&server).delete_topology(delete()).await.unwrap_err();
    let details = status.get_error_details();
    assert_eq!((status.code(), &*details.error_info().unwrap().reason), (Code::NotFound, "TOPOLOGY_UNKNOWN"));
    assert_eq!(details.resource_info().unwrap().resource_name, stored.name);
}

#[tokio::test]
async fn a_request_may_name_a_stored_topology() {
    let server = TestServer::start().await;
    let id = put(&server, source(Source::Expression("ring:6".to_owned()))).await.topology.unwrap().name;
    let by_id = PlanSpec { topology: source(Source::Name(id.clone())), ..request("") };
    let status = server.client().look_up_plan(by_id.clone().into_look_up()).await.unwrap_err();
    assert_eq!(status.get_error_details().error_info().unwrap().reason, "PLAN_NOT_CACHED");
    let named = server.client().plan(by_id.clone().into_plan()).await.unwrap().into_inner();
    let plain = server.client().plan(request("ring:6").into_plan()).await.unwrap().into_inner();
    assert_eq!(named.plan.as_ref().unwrap().name, plain.plan.unwrap().name);
    assert_eq!(
        named.plan.unwrap().artifacts,
        server.client().plan(by_id.into_plan()).await.unwrap().into_inner().plan.unwrap().artifacts
    );

    let malformed = PlanSpec { topology: source(Source::Name("topologies/none".to_owned())), ..request("") };
    let refused = server.client().plan(malformed.into_plan()).await;
    check_refused(refused, Code::InvalidArgument, "NAME_INVALID", "spec.topology.name");
    let none = format!("topologies/{:032}", 7);
    let unknown = PlanSpec { topology: source(Source::Name(none.clone())), ..request("") };
    for status in [
        server.client().plan(unknown.clone().into_plan()).await.unwrap_err(),
        server.client().look_up_plan(unknown.clone().into_look_up()).await.unwrap_err(),
        server.client().prefetch_plan(unknown.clone().into_prefetch()).await.unwrap_err(),
        server.client().stream_plan(unknown.into_plan()).await.unwrap_err(),
    ] {
        let details = status.get_error_details();
        assert_eq!((status.code(), &*details.error_info().unwrap().reason), (Code::NotFound, "TOPOLOGY_UNKNOWN"));
        assert_eq!(details.resource_info().unwrap().resource_name, none);
    }
}

#[tokio::test]
async fn a_check_says_what_a_topology_is_or_what_is_wrong_with_it() {
    let server = TestServer::start().await;
    let check = async |topology| {
        let reply = client(&server).check_topology(CheckTopologyRequest { topology }).await;
        reply.unwrap().into_inner()
    };
    let good = check(yaml(YAML)).await;
    assert_eq!((good.problem, good.unreachable, good.unbalanced), (None, None, None));
    assert_eq!((good.display_name.as_str(), good.summary.unwrap().ranks), ("pair", 2));
    assert_eq!(good.name, put(&server, yaml(YAML)).await.topology.unwrap().name, "the id is known beforehand");
    let stored = check(source(Source::Name(good.name.clone()))).await;
    assert_eq!(stored.name, good.name);

    let one_way = check(yaml(&YAML.replace(", both: true", ""))).await;
    let pair = one_way.unreachable.unwrap();
    assert_eq!((pair.from_rank, pair.from_node.as_str(), pair.to_node.as_str()), (1, "b", "a"));
    assert_eq!(one_way.unbalanced.unwrap().leaving, "1000000000");
    assert!(!one_way.warnings.is_empty() && one_way.problem.is_none());

    for (topology, reason, field) in [
        (yaml(&YAML.replace("1GB/s", "much")), "TOPOLOGY_MALFORMED", "topology.document.links[0].bandwidth"),
        (yaml(&YAML.replace("to: b", "to: c")), "UNKNOWN_NODE", "topology.document.links[0]"),
        (source(Source::Expression("ring:0".to_owned())), "TOPOLOGY_MALFORMED", "topology.expression"),
        (source(Source::Expression("ring:5000".to_owned())), "TOPOLOGY_TOO_LARGE", "topology.expression"),
        (source(Source::Inline(Topology::default())), "TOPOLOGY_MALFORMED", "topology.inline"),
        (None, "FIELD_MISSING", "topology"),
    ] {
        let problem = check(topology).await.problem.unwrap();
        assert_eq!(problem.reason, reason, "{problem:?}");
        assert!(problem.field.starts_with(field) && !problem.message.is_empty(), "{problem:?}");
    }
    let list = client(&server).list_topologies(ListTopologiesRequest::default()).await.unwrap().into_inner();
    assert_eq!(list.total_size, 1, "a check stores nothing");
}

#[tokio::test]
async fn bad_requests_are_refused() {
    let server = TestServer::start().await;
    let refused = |status: tonic::Status, code, reason: &str| {
        let found = status.get_error_details().error_info().map(|info| info.reason.clone());
        assert_eq!((status.code(), found.as_deref()), (code, Some(reason)), "{status:?}");
    };
    let bad = PutTopologyRequest { topology: yaml("canopy: 2"), request_id: String::new() };
    refused(client(&server).put_topology(bad).await.unwrap_err(), Code::InvalidArgument, "TOPOLOGY_MALFORMED");
    let id = put(&server, yaml(YAML)).await.topology.unwrap().name;
    let get = |format: i32, offset| GetTopologyRequest { name: id.clone(), format, offset, cluster: None };
    for (format, offset, reason) in
        [(3, 0, "ENUM_VALUE_UNKNOWN"), (0, 1, "ENUM_VALUE_UNKNOWN"), (1, 1 << 40, "OFFSET_INVALID")]
    {
        let status = client(&server).get_topology(get(format, offset)).await.unwrap_err();
        refused(status, Code::InvalidArgument, reason);
    }
    let list = ListTopologiesRequest { filter: "colour=red".to_owned(), ..ListTopologiesRequest::default() };
    refused(client(&server).list_topologies(list).await.unwrap_err(), Code::InvalidArgument, "FILTER_SYNTAX");
}

/// Plans, checks and faults are all of the network that the site states.
#[tokio::test(flavor = "multi_thread")]
async fn expressions_have_the_rates_of_the_site() {
    let rates = canopy_topology::SiteRates::read("dgx-a100: {nic: 20GB/s}").unwrap();
    let planner = std::sync::Arc::new(Pipeline::new(TopologyLimits::STANDARD));
    let server = TestServer::start_with(|options| options.family_rates = rates, planner).await;
    let plan = |expression: &str| {
        let (mut client, asked) = (server.client(), request(expression));
        async move { client.plan(asked.into_plan()).await.unwrap().into_inner().plan.unwrap() }
    };
    let short = plan("dgx-a100:boxes=2").await;
    assert_eq!(short.quality.unwrap().bound.exact(), "320000000000", "8 × 20 GB/s for half of the shares");
    assert_eq!(plan("dgx-a100:boxes=2,nic=20GB/s").await.name, short.name);
    assert_eq!(plan("dgx-a100:boxes=2,nic=25GB/s").await.quality.unwrap().bound.exact(), "1040000000000/3");
    let fault = crate::replans::event("1", crate::replans::gpu("b0g3"), false);
    let told = crate::replans::report(&server, "dgx-a100:boxes=2,nic=20GB/s", vec![fault]).await;
    assert_eq!(told.active, 1);
    let around = server.client().plan(request("dgx-a100:boxes=2").into_plan()).await.unwrap().into_inner();
    assert_eq!(around.puncture.map_or(0, |puncture| puncture.faults.len()), 1);
}
