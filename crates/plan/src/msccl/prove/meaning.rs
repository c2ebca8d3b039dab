//! Every value is the one the collective promises.
//!
//! The program is executed on symbols. A symbol is the sum of some ranks' contributions to one chunk of the input
//! numbering; adding two that share a rank or differ in the chunk can never be part of a right result and is a
//! problem at once. Since no two conflicting steps are unordered, any one linearisation gives the result of all.

pub(crate) mod symbols;

use canopy_schedule::CollectiveKind;

use self::symbols::{NOTHING, Symbol, Symbols};
use super::model::Model;
use super::report::{Findings, Place};
use crate::msccl::program::{Buffer, Chunks, Memory, Program, Step, share_chunks};

/// Most chunks of all ranks' buffers that are followed: 4 bytes each.
const CELLS_MAX: u64 = 1 << 25;

pub(super) fn check(model: &Model<'_>, order: &[usize], findings: &mut Findings<'_>) {
    let cells: u64 = model.ranks.iter().map(|rank| Memory::new(model.program, rank.rank).cell_count()).sum();
    let symbols = u64::from(model.program.rank_count) * u64::from(contributed_chunks(model.program));
    if cells.max(symbols) > CELLS_MAX {
        let text = format!("buffers of {cells} chunks in all ranks are too many to follow; at most {CELLS_MAX} are");
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
    symbols: Symbols,
    memories: Vec<Memory>,
    /// Cells of each rank.
    cells: Vec<Vec<Symbol>>,
    /// What each sending step sent, until received.
    sent: Vec<Vec<Symbol>>,
}

impl<'m, 'p> Execution<'m, 'p> {
    fn new(model: &'m Model<'p>) -> Self {
        let program = model.program;
        let memories: Vec<Memory> = model.ranks.iter().map(|rank| Memory::new(program, rank.rank)).collect();
        let symbols = Symbols::new(program.rank_count, contributed_chunks(program));
        let mut cells = Vec::with_capacity(memories.len());
        for (rank, memory) in (0_u32..).zip(&memories) {
            let mut own = vec![NOTHING; usize::try_from(memory.cell_count()).unwrap_or(0)];
            for (offset, chunk) in initial_chunks(program, rank) {
                own[cell(memory, Buffer::Input, offset)] = symbols.contribution(rank, chunk);
            }
            cells.push(own);
        }
        Self { model, symbols, memories, cells, sent: vec![Vec::new(); model.steps.len()] }
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
                let target = self.cell_of(index, step.destination, chunk);
                there_already += u32::from(std::mem::replace(target, value) == value);
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
        let mut read = |chunks: Chunks, execution: &mut Self| {
            let value = *execution.cell_of(index, chunks, chunk);
            if value == NOTHING {
                let at = u64::from(chunks.offset.unwrap_or(0)) + u64::from(chunk);
                let text = format!("reads chunk {at} of `{}`, which nothing has written", chunks.buffer.letter());
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
            (Some(source), Some(other)) => match self.symbols.sum(source, other) {
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

    fn cell_of(&mut self, index: usize, chunks: Chunks, chunk: u32) -> &mut Symbol {
        let rank = self.model.rank_of(index);
        let offset = u64::from(chunks.offset.unwrap_or(0)) + u64::from(chunk);
        let cell = cell(&self.memories[rank], chunks.buffer, offset);
        &mut self.cells[rank][cell]
    }

    fn check_result(&mut self, findings: &mut Findings<'_>) {
        let program = self.model.program;
        for rank in 0..program.rank_count {
            if findings.must_stop(u64::from(program.chunk_count)) {
                return;
            }
            let mut wrong: Option<(u64, Symbol, Symbol)> = None;
            let mut wrong_count = 0_u64;
            for (offset, expected) in expected_output(program, rank) {
                let expected = match expected {
                    Expected::From(origin, chunk) => self.symbols.contribution(origin, chunk),
                    Expected::Sum(chunk) => self.symbols.total(chunk),
                };
                let found = self.cells[rank as usize][cell(&self.memories[rank as usize], Buffer::Output, offset)];
                if found != expected {
                    wrong_count += 1;
                    wrong = wrong.or(Some((offset, found, expected)));
                }
            }
            if let Some((offset, found, expected)) = wrong {
                let text = format!(
                    "output chunk {offset} ends as {}, but must be {}; {wrong_count} output chunks are wrong",
                    self.symbols.describe(found),
                    self.symbols.describe(expected)
                );
                findings.problem(Place::rank(rank), text);
            }
        }
    }
}

fn cell(memory: &Memory, buffer: Buffer, offset: u64) -> usize {
    usize::try_from(memory.cell(buffer, offset)).expect("cells were counted before")
}

/// Chunks of the input that has most of them: how many numbers symbols need.
fn contributed_chunks(program: &Program) -> u32 {
    match program.purpose.collective() {
        Some(CollectiveKind::Allgather) => share_chunks(program),
        Some(CollectiveKind::Scatter) => program.chunk_count.saturating_mul(program.rank_count),
        _ => program.chunk_count,
    }
}

/// Input chunks of a rank that hold data at the start: their offset, and their number in the symbols.
fn initial_chunks(program: &Program, rank: u32) -> impl Iterator<Item = (u64, u32)> + use<> {
    let only_root = matches!(program.purpose.collective(), Some(CollectiveKind::Broadcast | CollectiveKind::Scatter));
    let count = if only_root && rank > 0 { 0 } else { contributed_chunks(program) };
    (0..count).map(|chunk| (u64::from(chunk), chunk))
}

/// What an output chunk must hold.
enum Expected {
    /// A rank's contribution to a chunk.
    From(u32, u32),
    /// All ranks' contributions to a chunk.
    Sum(u32),
}

/// What each output chunk of a rank must hold at the end. Collectives with a root have rank 0 as theirs: a file names
/// none.
fn expected_output(program: &Program, rank: u32) -> Vec<(u64, Expected)> {
    let (chunks, share) = (program.chunk_count, share_chunks(program));
    let fill = |count: u32, value: &dyn Fn(u32) -> Expected| {
        (0..count).map(|chunk| (u64::from(chunk), value(chunk))).collect()
    };
    let Some(kind) = program.purpose.collective() else { return Vec::new() };
    match kind {
        CollectiveKind::Allgather => fill(chunks, &|chunk| Expected::From(chunk / share, chunk % share)),
        CollectiveKind::AllToAll => fill(chunks, &|chunk| Expected::From(chunk / share, rank * share + chunk % share)),
        CollectiveKind::ReduceScatter => fill(share, &|chunk| Expected::Sum(rank * share + chunk)),
        CollectiveKind::Allreduce => fill(chunks, &Expected::Sum),
        CollectiveKind::Broadcast => fill(chunks, &|chunk| Expected::From(0, chunk)),
        CollectiveKind::Scatter => fill(share, &|chunk| Expected::From(0, rank * share + chunk)),
        CollectiveKind::Reduce if rank == 0 => fill(chunks, &Expected::Sum),
        CollectiveKind::Gather if rank == 0 => {
            fill(chunks.saturating_mul(program.rank_count), &|chunk| Expected::From(chunk / share, chunk % share))
        }
        CollectiveKind::Reduce | CollectiveKind::Gather => Vec::new(),
    }
}
