//! Files that come in parts, from servers that break off, change their mind or lie.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use canopy_client::{
    Client, ClientError, ContentError, FileName, Jitter, PartialFile, Retries, RetryPolicy, ServerAddress,
};
use canopy_proto::v1::fetch_plan_file_event::Event;
use canopy_proto::v1::{Artifact, ContentPiece, FetchPlanFileEvent, FetchPlanFileRequest, OutputFormat};
use sha2::{Digest, Sha256};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::scripted::{Events, Script, serve};

const CONTENT: &[u8] = b"the first part, the second part";

/// What happens to one call.
#[derive(Clone)]
enum Turn {
    /// The file from the offset asked for, in pieces of so many bytes, and then this status, if any, after so many.
    Send { content: &'static [u8], piece_bytes: usize, breaks_after: Option<(usize, Status)> },
    /// A refusal at once.
    Refuse(Status),
    /// So many pieces of five bytes, and then the end as if that were all.
    End { pieces: usize },
    /// No answer.
    Hang,
}

/// Takes one turn per call and notes the offsets asked for.
#[derive(Clone, Default)]
struct Turns {
    turns: Arc<Mutex<VecDeque<Turn>>>,
    offsets: Arc<Mutex<Vec<u64>>>,
}

impl Script for Turns {
    fn fetched(&self, request: FetchPlanFileRequest) -> Result<Events<FetchPlanFileEvent>, Status> {
        let offset = request.offset;
        self.offsets.lock().unwrap().push(offset);
        let turn = self.turns.lock().unwrap().pop_front();
        let events = match turn.ok_or_else(|| Status::internal("asked more often than foreseen"))? {
            Turn::Send { content, piece_bytes, breaks_after } => {
                events(content, usize::try_from(offset).unwrap(), piece_bytes, breaks_after)
            }
            Turn::End { pieces } => events(CONTENT, 0, 5, None).into_iter().take(1 + pieces).collect(),
            Turn::Refuse(status) => return Err(status),
            Turn::Hang => return Ok(Box::pin(tokio_stream::pending())),
        };
        Ok(Box::pin(tokio_stream::iter(events)))
    }
}

fn hex(data: &[u8]) -> String {
    Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn events(
    content: &'static [u8],
    offset: usize,
    piece_bytes: usize,
    breaks_after: Option<(usize, Status)>,
) -> Vec<Result<FetchPlanFileEvent, Status>> {
    let artifact = Artifact { size_bytes: content.len() as u64, sha256: hex(content), ..Artifact::default() };
    let mut events = vec![Event::Artifact(artifact)];
    let mut at = offset;
    while at < content.len() {
        let data = &content[at..content.len().min(at + piece_bytes)];
        // Numbered within its plan.
        events.push(Event::Content(ContentPiece {
            artifact: 3,
            offset: at as u64,
            data: data.into(),
            sha256: hex(data),
        }));
        at += piece_bytes;
    }
    let mut events: Vec<_> =
        events.into_iter().map(|event| Ok(FetchPlanFileEvent { event: Some(event), ..Default::default() })).collect();
    if let Some((count, status)) = breaks_after {
        events.truncate(1 + count);
        events.push(Err(status));
    }
    events
}

/// What one download brought: its outcome, the bytes written, and the offsets asked for.
struct Brought {
    outcome: Result<Artifact, ClientError>,
    content: Vec<u8>,
    offsets: Vec<u64>,
}

async fn download(turns: Vec<Turn>, deadline: Option<Duration>) -> Brought {
    bring(turns, deadline, None).await
}

/// Downloads a file, or the rest of one of which a part is there.
async fn bring(turns: Vec<Turn>, deadline: Option<Duration>, there: Option<PartialFile>) -> Brought {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let script = Turns { turns: Arc::new(Mutex::new(turns.into())), ..Turns::default() };
    let server = serve(script.clone(), &socket);
    let policy = RetryPolicy { tries_max: 3, pause_min: Duration::from_millis(1), pause_max: Duration::from_millis(1) };
    let file = FileName { plan: "plans/x".to_owned(), format: OutputFormat::Json, ..FileName::default() };
    let (mut content, mut retries) = (Vec::new(), Retries::new(policy, Jitter::seeded(1)));
    let outcome = tokio::select! {
        outcome = async {
            let client = Client::connect(&ServerAddress::unix(&socket)).await?;
            let mut write = |data: &[u8]| {
                content.extend_from_slice(data);
                Ok(())
            };
            match there {
                None => client.download(&file, deadline, &mut retries, &mut write).await,
                Some(there) => client.resume_download(&file, there, deadline, &mut retries, &mut write).await,
            }
        } => outcome,
        _ = server => panic!("the server ended"),
    };
    let offsets = script.offsets.lock().unwrap().clone();
    Brought { outcome, content, offsets }
}

fn unavailable() -> Status {
    Status::unavailable("about to end")
}

fn send(piece_bytes: usize, breaks_after: Option<usize>) -> Turn {
    Turn::Send { content: CONTENT, piece_bytes, breaks_after: breaks_after.map(|count| (count, unavailable())) }
}

#[tokio::test]
async fn a_broken_transfer_goes_on_where_it_ended() {
    // More breaks than tries: each piece that came starts the count anew.
    let turns = vec![
        send(5, Some(2)),
        Turn::Refuse(unavailable()),
        send(4, Some(1)),
        send(4, Some(0)),
        send(4, Some(1)),
        send(100, None),
    ];
    let brought = download(turns, None).await;
    assert_eq!(brought.outcome.unwrap().sha256, hex(CONTENT));
    assert_eq!(brought.content, CONTENT, "each byte once");
    assert_eq!(brought.offsets, [0, 10, 10, 14, 14, 18]);
}

/// What another call brought of the file.
fn there(data: &[u8]) -> Option<PartialFile> {
    let artifact = Artifact { size_bytes: CONTENT.len() as u64, sha256: hex(CONTENT), ..Artifact::default() };
    let mut there = PartialFile::new(artifact);
    there.add(data);
    Some(there)
}

#[tokio::test]
async fn what_another_call_brought_is_not_sent_again() {
    let brought = bring(vec![send(5, Some(1)), send(100, None)], None, there(&CONTENT[..7])).await;
    assert_eq!(brought.outcome.unwrap().sha256, hex(CONTENT));
    assert_eq!((brought.content.as_slice(), brought.offsets.as_slice()), (&CONTENT[7..], &[7, 12][..]));
    let brought = bring(vec![send(5, None)], None, there(CONTENT)).await;
    assert!(brought.outcome.is_ok() && brought.content.is_empty());
    let brought = bring(vec![send(100, None)], None, there(b"another")).await;
    assert!(matches!(brought.outcome, Err(ClientError::Content(ContentError::DamagedFile { .. }))));
}

#[tokio::test]
async fn a_server_that_never_gets_further_is_given_up() {
    let brought = download(vec![send(5, Some(1)), send(5, Some(0)), send(5, Some(0)), send(5, Some(0))], None).await;
    assert!(matches!(&brought.outcome, Err(ClientError::Refused(refusal)) if refusal.may_be_retried));
    assert_eq!(brought.offsets, [0, 5, 5], "three tries without a byte");
}

#[tokio::test]
async fn what_is_refused_for_good_is_asked_once() {
    let gone = Status::with_error_details(Code::NotFound, "no such plan", ErrorDetails::new());
    let brought = download(vec![Turn::Refuse(gone)], None).await;
    assert!(matches!(brought.outcome, Err(ClientError::Refused(_))));
    assert_eq!(brought.offsets, [0]);
}

#[tokio::test]
async fn a_file_that_changes_on_the_way_is_refused() {
    let other = Turn::Send { content: b"another file of another length", piece_bytes: 5, breaks_after: None };
    let brought = download(vec![send(5, Some(1)), other], None).await;
    assert!(matches!(brought.outcome, Err(ClientError::Protocol { .. })), "{:?}", brought.outcome);
    assert_eq!(brought.content, CONTENT[..5]);
}

#[tokio::test]
async fn a_file_that_ends_early_is_no_file() {
    let brought = download(vec![Turn::End { pieces: 2 }], None).await;
    let expected = ContentError::Incomplete { file: 0, found: 10, size_bytes: CONTENT.len() as u64 };
    assert!(
        matches!(&brought.outcome, Err(ClientError::Content(found)) if *found == expected),
        "{:?}",
        brought.outcome
    );
    assert_eq!(brought.offsets, [0], "a server that says that this is all is not asked again");
}

#[tokio::test(start_paused = true)]
async fn silence_ends_with_the_deadline() {
    let limit = Duration::from_secs(3600);
    let brought = download(vec![Turn::Hang], Some(limit)).await;
    assert!(matches!(brought.outcome, Err(ClientError::Deadline { .. })), "{:?}", brought.outcome);
}
