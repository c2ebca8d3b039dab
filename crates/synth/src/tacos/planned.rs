//! What is to be sent, over links that take which times, and a schedule found for it.

use canopy_schedule::Action;
use canopy_tacos::{CopyTask, Demand, Sends, TimedLink, TimedNetwork};

use super::times::Clock;

/// What is to be brought where.
pub(super) enum TransferTask {
    Copies(CopyTask),
    /// Each with its chunk in the schedule.
    Deliveries(Vec<Demand>, Vec<u32>),
}

/// What links take for chunks of a size, and what no schedule is faster than.
pub(super) struct Links {
    pub(super) clock: Clock,
    pub(super) network: TimedNetwork,
    pub(super) transposed: TimedNetwork,
    /// Of copies along the links, and against them.
    pub(super) bounds: (u64, u64),
}

impl Links {
    pub(super) const fn bound(&self, action: Action) -> u64 {
        match action {
            Action::Copy => self.bounds.0,
            Action::Reduce => self.bounds.1,
        }
    }

    /// What copies of a phase go along.
    pub(super) const fn network(&self, action: Action) -> &TimedNetwork {
        match action {
            Action::Copy => &self.network,
            Action::Reduce => &self.transposed,
        }
    }

    pub(super) fn are_alike(&self) -> bool {
        let times = |link: &TimedLink| (link.latency, link.occupancy);
        self.network.links().windows(2).all(|pair| times(&pair[0]) == times(&pair[1]))
    }

    /// Whether chunks arrive later than their links are free again.
    pub(super) fn have_latencies(&self) -> bool {
        self.network.links().iter().any(|link| link.latency != link.occupancy)
    }
}

/// A way to unwind a network with the times of its links, and the chunks.
pub(super) struct Timed {
    pub(super) links: Links,
    pub(super) transfers: TransferTask,
}

impl Timed {
    /// Whether a schedule that ends at its bound would be faster than another, by one part of `gain` if that is not 0, or as fast with
    /// fewer sends.
    pub(super) fn may_gain(&self, bound: u128, other: &Planned, gain: u128) -> bool {
        let (own, others) = self.links.clock.compared(bound, (&other.timed.links.clock, other.end));
        match (others.checked_div(gain), &self.transfers) {
            (Some(part), _) => own < others - part,
            // All get every chunk once, on whatever way.
            (None, TransferTask::Copies(_)) => own < others,
            (None, TransferTask::Deliveries(..)) => own <= others,
        }
    }
}

/// A schedule with a number of chunks per share.
pub(super) struct Planned {
    pub(super) chunks: u64,
    pub(super) timed: Timed,
    /// The links without latencies, where sends are decided by these.
    pub(super) in_steps: Option<Links>,
    /// What came of each search, by the times of the links that decided it: of sums, copies on the network turned around.
    pub(super) found: Vec<Sends>,
    /// Ticks of all phases with all latencies.
    pub(super) end: u128,
    pub(super) sends: usize,
}

impl Planned {
    /// A schedule decided by the whole times of links.
    ///
    /// * `phase_count`: that of the searches, or all are made of the only one.
    pub(super) fn new(chunks: u64, timed: Timed, found: Vec<Sends>, phase_count: usize) -> Self {
        let ends = found.iter().map(|sends| u128::from(sends.end)).sum();
        Self::ending(chunks, timed, None, found, ends, phase_count)
    }

    /// * `ends`: of what was found, with all latencies.
    pub(super) fn ending(
        chunks: u64,
        timed: Timed,
        in_steps: Option<Links>,
        found: Vec<Sends>,
        ends: u128,
        phase_count: usize,
    ) -> Self {
        let each = phase_count / found.len().max(1);
        let sends = found.iter().map(|sends| sends.sends.len()).sum::<usize>() * each;
        Self { chunks, timed, in_steps, found, end: ends * each as u128, sends }
    }

    /// The links that decided when chunks are sent.
    pub(super) fn links(&self) -> &Links {
        self.in_steps.as_ref().unwrap_or(&self.timed.links)
    }

    /// Whether a share is through sooner, or with fewer sends.
    pub(super) fn is_faster_than(&self, other: &Self) -> bool {
        let (own, others) = self.timed.links.clock.compared(self.end, (&other.timed.links.clock, other.end));
        own < others || own == others && self.sends < other.sends
    }

    /// Sends with so many chunks per share on the same ways.
    pub(super) const fn sends_with(&self, chunks: u64) -> u64 {
        (self.sends as u64 / self.chunks).saturating_mul(chunks)
    }
}
