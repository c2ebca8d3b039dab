//! Accepts connections and speaks HTTP/2 on them, within limits that one caller cannot use up for the others.
//!
//! What is said over a connection is the business of the service it is given.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tower::Service;

/// Most connections of one listener; the next ones wait to be accepted.
const CONNECTIONS_MAX: usize = 8192;
/// Most calls in flight on one connection.
const CALLS_PER_CONNECTION_MAX: u32 = 4096;
/// Most bytes of the headers of a call.
const HEADER_BYTES_MAX: u32 = 16 << 10;
/// Bytes that a caller may send ahead of who reads them, per call.
const WINDOW_BYTES: u32 = 1 << 20;
/// The same per connection. A small frame that nobody has read yet counts as 256 bytes, and those that wait may take half
/// of this before the connection is cut as hostile: room for two from every call.
const CONNECTION_WINDOW_BYTES: u32 = CALLS_PER_CONNECTION_MAX * 2 * 256 * 2;
/// Silence after which the other end is asked whether it is still there, and how long it has to say so.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_ANSWER_MAX: Duration = Duration::from_secs(20);
/// Longest time from a connection to the first byte on it.
const FIRST_BYTE_MAX: Duration = Duration::from_secs(10);
/// Pause after a connection could not be accepted: most likely there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Where connections come from.
pub(crate) trait Port: Send + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next connection.
    fn next(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Waits until the other end has sent something, or has gone.
    fn first_byte(stream: &Self::Stream) -> impl Future<Output = io::Result<()>> + Send;
}

impl Port for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept().await?;
        // Small messages must not wait for the acknowledgement of earlier ones.
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn first_byte(stream: &TcpStream) -> io::Result<()> {
        stream.readable().await
    }
}

impl Port for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }

    async fn first_byte(stream: &UnixStream) -> io::Result<()> {
        stream.readable().await
    }
}

/// Serves every connection of a port until told to stop, and then until the last call has ended. Dropping the future
/// ends all connections.
pub(crate) async fn serve<P, S>(port: P, service: S, mut stopped: watch::Receiver<bool>)
where
    P: Port,
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    let mut connections = JoinSet::new();
    let stop = stopped.clone();
    loop {
        let has_room = connections.len() < CONNECTIONS_MAX;
        tokio::select! {
            () = told(&mut stopped) => break,
            Some(_) = connections.join_next() => {}
            accepted = port.next(), if has_room => match accepted {
                Ok(stream) => {
                    connections.spawn(connection::<P, S>(stream, service.clone(), stop.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    // Whoever knocks from here on is refused by the system.
    drop(port);
    while connections.join_next().await.is_some() {}
}

/// Serves one connection.
async fn connection<P, S>(stream: P::Stream, service: S, mut stopped: watch::Receiver<bool>)
where
    P: Port,
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    let arrived = tokio::select! {
        arrived = time::timeout(FIRST_BYTE_MAX, P::first_byte(&stream)) => arrived,
        () = told(&mut stopped) => return,
    };
    if !matches!(arrived, Ok(Ok(()))) {
        return;
    }
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(CALLS_PER_CONNECTION_MAX)
        .max_header_list_size(HEADER_BYTES_MAX)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE_ANSWER_MAX);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = told(&mut stopped) => {
            // Says that no call after the present ones will be answered.
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Waits for the word to stop.
async fn told(stopped: &mut watch::Receiver<bool>) {
    // A sender that is gone means that nobody will ever say stop: the server itself is gone.
    let _said = stopped.wait_for(|&stop| stop).await;
}
