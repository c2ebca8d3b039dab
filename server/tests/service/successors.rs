//! What a server leaves behind for the next one on its directory.

use std::fs;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use canopy_proto::v1::operations_client::OperationsClient;
use canopy_proto::v1::{GetOperationRequest, ListOperationsRequest, Operation, WaitOperationRequest, operation};
use canopy_server::{Lifetime, Options, Pipeline};
use canopy_topology::TopologyLimits;
use tokio::time::timeout;
use tonic::Code;

use crate::support::{GatedPlanner, TestServer, request, spawn};

async fn get(server: &TestServer, name: &str) -> Result<Operation, Code> {
    let asked = GetOperationRequest { name: name.to_owned() };
    let answer = OperationsClient::new(server.channel.clone()).get_operation(asked).await;
    answer.map(tonic::Response::into_inner).map_err(|status| status.code())
}

async fn wait(server: &TestServer, name: &str) -> Operation {
    let asked = WaitOperationRequest { name: name.to_owned(), ..WaitOperationRequest::default() };
    OperationsClient::new(server.channel.clone()).wait_operation(asked).await.unwrap().into_inner()
}

/// One job was detached and one had a caller when the server had to end; the next server makes both plans.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_a_drain_cuts_off_are_finished_by_the_next_server() {
    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_with(|options| options.drain_timeout = Duration::ZERO, planner).await;
    let prefetched = server.client().prefetch_plan(request("ring:6").into_prefetch()).await.unwrap().into_inner().name;
    gate.wait_for(1, 0);
    let mut client = server.client();
    let caller = spawn(async move { client.plan(request("ring:7").into_plan()).await });
    gate.wait_for(2, 0);
    let listed = OperationsClient::new(server.channel.clone()).list_operations(ListOperationsRequest::default()).await;
    let names: Vec<String> = listed.unwrap().into_inner().operations.into_iter().map(|found| found.name).collect();
    assert!(names.len() == 2 && names.contains(&prefetched), "{names:?}");
    let directory = server.stop().await;
    assert_eq!(caller.await.unwrap().unwrap_err().code(), Code::Unavailable);

    // A command on the same directory leaves them alone.
    let (planner, _gate) = GatedPlanner::new();
    let server = TestServer::start_in(directory, |options| options.lifetime = Lifetime::Command, planner).await;
    assert_eq!(get(&server, &prefetched).await, Err(Code::NotFound));
    let directory = server.stop().await;

    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_in(directory, |_| {}, planner).await;
    assert!(!get(&server, &prefetched).await.unwrap().done);
    gate.open();
    for name in &names {
        let ended = wait(&server, name).await;
        assert!(matches!(ended.result, Some(operation::Result::Response(_))), "{ended:?}");
        assert!(ended.metadata.unwrap().detached);
    }
    let directory = server.stop().await;

    let (planner, _gate) = GatedPlanner::new();
    let server = TestServer::start_in(directory, |_| {}, planner).await;
    assert_eq!(get(&server, &prefetched).await, Err(Code::NotFound), "nothing is left to do");
    server.stop().await;
}

/// A drain waits neither for prefetches that have not begun nor, for long, for those that have: the next server goes on
/// with them.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_with_three_hundred_prefetches_ends_at_once_and_loses_none() {
    let (planner, gate) = GatedPlanner::new();
    let change = |options: &mut Options| {
        // Longer than this test may take.
        options.drain_timeout = Duration::from_secs(3600);
        options.queue_length_max = NonZeroUsize::new(1024).unwrap();
    };
    let server = TestServer::start_with(change, planner).await;
    let mut names = Vec::new();
    for number in 0..300 {
        let asked = request(&format!("ring:4,lat={number}ns"));
        names.push(server.client().prefetch_plan(asked.into_prefetch()).await.unwrap().into_inner().name);
    }
    gate.wait_for(2, 0);
    let directory = timeout(Duration::from_secs(120), server.stop()).await.expect("nothing is waited for");

    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_in(directory, change, planner).await;
    for name in &names {
        assert!(get(&server, name).await.is_ok_and(|operation| !operation.done), "{name}");
    }
    gate.open();
    assert!(matches!(wait(&server, &names[299]).await.result, Some(operation::Result::Response(_))));
    server.stop().await;
}

/// Whatever is wrong with the files, the start succeeds and plans are made.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_store_keeps_no_server_from_serving() {
    let pipeline = || Arc::new(Pipeline::new(TopologyLimits::STANDARD));
    let server = TestServer::start().await;
    for expression in ["ring:4", "ring:5", "ring:6"] {
        server.client().plan(request(expression).into_plan()).await.unwrap();
    }
    let mut directory = server.stop().await;
    for share in 1..12 {
        let path = directory.path().join("store/db");
        let mut bytes = fs::read(&path).unwrap();
        let written = bytes.iter().rposition(|&byte| byte != 0).unwrap();
        bytes[written * share / 12..][..8].iter_mut().for_each(|byte| *byte ^= 0x5a);
        fs::write(&path, bytes).unwrap();
        let server = TestServer::start_in(directory, |_| {}, pipeline()).await;
        for expression in ["ring:4", "ring:5", "ring:6"] {
            server.client().plan(request(expression).into_plan()).await.unwrap();
        }
        directory = server.stop().await;
    }
}
