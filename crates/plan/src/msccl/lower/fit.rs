//! Whether a program fits the runtime's tables.

use std::collections::BTreeMap;

use super::LowerError;
use crate::msccl::profile::{Profile, ProfileLimits};
use crate::msccl::program::{Program, RankProgram};

/// What a person can do about a plan with too many steps.
pub(super) const FEWER_CHUNKS: &str = "plan with fewer chunks per share, or choose a format without this limit";

/// A limit that is exceeded, sorted by what would help.
pub(super) enum Overrun {
    /// More lanes help.
    StepsOfBlock(LowerError),
    /// A wider spread helps.
    PeersOfChannel(LowerError),
    /// Channels do not help.
    Other(LowerError),
}

/// Compares with each limit, those first that no number of channels can help.
pub(super) fn check(program: &Program, profile: Profile) -> Result<(), Overrun> {
    let limits = profile.limits();
    let over = |what, limit: u64, (need, rank): (u64, Option<u32>), remedy| {
        if need > limit { Err(LowerError::OverLimit { profile, what, limit, need, rank, remedy }) } else { Ok(()) }
    };
    let most = |need: &dyn Fn(&RankProgram) -> usize| {
        let largest = program.ranks.iter().max_by_key(|rank| (need(rank), std::cmp::Reverse(rank.rank)));
        largest.map_or((0, None), |rank| (need(rank) as u64, Some(rank.rank)))
    };
    let nodes = |rank: &RankProgram| 1 + program.ranks.len() + rank.thread_blocks.len() + step_count(rank);
    over("XML nodes per rank", limits.nodes.into(), most(&nodes), FEWER_CHUNKS).map_err(Overrun::Other)?;
    over("as the largest chunk offset", limits.offset.into(), most(&largest_offset), FEWER_CHUNKS)
        .map_err(Overrun::Other)?;
    let rounds = (rounds(program, profile), None);
    over("rounds over a chunk", limits.rounds, rounds, "state a smaller largest message").map_err(Overrun::Other)?;
    check_blocks(program, limits, over, most)
}

fn check_blocks(
    program: &Program,
    limits: &ProfileLimits,
    over: impl Fn(&'static str, u64, (u64, Option<u32>), &'static str) -> Result<(), LowerError>,
    most: impl Fn(&dyn Fn(&RankProgram) -> usize) -> (u64, Option<u32>),
) -> Result<(), Overrun> {
    let fewer_peers = "plan with trees of fewer neighbours per rank";
    let blocks = most(&|rank| rank.thread_blocks.len());
    over("thread blocks per rank", limits.blocks_per_rank.into(), blocks, fewer_peers).map_err(Overrun::Other)?;
    over("as the block of a dependency", limits.dependency_block.into(), most(&largest_awaited), fewer_peers)
        .map_err(Overrun::Other)?;
    over("peers per rank and channel", limits.peers_per_channel.into(), most(&peers_of_channel), fewer_peers)
        .map_err(Overrun::PeersOfChannel)?;
    over("steps per thread block", limits.steps_per_block.into(), most(&steps_of_block), FEWER_CHUNKS)
        .map_err(Overrun::StepsOfBlock)?;
    let channels = (u64::from(program.channel_count), None);
    over("channels", limits.channels.into(), channels, FEWER_CHUNKS).map_err(Overrun::Other)
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
    let bytes = program.bytes_max.and_then(|attribute| profile.bytes_max_inclusive(attribute)).unwrap_or(0);
    let chunk_bytes = bytes.div_ceil(u64::from(program.chunk_count.max(1)));
    chunk_bytes.div_ceil(profile.limits().queue(program.protocol).transfer_bytes)
}
