//! The ranks of a program, their memory, and the messages between them.

use std::collections::{BTreeMap, VecDeque};

use super::{Blocked, EmulationError, EmulationReport};
use crate::elements::{Random, mix};
use crate::msccl::Buffer;
use crate::oneccl::memory::Memory;
use crate::oneccl::program::{Completion, Local, RankProgram, Scope, Span};
use crate::oneccl::prove::Place;
use crate::proof::Stop;

/// A chunk's elements.
pub(super) type Chunk = Vec<u64>;

/// Where a rank is in its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before its messages are posted.
    Enter,
    /// While they are under way.
    Messages,
    /// In its first wait for all ranks.
    FirstBarrier,
    /// Before its local work.
    Local,
    /// In its second wait for all ranks.
    SecondBarrier,
}

struct RankState {
    step: u32,
    phase: Phase,
    /// Posted messages that are not complete.
    open: u32,
}

/// Messages from one rank to another, in order.
#[derive(Default)]
struct Queue {
    /// Where they are, or what they are if they were taken at once.
    sends: VecDeque<(Span, Option<Vec<Chunk>>)>,
    receives: VecDeque<Span>,
    /// Of those with both ends, how many are among the actions.
    chosen: usize,
}

/// What can happen next.
#[derive(Clone, Copy)]
enum Action {
    /// A rank goes on.
    Rank(u32),
    /// The first message of a queue arrives.
    Message(u32, u32),
}

/// All ranks in the middle of a run.
pub(super) struct Machine<'m, 'p> {
    random: Random,
    ranks: &'m [&'p RankProgram],
    memories: &'m [Memory],
    cells: Vec<Vec<Chunk>>,
    states: Vec<RankState>,
    queues: BTreeMap<(u32, u32), Queue>,
    actions: Vec<Action>,
    /// Ranks in a wait for all.
    arrived: usize,
    chance: u64,
    is_eager: bool,
    messages: u64,
    chunks: u64,
}

impl<'m, 'p> Machine<'m, 'p> {
    pub(super) fn new(
        random: Random,
        ranks: &'m [&'p RankProgram],
        memories: &'m [Memory],
        cells: Vec<Vec<Chunk>>,
        is_eager: bool,
    ) -> Self {
        Self {
            random,
            ranks,
            memories,
            cells,
            states: ranks.iter().map(|_| RankState { step: 0, phase: Phase::Enter, open: 0 }).collect(),
            queues: BTreeMap::new(),
            actions: (0..).zip(ranks).map(|(rank, _)| Action::Rank(rank)).collect(),
            arrived: 0,
            chance: mix(random.seed),
            is_eager,
            messages: 0,
            chunks: 0,
        }
    }

    pub(super) fn cells(&self) -> &[Vec<Chunk>] {
        &self.cells
    }

    pub(super) fn report(&self, elements_compared: u64) -> EmulationReport {
        EmulationReport { messages: self.messages, chunks: self.chunks, elements_compared }
    }

    /// Lets things happen, one after the other as chance has it, until nothing can.
    pub(super) fn run(&mut self, stop: Stop<'_>) -> Result<(), EmulationError> {
        while !self.actions.is_empty() {
            if stop() {
                return Err(EmulationError::Stopped);
            }
            self.chance = mix(self.chance);
            let chosen = self.chance % self.actions.len() as u64;
            match self.actions.swap_remove(usize::try_from(chosen).expect("less than a length")) {
                Action::Rank(rank) => self.advance(rank)?,
                Action::Message(from, to) => self.deliver(from, to)?,
            }
        }
        let blocked: Vec<Blocked> =
            (0..).zip(&self.states).filter_map(|(rank, state)| self.blocked(rank, state)).collect();
        if !blocked.is_empty() {
            return Err(EmulationError::Deadlock { blocked });
        }
        let left = self.queues.iter().find(|(_, queue)| !queue.sends.is_empty());
        left.map_or(Ok(()), |(&(from, to), queue)| Err(EmulationError::LeftOver { from, to, count: queue.sends.len() }))
    }

    fn blocked(&self, rank: u32, state: &RankState) -> Option<Blocked> {
        let reason = match state.phase {
            Phase::Messages => "waits for messages",
            Phase::FirstBarrier | Phase::SecondBarrier => "waits for all ranks",
            Phase::Enter | Phase::Local => return None,
        };
        Some(Blocked { place: Place::step(rank, state.step), reason })
    }

    /// Takes a rank as far as it can go without anybody else, but not beyond the end of its step.
    fn advance(&mut self, rank: u32) -> Result<(), EmulationError> {
        let own = self.ranks[rank as usize];
        let state = &self.states[rank as usize];
        let Some(step) = own.steps.get(state.step as usize) else { return Ok(()) };
        match (state.phase, &step.completion) {
            (Phase::Enter, _) => {
                self.states[rank as usize].phase = Phase::Messages;
                self.post(rank, step);
                if self.states[rank as usize].open == 0 { self.advance(rank) } else { Ok(()) }
            }
            (Phase::Messages, Some(Completion { scope: Scope::All, .. })) => {
                self.arrive(rank, Phase::FirstBarrier);
                Ok(())
            }
            (Phase::Messages | Phase::Local, completion) => {
                for local in completion.iter().flat_map(|completion| &completion.locals) {
                    self.local(rank, *local)?;
                }
                match completion.as_ref().and_then(|completion| completion.after) {
                    Some(Scope::All) => self.arrive(rank, Phase::SecondBarrier),
                    _ => self.enter_next(rank),
                }
                Ok(())
            }
            (Phase::FirstBarrier | Phase::SecondBarrier, _) => Ok(()),
        }
    }

    fn enter_next(&mut self, rank: u32) {
        let state = &mut self.states[rank as usize];
        (state.step, state.phase) = (state.step + 1, Phase::Enter);
        self.actions.push(Action::Rank(rank));
    }

    /// A rank waits for all; the last one lets all go on.
    fn arrive(&mut self, rank: u32, phase: Phase) {
        self.states[rank as usize].phase = phase;
        self.arrived += 1;
        if self.arrived < self.states.len() {
            return;
        }
        self.arrived = 0;
        for rank in 0..self.states.len() {
            let number = self.ranks[rank].rank;
            match self.states[rank].phase {
                Phase::FirstBarrier => {
                    self.states[rank].phase = Phase::Local;
                    self.actions.push(Action::Rank(number));
                }
                _ => self.enter_next(number),
            }
        }
    }

    /// Posts the messages of a step.
    fn post(&mut self, rank: u32, step: &crate::oneccl::program::Step) {
        let mut open = step.receives.len();
        for send in &step.sends {
            let taken = self.is_eager.then(|| self.read(rank, send.span));
            open += usize::from(taken.is_none());
            self.queues.entry((rank, send.peer)).or_default().sends.push_back((send.span, taken));
            self.choose(rank, send.peer);
        }
        for receive in &step.receives {
            self.queues.entry((receive.peer, rank)).or_default().receives.push_back(receive.span);
            self.choose(receive.peer, rank);
        }
        self.states[rank as usize].open = u32::try_from(open).unwrap_or(u32::MAX);
    }

    /// Makes the messages that have both ends possible actions.
    fn choose(&mut self, from: u32, to: u32) {
        let queue = self.queues.entry((from, to)).or_default();
        while queue.chosen < queue.sends.len().min(queue.receives.len()) {
            queue.chosen += 1;
            self.actions.push(Action::Message(from, to));
        }
    }

    fn deliver(&mut self, from: u32, to: u32) -> Result<(), EmulationError> {
        let queue = self.queues.entry((from, to)).or_default();
        let ends = queue.sends.pop_front().zip(queue.receives.pop_front());
        let ((span, taken), target) = ends.expect("only messages with both ends are chosen");
        queue.chosen -= 1;
        let is_open = taken.is_none();
        let values = taken.unwrap_or_else(|| self.read(from, span));
        if values.len() != target.count as usize {
            let place = Place::step(to, self.states[to as usize].step);
            let (found, expected) = (values.len(), target.count as usize);
            return Err(EmulationError::MessageSize { place, from, found, expected });
        }
        self.messages += 1;
        self.chunks += values.len() as u64;
        self.store(to, target, values)?;
        if is_open {
            self.complete(from);
        }
        self.complete(to);
        Ok(())
    }

    /// One posted message of a rank less; goes on after the last.
    fn complete(&mut self, rank: u32) {
        let state = &mut self.states[rank as usize];
        state.open -= 1;
        if state.open == 0 {
            self.actions.push(Action::Rank(rank));
        }
    }

    fn local(&mut self, rank: u32, local: Local) -> Result<(), EmulationError> {
        let mut values = self.read(rank, local.source);
        if local.is_reduction {
            for (value, other) in values.iter_mut().zip(self.read(rank, local.destination)) {
                self.require(rank, value.len(), other.len())?;
                for (first, second) in value.iter_mut().zip(other) {
                    *first = self.random.combine(*first, second);
                }
            }
        }
        self.store(rank, local.destination, values)
    }

    fn read(&self, rank: u32, span: Span) -> Vec<Chunk> {
        self.cells[rank as usize][self.indices(rank, span)].to_vec()
    }

    /// Chunks of scratch take any length, those of the caller's buffers have theirs.
    fn store(&mut self, rank: u32, span: Span, values: Vec<Chunk>) -> Result<(), EmulationError> {
        for (cell, value) in self.indices(rank, span).zip(values) {
            if span.buffer != Buffer::Scratch {
                self.require(rank, value.len(), self.cells[rank as usize][cell].len())?;
            }
            self.cells[rank as usize][cell] = value;
        }
        Ok(())
    }

    fn require(&self, rank: u32, found: usize, expected: usize) -> Result<(), EmulationError> {
        let place = Place::step(rank, self.states[rank as usize].step);
        if found == expected { Ok(()) } else { Err(EmulationError::Length { place, found, expected }) }
    }

    fn indices(&self, rank: u32, span: Span) -> std::ops::Range<usize> {
        let cells = self.memories[rank as usize].cells(span);
        let index = |cell| usize::try_from(cell).expect("the size of memory was checked");
        index(cells.start)..index(cells.end)
    }
}
