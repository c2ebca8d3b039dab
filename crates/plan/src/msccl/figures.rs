//! How large a program is, beside the runtime's limits.

mod room;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::profile::Profile;
use super::program::{Program, RankProgram};
pub use room::InstanceRoom;

/// One number of a program that a runtime limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// What is counted, in words.
    pub name: &'static str,
    /// The largest of all ranks.
    pub need: u64,
    /// Most that the runtime takes, inclusive.
    pub limit: u64,
    /// The first rank that needs most; none where the number is the whole program's.
    pub rank: Option<u32>,
}

/// How large a program is, for people and for choosing between programs.
///
/// In the order in which limits are checked: those first that no number of channels can help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFigures {
    /// XML nodes a rank keeps: 1 + ranks + its blocks + its steps.
    pub nodes: Figure,
    /// Largest chunk offset in a step.
    pub offset: Figure,
    /// Times the step list is repeated over slices of a chunk, at the largest message.
    pub rounds: Figure,
    /// Thread blocks of a rank.
    pub blocks: Figure,
    /// Largest number of a block that a step waits for.
    pub awaited_block: Figure,
    /// Blocks of a rank and channel with a send peer, or with a receive peer.
    pub peers: Figure,
    /// Steps of a thread block.
    pub steps: Figure,
    /// Channels.
    pub channels: Figure,
    /// Steps of all blocks of the rank that has most.
    pub steps_per_rank: u64,
    /// Steps of all ranks that only wait.
    pub nops: u64,
    /// Largest scratch of a rank, in chunks.
    pub scratch_chunks: u32,
    /// `nchunksperloop`.
    pub chunk_count: u32,
}

impl ProgramFigures {
    /// Counts. O(steps).
    pub fn of(program: &Program, profile: Profile) -> Self {
        let limits = profile.limits();
        let most = |name, limit: u64, need: &dyn Fn(&RankProgram) -> usize| {
            let largest = program.ranks.iter().map(|rank| (need(rank), Reverse(rank.rank))).max();
            let (need, rank) = largest.map_or((0, None), |(need, Reverse(rank))| (need as u64, Some(rank)));
            Figure { name, need, limit, rank }
        };
        let whole = |name, need: u64, limit: u64| Figure { name, need, limit, rank: None };
        let nodes = |rank: &RankProgram| 1 + program.ranks.len() + rank.thread_blocks.len() + step_count(rank);
        let is_nop = |step: &&super::Step| step.operation == super::Operation::Nop;
        Self {
            nodes: most("XML nodes per rank", limits.nodes.into(), &nodes),
            offset: most("as the largest chunk offset", limits.offset.into(), &largest_offset),
            rounds: whole("rounds over a chunk", rounds(program, profile), limits.rounds),
            blocks: most("thread blocks per rank", limits.blocks_per_rank.into(), &|rank| rank.thread_blocks.len()),
            awaited_block: most("as the block of a dependency", limits.dependency_block.into(), &largest_awaited),
            peers: most("peers per rank and channel", limits.peers_per_channel.into(), &peers_of_channel),
            steps: most("steps per thread block", limits.steps_per_block.into(), &steps_of_block),
            channels: whole("channels", program.channel_count.into(), limits.channels.into()),
            steps_per_rank: program.ranks.iter().map(step_count).max().unwrap_or(0) as u64,
            nops: steps(program).filter(is_nop).count() as u64,
            scratch_chunks: program.ranks.iter().map(|rank| rank.scratch_chunks).max().unwrap_or(0),
            chunk_count: program.chunk_count,
        }
    }

    /// All that the runtime limits, in the order in which they are checked.
    pub const fn limited(&self) -> [Figure; 8] {
        let Self { nodes, offset, rounds, blocks, awaited_block, peers, steps, channels, .. } = *self;
        [nodes, offset, rounds, blocks, awaited_block, peers, steps, channels]
    }

    /// The limit that binds: the one of which most is used, the first of equals.
    pub fn binding(&self) -> Figure {
        let share = |figure: &Figure| u128::from(figure.need) << 64;
        let mut binding = self.nodes;
        for figure in self.limited() {
            let (own, other) = (share(&figure) / u128::from(figure.limit.max(1)), share(&binding));
            if own > other / u128::from(binding.limit.max(1)) {
                binding = figure;
            }
        }
        binding
    }
}

fn steps(program: &Program) -> impl Iterator<Item = &super::Step> {
    program.ranks.iter().flat_map(|rank| &rank.thread_blocks).flat_map(|block| &block.steps)
}

fn step_count(rank: &RankProgram) -> usize {
    rank.thread_blocks.iter().map(|block| block.steps.len()).sum()
}

fn steps_of_block(rank: &RankProgram) -> usize {
    rank.thread_blocks.iter().map(|block| block.steps.len()).max().unwrap_or(0)
}

fn largest_offset(rank: &RankProgram) -> usize {
    let steps = rank.thread_blocks.iter().flat_map(|block| &block.steps);
    steps.flat_map(|step| [step.source.offset, step.destination.offset]).flatten().max().unwrap_or(0) as usize
}

fn largest_awaited(rank: &RankProgram) -> usize {
    let steps = rank.thread_blocks.iter().flat_map(|block| &block.steps);
    steps.filter_map(|step| step.wait_block).max().unwrap_or(0) as usize
}

fn peers_of_channel(rank: &RankProgram) -> usize {
    let mut counts: BTreeMap<(u32, bool), usize> = BTreeMap::new();
    for block in &rank.thread_blocks {
        for (is_send, peer) in [(true, block.send), (false, block.receive)] {
            *counts.entry((block.channel, is_send)).or_default() += usize::from(peer.is_some());
        }
    }
    counts.into_values().max().unwrap_or(0)
}

fn rounds(program: &Program, profile: Profile) -> u64 {
    let bytes = profile.bytes_max_of(program.bytes_max).unwrap_or(0);
    let chunk_bytes = bytes.div_ceil(u64::from(program.chunk_count.max(1)));
    chunk_bytes.div_ceil(profile.limits().queue(program.protocol).transfer_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binding_limit_is_the_one_most_used() {
        let program = super::super::examples::ring_allgather(1);
        let mut figures = ProgramFigures::of(&program, Profile::Msccl);
        figures.steps = Figure { need: 128, ..figures.steps };
        figures.blocks = Figure { need: 107, ..figures.blocks };
        assert_eq!(figures.binding().name, "steps per thread block");
        figures.blocks = Figure { need: 109, ..figures.blocks };
        assert_eq!(figures.binding().name, "thread blocks per rank");
    }
}
