//! `tacos`: which chunk passes which link when, decided moment by moment on links that take their time.
//!
//! Switches are unwound into links between ranks first (`unwound`), in several ways of which the fastest is kept; times become
//! whole ticks (`times`); [`canopy_tacos`] decides; and what it decides is written down as steps (`sends`). Sums are copies on the
//! network turned around, run backwards; what is for one rank alone takes ways chosen before (`unicast`).
//!
//! Source: Won et al., *TACOS*, for the time-expanded network and for switches that are unwound; the method is our own.

pub(crate) mod joint;
mod proven;
pub(crate) mod queued;
mod sends;
#[cfg(test)]
mod tests;
mod times;
mod unicast;
mod unwound;

use std::num::NonZeroU64;

use canopy_optimize::Stop;
use canopy_schedule::{Action, ChunkLayout, Collective, Shape, Shares};
use canopy_tacos::{
    Attempts, CopyError, CopyTask, FreeGroup, Sends, TimedNetwork, best_by_requests, best_of, lower_bound,
};
use canopy_topology::Topology;

use crate::algorithm::{Algorithm, SynthesisRequest};
use crate::error::SynthesisError;
use crate::parts::{HOPS_MAX, phase_actions, require_room};
use crate::progress::{Progress, Stage};
use crate::reach::{ask, require_reach};
use crate::symmetry::translations;
pub use proven::TimeProof;
pub(crate) use proven::plan as plan_proven;
use times::Clock;
use unwound::{Patterns, Unwound};

/// Sends up to which more chunks per share than stated are tried.
const TRIED_SENDS_MAX: u64 = 1 << 18;
/// Most chunks per share that are tried, where ranks have shares; and of the message of one root.
const CHUNKS_MAX: (u64, u64) = (16, 64);
/// Sends of all attempts at a schedule, at most.
const ATTEMPTED_SENDS_MAX: u64 = 1 << 21;
/// Most attempts at a schedule.
const ATTEMPTS_MAX: u64 = 32;
/// Ranks from which on translations are looked for.
const TRANSLATED_RANKS_MIN: u32 = 64;

/// Plans a collective in time, by our own method or, of what all get or give, by the published one.
///
/// * **In.** Any network. Shares of any sizes. `size_bytes`: of the message, for which latencies count; none: they do not.
///   Chunks for each share as stated, else a power of two up to `max_chunks` with which the schedule is fastest, 1 in large
///   networks. **Out.** Sends of one chunk each, in steps that begin together.
/// * **Errors.** [`SynthesisError`]: another collective, disconnected, too many sends, stopped.
/// * **Cost.** That of [`best_of`] or [`canopy_tacos::deliver_best`] for each way to unwind switches, of which there are up to nine, and for each number of chunks.
pub(crate) fn plan(
    topology: &Topology,
    request: &SynthesisRequest,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Shape, SynthesisError> {
    let &SynthesisRequest { collective, ref shares, algorithm, limits, size_bytes, seed, .. } = request;
    if algorithm == Algorithm::TacosPublished && phase_actions(collective.kind()).is_none() {
        return Err(SynthesisError::Unsupported { algorithm, collective: collective.kind() });
    }
    // What is for one rank alone is never added up on the way.
    let actions = phase_actions(collective.kind()).unwrap_or(&[Action::Copy]);
    require_reach(topology, collective, shares)?;
    let asked = Asked { topology, collective, shares, algorithm, actions, size_bytes, seed };
    let first = limits.chunks.map_or(1, NonZeroU64::get);
    require_room(asked.sends(first))?;
    let most = match (limits.chunks, limits.max_chunks) {
        (Some(chunks), _) => chunks.get(),
        // What is published says nothing of how many.
        (None, None) if algorithm == Algorithm::TacosPublished => 1,
        (None, max_chunks) => asked.chunks_tried_max().min(max_chunks.map_or(u64::MAX, NonZeroU64::get)),
    };
    let mut best: Option<Planned> = None;
    let all_patterns = match algorithm {
        Algorithm::TacosPublished => vec![Patterns::published(topology)],
        _ => Patterns::all(topology),
    };
    for patterns in all_patterns {
        ask(stop)?;
        let unwound = Unwound::of(topology, &patterns, stop)?;
        let planned = asked.planned(unwound, first, stop)?;
        if best.as_ref().is_none_or(|best| planned.is_faster_than(best)) {
            best = Some(planned);
        }
    }
    let mut best =
        best.ok_or_else(|| SynthesisError::Broken { what: "tacos: no way to unwind switches".to_owned() })?;
    progress.report(Stage::Routes, 1, 2);
    let mut chunks = first * 2;
    while chunks <= most && best.sends_with(chunks) <= TRIED_SENDS_MAX {
        ask(stop)?;
        let planned = asked.planned(best.unwound.clone(), chunks, stop)?;
        if planned.is_faster_than(&best) {
            best = planned;
        }
        chunks *= 2;
    }
    progress.report(Stage::Routes, 2, 2);
    sends::write(best.chunks, &best.unwound, actions.iter().copied().zip(best.phases)).map(Shape::Steps)
}

/// What is asked for.
struct Asked<'a> {
    topology: &'a Topology,
    collective: Collective,
    shares: &'a Shares,
    /// Its own method, or the published one.
    algorithm: Algorithm,
    actions: &'a [Action],
    size_bytes: Option<NonZeroU64>,
    /// Of the first attempt.
    seed: u64,
}

/// A schedule with a number of chunks per share.
struct Planned {
    unwound: Unwound,
    chunks: u64,
    phases: Vec<Sends>,
    clock: Clock,
    /// Ticks of all phases.
    end: u128,
    sends: usize,
}

impl Planned {
    /// Whether a share is through sooner, or with fewer sends.
    fn is_faster_than(&self, other: &Self) -> bool {
        let (own, others) = (self.clock.cross(self.end, &other.clock), other.clock.cross(other.end, &self.clock));
        own < others || own == others && self.sends < other.sends
    }

    /// Sends with so many chunks per share on the same ways.
    const fn sends_with(&self, chunks: u64) -> u64 {
        (self.sends as u64 / self.chunks).saturating_mul(chunks)
    }
}

impl Asked<'_> {
    /// Chunks of all shares with one for each unit of weight, or of the message of a root.
    fn weight(&self) -> u64 {
        let total = match self.collective.root() {
            Some(_) => 1,
            None => self.shares.weight_total(self.topology.rank_count()),
        };
        u64::try_from(total).unwrap_or(u64::MAX)
    }

    /// Sends of a schedule with so many chunks per share; at least so many, where each chunk is for one rank alone.
    fn sends(&self, chunks: u64) -> u64 {
        if self.is_unicast() {
            return self.unicast_weight().saturating_mul(chunks);
        }
        let others = u64::from(self.topology.rank_count()).saturating_sub(1);
        self.weight().saturating_mul(chunks).saturating_mul(others).saturating_mul(self.actions.len() as u64)
    }

    fn chunks_tried_max(&self) -> u64 {
        let most = if self.collective.root().is_some() { CHUNKS_MAX.1 } else { CHUNKS_MAX.0 };
        most.min(TRIED_SENDS_MAX / self.sends(1).max(1)).max(1)
    }

    /// A schedule on unwound switches.
    fn planned(&self, unwound: Unwound, chunks: u64, stop: &dyn Stop) -> Result<Planned, SynthesisError> {
        let layout = ChunkLayout::new(self.collective, self.topology.rank_count(), chunks, self.shares)?;
        let clock = Clock::for_chunks(&unwound, layout.size(), self.size_bytes);
        let network = clock.network(&unwound)?;
        if self.is_unicast() {
            let phase = self.delivered(&network, &layout, stop)?;
            let (end, sends) = (phase.end.into(), phase.sends.len());
            return Ok(Planned { unwound, chunks, phases: vec![phase], clock, end, sends });
        }
        let task = self.task(&layout)?;
        let mut phases = Vec::with_capacity(self.actions.len());
        for action in self.actions {
            let phase = match action {
                Action::Copy => self.copied(&network, &task, stop)?,
                Action::Reduce => {
                    let transposed = network.transposed();
                    self.copied(&transposed, &task, stop)?.reversed(&transposed)
                }
            };
            phases.push(phase);
        }
        let end = phases.iter().map(|phase| u128::from(phase.end)).sum();
        let sends = phases.iter().map(|phase| phase.sends.len()).sum();
        Ok(Planned { unwound, chunks, phases, clock, end, sends })
    }

    /// Which chunks are whose.
    fn task(&self, layout: &ChunkLayout) -> Result<CopyTask, SynthesisError> {
        let ranks = self.topology.rank_count();
        if layout.total() > HOPS_MAX {
            return Err(SynthesisError::TooManyHops { needed: layout.total(), limit: HOPS_MAX });
        }
        let owners = (0..layout.total()).map(|chunk| match self.collective.root() {
            Some(root) => root.number(),
            None => layout.share_of(chunk).number(),
        });
        CopyTask::new(owners.collect(), vec![true; ranks as usize])
            .map_err(|error| SynthesisError::Broken { what: format!("tacos: {error}") })
    }

    /// The best of some attempts: under translations, if there are any, and without them where that is not the best there is.
    fn copied(&self, network: &TimedNetwork, task: &CopyTask, stop: &dyn Stop) -> Result<Sends, SynthesisError> {
        let unreachable = || SynthesisError::Broken { what: "tacos: an unwound network is not connected".to_owned() };
        let bound = lower_bound(network, task).ok_or_else(unreachable)?;
        let sends = u64::from(task.chunk_count()) * u64::from(network.node_count().max(2) - 1);
        let count = (ATTEMPTED_SENDS_MAX / sends.max(1)).clamp(1, ATTEMPTS_MAX);
        let attempts = Attempts { seed: self.seed, count: u32::try_from(count).expect("few"), bound };
        if self.algorithm == Algorithm::TacosPublished {
            return Ok(best_by_requests(network, task, attempts, stop).map_err(refused)?.sends);
        }
        let group = self.group(network, task, stop)?;
        let moved = best_of(network, task, &group, attempts, stop).map_err(refused)?.sends;
        if moved.end <= bound || group.order() == 1 || count == 1 {
            return Ok(moved);
        }
        let free = FreeGroup::trivial(network.node_count());
        let free = best_of(network, task, &free, attempts, stop).map_err(refused)?.sends;
        Ok(if free.end < moved.end { free } else { moved })
    }

    /// Translations of large networks where all ranks have as much.
    fn group(&self, network: &TimedNetwork, task: &CopyTask, stop: &dyn Stop) -> Result<FreeGroup, SynthesisError> {
        let trivial = FreeGroup::trivial(network.node_count());
        let is_even = self.collective.root().is_none() && *self.shares == Shares::Equal;
        if network.node_count() < TRANSLATED_RANKS_MIN || !is_even {
            return Ok(trivial);
        }
        // Links of different times are told apart by what they seem to carry.
        let arcs = network
            .links()
            .iter()
            .map(|link| (link.from, link.to, u128::from(link.occupancy) << 41 | u128::from(link.latency)));
        let boxes = crate::symmetry::boxes(self.topology);
        let found = translations(network.node_count() as usize, arcs, &boxes, stop)?;
        let group =
            found.and_then(|found| FreeGroup::generated_by(network, task, found.image.iter().map(Vec::as_slice)));
        Ok(group.unwrap_or(trivial))
    }
}

fn refused(error: CopyError) -> SynthesisError {
    match error {
        CopyError::Stopped => SynthesisError::Stopped,
        error => SynthesisError::Broken { what: format!("tacos: {error}") },
    }
}
