//! Streams that go on as long as their callers like: how they begin, and how they end.

use std::future::Future;
use std::time::Instant;

use tokio::sync::mpsc;
use tonic::{Extensions, Status};

use crate::drain::DrainHandle;
use crate::failure::{CallFailure, MovingFailure, PlanFailure};
use crate::net::peer::{Full, Host, Peer, Places};
use crate::rpc::shared::call_pool;
use crate::rpc::shared::events::{EventStream, STREAM_BUFFER};
use crate::rpc::shared::outgoing::{Ended, Outgoing, conclude};
use crate::rpc::shared::status::{call_status, to_status};
use crate::tasks;

/// Most streams of one kind at once: one of a thousand ranks holds some hundred megabytes. One connection may have a
/// quarter of them.
const STREAMS_MAX: u64 = 32;

/// What streams of one kind share.
#[derive(Clone)]
pub(super) struct Lasting {
    places: Places,
    drain: DrainHandle,
}

impl Lasting {
    /// Streams that end when this drain begins.
    pub(super) fn new(drain: DrainHandle) -> Self {
        Self { places: Places::new(STREAMS_MAX, STREAMS_MAX / 4), drain }
    }
}

/// A stream of what `work` sends, for a call that arrived then, if there is a place for it. Logs how it ended.
pub(super) fn lasting<E, F>(
    method: &'static str,
    streams: &Lasting,
    (arrived, extensions): (Instant, &Extensions),
    work: impl FnOnce(Outgoing<E>) -> F,
) -> Result<EventStream<E>, Status>
where
    E: Send + 'static,
    F: Future<Output = Result<(), Ended>> + Send + 'static,
{
    let peer = extensions.get().copied().unwrap_or(Peer { host: Host::Local, connection: u64::MAX });
    let place = streams.places.take(peer).map_err(|Full { of, limit }| {
        let failure = CallFailure::from(MovingFailure::Full { of, limit });
        call_pool::log(method, arrived, Some(&failure));
        call_status(&failure)
    })?;
    let (sender, receiver) = mpsc::channel(STREAM_BUFFER);
    let (work, drain) = (work(Outgoing::new(sender.clone())), streams.drain.clone());
    let task = tasks::spawn(method, async move {
        let _place = place;
        let ended = tokio::select! {
            ended = work => ended,
            () = drain.started() => Err(Ended::Failed(to_status(&PlanFailure::Draining))),
        };
        conclude(method, arrived, ended, &sender).await;
    });
    Ok(EventStream::new(receiver, task))
}
