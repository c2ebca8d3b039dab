//! How many steps, blocks and nodes any arrangement of a plan needs at least.

use std::cmp::Reverse;
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

/// Lower bounds on what a rank needs in any arrangement of one instance of a plan.
pub(super) struct Least {
    rank_count: u32,
    /// The greatest number of steps, and the first rank that needs them.
    steps: (u64, u32),
    /// The same for peers that a rank receives from or sends to, whichever are more.
    peers: (u64, u32),
}

impl Least {
    /// Counts what cannot be avoided.
    ///
    /// A step takes chunks of one connection, at most `cnt` of them, and neighbours at their final place. Chunks copied to
    /// where they stay in allgather, allreduce and broadcast have the numbers of their places, so each run of neighbouring
    /// numbers takes steps of its own; elsewhere only their count is used. A receive may be one step with a send, where
    /// the runtime has such operations; else a received sum takes a second step. A block receives from one peer and sends
    /// to one. O(transfers log transfers).
    pub(super) fn of(trees: &Trees, plan: &Message, profile: Profile) -> Self {
        let mut flows: BTreeMap<Flow, Vec<Range<u32>>> = BTreeMap::new();
        for tree in &trees.trees {
            for &(from, to) in &tree.hops {
                flows.entry((from, to, tree.action)).or_default().push(tree.chunks.clone());
            }
        }
        let chunks_max = profile.limits().chunks_per_step;
        let is_fused = profile.allows(Operation::ReceiveCopySend);
        // Steps that receive and that send, by rank; then peers.
        let mut steps = vec![(0_u64, 0_u64); plan.rank_count as usize];
        let mut peers = steps.clone();
        let mut connection = None;
        for ((from, to, action), mut chunks) in flows {
            if connection.replace((from, to)) != Some((from, to)) {
                peers[from as usize].1 += 1;
                peers[to as usize].0 += 1;
            }
            chunks.sort_by_key(|chunks| chunks.start);
            let stays =
                matches!(plan.kind, CollectiveKind::Allgather | CollectiveKind::Allreduce | CollectiveKind::Broadcast);
            let count: u64 = chunks.iter().map(|chunks| u64::from(chunks.end - chunks.start)).sum();
            let least = match action {
                Action::Copy if stays => runs(&chunks, chunks_max),
                _ => count.div_ceil(chunks_max.into()),
            };
            steps[from as usize].1 += least;
            steps[to as usize].0 += if action == Action::Reduce && !is_fused { 2 * least } else { least };
        }
        let most = |counts: &[(u64, u64)], need: &dyn Fn(u64, u64) -> u64| {
            let needs = (0_u32..).zip(counts).map(|(rank, &(received, sent))| (need(received, sent), rank));
            needs.max_by_key(|&(need, rank)| (need, Reverse(rank))).unwrap_or((0, 0))
        };
        let longest = |received: u64, sent: u64| received.max(sent);
        Self {
            rank_count: plan.rank_count,
            steps: most(&steps, if is_fused { &longest } else { &|received, sent| received + sent }),
            peers: most(&peers, &longest),
        }
    }

    /// The first limit on nodes, or on steps of all blocks, that no arrangement of so many instances can keep; `need` is a
    /// lower bound on what a rank needs.
    pub(super) fn exceeded(&self, instances: u32, profile: Profile) -> Option<Figure> {
        let limits = profile.limits();
        let times = |need: u64| need * u64::from(instances);
        let over = |name, need, limit: u32, rank| Figure { name, need, limit: limit.into(), rank: Some(rank) };
        let (steps, rank) = self.steps;
        // Instances share no block.
        let blocks = times(steps.div_ceil(limits.steps_per_block.into()));
        let nodes = 1 + u64::from(self.rank_count) + blocks + times(steps);
        let found = [
            over("XML nodes per rank", nodes, limits.nodes, rank),
            over("thread blocks per rank", blocks, limits.blocks_per_rank, rank),
            over("thread blocks per rank", times(self.peers.0), limits.blocks_per_rank, self.peers.1),
        ];
        found.into_iter().find(|figure| figure.need > figure.limit)
    }
}

/// Steps for all chunks of sorted ranges, where a step takes at most `most` neighbours.
fn runs(chunks: &[Range<u32>], most: u32) -> u64 {
    let neighbours = chunks.chunk_by(|a, b| a.end == b.start);
    let lengths = neighbours.map(|run| run.iter().map(|chunks| chunks.end - chunks.start).sum::<u32>());
    lengths.map(|length| u64::from(length.div_ceil(most))).sum()
}
