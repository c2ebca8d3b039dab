//! Boxes that send for others of their run, where a number of boxes has no digits and some boxes of the grid are empty.

use std::collections::BTreeMap;

use canopy_schedule::{Exchange, Piece, Pieces, Seating, Stages};

use crate::symmetric::nics::Nics;

/// States the pieces of all exchanges whose sender is empty: the other boxes that hold the run send them, place by
/// place in turn.
///
/// Each of them then sends as much as a box of a full row: what it does not send to empty boxes is what it sends for
/// them. O(empty boxes · Σ digits · places).
pub(crate) fn state(stages: &mut Stages, seating: &Seating, nics: &Nics) {
    let rules = Pieces::new(stages, seating);
    let most = most(stages, seating);
    let is_empty = |of_box: u32| seating.is_empty(of_box);
    let mut stated = BTreeMap::new();
    // By the first box of a run and its stage: pieces that were given out.
    let mut given: BTreeMap<(usize, u32), usize> = BTreeMap::new();
    for empty in (0..seating.box_count()).filter(|&of_box| is_empty(of_box)) {
        for back in Exchange::into_box(&stages.grid, empty).filter(|back| !is_empty(back.from)) {
            let exchange = Exchange { stage: back.stage, from: empty, to: back.from };
            let (run, chunks) = (exchange.run(&stages.grid), rules.chunks(exchange));
            let senders: Vec<u32> = run.clone().filter(|&of_box| !is_empty(of_box)).collect();
            let given = given.entry((exchange.stage, run.start)).or_default();
            let pieces = divide(nics, exchange.to, &senders, chunks, chunks.div_ceil(most), given);
            if !pieces.is_empty() {
                stated.insert((exchange.from, exchange.to), pieces);
            }
        }
    }
    stages.exceptions.extend(stated);
}

/// The parts of all that a rank gets, of which a box takes one at most of another that it sends for.
const PARTS: u64 = 128;

/// Chunks of the pieces that one box sends for another, at most.
pub(crate) fn most(stages: &Stages, seating: &Seating) -> u64 {
    let ranks = u64::from(seating.ranks_in(0..seating.box_count()));
    (ranks * stages.chunks_per_share / PARTS).max(1)
}

/// Pieces as equal as whole chunks can be, over the NICs of the receiver, each from the next sender that has one at
/// that place; of each NIC as many as bring them to `parts` in all, if there are as many senders.
pub(crate) fn divide(nics: &Nics, to: u32, senders: &[u32], chunks: u64, parts: u64, given: &mut usize) -> Vec<Piece> {
    let nic = |of_box: u32, place: usize| {
        nics.get(of_box as usize).and_then(|places| places.get(place)).copied().unwrap_or_default()
    };
    let places = nics.get(to as usize).map_or(0, Vec::len);
    let of_place = usize::try_from(parts).unwrap_or(usize::MAX).div_ceil(places.max(1)).clamp(1, senders.len().max(1));
    let mut pieces = Vec::new();
    for (place, number) in (0..places).zip(0_u32..).filter(|&(place, _)| nic(to, place).1 > 0) {
        for _ in 0..of_place {
            let next = (0..senders.len()).map(|ahead| senders[(*given + ahead) % senders.len()]);
            if let Some(sender) = next.clone().find(|&sender| nic(sender, place).0 > 0) {
                pieces.push(Piece { sender, leaves: number, enters: number, chunk_count: 0 });
                *given += 1;
            }
        }
    }
    let count = pieces.len() as u64;
    for (number, piece) in (0_u64..).zip(&mut pieces) {
        piece.chunk_count = chunks * (number + 1) / count - chunks * number / count;
    }
    pieces.retain(|piece| piece.chunk_count > 0);
    pieces
}
