//! Which rounds a block does: the same at all ranks, as a signal has one block at each end.

use std::collections::BTreeMap;

use canopy_schedule::{Action, BoxTree, Exchange, Inside, Stages};

use super::rounds::distances;
use crate::mscclpp::ExecutorLimits;

/// Most messages that an operation takes.
pub(super) const PER_OPERATION: usize = 8;

/// What one round needs of a block, of the rank that needs most.
#[derive(Clone, Copy, Debug, Default)]
struct Need {
    operations: usize,
    ports: usize,
}

/// The lane of each round, phase after phase, and how many there are.
///
/// Rounds of a lane follow each other. There are `blocks_min` lanes or more, if there are as many rounds, and more
/// where blocks have no room. Lanes end with phases: copies and sums have different remote buffers.
/// O(rounds + exceptions).
pub(super) fn lanes(stages: &Stages, blocks_min: u32, limits: &ExecutorLimits) -> (Vec<Vec<usize>>, usize) {
    let shape = Shape::of(stages);
    let rounds = 1 + distances(&stages.grid).count();
    let all = rounds * stages.actions.len();
    let most = all.div_ceil((blocks_min as usize).clamp(1, all.max(1)));
    let room = (limits.operations_per_block as usize).saturating_sub(shape.fixed(stages));
    let (mut lane, mut lanes) = (0, Vec::with_capacity(stages.actions.len()));
    for (position, &action) in stages.actions.iter().enumerate() {
        let mut order: Vec<Option<usize>> =
            std::iter::once(None).chain(distances(&stages.grid).map(|(stage, _)| Some(stage))).collect();
        if action == Action::Reduce {
            order.reverse();
        }
        lane += usize::from(position > 0);
        let (mut used, mut count, mut of_phase) = (Need::default(), 0, Vec::with_capacity(order.len()));
        for stage in order {
            let need = shape.need(action, stage);
            let is_full = used.operations + need.operations > room
                || used.ports + need.ports > limits.channels_per_block as usize
                || count == most;
            if is_full && count > 0 {
                (lane, used, count) = (lane + 1, Need::default(), 0);
            }
            (used.operations, used.ports, count) =
                (used.operations + need.operations, used.ports + need.ports, count + 1);
            of_phase.push(lane);
        }
        lanes.push(of_phase);
    }
    (lanes, lane + 1)
}

/// What a rule needs at most.
struct Shape {
    places: usize,
    /// Hops of the deepest tree of a box, and trees of one root whose turns divide a piece.
    depth: usize,
    parts: usize,
    /// By stage: most pieces of an exchange, and most that leave from one rank and enter at one in a round.
    stages: Vec<(usize, usize, usize)>,
    /// By stage: whether something goes in the box first.
    inside_first: Vec<bool>,
}

impl Shape {
    fn of(stages: &Stages) -> Self {
        let places = stages.grid.places as usize;
        let mut of_stages = vec![(places, 1, 1); stages.grid.digits.len()];
        let mut left: BTreeMap<(usize, u32, u32, u32), usize> = BTreeMap::new();
        for (&(from, to), pieces) in &stages.exceptions {
            let Some(exchange) = Exchange::between(&stages.grid, from, to) else { continue };
            let (size, own) = (stages.grid.digits.get(exchange.stage), stages.grid.digit(from, exchange.stage));
            let size = size.copied().unwrap_or(1);
            let distance = (stages.grid.digit(to, exchange.stage) + size - own) % size;
            let mut entered: BTreeMap<u32, usize> = BTreeMap::new();
            for piece in pieces {
                // A rank that sends for others sends its own pieces, too.
                let count = left.entry((exchange.stage, distance, piece.sender, piece.leaves));
                *count.or_insert(usize::from(piece.sender != from)) += 1;
                *entered.entry(piece.enters).or_default() += 1;
            }
            if let Some((most, _, enter)) = of_stages.get_mut(exchange.stage) {
                *most = (*most).max(pieces.len());
                *enter = (*enter).max(entered.into_values().max().unwrap_or(0));
            }
        }
        for ((stage, ..), count) in left {
            if let Some((_, leave, _)) = of_stages.get_mut(stage) {
                *leave = (*leave).max(count);
            }
        }
        let trees = |inside: &Inside| match inside {
            Inside::Star => (1, 1),
            Inside::Trees(trees) => (trees.iter().map(depth).max().unwrap_or(1), parts(trees)),
        };
        let trees: Vec<(usize, usize)> = stages.inside.iter().map(trees).collect();
        let depth = trees.iter().map(|(depth, _)| *depth).max().unwrap_or(1);
        let parts = trees.iter().map(|(_, parts)| *parts).max().unwrap_or(1);
        let inside_first = stages.inside_first.iter().map(|&chunks| chunks > 0).collect();
        Self { places, depth, parts, stages: of_stages, inside_first }
    }

    /// Operations of a block that do not belong to rounds: greetings, meetings and acknowledgements.
    fn fixed(&self, stages: &Stages) -> usize {
        let exchanged = stages.grid.digits.iter().filter(|&&size| size > 1).count();
        let meetings = stages.actions.iter().map(|action| match action {
            Action::Copy => 1 + exchanged,
            Action::Reduce => 1 + 2 * exchanged,
        });
        let of_ports = if exchanged > 0 { 2 * 4 + 2 } else { 1 };
        let of_memory = 2 * self.places.saturating_sub(1).div_ceil(PER_OPERATION);
        of_ports + of_memory + meetings.sum::<usize>()
    }

    fn need(&self, action: Action, stage: Option<usize>) -> Need {
        let (pieces, leave, enter) =
            stage.and_then(|stage| self.stages.get(stage)).copied().unwrap_or((self.places, 0, 1));
        let per = |count: usize| count.div_ceil(PER_OPERATION);
        let others = self.places.saturating_sub(1);
        let notices = 2 * per(others) + 3;
        let inside = match action {
            Action::Copy => per(enter * others * self.parts) + notices,
            Action::Reduce => 2 * per(pieces * self.parts) + notices + enter * self.parts * others.div_ceil(7),
        };
        // What goes in the box first is one more part of a message; what is sent of a sum may be in two places then.
        let more = match stage.and_then(|stage| self.inside_first.get(stage)) {
            Some(true) if action == Action::Reduce => 3,
            Some(true) => 1,
            _ => 0,
        };
        let outside = if stage.is_some() { 1 + 2 * per(leave.max(enter)) + enter.max(leave) - 1 + more } else { 0 };
        Need { operations: self.depth * inside + outside, ports: leave + if stage.is_some() { enter } else { 0 } }
    }
}

/// Hops from the root of a tree to its farthest place.
fn depth(tree: &BoxTree) -> usize {
    let mut depths: BTreeMap<u32, usize> = BTreeMap::new();
    for &(from, to) in &tree.hops {
        let depth = depths.get(&from).copied().unwrap_or(0) + 1;
        depths.insert(to, depth);
    }
    depths.into_values().max().unwrap_or(0)
}

/// Trees of the root that has most.
fn parts(trees: &[BoxTree]) -> usize {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    trees.iter().for_each(|tree| *counts.entry(tree.root).or_default() += 1);
    counts.into_values().max().unwrap_or(1)
}
