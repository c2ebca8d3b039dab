//! Processes that are killed.

use canopy_proto::v1::operations_client::OperationsClient;
use canopy_proto::v1::{CancelOperationRequest, GetOperationRequest, Operation, OperationState, operation};
use canopy_wire::reason_of;

use crate::support::{Process, request};

async fn get(process: &Process, name: &str) -> Option<Operation> {
    let asked = GetOperationRequest { name: name.to_owned() };
    OperationsClient::new(process.channel().await).get_operation(asked).await.ok().map(tonic::Response::into_inner)
}

/// Waits until a planner has begun with a job, and has written that down.
async fn wait_until_begun(process: &Process, name: &str) {
    for _ in 0..10_000 {
        let found = get(process, name).await.expect("it is there");
        let stage = found.metadata.and_then(|metadata| metadata.progress).map(|progress| progress.stage);
        if stage.is_some_and(|stage| !["queue", "read"].contains(&stage.as_str())) {
            return;
        }
    }
    panic!("no planner began");
}

/// A job that is killed with its process goes on in the next one; killed twice, it is shown as failed and not begun
/// again; ended by an operator, it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_outlives_one_kill_but_not_two() {
    let process = Process::start(|_, _| {});
    let name =
        process.client().await.prefetch_plan(request("torus:24x24").into_prefetch()).await.unwrap().into_inner().name;
    wait_until_begun(&process, &name).await;
    let process = Process::start_in(process.crash(), |_, _| {});
    let found = get(&process, &name).await.expect("it is there again");
    assert!(!found.done && found.metadata.unwrap().detached);
    wait_until_begun(&process, &name).await;
    let process = Process::start_in(process.crash(), |_, _| {});
    let failed = get(&process, &name).await.expect("it is still shown");
    let Some(operation::Result::Error(error)) = failed.result else { panic!("{:?}", failed.result) };
    assert_eq!(reason_of(&error), "JOB_ABANDONED");

    let again =
        process.client().await.prefetch_plan(request("torus:24x24").into_prefetch()).await.unwrap().into_inner().name;
    process.wait_until_synthesis_runs().await;
    let asked = CancelOperationRequest { name: again.clone(), request_id: String::new() };
    let ended = OperationsClient::new(process.channel().await).cancel_operation(asked).await.unwrap().into_inner();
    assert_eq!(ended.metadata.unwrap().state(), OperationState::Cancelled);
    process.signal("TERM");
    let process = Process::start_in(process.end_in_order(), |_, _| {});
    assert!(get(&process, &again).await.is_none());
}
