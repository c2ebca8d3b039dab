//! `tacos`: which chunk passes which link when, decided moment by moment on links that take their time.
//!
//! Switches are unwound into links between ranks first (`unwound`), in several ways of which the fastest is kept, and wide links into
//! parallel ones where that is faster; times become whole ticks (`times`); [`canopy_tacos`] decides; and what it decides is written down
//! as steps (`sends`). Sums are copies on the network turned around, run backwards; what is for one rank alone takes ways chosen before
//! (`unicast`).
//!
//! Source: Won et al., *TACOS*, for the time-expanded network and for switches that are unwound; the method is our own.

mod in_steps;
pub(crate) mod joint;
pub(crate) mod mended;
mod pace;
mod planned;
mod proven;
mod rows;
pub(crate) mod sends;
mod starts;
#[cfg(test)]
mod tests;
pub(crate) mod times;
mod unicast;
pub(crate) mod unwound;
mod way;

use std::num::NonZeroU64;

use canopy_optimize::Stop;
use canopy_schedule::{Action, ChunkLayout, Collective, Shape, Shares, Steps};
use canopy_tacos::{
    Attempt, Attempts, CopyError, CopyTask, FreeGroup, Sends, TimedNetwork, best_of, delivery_bound, lower_bound,
};
use canopy_topology::Topology;
use rayon::prelude::*;

use crate::algorithm::{SynthesisRequest, Synthesized, Task};
use crate::error::SynthesisError;
use crate::parts::{HOPS_MAX, phase_actions, require_room};
use crate::progress::Stage;
use crate::reach::{ask, require_reach};
use planned::{Links, Planned, Timed, TransferTask};
pub(crate) use rows::{TACOS, TACOS_ILP};
use times::Clock;
use unwound::Patterns;
use way::Way;

/// Sends up to which more chunks per share than stated are tried.
const TRIED_SENDS_MAX: u64 = 1 << 18;
/// Most chunks per share that are tried, where ranks have shares; and of the message of one root.
const CHUNKS_MAX: (u64, u64) = (16, 64);
/// Sends of all attempts at a schedule, at most.
const ATTEMPTED_SENDS_MAX: u64 = 1 << 21;
/// Sends up to which any way to unwind is tried that may be better.
const QUICK_SENDS_MAX: u64 = 1 << 17;
/// Beyond that, it must save one part of so many at least.
const GAIN_MIN: u128 = 128;
/// Sends of a phase up to which more chunks are tried where translations divide the work by as much as `MOVED_MIN`.
const MOVED_SENDS_MAX: u64 = 1 << 19;
const MOVED_MIN: usize = 8;
/// The same of attempts without translations, where those with them come before.
const UNMOVED_SENDS_MAX: u64 = 1 << 19;
/// Most attempts at a schedule.
const ATTEMPTS_MAX: u64 = 32;

/// A search for copies by another method than ours.
pub type CopySearch = fn(&TimedNetwork, &CopyTask, Attempts, &dyn Stop) -> Result<Attempt, CopyError>;

/// How schedules are found.
#[derive(Clone, Copy, Debug)]
enum Method {
    /// Our own.
    Own,
    /// The same, and proofs.
    Proven,
    /// The published one.
    Published(CopySearch),
}

/// Plans what all get or give in time by another search: on switches unwound as in the published experiments, one chunk for each share unless
/// told otherwise.
///
/// # Errors
/// As of `tacos`; another collective.
pub fn plan_by(task: &Task<'_>, search: CopySearch) -> Result<Synthesized, SynthesisError> {
    let kind = task.request.collective.kind();
    if phase_actions(kind).is_none() {
        return Err(task.algorithm.unsupported(kind));
    }
    plan(task, Method::Published(search))
}

/// Plans a collective in time, by our own method or, of what all get or give, by the published one.
///
/// * **In.** Any network. Shares of any sizes. `size_bytes`: of the message, for which latencies count; none: they do not.
///   Chunks for each share as stated, else a power of two up to `max_chunks` with which the schedule is fastest, 1 in large
///   networks. **Out.** Sends of one chunk each, in steps that begin together.
/// * **Errors.** [`SynthesisError`]: another collective, disconnected, too many sends, stopped.
/// * **Cost.** That of one attempt ([`best_of`], [`canopy_tacos::deliver_best`]) for each way to unwind a network, of which there are
///   up to nine, and for each number of chunks, and of several for the best.
fn plan(task: &Task<'_>, method: Method) -> Result<Synthesized, SynthesisError> {
    let &Task { topology, request, stop, progress, .. } = task;
    let limits = request.limits;
    let asked = Asked::new(topology, request, method)?;
    let first = limits.chunks.map_or(1, NonZeroU64::get);
    let stated_max = limits.max_chunks.map_or(u64::MAX, NonZeroU64::get);
    let most = match limits.chunks {
        Some(chunks) => chunks.get(),
        // What is published says nothing of how many.
        None if matches!(method, Method::Published(_)) && limits.max_chunks.is_none() => 1,
        None => asked.chunks_tried_max().min(stated_max),
    };
    let (way, mut best) = asked.best_way(first, stop)?;
    progress.report(Stage::Routes, 1, 3);
    let mut chunks = first.saturating_mul(2);
    loop {
        ask(stop)?;
        let is_small = chunks <= most && !(asked.is_unicast() && best.sends_with(chunks) > TRIED_SENDS_MAX);
        // Translations divide the work, so that large networks can have more where it helps.
        let may_have_more = limits.chunks.is_none() && matches!(method, Method::Own) && chunks <= stated_max;
        let is_tried = is_small || may_have_more && asked.is_worth_it(chunks, &best, &way)?;
        if !is_tried {
            break;
        }
        if let Some(planned) = asked.planned(&way, chunks, Some(&best), stop)? {
            best = planned;
        }
        chunks = chunks.saturating_mul(2);
    }
    progress.report(Stage::Routes, 2, 3);
    let best = asked.improve(&way, best, stop)?;
    progress.report(Stage::Routes, 3, 3);
    Ok(task.planned(Shape::Steps(asked.written(&way, best)?)))
}

/// What is asked for.
struct Asked<'a> {
    topology: &'a Topology,
    collective: Collective,
    shares: &'a Shares,
    method: Method,
    actions: &'a [Action],
    size_bytes: Option<NonZeroU64>,
    /// Of the first attempt.
    seed: u64,
}

impl<'a> Asked<'a> {
    /// What a request asks for, if it can be had.
    ///
    /// # Errors
    /// Disconnected, too many sends.
    fn new(topology: &'a Topology, request: &'a SynthesisRequest, method: Method) -> Result<Self, SynthesisError> {
        let &SynthesisRequest { collective, ref shares, limits, size_bytes, seed, .. } = request;
        // What is for one rank alone is never added up on the way.
        let actions = phase_actions(collective.kind()).unwrap_or(&[Action::Copy]);
        require_reach(topology, collective, shares)?;
        let asked = Self { topology, collective, shares, method, actions, size_bytes, seed };
        require_room(asked.sends(limits.chunks.map_or(1, NonZeroU64::get)))?;
        Ok(asked)
    }
}

impl Asked<'_> {
    /// The best way to unwind a network, by one attempt for each that may be it: first what can be fastest, so that others need none.
    fn best_way(&self, chunks: u64, stop: &dyn Stop) -> Result<(Way, Planned), SynthesisError> {
        let all = match self.method {
            Method::Published(_) => vec![Patterns::published(self.topology)],
            // What is proven of parallel links is not proven of the wide ones that they stand for.
            Method::Proven => Patterns::all(self.topology),
            // A wide link brings what is for one rank alone sooner than its parts do.
            _ if self.is_unicast() => Patterns::all(self.topology),
            _ => Patterns::with_parallel(self.topology),
        };
        let mut best: Option<(Way, Planned)> = None;
        for (mut way, timed) in self.by_bound(&all, chunks, stop)? {
            ask(stop)?;
            let other = best.as_ref().map(|(_, best)| best);
            if !self.is_worth_trying(&timed, chunks, other) {
                continue;
            }
            if self.is_even() {
                way.find_translations(self.topology, stop)?;
            }
            if let Some(planned) = self.attempted(&way, chunks, timed, other, stop)? {
                best = Some((way, planned));
            }
        }
        best.ok_or_else(|| broken("no way to unwind switches"))
    }

    /// Ways to unwind with the times of their links, those of the least bounds first: but before them, those whose links are alike and whose
    /// bounds are nearly as little, as schedules mostly end at these.
    fn by_bound(&self, all: &[Patterns], chunks: u64, stop: &dyn Stop) -> Result<Vec<(Way, Timed)>, SynthesisError> {
        let way = |patterns: &Patterns| {
            ask(stop)?;
            let way = Way::of(self.topology, patterns, stop)?;
            let timed = self.timed(&way, chunks)?;
            Ok((way, timed))
        };
        let mut ways = all.par_iter().map(way).collect::<Result<Vec<_>, SynthesisError>>()?;
        ways.sort_by(|(_, timed), (_, other)| {
            let (own, others) =
                timed.links.clock.compared(self.bound(&timed.links), (&other.links.clock, self.bound(&other.links)));
            own.cmp(&others)
        });
        let Some((_, least)) = ways.first() else { return Ok(ways) };
        let (clock, least) = (least.links.clock.clone(), self.bound(&least.links));
        ways.sort_by_cached_key(|(_, timed)| {
            let (own, least) = timed.links.clock.compared(self.bound(&timed.links), (&clock, least));
            !(timed.links.are_alike() && own - own / GAIN_MIN <= least)
        });
        Ok(ways)
    }

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

    /// Whether all ranks have as much.
    fn is_even(&self) -> bool {
        self.collective.root().is_none() && *self.shares == Shares::Equal && !self.is_unicast()
    }

    /// Whether more chunks may save enough, on networks whose translations divide the work.
    fn is_worth_it(&self, chunks: u64, best: &Planned, way: &Way) -> Result<bool, SynthesisError> {
        let sends = self.sends(chunks) / self.actions.len() as u64;
        if chunks > CHUNKS_MAX.0 || way.group.order() < MOVED_MIN || sends > MOVED_SENDS_MAX {
            return Ok(false);
        }
        let timed = self.timed(way, chunks)?;
        Ok(timed.may_gain(self.bound(&timed.links), best, GAIN_MIN))
    }

    /// A schedule on unwound switches, if it is faster than another.
    fn planned(
        &self,
        way: &Way,
        chunks: u64,
        other: Option<&Planned>,
        stop: &dyn Stop,
    ) -> Result<Option<Planned>, SynthesisError> {
        let timed = self.timed(way, chunks)?;
        if !self.is_worth_trying(&timed, chunks, other) {
            return Ok(None);
        }
        self.attempted(way, chunks, timed, other, stop)
    }

    /// Whether a schedule may be faster than another, by what its links take.
    fn is_worth_trying(&self, timed: &Timed, chunks: u64, other: Option<&Planned>) -> bool {
        // What is hardly better at its best is not begun where it takes long.
        let gain = if self.sends(chunks) > QUICK_SENDS_MAX { GAIN_MIN } else { 0 };
        other.is_none_or(|other| timed.may_gain(self.bound(&timed.links), other, gain))
    }

    /// One attempt, if it is faster than another schedule; where there are latencies, the better of one with them and one without.
    fn attempted(
        &self,
        way: &Way,
        chunks: u64,
        timed: Timed,
        other: Option<&Planned>,
        stop: &dyn Stop,
    ) -> Result<Option<Planned>, SynthesisError> {
        let planned = match self.links_in_steps(way, chunks, &timed)? {
            None => {
                let found = self.searched(way, &timed.links, &timed.transfers, stop)?;
                Planned::new(chunks, timed, found, self.actions.len())
            }
            Some(in_steps) => {
                let found = self.searched(way, &in_steps, &timed.transfers, stop)?;
                let planned = self.planned_in_steps(way, chunks, timed, in_steps, found, stop)?;
                match self.is_settled(way, &planned) {
                    true => planned,
                    false => self.better(way, planned, stop)?,
                }
            }
        };
        Ok(Some(planned).filter(|planned| other.is_none_or(|other| planned.is_faster_than(other))))
    }

    /// One attempt at each search.
    fn searched(
        &self,
        way: &Way,
        links: &Links,
        transfers: &TransferTask,
        stop: &dyn Stop,
    ) -> Result<Vec<Sends>, SynthesisError> {
        let searches = self.searches(way).iter();
        searches.map(|&search| self.found(way, links, transfers, search, None, stop)).collect()
    }

    /// What all phases together take at least.
    fn bound(&self, links: &Links) -> u128 {
        self.actions.iter().map(|&action| u128::from(links.bound(action))).sum()
    }

    /// What is searched for: copies along the network, and against it, of which one may do for both.
    const fn searches(&self, way: &Way) -> &[Action] {
        if way.transposition.is_some() { &[Action::Copy] } else { self.actions }
    }

    /// Tries more seeds where a schedule is not as fast as can be.
    fn improve(&self, way: &Way, best: Planned, stop: &dyn Stop) -> Result<Planned, SynthesisError> {
        let Planned { chunks, timed, in_steps, mut found, .. } = best;
        let links = in_steps.as_ref().unwrap_or(&timed.links);
        for (&search, found) in self.searches(way).iter().zip(&mut found) {
            // Of large ones there is time for one attempt.
            let is_large = found.sends.len() as u64 > ATTEMPTED_SENDS_MAX / 2;
            if !is_large && found.end > links.bound(search) {
                let known = std::mem::take(found);
                *found = self.found(way, links, &timed.transfers, search, Some(known), stop)?;
            }
        }
        match in_steps {
            Some(in_steps) => self.planned_in_steps(way, chunks, timed, in_steps, found, stop),
            None => Ok(Planned::new(chunks, timed, found, self.actions.len())),
        }
    }

    /// Chunks of a number per share.
    fn layout(&self, chunks: u64) -> Result<ChunkLayout, SynthesisError> {
        Ok(ChunkLayout::new(self.collective, self.topology.rank_count(), chunks, self.shares)?)
    }

    /// What is to be brought where in chunks of a number per share, and what links take for these.
    fn timed(&self, way: &Way, chunks: u64) -> Result<Timed, SynthesisError> {
        let (layout, ranks) = (self.layout(chunks)?, self.topology.rank_count());
        let transfers = match self.is_unicast() {
            true => {
                let (demands, chunks) = unicast::demands(self.collective, self.shares, ranks, &layout)?;
                TransferTask::Deliveries(demands, chunks)
            }
            false => TransferTask::Copies(copy_task(self.collective, ranks, &layout)?),
        };
        Ok(Timed { links: self.links(way, &layout, self.size_bytes, &transfers)?, transfers })
    }

    /// What links take, with their latencies where the size of the message is stated.
    fn links(
        &self,
        way: &Way,
        layout: &ChunkLayout,
        size_bytes: Option<NonZeroU64>,
        transfers: &TransferTask,
    ) -> Result<Links, SynthesisError> {
        let clock = Clock::for_chunks(&way.unwound, layout.size(), size_bytes);
        let network = clock.network(&way.unwound)?;
        let unreachable = || broken("an unwound network is not connected");
        let transposed = network.transposed();
        let bounds = match transfers {
            TransferTask::Deliveries(demands, _) => (delivery_bound(&network, demands).ok_or_else(unreachable)?, 0),
            TransferTask::Copies(task) => {
                let bound = |network| lower_bound(network, task).ok_or_else(unreachable);
                let needs = |action| self.actions.contains(&action);
                let along = if needs(Action::Copy) || way.transposition.is_some() { bound(&network)? } else { 0 };
                let back = match way.transposition {
                    Some(_) => along,
                    None if needs(Action::Reduce) => bound(&transposed)?,
                    None => 0,
                };
                (along, back)
            }
        };
        Ok(Links { clock, network, transposed, bounds })
    }

    /// One attempt, or where its schedule is known, the best of as many as there is time for.
    fn found(
        &self,
        way: &Way,
        links: &Links,
        transfers: &TransferTask,
        search: Action,
        known: Option<Sends>,
        stop: &dyn Stop,
    ) -> Result<Sends, SynthesisError> {
        let (network, bound) = (links.network(search), links.bound(search));
        match transfers {
            TransferTask::Copies(task) => self.copied(network, task, &way.group, known, bound, stop),
            TransferTask::Deliveries(demands, _) => self.delivered(network, demands, known, bound, stop),
        }
    }

    /// The best of some attempts: under translations, if there are any, and without them where that is not the best there is.
    fn copied(
        &self,
        network: &TimedNetwork,
        task: &CopyTask,
        group: &FreeGroup,
        known: Option<Sends>,
        bound: u64,
        stop: &dyn Stop,
    ) -> Result<Sends, SynthesisError> {
        let sends = u64::from(task.chunk_count()) * u64::from(network.node_count().max(2) - 1);
        let is_often = known.is_some();
        let attempted = |group: &FreeGroup, sends_max: u64, known: Option<Sends>| {
            let count = if is_often { (sends_max / sends.max(1)).clamp(1, ATTEMPTS_MAX) } else { 1 };
            let attempts = Attempts { seed: self.seed, count: u32::try_from(count).expect("few"), bound, known };
            if let Method::Published(search) = self.method {
                return search(network, task, attempts, stop).map(|attempt| attempt.sends).map_err(refused);
            }
            best_of(network, task, group, attempts, stop).map(|attempt| attempt.sends).map_err(refused)
        };
        let moved = attempted(group, ATTEMPTED_SENDS_MAX, known)?;
        if moved.end <= bound || group.order() == 1 || !is_often || sends > UNMOVED_SENDS_MAX / 2 {
            return Ok(moved);
        }
        let free = attempted(&FreeGroup::trivial(network.node_count()), UNMOVED_SENDS_MAX, None)?;
        Ok(if free.end < moved.end { free } else { moved })
    }

    /// Phases as steps, sums backwards. What was numbered by deliveries is numbered by chunks of the schedule then.
    fn written(&self, way: &Way, planned: Planned) -> Result<Steps, SynthesisError> {
        let Planned { chunks, timed, in_steps, mut found, .. } = planned;
        let links = in_steps.as_ref().unwrap_or(&timed.links);
        if let TransferTask::Deliveries(_, numbers) = &timed.transfers {
            let sends = found.iter_mut().flat_map(|found| &mut found.sends);
            sends.for_each(|sent| sent.chunk = numbers[sent.chunk as usize]);
        }
        let mut phases = match (&way.transposition, &timed.transfers) {
            (Some(transposition), TransferTask::Copies(task)) if self.actions.contains(&Action::Reduce) => {
                let copies = found.pop().ok_or_else(|| broken("no search was made"))?;
                let phase = |action: &Action| match action {
                    Action::Copy => copies.clone(),
                    Action::Reduce => transposition.copies(task, &copies),
                };
                self.actions.iter().map(phase).collect()
            }
            _ => found,
        };
        let sums = self.actions.iter().zip(&mut phases).filter(|(action, _)| **action == Action::Reduce);
        sums.for_each(|(_, sums)| *sums = sums.reversed(&links.transposed));
        let pace = pace::pace(self.topology, &way.unwound, &links.clock, &links.network, &phases);
        sends::write(chunks, pace, &way.unwound, self.actions.iter().copied().zip(phases))
    }
}

/// Which chunks are whose.
fn copy_task(collective: Collective, ranks: u32, layout: &ChunkLayout) -> Result<CopyTask, SynthesisError> {
    if layout.total() > HOPS_MAX {
        return Err(SynthesisError::TooManyHops { needed: layout.total(), limit: HOPS_MAX });
    }
    let owners = (0..layout.total()).map(|chunk| match collective.root() {
        Some(root) => root.number(),
        None => layout.share_of(chunk).number(),
    });
    CopyTask::new(owners.collect(), vec![true; ranks as usize]).map_err(broken)
}

fn refused(error: CopyError) -> SynthesisError {
    match error {
        CopyError::Stopped => SynthesisError::Stopped,
        error => broken(error),
    }
}

fn broken(error: impl std::fmt::Display) -> SynthesisError {
    SynthesisError::Broken { what: format!("tacos: {error}") }
}
