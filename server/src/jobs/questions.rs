//! Questions that are too large for one worker: what each of hundreds of faults would leave of a network.
//!
//! A question is split into slices. Each is answered by the worker that is free first, of this server or another, and is
//! dropped once nobody waits for the question any more.

mod answer;

use std::sync::Arc;

use canopy_access::Quota;
use canopy_optimize::Stop;
use canopy_planner::{Request as Order, RequestKey, WhatIf};
use canopy_wire::Priority;
use tokio::sync::mpsc;

use super::queue::Queue;
use super::slices::{Part, Slice, SliceOutcome};
use super::workers::Jobs;
use crate::call;
use crate::failure::PlanFailure;
use crate::quota::Used;

/// Bytes that weighing takes beside the network, for each of its links, roughly.
const LINK_BYTES: u64 = 2 << 10;
/// The same for networks of any size.
const LEAST_BYTES: u64 = 16 << 20;

/// Bytes of a fault, roughly.
const LOSS_BYTES: usize = 128;

/// A question whose slices are being answered. Dropping it drops them.
pub(crate) struct Asked {
    queue: Queue,
    slices: Vec<Arc<Slice>>,
    /// Bytes that it holds, roughly.
    bytes: usize,
    ended: mpsc::UnboundedReceiver<(usize, SliceOutcome)>,
    /// Its place among the jobs that its tenant and caller may have.
    _used: Option<Used>,
}

impl Asked {
    /// The next slice that ends: its number and its outcome. `None`: the server stops.
    pub(crate) async fn next(&mut self) -> Option<(usize, SliceOutcome)> {
        self.ended.recv().await
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.queue.drop_question(self.bytes, &self.slices);
    }
}

/// Bytes that weighing faults of a network takes, roughly.
pub(crate) fn weighing_bytes(what_if: &WhatIf) -> u64 {
    let links = what_if.topology().links().len() as u64;
    LEAST_BYTES.saturating_add(links.saturating_mul(LINK_BYTES))
}

impl Jobs {
    /// Has the parts of a question about a network answered. May block on the database.
    ///
    /// # Errors
    /// The server stops, the caller's quotas are used up, its memory would not suffice, or the database is away.
    pub(crate) fn ask(&self, what_if: &WhatIf, parts: Vec<Part>, priority: Priority) -> Result<Asked, PlanFailure> {
        let memory_bytes = weighing_bytes(what_if);
        self.queue.check_memory(memory_bytes)?;
        let order_bytes = parts.first().map_or(0, |part| part.order.weight_bytes());
        let bill = call::bill();
        let used = bill.as_ref().map(|bill| bill.take(Quota::Jobs)).transpose()?;
        bill.as_ref().map_or(Ok(()), |bill| bill.require(Quota::PlanningSecondsPerHour))?;
        let (sender, ended) = mpsc::unbounded_channel();
        let slice = |(position, part)| {
            // Plans of jobs whose links are broken come before any question.
            let priority = priority.min(Priority::JobStart);
            Arc::new(Slice::new(part, (priority, memory_bytes, bill.clone()), position, sender.clone()))
        };
        let losses: usize = parts.iter().map(|part| part.losses.len()).sum();
        let bytes = order_bytes.saturating_add(losses * LOSS_BYTES);
        self.queue.admit_question(bytes)?;
        let slices: Vec<Arc<Slice>> = parts.into_iter().enumerate().map(slice).collect();
        let asked = Asked { queue: self.queue.clone(), slices, bytes, ended, _used: used };
        self.line_up(&asked.slices)?;
        Ok(asked)
    }

    fn line_up(&self, slices: &[Arc<Slice>]) -> Result<(), PlanFailure> {
        let Some(table) = &self.table else { return self.queue.line_up(slices) };
        for (position, slice) in slices.iter().enumerate() {
            match self.queue.enter_slice(table, slice) {
                Ok(()) => {}
                Err(PlanFailure::Jobs(_)) if self.computes_alone => return self.queue.line_up(&slices[position..]),
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// The network of a request and its collective, at hand if it was asked about lately.
    ///
    /// # Errors
    /// The request has no such network, or stopped.
    pub(crate) fn what_if(&self, order: &Order, stop: &dyn Stop) -> Result<Arc<WhatIf>, PlanFailure> {
        let key = RequestKey::of(order);
        if let Some(known) = self.questions.known(&key) {
            return Ok(known);
        }
        let prepared = self.planner.prepare(order, stop)?;
        let what_if = Arc::new(WhatIf::new(prepared.topology, prepared.collective, stop)?);
        self.questions.keep(key, &what_if);
        Ok(what_if)
    }
}
