//! Steps made of single chunks: those in a row become one instruction.

use std::collections::BTreeMap;

use super::chunks::Chunks;
use super::places::{Arrival, Cell, Destination, LaterCopy};
use crate::msccl::Buffer;
use crate::oneccl::program::{Completion, Local, Program, Receive, Scope, Send, Span, Step};
use crate::promise::OwnCopy;

/// When local work is done within a step: reductions of what arrived need the sums with one's own contribution, and
/// what takes the place of something must come last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Own,
    First,
    Further,
    Last,
}

/// A step of one rank in the making.
#[derive(Default)]
struct Draft {
    sends: Vec<(u32, Span)>,
    receives: Vec<(u32, Span)>,
    locals: Vec<LocalWork>,
}

/// A chunk that a rank copies, or adds to another, by itself. Sorted as it is done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LocalWork {
    turn: Turn,
    source: Cell,
    destination: Cell,
}

/// The steps of all ranks in the making: by level.
pub(super) struct Steps {
    ranks: Vec<BTreeMap<u32, Draft>>,
    own_copies: Vec<Option<OwnCopy>>,
}

impl Steps {
    pub(super) fn new(program: &Program, chunks: &Chunks) -> Self {
        let own_copy = |rank| chunks.own_copy(rank).filter(|_| !program.in_place);
        Self {
            ranks: program.ranks.iter().map(|_| BTreeMap::new()).collect(),
            own_copies: (0..program.rank_count).map(own_copy).collect(),
        }
    }

    /// Adds a chunk's way from one rank to another, after those with smaller sources of the same two ranks.
    pub(super) fn add(&mut self, level: u32, arrival: &Arrival, destination: Destination) {
        let Arrival { from, to, source, .. } = *arrival;
        if !self.extend(level, (from, source), (to, destination.cell)) {
            let single = |(buffer, first): Cell| Span { buffer, first, count: 1 };
            self.draft(from, level).sends.push((to, single(source)));
            self.draft(to, level).receives.push((from, single(destination.cell)));
        }
        if let Some((source, destination)) = destination.reduce {
            let turn = if source.0 == Buffer::Input { Turn::First } else { Turn::Further };
            self.draft(to, level).locals.push(LocalWork { turn, source, destination });
        }
        if let Some(LaterCopy { source, destination, level }) = destination.copy {
            self.draft(to, level).locals.push(LocalWork { turn: Turn::Last, source, destination });
        }
    }

    fn draft(&mut self, rank: u32, level: u32) -> &mut Draft {
        self.ranks[rank as usize].entry(level).or_default()
    }

    /// Makes the last message between two ranks one chunk longer, where the chunk goes on on both sides.
    fn extend(&mut self, level: u32, (from, source): (u32, Cell), (to, target): (u32, Cell)) -> bool {
        let goes_on = |last: Option<&mut (u32, Span)>, peer: u32, (buffer, chunk): Cell| {
            let (known, span) = last?;
            let is_next = *known == peer && span.buffer == buffer && span.first + span.count == chunk;
            is_next.then(|| span.count += 1)
        };
        if goes_on(self.draft(from, level).sends.last_mut(), to, source).is_none() {
            return false;
        }
        if goes_on(self.draft(to, level).receives.last_mut(), from, target).is_some() {
            return true;
        }
        // Only one side goes on.
        self.draft(from, level).sends.last_mut().into_iter().for_each(|(_, span)| span.count -= 1);
        false
    }

    /// The steps of each rank, numbered without gaps.
    pub(super) fn finish(self) -> impl Iterator<Item = Vec<Step>> {
        self.ranks.into_iter().zip(self.own_copies).map(|(mut drafts, own_copy)| {
            if let Some(OwnCopy { source, target, count }) = own_copy {
                let first = drafts.first_key_value().map_or(0, |(&level, _)| level);
                let locals = &mut drafts.entry(first).or_default().locals;
                let chunk = |chunk| LocalWork {
                    turn: Turn::Own,
                    source: (Buffer::Input, source + chunk),
                    destination: (Buffer::Output, target + chunk),
                };
                locals.extend((0..count).map(chunk));
            }
            (0..).zip(drafts.into_values()).map(|(index, draft)| draft.finish(index)).collect()
        })
    }
}

impl Draft {
    fn finish(mut self, index: u32) -> Step {
        self.locals.sort_unstable();
        let mut turns: Vec<Turn> = Vec::new();
        let mut locals: Vec<Local> = Vec::new();
        for LocalWork { turn, source: (from, source), destination: (into, destination) } in self.locals {
            if let Some((local, last)) = locals.last_mut().zip(turns.last())
                && *last == turn
                && local.source.buffer == from
                && local.source.first + local.source.count == source
                && local.destination.buffer == into
                && local.destination.first + local.destination.count == destination
            {
                local.source.count += 1;
                local.destination.count += 1;
                continue;
            }
            turns.push(turn);
            locals.push(Local {
                is_reduction: matches!(turn, Turn::First | Turn::Further),
                source: Span { buffer: from, first: source, count: 1 },
                destination: Span { buffer: into, first: destination, count: 1 },
            });
        }
        let completion = Completion { scope: Scope::Local, locals, after: None };
        Step {
            index,
            sends: self.sends.into_iter().map(|(peer, span)| Send { peer, span, route: None }).collect(),
            receives: self.receives.into_iter().map(|(peer, span)| Receive { peer, span }).collect(),
            completion: Some(completion),
        }
    }
}
