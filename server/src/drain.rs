//! The end of a server's service, in order: no new calls, those inside go on for a while.
//!
//! A gate (`rpc/layers/gate.rs`) stands before every service that begins something. It counts who is inside, until the last byte of the
//! answer, and refuses everybody else once a drain has begun. Health, reflection and the services with which one
//! follows a drain have no gate.

use std::sync::Arc;

use tokio::sync::watch;

/// Begins the drain of a server, and tells whether it has begun. Clones share it.
#[derive(Clone, Debug)]
pub struct DrainHandle {
    draining: Arc<watch::Sender<bool>>,
    inside: Arc<watch::Sender<usize>>,
}

impl DrainHandle {
    pub(crate) fn new() -> Self {
        Self { draining: Arc::new(watch::Sender::new(false)), inside: Arc::new(watch::Sender::new(0)) }
    }

    /// Begins the drain: the server takes no new work, finishes what it has within its drain time-out, and ends.
    /// False if it had begun already.
    pub fn start(&self) -> bool {
        !self.draining.send_replace(true)
    }

    /// Whether the drain has begun.
    pub fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Waits until the drain begins.
    pub async fn started(&self) {
        // This handle owns the sender, so there is always one.
        let mut draining = self.draining.subscribe();
        let _begun = draining.wait_for(|&draining| draining).await;
    }

    /// Calls that were let in and whose answers have not ended.
    pub fn calls_inside(&self) -> usize {
        *self.inside.borrow()
    }

    /// Waits until no call is inside. After the drain began nobody enters, so this is final.
    pub(crate) async fn empty(&self) {
        let mut inside = self.inside.subscribe();
        let _empty = inside.wait_for(|&inside| inside == 0).await;
    }

    /// Lets a call in, unless the drain has begun.
    pub(crate) fn enter(&self) -> Option<Inside> {
        self.inside.send_modify(|inside| *inside += 1);
        let inside = Inside(Arc::clone(&self.inside));
        // Asked after counting: whoever is not refused here is seen by those who wait for the last to leave.
        (!self.is_draining()).then_some(inside)
    }
}

/// A call that was let in; dropping this counts it out.
#[derive(Debug)]
pub(crate) struct Inside(Arc<watch::Sender<usize>>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.send_modify(|inside| *inside -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_drain_begins_once_and_ends_when_the_last_call_has_left() {
        let drain = DrainHandle::new();
        let first = drain.enter().unwrap();
        let second = drain.enter().unwrap();
        assert_eq!(drain.calls_inside(), 2);
        assert!(drain.start());
        assert!(!drain.start() && drain.is_draining());
        drain.started().await;
        assert!(drain.enter().is_none());
        drop(first);
        assert_eq!(drain.calls_inside(), 1);
        drop(second);
        drain.empty().await;
    }
}
