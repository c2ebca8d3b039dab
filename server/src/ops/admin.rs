//! The port for operators: HTTP, inside TLS where the server has a certificate.
//!
//! `/healthz` says that the process answers, `/readyz` whether it takes work, `/metrics` what it has done, and
//! `/debug/queue` what it is doing. `/console/` shows all of this to a person, by calls that are let in as on other ports.

mod console;
mod pages_guard;
mod queue_page;

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Router, middleware};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time;
use tower::ServiceExt as _;

use self::queue_page::QueuePage;
use crate::access::Shown;
use crate::credentials::Credentials;
use crate::drain::DrainHandle;
use crate::metrics::{Metrics, OPEN_METRICS, TEXT};
use crate::net::around::WebCalls;
use crate::net::listener::{self, Begun, Places, Spoken, Tls};
use crate::net::peer::Peer;
use crate::ops::statistics::WeakStatistics;
use crate::store::{Others, Upkeep};

/// Longest time from a connection to the end of the headers on it, and to the end of the answer.
const HEADERS_MAX: Duration = Duration::from_secs(5);
const PAGE_MAX: Duration = Duration::from_secs(30);
/// Longest time for a call of the console, whose deadline is shorter.
const CALL_MAX: Duration = Duration::from_secs(3600);

/// What the pages show.
#[derive(Clone)]
pub(crate) struct Pages {
    pub(crate) drain: DrainHandle,
    pub(crate) statistics: WeakStatistics,
    pub(crate) metrics: Metrics,
    pub(crate) upkeep: Upkeep,
    /// The other servers that use the same store.
    pub(crate) others: Option<Others>,
    /// Whether the queue is shown.
    pub(crate) has_debug: bool,
    /// The calls of the console, if there is one.
    pub(crate) calls: Option<ConsoleCalls>,
    /// Who may see what is not for everybody.
    pub(crate) credentials: Credentials,
}

/// What the console calls, for as long as the server serves calls: the pages outlive them, and must not keep its store open.
#[derive(Clone)]
pub(crate) struct ConsoleCalls {
    service: Weak<WebCalls>,
    /// Says when calls end, those that go on included.
    stopped: watch::Receiver<bool>,
}

impl ConsoleCalls {
    /// The calls of a service.
    pub(crate) fn of(service: &Arc<WebCalls>, stopped: &watch::Receiver<bool>) -> Self {
        Self { service: Arc::downgrade(service), stopped: stopped.clone() }
    }

    /// The service, unless calls have ended.
    fn service(&self) -> Option<WebCalls> {
        if *self.stopped.borrow() { None } else { self.service.upgrade().map(|service| (*service).clone()) }
    }
}

/// Serves the pages for as long as the future lives.
pub(crate) async fn serve(listener: TcpListener, places: Places, pages: Pages) {
    let calls_end = pages.calls.as_ref().map(|calls| calls.stopped.clone());
    let (tls, router) = (pages.credentials.tls.clone(), router(pages));
    // It stays to the end of the process, and nobody has to be told.
    let (_stop, stopped) = watch::channel(false);
    let connect = move |stream, peer, begun| {
        let is_call = Arc::default();
        let of_peer = OfPeer { router: router.clone(), peer, begun, is_call: Arc::clone(&is_call) };
        let shown = greet_and_show(stream, tls.clone(), of_peer);
        let calls_end = calls_end.clone();
        async move {
            let ended = tokio::select! {
                ended = in_time(shown, &is_call) => ended,
                () = end_of_calls(calls_end, &is_call) => return,
            };
            if let Some(Err(error)) = ended {
                tracing::debug!(%error, "a connection to the operators' port failed");
            }
        }
    };
    listener::serve(listener, places, connect, stopped).await;
}

/// What becomes of a connection within the time that it has.
async fn in_time<F: Future>(shown: F, is_call: &AtomicBool) -> Option<F::Output> {
    let mut shown = pin!(shown);
    match time::timeout(PAGE_MAX, &mut shown).await {
        Ok(ended) => Some(ended),
        Err(_) if is_call.load(Ordering::Relaxed) => time::timeout(CALL_MAX, shown).await.ok(),
        Err(_) => None,
    }
}

/// Waits until calls end; never ends for a page.
async fn end_of_calls(calls_end: Option<watch::Receiver<bool>>, is_call: &AtomicBool) {
    if let Some(mut stopped) = calls_end {
        listener::told(&mut stopped).await;
        if is_call.load(Ordering::Relaxed) {
            return;
        }
    }
    std::future::pending().await
}

/// The pages for one connection.
struct OfPeer {
    router: Router,
    peer: Peer,
    begun: Begun,
    /// Whether a call was made over it.
    is_call: Arc<AtomicBool>,
}

/// Answers one request, inside TLS if there is any.
async fn greet_and_show(
    stream: TcpStream,
    tls: Option<Tls>,
    pages: OfPeer,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    match tls {
        None => show(stream, pages, Shown::Nothing).await?,
        Some(tls) => {
            let (stream, shown) = time::timeout(HEADERS_MAX, tls.accept(stream, Spoken::Pages)).await??;
            show(stream, pages, shown).await?;
        }
    }
    Ok(())
}

/// Answers one request: the next one comes over a connection of its own, so that none stays open for nothing.
async fn show<I>(stream: I, pages: OfPeer, shown: Shown) -> hyper::Result<()>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADERS_MAX).keep_alive(false);
    let OfPeer { router, peer, begun, is_call } = pages;
    let router =
        router.layer(Extension(shown)).layer(Extension(peer)).map_request(move |request: Request<Incoming>| {
            begun.note();
            is_call.store(console::is_call(request.uri().path()), Ordering::Relaxed);
            request
        });
    builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).await
}

fn router(pages: Pages) -> Router {
    let mut router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readiness))
        .route("/metrics", get(metrics));
    if pages.has_debug {
        router = router.route("/debug/queue", get(queue));
    }
    if let Some(calls) = pages.calls.clone() {
        router = console::add(router, calls);
    }
    let guarded = middleware::from_fn_with_state(pages.credentials.access.clone(), pages_guard::admit);
    router.layer(guarded).with_state(pages)
}

/// The store is open and the workers run before there is a port, so only a drain stands between a server and work, or a disk that takes
/// nothing. A database that is away takes no server out of service: no other one would have it.
async fn readiness(State(pages): State<Pages>) -> impl IntoResponse {
    if pages.drain.is_draining() {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned());
    }
    match pages.upkeep.trouble() {
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("the store cannot be written: {reason}\n")),
        None => match pages.others.as_ref().and_then(Others::trouble) {
            // What is cached is served, and who waits for more is told to try again.
            Some(reason) => (StatusCode::OK, format!("ready, but the database cannot be reached: {reason}\n")),
            None => (StatusCode::OK, "ready\n".to_owned()),
        },
    }
}

/// The page, in the format that carries exemplars for a reader that names it.
async fn metrics(State(pages): State<Pages>, headers: HeaderMap) -> impl IntoResponse {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_open = accepted.contains("application/openmetrics-text");
    // Figures of the store may come from the disk.
    let page = move || {
        pages.statistics.upgrade()?.show(&pages.metrics);
        Some(if is_open { pages.metrics.render_open_metrics() } else { pages.metrics.render() })
    };
    let text = spawn_blocking(page).await;
    let content_type = if is_open { OPEN_METRICS } else { TEXT };
    match text.ok().flatten() {
        Some(text) => Ok(([(CONTENT_TYPE, content_type)], text)),
        None => Err(StatusCode::SERVICE_UNAVAILABLE),
    }
}

async fn queue(State(pages): State<Pages>) -> impl IntoResponse {
    // Many jobs are many locks.
    let text =
        spawn_blocking(move || serde_json::to_string_pretty(&QueuePage::of(&pages.statistics.upgrade()?.queue())).ok());
    match text.await.ok().flatten() {
        Some(text) => Ok(([(CONTENT_TYPE, "application/json")], text + "\n")),
        None => Err(StatusCode::SERVICE_UNAVAILABLE),
    }
}
