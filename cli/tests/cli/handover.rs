//! What happens to a command when the process whose server it joined ends.

use std::process::Stdio;
use std::sync::Arc;

use canopy_proto::v1::PlanEvent;
use canopy_store::open_store;
use tokio::sync::Notify;
use tonic::Status;

use crate::scripted::{Events, Script, serve};
use crate::support::{Run, Workspace};

/// Takes every call and never answers it.
struct Silent {
    called: Arc<Notify>,
}

impl Script for Silent {
    fn planned(&self) -> Result<Events<PlanEvent>, Status> {
        self.called.notify_one();
        Ok(Box::pin(tokio_stream::pending()))
    }
}

#[test]
fn a_command_survives_the_end_of_the_server_it_joined() {
    let workspace = Workspace::new();
    let data = workspace.path("data");
    let store = open_store(&data).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let called = Arc::new(Notify::new());
    let child = runtime.block_on(async {
        let server = serve(Silent { called: Arc::clone(&called) }, &data.join("canopy.sock"));
        let mut command = workspace.command("plan ring:4 --collective allgather -o plan.json --json");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        tokio::select! {
            _ = server => panic!("the server ended"),
            () = called.notified() => {}
        }
        child
    });
    // As when a process ends: its connections close, its lock is free, and its socket stays behind.
    drop(runtime);
    drop(store);
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!(run.status, Some(0), "{run:?}");
    assert_eq!(run.object()["cache"], "miss", "the command made the plan itself");
    assert_eq!(workspace.names(), ["plan.json"]);
}
