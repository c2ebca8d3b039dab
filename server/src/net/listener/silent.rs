//! Connections on which nothing has been asked yet. Where places run out, the oldest of them makes room: who means to
//! ask does so at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::{AbortHandle, yield_now};

use super::limits::{Full, Place, Places};
use crate::net::peer::{Host, Peer};

/// Whether a connection has said what it is for; clones are the same one's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Begun(Arc<AtomicBool>);

impl Begun {
    /// It has.
    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct Silent {
    host: Host,
    begun: Begun,
    task: AbortHandle,
}

impl Silent {
    fn is_over(&self) -> bool {
        self.begun.is_so() || self.task.is_finished()
    }
}

/// The silent connections of a port, the oldest first. Some of them may have begun or ended since.
#[derive(Default)]
pub(super) struct SilentConnections(VecDeque<Silent>);

impl SilentConnections {
    /// Adds one that has just come. O(1) amortised.
    pub(super) fn add(&mut self, host: Host, begun: Begun, task: AbortHandle) {
        while self.0.front().is_some_and(Silent::is_over) {
            self.0.pop_front();
        }
        self.0.push_back(Silent { host, begun, task });
    }

    /// A place for a connection from this host, if need be of a silent one that ends for it.
    ///
    /// # Errors
    /// All places are taken, and every connection that could make room has begun.
    pub(super) async fn place_for(&mut self, places: &Places, host: Host) -> Result<(Place, Peer), Full> {
        let full = match places.take(host) {
            Ok(taken) => return Ok(taken),
            Err(full) => full,
        };
        if !self.end_oldest(full.host) {
            return Err(full);
        }
        // So that it leaves.
        yield_now().await;
        places.take_over(host)
    }

    /// Ends the oldest one, of this host if one is named. Returns false if no connection is silent. O(connections).
    fn end_oldest(&mut self, host: Option<Host>) -> bool {
        self.0.retain(|one| !one.is_over());
        let oldest = self.0.iter().position(|one| host.is_none_or(|host| host == one.host));
        let ended = oldest.and_then(|at| self.0.remove(at));
        ended.iter().for_each(|one| one.task.abort());
        ended.is_some()
    }
}
