//! Which moves are the last to need the chunks they send, and which contribution to a sum comes last.

use std::collections::BTreeMap;
use std::ops::Range;

use canopy_schedule::Action;

use super::Move;
use crate::msccl::lower::message::Message;
use crate::msccl::lower::ranges::Ranges;
use crate::msccl::lower::{LowerError, Stop, check_stop};

/// Marks each move after which nobody needs the chunks at their sender, cutting moves of which that holds in part.
///
/// Backwards from what the collective promises: a copy replaces what its receiver had, a reduction needs it.
pub(in crate::msccl::lower) fn mark_last_uses(
    moves: Vec<Move>,
    message: &Message,
    stop: Stop<'_>,
) -> Result<Vec<Move>, LowerError> {
    let mut needed: Vec<Ranges<()>> = vec![Ranges::new(); message.rank_count as usize];
    for (rank, needed) in (0..message.rank_count).zip(&mut needed) {
        message.promised(rank).into_iter().for_each(|chunks| needed.set(chunks, ()));
    }
    let mut marked = Vec::with_capacity(moves.len());
    for (index, original) in moves.into_iter().rev().enumerate() {
        check_stop(stop, index)?;
        let chunks = original.chunks.clone();
        match original.action {
            Action::Copy => needed[original.to as usize].remove(chunks.clone()),
            Action::Reduce => needed[original.to as usize].set(chunks.clone(), ()),
        }
        let at_sender = &mut needed[original.from as usize];
        let still_needed: Vec<Range<u32>> = at_sender.over(chunks.clone()).map(|(part, ())| part).collect();
        at_sender.set(chunks.clone(), ());
        let mut parts = Vec::with_capacity(1);
        let mut at = chunks.start;
        for part in join(still_needed) {
            parts.extend((at < part.start).then_some((at..part.start, true)));
            at = part.end;
            parts.push((part, false));
        }
        parts.extend((at < chunks.end).then_some((at..chunks.end, true)));
        marked.extend(parts.into_iter().rev().map(|(chunks, is_last_use)| Move {
            chunks,
            is_last_use,
            ..original.clone()
        }));
    }
    marked.reverse();
    Ok(marked)
}

/// Joins neighbouring ranges.
fn join(ranges: Vec<Range<u32>>) -> Vec<Range<u32>> {
    let mut joined: Vec<Range<u32>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut().filter(|last| last.end == range.start) {
            Some(last) => last.end = range.end,
            None => joined.push(range),
        }
    }
    joined
}

/// Within each reducing tree, lets the contribution that `fuses` with the sum's way on arrive last at each rank.
///
/// `moves` are in the order of trees; `fuses` is asked about a move into a rank and the move out of it.
pub(in crate::msccl::lower) fn order_contributions(moves: &mut [Move], fuses: impl Fn(&Move, &Move) -> bool) {
    for piece in moves.chunk_by_mut(|a, b| a.piece == b.piece) {
        if piece[0].action == Action::Copy || piece.len() == 1 {
            continue;
        }
        let out: BTreeMap<u32, usize> = piece.iter().enumerate().map(|(index, moving)| (moving.from, index)).collect();
        let mut into: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, moving) in piece.iter().enumerate() {
            into.entry(moving.to).or_default().push(index);
        }
        for (rank, into) in &mut into {
            let Some(&out) = out.get(rank) else { continue };
            if let Some(last) = into.iter().position(|&index| fuses(&piece[index], &piece[out])) {
                let last = into.remove(last);
                into.push(last);
            }
        }
        // From the root outwards, the last contribution first, then all of it backwards.
        let roots: Vec<u32> = into.keys().copied().filter(|rank| !out.contains_key(rank)).collect();
        let (mut order, mut stack): (Vec<usize>, _) = (Vec::with_capacity(piece.len()), roots);
        while let Some(rank) = stack.pop() {
            let into: &[usize] = into.get(&rank).map_or(&[], Vec::as_slice);
            order.extend(out.get(&rank));
            stack.extend(into.iter().map(|&index| piece[index].from));
        }
        order.reverse();
        let ordered: Vec<Move> = order.iter().map(|&index: &usize| piece[index].clone()).collect();
        piece.clone_from_slice(&ordered);
    }
}
