//! The checks for stepped schedules that use no place twice, send by send, without a transfer graph.
//!
//! Breadth-first broadcasts and schedules composed of them have millions of sends, and nothing intricate: every rank adds
//! what it is sent to its own and passes the sum on once, or is given every chunk once. Whether that is so, and whether it
//! comes to what the collective promises, is seen from the sends in sorted tables. Where it is not so, nothing is said:
//! the transfer graph tells then what is wrong, or that all is right in a less simple way.

mod spans;

use std::sync::atomic::{AtomicU32, Ordering};

use canopy_topology::{Rank, Topology};
use rayon::prelude::*;

use super::error::LoadError;
use super::load::{add_up, busiest};
use super::steps::{seconds_per_chunk, step_cost};
use super::structure::{RouteEnds, route_ends};
use super::{CheckError, Stop, Verdict};
use crate::collective::{Collective, CollectiveKind};
use crate::forest::Action;
use crate::schedule::{Pace, Schedule, Send, Shape, Steps};
use crate::shares::ChunkLayout;
use spans::{Spans, length};

/// Sends of a step from which on several threads look them up.
const PARALLEL_MIN: usize = 1 << 10;

/// Judges a stepped schedule: what [`check`](super::check) says of its transfer graph, if that can be seen from the sends
/// alone; `None` if not, whether the schedule is right or wrong.
///
/// It can be seen of schedules of the following kind, on networks whose switches do no more than forward.
///
/// * **Copies.** Every place that is written is written once, and not where the rank holds the chunk from the start. What a
///   rank sends it holds from the start, or was given in earlier steps. All that is promised is there.
/// * **Pace.** Steps have barriers between them.
/// * **Sums.** A rank sends every chunk on as a sum once, but for those that end with it, and is sent nothing of it in that
///   step or later. So each contribution goes from rank to rank in ever later steps until it comes to the one that does
///   not send the chunk, and that once. In reduce-scatter and reduce that is the rank that is promised the sum.
/// * **Both**, for allreduce, one after the other. All ranks together send each chunk once less than there are ranks: since
///   the last one to be sent a chunk cannot send it on, exactly one keeps it. From there copies go to the others.
///
/// Places that are written once are never written while they are read. So the waits that compiling would find, for what
/// brings or takes away a place's chunks, order everything that has to be; they are counted for
/// [`chain_max`](Verdict::chain_max) alone.
///
/// * **Errors.** [`CheckError::Stopped`] soon after `stop` says so; loads that are too large.
/// * **Cost.** O(sends log sends + carriers + links of all routes), most of it on all threads of the caller's pool; some 50
///   bytes for each send.
pub fn check_steps_until(
    topology: &Topology,
    schedule: &Schedule,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Verdict>, CheckError> {
    let Shape::Steps(steps) = &schedule.shape else { return Ok(None) };
    let (collective, rank_count) = (schedule.collective, topology.rank_count());
    let is_known_root = collective.root().is_none_or(|root| root.number() < rank_count);
    let layout = ChunkLayout::new(collective, rank_count, steps.chunks_per_share, &schedule.shares);
    let Ok(layout) = layout else { return Ok(None) };
    // Lanes go by what each send waits for.
    if steps.pace == Pace::InTurn {
        return Ok(None);
    }
    if !is_known_root || topology.has_capable_switch() || u32::try_from(steps.sends.len()).is_err() {
        return Ok(None);
    }
    let ends: Result<Vec<RouteEnds>, _> = steps.routes.iter().map(|links| route_ends(topology, links)).collect();
    let Ok(ends) = ends else { return Ok(None) };
    let Some(reach) =
        (Form { steps, kind: collective.kind(), layout: &layout, rank_count, ends: &ends }).reach(stop)?
    else {
        return Ok(None);
    };
    let Some(run) = Run::new(steps, collective, &layout, rank_count) else { return Ok(None) };
    let Some(chain_max) = run.chain_max(stop)? else { return Ok(None) };
    if !run.is_complete() {
        return Ok(None);
    }
    verdict(topology, steps, &layout, (chain_max, &reach)).map(Some)
}

/// Loads and figures of sends that have been found right.
fn verdict(
    topology: &Topology,
    steps: &Steps,
    layout: &ChunkLayout,
    (chain_max, reach): (u32, &Reach),
) -> Result<Verdict, CheckError> {
    // At most 2³² sends of less than 2⁶⁴ chunks each.
    let mut route_loads = vec![0_u128; steps.routes.len()];
    for carrier in steps.sends.iter().flat_map(|send| steps.carriers_of(send)) {
        route_loads[carrier.route.index()] += u128::from(carrier.chunk_count);
    }
    let loads = add_up(topology, &steps.routes, route_loads.into_iter())?;
    let size = layout.size();
    let (_, busiest_link) = busiest(topology, &loads, size)?;
    let groups = steps.sends.chunk_by(|a, b| a.step == b.step);
    let groups = groups.map(|sends| (sends[0].step, sends.iter().flat_map(|send| steps.carriers_of(send))));
    let cost = step_cost(topology, size, seconds_per_chunk(topology, &steps.routes, groups)?)?;
    let found = if reach.sums.sends > 0 { reach.sums.chunks } else { reach.copies.chunks };
    let (sums, copies) = (&reach.sums, &reach.copies);
    Ok(Verdict {
        algbw: cost.algbw.clone(),
        busiest_link,
        tree_count: u64::try_from(found).map_err(|_| LoadError::TooManyTrees { found })?,
        // Each send is a tree of its own.
        depth_max: u32::from(sums.sends > 0) + u32::from(copies.sends > 0),
        depth_sum: sums.chunks + copies.chunks,
        links_max: sums.links_max + copies.links_max,
        links_sum: sums.links_sum + copies.links_sum,
        batch_count: steps.sends.len(),
        chain_max,
        steps: Some(cost),
        in_network: None,
        checks: ["structure", "meaning", "load"],
    })
}

/// What is said of all sends of one action together.
#[derive(Clone, Copy, Default)]
struct Lengths {
    sends: usize,
    chunks: u128,
    links_max: u32,
    links_sum: u128,
}

/// The same for both actions.
#[derive(Clone, Copy, Default)]
struct Reach {
    sums: Lengths,
    copies: Lengths,
}

impl Reach {
    fn and(self, other: Self) -> Self {
        let both = |a: Lengths, b: Lengths| Lengths {
            sends: a.sends + b.sends,
            chunks: a.chunks + b.chunks,
            links_max: a.links_max.max(b.links_max),
            links_sum: a.links_sum + b.links_sum,
        };
        Self { sums: both(self.sums, other.sums), copies: both(self.copies, other.copies) }
    }
}

/// Sends one by one.
struct Form<'a> {
    steps: &'a Steps,
    kind: CollectiveKind,
    layout: &'a ChunkLayout,
    rank_count: u32,
    /// By route.
    ends: &'a [RouteEnds],
}

impl Form<'_> {
    /// How far all sends reach; `None` if one is malformed, or they are not in order of their steps.
    fn reach(&self, stop: Stop<'_>) -> Result<Option<Reach>, CheckError> {
        let sends = &self.steps.sends;
        if !sends.par_windows(2).all(|pair| pair[0].step <= pair[1].step) {
            return Ok(None);
        }
        if stop() {
            return Err(CheckError::Stopped);
        }
        let of_all = sends.par_iter().map(|send| self.of_send(send));
        Ok(of_all.try_reduce(Reach::default, |a, b| Some(a.and(b))))
    }

    fn of_send(&self, send: &Send) -> Option<Reach> {
        let Send { action, from, to, ref chunks, ref carriers, .. } = *send;
        let exist = from.number() < self.rank_count && to.number() < self.rank_count && from != to;
        let within = chunks.start < chunks.end && chunks.end <= self.layout.total();
        if !exist || !within {
            return None;
        }
        let share = self.layout.share_of(chunks.start);
        let limit = match self.kind {
            CollectiveKind::AllToAll => self.layout.chunks_between(share, self.layout.destination_of(chunks.start)).end,
            _ => self.layout.chunks_of(share).end,
        };
        let carriers = self.steps.carriers.get(carriers.start as usize..carriers.end as usize)?;
        let (mut sum, mut links_max) = (0_u128, 0);
        for carrier in carriers {
            let &(start, end, links) = self.ends.get(carrier.route.index())?;
            if (start, end) != (from.node(), to.node()) || carrier.chunk_count == 0 {
                return None;
            }
            sum += u128::from(carrier.chunk_count);
            links_max = links_max.max(links);
        }
        let count = u128::from(length(chunks));
        if chunks.end > limit || sum != count {
            return None;
        }
        let lengths = Lengths { sends: 1, chunks: count, links_max, links_sum: count * u128::from(links_max) };
        Some(match action {
            Action::Reduce => Reach { sums: lengths, copies: Lengths::default() },
            Action::Copy => Reach { sums: Lengths::default(), copies: lengths },
        })
    }
}

/// Well-formed sends, by the places they use.
struct Run<'a> {
    sends: &'a [Send],
    collective: Collective,
    layout: &'a ChunkLayout,
    rank_count: u32,
    /// Whether sums come before the copies.
    has_sums: bool,
    has_copies: bool,
    /// Reductions, by sender: chunks of one rank do not overlap.
    left: Spans,
    /// Copies, by receiver: likewise.
    arrived: Spans,
    /// Allreduce: reductions whose chunks their receivers do not send on, by receiver. These overlap.
    kept: Spans,
}

impl<'a> Run<'a> {
    /// `None` unless sums come before copies, the collective has the ones or the others or both, and no place is sent on by
    /// two sums or written by two copies.
    fn new(steps: &'a Steps, collective: Collective, layout: &'a ChunkLayout, rank_count: u32) -> Option<Self> {
        let sends = &steps.sends[..];
        let first_copy = sends.partition_point(|send| send.action == Action::Reduce);
        let (sums, copies) = sends.split_at(first_copy);
        // Whatever the halves of an unsorted list are: each must have one action.
        let is_apart = sums.par_iter().all(|send| send.action == Action::Reduce)
            && copies.par_iter().all(|send| send.action == Action::Copy)
            && sums.last().zip(copies.first()).is_none_or(|(sum, copy)| sum.step < copy.step);
        let (has_sums, has_copies) = (!sums.is_empty(), !copies.is_empty());
        let expected = match collective.kind() {
            CollectiveKind::Allreduce => (true, true),
            CollectiveKind::ReduceScatter | CollectiveKind::Reduce => (true, false),
            _ => (false, true),
        };
        if !is_apart || (has_sums, has_copies) != expected {
            return None;
        }
        let left = Spans::new(sends, 0..first_copy, rank_count, |send| send.from);
        let arrived = Spans::new(sends, first_copy..sends.len(), rank_count, |send| send.to);
        if !left.are_apart() || !arrived.are_apart() {
            return None;
        }
        let kept = match has_sums && has_copies {
            true => {
                let stays = |send: &Send| left.over(send.to, &send.chunks).is_empty();
                Spans::of_some(sends, 0..first_copy, rank_count, |send| send.to, stays)
            }
            false => Spans::new(sends, 0..0, rank_count, |send| send.to),
        };
        Some(Self { sends, collective, layout, rank_count, has_sums, has_copies, left, arrived, kept })
    }

    /// Sends in the longest chain of which each waits for the one before; `None` if one sends what has not come.
    fn chain_max(&self, stop: Stop<'_>) -> Result<Option<u32>, CheckError> {
        // By send: the longest chain that ends with it.
        let mut chains: Vec<u32> = Vec::with_capacity(self.sends.len());
        // By reduction: the longest chain that ends with one into its sender.
        let before: Vec<AtomicU32> =
            self.sends.iter().take_while(|send| send.action == Action::Reduce).map(|_| AtomicU32::new(0)).collect();
        for group in self.sends.chunk_by(|a, b| a.step == b.step) {
            if stop() {
                return Err(CheckError::Stopped);
            }
            let first = chains.len();
            let chain = |(position, send): (usize, &Send)| match send.action {
                Action::Reduce => self.sum_after(send, before[first + position].load(Ordering::Relaxed), &before),
                Action::Copy => self.copy_after(send, &chains),
            };
            let found: Option<Vec<u32>> = match group.len() < PARALLEL_MIN {
                true => group.iter().enumerate().map(chain).collect(),
                false => group.par_iter().enumerate().map(chain).collect(),
            };
            let Some(found) = found else { return Ok(None) };
            chains.extend(found);
        }
        Ok(Some(chains.into_par_iter().max().unwrap_or(0)))
    }

    /// The chain that ends with a reduction, whose sender's sums end the longest one of `longest`; told to what the receiver
    /// sends on. Every rank is sent a chunk before it sends it, and all of what is not to stay is sent.
    fn sum_after(&self, send: &Send, longest: u32, before: &[AtomicU32]) -> Option<u32> {
        let chain = longest + 1;
        let mut covered = 0;
        for next in self.left.over(send.to, &send.chunks) {
            if next.step <= send.step {
                return None;
            }
            covered += next.overlap(&send.chunks);
            before[next.send as usize].fetch_max(chain, Ordering::Relaxed);
        }
        (covered == length(&send.chunks) || covered == 0).then_some(chain)
    }

    /// The chain that ends with a copy.
    fn copy_after(&self, send: &Send, chains: &[u32]) -> Option<u32> {
        let Send { step, from, to, ref chunks, .. } = *send;
        let (mut covered, mut longest) = (0, 0);
        for span in self.arrived.over(from, chunks) {
            if span.step >= step {
                return None;
            }
            covered += span.overlap(chunks);
            longest = longest.max(chains[span.send as usize]);
        }
        if covered != length(chunks) && (covered > 0 || !self.begins_with(from, chunks.start)) {
            return None;
        }
        if self.has_sums {
            let is_root = covered == 0;
            if is_root && !self.left.over(from, chunks).is_empty() {
                return None;
            }
            let taken = is_root.then(|| self.kept.touching(from, chunks)).into_iter().flatten();
            let left = self.left.over(to, chunks);
            if left.iter().map(|span| span.overlap(chunks)).sum::<u64>() != length(chunks) {
                return None;
            }
            longest = taken.chain(left).map(|span| chains[span.send as usize]).fold(longest, u32::max);
        }
        Some(longest + 1)
    }

    /// Whether copies of a chunk may begin at a rank: of what it holds at the start, or, after sums, whatever it keeps.
    fn begins_with(&self, rank: Rank, chunk: u64) -> bool {
        self.has_sums || self.initial(rank).contains(&chunk)
    }

    /// What a rank holds at the start, where each chunk is one rank's.
    fn initial(&self, rank: Rank) -> std::ops::Range<u64> {
        match (self.collective.kind(), self.collective.root()) {
            (CollectiveKind::Scatter, Some(root)) if rank == root => 0..self.layout.total(),
            (CollectiveKind::Scatter, _) => 0..0,
            _ => self.layout.chunks_of(rank),
        }
    }

    /// Whether every rank ends with what it is promised, and is given nothing that it holds.
    fn is_complete(&self) -> bool {
        let ranks = || (0..self.rank_count).into_par_iter().map(Rank::new);
        if self.has_sums && self.has_copies {
            let sent = ranks().map(|rank| u128::from(self.left.length(rank))).sum::<u128>();
            let others = u128::from(self.rank_count) - 1;
            // Whatever is copied to a rank, it has sent on before.
            return sent == others * u128::from(self.layout.total())
                && ranks().all(|rank| self.left.length(rank) == self.arrived.length(rank));
        }
        ranks().all(|rank| if self.has_sums { self.has_summed(rank) } else { self.is_served(rank) })
    }

    /// Sums: a rank has sent on all but what it is promised, which it keeps.
    fn has_summed(&self, rank: Rank) -> bool {
        let own = self.layout.chunks_of(rank);
        let is_kept = own.is_empty() || self.left.over(rank, &own).is_empty();
        is_kept && self.left.length(rank) == self.layout.total() - length(&own)
    }

    /// Copies: a rank has been given all that it is promised and did not hold, and nothing that it held.
    fn is_served(&self, rank: Rank) -> bool {
        let initial = self.initial(rank);
        if !initial.is_empty() && !self.arrived.over(rank, &initial).is_empty() {
            return false;
        }
        let is_there = |chunks: std::ops::Range<u64>| {
            let held = initial.start.max(chunks.start)..initial.end.min(chunks.end);
            let given = self.arrived.over(rank, &chunks).iter().map(|span| span.overlap(&chunks)).sum::<u64>();
            given + length(&held) == length(&chunks)
        };
        let everything = 0..self.layout.total();
        match (self.collective.kind(), self.collective.root()) {
            (CollectiveKind::Allgather | CollectiveKind::Broadcast, _) => is_there(everything),
            (CollectiveKind::Gather, Some(root)) => rank != root || is_there(everything),
            (CollectiveKind::Scatter, _) => is_there(self.layout.chunks_of(rank)),
            (CollectiveKind::AllToAll, _) => {
                let mut others = (0..self.rank_count).map(Rank::new).filter(|&other| other != rank);
                others.all(|source| is_there(self.layout.chunks_between(source, rank)))
            }
            _ => false,
        }
    }
}
