//! `Leases.WatchLeases`: events of leases.

use std::time::Duration;

use canopy_proto::v1::{
    Idle, LeaseExpired, PlanLost, PlanSuperseded, ReplanEvent, WatchLeasesRequest, WatchStarted, replan_event,
};
use canopy_wire::{fraction, loss_on_the_wire};
use tokio::sync::mpsc;
use tokio::time;
use tonic::{Request, Status};

use crate::drain::DrainHandle;
use crate::failure::{CallFailure, PlanFailure};
use crate::net::peer::{Full, Host, Peer, Places};
use crate::replan::{Change, Event as LeaseEvent, EventLog, Expired, Replanner, START};
use crate::rpc::EventStream;
use crate::rpc::shared::call_pool::CallPool;
use crate::rpc::shared::deliver::STALL_MAX;
use crate::rpc::shared::status::{call_status, operation_error, to_status};
use crate::tasks;
use crate::tenant::Viewer;

/// Longest time in which a watch says nothing.
const IDLE_INTERVAL: Duration = Duration::from_secs(30);
/// Events read from the log at a time.
const EVENTS_AT_ONCE: usize = 64;
/// Events a stream holds before the one who fills it waits for its reader.
const STREAM_BUFFER: usize = 8;

/// Most watches at once: those that nobody reads hold what was sent to them. One connection may have far fewer than it
/// may have calls.
const WATCHES_MAX: u64 = 4096;
const WATCHES_PER_CONNECTION_MAX: u64 = 256;

/// What all watches share.
#[derive(Clone)]
pub(super) struct Watches {
    pool: CallPool,
    replanner: Replanner,
    drain: DrainHandle,
    places: Places,
}

impl Watches {
    /// Watches that end when this drain begins.
    pub(super) fn new(pool: CallPool, replanner: Replanner, drain: DrainHandle) -> Self {
        replanner.metrics().set("canopy_watchers_max", &[], WATCHES_MAX as f64);
        Self { pool, replanner, drain, places: Places::new(WATCHES_MAX, WATCHES_PER_CONNECTION_MAX) }
    }

    /// Begins a watch.
    pub(super) async fn watch(&self, request: Request<WatchLeasesRequest>) -> Result<EventStream<ReplanEvent>, Status> {
        let (headers, extensions, request) = request.into_parts();
        let failed = |failure: CallFailure| call_status(&failure);
        let viewer = Viewer::of(&headers).map_err(|failure| failed(failure.into()))?;
        let (replanner, token) = (self.replanner.clone(), request.resume_token.clone());
        // Another server may have given the token just now.
        let position = self.pool.work(&headers, move |_| Ok(replanner.events().position(&token)?));
        let position = position.await.map_err(failed)?;
        let peer = extensions.get().copied().unwrap_or(Peer { host: Host::Local, connection: u64::MAX });
        let full = |Full { of, limit }| failed(CallFailure::TooManyWatches { of, limit });
        let place = self.places.take(peer).map_err(full)?;
        let (sender, receiver) = mpsc::channel(STREAM_BUFFER);
        let tells_of_end = request.resume_token == START;
        let watch = Watch { replanner: self.replanner.clone(), viewer, request, position, tells_of_end, sender };
        let drain = self.drain.clone();
        let watching = self.replanner.metrics().going_on("canopy_watchers", &[]);
        let task = tasks::spawn("watch-leases", async move {
            let _place = (place, watching);
            let sender = watch.sender.clone();
            let end = tokio::select! {
                end = watch.follow() => end,
                () = drain.started() => Some(to_status(&PlanFailure::Draining)),
            };
            if let Some(status) = end {
                // A reader that has gone is nobody's fault.
                let _gone = time::timeout(STALL_MAX, sender.send(Err(status))).await;
            }
        });
        Ok(EventStream::new(receiver, task))
    }
}

/// One caller's watch.
struct Watch {
    replanner: Replanner,
    viewer: Viewer,
    request: WatchLeasesRequest,
    /// The last event that was passed over or sent.
    position: u64,
    /// Whether an idle event is due once all events were sent.
    tells_of_end: bool,
    sender: mpsc::Sender<Result<ReplanEvent, Status>>,
}

impl Watch {
    /// Sends events until the reader has gone (`None`), or something ends the watch.
    async fn follow(mut self) -> Option<Status> {
        let events = self.replanner.events().clone();
        let mut latest = events.watch();
        self.say(&events, replan_event::Event::Started(WatchStarted {})).await?;
        loop {
            // Seen before it is read: what comes meanwhile is another change.
            latest.mark_unchanged();
            let new = match events.after(self.position, EVENTS_AT_ONCE) {
                Ok(new) => new,
                Err(expired) => return Some(call_status(&expired.into())),
            };
            for kept in &new {
                self.position = kept.sequence();
                if self.viewer.sees(&kept.tenant) && self.wants(&kept.event) {
                    self.send(on_the_wire(&kept.event)).await?;
                }
            }
            if !new.is_empty() {
                continue;
            }
            let is_end = std::mem::take(&mut self.tells_of_end);
            if is_end || time::timeout(IDLE_INTERVAL, latest.changed()).await.is_err() {
                self.say(&events, replan_event::Event::Idle(Idle {})).await?;
            }
        }
    }

    fn wants(&self, event: &LeaseEvent) -> bool {
        let fits = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        fits(&self.request.lease, &event.lease) && fits(&self.request.job, &event.job)
    }

    /// Says where the watch is.
    async fn say(&self, events: &EventLog, event: replan_event::Event) -> Option<()> {
        let resume_token = events.token(self.position);
        self.send(ReplanEvent { resume_token, event: Some(event), ..ReplanEvent::default() }).await
    }

    async fn send(&self, event: ReplanEvent) -> Option<()> {
        time::timeout(STALL_MAX, self.sender.send(Ok(event))).await.ok()?.ok()
    }
}

/// An event as it is sent.
fn on_the_wire(event: &LeaseEvent) -> ReplanEvent {
    let LeaseEvent { sequence, resume_token, time, lease, job, item, change, .. } = event.clone();
    let change = change.map(|change| match change {
        Change::Superseded(plan) => replan_event::Event::Superseded(PlanSuperseded {
            old_plan: plan.old_plan,
            new_plan: plan.new_plan,
            stage: plan.stage,
            bound: fraction(&plan.bound),
            achieved: fraction(&plan.achieved),
            optimality: fraction(&plan.optimality),
            survivors: plan.survivors,
            elapsed: plan.elapsed,
            is_final: plan.is_final,
        }),
        Change::Lost(lost) => {
            replan_event::Event::Lost(PlanLost { old_plan: lost.old_plan, error: lost.error.map(operation_error) })
        }
        Change::Expired(end) => replan_event::Event::Expired(LeaseExpired { expire_time: end.time }),
    });
    let faults = event.losses().iter().map(loss_on_the_wire).collect();
    ReplanEvent { sequence, resume_token, event_time: time, lease, job, item, faults, event: change }
}

impl From<Expired> for CallFailure {
    fn from(_: Expired) -> Self {
        Self::ResumeToken
    }
}

#[cfg(test)]
mod tests {
    use canopy_proto::v1;
    use tonic::Code;

    use super::*;
    use crate::replan::whole_events;

    #[test]
    fn events_are_sent_as_they_are_kept() {
        let mut changes = Vec::new();
        for event in whole_events() {
            let sent = on_the_wire(&event);
            assert_eq!((sent.sequence, &sent.resume_token, &sent.lease), (1, &event.resume_token, &event.lease));
            assert_eq!((&sent.job, sent.item), (&event.job, 3));
            assert_eq!((sent.faults.len(), sent.event_time), (1, event.time));
            changes.push(sent.event.expect("it says what happened"));
        }
        let [replan_event::Event::Superseded(plan), replan_event::Event::Lost(lost), replan_event::Event::Expired(end)] =
            &changes[..]
        else {
            panic!("{changes:?}");
        };
        assert_eq!((plan.stage(), plan.is_final, &*plan.survivors), (v1::ReplanStage::Restored, true, &[0, 2][..]));
        let rates = [&plan.bound, &plan.achieved, &plan.optimality].map(|rate| rate.as_ref().map(|rate| rate.value));
        assert_eq!(rates, [Some(3.5), Some(3.0), Some(6.0 / 7.0)]);
        assert_eq!(lost.error.as_ref().map(|error| error.code), Some(Code::Cancelled.into()));
        assert!(end.expire_time.is_some());
    }
}
