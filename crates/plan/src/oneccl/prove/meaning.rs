//! Every value is the one the collective promises, and lies where it fits.
//!
//! The program is executed on symbols: sums of some ranks' contributions to one chunk of the input's numbering. Adding
//! two that share a rank or differ in the chunk can never be part of a right result and is a problem at once.

use std::collections::{BTreeMap, VecDeque};

use canopy_schedule::CollectiveKind;

use super::ByRank;
use super::order::{Event, Occurrence};
use super::place::{Findings, Place};
use crate::meaning::{NOTHING, Symbol, Values};
use crate::msccl::Buffer;
use crate::oneccl::memory::{Memory, share_chunks};
use crate::oneccl::program::{Local, Program, Span, Step};
use crate::promise::Promises;

/// Most contributions of all ranks, which number the symbols.
const CONTRIBUTIONS_MAX: u64 = 1 << 30;

pub(super) fn check(program: &Program, ranks: &ByRank<'_>, order: &[Occurrence], findings: &mut Findings<'_>) {
    let contributions = u64::from(program.rank_count) * u64::from(contributed_chunks(program));
    if contributions > CONTRIBUTIONS_MAX {
        let text = format!(
            "the ranks have {contributions} chunks of input, over the limit of {CONTRIBUTIONS_MAX} for a \
                            proof"
        );
        return findings.problem(Place::FILE, text);
    }
    let mut execution = Execution::new(program, ranks);
    for &Occurrence { rank, step: position, event } in order {
        let Some(step) = ranks[rank as usize].steps.get(position as usize) else { continue };
        let work = execution.event(Place::step(rank, position), rank, step, event, findings);
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
    memories: Vec<Memory>,
    values: Values,
    /// What was sent from one rank to another and not yet received.
    sent: BTreeMap<(u32, u32), VecDeque<Vec<Symbol>>>,
}

impl<'p> Execution<'p> {
    fn new(program: &'p Program, ranks: &ByRank<'_>) -> Self {
        let memories: Vec<Memory> = ranks.iter().map(|rank| Memory::new(program, rank)).collect();
        let promises = Promises::new(program.collective, share_chunks(program).into());
        let mut values = Values::new(promises, contributed_chunks(program), memories.iter().map(Memory::cell_count));
        for (rank, memory) in (0..).zip(&memories) {
            let (first, chunks) = memory.place(Buffer::Input);
            values.give(rank, first, u32::try_from(chunks).expect("a count of the file"));
        }
        Self { program, memories, values, sent: BTreeMap::new() }
    }

    /// Does what an event does; says how many chunks it touched.
    fn event(&mut self, place: Place, rank: u32, step: &Step, event: Event, findings: &mut Findings<'_>) -> u64 {
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
        let values: Vec<Symbol> = memory.cells(span).map(|cell| self.values.get(rank, cell)).collect();
        if let Some(at) = values.iter().position(|value| *value == NOTHING) {
            let chunk = span.first as usize + at;
            let text = format!("reads chunk {chunk} of `{}`, which has not been written", span.buffer.letter());
            findings.problem(place, text);
        }
        values
    }

    fn store(&mut self, rank: u32, span: Span, values: &[Symbol], place: Place, findings: &mut Findings<'_>) {
        let share = share_chunks(self.program).max(1);
        let cells = self.memories[rank as usize].cells(span);
        for ((chunk, cell), &value) in (span.first..).zip(cells).zip(values) {
            if value != NOTHING && span.buffer != Buffer::Scratch && self.values.place(value) % share != chunk % share {
                let text = format!(
                    "puts {} into chunk {chunk} of `{}`, which may have another length",
                    self.values.describe(value),
                    span.buffer.letter()
                );
                findings.problem(place, text);
            }
            self.values.put(rank, cell, value);
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
                match self.values.sum(*value, other) {
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
        for (rank, memory) in (0..).zip(&self.memories) {
            let (first, chunks) = memory.place(Buffer::Output);
            if findings.must_stop(chunks) {
                return;
            }
            if let Err(text) = self.values.check_outputs(rank, first, chunks) {
                findings.problem(Place::rank(rank), text);
            }
        }
    }
}
