//! How many steps and nodes any arrangement of a plan needs at least.

use std::collections::BTreeMap;
use std::ops::Range;

use canopy_schedule::{Action, CollectiveKind};

use super::message::Message;
use super::moves::Trees;
use crate::msccl::figures::Figure;
use crate::msccl::profile::Profile;
use crate::msccl::program::Operation;

/// What one connection carries with one action.
type Flow = (u32, u32, Action);

/// The first limit on nodes, or on steps of all blocks, that no arrangement of these transfers can keep; `need` is a
/// lower bound on what a rank needs.
///
/// A step takes chunks of one connection, at most `cnt` of them, and neighbours at their final place. Chunks copied to
/// where they stay in allgather, allreduce and broadcast have the numbers of their places, so each run of neighbouring
/// numbers takes steps of its own; elsewhere only their count is used. A receive may be one step with a send, where
/// the runtime has such operations; else a received sum takes a second step. O(transfers log transfers).
pub(super) fn unavoidable(trees: &Trees, message: &Message, profile: Profile) -> Option<Figure> {
    let mut flows: BTreeMap<Flow, Vec<Range<u32>>> = BTreeMap::new();
    for tree in &trees.trees {
        for &(from, to) in &tree.hops {
            flows.entry((from, to, tree.action)).or_default().push(tree.chunks.clone());
        }
    }
    let limits = profile.limits();
    let is_fused = profile.allows(Operation::ReceiveCopySend);
    // Steps that receive and that send, by rank.
    let mut steps = vec![(0_u64, 0_u64); message.rank_count as usize];
    for ((from, to, action), mut chunks) in flows {
        chunks.sort_by_key(|chunks| chunks.start);
        let stays =
            matches!(message.kind, CollectiveKind::Allgather | CollectiveKind::Allreduce | CollectiveKind::Broadcast);
        let count: u64 = chunks.iter().map(|chunks| u64::from(chunks.end - chunks.start)).sum();
        let least = match action {
            Action::Copy if stays => runs(&chunks, limits.chunks_per_step),
            _ => count.div_ceil(limits.chunks_per_step.into()),
        };
        steps[from as usize].1 += least;
        steps[to as usize].0 += if action == Action::Reduce && !is_fused { 2 * least } else { least };
    }
    let (need, rank) = (0_u32..)
        .zip(&steps)
        .map(|(rank, &(received, sent))| (if is_fused { received.max(sent) } else { received + sent }, rank))
        .max_by_key(|&(need, rank)| (need, std::cmp::Reverse(rank)))?;
    let blocks = need.div_ceil(limits.steps_per_block.into());
    let nodes = 1 + u64::from(message.rank_count) + blocks + need;
    let over = |name, need, limit: u32| Figure { name, need, limit: limit.into(), rank: Some(rank) };
    let found = [
        over("XML nodes per rank", nodes, limits.nodes),
        over("thread blocks per rank", blocks, limits.blocks_per_rank),
    ];
    found.into_iter().find(|figure| figure.need > figure.limit)
}

/// Steps for all chunks of sorted ranges, where a step takes at most `most` neighbours.
fn runs(chunks: &[Range<u32>], most: u32) -> u64 {
    let neighbours = chunks.chunk_by(|a, b| a.end == b.start);
    let lengths = neighbours.map(|run| run.iter().map(|chunks| chunks.end - chunks.start).sum::<u32>());
    lengths.map(|length| u64::from(length.div_ceil(most))).sum()
}
