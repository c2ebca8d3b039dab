//! How many steps, blocks and nodes any arrangement of a plan needs at least, and those that are made here.

mod orders;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use canopy_schedule::{Action, CollectiveKind};

use super::blocks::Sharing;
use super::message::Message;
use super::moves::{Move, Tree, Trees};
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
    /// By rank: peers that it receives from, and that it sends to.
    peers: Vec<(u64, u64)>,
    /// By rank: steps that copy what is its own.
    own_copies: Vec<u64>,
    /// By rank: steps tree by tree.
    in_trees: Vec<u64>,
    /// Moves of all ranks.
    moves: u64,
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
        let mut flows: HashMap<Flow, Vec<Range<u32>>> = HashMap::new();
        for tree in &trees.trees {
            for &(from, to) in &tree.hops {
                flows.entry((from, to, tree.action)).or_default().push(tree.chunks.clone());
            }
        }
        let mut flows: Vec<(Flow, Vec<Range<u32>>)> = flows.into_iter().collect();
        flows.sort_unstable_by_key(|&(flow, _)| flow);
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
        let own_copy = |rank| plan.own_copy(rank).map_or(0, |own| u64::from(own.count.div_ceil(chunks_max)));
        let moves = |tree: &Tree| tree.hops.len() as u64 * orders::pieces(tree, chunks_max);
        Self {
            rank_count: plan.rank_count,
            steps: most(&steps, if is_fused { &longest } else { &|received, sent| received + sent }),
            peers,
            own_copies: (0..plan.rank_count).map(own_copy).collect(),
            in_trees: orders::in_trees(trees, plan.rank_count, profile),
            moves: trees.trees.iter().map(moves).sum(),
        }
    }

    /// The first limit on nodes, or on steps of all blocks, that no arrangement of so many instances can keep; `need` is a
    /// lower bound on what a rank needs.
    pub(super) fn exceeded(&self, instances: u32, profile: Profile) -> Option<Figure> {
        let limits = profile.limits();
        let times = |need: u64| need * u64::from(instances);
        let over = |name, need, limit: u32, rank| Figure { name, need, limit: limit.into(), rank: Some(rank) };
        let (steps, rank) = self.steps;
        let longest = self.peers.iter().map(|&(received, sent)| received.max(sent));
        let most = (0_u32..).zip(longest).max_by_key(|&(rank, peers)| (peers, Reverse(rank)));
        let (most_peers, peers) = most.unwrap_or((0, 0));
        // Instances share no block.
        let blocks = times(steps.div_ceil(limits.steps_per_block.into()));
        let nodes = 1 + u64::from(self.rank_count) + blocks + times(steps);
        let found = [
            over("XML nodes per rank", nodes, limits.nodes, rank),
            over("thread blocks per rank", blocks, limits.blocks_per_rank, rank),
            over("thread blocks per rank", times(peers), limits.blocks_per_rank, most_peers),
        ];
        found.into_iter().find(|figure| figure.need > figure.limit)
    }

    /// What ranks need tree by tree, where blocks are shared like this.
    pub(super) fn figures_in_trees(&self, sharing: Sharing, instances: u32, profile: Profile) -> [Figure; 2] {
        self.figures(&self.in_trees, sharing, instances, profile)
    }

    /// What they need wave after wave, in these moves of one instance.
    pub(super) fn figures_in_waves(
        &self,
        moves: &[Move],
        sharing: Sharing,
        instances: u32,
        profile: Profile,
    ) -> [Figure; 2] {
        self.figures(&orders::in_waves(moves, self.rank_count, profile), sharing, instances, profile)
    }

    /// Nodes and blocks, which more channels make no fewer, of ranks with at least so many steps. With one channel for
    /// each instance, which is tried first, a rank has a block for each pair of a peer that it receives from and one
    /// that it sends to, or for each peer.
    fn figures(&self, steps: &[u64], sharing: Sharing, instances: u32, profile: Profile) -> [Figure; 2] {
        let (limits, times) = (profile.limits(), u64::from(instances));
        let (mut nodes, mut blocks) = ((0, Reverse(0)), (0, Reverse(0)));
        for (((rank, steps), &(received, sent)), own) in (0_u32..).zip(steps).zip(&self.peers).zip(&self.own_copies) {
            let of_peers = if sharing == Sharing::Always { received.max(sent) } else { received + sent };
            let of_rank = times * (of_peers + own.div_ceil(limits.steps_per_block.into()));
            let all = 1 + u64::from(self.rank_count) + of_rank + times * (steps + own);
            (nodes, blocks) = (nodes.max((all, Reverse(rank))), blocks.max((of_rank, Reverse(rank))));
        }
        let figure =
            |name, limit: u32, (need, Reverse(rank))| Figure { name, need, limit: limit.into(), rank: Some(rank) };
        [
            figure("XML nodes per rank", limits.nodes, nodes),
            figure("thread blocks per rank", limits.blocks_per_rank, blocks),
        ]
    }

    /// Moves times blocks of so many instances: what a proof takes that follows the order of steps through all ranks.
    pub(super) fn proof_work(&self, instances: u32) -> u64 {
        let blocks: u64 = self.peers.iter().map(|&(received, sent)| received.max(sent)).sum();
        self.moves.saturating_mul(blocks).saturating_mul(u64::from(instances) * u64::from(instances))
    }
}

/// Steps for all chunks of sorted ranges, where a step takes at most `most` neighbours.
fn runs(chunks: &[Range<u32>], most: u32) -> u64 {
    let neighbours = chunks.chunk_by(|a, b| a.end == b.start);
    let lengths = neighbours.map(|run| run.iter().map(|chunks| chunks.end - chunks.start).sum::<u32>());
    lengths.map(|length| u64::from(length.div_ceil(most))).sum()
}

#[cfg(test)]
mod tests;
