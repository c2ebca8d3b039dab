//! Whether latencies decide when chunks are sent, or only how long that takes.
//!
//! A link is free again before what it carried has arrived. Who then sends at once whatever there is falls out of step with those who
//! wait for arrivals, and what starts at the same time is a step: on links that are alike, that makes two to three times as many steps
//! as without latencies, and with barriers between them it takes as many times as long. So schedules are found both with latencies and without
//! them, and the one of fewest steps is taken unless the other is faster by more than a twentieth, and no slower with barriers.

#[cfg(test)]
mod tests;

use canopy_optimize::Stop;
use canopy_schedule::Pace;
use canopy_tacos::{Sends, TimedNetwork};

use super::planned::{Links, Planned, Timed, TransferTask};
use super::starts::{Copies, Deliveries, Ordered, starts};
use super::way::Way;
use super::{Asked, Method, QUICK_SENDS_MAX};
use crate::error::SynthesisError;

/// A schedule of more steps must save more than one part of so many.
const STEPS_GAIN_MIN: u128 = 20;

/// What is compared of schedules for the same chunks on the same links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Merit {
    steps: usize,
    /// Ticks where each send begins as soon as it can.
    end: u128,
    /// Ticks where each step begins when all before it are over.
    end_with_barriers: u128,
}

impl Merit {
    /// * `phases`: what was found, on which network with latencies; so many phases are made of each.
    fn of<'a>(end: u128, phases: impl Iterator<Item = (&'a TimedNetwork, &'a Sends)>, each: u128) -> Self {
        let (mut steps, mut end_with_barriers) = (0, 0);
        for (network, phase) in phases {
            for step in phase.sends.chunk_by(|a, b| a.start == b.start) {
                let longest = step.iter().map(|sent| network.link(sent.link).latency).max();
                steps += 1;
                end_with_barriers += u128::from(longest.unwrap_or(0));
            }
        }
        Self { steps, end, end_with_barriers: end_with_barriers * each }
    }

    /// Whether it is to be taken rather than another, where that is to be taken otherwise.
    fn is_better_than(self, other: Self) -> bool {
        match self.steps.cmp(&other.steps) {
            std::cmp::Ordering::Less => !other.is_worth_more_steps_than(self),
            std::cmp::Ordering::Equal => (self.end, self.end_with_barriers) < (other.end, other.end_with_barriers),
            std::cmp::Ordering::Greater => self.is_worth_more_steps_than(other),
        }
    }

    const fn is_worth_more_steps_than(self, fewer: Self) -> bool {
        self.end < fewer.end - fewer.end / STEPS_GAIN_MIN && self.end_with_barriers <= fewer.end_with_barriers
    }
}

impl Asked<'_> {
    /// The links of a way without latencies, where these could decide otherwise.
    ///
    /// What is published and what is proven goes by the whole times of links.
    pub(super) fn links_in_steps(
        &self,
        way: &Way,
        chunks: u64,
        timed: &Timed,
    ) -> Result<Option<Links>, SynthesisError> {
        if !matches!(self.method, Method::Own) || !timed.links.have_latencies() {
            return Ok(None);
        }
        self.links(way, &self.layout(chunks)?, None, &timed.transfers).map(Some)
    }

    /// The schedule that links without latencies decide, with the times that it takes on those with them.
    ///
    /// # Errors
    /// Stopped. O(sends), 8 bytes for each chunk of each rank where all get it.
    pub(super) fn planned_in_steps(
        &self,
        way: &Way,
        chunks: u64,
        timed: Timed,
        in_steps: Links,
        found: Vec<Sends>,
        stop: &dyn Stop,
    ) -> Result<Planned, SynthesisError> {
        let mut ends = 0;
        for (&search, sends) in self.searches(way).iter().zip(&found) {
            ends += u128::from(end(timed.links.network(search), &timed.transfers, sends, stop)?);
        }
        Ok(Planned::ending(chunks, timed, Some(in_steps), found, ends, self.actions.len()))
    }

    /// Whether a schedule that was decided without latencies needs no other to be compared with: it has as few steps as there can be, which
    /// takes links that are alike, and one that is found with latencies cannot be faster, or takes long to find.
    pub(super) fn is_settled(&self, way: &Way, planned: &Planned) -> bool {
        let links = planned.links();
        let mut ends = self.searches(way).iter().zip(&planned.found);
        let has_fewest = links.are_alike() && ends.all(|(&search, found)| found.end <= links.bound(search));
        let is_large = self.sends(planned.chunks) > QUICK_SENDS_MAX;
        has_fewest && (is_large || planned.end <= self.bound(&planned.timed.links))
    }

    /// What latencies decide, where that is better than what was decided without them.
    pub(super) fn better(&self, way: &Way, planned: Planned, stop: &dyn Stop) -> Result<Planned, SynthesisError> {
        let Timed { links, transfers } = &planned.timed;
        let found = self.searched(way, links, transfers, stop)?;
        let networks = || self.searches(way).iter().map(|&search| links.network(search));
        let each = (self.actions.len() / found.len().max(1)) as u128;
        let end = found.iter().map(|sends| u128::from(sends.end)).sum::<u128>() * each;
        let own = Merit::of(end, networks().zip(&found), each);
        match own.is_better_than(Merit::of(planned.end, networks().zip(&planned.found), each)) {
            true => Ok(Planned::new(planned.chunks, planned.timed, found, self.actions.len())),
            false => Ok(planned),
        }
    }
}

/// When the last chunk arrives where each is sent as soon as it can be: in the order in which links were to send them.
fn end(
    network: &TimedNetwork,
    transfers: &TransferTask,
    sends: &Sends,
    stop: &dyn Stop,
) -> Result<u64, SynthesisError> {
    let mut ordered = Vec::with_capacity(sends.sends.len());
    for (step, together) in (0..).zip(sends.sends.chunk_by(|a, b| a.start == b.start)) {
        ordered.extend(together.iter().map(|sent| Ordered { step, route: sent.link, chunk: sent.chunk }));
    }
    let started = match transfers {
        TransferTask::Copies(task) => starts(network, Copies::new(task), Pace::InTurn, &ordered, stop)?,
        TransferTask::Deliveries(demands, _) => {
            let sources = demands.iter().map(|demand| Some((demand.from, 0))).collect();
            starts(network, Deliveries(sources), Pace::InTurn, &ordered, stop)?
        }
    };
    debug_assert_eq!(started.len(), sends.sends.len(), "all that was sent can be sent");
    Ok(started.iter().map(|sent| sent.start + network.link(sent.link).latency).max().unwrap_or(0))
}
