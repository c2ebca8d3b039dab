//! Slices of questions that are too large for one worker: some of hundreds of faults, and what each would leave of a network.

mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use canopy_faults::Loss;
use canopy_optimize::Stop;
use canopy_planner::{Left, Recent, Request as Order, RequestKey, WhatIf};
use canopy_wire::Priority;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::clock;
use crate::failure::PlanFailure;
use crate::quota::Bill;

pub(crate) use self::words::{decode_answer, encode_answer};

/// Bytes of networks that are kept for the next slice, roughly.
const KEPT_BYTES: u64 = 128 << 20;
/// Bytes of a kept network for each of its nodes and links, roughly.
const ELEMENT_BYTES: u64 = 128;

/// How a slice ended: what each of its faults leaves, in their order.
pub(crate) type SliceOutcome = Result<Vec<Left>, Arc<PlanFailure>>;

/// What a worker is asked: what each of some faults would leave of the network of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) order: Arc<Order>,
    pub(crate) losses: Vec<Loss>,
}

/// A part that somebody here waits for.
pub(crate) struct Slice {
    pub(crate) part: Part,
    pub(crate) priority: Priority,
    /// Bytes of memory that answering it takes, roughly.
    pub(crate) memory_bytes: u64,
    pub(crate) bill: Option<Bill>,
    /// By the clock on the wall, in milliseconds since 1970 UTC.
    pub(crate) arrived_unix_ms: u64,
    position: usize,
    is_dropped: AtomicBool,
    ended: mpsc::UnboundedSender<(usize, SliceOutcome)>,
}

impl Slice {
    /// A part at its place in a question, with its priority, memory and accounts; its outcome is sent.
    pub(crate) fn new(
        part: Part,
        (priority, memory_bytes, bill): (Priority, u64, Option<Bill>),
        position: usize,
        ended: mpsc::UnboundedSender<(usize, SliceOutcome)>,
    ) -> Self {
        let (arrived_unix_ms, is_dropped) = (clock::unix_ms(), AtomicBool::new(false));
        Self { part, priority, memory_bytes, bill, arrived_unix_ms, position, is_dropped, ended }
    }

    /// The tenant whose turn it takes; empty for none.
    pub(crate) fn tenant(&self) -> &str {
        self.bill.as_ref().map_or("", Bill::tenant)
    }

    /// The share of planning workers of its tenant.
    pub(crate) fn weight(&self) -> u64 {
        self.bill.as_ref().map_or(1, Bill::weight)
    }

    /// Gives its outcome to who waits for it.
    pub(crate) fn settle(&self, outcome: SliceOutcome) {
        // Who has gone needs it no more.
        let _gone = self.ended.send((self.position, outcome));
    }

    /// Nobody waits for it any more.
    pub(crate) fn drop_it(&self) {
        self.is_dropped.store(true, Ordering::Relaxed);
    }

    /// Whether nobody waits for it any more.
    pub(crate) fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Relaxed)
    }
}

/// Solvers ask whether anybody still waits.
impl Stop for Slice {
    fn is_requested(&self) -> bool {
        self.is_dropped()
    }
}

/// Networks that were asked about lately.
pub(crate) struct Questions(Mutex<Recent<RequestKey, Arc<WhatIf>>>);

impl Default for Questions {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(KEPT_BYTES)))
    }
}

impl Questions {
    pub(crate) fn known(&self, key: &RequestKey) -> Option<Arc<WhatIf>> {
        self.0.lock().get(key)
    }

    pub(crate) fn keep(&self, key: RequestKey, what_if: &Arc<WhatIf>) {
        let topology = what_if.topology();
        let elements = topology.nodes().len() + topology.links().len();
        self.0.lock().keep(key, Arc::clone(what_if), elements as u64 * ELEMENT_BYTES);
    }
}
