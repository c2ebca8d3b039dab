//! The plan that is sent when the one that was asked for does not come.

use tokio::time::{self, Instant};

use super::decode::OnMiss;
use crate::job::{Delivery, Goal, JobState, Terms};
use crate::key::RequestKey;
use crate::order::{Order, Priority};
use crate::queue::{Queue, Subscription};

/// A job beside the one that makes the plan: an order of the same form by an algorithm that needs next to no time. It
/// ends with the call, unless others want its plan.
#[derive(Debug)]
pub(crate) struct StandIn(Subscription);

impl StandIn {
    /// Puts the job in line, before everything that can wait. None: the caller wants no such plan, there is no
    /// quicker one, or there is no room; what was asked for may come all the same.
    pub(crate) fn submit(queue: &Queue, order: &Order, on_miss: OnMiss) -> Option<Self> {
        if on_miss == OnMiss::Fail {
            return None;
        }
        let order = order.stand_in()?;
        // Quick, and of use only if it is there when it is needed.
        let terms = Terms { priority: Priority::Repair, detached: false };
        queue.submit(RequestKey::of(&order), order, Goal::Plan, terms).ok().map(Self)
    }

    /// Its plan, if it is there by `limit`.
    pub(crate) async fn delivery(&mut self, limit: Instant) -> Option<Delivery> {
        let ended = self.0.state.wait_for(|state| matches!(state, JobState::Done(_)));
        // Where the limit has passed already, this looks once.
        let _ended = time::timeout_at(limit, ended).await.map(|_| ());
        match &*self.0.state.borrow() {
            JobState::Done(outcome) => outcome.clone().ok(),
            JobState::Working(_) => None,
        }
    }
}
