//! Accepts connections and speaks HTTP/2 on them, within limits that one caller cannot use up for the others.
//!
//! What is said over a connection is the business of the service it is given.

mod limits;
mod preface;
mod silent;
#[cfg(test)]
mod tests;
mod tls;

use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time;
use tonic::codegen::http::Request;
use tower::ServiceExt as _;

use self::preface::Prefaced;
use self::silent::SilentConnections;
use crate::access::Shown;
use crate::clock;
use crate::net::around::Calls;
use crate::net::peer::{Host, Peer};

pub use self::tls::{TlsError, TlsFiles};

pub(crate) use self::limits::{ConnectionLimits, Places, raise_descriptor_limit};
pub(crate) use self::silent::Begun;
pub(crate) use self::tls::{Spoken, Tls};

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
/// Longest time from a connection to the last byte of its preface: what is open by then and silent is hostile, or is
/// not HTTP/2.
const PREFACE_MAX: Duration = Duration::from_secs(5);
/// Pause after a connection could not be accepted: most likely there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Shortest time between two lines of the log about connections that were not taken.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(10);

/// Where connections come from.
pub(crate) trait Port: Send + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The same port, to be waited for by the present runtime.
    fn adopt(self) -> io::Result<Self>
    where
        Self: Sized;

    /// The next connection, and who is at its other end.
    fn next(&self) -> impl Future<Output = io::Result<(Self::Stream, Host)>> + Send;

    /// What a connection shows of its other end by itself.
    fn shown(_: &Self::Stream) -> Shown {
        Shown::Nothing
    }
}

impl Port for TcpListener {
    type Stream = TcpStream;

    fn adopt(self) -> io::Result<Self> {
        Self::from_std(self.into_std()?)
    }

    async fn next(&self) -> io::Result<(TcpStream, Host)> {
        let (stream, address) = self.accept().await?;
        // Small messages must not wait for the acknowledgement of earlier ones.
        stream.set_nodelay(true)?;
        Ok((stream, Host::at(address.ip())))
    }
}

impl Port for UnixListener {
    type Stream = UnixStream;

    fn adopt(self) -> io::Result<Self> {
        Self::from_std(self.into_std()?)
    }

    async fn next(&self) -> io::Result<(UnixStream, Host)> {
        let (stream, _) = self.accept().await?;
        let own = rustix::process::geteuid().as_raw();
        let host = match stream.peer_cred()?.uid() {
            user if user == own || user == 0 => Host::Local,
            user => Host::User(user),
        };
        Ok((stream, host))
    }

    fn shown(stream: &UnixStream) -> Shown {
        stream.peer_cred().map_or(Shown::Nothing, |user| Shown::User(user.uid(), user.gid()))
    }
}

/// Gives every connection of a port to `connect`, one task each, until told to stop, and then waits until the last one
/// has ended. Where there is no place, the oldest connection on which nothing was asked makes room, and else the new one
/// is closed at once: its caller tries again, rather than wait without a word. `connect` notes when a connection has
/// begun. Dropping the future ends all connections.
pub(crate) async fn serve<P, C, F>(port: P, places: Places, connect: C, mut stopped: watch::Receiver<bool>)
where
    P: Port,
    C: Fn(P::Stream, Peer, Begun) -> F + Send,
    F: Future<Output = ()> + Send + 'static,
{
    let port = match port.adopt() {
        Ok(port) => port,
        Err(error) => return tracing::error!(%error, "a port cannot be served"),
    };
    let mut connections = JoinSet::new();
    let mut silent = SilentConnections::default();
    let mut complaints = Complaints::default();
    loop {
        tokio::select! {
            () = told(&mut stopped) => break,
            Some(_) = connections.join_next() => {}
            accepted = port.next() => match accepted {
                Ok((stream, host)) => match silent.place_for(&places, host).await {
                    Ok((place, peer)) => {
                        let begun = Begun::default();
                        let served = connect(stream, peer, begun.clone());
                        let task = connections.spawn(async move {
                            let _place = place;
                            served.await;
                        });
                        silent.add(host, begun, task);
                    }
                    Err(full) => {
                        places.count_refusal(full.reason());
                        complaints.note(|count| {
                            tracing::warn!(count, limit = full.limit, host = ?full.host, "connections were refused: {full}")
                        });
                    }
                },
                Err(error) => {
                    complaints.note(|count| tracing::warn!(count, %error, "connections could not be accepted"));
                    time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    // Whoever knocks from here on is refused by the system.
    drop(port);
    while connections.join_next().await.is_some() {}
}

/// Keeps the log from growing with what is refused.
#[derive(Default)]
struct Complaints {
    count: u64,
    last: Option<Instant>,
}

impl Complaints {
    fn note(&mut self, say: impl FnOnce(u64)) {
        self.count += 1;
        let now = clock::now();
        if self.last.is_none_or(|last| now.duration_since(last) >= COMPLAINT_INTERVAL) {
            say(std::mem::take(&mut self.count));
            self.last = Some(now);
        }
    }
}

/// Serves a port, HTTP/2 on every connection, as [`serve`].
pub(crate) async fn serve_calls<P, S>(port: P, places: Places, service: S, stopped: watch::Receiver<bool>)
where
    P: Port,
    S: Calls<Incoming> + Clone + Send + 'static,
{
    let stop = stopped.clone();
    let connect = move |stream: P::Stream, peer, begun| {
        let caller = (peer, P::shown(&stream));
        serve_http2(stream, (caller, begun), service.clone(), stop.clone())
    };
    serve(port, places, connect, stopped).await;
}

/// As [`serve_calls`], inside TLS if there is any.
pub(crate) async fn serve_calls_over_tcp<S>(
    port: TcpListener,
    places: Places,
    service: S,
    tls: Option<Tls>,
    stopped: watch::Receiver<bool>,
) where
    S: Calls<Incoming> + Clone + Send + 'static,
{
    let Some(tls) = tls else { return serve_calls(port, places, service, stopped).await };
    let stop = stopped.clone();
    let connect = move |stream: TcpStream, peer, begun| {
        let (tls, service, stop) = (tls.clone(), service.clone(), stop.clone());
        async move {
            match time::timeout(PREFACE_MAX, tls.accept(stream, Spoken::Calls)).await {
                Ok(Ok((stream, shown))) => serve_http2(stream, ((peer, shown), begun), service, stop).await,
                Ok(Err(error)) => tracing::debug!(%error, "a connection was not secured"),
                Err(_) => {}
            }
        }
    };
    serve(port, places, connect, stopped).await;
}

/// Serves one HTTP/2 connection. Every request says who its peer is, and what it shows.
async fn serve_http2<I, S>(
    stream: I,
    ((peer, shown), begun): ((Peer, Shown), Begun),
    service: S,
    mut stopped: watch::Receiver<bool>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Calls<Incoming> + Clone + Send + 'static,
{
    let prefaced = tokio::select! {
        prefaced = time::timeout(PREFACE_MAX, Prefaced::read(stream)) => prefaced,
        () = told(&mut stopped) => return,
    };
    let Ok(Ok(stream)) = prefaced else { return };
    begun.note();
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(CALLS_PER_CONNECTION_MAX)
        .max_header_list_size(HEADER_BYTES_MAX)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE_ANSWER_MAX);
    let service = service.map_request(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(shown.clone());
        request
    });
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
pub(crate) async fn told(stopped: &mut watch::Receiver<bool>) {
    // A sender that is gone means that nobody will ever say stop: the server itself is gone.
    let _said = stopped.wait_for(|&stop| stop).await;
}
