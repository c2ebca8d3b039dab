//! Health, reflection, drain, and servers inside other processes.

use std::num::NonZeroUsize;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use canopy_proto::v1::planner_client::PlannerClient;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::server_client::ServerClient;
use canopy_proto::v1::{CacheOutcome, DrainRequest, GetQueueRequest, PinPlanRequest};
use canopy_server::{EmbeddedServer, Options};
use canopy_service::SocketPath;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::support::{Gate, GatedPlanner, TestServer, request, spawn};

#[tokio::test]
async fn health_and_reflection_answer() {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::health_client::HealthClient;
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

    let server = TestServer::start().await;
    for service in ["", "canopy.v1.Planner", "canopy.v1.Operations", "canopy.v1.Plans", "canopy.v1.Server"] {
        let asked = HealthCheckRequest { service: service.to_owned() };
        let answer = HealthClient::new(server.channel.clone()).check(asked).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "`{service}`");
    }
    let asked = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut answers = ServerReflectionClient::new(server.channel.clone())
        .server_reflection_info(tokio_stream::once(asked))
        .await
        .unwrap()
        .into_inner();
    let Some(MessageResponse::ListServicesResponse(list)) = answers.message().await.unwrap().unwrap().message_response
    else {
        panic!("services are listed")
    };
    let names: Vec<&str> = list.service.iter().map(|service| service.name.as_str()).collect();
    let canopy = ["Planner", "Operations", "Plans", "Server"].map(|name| format!("canopy.v1.{name}"));
    assert!(canopy.iter().all(|name| names.contains(&name.as_str())), "{names:?}");
    assert!(names.contains(&"grpc.health.v1.Health"), "{names:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_server_without_reflection_describes_nothing() {
    use tonic_reflection::pb::{v1, v1alpha};

    let (planner, _gate) = GatedPlanner::new();
    let server = TestServer::start_with(|options| options.has_reflection = false, planner).await;
    let asked = tokio_stream::once(v1::ServerReflectionRequest::default());
    let mut client = v1::server_reflection_client::ServerReflectionClient::new(server.channel.clone());
    assert_eq!(client.server_reflection_info(asked).await.unwrap_err().code(), Code::Unimplemented);
    let asked = tokio_stream::once(v1alpha::ServerReflectionRequest::default());
    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(server.channel.clone());
    assert_eq!(client.server_reflection_info(asked).await.unwrap_err().code(), Code::Unimplemented);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_server_finishes_what_it_has() {
    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_with(|_| {}, planner).await;
    let mut client = server.client();
    let call = spawn(async move { client.plan(request("ring:6").into_plan()).await });
    gate.wait_for(1, 0);
    let (stopped, opened) = tokio::join!(server.stop(), async {
        tokio::task::yield_now().await;
        gate.open();
    });
    drop((stopped, opened));
    assert!(call.await.unwrap().is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_may_not_wait_refuses_what_it_has_as_unavailable() {
    let (planner, gate) = GatedPlanner::new();
    let server = TestServer::start_with(|options| options.drain_timeout = Duration::ZERO, planner).await;
    let mut client = server.client();
    let call = spawn(async move { client.plan(request("ring:6").into_plan()).await });
    gate.wait_for(1, 0);
    server.stop().await;
    assert_eq!(call.await.unwrap().unwrap_err().code(), Code::Unavailable);
}

/// Starts a server that holds a hundred different requests: two run, the others wait.
async fn holding_a_hundred(drain_timeout: Duration) -> (TestServer, Arc<Gate>, Vec<JoinHandle<Result<(), Status>>>) {
    let (planner, gate) = GatedPlanner::new();
    let change = |options: &mut Options| {
        options.drain_timeout = drain_timeout;
        options.queue_length_max = NonZeroUsize::new(128).unwrap();
    };
    let server = TestServer::start_with(change, planner).await;
    let calls = (0..100).map(|number| {
        let mut client = server.client();
        spawn(async move { client.plan(request(&format!("ring:{}", 3 + number)).into_plan()).await.map(|_| ()) })
    });
    let calls = calls.collect();
    gate.wait_for(2, 0);
    let mut admin = ServerClient::new(server.channel.clone());
    let unfinished = async |admin: &mut ServerClient<Channel>| {
        let queue = admin.get_queue(GetQueueRequest {}).await.unwrap().into_inner();
        queue.priorities.iter().map(|line| line.waiting + line.running).sum::<u64>()
    };
    while unfinished(&mut admin).await < 100 {
        tokio::task::yield_now().await;
    }
    (server, gate, calls)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_loses_none_of_a_hundred_requests() {
    let (server, gate, calls) = holding_a_hundred(Duration::from_secs(60)).await;
    server.drain.start();
    let refused = server.client().plan(request("ring:4").into_plan()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    let mut plans = PlansClient::new(server.channel.clone());
    let refused = plans.pin_plan(PinPlanRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "managing plans begins something, too");
    gate.open();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_that_may_not_wait_tells_each_of_a_hundred_and_ends_in_time() {
    let (server, _gate, calls) = holding_a_hundred(Duration::from_millis(200)).await;
    let (patient, _other_gate, _others) = holding_a_hundred(Duration::from_secs(4)).await;
    // Told first, and the last to end.
    patient.drain.start();
    let patient = spawn(patient.stop());
    server.stop().await;
    assert!(!patient.is_finished(), "a drain of 200 ms takes as long as one of 4 s");
    patient.await.unwrap();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().code(), Code::Unavailable);
    }
}

/// The only thread that handles calls is stuck; whoever asks for the health of the process is answered all the same.
#[test]
fn health_answers_while_every_thread_that_handles_calls_is_busy() {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::health_client::HealthClient;

    let calls = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = calls.block_on(async { spawn(TestServer::start()).await.unwrap() });
    let (let_go, held) = mpsc::channel::<()>();
    let (began, has_begun) = mpsc::channel();
    let busy = calls.spawn(async move {
        began.send(()).unwrap();
        let _let_go = held.recv();
    });
    has_begun.recv().unwrap();
    let callers = Builder::new_current_thread().enable_all().build().unwrap();
    let path = SocketPath::of(server.directory.path()).unwrap();
    let asked = async {
        let endpoint = Endpoint::from_shared(format!("unix:{}", path.path().display())).unwrap();
        let mut health = HealthClient::new(endpoint.connect().await.unwrap());
        let answer = health.check(HealthCheckRequest::default()).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving);
        for path in ["/healthz", "/readyz"] {
            let mut connection = TcpStream::connect(server.admin).await.unwrap();
            connection.write_all(format!("GET {path} HTTP/1.1\r\nhost: canopy\r\n\r\n").as_bytes()).await.unwrap();
            let mut page = String::new();
            connection.read_to_string(&mut page).await.unwrap();
            assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        }
    };
    callers.block_on(async { timeout(Duration::from_secs(60), asked).await }).expect("health is answered");
    drop(let_go);
    calls.block_on(async {
        busy.await.unwrap();
        server.stop().await;
    });
}

#[tokio::test]
async fn only_the_unix_socket_drains_a_server_unless_it_says_otherwise() {
    let pipeline = || Arc::new(canopy_server::Pipeline::new(canopy_topology::TopologyLimits::STANDARD));
    let server = TestServer::start_with(|options| options.loopback_drain = false, pipeline()).await;
    let asked = DrainRequest::default;
    let refused = ServerClient::new(server.channel.clone()).drain(asked()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("unix:") && refused.message().contains("allow_loopback_drain"), "{refused:?}");
    assert!(!server.drain.is_draining());
    let path = SocketPath::of(server.directory.path()).unwrap();
    let endpoint = Endpoint::from_shared(format!("unix:{}", path.path().display())).unwrap();
    ServerClient::new(endpoint.connect().await.unwrap()).drain(asked()).await.unwrap();
    assert!(server.drain.is_draining());
    server.stop().await;
    let server = TestServer::start().await;
    ServerClient::new(server.channel.clone()).drain(asked()).await.unwrap();
    assert!(server.drain.is_draining());
    server.stop().await;
}

#[tokio::test]
async fn an_embedded_server_is_reached_by_others_through_its_socket() {
    let directory = tempfile::tempdir().unwrap();
    let options = || Options::embedded(directory.path().to_owned());
    let server = EmbeddedServer::start(options()).await.unwrap();
    assert!(EmbeddedServer::start(options()).await.unwrap_err().is_in_use());
    let path = SocketPath::of(directory.path()).unwrap();
    let channel: Channel =
        Endpoint::from_shared(format!("unix:{}", path.path().display())).unwrap().connect().await.unwrap();
    let mut client = PlannerClient::new(channel);
    assert_eq!(client.plan(request("ring:4").into_plan()).await.unwrap().into_inner().cache(), CacheOutcome::Miss);
    assert_eq!(server.statistics().synthesis_count(), 1);
    server.stop().await.unwrap();
    let server = EmbeddedServer::start(options()).await.expect("the directory is free again");
    server.stop().await.unwrap();
}
