//! How many steps ranks need at least where moves are in one of the two orders, before anything is placed.

use canopy_schedule::Action;

use crate::msccl::lower::moves::{Move, Tree, Trees};
use crate::msccl::profile::Profile;
use crate::msccl::program::Operation;

/// Pieces of a tree that moves carry one after the other, tree by tree.
pub(super) fn pieces(tree: &Tree, chunks_max: u32) -> u64 {
    u64::from((tree.chunks.end - tree.chunks.start).div_ceil(chunks_max.max(1)))
}

/// Steps in which a rank receives something: a sum takes a second one where no operation does both.
fn receiving(action: Action, is_fused: bool) -> u64 {
    if action == Action::Reduce && !is_fused { 2 } else { 1 }
}

/// By rank, steps tree by tree.
///
/// A step receives a piece of a tree or sends it, or both where there are such operations: then it sends what the same
/// tree has just brought. Where a tree begins, one of its sends may be part of the step with which another tree has
/// ended. O(hops).
pub(super) fn in_trees(trees: &Trees, rank_count: u32, profile: Profile) -> Vec<u64> {
    let is_fused = profile.allows(Operation::ReceiveCopySend);
    let mut steps = vec![0_u64; rank_count as usize];
    // Hops of one tree that arrive at a rank, and that leave it.
    let mut of_tree = vec![(0_u64, 0_u64); rank_count as usize];
    for tree in &trees.trees {
        for &(from, to) in &tree.hops {
            of_tree[from as usize].1 += 1;
            of_tree[to as usize].0 += 1;
        }
        let pieces = pieces(tree, profile.limits().chunks_per_step);
        for rank in tree.hops.iter().flat_map(|&(from, to)| [from as usize, to as usize]) {
            let (received, sent) = std::mem::take(&mut of_tree[rank]);
            let least = match (is_fused, received) {
                (false, _) => received * receiving(tree.action, is_fused) + sent,
                (true, 0) => sent.saturating_sub(1),
                (true, _) => received.max(sent),
            };
            steps[rank] += pieces * least;
        }
    }
    steps
}

/// What one rank does wave after wave.
#[derive(Clone, Copy, Default)]
struct Waves {
    receiving: u64,
    sending: u64,
    /// Steps of a single chunk: only these can be fused.
    received_singly: u64,
    sent_singly: u64,
    /// Waves, counted once for each peer.
    in_waves: u64,
    out_waves: u64,
}

impl Waves {
    /// A block receives from one peer. Of what it receives in a wave only the last can be sent on in the same step, as
    /// the first of a later wave: everything else has another step of its block between.
    fn least(self, is_fused: bool) -> u64 {
        let singly = self.received_singly.min(self.sent_singly);
        let fused = if is_fused { singly.min(self.in_waves).min(self.out_waves) } else { 0 };
        self.receiving + self.sending - fused
    }
}

/// By rank, steps wave after wave, with one channel for these moves of one instance, which are in order.
///
/// Neighbours of one wave, peer and action may be one step. O(moves).
pub(super) fn in_waves(moves: &[Move], rank_count: u32, profile: Profile) -> Vec<u64> {
    let is_fused = profile.allows(Operation::ReceiveCopySend);
    let mut ranks = vec![Waves::default(); rank_count as usize];
    for of_peer in moves.chunk_by(|a, b| (a.wave, a.from, a.to) == (b.wave, b.from, b.to)) {
        let [Move { from, to, .. }, ..] = *of_peer else { continue };
        ranks[from as usize].out_waves += 1;
        ranks[to as usize].in_waves += 1;
        for joined in of_peer.chunk_by(|a, b| a.action == b.action && a.chunks.end == b.chunks.start) {
            let count: u32 = joined.iter().map(Move::count).sum();
            let steps = u64::from(count.div_ceil(profile.limits().chunks_per_step));
            let received = steps * joined.first().map_or(1, |moving| receiving(moving.action, is_fused));
            ranks[from as usize].sending += steps;
            ranks[to as usize].receiving += received;
            if count == 1 {
                ranks[from as usize].sent_singly += 1;
                ranks[to as usize].received_singly += 1;
            }
        }
    }
    ranks.into_iter().map(|rank| rank.least(is_fused)).collect()
}
