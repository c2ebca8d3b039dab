//! What steps do not use, written as the other end of their connection has it.
//!
//! A runtime looks neither at the destination of `s` nor at the source of `r`. The public checker of such files does:
//! both ends must state the same source and destination, and what `rcs` sends on comes from where it was stored.

use std::collections::BTreeMap;

use crate::msccl::program::{Operation, RankProgram, Step};

/// Rank, block and step, by position.
type Place = (usize, usize, usize);

/// Gives every `s` the destination of the step that receives it, and every `r` the source of the step that sends to it.
///
/// The k-th send of a connection is received by its k-th receive. Ends without another keep what they have.
/// O(steps log blocks).
pub(super) fn mirror(ranks: &mut [RankProgram]) {
    let mut ends: BTreeMap<(u32, u32, u32), [Vec<Place>; 2]> = BTreeMap::new();
    for (rank, of) in ranks.iter().enumerate() {
        for (number, block) in of.thread_blocks.iter().enumerate() {
            for (position, step) in block.steps.iter().enumerate() {
                let place = (rank, number, position);
                if let Some(to) = block.send.filter(|_| step.operation.sends()) {
                    ends.entry((of.rank, to, block.channel)).or_default()[0].push(place);
                }
                if let Some(from) = block.receive.filter(|_| step.operation.receives()) {
                    ends.entry((from, of.rank, block.channel)).or_default()[1].push(place);
                }
            }
        }
    }
    for [sends, receives] in ends.into_values() {
        for (sent, received) in sends.into_iter().zip(receives) {
            let (Some(&sender), Some(&receiver)) = (step(ranks, sent), step(ranks, received)) else { continue };
            if sender.operation == Operation::Send
                && receiver.operation.writes_destination()
                && let Some(step) = step_mut(ranks, sent)
            {
                step.destination = receiver.destination;
            }
            if receiver.operation == Operation::Receive
                && let Some(step) = step_mut(ranks, received)
            {
                let is_forwarded = !sender.operation.reads_source();
                step.source = if is_forwarded { sender.destination } else { sender.source };
            }
        }
    }
}

fn step(ranks: &[RankProgram], (rank, block, step): Place) -> Option<&Step> {
    ranks.get(rank)?.thread_blocks.get(block)?.steps.get(step)
}

fn step_mut(ranks: &mut [RankProgram], (rank, block, step): Place) -> Option<&mut Step> {
    ranks.get_mut(rank)?.thread_blocks.get_mut(block)?.steps.get_mut(step)
}
