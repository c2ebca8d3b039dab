//! Every value is the one the collective promises, and lies where it fits.
//!
//! The program is executed on symbols: sums of some ranks' contributions to one chunk of the input's numbering. Adding
//! two that share a rank or differ in the chunk can never be part of a right result and is a problem at once.

use std::collections::{BTreeMap, VecDeque};

use canopy_schedule::CollectiveKind;
use canopy_topology::Rank;

use super::order::Event;
use super::report::{Findings, Place};
use super::{ByRank, number};
use crate::msccl::Buffer;
use crate::msccl::prove::meaning::symbols::{NOTHING, Symbol, Symbols};
use crate::oneccl::memory::{Memory, share_chunks};
use crate::oneccl::program::{Local, Program, Span, Step};
use crate::oneccl::promise::{Promise, promise};

/// Most contributions of all ranks, which number the symbols.
const CONTRIBUTIONS_MAX: u64 = 1 << 30;

pub(super) fn check(program: &Program, ranks: &ByRank<'_>, order: &[(u32, u32, Event)], findings: &mut Findings<'_>) {
    let contributions = u64::from(program.rank_count) * u64::from(contributed_chunks(program));
    if contributions > CONTRIBUTIONS_MAX {
        let text = format!("{contributions} chunks of input are too many to follow; at most {CONTRIBUTIONS_MAX} are");
        return findings.problem(Place::FILE, text);
    }
    let mut execution = Execution::new(program, ranks);
    for &(rank, position, event) in order {
        let Some(step) = ranks[rank as usize].steps.get(position as usize) else { continue };
        let work = execution.event(rank, (position, step), event, findings);
        if findings.is_full() || findings.must_stop(1 + work) {
            return;
        }
    }
    execution.check_result(findings);
}

/// Chunks of the input of each rank that has one.
fn contributed_chunks(program: &Program) -> u32 {
    match program.collective.kind() {
        CollectiveKind::Allgather | CollectiveKind::Gather => share_chunks(program),
        _ => program.chunk_count,
    }
}

struct Execution<'p> {
    program: &'p Program,
    symbols: Symbols,
    memories: Vec<Memory>,
    /// Cells of each rank.
    cells: Vec<Vec<Symbol>>,
    /// What was sent from one rank to another and not yet received.
    sent: BTreeMap<(u32, u32), VecDeque<Vec<Symbol>>>,
}

impl<'p> Execution<'p> {
    fn new(program: &'p Program, ranks: &ByRank<'_>) -> Self {
        let memories: Vec<Memory> = ranks.iter().map(|rank| Memory::new(program, rank)).collect();
        let symbols = Symbols::new(program.rank_count, contributed_chunks(program));
        let mut cells = Vec::with_capacity(memories.len());
        for (rank, memory) in (0_u32..).zip(&memories) {
            let mut own = vec![NOTHING; usize::try_from(memory.cell_count()).expect("cells were counted before")];
            let count = u32::try_from(memory.chunks(Buffer::Input)).expect("a count of the file");
            let input = indices(memory, Span { buffer: Buffer::Input, first: 0, count });
            for (chunk, cell) in (0..).zip(input) {
                own[cell] = symbols.contribution(rank, chunk);
            }
            cells.push(own);
        }
        Self { program, symbols, memories, cells, sent: BTreeMap::new() }
    }

    /// Does what an event does; says how many chunks it touched.
    fn event(&mut self, rank: u32, (position, step): (u32, &Step), event: Event, findings: &mut Findings<'_>) -> u64 {
        let place = Place::step(rank, position);
        let mut touched = 0;
        match event {
            Event::Start => {
                for send in &step.sends {
                    let values = self.read(rank, send.span, place, findings);
                    self.sent.entry((rank, send.peer)).or_default().push_back(values);
                    touched += u64::from(send.span.count);
                }
            }
            Event::Complete => {
                for receive in &step.receives {
                    let arriving = self.sent.get_mut(&(receive.peer, rank)).and_then(VecDeque::pop_front);
                    let values = arriving.expect("messages were matched, and sends start before receives end");
                    self.store(rank, receive.span, &values, place, findings);
                    touched += u64::from(receive.span.count);
                }
            }
            Event::End => {
                for local in step.completion.iter().flat_map(|completion| &completion.locals) {
                    self.local(rank, *local, place, findings);
                    touched += u64::from(local.source.count);
                }
            }
        }
        touched
    }

    fn read(&self, rank: u32, span: Span, place: Place, findings: &mut Findings<'_>) -> Vec<Symbol> {
        let memory = &self.memories[rank as usize];
        let values: Vec<Symbol> = indices(memory, span).map(|cell| self.cells[rank as usize][cell]).collect();
        if let Some(at) = values.iter().position(|value| *value == NOTHING) {
            let chunk = span.first as usize + at;
            let text = format!("reads chunk {chunk} of `{}`, which nothing has written", span.buffer.letter());
            findings.problem(place, text);
        }
        values
    }

    fn store(&mut self, rank: u32, span: Span, values: &[Symbol], place: Place, findings: &mut Findings<'_>) {
        let share = share_chunks(self.program).max(1);
        let cells = indices(&self.memories[rank as usize], span);
        for ((chunk, cell), &value) in (span.first..).zip(cells).zip(values) {
            if value != NOTHING && span.buffer != Buffer::Scratch && self.symbols.chunk(value) % share != chunk % share
            {
                let text = format!(
                    "puts {} into chunk {chunk} of `{}`, whose length may be another",
                    self.symbols.describe(value),
                    span.buffer.letter()
                );
                findings.problem(place, text);
            }
            self.cells[rank as usize][cell] = value;
        }
    }

    fn local(&mut self, rank: u32, local: Local, place: Place, findings: &mut Findings<'_>) {
        let mut values = self.read(rank, local.source, place, findings);
        if local.is_reduction {
            let others = self.read(rank, local.destination, place, findings);
            for (value, other) in values.iter_mut().zip(others) {
                if *value == NOTHING || other == NOTHING {
                    *value = NOTHING;
                    continue;
                }
                match self.symbols.sum(*value, other) {
                    Ok(sum) => *value = sum,
                    Err(fault) => {
                        findings.problem(place, fault.to_string());
                        *value = NOTHING;
                    }
                }
            }
        }
        self.store(rank, local.destination, &values, place, findings);
    }

    fn check_result(&mut self, findings: &mut Findings<'_>) {
        let share = u64::from(share_chunks(self.program));
        for rank in 0..self.memories.len() {
            let chunks = self.memories[rank].chunks(Buffer::Output);
            if findings.must_stop(chunks) {
                return;
            }
            let count = u32::try_from(chunks).expect("a count of the file");
            let cells = indices(&self.memories[rank], Span { buffer: Buffer::Output, first: 0, count });
            let (mut wrong, mut wrong_count) = (None, 0_u64);
            for (offset, cell) in (0_u64..).zip(cells) {
                let chunk = |place: u64| u32::try_from(place).expect("a place in an input of the file");
                let expected = match promise(self.program.collective, Rank::new(number(rank)), offset, share) {
                    Promise::From(origin, place) => self.symbols.contribution(origin.number(), chunk(place)),
                    Promise::All(place) => self.symbols.total(chunk(place)),
                };
                if self.cells[rank][cell] != expected {
                    wrong_count += 1;
                    wrong = wrong.or(Some((offset, self.cells[rank][cell], expected)));
                }
            }
            if let Some((offset, found, expected)) = wrong {
                let text = format!(
                    "output chunk {offset} ends as {}, but must be {}; {wrong_count} output chunks are wrong",
                    self.symbols.describe(found),
                    self.symbols.describe(expected)
                );
                findings.problem(Place::rank(number(rank)), text);
            }
        }
    }
}

/// Indices of the cells of a span that was checked.
fn indices(memory: &Memory, span: Span) -> std::ops::Range<usize> {
    let cells = memory.cells(span);
    let index = |cell| usize::try_from(cell).expect("cells were counted before");
    index(cells.start)..index(cells.end)
}
