//! One message on several paths, over a real socket.

use canopy_proto::Exact as _;
use canopy_proto::v1::networks_client::NetworksClient;
use canopy_proto::v1::{
    FindPathsRequest, FindPathsResponse, PathForwarding, PutTopologyRequest, TopologySource, topology_source::Source,
};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::support::TestServer;

fn on(expression: &str, source_rank: u32, target_rank: u32, size_bytes: u64) -> FindPathsRequest {
    let topology = Some(TopologySource { source: Some(Source::Expression(expression.to_owned())) });
    FindPathsRequest { topology, source_rank, target_rank, size_bytes, ..FindPathsRequest::default() }
}

async fn ask(server: &TestServer, request: FindPathsRequest) -> Result<FindPathsResponse, Status> {
    server.analysis().find_paths(request).await.map(tonic::Response::into_inner)
}

/// Type 1 of K(4, 2), α = 1 µs and β = 0.1 ns: the parts of 1 MB end together at (M + Σ α/β)/Σ 1/(hβ).
#[tokio::test]
async fn parts_end_together() {
    let server = TestServer::start().await;
    let kautz = "kautz:d=4,n=2,bw=10GB/s,lat=1us";
    // 01 to 23.
    let reply = ask(&server, on(kautz, 0, 10, 1_000_000)).await.unwrap();
    assert_eq!((reply.disjoint_paths, reply.time_ns.exact()), (4, "208000/3"));
    assert_eq!((reply.even_time_ns.exact(), reply.single_time_ns.exact()), ("78000", "202000"));
    assert_eq!(reply.single_nodes, ["01", "12", "23"]);
    assert_eq!(reply.paths[0].nodes, ["01", "12", "23"]);
    assert_eq!(reply.paths.iter().map(|path| path.size_bytes).sum::<u64>(), 1_000_000);
    let first = &reply.paths[0];
    assert_eq!((first.share_bytes.exact(), first.latency_ns.exact()), ("1010000/3", "2000"));
    assert_eq!((first.ns_per_byte.exact(), first.size_bytes), ("1/5", 336_667));

    let two = ask(&server, FindPathsRequest { paths_max: Some(2), ..on(kautz, 0, 10, 1_000_000) }).await.unwrap();
    assert_eq!((two.paths.len(), two.disjoint_paths), (2, 2));
    let through = FindPathsRequest { forwarding: PathForwarding::Through.into(), ..on(kautz, 0, 10, 1_000_000) };
    assert_eq!(ask(&server, through).await.unwrap().time_ns.exact(), "27750");
    // A few bytes stay together.
    assert_eq!(ask(&server, on(kautz, 0, 10, 64)).await.unwrap().paths.len(), 1);

    // The same on a topology that the server keeps.
    let topology = on(kautz, 0, 10, 1).topology;
    let put = PutTopologyRequest { topology, ..PutTopologyRequest::default() };
    let kept = NetworksClient::new(server.channel.clone()).put_topology(put).await.unwrap().into_inner();
    let topology = Some(TopologySource { source: Some(Source::Name(kept.topology.unwrap().name)) });
    assert_eq!(ask(&server, FindPathsRequest { topology, ..on(kautz, 0, 10, 1_000_000) }).await.unwrap(), reply);
}

#[tokio::test]
async fn boxes_send_through_their_switch_and_the_fabric() {
    let server = TestServer::start().await;
    let reply = ask(&server, on("dgx-a100:boxes=2", 0, 1, 1 << 30)).await.unwrap();
    let nodes: Vec<&[String]> = reply.paths.iter().map(|path| path.nodes.as_slice()).collect();
    assert_eq!(nodes, [["b0g0", "b0nv", "b0g1"], ["b0g0", "ib", "b0g1"]]);
    assert!(reply.paths[0].size_bytes > reply.paths[1].size_bytes);
}

#[tokio::test]
async fn refusals_name_the_field() {
    let server = TestServer::start().await;
    let ring = on("ring:4", 0, 1, 8);
    for (request, code, reason) in [
        (FindPathsRequest { topology: None, ..ring.clone() }, Code::InvalidArgument, "FIELD_MISSING"),
        (on("ring:", 0, 1, 8), Code::InvalidArgument, "TOPOLOGY_MALFORMED"),
        (on("ring:4", 4, 1, 8), Code::InvalidArgument, "PATHS_RANK_UNKNOWN"),
        (on("ring:4", 0, u32::MAX, 8), Code::InvalidArgument, "PATHS_RANK_UNKNOWN"),
        (on("ring:4", 2, 2, 8), Code::InvalidArgument, "PATHS_RANK_TWICE"),
        (on("ring:4", 0, 1, 0), Code::InvalidArgument, "PATHS_SIZE_INVALID"),
        (FindPathsRequest { paths_max: Some(65), ..ring.clone() }, Code::InvalidArgument, "PATHS_MAX_INVALID"),
        (FindPathsRequest { forwarding: 9, ..ring.clone() }, Code::InvalidArgument, "ENUM_VALUE_UNKNOWN"),
        (on("ring:4,dir=uni,down=0>1", 0, 1, 8), Code::FailedPrecondition, "PATHS_UNREACHABLE"),
    ] {
        let status = ask(&server, request).await.unwrap_err();
        let found = status.get_error_details().error_info().map(|info| info.reason.clone());
        assert_eq!((status.code(), found.as_deref()), (code, Some(reason)), "{status:?}");
    }
    let huge = ask(&server, FindPathsRequest { size_bytes: u64::MAX, ..ring }).await.unwrap();
    assert_eq!(huge.paths.iter().map(|path| u128::from(path.size_bytes)).sum::<u128>(), u64::MAX.into());
}
