//! Orders of machines, over a real socket.

use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{GroupPattern, OrderMachinesRequest, OrderMachinesResponse, RankGroups, TopologySource};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::clusters::{part, put};
use crate::support::TestServer;

fn on(expression: &str) -> OrderMachinesRequest {
    let topology = Some(TopologySource { source: Some(Source::Expression(expression.to_owned())) });
    OrderMachinesRequest { topology, ..OrderMachinesRequest::default() }
}

fn groups(name: &str, size: u32, pattern: GroupPattern) -> RankGroups {
    RankGroups { name: name.to_owned(), size, pattern: pattern.into(), weight: None }
}

async fn ask(server: &TestServer, request: OrderMachinesRequest) -> Result<OrderMachinesResponse, Status> {
    server.analysis().order_machines(request).await.map(tonic::Response::into_inner)
}

fn names(reply: &OrderMachinesResponse) -> Vec<&str> {
    reply.machines.iter().map(|machine| machine.name.as_str()).collect()
}

/// A scheduler allocates machines of two leaves in turns; the part of the cluster is asked about, and the whole cluster
/// with the same machines, whose others share the links.
#[tokio::test]
async fn machines_of_a_cluster_are_ordered_leaf_by_leaf() {
    let server = TestServer::start().await;
    put(&server, "nic=50GB/s,leaf-spine=100GB/s").await;
    let allocated = ["gpu01", "gpu05", "gpu02", "gpu06"];
    let request = OrderMachinesRequest { topology: Some(part(&allocated)), ..OrderMachinesRequest::default() };
    let reply = ask(&server, request).await.unwrap();
    assert_eq!(names(&reply), ["gpu01", "gpu02", "gpu05", "gpu06"]);
    assert_eq!(reply.machines.iter().map(|machine| machine.given).collect::<Vec<_>>(), [0, 2, 1, 3]);
    assert!(reply.best && reply.machines.iter().all(|machine| machine.ranks == 4));
    let (given, found) = (reply.given.unwrap(), reply.found.unwrap());
    assert!(found.hops < given.hops && found.time <= given.time && found.fair_share.is_none());
    assert_eq!(found.group_times.len(), 2, "rings and trees");

    let nodes = allocated.map(str::to_owned).to_vec();
    let whole = OrderMachinesRequest { topology: Some(part(&[])), nodes, ..OrderMachinesRequest::default() };
    let reply = ask(&server, whole).await.unwrap();
    assert_eq!(names(&reply), ["gpu01", "gpu02", "gpu05", "gpu06"]);
    // Half of an uplink, on which the given order puts twice as much.
    let share = |times: Option<canopy_proto::v1::OrderTimes>| times.unwrap().fair_share.unwrap();
    assert!((share(reply.given) / share(reply.found) - 2.0).abs() < 1e-6);
}

#[tokio::test]
async fn groups_have_times_of_their_own() {
    let server = TestServer::start().await;
    let kinds = vec![
        groups("tp", 8, GroupPattern::Unspecified),
        groups("ep", 4, GroupPattern::AllToAll),
        groups("", 2, GroupPattern::Trees),
    ];
    let reply = ask(&server, OrderMachinesRequest { groups: kinds, ..on("pod:boxes=8,su=4,rails=8") }).await.unwrap();
    let found = reply.found.unwrap();
    assert_eq!((found.group_times.len(), found.group_times[0]), (3, 0.0), "tensor parallel groups stay in a machine");
    assert!((found.group_times.iter().sum::<f64>() - found.time).abs() < 1e-9, "{found:?}");
}

#[tokio::test]
async fn refusals_name_the_field() {
    let server = TestServer::start().await;
    let boxes = on("dgx-a100:boxes=2");
    let of = |kinds: &[RankGroups]| OrderMachinesRequest { groups: kinds.to_vec(), ..boxes.clone() };
    let nodes = |nodes: &[&str]| OrderMachinesRequest {
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        ..boxes.clone()
    };
    let ring = GroupPattern::Ring;
    for (request, code, reason) in [
        (OrderMachinesRequest::default(), Code::InvalidArgument, "FIELD_MISSING"),
        (on("ring:4"), Code::FailedPrecondition, "ORDER_MACHINES_UNKNOWN"),
        (nodes(&["b[0-"]), Code::InvalidArgument, "ORDER_NODES_INVALID"),
        (nodes(&["b0", "b7"]), Code::InvalidArgument, "ORDER_NODES_INVALID"),
        (nodes(&["b0", "b0"]), Code::InvalidArgument, "ORDER_NODES_INVALID"),
        (of(&[groups("tp", 0, ring)]), Code::InvalidArgument, "ORDER_GROUPS_INVALID"),
        (of(&[groups("tp", 5, ring)]), Code::InvalidArgument, "ORDER_GROUPS_INVALID"),
        (
            of(&[groups("tp", u32::MAX, ring), groups("dp", u32::MAX, ring)]),
            Code::InvalidArgument,
            "ORDER_GROUPS_INVALID",
        ),
        (of(&vec![groups("one", 1, ring); 99]), Code::InvalidArgument, "ORDER_GROUPS_INVALID"),
        (of(&[RankGroups { pattern: 9, ..groups("tp", 16, ring) }]), Code::InvalidArgument, "ENUM_VALUE_UNKNOWN"),
    ] {
        let status = ask(&server, request).await.unwrap_err();
        let found = status.get_error_details().error_info().map(|info| info.reason.clone());
        assert_eq!((status.code(), found.as_deref()), (code, Some(reason)), "{status:?}");
    }
}
