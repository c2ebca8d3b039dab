//! One rank's thread blocks while they grow.

use super::at::At;
use super::clocks::Clocks;
use super::hazards::Hazards;
use crate::msccl::lower::blocks::Peers;
use crate::msccl::profile::ProfileLimits;
use crate::msccl::program::{Buffer, Chunks, Operation, RankProgram, Step, ThreadBlock};

/// What a step does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) block: usize,
    pub(super) operation: Operation,
    pub(super) source: Chunks,
    pub(super) destination: Chunks,
    pub(super) count: u32,
}

pub(super) struct RankDraft {
    blocks: Vec<ThreadBlock>,
    hazards: Hazards,
    clocks: Clocks,
}

impl RankDraft {
    pub(super) fn new(peers: &[Peers]) -> Self {
        let blocks = (0_u32..).zip(peers).map(|(id, peers)| ThreadBlock {
            id,
            send: peers.send,
            receive: peers.receive,
            channel: peers.channel,
            steps: Vec::new(),
        });
        Self { blocks: blocks.collect(), hazards: Hazards::new(), clocks: Clocks::new(peers.len()) }
    }

    /// Appends a step that waits for all earlier steps of other blocks which touch its cells, as far as that is not
    /// known; not for those that touch what it writes where that `is_ordered` without waits. All but the last wait
    /// become `nop` steps of their own.
    pub(super) fn push(&mut self, work: Work, is_ordered: bool) {
        let Work { block, operation, source, destination, count } = work;
        let mut waits = Vec::new();
        if operation.reads_source() {
            self.hazards.before_read(source, count, &mut waits);
        }
        if operation.writes_destination() && !is_ordered {
            self.hazards.before_write(destination, count, &mut waits);
        }
        self.clocks.unknown(block, &mut waits);
        for wait in &waits {
            self.blocks[wait.block].steps[wait.step as usize].is_awaited = true;
        }
        let last = waits.last().copied();
        for &wait in waits.iter().take(waits.len().saturating_sub(1)) {
            let nowhere = |buffer| Chunks { buffer, offset: None };
            let (source, destination) = (nowhere(Buffer::Input), nowhere(Buffer::Output));
            let nop = Work { block, operation: Operation::Nop, source, destination, count: 0 };
            self.append(nop, Some(wait));
        }
        let at = self.append(work, last);
        self.clocks.join(block, at.step, &waits);
        if operation.reads_source() {
            self.hazards.read(source, count, at);
        }
        if operation.writes_destination() {
            self.hazards.write(destination, count, at);
        }
    }

    fn append(&mut self, work: Work, wait: Option<At>) -> At {
        let number = |value: usize| u32::try_from(value).expect("a rank has fewer than 2³² steps");
        let steps = &mut self.blocks[work.block].steps;
        let at = At { block: work.block, step: number(steps.len()) };
        steps.push(Step {
            index: at.step,
            operation: work.operation,
            source: work.source,
            destination: work.destination,
            chunk_count: work.count,
            wait_block: wait.map(|wait| number(wait.block)),
            wait_step: wait.map(|wait| wait.step),
            is_awaited: false,
        });
        at
    }

    /// Adds blocks of a channel that copy `count` input chunks to the output. Nobody waits for them: others read the
    /// input.
    pub(super) fn copy_own(&mut self, source: u32, target: u32, count: u32, channel: u32, limits: &ProfileLimits) {
        let pieces = count.div_ceil(limits.chunks_per_step);
        for piece in 0..pieces {
            if piece % limits.steps_per_block == 0 {
                let id = u32::try_from(self.blocks.len()).expect("a rank has fewer peers than 2³²");
                self.blocks.push(ThreadBlock { id, send: None, receive: None, channel, steps: Vec::new() });
            }
            let first = piece * limits.chunks_per_step;
            let at = |buffer, offset: u32| Chunks { buffer, offset: Some(offset + first) };
            let work = Work {
                block: self.blocks.len() - 1,
                operation: Operation::Copy,
                source: at(Buffer::Input, source),
                destination: at(Buffer::Output, target),
                count: limits.chunks_per_step.min(count - first),
            };
            self.append(work, None);
        }
    }

    pub(super) fn finish(
        self,
        rank: u32,
        (input_chunks, output_chunks): (u32, u32),
        scratch_chunks: u32,
    ) -> RankProgram {
        RankProgram { rank, input_chunks, output_chunks, scratch_chunks, thread_blocks: self.blocks }
    }
}
