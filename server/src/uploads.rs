//! The memory that requests take: of messages on their way in, and of those that were decoded and are worked on.

use std::sync::Arc;

use canopy_access::Quota;
use parking_lot::Mutex;

use crate::net::peer::{Host, Share, Shares};
use crate::quota::{Bill, OverQuota, Used};

/// Messages up to this length are forgotten once they have arrived: there are many, and what they take is little.
const SHORT_BYTES: u64 = 64 << 10;

/// Bytes of messages that have begun to arrive, and of long ones until they are answered or handed on, of all calls
/// together; clones share it. One host may have half of it, or one message.
#[derive(Clone, Debug)]
pub(crate) struct UploadBudget {
    held: Shares<()>,
    by_host: Shares<Host>,
    limit: u64,
}

impl UploadBudget {
    /// A budget of this number of bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self { held: Shares::default(), by_host: Shares::default(), limit }
    }

    /// What one call from this host has of it: nothing yet.
    pub(crate) fn upload(&self, host: Host) -> Upload {
        let held = Held {
            held: self.held.empty(()),
            of_host: self.by_host.empty(host),
            used: None,
            bytes: 0,
            limit: self.limit,
            is_over: false,
        };
        Upload(Arc::new(Mutex::new(held)))
    }
}

/// What one call has of the budget; clones are the same call's. It goes back when it is released, or the last one is
/// dropped: who works on a request keeps one.
#[derive(Clone)]
pub(crate) struct Upload(Arc<Mutex<Held>>);

struct Held {
    held: Share<()>,
    of_host: Share<Host>,
    /// What is counted against the caller's quota.
    used: Option<Used>,
    bytes: u64,
    limit: u64,
    /// Whether nothing of it counts any more.
    is_over: bool,
}

/// Why a message is not taken.
#[derive(Debug)]
pub(crate) enum NoRoom {
    /// Others hold so much that these bytes would exceed the limit.
    Budget { held: usize, found: usize, limit: usize },
    /// Its caller has as much as it may.
    Quota(OverQuota),
}

impl Upload {
    /// Counts a message of this length, of which so much has arrived.
    ///
    /// # Errors
    /// There is no room for it, or its caller has too much of it.
    pub(crate) fn arriving(&self, arrived: u64, length: u64, bill: Option<Bill>) -> Result<(), NoRoom> {
        let mut held = self.0.lock();
        if held.used.is_none()
            && length > SHORT_BYTES
            && let Some(bill) = bill
        {
            held.used = Some(bill.take_some(Quota::RequestBytes, length).map_err(NoRoom::Quota)?);
        }
        held.hold(arrived)
    }

    /// A message has arrived whole. A long one counts until it is released, or the next one begins.
    ///
    /// # Errors
    /// As [`Upload::arriving`].
    pub(crate) fn arrived(&self, length: u64) -> Result<(), NoRoom> {
        let mut held = self.0.lock();
        if length > SHORT_BYTES {
            return held.hold(length);
        }
        held.used = None;
        held.hold(0)
    }

    /// Gives all back: the request was answered, or somebody else counts what it takes.
    pub(crate) fn release(&self) {
        let mut held = self.0.lock();
        held.is_over = true;
        held.give_back();
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.0.lock().bytes
    }
}

impl Held {
    /// Changes the number of bytes held.
    fn hold(&mut self, bytes: u64) -> Result<(), NoRoom> {
        if self.is_over {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes <= before {
            self.held.shrink(before - bytes);
            self.of_host.shrink(before - bytes);
            return Ok(());
        }
        let (all, of_host) = (self.held.grow(bytes - before), self.of_host.grow(bytes - before));
        let (held, limit) = match of_host > bytes && of_host > self.limit / 2 {
            true => (of_host, self.limit / 2),
            false => (all, self.limit),
        };
        if held <= limit {
            return Ok(());
        }
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let (held, found, limit) = (size(held - bytes), size(bytes), size(limit));
        Err(NoRoom::Budget { held, found, limit })
    }

    fn give_back(&mut self) {
        self.used = None;
        self.held.shrink(self.bytes);
        self.of_host.shrink(self.bytes);
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::*;

    const LONG: u64 = 100_000;

    /// Of a host of its own.
    fn upload(budget: &UploadBudget) -> Upload {
        static HOSTS: AtomicU8 = AtomicU8::new(0);
        budget.upload(Host::at([10, 0, 0, HOSTS.fetch_add(1, Ordering::Relaxed)].into()))
    }

    #[test]
    fn a_long_message_counts_until_it_is_released_and_a_short_one_until_it_is_there() {
        let budget = UploadBudget::new(LONG + 10);
        let (long, short) = (upload(&budget), upload(&budget));
        long.arriving(LONG - 1, LONG, None).unwrap();
        long.arrived(LONG).unwrap();
        short.arriving(10, 20, None).unwrap();
        short.arrived(20).unwrap();
        assert_eq!((long.bytes(), short.bytes()), (LONG, 0));
        assert!(matches!(short.arriving(11, 20, None), Err(NoRoom::Budget { .. })));
        drop(short);
        long.release();
        upload(&budget).arriving(LONG, LONG, None).unwrap();
        // Nothing counts once it is over.
        long.arrived(LONG).unwrap();
        assert_eq!(long.bytes(), 0);
    }

    #[test]
    fn who_works_on_a_request_keeps_its_room() {
        let budget = UploadBudget::new(LONG);
        let body = upload(&budget);
        body.arrived(LONG).unwrap();
        let worked_on = body.clone();
        drop(body);
        assert!(upload(&budget).arriving(LONG, LONG, None).is_err());
        drop(worked_on);
        upload(&budget).arriving(LONG, LONG, None).unwrap();
    }
}
