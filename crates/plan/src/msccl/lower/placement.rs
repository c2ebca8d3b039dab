//! Decides where each move reads and where it is stored, and joins moves of one wave that are neighbours at both ends.

use std::ops::Range;

use canopy_schedule::Action;

use super::message::{Message, Spot};
use super::moves::{Move, cut};
use super::ranges::Ranges;
use super::{LowerError, Stop, check_stop};
use crate::msccl::program::Buffer;

/// A move with the places it uses.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) moving: Move,
    /// What is sent.
    pub(super) source: Spot,
    /// Where the receiver keeps what it gets or sums.
    pub(super) target: Spot,
    /// What the receiver adds to, in a reduction.
    pub(super) held: Option<Spot>,
    /// The one move that brought everything that is sent, where there is one.
    pub(super) writer: Option<usize>,
    /// Nobody has sent the chunks on before.
    pub(super) is_first_use: bool,
    /// Chunks that can go from scratch to their goal at the sender once this move has left: see
    /// [`Message::displaced`].
    pub(super) settles: Vec<Range<u32>>,
}

/// Where a rank has some chunks.
#[derive(Clone, Copy)]
struct Held {
    spot: Spot,
    writer: Option<usize>,
    is_sent: bool,
}

/// A part of a move with one place at each end.
struct Part {
    moving: Move,
    source: Spot,
    held: Option<Spot>,
    goal: Option<Spot>,
}

impl Part {
    /// Joins a neighbour, if one step can do both.
    fn join(&mut self, other: &Self) -> bool {
        let (own, next) = (&self.moving, &other.moving);
        let is_next = (own.from, own.to, own.action, own.is_last_use, own.instance, own.chunks.end)
            == (next.from, next.to, next.action, next.is_last_use, next.instance, next.chunks.start);
        let joins = is_next && (self.source, self.held, self.goal) == (other.source, other.held, other.goal);
        if joins {
            self.moving.chunks.end = next.chunks.end;
        }
        joins
    }
}

/// Chunks that arrived before those whose place they take had left.
struct Waiting {
    displaced: Range<u32>,
    arrived: Range<u32>,
    goal: Spot,
}

/// Follows the moves in their order. A move whose chunks lie apart at either end becomes several. Moves of waves are
/// joined, then cut to steps of at most `chunks_max` chunks, and take turns at the channels of their connection.
pub(super) fn place(
    moves: Vec<Move>,
    message: &Message,
    is_in_waves: bool,
    chunks_max: u32,
    stop: Stop<'_>,
) -> Result<Vec<Placed>, LowerError> {
    let mut placer = Placer::new(message, moves.len());
    if !is_in_waves {
        for (index, moving) in moves.iter().enumerate() {
            check_stop(stop, index)?;
            placer.parts(moving)?.into_iter().for_each(|part| placer.apply(part));
        }
        return placer.finish();
    }
    let mut turns = Ranges::new();
    for (number, wave) in moves.chunk_by(|a, b| a.wave == b.wave).enumerate() {
        check_stop(stop, number)?;
        let mut joined: Vec<Part> = Vec::with_capacity(wave.len());
        for (index, moving) in wave.iter().enumerate() {
            check_stop(stop, index)?;
            for part in placer.parts(moving)? {
                if !joined.last_mut().is_some_and(|last| last.join(&part)) {
                    joined.push(part);
                }
            }
        }
        for mut part in joined.into_iter().flat_map(|part| cut_part(part, chunks_max)) {
            let Move { from, to, instance, .. } = part.moving;
            let connection = (from * message.rank_count + to) * message.instances + instance;
            turns.update(connection..connection + 1, &0, |turn| {
                part.moving.turn = *turn;
                *turn += 1;
            });
            placer.apply(part);
        }
    }
    placer.finish()
}

fn cut_part(part: Part, chunks_max: u32) -> impl Iterator<Item = Part> {
    cut(&part.moving.chunks, chunks_max).map(move |chunks| Part {
        moving: Move { chunks, ..part.moving.clone() },
        source: part.source,
        held: part.held,
        goal: part.goal,
    })
}

struct Placer<'a> {
    message: &'a Message,
    /// By rank.
    held: Vec<Ranges<Held>>,
    /// By rank.
    waiting: Vec<Vec<Waiting>>,
    placed: Vec<Placed>,
}

impl<'a> Placer<'a> {
    fn new(message: &'a Message, move_count: usize) -> Self {
        let mut held = vec![Ranges::new(); message.rank_count as usize];
        for (rank, held) in (0..message.rank_count).zip(&mut held) {
            if let Some((chunks, spot)) = message.start(rank) {
                held.set(chunks, Held { spot, writer: None, is_sent: false });
            }
        }
        let waiting = (0..message.rank_count).map(|_| Vec::new()).collect();
        Self { message, held, waiting, placed: Vec::with_capacity(move_count) }
    }

    /// Cuts a move where its chunks lie apart, in the order of chunks.
    fn parts(&self, moving: &Move) -> Result<Vec<Part>, LowerError> {
        let goal = self.message.goal(moving.to, moving.chunks.start);
        let sent = self.held_by(moving.from, &moving.chunks)?;
        let added = match moving.action {
            Action::Copy => vec![(moving.chunks.clone(), None)],
            Action::Reduce => {
                let held = self.held_by(moving.to, &moving.chunks)?;
                held.into_iter().map(|(chunks, spot)| (chunks, Some(spot))).collect()
            }
        };
        let mut parts = Vec::with_capacity(1);
        for (sent, source) in &sent {
            for (added, held) in &added {
                let chunks = sent.start.max(added.start)..sent.end.min(added.end);
                if !chunks.is_empty() {
                    parts.push(Part { moving: Move { chunks, ..moving.clone() }, source: *source, held: *held, goal });
                }
            }
        }
        Ok(parts)
    }

    /// Where a rank has chunks, in ranges that lie together.
    fn held_by(&self, rank: u32, chunks: &Range<u32>) -> Result<Vec<(Range<u32>, Spot)>, LowerError> {
        let mut together: Vec<(Range<u32>, Spot)> = Vec::with_capacity(1);
        let mut at = chunks.start;
        for (part, held) in self.held[rank as usize].over(chunks.clone()) {
            if part.start != at {
                break;
            }
            at = part.end;
            match together.last_mut().filter(|(_, spot)| *spot == held.spot) {
                Some((last, _)) => last.end = part.end,
                None => together.push((part, held.spot)),
            }
        }
        match at == chunks.end {
            true => Ok(together),
            false => Err(LowerError::NotHeld { rank, chunk: self.message.graph_chunk(at) }),
        }
    }

    /// Adds a move and notes what it changes.
    fn apply(&mut self, part: Part) {
        let Part { moving, source, held, goal } = part;
        let number = self.placed.len();
        let (writer, is_first_use) = self.send(&moving);
        let mut target = goal.unwrap_or(Spot::SCRATCH);
        if let Some(displaced) = self.message.displaced(moving.to, &moving.chunks)
            && let Some(goal) = goal
            && self.occupies_input(moving.to, &displaced)
        {
            target = Spot::SCRATCH;
            let arrived = moving.chunks.clone();
            self.waiting[moving.to as usize].push(Waiting { displaced, arrived, goal });
        }
        self.held[moving.to as usize]
            .set(moving.chunks.clone(), Held { spot: target, writer: Some(number), is_sent: false });
        let settles = if moving.is_last_use { self.leave(&moving) } else { Vec::new() };
        self.placed.push(Placed { moving, source, target, held, writer, is_first_use, settles });
    }

    /// Notes that chunks are sent; returns the one move that brought them, if so, and whether this is the first time.
    fn send(&mut self, moving: &Move) -> (Option<usize>, bool) {
        let (mut writers, mut is_first_use) = (Vec::with_capacity(1), true);
        let never = Held { spot: Spot::SCRATCH, writer: None, is_sent: false };
        self.held[moving.from as usize].update(moving.chunks.clone(), &never, |held| {
            writers.push(held.writer);
            is_first_use &= !std::mem::replace(&mut held.is_sent, true);
        });
        writers.dedup();
        (if let [writer] = writers[..] { writer } else { None }, is_first_use)
    }

    /// Takes chunks away that nobody needs any more; returns what can settle in their place.
    fn leave(&mut self, moving: &Move) -> Vec<Range<u32>> {
        let rank = moving.from;
        self.held[rank as usize].remove(moving.chunks.clone());
        let mut settled = Vec::new();
        let mut position = 0;
        while let Some(waiting) = self.waiting[rank as usize].get(position) {
            if self.occupies_input(rank, &waiting.displaced) {
                position += 1;
                continue;
            }
            let Waiting { arrived, goal, .. } = self.waiting[rank as usize].swap_remove(position);
            self.held[rank as usize].set(arrived.clone(), Held { spot: goal, writer: None, is_sent: false });
            settled.push(arrived);
        }
        settled.sort_by_key(|chunks| chunks.start);
        settled
    }

    fn occupies_input(&self, rank: u32, chunks: &Range<u32>) -> bool {
        self.held[rank as usize].over(chunks.clone()).any(|(_, held)| held.spot.buffer == Buffer::Input)
    }

    fn finish(self) -> Result<Vec<Placed>, LowerError> {
        let waiting = (0_u32..).zip(&self.waiting).find_map(|(rank, waiting)| Some((rank, waiting.first()?)));
        match waiting {
            None => Ok(self.placed),
            Some((rank, waiting)) => {
                let chunk = self.message.graph_chunk(waiting.displaced.start);
                Err(LowerError::NotSent { rank, chunk })
            }
        }
    }
}
