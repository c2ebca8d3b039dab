//! The pieces in which a box gets the run of others.

use super::boxes::{BoxGrid, Seating};
use super::{Piece, Stages};

/// Something that a box gets in one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The stage, from 0.
    pub stage: usize,
    /// The box that holds the run and differs from the receiving one in the digit of the stage alone.
    pub from: u32,
    /// The box that gets it.
    pub to: u32,
}

impl Exchange {
    /// All that a box gets, in order: by stage, then by distance along the digit, the box behind it first.
    pub fn into_box(grid: &BoxGrid, to: u32) -> impl Iterator<Item = Self> + '_ {
        (0..grid.digits.len()).flat_map(move |stage| {
            let (unit, size, own) = (grid.unit(stage), grid.digits[stage], grid.digit(to, stage));
            let others = (0..own).rev().chain((own + 1..size).rev());
            others.map(move |digit| Self { stage, from: to - own * unit + digit * unit, to })
        })
    }

    /// The exchange between two boxes; `None` unless they differ in one digit.
    pub fn between(grid: &BoxGrid, from: u32, to: u32) -> Option<Self> {
        let mut stages = (0..grid.digits.len()).filter(|&stage| grid.digit(from, stage) != grid.digit(to, stage));
        let stage = stages.next()?;
        let boxes = grid.box_count()?;
        (stages.next().is_none() && from < boxes && to < boxes).then_some(Self { stage, from, to })
    }

    /// Boxes whose shares it is about: the run.
    pub fn run(self, grid: &BoxGrid) -> std::ops::Range<u32> {
        let unit = grid.unit(self.stage);
        let first = self.from / unit * unit;
        first..first + unit
    }

    /// By what equally short ways between two ranks are chosen in turn, for the piece that leaves from this place.
    ///
    /// Boxes that exchange along a digit with the same two values have consecutive numbers here, those that differ in
    /// the last digits alone next to each other, place by place, so that they use all ways alike, those of one place or
    /// of one pod as well.
    pub fn turn(self, grid: &BoxGrid, sender: u32, leaves: u32) -> u64 {
        let (mut rest, mut boxes, mut other_digits) = (sender, 1, 0);
        for (stage, &size) in grid.digits.iter().enumerate() {
            if stage != self.stage {
                boxes *= u64::from(size);
                other_digits = other_digits * u64::from(size) + u64::from(rest % size);
            }
            rest /= size;
        }
        let values = u64::from(grid.digit(self.from, self.stage)) + u64::from(grid.digit(self.to, self.stage));
        u64::from(leaves) * boxes + other_digits + values
    }
}

/// The pieces of exchanges.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    stages: &'a Stages,
    seating: &'a Seating,
}

impl<'a> Pieces<'a> {
    /// Those of a schedule.
    pub const fn new(stages: &'a Stages, seating: &'a Seating) -> Self {
        Self { stages, seating }
    }

    /// Number of chunks of the run. At most k·N.
    pub fn chunks(&self, exchange: Exchange) -> u64 {
        u64::from(self.seating.ranks_in(exchange.run(&self.stages.grid))) * self.stages.chunks_per_share
    }

    /// Chunks of the run, its first, that each place of the one box sends to the same place of the other; pieces carry
    /// those after them.
    pub fn inside_first(&self, exchange: Exchange) -> u64 {
        let Exchange { stage, from, to } = exchange;
        if self.most_inside_first(stage) == 0 || self.is_stated(exchange) {
            return 0;
        }
        let has_rank = |(place, _): (u32, u32)| self.seating.rank(from, place).is_some();
        let is_for_all = self.seating.full(from).is_some() || self.seating.live(to).all(has_rank);
        let is_made = is_for_all && !self.seating.is_empty(to);
        if is_made { self.most_inside_first(stage).min(self.chunks(exchange)) } else { 0 }
    }

    fn most_inside_first(&self, stage: usize) -> u64 {
        self.stages.inside_first.get(stage).copied().unwrap_or(0)
    }

    /// Chunks of each piece, if all places carry equal ones because nothing else is stated; what
    /// [`put`](Self::put) says at greater length.
    pub fn equal(&self, exchange: Exchange) -> Option<u64> {
        let are_full = [exchange.from, exchange.to].into_iter().all(|of_box| self.seating.full(of_box).is_some());
        let is_usual = are_full && !self.is_stated(exchange);
        is_usual.then(|| self.to_full(exchange.stage, exchange.from))?.map(|(each, _)| each)
    }

    /// What a box with a rank on each place sends in a stage to each other such box, unless something is stated of the
    /// two: the chunks of each piece, and those that go in the box first. `None`: pieces differ.
    pub(crate) fn to_full(&self, stage: usize, from: u32) -> Option<(u64, u64)> {
        let chunks = self.chunks(Exchange { stage, from, to: from });
        let inside_first = self.most_inside_first(stage).min(chunks);
        let places = u64::from(self.seating.places());
        let pieces = chunks - inside_first;
        pieces.is_multiple_of(places).then_some((pieces / places, inside_first))
    }

    fn is_stated(&self, exchange: Exchange) -> bool {
        let exceptions = &self.stages.exceptions;
        !exceptions.is_empty() && exceptions.contains_key(&(exchange.from, exchange.to))
    }

    /// Puts the pieces of an exchange into `pieces`, which it clears, in the order of the chunks that they carry: all of
    /// the run that does not go in the box first.
    ///
    /// Where nothing else is stated, places that both boxes have ranks on carry equal pieces; chunks over go one each
    /// to places in turn, from one that the sum of all digits of both boxes chooses. Without such places there are
    /// none.
    pub fn put(&self, exchange: Exchange, pieces: &mut Vec<Piece>) {
        pieces.clear();
        if let Some(stated) = self.stages.exceptions.get(&(exchange.from, exchange.to)) {
            pieces.extend_from_slice(stated);
            return;
        }
        let chunks = self.chunks(exchange) - self.inside_first(exchange);
        let live = self.seating.live(exchange.from).map(|(place, _)| place);
        let common = live.filter(|&place| self.seating.rank(exchange.to, place).is_some());
        pieces.extend(common.map(|place| Piece {
            sender: exchange.from,
            leaves: place,
            enters: place,
            chunk_count: 0,
        }));
        let count = pieces.len() as u64;
        if count == 0 {
            return;
        }
        let (each, over) = (chunks / count, chunks % count);
        let first = if over == 0 { 0 } else { self.digit_sum(exchange) % count };
        for (number, piece) in (0_u64..).zip(pieces.iter_mut()) {
            piece.chunk_count = each + u64::from((number + count - first) % count < over);
        }
        pieces.retain(|piece| piece.chunk_count > 0);
    }

    fn digit_sum(&self, exchange: Exchange) -> u64 {
        let grid = &self.stages.grid;
        let digits = |of_box: u32| (0..grid.digits.len()).map(move |stage| u64::from(grid.digit(of_box, stage)));
        digits(exchange.from).chain(digits(exchange.to)).sum()
    }
}
