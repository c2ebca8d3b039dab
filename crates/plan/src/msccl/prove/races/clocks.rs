//! Vector clocks over the blocks of one rank.

use std::ops::Range;

use crate::msccl::prove::model::Model;
use crate::msccl::prove::place::Findings;

/// Blocks counted at once. A row is then two or four machine words wide and its maximum a few instructions; the
/// table of all steps stays small for ranks of many blocks.
const WIDTH: usize = 16;

type Row = [i16; WIDTH];

/// For each step of one rank and each of its blocks: how many steps of that block happen before the step, in either
/// order and strongly; see the [module](super).
pub(super) struct Clocks {
    blocks: Range<usize>,
    first_step: usize,
    /// By step, then by block.
    before: Vec<Before>,
    positions: Vec<i16>,
    block_of: Vec<usize>,
}

/// Numbers of steps of a block that happen before some step.
#[derive(Clone, Copy, Default)]
pub(super) struct Before {
    /// In either order.
    pub(super) any: i16,
    /// Strongly.
    pub(super) strong: i16,
}

impl Clocks {
    /// Counts only chains within the rank; `order` holds its steps. `None` when asked to stop.
    pub(super) fn within_rank(
        model: &Model<'_>,
        rank: usize,
        order: &[usize],
        findings: &mut Findings<'_>,
    ) -> Option<Self> {
        Self::new(model, rank, order, model.ranks[rank].steps.clone(), false, findings)
    }

    /// Counts chains through all ranks; `order` holds the steps of all. `None` when asked to stop.
    pub(super) fn through_all_ranks(
        model: &Model<'_>,
        rank: usize,
        order: &[usize],
        findings: &mut Findings<'_>,
    ) -> Option<Self> {
        Self::new(model, rank, order, 0..model.steps.len(), true, findings)
    }

    /// `None` when asked to stop.
    fn new(
        model: &Model<'_>,
        rank: usize,
        order: &[usize],
        scope: Range<usize>,
        with_messages: bool,
        findings: &mut Findings<'_>,
    ) -> Option<Self> {
        let (blocks, steps) = (model.ranks[rank].blocks.clone(), model.ranks[rank].steps.clone());
        let mut clocks = Self {
            first_step: steps.start,
            before: vec![Before::default(); steps.len() * blocks.len()],
            positions: steps.clone().map(|step| position(model, step)).collect(),
            block_of: steps.clone().map(|step| model.steps[step].block).collect(),
            blocks: blocks.clone(),
        };
        // So many blocks at a time, a column each: O(blocks / WIDTH) passes over the order.
        for start in blocks.clone().step_by(WIDTH) {
            if findings.must_stop(order.len() as u64) {
                return None;
            }
            let columns = start..blocks.end.min(start + WIDTH);
            let table = Table::new(model, columns.clone(), order, scope.clone(), with_messages);
            for step in steps.clone() {
                let row = clocks.row(step);
                for (column, block) in columns.clone().enumerate() {
                    clocks.before[row + block - blocks.start] = table.before(step, column);
                }
            }
        }
        Some(clocks)
    }

    fn row(&self, step: usize) -> usize {
        (step - self.first_step) * self.blocks.len()
    }

    /// Position of a step of the rank in its block.
    pub(super) fn position(&self, step: usize) -> i16 {
        self.positions[step - self.first_step]
    }

    /// How many steps of a block happen before a step.
    pub(super) fn before(&self, step: usize, block: usize) -> Before {
        self.before[self.row(step) + block - self.blocks.start]
    }

    /// Whether `earlier` happens before `later`: strongly, or at all where that suffices.
    pub(super) fn reaches(&self, earlier: usize, later: usize, weak_suffices: bool) -> bool {
        let before = self.before(later, self.block_of[earlier - self.first_step]);
        let count = if weak_suffices { before.any } else { before.strong };
        count > self.position(earlier)
    }
}

fn position(model: &Model<'_>, step: usize) -> i16 {
    i16::try_from(model.position(step)).expect("the model refuses ranks of 2¹⁵ steps")
}

/// Clocks of all steps in scope for up to [`WIDTH`] blocks.
struct Table {
    first_step: usize,
    any: Vec<Row>,
    strong: Vec<Row>,
}

impl Table {
    fn new(
        model: &Model<'_>,
        columns: Range<usize>,
        order: &[usize],
        scope: Range<usize>,
        with_messages: bool,
    ) -> Self {
        let mut table =
            Self { first_step: scope.start, any: vec![[0; WIDTH]; scope.len()], strong: vec![[0; WIDTH]; scope.len()] };
        for &step in order {
            let own = |earlier: usize| {
                let block = model.steps[earlier].block;
                columns.contains(&block).then(|| (block - columns.start, position(model, earlier) + 1))
            };
            if model.position(step) > 0 {
                table.merge(step - 1, step, own(step - 1), true);
            }
            if let Some(awaited) = model.steps[step].awaited {
                table.merge(awaited, step, own(awaited), true);
            }
            if let Some(sender) = model.steps[step].sender.filter(|_| with_messages) {
                table.merge(sender, step, own(sender), false);
            }
        }
        table
    }

    /// Enters that `earlier`, and all that is before it, is before `later`: all of it, or chunk by chunk. `own` is
    /// the column and number of `earlier` itself.
    fn merge(&mut self, earlier: usize, later: usize, own: Option<(usize, i16)>, is_whole: bool) {
        let (from, to) = (earlier - self.first_step, later - self.first_step);
        let mut any = self.any[from];
        let mut strong = if is_whole { any } else { self.strong[from] };
        if let Some((column, number)) = own {
            any[column] = any[column].max(number);
            if is_whole {
                strong[column] = strong[column].max(number);
            }
        }
        raise(&mut self.any[to], &any);
        raise(&mut self.strong[to], &strong);
    }

    fn before(&self, step: usize, column: usize) -> Before {
        let row = step - self.first_step;
        Before { any: self.any[row][column], strong: self.strong[row][column] }
    }
}

fn raise(target: &mut Row, least: &Row) {
    for column in 0..WIDTH {
        target[column] = target[column].max(least[column]);
    }
}
