//! Exchanges of equal pieces between boxes with the same switches, counted for all boxes of a group at once.
//!
//! A group of a stage is the boxes that differ in its digit alone: each gets the run of each other one. Where two of
//! them have a rank on each place, are at the same switches place by place, and nothing is stated of the pair, what
//! crosses between them depends on the box that sends alone, and so do the links that carry it. So a box sends the same
//! as many times as there are others like it, and gets the sum of what they send, less its own.

use std::collections::BTreeMap;

use crate::stages::{BoxGrid, Exchange, Nics, Pieces, Seating, Stages};

/// The groups of an exchange.
pub(super) struct Alike<'a> {
    stages: &'a Stages,
    /// By stage; none for digits with one value.
    of_stages: Vec<Option<OfStage>>,
    /// Pairs that something is stated of: by the box that gets it, those that it is from.
    stated_into: BTreeMap<u32, Vec<u32>>,
}

struct OfStage {
    /// By box, what it sends to each other one that is like it. `None`: its exchanges are counted one by one.
    sent: Vec<Option<Sent>>,
    /// By first box of a group, those of it whose exchanges are counted one by one.
    others: BTreeMap<u32, Vec<u32>>,
}

/// Chunks from each place of a box to the same place of another one.
#[derive(Clone, Copy, Default)]
struct Sent {
    /// Those that the other box spreads.
    each: u64,
    /// Those that were spread in this one.
    inside_first: u64,
}

/// What a box exchanges with those that are like it, in one stage.
pub(super) struct Exchanged {
    /// The stage.
    pub(super) stage: usize,
    /// The box.
    pub(super) of_box: u32,
    /// Chunks from each of its places, in all.
    pub(super) out: u64,
    /// Chunks to each of its places, in all.
    pub(super) into: u64,
    /// Of those, the chunks that it spreads.
    pub(super) spread: u64,
    /// Whether something that it sends was spread in it first.
    pub(super) has_inside_first: bool,
}

impl<'a> Alike<'a> {
    /// Those of an exchange whose stated pairs are such. O(boxes · stages + stated pairs).
    pub(super) fn of(stages: &'a Stages, seating: &Seating, nics: &Nics) -> Self {
        let mut stated_into: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &(from, to) in stages.exceptions.keys() {
            stated_into.entry(to).or_default().push(from);
        }
        let of_stages = (0..).zip(&stages.grid.digits);
        let of_stages = of_stages.map(|(stage, &size)| (size > 1).then(|| OfStage::of(stage, stages, seating, nics)));
        Self { stages, of_stages: of_stages.collect(), stated_into }
    }

    /// What boxes exchange with those that are like them.
    pub(super) fn exchanged(&self) -> Vec<Exchanged> {
        let grid = &self.stages.grid;
        let mut all = Vec::new();
        for (stage, of_stage) in (0..).zip(&self.of_stages).filter_map(|(stage, of)| Some((stage, of.as_ref()?))) {
            for first in firsts(grid, stage) {
                let alike = || group(grid, stage, first).filter_map(|of_box| Some((of_box, of_stage.sent(of_box)?)));
                let (count, sum) =
                    alike().fold((0, Sent::default()), |(count, sum), (_, sent)| (count + 1, sum + sent));
                for (of_box, sent) in alike() {
                    let stated_to = self.stated(stage, of_box, false).count() as u64;
                    let stated = self.stated(stage, of_box, true).filter_map(|from| of_stage.sent(from));
                    let got = stated.fold(sum - sent, |got, stated| got - stated);
                    let partners = count - 1 - stated_to;
                    all.push(Exchanged {
                        stage,
                        of_box,
                        out: partners * sent.in_all(),
                        into: got.in_all(),
                        spread: got.each,
                        has_inside_first: partners > 0 && sent.inside_first > 0,
                    });
                }
            }
        }
        all
    }

    /// Exchanges by which a box gets something, or others get something from it, that are to be counted one by one.
    pub(super) fn one_by_one(&self, of_box: u32, is_into: bool) -> Vec<Exchange> {
        let grid = &self.stages.grid;
        let mut all = Vec::new();
        for (stage, of_stage) in (0..).zip(&self.of_stages).filter_map(|(stage, of)| Some((stage, of.as_ref()?))) {
            let mut add = |other: u32| {
                let (from, to) = if is_into { (other, of_box) } else { (of_box, other) };
                all.push(Exchange { stage, from, to });
            };
            let first = of_box - grid.digit(of_box, stage) * grid.unit(stage);
            if of_stage.sent(of_box).is_none() {
                group(grid, stage, first).filter(|&other| other != of_box).for_each(add);
                continue;
            }
            of_stage.others.get(&first).into_iter().flatten().copied().for_each(&mut add);
            self.stated(stage, of_box, is_into).for_each(add);
        }
        all
    }

    /// Boxes like this one, in a stage, of whose exchange with it something is stated.
    fn stated(&self, stage: usize, of_box: u32, is_into: bool) -> impl Iterator<Item = u32> + '_ {
        let into = self.stated_into.get(&of_box).filter(|_| is_into).into_iter().flatten().copied();
        let out = (!is_into).then(|| self.stages.exceptions.range((of_box, 0)..=(of_box, u32::MAX)));
        let out = out.into_iter().flatten().map(|(&(_, to), _)| to);
        let is_like = move |&other: &u32| {
            let exchange = Exchange::between(&self.stages.grid, of_box, other);
            let of_stage = self.of_stages.get(stage).and_then(Option::as_ref);
            exchange.is_some_and(|exchange| exchange.stage == stage)
                && of_stage.is_some_and(|of| of.sent(other).is_some())
        };
        into.chain(out).filter(is_like)
    }
}

impl OfStage {
    fn of(stage: usize, stages: &Stages, seating: &Seating, nics: &Nics) -> Self {
        let (grid, rules) = (&stages.grid, Pieces::new(stages, seating));
        let mut of_stage = Self { sent: vec![None; seating.box_count() as usize], others: BTreeMap::new() };
        for first in firsts(grid, stage) {
            let Some(usual) = group(grid, stage, first).find(|&of_box| nics.are_alike(of_box, of_box)) else {
                continue;
            };
            let mut others = Vec::new();
            for from in group(grid, stage, first) {
                let sent = nics.are_alike(usual, from).then(|| rules.to_full(stage, from)).flatten();
                of_stage.sent[from as usize] = sent.map(|(each, inside_first)| Sent { each, inside_first });
                if sent.is_none() {
                    others.push(from);
                }
            }
            of_stage.others.insert(first, others);
        }
        of_stage
    }

    fn sent(&self, of_box: u32) -> Option<Sent> {
        self.sent.get(of_box as usize).copied().flatten()
    }
}

/// The first box of each group of a stage.
fn firsts(grid: &BoxGrid, stage: usize) -> impl Iterator<Item = u32> + '_ {
    (0..grid.box_count().unwrap_or(0)).filter(move |&of_box| grid.digit(of_box, stage) == 0)
}

/// The boxes of a group, given the first.
fn group(grid: &BoxGrid, stage: usize, first: u32) -> impl Iterator<Item = u32> + '_ {
    let size = grid.digits.get(stage).copied().unwrap_or(0);
    (0..size).map(move |digit| first + digit * grid.unit(stage))
}

impl Sent {
    const fn in_all(self) -> u64 {
        self.each + self.inside_first
    }
}

impl std::ops::Add for Sent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { each: self.each + other.each, inside_first: self.inside_first + other.inside_first }
    }
}

impl std::ops::Sub for Sent {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { each: self.each - other.each, inside_first: self.inside_first - other.inside_first }
    }
}
