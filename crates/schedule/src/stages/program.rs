//! What one rank does in an exchange in stages, from the rule alone: no tree and no other rank's program is needed.

use std::ops::Range;

use super::boxes::{BoxGrid, SeatError, Seating};
use super::pieces::{Exchange, Pieces};
use super::{BoxTree, Inside, Piece, Stages};
use crate::forest::Action;

/// The program of one rank.
///
/// All ranks have the same steps in the same order, some of them empty. In a step a rank sends what it had before it,
/// and the moves of two ranks in one step are in the same order at both. So the first step that is not done everywhere
/// can always be done, also where a send waits for its receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankProgram {
    /// One for each action of the schedule.
    pub phases: Vec<ProgramPhase>,
}

/// What a rank does in one phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramPhase {
    /// What receivers do with the data.
    pub action: Action,
    /// In order.
    pub steps: Vec<ProgramStep>,
}

/// Moves that may be under way at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramStep {
    /// Whether they stay in the box.
    pub is_inside: bool,
    /// What the rank sends.
    pub sends: Vec<Move>,
    /// What it receives.
    pub receives: Vec<Move>,
}

/// Chunks between this rank and another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The other rank.
    pub peer: u32,
    /// Chunks of the vector of all shares, not empty, ascending within each range.
    pub chunks: Vec<Range<u64>>,
}

/// Why a rank has no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ProgramError {
    #[error(transparent)]
    Seats(#[from] SeatError),
    #[error("rank {rank} does not exist; there are {rank_count}")]
    UnknownRank { rank: u32, rank_count: u32 },
    #[error("box {of_box} does not spread what enters it; check the exchange first")]
    Broken { of_box: u32 },
}

impl Stages {
    /// The program of a rank.
    ///
    /// Own shares are spread in the box. Then, stage by stage and distance by distance along the digit of the stage,
    /// each box sends to the box that is so far ahead, and spreads what comes from the one that is so far behind.
    ///
    /// * **Source.** Design of plans for tens of thousands of ranks, T10: the order of moves.
    /// * **Errors.** [`ProgramError`]. What the checker refuses may come out as a wrong program.
    /// * **Cost.** O(N + exceptions + Σ digits · places).
    pub fn program(&self, rank: u32, rank_count: u32) -> Result<RankProgram, ProgramError> {
        let seating = self.grid.seating(rank_count)?;
        let seat = seating.seat_of(rank).ok_or(ProgramError::UnknownRank { rank, rank_count })?;
        let mut writer = Writer::new(self, &seating, (seat / self.grid.places, seat % self.grid.places))?;
        writer.own()?;
        for stage in 0..self.grid.digits.len() {
            for distance in 1..self.grid.digits[stage] {
                writer.round(stage, distance)?;
            }
        }
        let copy = writer.steps;
        let phases = self.actions.iter().map(|&action| match action {
            Action::Copy => ProgramPhase { action, steps: copy.clone() },
            Action::Reduce => ProgramPhase { action, steps: copy.iter().rev().map(ProgramStep::turned).collect() },
        });
        Ok(RankProgram { phases: phases.collect() })
    }
}

impl ProgramStep {
    /// The same moves the other way round.
    fn turned(&self) -> Self {
        Self { is_inside: self.is_inside, sends: self.receives.clone(), receives: self.sends.clone() }
    }
}

/// A piece with the chunks that it carries.
struct Carried {
    piece: Piece,
    chunks: Vec<Range<u64>>,
}

struct Writer<'a> {
    stages: &'a Stages,
    seating: &'a Seating,
    rules: Pieces<'a>,
    of_box: u32,
    place: u32,
    rank: u32,
    /// Chunks that have entered at each place of the box.
    entered: Vec<u64>,
    /// Exchanges of which others hold the run as well, and in which this rank sends a piece.
    relayed: Vec<Exchange>,
    /// Hops of the deepest tree of the box.
    depth: usize,
    steps: Vec<ProgramStep>,
}

impl<'a> Writer<'a> {
    fn new(stages: &'a Stages, seating: &'a Seating, (of_box, place): (u32, u32)) -> Result<Self, ProgramError> {
        let broken = ProgramError::Broken { of_box };
        let rank = seating.rank(of_box, place).ok_or(broken.clone())?;
        let sends = |pieces: &[Piece]| pieces.iter().any(|piece| piece.sender == of_box && piece.leaves == place);
        let stated = stages.exceptions.iter().filter(|((from, _), pieces)| *from != of_box && sends(pieces));
        let relayed = stated.filter_map(|(&(from, to), _)| Exchange::between(&stages.grid, from, to)).collect();
        let depth = match stages.inside_of(of_box).ok_or(broken)? {
            Inside::Star => 1,
            Inside::Trees(trees) => {
                trees.iter().map(|tree| depths(tree).into_values().max().unwrap_or(0)).max().unwrap_or(0)
            }
        };
        Ok(Self {
            stages,
            seating,
            rules: Pieces::new(stages, seating),
            of_box,
            place,
            rank,
            entered: vec![0; seating.places() as usize],
            relayed,
            depth,
            steps: Vec::new(),
        })
    }

    /// The shares of the box are spread in it.
    fn own(&mut self) -> Result<(), ProgramError> {
        let k = self.stages.chunks_per_share;
        let own = |(place, rank): (u32, u32)| {
            let first = u64::from(rank) * k;
            let piece = Piece { sender: self.of_box, leaves: place, enters: place, chunk_count: k };
            Carried { piece, chunks: std::iter::once(first..first + k).collect() }
        };
        let shares: Vec<Carried> = self.seating.live(self.of_box).map(own).collect();
        self.spread(&shares)
    }

    /// What is exchanged with boxes at one distance along a digit.
    fn round(&mut self, stage: usize, distance: u32) -> Result<(), ProgramError> {
        let (grid, of_box) = (&self.stages.grid, self.of_box);
        let ahead = Exchange { stage, from: of_box, to: moved(grid, of_box, stage, distance) };
        let behind = Exchange { stage, from: moved(grid, of_box, stage, grid.digits[stage] - distance), to: of_box };
        let at_distance = |exchange: &&Exchange| {
            exchange.stage == stage && moved(grid, exchange.from, stage, distance) == exchange.to
        };
        let mut sent: Vec<Exchange> = self.relayed.iter().filter(at_distance).copied().collect();
        sent.push(ahead);
        // Both ends go by the receiving box.
        sent.sort_by_key(|exchange| exchange.to);
        let mut step = ProgramStep::default();
        for exchange in sent {
            let counterpart = self.seating.rank(exchange.to, self.place).filter(|_| exchange.from == of_box);
            step.sends.extend(counterpart.and_then(|peer| self.inside_first(exchange, peer)));
            for Carried { piece, chunks } in self.carried(exchange) {
                let own = piece.sender == of_box && piece.leaves == self.place;
                let peer = self.seating.rank(exchange.to, piece.enters).filter(|_| own);
                step.sends.extend(peer.map(|peer| Move { peer, chunks }));
            }
        }
        let counterpart = self.seating.rank(behind.from, self.place);
        step.receives.extend(counterpart.and_then(|peer| self.inside_first(behind, peer)));
        let entering = self.carried(behind);
        for Carried { piece, chunks } in entering.iter().filter(|carried| carried.piece.enters == self.place) {
            let peer = self.seating.rank(piece.sender, piece.leaves);
            step.receives.extend(peer.map(|peer| Move { peer, chunks: chunks.clone() }));
        }
        self.steps.push(step);
        self.spread(&entering)
    }

    /// What goes in the box first, between this rank and its counterpart in an exchange.
    fn inside_first(&self, exchange: Exchange, peer: u32) -> Option<Move> {
        let count = self.rules.inside_first(exchange);
        let run = exchange.run(&self.stages.grid);
        (count > 0).then(|| Move { peer, chunks: self.seating.chunks(run, 0..count, self.stages.chunks_per_share) })
    }

    /// The pieces of an exchange with their chunks; none where one of the boxes has no ranks.
    fn carried(&self, exchange: Exchange) -> Vec<Carried> {
        let mut pieces = Vec::new();
        if !self.seating.is_empty(exchange.to) && self.rules.chunks(exchange) > 0 {
            self.rules.put(exchange, &mut pieces);
        }
        let (run, k) = (exchange.run(&self.stages.grid), self.stages.chunks_per_share);
        let mut first = self.rules.inside_first(exchange);
        let carried = |piece: Piece| {
            let chunks = first..first + piece.chunk_count;
            first = chunks.end;
            Carried { piece, chunks: self.seating.chunks(run.clone(), chunks, k) }
        };
        pieces.into_iter().map(carried).collect()
    }

    /// What enters the box is spread in it: as many steps as trees are deep.
    fn spread(&mut self, entering: &[Carried]) -> Result<(), ProgramError> {
        let broken = ProgramError::Broken { of_box: self.of_box };
        let mut steps = vec![ProgramStep { is_inside: true, ..ProgramStep::default() }; self.depth];
        for Carried { piece, chunks } in entering {
            let entered = self.entered.get_mut(piece.enters as usize).ok_or(broken.clone())?;
            let number = *entered;
            *entered += piece.chunk_count;
            match self.stages.inside_of(self.of_box).ok_or(broken.clone())? {
                Inside::Star => {
                    let step = steps.first_mut().ok_or(broken.clone())?;
                    let from = self.seating.rank(self.of_box, piece.enters).ok_or(broken.clone())?;
                    if from == self.rank {
                        let others = self.seating.live(self.of_box).filter(|&(_, rank)| rank != from);
                        step.sends.extend(others.map(|(_, peer)| Move { peer, chunks: chunks.clone() }));
                    } else {
                        step.receives.push(Move { peer: from, chunks: chunks.clone() });
                    }
                }
                Inside::Trees(trees) => {
                    for (tree, chunks) in in_turn(trees, piece.enters, number, chunks).ok_or(broken.clone())? {
                        let depths = depths(tree);
                        for &(from, to) in &tree.hops {
                            let depth = depths.get(&to).and_then(|depth| depth.checked_sub(1));
                            let step = depth.and_then(|depth| steps.get_mut(depth)).ok_or(broken.clone())?;
                            let rank = |place| self.seating.rank(self.of_box, place).ok_or(broken.clone());
                            if from == self.place {
                                step.sends.push(Move { peer: rank(to)?, chunks: chunks.clone() });
                            } else if to == self.place {
                                step.receives.push(Move { peer: rank(from)?, chunks: chunks.clone() });
                            }
                        }
                    }
                }
            }
        }
        self.steps.extend(steps);
        Ok(())
    }
}

/// The box that is so far ahead along a digit.
fn moved(grid: &BoxGrid, of_box: u32, stage: usize, distance: u32) -> u32 {
    let (unit, size, own) = (grid.unit(stage), grid.digits[stage], grid.digit(of_box, stage));
    let digit = (u64::from(own) + u64::from(distance)) % u64::from(size);
    of_box - own * unit + u32::try_from(digit).unwrap_or(0) * unit
}

/// By place, hops from the root, which has none.
fn depths(tree: &BoxTree) -> std::collections::BTreeMap<u32, usize> {
    let mut depths = std::collections::BTreeMap::from([(tree.root, 0)]);
    for &(from, to) in &tree.hops {
        let depth = depths.get(&from).copied().unwrap_or(0) + 1;
        depths.entry(to).or_insert(depth);
    }
    depths
}

/// Chunks that go along a tree.
type Part<'a> = (&'a BoxTree, Vec<Range<u64>>);

/// Chunks that enter at a place by the trees whose turn they are, given how many have entered before. `None`: it has no
/// tree.
fn in_turn<'a>(trees: &'a [BoxTree], place: u32, before: u64, chunks: &[Range<u64>]) -> Option<Vec<Part<'a>>> {
    let own: Vec<&BoxTree> = trees.iter().filter(|tree| tree.root == place).collect();
    let mut ends = Vec::with_capacity(own.len());
    let turn = own.iter().try_fold(0_u64, |end, tree| {
        let end = end.checked_add(tree.multiplicity)?;
        ends.push(end);
        Some(end)
    })?;
    let mut parts: Vec<Part<'a>> = own.iter().map(|&tree| (tree, Vec::new())).collect();
    let mut number = before;
    for range in chunks {
        let mut first = range.start;
        while first < range.end {
            let at = number.checked_rem(turn)?;
            let tree = ends.iter().position(|&end| at < end)?;
            // With one tree all turns are its own.
            let left = if own.len() == 1 { u64::MAX } else { ends[tree] - at };
            let count = left.min(range.end - first);
            parts[tree].1.push(first..first + count);
            (first, number) = (first + count, number + count);
        }
    }
    parts.retain(|(_, chunks)| !chunks.is_empty());
    Some(parts)
}
