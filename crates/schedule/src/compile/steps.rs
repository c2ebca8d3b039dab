//! Stepped schedules: one transfer per send, ordered by what the data needs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use canopy_topology::{Rank, Topology};
use rayon::prelude::*;

use super::error::{CompileError, SendFault};
use super::once::Once;
use super::places::{Access, Exhausted, Places};
use super::{Stop, TRANSFERS_MAX, ask};
use crate::collective::CollectiveKind;
use crate::forest::Action;
use crate::schedule::{Schedule, Send, Steps};
use crate::shares::ChunkLayout;
use crate::transfer::{Batch, Transfer, TransferGraph};

/// Most segments, dependencies and pairs of sends looked at: about a second's worth, and a gibibyte of them.
const WORK_MAX: u64 = 1 << 27;
/// Sends that one thread looks up at a time, and all together.
const BLOCK: usize = 1 << 14;
const ROUND: usize = 1 << 22;

/// The transfers of a stepped schedule.
///
/// **Dependencies.** A send waits for what wrote its chunks at its sender, and a receiver's place is written after
/// everything that reads what it held; reductions into one place may come in any order. In one step every place is read
/// before it is written, so sends are put in an order that allows it.
///
/// O((sends + dependencies) · log sends), where ranges do not overlap in part.
pub(super) fn compile_steps(
    topology: &Topology,
    schedule: &Schedule,
    steps: &Steps,
    layout: &ChunkLayout,
    stop: Stop<'_>,
) -> Result<TransferGraph, CompileError> {
    let (found, rank_count) = (steps.sends.len(), topology.rank_count());
    if found > TRANSFERS_MAX {
        return Err(CompileError::TooManySends { found, limit: TRANSFERS_MAX });
    }
    let mut before = 0;
    for (index, send) in steps.sends.iter().enumerate() {
        ask(stop)?;
        let fault = |source| CompileError::Send { send: index, source };
        if send.step < before {
            return Err(fault(SendFault::StepOrder { found: send.step, before }));
        }
        before = send.step;
        require(steps, send, schedule.collective.kind(), rank_count, layout).map_err(fault)?;
    }
    let arranged = arrange(steps, rank_count, stop)?;
    Ok(TransferGraph {
        // Sends are reordered within their steps only.
        steps: steps.sends.iter().map(|send| send.step).collect(),
        pace: steps.pace,
        collective: schedule.collective,
        rank_count,
        chunks_per_share: steps.chunks_per_share,
        shares: schedule.shares.clone(),
        routes: steps.routes.clone(),
        carriers: steps.carriers.clone(),
        dependencies: arranged.dependencies,
        batches: arranged.batches,
        transfers: arranged.transfers,
    })
}

/// Sends in an order in which they can be made, and what each waits for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arranged {
    pub(super) dependencies: Vec<u32>,
    pub(super) batches: Vec<Batch>,
    pub(super) transfers: Vec<Transfer>,
}

/// Arranges well-formed sends.
pub(super) fn arrange(steps: &Steps, rank_count: u32, stop: Stop<'_>) -> Result<Arranged, CompileError> {
    let mut builder = Builder::new(steps, rank_count);
    match builder.add_once(rank_count, stop)? {
        true => Ok(builder.finish()),
        false => arrange_by_places(steps, rank_count, stop),
    }
}

/// [`arrange`] for any schedule, by a record of what happens to every place.
pub(super) fn arrange_by_places(steps: &Steps, rank_count: u32, stop: Stop<'_>) -> Result<Arranged, CompileError> {
    let mut builder = Builder::new(steps, rank_count);
    let mut start = 0;
    for sends in steps.sends.chunk_by(|a, b| a.step == b.step) {
        builder.add_step(start..start + sends.len(), stop)?;
        start += sends.len();
    }
    Ok(builder.finish())
}

/// Whether a send fits the collective and the tables, by itself.
fn require(
    steps: &Steps,
    send: &Send,
    kind: CollectiveKind,
    rank_count: u32,
    layout: &ChunkLayout,
) -> Result<(), SendFault> {
    if let Some(rank) = [send.from, send.to].into_iter().find(|rank| rank.number() >= rank_count) {
        return Err(SendFault::UnknownRank { rank: rank.number(), rank_count });
    }
    if send.from == send.to {
        return Err(SendFault::ToItself { rank: send.from.number() });
    }
    let Range { start, end } = send.chunks;
    if start >= end || end > layout.total() {
        return Err(SendFault::ChunkRange { start, end, total: layout.total() });
    }
    let share = layout.share_of(start);
    let limit = match kind {
        CollectiveKind::AllToAll => layout.chunks_between(share, layout.destination_of(start)).end,
        _ => layout.chunks_of(share).end,
    };
    if end > limit {
        return Err(SendFault::AcrossShares { start, end, limit });
    }
    let carriers = steps.carriers.get(send.carriers.start as usize..send.carriers.end as usize);
    carriers.filter(|carriers| !carriers.is_empty()).map(|_| ()).ok_or(SendFault::NoCarriers)
}

struct Builder<'a> {
    steps: &'a Steps,
    places: Places,
    /// For each rank, the dependencies of its latest transfer, as the next one often has the same.
    latest: Vec<Range<u32>>,
    /// Buffer.
    waits: Vec<u32>,
    dependencies: Vec<u32>,
    batches: Vec<Batch>,
    transfers: Vec<Transfer>,
}

impl<'a> Builder<'a> {
    fn new(steps: &'a Steps, rank_count: u32) -> Self {
        let found = steps.sends.len();
        Self {
            steps,
            places: Places::new(rank_count, WORK_MAX),
            latest: vec![0..0; rank_count as usize],
            waits: Vec::new(),
            dependencies: Vec::new(),
            batches: Vec::with_capacity(found),
            transfers: Vec::with_capacity(found),
        }
    }

    fn finish(self) -> Arranged {
        Arranged { dependencies: self.dependencies, batches: self.batches, transfers: self.transfers }
    }

    /// Adds all sends in their order, if no place is used twice; else it gives up, somewhere on the way.
    fn add_once(&mut self, rank_count: u32, stop: Stop<'_>) -> Result<bool, CompileError> {
        let Some(once) = Once::of(self.steps, rank_count) else { return Ok(false) };
        let sends = self.steps.sends.len();
        let mut budget = WORK_MAX;
        // Looked up in parallel, some millions at a time, and written down in their order.
        for start in (0..sends).step_by(ROUND) {
            let round = start..sends.min(start + ROUND);
            let blocks = (0..round.len().div_ceil(BLOCK)).into_par_iter();
            let found: Vec<Option<Found>> = blocks
                .map(|block| {
                    let first = round.start + block * BLOCK;
                    Found::of(&once, first..round.end.min(first + BLOCK), stop)
                })
                .collect::<Result<_, CompileError>>()?;
            for (block, found) in found.into_iter().enumerate() {
                let Some(found) = found else { return Ok(false) };
                match budget.checked_sub(found.looked_at) {
                    Some(left) => budget = left,
                    None => return Ok(false),
                }
                let mut before = 0;
                for (send, &end) in (round.start + block * BLOCK..).zip(&found.ends) {
                    self.waits.clear();
                    self.waits.extend_from_slice(&found.waits[before..end]);
                    before = end;
                    self.push(send);
                }
            }
        }
        Ok(true)
    }

    /// Adds the sends of one step, which have been found well-formed.
    fn add_step(&mut self, sends: Range<usize>, stop: Stop<'_>) -> Result<(), CompileError> {
        let exhausted = |_: Exhausted| CompileError::TooTangled { limit: WORK_MAX };
        let edges = self.conflicts(sends.clone(), stop)?;
        if edges.is_empty() {
            return sends.into_iter().try_for_each(|send| {
                ask(stop)?;
                self.add(send).map_err(exhausted)
            });
        }
        // Kahn's algorithm: of the sends that may come next, the first one listed.
        let mut before = vec![0_u32; sends.len()];
        for &(_, write) in &edges {
            before[write as usize - sends.start] += 1;
        }
        let mut ready: BinaryHeap<Reverse<usize>> =
            sends.clone().filter(|send| before[send - sends.start] == 0).map(Reverse).collect();
        while let Some(Reverse(send)) = ready.pop() {
            ask(stop)?;
            self.add(send).map_err(exhausted)?;
            let first = edges.partition_point(|&(read, _)| (read as usize) < send);
            for &(_, write) in edges[first..].iter().take_while(|&&(read, _)| read as usize == send) {
                let left = &mut before[write as usize - sends.start];
                *left -= 1;
                if *left == 0 {
                    ready.push(Reverse(write as usize));
                }
            }
        }
        match sends.clone().find(|send| before[send - sends.start] > 0) {
            None => Ok(()),
            Some(send) => {
                let Send { step, to, .. } = self.steps.sends[send];
                Err(CompileError::Send { send, source: SendFault::Circular { step, rank: to.number() } })
            }
        }
    }

    /// Pairs of sends of one step that must come in this order: one reads a place that the other writes. Sorted.
    fn conflicts(&mut self, sends: Range<usize>, stop: Stop<'_>) -> Result<Vec<(u32, u32)>, CompileError> {
        let all = &self.steps.sends;
        let mut reads: Vec<usize> = sends.clone().collect();
        reads.sort_by_key(|&send| (all[send].from, all[send].chunks.start));
        // By position in `reads`: the greatest end of a range of the same rank so far.
        let mut ends: Vec<u64> = Vec::with_capacity(reads.len());
        for (position, &send) in reads.iter().enumerate() {
            let same = position > 0 && all[reads[position - 1]].from == all[send].from;
            let before = if same { ends[position - 1] } else { 0 };
            ends.push(before.max(all[send].chunks.end));
        }
        let mut edges = Vec::new();
        for write in sends {
            ask(stop)?;
            let Send { to, ref chunks, .. } = all[write];
            let past = reads.partition_point(|&read| (all[read].from, all[read].chunks.start) < (to, chunks.end));
            let candidates = (0..past).rev().take_while(|&at| all[reads[at]].from == to && ends[at] > chunks.start);
            let mut looked_at = 0;
            for at in candidates {
                looked_at += 1;
                let read = reads[at];
                if read != write && all[read].chunks.end > chunks.start {
                    edges.push((position(read), position(write)));
                }
            }
            self.places.spend(looked_at).map_err(|_| CompileError::TooTangled { limit: WORK_MAX })?;
        }
        edges.sort_unstable();
        Ok(edges)
    }

    /// Appends a send's transfer, as a batch of its own.
    fn add(&mut self, position_of_send: usize) -> Result<(), Exhausted> {
        let send = &self.steps.sends[position_of_send];
        let index = position(self.transfers.len());
        let write = match send.action {
            Action::Copy => Access::Copy,
            Action::Reduce => Access::Reduce,
        };
        self.waits.clear();
        self.places.access(index, send.from, &send.chunks, Access::Read, &mut self.waits)?;
        self.places.access(index, send.to, &send.chunks, write, &mut self.waits)?;
        self.push(position_of_send);
        Ok(())
    }

    /// Appends a send's transfer, which waits for what the buffer holds.
    fn push(&mut self, send: usize) {
        let send = &self.steps.sends[send];
        let index = position(self.transfers.len());
        self.waits.sort_unstable();
        self.waits.dedup();
        let dependencies = self.dependencies_of(send.from);
        let root = match send.action {
            Action::Copy => send.from,
            Action::Reduce => send.to,
        };
        self.batches.push(Batch {
            action: send.action,
            root,
            chunk_first: send.chunks.start,
            chunk_count: send.chunks.end - send.chunks.start,
            transfers: index..index + 1,
        });
        self.transfers.push(Transfer { from: send.from, to: send.to, carriers: send.carriers.clone(), dependencies });
    }

    /// The place of `waits` in the table, the same as for the sender's transfer before where that waits for the same.
    fn dependencies_of(&mut self, sender: Rank) -> Range<u32> {
        let latest = self.latest[sender.index()].clone();
        if self.dependencies[latest.start as usize..latest.end as usize] == self.waits[..] {
            return latest;
        }
        let start = position(self.dependencies.len());
        self.dependencies.extend_from_slice(&self.waits);
        let range = start..position(self.dependencies.len());
        self.latest[sender.index()] = range.clone();
        range
    }
}

/// What some sends wait for, one after the other.
struct Found {
    waits: Vec<u32>,
    /// By send: where its waits end.
    ends: Vec<usize>,
    looked_at: u64,
}

impl Found {
    /// `None` if a place is used twice.
    fn of(once: &Once<'_>, sends: Range<usize>, stop: Stop<'_>) -> Result<Option<Self>, CompileError> {
        let mut found = Self { waits: Vec::new(), ends: Vec::with_capacity(sends.len()), looked_at: 0 };
        for send in sends {
            ask(stop)?;
            let Some(looked_at) = once.waits_of(send, &mut found.waits) else { return Ok(None) };
            found.looked_at += looked_at as u64;
            if found.looked_at > WORK_MAX {
                return Ok(None);
            }
            found.ends.push(found.waits.len());
        }
        Ok(Some(found))
    }
}

fn position(length: usize) -> u32 {
    u32::try_from(length).expect("bounded by TRANSFERS_MAX and WORK_MAX")
}
