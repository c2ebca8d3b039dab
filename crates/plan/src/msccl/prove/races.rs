//! Two steps of a rank that touch the same chunk, one of them writing, are ordered.
//!
//! Happens-before is the closure of program order, waits and messages (k-th send → k-th receive). Queue capacity also
//! orders steps, but by an amount that depends on settings of the machine, so it is not relied upon.
//!
//! Steps of several chunks run as several transfers, and a message orders transfer by transfer: along a path of
//! messages alone the later step may start before the earlier one has ended. Such steps are *weakly* ordered, which
//! keeps the j-th chunk of the earlier before the j-th chunk of the later, no more. One program edge or wait on the
//! path makes the order *strong*: all of the earlier before any of the later.

mod clocks;

use std::collections::BTreeMap;

use self::clocks::Clocks;
use super::model::Model;
use super::place::{Findings, Place};
use crate::msccl::program::{Chunks, Memory};

/// Most clock entries computed through all ranks: some seconds.
const WORK_MAX: usize = 1 << 34;

/// Cells `start .. end` of a rank's memory, touched by one step.
#[derive(Clone, Copy)]
struct Access {
    start: u64,
    end: u64,
    step: usize,
    is_write: bool,
}

/// A pair of accesses that nothing orders.
struct Race {
    steps: (usize, usize),
    cell: u64,
}

/// Looks for unordered conflicts rank by rank: first with the order inside the rank, which settles most programs, and
/// only where that leaves conflicts with the order through all ranks.
pub(super) fn check(model: &Model<'_>, order: &[usize], findings: &mut Findings<'_>) {
    let mut order_in_rank: Vec<Vec<usize>> = vec![Vec::new(); model.ranks.len()];
    for &step in order {
        order_in_rank[model.rank_of(step)].push(step);
    }
    let mut work = 0_usize;
    for (rank, own_order) in order_in_rank.iter().enumerate() {
        let memory = Memory::new(model.program, model.ranks[rank].rank);
        let accesses = accesses(model, rank, &memory, findings);
        let Some(local) = Clocks::within_rank(model, rank, own_order, findings) else { return };
        if find_races(model, &accesses, &local, 1, findings).is_empty() {
            if findings.must_stop(own_order.len() as u64) {
                return;
            }
            continue;
        }
        work += order.len() * model.ranks[rank].blocks.len();
        if work > WORK_MAX {
            return findings.problem(Place::FILE, "the ranks have more steps in all than the proof can follow");
        }
        let Some(global) = Clocks::through_all_ranks(model, rank, order, findings) else { return };
        for race in find_races(model, &accesses, &global, 64, findings) {
            let (first, second) = (race.steps.0.min(race.steps.1), race.steps.0.max(race.steps.1));
            let text = format!(
                "touches a chunk that {} touches too (cell {}), one of them writing, and nothing orders them; add a \
                 dependency",
                model.place(second),
                race.cell
            );
            findings.problem(model.place(first), text);
        }
        if findings.is_full() {
            return;
        }
    }
}

/// What the steps of a rank read and write; reports steps whose own source and destination overlap askew.
fn accesses(model: &Model<'_>, rank: usize, memory: &Memory, findings: &mut Findings<'_>) -> Vec<Access> {
    let mut accesses = Vec::new();
    for index in model.ranks[rank].steps.clone() {
        let step = model.steps[index].step;
        let range = |chunks: Chunks, is_write: bool| {
            let start = memory.cell(chunks.buffer, u64::from(chunks.offset?));
            Some(Access { start, end: start + u64::from(step.chunk_count), step: index, is_write })
        };
        let read = step.operation.reads_source().then(|| range(step.source, false)).flatten();
        let write = step.operation.writes_destination().then(|| range(step.destination, true)).flatten();
        if let (Some(read), Some(write)) = (read, write)
            && read.start != write.start
            && read.start < write.end
            && write.start < read.end
        {
            findings.problem(model.place(index), "its source and destination overlap without being the same");
        }
        accesses.extend(read);
        accesses.extend(write);
    }
    accesses
}

/// Up to `limit` pairs of accesses that the clocks do not order, at most one per step and block.
fn find_races(
    model: &Model<'_>,
    accesses: &[Access],
    clocks: &Clocks,
    limit: usize,
    findings: &mut Findings<'_>,
) -> Vec<Race> {
    let mut races = Vec::new();
    for (cell, members) in segments(accesses) {
        // By block, each in program order.
        let mut by_block: BTreeMap<usize, Vec<Access>> = BTreeMap::new();
        for &access in &members {
            by_block.entry(model.steps[access.step].block).or_default().push(access);
        }
        if by_block.len() < 2 || members.iter().all(|access| !access.is_write) {
            continue;
        }
        // Each write of the cell against the accesses of every other block: O(writes · blocks) searches.
        for write in members.iter().filter(|access| access.is_write) {
            if findings.must_stop(by_block.len() as u64) {
                return races;
            }
            for (&block, others) in &by_block {
                if block != model.steps[write.step].block
                    && let Some(other) = unordered_with(clocks, *write, block, others)
                {
                    races.push(Race { steps: (write.step, other), cell });
                    if races.len() >= limit {
                        return races;
                    }
                }
            }
        }
    }
    races
}

/// Cuts the memory at every start and end of an access: within a piece all cells have the same accesses. Pieces that
/// only one access touches are left out.
fn segments(accesses: &[Access]) -> Vec<(u64, Vec<Access>)> {
    let mut cuts: Vec<u64> = accesses.iter().flat_map(|access| [access.start, access.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut segments: Vec<(u64, Vec<Access>)> = cuts.iter().map(|&cut| (cut, Vec::new())).collect();
    for &access in accesses {
        let first = cuts.partition_point(|&cut| cut < access.start);
        let end = cuts.partition_point(|&cut| cut < access.end);
        for (_, members) in &mut segments[first..end] {
            members.push(access);
        }
    }
    segments.retain(|(_, members)| members.len() > 1);
    segments
}

/// A step among `others`, the accesses of one block in program order, that is not ordered with `write`.
fn unordered_with(clocks: &Clocks, write: Access, block: usize, others: &[Access]) -> Option<usize> {
    let before = clocks.before(write.step, block);
    let position = |access: &Access| clocks.position(access.step);
    let split = others.partition_point(|access| position(access) < before.any);
    // Of those before the write only the last can be ordered weakly: the earlier reach it through their own block.
    let weak_before = others[..split].iter().rev().take_while(|access| position(access) >= before.strong);
    let weak_after = others[split..].iter().take_while(|access| position(access) == position(&others[split]));
    weak_before
        .filter(|earlier| write.start > earlier.start)
        .chain(weak_after.filter(|later| !clocks.reaches(write.step, later.step, later.start <= write.start)))
        .map(|access| access.step)
        .next()
}
