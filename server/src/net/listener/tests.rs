use std::sync::Mutex;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::mpsc;
use tonic::Status;
use tonic::body::Body;

use super::*;
use crate::metrics::Metrics;
use crate::tasks;

/// Connections of a test's making.
struct Plugs(tokio::sync::Mutex<mpsc::UnboundedReceiver<(DuplexStream, Host)>>);

impl Port for Plugs {
    type Stream = DuplexStream;

    fn adopt(self) -> io::Result<Self> {
        Ok(self)
    }

    async fn next(&self) -> io::Result<(DuplexStream, Host)> {
        let next = self.0.lock().await.recv().await;
        next.ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

/// A listener with so many places, whose service answers nothing but notes its peers.
struct Listening {
    plugs: mpsc::UnboundedSender<(DuplexStream, Host)>,
    _stop: watch::Sender<bool>,
    _task: tasks::Task<()>,
    peers: std::sync::Arc<Mutex<Vec<Peer>>>,
}

impl Listening {
    fn with(places: u64) -> Self {
        let (plugs, receiver) = mpsc::unbounded_channel();
        let (stop, stopped) = watch::channel(false);
        let peers = std::sync::Arc::<Mutex<Vec<Peer>>>::default();
        let noted = std::sync::Arc::clone(&peers);
        let service = tower::service_fn(move |request: Request<Incoming>| {
            noted.lock().unwrap().push(*request.extensions().get::<Peer>().unwrap());
            async { Ok(Status::ok("").into_http()) }
        });
        let port = Plugs(tokio::sync::Mutex::new(receiver));
        let places = Places::new("tcp", places, Metrics::off());
        let task = tasks::spawn("test", serve_calls(port, places, service, stopped));
        Self { plugs, _stop: stop, _task: task, peers }
    }

    fn connect(&self, host: Host) -> DuplexStream {
        let (near, far) = duplex(1 << 16);
        self.plugs.send((far, host)).unwrap();
        near
    }
}

/// How long the other end keeps a connection on which no more is said.
async fn kept_for(mut connection: DuplexStream) -> Duration {
    let started = time::Instant::now();
    let mut said = Vec::new();
    connection.read_to_end(&mut said).await.unwrap();
    started.elapsed()
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn connections_that_do_not_begin_in_time_are_closed() {
    let listening = Listening::with(8);
    for said in [&b""[..], b"P", &PREFACE[..23]] {
        let mut connection = listening.connect(Host::Local);
        connection.write_all(said).await.unwrap();
        let kept = kept_for(connection).await;
        assert!((PREFACE_MAX..2 * PREFACE_MAX).contains(&kept), "{said:?}: {kept:?}");
    }
    for said in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r ", b"\x16\x03\x01"] {
        let mut connection = listening.connect(Host::Local);
        connection.write_all(said).await.unwrap();
        assert_eq!(kept_for(connection).await, Duration::ZERO, "{said:?}");
    }
    // One that begins and then falls silent is asked, and closed when it does not answer.
    let mut connection = listening.connect(Host::Local);
    connection.write_all(PREFACE).await.unwrap();
    connection.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
    let kept = kept_for(connection).await;
    assert!(kept <= KEEPALIVE + KEEPALIVE_ANSWER_MAX + Duration::from_secs(1), "{kept:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_place_is_closed_at_once_and_places_come_back() {
    let listening = Listening::with(8);
    let host = Host::at([10, 0, 0, 1].into());
    let mut open = Vec::new();
    for _ in 0..6 {
        let mut connection = listening.connect(host);
        connection.write_all(PREFACE).await.unwrap();
        // Its answer: the settings of the server.
        connection.read_exact(&mut [0; 9]).await.unwrap();
        open.push(connection);
    }
    assert_eq!(kept_for(listening.connect(host)).await, Duration::ZERO);
    let other = listening.connect(Host::at([10, 0, 0, 2].into()));
    drop(open);
    time::sleep(Duration::from_millis(1)).await;
    drop(other);
    let connection = listening.connect(host);
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(connection)).await;
    let (mut sender, connection) = handshake.unwrap();
    let _connection = tasks::spawn("test-client", async move { drop(connection.await) });
    sender.send_request(Request::new(Body::empty())).await.unwrap();
    assert_eq!(listening.peers.lock().unwrap()[0].host, host);
}

#[tokio::test(start_paused = true)]
async fn the_oldest_silent_connection_of_a_host_makes_room_for_a_new_one() {
    let listening = Listening::with(8);
    let host = Host::at([10, 0, 0, 1].into());
    let wait = |host| tasks::spawn("silent", kept_for(listening.connect(host)));
    let other = wait(Host::at([10, 0, 0, 2].into()));
    let mut begun = listening.connect(host);
    begun.write_all(PREFACE).await.unwrap();
    begun.read_exact(&mut [0; 9]).await.unwrap();
    let silent: Vec<_> = (0..5).map(|_| wait(host)).collect();
    let mut open = Vec::new();
    for (number, connection) in silent.into_iter().enumerate() {
        let hyper_io = TokioIo::new(listening.connect(host));
        let (mut sender, driven) = hyper::client::conn::http2::handshake(TokioExecutor::new(), hyper_io).await.unwrap();
        let driven = tasks::spawn("test-client", async move { drop(driven.await) });
        sender.send_request(Request::new(Body::empty())).await.unwrap();
        open.push((sender, driven));
        assert_eq!(listening.peers.lock().unwrap().len(), number + 1);
        // In the order in which they came, and at once.
        assert_eq!(connection.join().await.unwrap(), Duration::ZERO, "{number}");
    }
    assert!(other.join().await.unwrap() >= PREFACE_MAX, "those of others stay as long as they may");
}
