//! The two orders of moves: tree by tree, or wave after wave.

use std::ops::Range;

use canopy_schedule::Action;

use super::touched::Record;
use super::{Move, Tree, Trees, rotation};
use crate::msccl::lower::message::Message;
use crate::msccl::lower::ranges::Ranges;
use crate::msccl::lower::{LowerError, Stop, check_stop};

/// Moves tree by tree: all of one piece of a tree, then all of the next, so that a rank can forward what it receives
/// in the same step.
///
/// Trees of one generation touch no chunk of a rank that another of them writes. Within a generation pieces go by their
/// position in the share, so that all roots advance together; pieces of one share take turns at the channels.
pub(in crate::msccl::lower) fn in_trees(
    trees: &Trees,
    message: &Message,
    chunks_max: u32,
    stop: Stop<'_>,
) -> Result<Vec<Move>, LowerError> {
    let mut touched = Record::new(message.rank_count, message.total);
    let mut keyed = Vec::new();
    for (index, tree) in trees.trees.iter().enumerate() {
        check_stop(stop, index)?;
        let generation = tree.hops.iter().map(|&hop| touched.earliest(hop, &tree.chunks)).max().unwrap_or(0);
        tree.hops.iter().for_each(|&hop| touched.touch(hop, &tree.chunks, generation + 1));
        let share = message.share_of(tree.chunks.start);
        for chunks in cut(&tree.chunks, chunks_max) {
            let position = message.position(&tree.chunks, chunks.start);
            keyed.push(((generation, position, rotation(message, share), index), chunks));
        }
    }
    keyed.sort_by_key(|&(key, _)| key);
    let mut turns: Ranges<[u32; 2]> = Ranges::new();
    let mut moves = Vec::new();
    for (piece, ((_, _, _, index), chunks)) in (0_u64..).zip(keyed) {
        check_stop(stop, usize::try_from(piece).unwrap_or(0))?;
        let Tree { action, hops, .. } = &trees.trees[index];
        let share = message.share_of(chunks.start);
        let mut turn = share;
        turns.update(share..share + 1, &[0; 2], |turns| {
            let own = &mut turns[usize::from(*action == Action::Copy)];
            (turn, *own) = (turn.wrapping_add(*own), *own + 1);
        });
        moves.extend(hops.iter().map(|&(from, to)| Move {
            from,
            to,
            chunks: chunks.clone(),
            action: *action,
            turn,
            piece: Some(piece),
            instance: 0,
            wave: 0,
            is_last_use: false,
        }));
    }
    Ok(moves)
}

/// Moves wave after wave: a move goes in the first wave after those it must follow, so that moves of one wave between
/// the same two ranks can be joined to one step. Nothing goes before its own step of a schedule in steps: what a rank sends
/// another in a step is one message there, although parts of it may be at hand earlier.
pub(in crate::msccl::lower) fn in_waves(
    trees: &Trees,
    message: &Message,
    stop: Stop<'_>,
) -> Result<Vec<Move>, LowerError> {
    let mut touched = Record::new(message.rank_count, message.total);
    let mut moves = Vec::new();
    for (index, trees) in trees.trees.chunk_by(are_of_one_send).enumerate() {
        check_stop(stop, index)?;
        for position in 0..trees[0].hops.len() {
            let hop = trees[0].hops[position];
            let wave = trees.iter().map(|tree| touched.earliest(hop, &tree.chunks).max(tree.step)).max().unwrap_or(0);
            for tree in trees {
                touched.touch(hop, &tree.chunks, wave + 1);
                let (chunks, action, (from, to)) = (tree.chunks.clone(), tree.action, hop);
                let moving =
                    Move { from, to, chunks, action, turn: 0, piece: None, instance: 0, wave, is_last_use: false };
                moves.push(moving);
            }
        }
    }
    // By distance first, so that no receiver is everybody's first; neighbours in this order can be joined.
    let distance = |moving: &Move| (moving.to + message.rank_count - moving.from) % message.rank_count;
    // Of equal numbers there is one move: what touches the same chunks of a rank goes in different waves.
    let key = |moving: &Move| (moving.wave, distance(moving), moving.from, moving.action, moving.chunks.start);
    let mut order: Vec<_> = (0..).zip(&moves).map(|(index, moving): (usize, &Move)| (key(moving), index)).collect();
    order.sort_unstable();
    Ok(order.into_iter().filter_map(|(_, index)| moves.get(index).cloned()).collect())
}

/// Whether two batches in a row are what one rank sends to another at a time: schedules in steps list a range of chunks
/// that crosses shares as one hop per share. Nothing lies between them, so they can wait for each other's data.
fn are_of_one_send(a: &Tree, b: &Tree) -> bool {
    a.hops.len() == 1 && a.hops == b.hops && a.action == b.action && a.step == b.step
}

/// Cuts a range into as few pieces of at most `most` chunks as possible, as equal as possible.
pub(in crate::msccl::lower) fn cut(chunks: &Range<u32>, most: u32) -> impl Iterator<Item = Range<u32>> + use<> {
    let (start, length) = (chunks.start, chunks.end - chunks.start);
    let pieces = length.div_ceil(most.max(1)).max(1);
    let bound = move |piece: u32| {
        start + u32::try_from(u64::from(length) * u64::from(piece) / u64::from(pieces)).expect("at most the length")
    };
    (0..pieces).map(move |piece| bound(piece)..bound(piece + 1))
}
