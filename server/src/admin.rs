//! The port for operators: plain HTTP, with nothing on it that changes anything.
//!
//! `/healthz` says that the process answers, `/readyz` whether it takes work, `/metrics` what it has done, and
//! `/debug/queue` what it is doing.

mod queue_page;

use std::future::IntoFuture as _;
use std::io;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::spawn_blocking;

use self::queue_page::QueuePage;
use crate::drain::DrainHandle;
use crate::metrics::Metrics;
use crate::server::WeakStatistics;
use crate::store::Upkeep;
use crate::tasks::{self, Task};

/// How often recorded times are folded into their buckets.
const UPKEEP: Duration = Duration::from_secs(5);

/// What the pages show.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    pub(crate) drain: DrainHandle,
    pub(crate) statistics: WeakStatistics,
    pub(crate) metrics: Metrics,
    pub(crate) upkeep: Upkeep,
}

/// Serves the pages until the task is dropped.
pub(crate) fn serve(listener: TcpListener, pages: Pages) -> Task<io::Result<()>> {
    tasks::spawn("admin", async move {
        let metrics = pages.metrics.clone();
        let serving = axum::serve(listener, router(pages)).into_future();
        tokio::pin!(serving);
        let mut upkeep = tokio::time::interval(UPKEEP);
        loop {
            tokio::select! {
                ended = &mut serving => return ended,
                _ = upkeep.tick() => metrics.upkeep(),
            }
        }
    })
}

fn router(pages: Pages) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readiness))
        .route("/metrics", get(metrics))
        .route("/debug/queue", get(queue))
        .with_state(pages)
}

/// The store is open and the workers run before there is a port, so only a drain stands between a server and work, or a disk that takes
/// nothing.
async fn readiness(State(pages): State<Pages>) -> impl IntoResponse {
    if pages.drain.is_draining() {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned());
    }
    match pages.upkeep.trouble() {
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("the store cannot be written: {reason}\n")),
        None => (StatusCode::OK, "ready\n".to_owned()),
    }
}

async fn metrics(State(pages): State<Pages>) -> impl IntoResponse {
    // Figures of the store may come from the disk.
    let text = spawn_blocking(move || Some(pages.metrics.render(&pages.statistics.upgrade()?))).await;
    match text.ok().flatten() {
        Some(text) => Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)),
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
