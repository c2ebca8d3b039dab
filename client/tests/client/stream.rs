//! The client library against servers that break their word.

use std::time::Duration;

use canopy_client::{Client, ClientError, ContentError, ErrorClass, PlanReceiver, ServerAddress};
use canopy_proto::v1::plan_event::Event;
use canopy_proto::v1::{Accepted, Artifact, ContentPiece, Plan, PlanEvent, PlanResponse, PlanSpec, Progress};
use sha2::{Digest, Sha256};
use tokio_stream::StreamExt as _;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::scripted::{Events, Script, serve};

/// What a server says to every call, and whether it then falls silent instead of ending the stream.
#[derive(Clone)]
struct Opening {
    events: Result<Vec<PlanEvent>, Status>,
    silent: bool,
}

impl Script for Opening {
    fn planned(&self) -> Result<Events<PlanEvent>, Status> {
        let events = tokio_stream::iter(self.events.clone()?.into_iter().map(Ok));
        Ok(if self.silent { Box::pin(events.chain(tokio_stream::pending())) } else { Box::pin(events) })
    }
}

/// Keeps everything it is told.
#[derive(Default)]
struct Recorder {
    log: Vec<String>,
    content: Vec<u8>,
}

impl PlanReceiver for Recorder {
    fn accepted(&mut self, accepted: &Accepted) {
        self.log.push(format!("accepted {}", accepted.request_key));
    }

    fn progress(&mut self, progress: &Progress) {
        self.log.push(format!("{} {}/{}", progress.stage, progress.done, progress.total));
    }

    fn plan(&mut self, _: &PlanResponse) -> std::io::Result<()> {
        self.log.push("plan".to_owned());
        Ok(())
    }

    fn content(&mut self, _: usize, data: &[u8]) -> std::io::Result<()> {
        self.content.extend_from_slice(data);
        Ok(())
    }
}

fn hex(data: &[u8]) -> String {
    Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn accepted() -> Event {
    Event::Accepted(Accepted { request_key: "key".to_owned(), ..Accepted::default() })
}

fn plan_of(content: &[u8]) -> Event {
    let artifact = Artifact { size_bytes: content.len() as u64, sha256: hex(content), ..Artifact::default() };
    Event::Final(PlanResponse {
        plan: Some(Plan { artifacts: vec![artifact], ..Plan::default() }),
        ..PlanResponse::default()
    })
}

fn piece(offset: u64, data: &'static [u8]) -> Event {
    Event::Content(ContentPiece { artifact: 0, offset, data: data.into(), sha256: hex(data) })
}

/// Calls a server that follows the script.
async fn call(script: Opening, deadline: Option<Duration>) -> (Result<PlanResponse, ClientError>, Recorder) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let server = serve(script, &socket);
    let mut recorder = Recorder::default();
    let outcome = tokio::select! {
        outcome = async {
            let mut client = Client::connect(&ServerAddress::unix(&socket)).await?;
            client.plan(PlanSpec::default().into_plan(), deadline, &mut recorder).await
        } => outcome,
        _ = server => panic!("the server ended"),
    };
    (outcome, recorder)
}

async fn call_with(events: Vec<Event>) -> (Result<PlanResponse, ClientError>, Recorder) {
    let number = |(sequence, event)| PlanEvent { sequence, event: Some(event) };
    call(Opening { events: Ok((0..).zip(events).map(number).collect()), silent: false }, None).await
}

#[tokio::test]
async fn a_plan_comes_together() {
    let progress = Progress { stage: "trees".to_owned(), done: 1, total: 2, ..Progress::default() };
    let events = vec![accepted(), Event::Progress(progress), plan_of(b"abcdef"), piece(0, b"abcd"), piece(4, b"ef")];
    let (outcome, recorder) = call_with(events).await;
    assert_eq!(outcome.unwrap().plan.unwrap().artifacts[0].size_bytes, 6);
    assert_eq!(recorder.log, ["accepted key", "trees 1/2", "plan"]);
    assert_eq!(recorder.content, b"abcdef");
}

#[tokio::test]
async fn content_that_is_not_what_was_announced_is_a_fault() {
    for events in [
        vec![plan_of(b"abcdef"), piece(0, b"abcd")],
        vec![plan_of(b"abcdef"), piece(0, b"abcd"), piece(0, b"abcd")],
        vec![plan_of(b"abcdef"), piece(0, b"abcdeX")],
        vec![plan_of(b"abcdef"), piece(0, b"abcdefg")],
    ] {
        let (outcome, _) = call_with(events).await;
        let error = outcome.unwrap_err();
        assert!(matches!(error, ClientError::Content(_)), "{error:?}");
        assert_eq!(error.class(), ErrorClass::Fault);
    }
    let lying = ContentPiece { artifact: 0, offset: 0, data: (&b"abc"[..]).into(), sha256: hex(b"xyz") };
    let (outcome, recorder) = call_with(vec![plan_of(b"abc"), Event::Content(lying)]).await;
    assert!(matches!(outcome, Err(ClientError::Content(ContentError::DamagedPiece { file: 0, offset: 0 }))));
    assert!(recorder.content.is_empty(), "damaged bytes are not handed on");
}

#[tokio::test]
async fn a_stream_out_of_order_is_a_fault() {
    for events in [
        vec![accepted()],
        vec![accepted(), piece(0, b"abc")],
        vec![Event::Final(PlanResponse::default())],
        vec![plan_of(b"abc"), piece(0, b"abc"), plan_of(b"abc")],
    ] {
        let (outcome, _) = call_with(events).await;
        let error = outcome.unwrap_err();
        assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
    }
    let gap = PlanEvent { sequence: 1, event: Some(accepted()) };
    let (outcome, _) = call(Opening { events: Ok(vec![gap]), silent: false }, None).await;
    assert!(matches!(outcome, Err(ClientError::Protocol { .. })));
}

#[tokio::test]
async fn the_servers_words_arrive_with_their_class() {
    let details = ErrorDetails::with_bad_request_violation("topology.expression", "ring needs two ranks");
    let status = Status::with_error_details(Code::InvalidArgument, "the topology is wrong", details);
    let (outcome, _) = call(Opening { events: Err(status), silent: false }, None).await;
    let error = outcome.unwrap_err();
    assert_eq!((error.class(), error.to_string()), (ErrorClass::Input, "the topology is wrong".to_owned()));
    let ClientError::Refused(refusal) = error else { panic!("a refusal") };
    assert_eq!(refusal.violations, [("topology.expression".to_owned(), "ring needs two ranks".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_does_not_outlast_the_deadline() {
    let limit = Duration::from_secs(3600);
    let script = Opening { events: Ok(vec![PlanEvent { sequence: 0, event: Some(accepted()) }]), silent: true };
    let (outcome, recorder) = call(script, Some(limit)).await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, ClientError::Deadline { .. }), "{error:?}");
    assert_eq!(error.class(), ErrorClass::Deadline);
    assert_eq!(recorder.log, ["accepted key"]);
}

#[tokio::test]
async fn nobody_there_is_worth_another_try() {
    let folder = tempfile::tempdir().unwrap();
    let error = Client::connect(&ServerAddress::unix(folder.path().join("socket"))).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }));
    assert_eq!(error.class(), ErrorClass::Busy);
}
