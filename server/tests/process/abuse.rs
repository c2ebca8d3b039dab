//! Callers that misbehave: they are refused or given up, and the others are served as if they were not there.
#![expect(clippy::disallowed_methods, reason = "the tests measure")]

use std::time::{Duration, Instant};

use canopy_proto::v1::plan_event::Event;
use canopy_proto::v1::planner_client::PlannerClient;
use canopy_proto::v1::{Collective, CollectiveSpec, OutputFormat, OutputSpec, PlanSpec};
use hyper::body::Incoming;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response, Uri};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tower::{Service as _, ServiceExt as _};

use crate::bare::{Bare, answered};
use crate::processor::{bytes_held, waited_here, waited_to_answer};
use crate::support::{Process, request, spawn, stated};

/// Of a build that is not optimised: milliseconds, as the README says of one that is.
const SLOW: Duration = Duration::from_millis(10);
/// As the README says, beside what a search takes, without the code: of a build that is not optimised it is several times
/// as large, and some 40 MB.
const MEMORY_BYTES_MAX: f64 = 60e6;

/// A connection without any limits of the caller's side.
async fn plain(process: &Process) -> Bare {
    Bare::connect(process.address("tcp")).await
}

/// A call of Plan with this body.
fn call(process: &Process, body: Body) -> Request<Body> {
    let uri: Uri = format!("http://{}/canopy.v1.Planner/Plan", process.address("tcp")).parse().unwrap();
    let request = Request::post(uri).header("content-type", "application/grpc").header("te", "trailers");
    request.body(body).unwrap()
}

fn code(response: &Response<Incoming>) -> Option<Code> {
    Status::from_header_map(response.headers()).map(|status| status.code())
}

/// A body whose pieces are sent by hand.
fn by_hand() -> (mpsc::Sender<Vec<u8>>, Body) {
    let (sender, pieces) = mpsc::channel::<Vec<u8>>(1);
    (sender, Body::new(Pieces(ReceiverStream::new(pieces))))
}

struct Pieces(ReceiverStream<Vec<u8>>);

impl http_body::Body for Pieces {
    type Data = tonic::codegen::Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Self::Data>, Status>>> {
        let next = tokio_stream::Stream::poll_next(std::pin::Pin::new(&mut self.0), context);
        next.map(|piece| piece.map(|piece| Ok(http_body::Frame::data(piece.into()))))
    }
}

/// The 99th percentile of lookups of a cached plan, one after another, and of looks at the health.
///
/// Without the time for which the server and the caller were ready and other processes had the processors.
async fn p99(process: &Process) -> Duration {
    let (address, id) = (process.address("tcp"), process.id());
    // A thread that does nothing else, so that all of its waiting is for these calls.
    let measured = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let endpoint = Channel::from_shared(format!("http://{address}")).unwrap();
            let channel = endpoint.connect().await.unwrap();
            let (mut client, mut health) = (PlannerClient::new(channel.clone()), HealthClient::new(channel));
            let mut times = Vec::new();
            for number in 0..300 {
                let waited = || waited_here() + waited_to_answer(id);
                let (waited_before, started) = (waited(), Instant::now());
                if number % 10 == 0 {
                    let answer = health.check(HealthCheckRequest::default()).await.unwrap().into_inner();
                    assert_eq!(answer.status(), ServingStatus::Serving);
                } else {
                    client.look_up_plan(request("ring:8").into_look_up()).await.unwrap();
                }
                let elapsed = started.elapsed();
                times.push(elapsed.saturating_sub(waited().saturating_sub(waited_before)));
            }
            times.sort_unstable();
            times[times.len() * 99 / 100]
        })
    });
    measured.await.unwrap()
}

/// The best of three measurements: what a neighbour of this process takes from it is seldom taken three times, and what a
/// defect takes always is.
async fn settled_p99(process: &Process) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        best = best.min(p99(process).await);
        if best < SLOW {
            break;
        }
    }
    best
}

async fn check_unharmed(process: &Process, by: &str) {
    check(by, settled_p99(process).await, bytes_held(process.id()).0);
}

fn check(by: &str, slowest: Duration, memory: f64) {
    eprintln!("{by}: p99 {slowest:?}, {:.0} MB", memory / 1e6);
    assert!(slowest < SLOW, "{by}: {slowest:?}");
    assert!(memory < MEMORY_BYTES_MAX, "{by}: {memory} bytes");
}

async fn serving() -> Process {
    let process = Process::start(|command, _| {
        command.args(["--workers", "1", "--queue-length", "4", "--drain-timeout", "0s"]);
    });
    process.client().await.plan(request("ring:8").into_plan()).await.unwrap();
    process
}

async fn end(process: Process) {
    process.signal("TERM");
    let ended = tokio::task::spawn_blocking(|| process.end().0).await.unwrap();
    assert_eq!(ended, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_lookups_answer_while_the_queue_sheds_load() {
    // The same search in a process that nobody else asks: what it takes is not for the callers.
    let alone = serving().await;
    let idle = bytes_held(alone.id()).0;
    let mut client = alone.client().await;
    let only = spawn(async move { client.plan(request("torus:24x24,lat=0ns").into_plan()).await });
    alone.wait_until_synthesis_runs().await;
    let process = serving().await;
    let mut running = Vec::new();
    for number in 0..32 {
        let mut client = process.client().await;
        running
            .push(spawn(async move { client.plan(request(&format!("torus:24x24,lat={number}ns")).into_plan()).await }));
    }
    process.wait_until_synthesis_runs().await;
    let (slowest, memory) = (settled_p99(&process).await, bytes_held(process.id()).0);
    end(process).await;
    // It has ended when it is done, or when its deadline has come.
    drop(only.await);
    check("a full queue", slowest, memory - (bytes_held(alone.id()).1 - idle));
    end(alone).await;
    let (mut planned, mut shed) = (0, 0);
    for call in running {
        let Err(status) = call.await.unwrap() else {
            planned += 1;
            continue;
        };
        assert!(matches!(status.code(), Code::ResourceExhausted | Code::Unavailable), "{status:?}");
        shed += usize::from(status.code() == Code::ResourceExhausted);
    }
    assert!(shed + planned >= 32 - 5, "one runs and four wait: {shed} were refused, {planned} planned");
    assert!(planned <= 2, "what is planned leaves room for others: {planned}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_garbage_and_one_that_is_too_long_are_refused() {
    let process = serving().await;
    let mut garbage = vec![0xA5; (64 << 20) + 5];
    garbage[..5].copy_from_slice(&[0, 4, 0, 0, 0]);
    let answer = plain(&process).await.call(call(&process, whole(garbage))).await.unwrap();
    assert_eq!(code(&answer), Some(Code::InvalidArgument), "{:?}", answer.headers());
    let answer = plain(&process).await.call(call(&process, whole(vec![0, 0xFF, 0xFF, 0xFF, 0xFF]))).await;
    assert_eq!(code(&answer.unwrap()), Some(Code::ResourceExhausted));
    check_unharmed(&process, "garbage").await;
    // Bytes that are no HTTP/2 at all end their connection and nothing else.
    let mut stream = TcpStream::connect(process.address("tcp")).await.unwrap();
    stream.write_all(&[0xA5; 4096]).await.unwrap();
    check_unharmed(&process, "bytes without sense").await;
    end(process).await;
}

fn whole(bytes: Vec<u8>) -> Body {
    let (sender, body) = by_hand();
    drop(spawn(async move { drop(sender.send(bytes).await) }));
    body
}

/// The status of a call with these bytes as its body.
async fn status_of(process: &Process, bytes: Vec<u8>) -> Status {
    let answer = plain(process).await.call(call(process, whole(bytes))).await.unwrap();
    Status::from_header_map(answer.headers()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_is_the_callers_mistake_counted_as_such_and_logged() {
    use tonic_types::StatusExt as _;

    let process = serving().await;
    // A field of an unknown wire type, a message cut short, a flag that is none, compression that was not announced.
    let examples: [&[u8]; 4] = [&[0, 0, 0, 0, 1, 0x0f], &[0, 0, 0, 0, 9, 1], &[7, 0, 0, 0, 1, 0], &[1, 0, 0, 0, 1, 0]];
    for bytes in examples {
        let status = status_of(&process, bytes.to_vec()).await;
        let reason = status.get_error_details().error_info().unwrap().reason.clone();
        assert_eq!((status.code(), &*reason), (Code::InvalidArgument, "REQUEST_MALFORMED"), "{bytes:?}: {status:?}");
        assert!(status.message().starts_with("the request cannot be decoded: "), "{status:?}");
    }
    let page = process.page("/metrics").await;
    let counted = r#"canopy_rpc_requests_total{service="canopy.v1.Planner",method="Plan",code="INVALID_ARGUMENT"} 4"#;
    assert!(page.contains(counted) && !page.contains(r#"code="INTERNAL""#), "{page}");
    process.signal("TERM");
    let (_, lines) = tokio::task::spawn_blocking(|| process.end()).await.unwrap();
    let of_calls: Vec<_> =
        lines.iter().filter(|line| line["method"] == "Plan" && line["code"] == "InvalidArgument").collect();
    assert_eq!(of_calls.len(), 4, "{lines:?}");
    assert!(of_calls.iter().all(|line| line["message"].as_str().unwrap().contains("cannot be decoded")));
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_streams_that_say_nothing_and_as_many_silent_connections_harm_nobody() {
    let process = serving().await;
    let mut sender = plain(&process).await;
    let (mut held, mut answers) = (Vec::new(), Vec::new());
    for _ in 0..500 {
        let (hand, body) = by_hand();
        sender.ready().await.unwrap();
        answers.push(spawn(sender.call(call(&process, body))));
        // Part of a message that is announced to be long.
        hand.send(vec![0, 4, 0, 0, 0, 1, 2, 3]).await.unwrap();
        held.push(hand);
    }
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(process.address("tcp")).await.unwrap());
    }
    check_unharmed(&process, "idle streams").await;
    drop((held, answers, silent));
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_take_nothing_hold_back_nobody_else() {
    let process = serving().await;
    let spec = |format: OutputFormat| OutputSpec {
        format: format.into(),
        profile: None,
        instancing: None,
        plain_channels: false,
        max_layers: None,
    };
    let large = || PlanSpec {
        outputs: vec![spec(OutputFormat::Json), spec(OutputFormat::MscclXml)],
        ..request("dgx-a100:boxes=4")
    };
    let mut readers = Vec::new();
    for _ in 0..50 {
        let mut client = process.client().await;
        // Taken, and never read from.
        readers.push((client.stream_plan(large().into_plan()).await.unwrap(), client));
    }
    check_unharmed(&process, "slow readers").await;
    drop(readers);
    end(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_holds_up_nobody() {
    let process = Process::start(|command, _| {
        command.args(["--log", "debug", "--drain-timeout", "0s"]);
    });
    let mut client = process.client().await;
    // A pipe holds 64 KiB; each of these writes more than 1 KiB of lines.
    for number in 0..300 {
        let mut asked = tonic::Request::new(request(&format!("ring:{}", 3 + number % 4)));
        asked.set_timeout(Duration::from_secs(60));
        client.plan(asked.map(PlanSpec::into_plan)).await.unwrap();
    }
    process.signal("TERM");
    let (status, lines) = tokio::task::spawn_blocking(|| process.end()).await.unwrap();
    assert_eq!(status, Some(0));
    assert!(lines.iter().map(|line| line.to_string().len()).sum::<usize>() > 128 << 10, "{} lines", lines.len());
}

/// Deadlines too short for any answer have the code of deadlines all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_of_a_millisecond_ends_as_a_deadline() {
    let process = serving().await;
    let mut client = Bare::planner(process.address("tcp")).await;
    for timeout in ["1n", "100u", "1m", "3m"] {
        let mut asked = tonic::Request::new(request("torus:24x24"));
        asked.metadata_mut().insert("grpc-timeout", timeout.parse().unwrap());
        let status = answered(client.plan(asked.map(PlanSpec::into_plan))).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{timeout}: {status:?}");
    }
    end(process).await;
}

/// Reads a connection to its end, which the server makes.
async fn closed_by_the_server(mut connection: TcpStream) -> bool {
    tokio::io::AsyncReadExt::read_to_end(&mut connection, &mut Vec::new()).await.is_ok()
}

/// A server that may have so many open files.
fn serving_within(descriptors: u32) -> Process {
    Process::start(|command, _| {
        let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let program = command.get_program().to_owned();
        let mut limited = crate::support::canopyd_as("sh");
        let script = format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"");
        limited.args(["-c", &script]).arg(program).args(arguments);
        *command = limited;
    })
}

/// From one host with the others, thousands of connections that say nothing or one byte: new callers get in all along.
#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_silent_connections_keep_nobody_out() {
    let process = serving_within(1024);
    process.client().await.plan(request("ring:8").into_plan()).await.unwrap();
    for (what, port, said, count) in [
        ("silent", "tcp", &b""[..], 1010),
        ("silent on the operators' port", "admin", b"", 1010),
        ("of one byte", "tcp", b"P", 8000),
    ] {
        let mut open = std::collections::VecDeque::new();
        let (mut pages, mut calls) = (Vec::new(), Vec::new());
        for number in 0..count {
            let mut connection = TcpStream::connect(process.address(port)).await.unwrap();
            // One that is closed already may refuse it.
            let _taken = connection.write_all(said).await;
            open.push_back(connection);
            // This process has few files, too; by then the server has closed them long ago.
            if open.len() > 1100 {
                open.pop_front();
            }
            if number % 100 == 99 {
                let (waited, started) = (|| waited_here() + waited_to_answer(process.id()), Instant::now());
                let before = waited();
                assert!(process.page("/healthz").await.starts_with("HTTP/1.0 200"));
                pages.push(started.elapsed().saturating_sub(waited().saturating_sub(before)));
                let (started, before) = (Instant::now(), waited());
                process.client().await.look_up_plan(request("ring:8").into_look_up()).await.unwrap();
                calls.push(started.elapsed().saturating_sub(waited().saturating_sub(before)));
            }
        }
        let (slowest_page, slowest_call) = (pages.iter().max().unwrap(), calls.iter().max().unwrap());
        eprintln!("{count} connections {what}: /healthz {slowest_page:?}, a new caller's lookup {slowest_call:?}");
        assert!(*slowest_page < Duration::from_millis(100) && *slowest_call < Duration::from_millis(50), "{what}");
    }
    process.signal("TERM");
    let (status, lines) = tokio::task::spawn_blocking(|| process.end()).await.unwrap();
    assert_eq!(status, Some(0));
    assert!(lines.iter().filter(|line| line["level"] == "WARN").count() <= 8, "{lines:?}");
}

/// Few files may be open, and three kinds of silent connections want more than there are: those that fit are closed in
/// time, the others at once, and calls and pages are answered all along.
#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_are_closed_and_leave_room_for_others() {
    let process = serving_within(128);
    let mut silent = Vec::new();
    for port in ["tcp", "admin"] {
        for begun in [&b""[..], b"P"] {
            for _ in 0..60 {
                let mut connection = TcpStream::connect(process.address(port)).await.unwrap();
                // One that is closed already may refuse it.
                let _taken = connection.write_all(begun).await;
                silent.push(spawn(closed_by_the_server(connection)));
            }
        }
    }
    for connection in silent {
        tokio::time::timeout(Duration::from_secs(60), connection).await.expect("it is closed in time").unwrap();
    }
    assert!(process.page("/healthz").await.starts_with("HTTP/1.0 200"));
    process.client().await.plan(request("ring:4").into_plan()).await.unwrap();
    let page = process.page("/metrics").await;
    let refused = |port: &str| {
        let name = format!("canopy_connections_refused_total{{port=\"{port}\",reason=\"silent\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok())
    };
    assert!(refused("tcp") > Some(0) && refused("admin") > Some(0), "{page}");
    process.signal("TERM");
    let (status, lines) = tokio::task::spawn_blocking(|| process.end()).await.unwrap();
    assert_eq!(status, Some(0));
    let complaints = lines.iter().filter(|line| line["level"] == "WARN").count();
    assert!(complaints <= 8, "{lines:?}");
}

/// One caller sends almost all of a large message and then a byte now and then; others send theirs all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_does_not_end_holds_no_room_of_others() {
    let process = Process::start(|command, _| {
        command.args(["--queue-bytes", "67108864", "--max-request-bytes", "33554432", "--drain-timeout", "0s"]);
    });
    let (hand, body) = by_hand();
    let mut held = plain(&process).await;
    held.ready().await.unwrap();
    let answer = spawn(held.call(call(&process, body)));
    // 32 MiB are announced, which may take 10 s and 64 s more at the slowest rate; a small one gets 10 s.
    hand.send(vec![0, 0, 0, 4, 0, 1]).await.unwrap();
    let status = answer.await.unwrap().unwrap();
    assert_eq!(code(&status), Some(Code::DeadlineExceeded));
    end(process).await;
}

/// Memory of the process in bytes: now, and at most so far.
fn memory(process: &Process) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let figure = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    };
    (figure("VmRSS:"), figure("VmHWM:"))
}

/// A plan with a long proof, asked for by many at once: each of them costs less than the answer, though none has read it,
/// and half a minute later the process has within a tenth of what it had before.
/// `CANOPY_CALLERS` and `CANOPY_RANKS` say how many ask for a plan of how many ranks.
#[tokio::test(flavor = "multi_thread")]
async fn a_cached_plan_is_in_memory_once_however_many_ask_for_it() {
    let callers = stated("CANOPY_CALLERS").unwrap_or(200);
    let ranks = stated("CANOPY_RANKS").unwrap_or(80);
    let process = Process::start(|command, _| {
        command.args(["--drain-timeout", "0s"]);
    });
    let asked = || PlanSpec {
        collective: Some(CollectiveSpec { kind: Collective::AllToAll.into(), root: None }),
        ..request(&format!("complete:{ranks}"))
    };
    // So that callers who do not read hold back themselves alone.
    let endpoint = Channel::from_shared(format!("http://{}", process.address("tcp"))).unwrap();
    let endpoint = endpoint.initial_connection_window_size(1 << 30);
    let connect = async || PlannerClient::new(endpoint.connect().await.unwrap());
    let mut client = connect().await;
    let stream =
        async |client: &mut PlannerClient<Channel>| client.stream_plan(asked().into_plan()).await.unwrap().into_inner();
    let mut answer_bytes = 0;
    // The second one finds it in the cache, and has it encoded.
    for _ in 0..2 {
        let mut events = stream(&mut client).await;
        while let Some(event) = events.message().await.unwrap() {
            if matches!(event.event, Some(Event::Final(_))) {
                answer_bytes = prost::Message::encoded_len(&event) as u64;
            }
        }
    }
    assert!(answer_bytes > 100_000, "{answer_bytes}");
    let (before, _) = memory(&process);
    let mut held = Vec::new();
    for number in 0..callers {
        if number % 100 == 99 {
            client = connect().await;
        }
        let mut events = stream(&mut client).await;
        // The call has begun; its plan waits for a reader.
        events.message().await.unwrap().unwrap();
        held.push(events);
    }
    for events in &mut held {
        while events.message().await.unwrap().is_some() {}
    }
    let (_, most) = memory(&process);
    let each = most.saturating_sub(before) / callers;
    assert!(each < answer_bytes, "{each} bytes for each of {callers} answers of {answer_bytes}");
    eprintln!("{each} bytes for each answer of {answer_bytes}; {before} bytes before, {most} at most");
    drop((held, client));
    let (ended, enough) = (Instant::now(), before + before / 10);
    while memory(&process).0 > enough {
        assert!(ended.elapsed() < Duration::from_secs(30), "{} bytes half a minute later", memory(&process).0);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    eprintln!("{} bytes {:?} later", memory(&process).0, ended.elapsed());
    end(process).await;
}
