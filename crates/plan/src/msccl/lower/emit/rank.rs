//! One rank's thread blocks while they grow.

use std::collections::BTreeMap;

use crate::msccl::lower::pairing::Peers;
use crate::msccl::program::{Buffer, Chunks, Operation, RankProgram, Step, ThreadBlock};

/// A step of this rank: block and position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    block: usize,
    step: usize,
}

/// Chunks `first .. end` that are complete once a step has run.
struct Sum {
    first: u32,
    end: u32,
    at: At,
}

pub(super) struct RankDraft {
    blocks: Vec<ThreadBlock>,
    senders: BTreeMap<(u32, u32), usize>,
    receivers: BTreeMap<(u32, u32), usize>,
    /// Latest step of the second block that the first is known to have waited for.
    waited: BTreeMap<(usize, usize), usize>,
    sums: Vec<Sum>,
    scratch_chunks: u32,
}

impl RankDraft {
    pub(super) fn new(peers: Vec<Peers>) -> Self {
        let (mut senders, mut receivers) = (BTreeMap::new(), BTreeMap::new());
        let mut blocks = Vec::with_capacity(peers.len());
        for (index, Peers { receive, send, channel }) in peers.into_iter().enumerate() {
            senders.extend(send.map(|peer| ((peer, channel), index)));
            receivers.extend(receive.map(|peer| ((peer, channel), index)));
            let id = u32::try_from(index).expect("a rank has fewer peers than 2³²");
            blocks.push(ThreadBlock { id, send, receive, channel, steps: Vec::new() });
        }
        Self { blocks, senders, receivers, waited: BTreeMap::new(), sums: Vec::new(), scratch_chunks: 0 }
    }

    /// The block that sends to a peer.
    pub(super) fn block_to(&self, peer: u32, channel: u32) -> usize {
        *self.senders.get(&(peer, channel)).expect("blocks were made for every hop")
    }

    /// The block that receives from a peer.
    pub(super) fn block_from(&self, peer: u32, channel: u32) -> usize {
        *self.receivers.get(&(peer, channel)).expect("blocks were made for every hop")
    }

    pub(super) fn allocate_scratch(&mut self, chunks: u32) -> u32 {
        let first = self.scratch_chunks;
        self.scratch_chunks = first.saturating_add(chunks);
        first
    }

    /// Appends a step that waits for others. All but the last wait become `nop` steps of their own.
    pub(super) fn push(
        &mut self,
        block: usize,
        operation: Operation,
        source: Chunks,
        destination: Chunks,
        chunk_count: u32,
        waits: &[At],
    ) -> At {
        let mut open: Vec<At> = Vec::with_capacity(waits.len());
        for &wait in waits {
            let known = self.waited.get(&(block, wait.block));
            // Steps of the own block run in order, and an earlier wait for a later step still holds.
            if wait.block != block && known.is_none_or(|&known| known < wait.step) {
                self.waited.insert((block, wait.block), wait.step);
                self.blocks[wait.block].steps[wait.step].is_awaited = true;
                open.push(wait);
            }
        }
        let last = open.pop();
        for wait in open {
            let nowhere = |buffer| Chunks { buffer, offset: None };
            self.append(block, Operation::Nop, nowhere(Buffer::Input), nowhere(Buffer::Output), 0, Some(wait));
        }
        self.append(block, operation, source, destination, chunk_count, last)
    }

    fn append(
        &mut self,
        block: usize,
        operation: Operation,
        source: Chunks,
        destination: Chunks,
        chunk_count: u32,
        wait: Option<At>,
    ) -> At {
        let number = |value: usize| u32::try_from(value).expect("a rank has fewer than 2³² steps");
        let steps = &mut self.blocks[block].steps;
        let at = At { block, step: steps.len() };
        steps.push(Step {
            index: number(at.step),
            operation,
            source,
            destination,
            chunk_count,
            wait_block: wait.map(|wait| number(wait.block)),
            wait_step: wait.map(|wait| number(wait.step)),
            is_awaited: false,
        });
        at
    }

    /// Notes that chunks are complete once a step has run.
    pub(super) fn note_sum(&mut self, first: u32, count: u32, at: Option<At>) {
        self.sums.extend(at.map(|at| Sum { first, end: first + count, at }));
    }

    /// Steps after which chunks are complete: the latest of each block.
    pub(super) fn sums_in(&self, first: u32, count: u32) -> Vec<At> {
        let mut latest: BTreeMap<usize, usize> = BTreeMap::new();
        for sum in self.sums.iter().filter(|sum| sum.first < first + count && first < sum.end) {
            let step = latest.entry(sum.at.block).or_default();
            *step = sum.at.step.max(*step);
        }
        latest.into_iter().map(|(block, step)| At { block, step }).collect()
    }

    /// Adds a block that copies input chunks `0 .. count` to the output from `target` on.
    pub(super) fn copy_locally(&mut self, count: u32, target: u32, chunks_per_step: u32) {
        let block = self.blocks.len();
        let id = u32::try_from(block).expect("a rank has fewer peers than 2³²");
        self.blocks.push(ThreadBlock { id, send: None, receive: None, channel: 0, steps: Vec::new() });
        let mut first = 0;
        while first < count {
            let length = chunks_per_step.min(count - first);
            let source = Chunks { buffer: Buffer::Input, offset: Some(first) };
            let destination = Chunks { buffer: Buffer::Output, offset: Some(target + first) };
            self.append(block, Operation::Copy, source, destination, length, None);
            first += length;
        }
    }

    pub(super) fn finish(self, rank: u32, input_chunks: u32, output_chunks: u32) -> RankProgram {
        RankProgram {
            rank,
            input_chunks,
            output_chunks,
            scratch_chunks: self.scratch_chunks,
            thread_blocks: self.blocks,
        }
    }
}
