//! Every value is the one the collective promises.
//!
//! The program is executed on symbols. A symbol is the sum of some ranks' contributions to one chunk of the input
//! numbering; adding two that share a rank or differ in the chunk can never be part of a right result and is a
//! problem at once. Since no two conflicting steps are unordered, any one linearisation gives the result of all.

use canopy_schedule::CollectiveKind;
use canopy_topology::Rank;

use super::model::Model;
use super::place::{Findings, Place};
use crate::meaning::{NOTHING, Symbol, Values};
use crate::msccl::program::{Buffer, Chunks, Memory, Program, Step, expected_chunks, share_chunks};
use crate::promise::Promises;

/// Most chunks of all ranks' buffers that are followed: 4 bytes each.
const CELLS_MAX: u64 = 1 << 25;

pub(super) fn check(model: &Model<'_>, order: &[usize], findings: &mut Findings<'_>) {
    let cells: u64 = model.ranks.iter().map(|rank| Memory::new(model.program, rank.rank).cell_count()).sum();
    let symbols = u64::from(model.program.rank_count) * u64::from(contributed_chunks(model.program));
    if cells.max(symbols) > CELLS_MAX {
        let text = format!("the buffers of all ranks have {cells} chunks, over the limit of {CELLS_MAX} for a proof");
        return findings.problem(Place::FILE, text);
    }
    let mut execution = Execution::new(model);
    for &step in order {
        execution.step(step, findings);
        let chunks = model.steps[step].step.chunk_count;
        if findings.is_full() || findings.must_stop(1 + u64::from(chunks)) {
            return;
        }
    }
    execution.check_result(findings);
}

struct Execution<'m, 'p> {
    model: &'m Model<'p>,
    memories: Vec<Memory>,
    values: Values,
    /// What each sending step sent, until received.
    sent: Vec<Vec<Symbol>>,
}

impl<'m, 'p> Execution<'m, 'p> {
    fn new(model: &'m Model<'p>) -> Self {
        let program = model.program;
        let memories: Vec<Memory> = model.ranks.iter().map(|rank| Memory::new(program, rank.rank)).collect();
        // Collectives with a root have rank 0 as theirs: a file names none.
        let promises = Promises::of(program.purpose.collective(), Rank::new(0), share_chunks(program).into());
        let inputs = contributed_chunks(program);
        let mut values = Values::new(promises, inputs, memories.iter().map(Memory::cell_count));
        for (rank, memory) in (0..).zip(&memories) {
            values.give(rank, memory.cell(Buffer::Input, 0), inputs);
        }
        Self { model, memories, values, sent: vec![Vec::new(); model.steps.len()] }
    }

    fn step(&mut self, index: usize, findings: &mut Findings<'_>) {
        let step = self.model.steps[index].step;
        let operation = step.operation;
        let incoming = match self.model.steps[index].sender.filter(|_| operation.receives()) {
            Some(sender) => std::mem::take(&mut self.sent[sender]),
            None => Vec::new(),
        };
        if operation.writes_destination() && step.destination.buffer == Buffer::Input && !self.model.program.in_place {
            findings.problem(self.model.place(index), "writes the input of an out-of-place collective");
        }
        let mut outgoing = Vec::new();
        let mut there_already = 0_u32;
        for chunk in 0..step.chunk_count {
            let arriving = incoming.get(chunk as usize).copied();
            let Some(value) = self.value(index, step, chunk, arriving, findings) else { return };
            if operation.writes_destination() {
                let (rank, cell) = self.cell_of(index, step.destination, chunk);
                there_already += u32::from(self.values.put(rank, cell, value) == value);
            }
            if operation.sends() {
                outgoing.push(value);
            }
        }
        // A sum twice over is a problem of its own; a copy twice over costs time, no more.
        if there_already > 0 {
            let text = format!("of the {} chunks it moves, {there_already} are there already", step.chunk_count);
            findings.warning(self.model.place(index), text);
        }
        self.sent[index] = outgoing;
    }

    /// What a step stores or sends for one of its chunks; `None` after a problem.
    fn value(
        &mut self,
        index: usize,
        step: &Step,
        chunk: u32,
        arriving: Option<Symbol>,
        findings: &mut Findings<'_>,
    ) -> Option<Symbol> {
        let mut read = |chunks: Chunks, execution: &Self| {
            let (rank, cell) = execution.cell_of(index, chunks, chunk);
            let value = execution.values.get(rank, cell);
            if value == NOTHING {
                let at = u64::from(chunks.offset.unwrap_or(0)) + u64::from(chunk);
                let text = format!("reads chunk {at} of `{}`, which has not been written", chunks.buffer.letter());
                findings.problem(execution.model.place(index), text);
            }
            (value != NOTHING).then_some(value)
        };
        let operation = step.operation;
        if operation.receives() && arriving.is_none() {
            // The sender met a problem, which has been reported.
            return None;
        }
        let source = if operation.reads_source() { Some(read(step.source, self)?) } else { None };
        let other = match arriving {
            None if operation.reduces() => Some(read(step.destination, self)?),
            arriving => arriving,
        };
        match (source, other) {
            (Some(source), Some(other)) => match self.values.sum(source, other) {
                Ok(sum) => Some(sum),
                Err(fault) => {
                    findings.problem(self.model.place(index), fault.to_string());
                    None
                }
            },
            (Some(value), None) | (None, Some(value)) => Some(value),
            (None, None) => None,
        }
    }

    /// Rank and cell.
    fn cell_of(&self, index: usize, chunks: Chunks, chunk: u32) -> (u32, u64) {
        let rank = self.model.rank_of(index);
        let offset = u64::from(chunks.offset.unwrap_or(0)) + u64::from(chunk);
        (self.model.ranks[rank].rank.rank, self.memories[rank].cell(chunks.buffer, offset))
    }

    fn check_result(&mut self, findings: &mut Findings<'_>) {
        let program = self.model.program;
        for rank in 0..program.rank_count {
            if findings.must_stop(u64::from(program.chunk_count)) {
                return;
            }
            let (memory, own) = (&self.memories[rank as usize], self.model.ranks[rank as usize].rank);
            let (first, chunks) = (memory.cell(Buffer::Output, 0), u64::from(expected_chunks(program, own).1));
            if let Err(text) = self.values.check_outputs(rank, first, chunks) {
                findings.problem(Place::rank(rank), text);
            }
        }
    }
}

/// Chunks of the input that has most of them: how many numbers symbols need.
fn contributed_chunks(program: &Program) -> u32 {
    match program.purpose.collective() {
        Some(CollectiveKind::Allgather) => share_chunks(program),
        Some(CollectiveKind::Scatter) => program.chunk_count.saturating_mul(program.rank_count),
        _ => program.chunk_count,
    }
}
