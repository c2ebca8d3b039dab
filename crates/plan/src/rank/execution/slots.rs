//! Where contributions to sums wait in the scratch of their receivers, so that senders know it from the rule alone.
//!
//! Scratch begins with what comes over the network: for each stage and each distance along its digit as much room as
//! any rank needs there. Then comes what ranks that send for other boxes get back, then what comes from each place of
//! the box.

use std::collections::{BTreeSet, HashMap};

use canopy_schedule::{Exchange, Inside, Piece, Seating, Stages};

/// A piece, by the pair of boxes that exchange it and its position there.
pub(super) type PieceKey = (u32, u32, usize);

/// Offsets in chunks.
pub(super) struct Slots {
    /// By stage: where it begins, and the room of one distance.
    stages: Vec<(u64, u64)>,
    /// All stages.
    network: u64,
    /// Of pieces that are sent for other boxes, among those of their sender. Looked up, never listed.
    relayed: HashMap<PieceKey, u64>,
    /// The most that one rank gets back for others.
    relayed_max: u64,
    /// The most that enters a box at one place and is spread from there, the share of its rank included.
    entered_max: u64,
    places: u32,
}

impl Slots {
    /// O(boxes + exceptions).
    pub(super) fn new(stages: &Stages, seating: &Seating) -> Self {
        let (grid, k) = (&stages.grid, stages.chunks_per_share);
        let mut widths: Vec<(u64, u64)> = (0..grid.digits.len()).map(|stage| width(stages, seating, stage)).collect();
        let (mut relayed, mut of_ranks) = (HashMap::new(), HashMap::new());
        for (&(from, to), pieces) in &stages.exceptions {
            let exchange = Exchange::between(grid, from, to);
            if let Some((width, spread)) = exchange.and_then(|exchange| widths.get_mut(exchange.stage)) {
                let most = most_at_one_place(pieces);
                (*width, *spread) = ((*width).max(most), (*spread).max(most));
            }
            for (position, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.sender != from) {
                let used: &mut u64 = of_ranks.entry((piece.sender, piece.leaves)).or_default();
                relayed.insert((from, to, position), *used);
                *used = used.saturating_add(piece.chunk_count);
            }
        }
        let (mut bases, mut network, mut entered_max) = (Vec::with_capacity(widths.len()), 0_u64, k);
        for (&(width, spread), &size) in widths.iter().zip(&grid.digits) {
            let others = u64::from(size.saturating_sub(1));
            bases.push((network, width));
            network = network.saturating_add(width.saturating_mul(others));
            entered_max = entered_max.saturating_add(spread.saturating_mul(others));
        }
        let relayed_max = of_ranks.into_values().max().unwrap_or(0);
        Self { stages: bases, network, relayed, relayed_max, entered_max, places: seating.places() }
    }

    /// Where a piece goes back to: at a distance, `before` chunks of its exchange behind the first that leaves there.
    pub(super) fn network(&self, stage: usize, distance: u32, before: u64) -> Option<u64> {
        let &(base, width) = self.stages.get(stage)?;
        Some(base + width * u64::from(distance.checked_sub(1)?) + before)
    }

    /// Where a piece goes back to that was sent for another box.
    pub(super) fn relayed(&self, key: PieceKey) -> Option<u64> {
        self.relayed.get(&key).map(|offset| self.network + offset)
    }

    /// Where a place of a box that spreads like this keeps what comes from each place, and where all of it ends.
    pub(super) fn inside(&self, inside: &Inside, receiver: u32) -> (Vec<u64>, u64) {
        let mut bases = Vec::with_capacity(self.places as usize);
        let mut end = self.network.saturating_add(self.relayed_max);
        let mut roots = vec![BTreeSet::new(); self.places as usize];
        if let Inside::Trees(trees) = inside {
            let hops = trees.iter().flat_map(|tree| tree.hops.iter().map(move |hop| (tree.root, hop)));
            for (root, &(_, to)) in hops.filter(|(_, (from, _))| *from == receiver) {
                if let Some(roots) = roots.get_mut(to as usize) {
                    roots.insert(root);
                }
            }
        }
        for (sender, roots) in (0..self.places).zip(roots) {
            let times = match inside {
                Inside::Star => u64::from(sender != receiver),
                Inside::Trees(_) => roots.len() as u64,
            };
            bases.push(end);
            end = end.saturating_add(self.entered_max.saturating_mul(times));
        }
        (bases, end)
    }

    /// The most scratch of any rank, with room for `sums` chunks of its own.
    pub(super) fn end_max(&self, stages: &Stages, sums: bool, chunks: u32) -> u64 {
        let of_class = |inside: &Inside| (0..self.places).map(|place| self.inside(inside, place).1).max();
        let inside = stages.inside.iter().filter_map(of_class).max().unwrap_or(0);
        let own = self.entered_max.saturating_add(self.network).saturating_add(stages.chunks_per_share);
        let own = own.min(chunks.into());
        inside.saturating_add(if sums { own } else { 0 })
    }
}

/// The most chunks that leave or enter at one place in an exchange of a stage where nothing is stated, and the most of
/// them that are then spread: the run, or what does not go in the box first of it, divided by the places that any two
/// boxes have in common.
fn width(stages: &Stages, seating: &Seating, stage: usize) -> (u64, u64) {
    let (grid, places) = (&stages.grid, seating.places());
    let run = (u64::from(grid.unit(stage)) * u64::from(places)).saturating_mul(stages.chunks_per_share);
    let inside_first = stages.inside_first.get(stage).copied().unwrap_or(0).min(run);
    let missing = |of_box: u32| places - seating.ranks_in(of_box..of_box + 1);
    let (mut most, mut second) = (0, 0);
    for missing in (0..seating.box_count()).map(missing).filter(|&missing| missing < places) {
        second = second.max(most.min(missing));
        most = most.max(missing);
    }
    let common = places.saturating_sub(most.saturating_add(second)).max(1);
    let pieces = |chunks: u64| chunks.div_ceil(common.into());
    let first = inside_first.saturating_add(pieces(run - inside_first));
    // Boxes of which some ranks have no counterparts exchange pieces alone.
    if most == 0 { (first, pieces(run - inside_first)) } else { (first.max(pieces(run)), pieces(run)) }
}

/// The most chunks that leave from one rank, or that enter at one place.
fn most_at_one_place(pieces: &[Piece]) -> u64 {
    let (mut left, mut entered) = (HashMap::new(), HashMap::new());
    for piece in pieces {
        let left: &mut u64 = left.entry((piece.sender, piece.leaves)).or_default();
        *left = left.saturating_add(piece.chunk_count);
        let entered: &mut u64 = entered.entry(piece.enters).or_default();
        *entered = entered.saturating_add(piece.chunk_count);
    }
    left.into_values().chain(entered.into_values()).max().unwrap_or(0)
}
