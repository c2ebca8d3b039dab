//! Numbers blocks anew where those that others wait for have numbers that a runtime cannot name.

use std::collections::{BTreeMap, BTreeSet};

use crate::msccl::program::RankProgram;

/// Puts the blocks that others wait for first, if one of them has a number beyond `named_max`. Those that only send what is
/// there from the beginning are waited for by nobody, and may have any number.
///
/// Nothing else changes: what a block does does not depend on its number. O(steps · log blocks).
pub(super) fn number_awaited_first(rank: &mut RankProgram, named_max: u32) {
    let steps = rank.thread_blocks.iter().flat_map(|block| &block.steps);
    let awaited: BTreeSet<u32> = steps.filter_map(|step| step.wait_block).collect();
    if awaited.last().is_none_or(|&last| last <= named_max) {
        return;
    }
    rank.thread_blocks.sort_by_key(|block| !awaited.contains(&block.id));
    let numbers: BTreeMap<u32, u32> = rank.thread_blocks.iter().map(|block| block.id).zip(0..).collect();
    let renumbered = |old: u32| numbers.get(&old).copied().unwrap_or(old);
    for block in &mut rank.thread_blocks {
        block.id = renumbered(block.id);
        for step in &mut block.steps {
            step.wait_block = step.wait_block.map(renumbered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msccl::program::{Buffer, Chunks, Operation, Step, ThreadBlock};

    fn block(id: u32, wait_block: Option<u32>) -> ThreadBlock {
        let chunks = Chunks { buffer: Buffer::Input, offset: Some(0) };
        let step = Step {
            index: 0,
            operation: Operation::Send,
            source: chunks,
            destination: chunks,
            chunk_count: 1,
            wait_block,
            wait_step: wait_block.map(|_| 0),
            is_awaited: false,
        };
        ThreadBlock { id, send: Some(10 + id), receive: None, channel: 0, steps: vec![step] }
    }

    fn numbered(named_max: u32) -> Vec<(u32, Option<u32>, Option<u32>)> {
        let thread_blocks = vec![block(0, None), block(1, Some(3)), block(2, None), block(3, Some(2))];
        let mut rank = RankProgram { rank: 0, input_chunks: 1, output_chunks: 1, scratch_chunks: 0, thread_blocks };
        number_awaited_first(&mut rank, named_max);
        rank.thread_blocks.iter().map(|block| (block.id, block.send, block.steps[0].wait_block)).collect()
    }

    #[test]
    fn blocks_that_are_waited_for_come_first_where_that_helps() {
        // Blocks 2 and 3 are waited for.
        let expected = [(0, 12, None), (1, 13, Some(0)), (2, 10, None), (3, 11, Some(1))];
        assert_eq!(numbered(2), expected.map(|(id, peer, wait)| (id, Some(peer), wait)));
    }

    #[test]
    fn numbers_that_can_be_named_stay() {
        let expected = [(0, 10, None), (1, 11, Some(3)), (2, 12, None), (3, 13, Some(2))];
        assert_eq!(numbered(3), expected.map(|(id, peer, wait)| (id, Some(peer), wait)));
    }
}
