//! Networks of so many nodes and ports, found and kept.

use canopy_proto::Exact as _;
use canopy_proto::v1::analysis_client::AnalysisClient;
use canopy_proto::v1::{FindNetworksRequest, FindNetworksResponse};
use canopy_server::Pipeline;
use canopy_topology::{TopologyLimits, generate};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::support::TestServer;

async fn find(server: &TestServer, request: FindNetworksRequest) -> Result<FindNetworksResponse, Status> {
    AnalysisClient::new(server.channel.clone()).find_networks(request).await.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn what_was_found_is_kept_for_a_successor() {
    let request = FindNetworksRequest { nodes: 32, degree: 4, bidirectional: false };
    let server = TestServer::start().await;
    let first = find(&server, request).await.unwrap();
    assert!(!first.cached);
    for topology in &first.topologies {
        let network = generate(&topology.expression, &TopologyLimits::STANDARD).unwrap();
        assert_eq!(network.rank_count(), 32, "{}", topology.expression);
    }
    let bounds = first.bounds.clone().unwrap();
    assert_eq!((bounds.steps, bounds.bandwidth.exact(), bounds.all_to_all_rate.exact()), (3, "31/32", "4/69"));

    let directory = server.stop().await;
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let server = TestServer::start_in(directory, |_| {}, std::sync::Arc::new(pipeline)).await;
    let again = find(&server, request).await.unwrap();
    assert_eq!(again, FindNetworksResponse { cached: true, ..first });
}

#[tokio::test]
async fn numbers_out_of_range_are_refused() {
    let server = TestServer::start().await;
    for (nodes, degree, reason) in [
        (0, 4, "FIND_NODES_INVALID"),
        (1, 4, "FIND_NODES_INVALID"),
        (u32::MAX, 4, "FIND_NODES_INVALID"),
        (8, 0, "FIND_DEGREE_INVALID"),
        (8, u32::MAX, "FIND_DEGREE_INVALID"),
    ] {
        let status = find(&server, FindNetworksRequest { nodes, degree, bidirectional: true }).await.unwrap_err();
        let found = status.get_error_details().error_info().map(|info| info.reason.clone());
        assert_eq!((status.code(), found.as_deref()), (Code::InvalidArgument, Some(reason)), "{status:?}");
    }
    let none = find(&server, FindNetworksRequest { nodes: 7, degree: 1, bidirectional: true }).await.unwrap();
    assert!(none.topologies.is_empty() && none.bounds.is_none(), "seven nodes cannot be paired: {none:?}");
}
