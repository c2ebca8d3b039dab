//! Decides which receive peer shares a thread block with which send peer.

use std::collections::{BTreeMap, BTreeSet};

use canopy_schedule::Action;

use super::Channels;
use super::pieces::Pieces;

/// Peers of one thread block: where it receives from, where it sends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peers {
    pub(super) receive: Option<u32>,
    pub(super) send: Option<u32>,
    pub(super) channel: u32,
}

/// What one rank does on one channel.
#[derive(Default)]
struct Traffic {
    receives: BTreeSet<u32>,
    sends: BTreeSet<u32>,
    /// Chunks that could be received from the first and forwarded to the second by one step.
    fusable: BTreeMap<(u32, u32), u64>,
}

/// Thread blocks of each rank, those that receive first: dependencies can name only low ids.
///
/// Per rank and channel the pairs that can fuse most chunks are joined first (greedy; ties by peer), then what is
/// left, in order. So a rank has as many blocks per channel as it has receive or send peers, whichever is more.
/// Two peers in one block take turns; that is safe, because all blocks follow one order of pieces.
pub(super) fn thread_blocks(pieces: &Pieces, channels: Channels, rank_count: u32) -> Vec<Vec<Peers>> {
    let mut traffic: Vec<BTreeMap<u32, Traffic>> = (0..rank_count).map(|_| BTreeMap::new()).collect();
    for piece in &pieces.pieces {
        let tree = &pieces.trees[piece.tree];
        let lane = (piece.turn + tree.root) % channels.lanes;
        let channel = |from, to| channels.of_hop(lane, from, to, rank_count);
        for &rank in &tree.outwards {
            let near = tree.towards_root[rank as usize];
            for &far in &tree.away[rank as usize] {
                let (from, to) = if tree.action == Action::Copy { (rank, far) } else { (far, rank) };
                let hop = channel(from, to);
                traffic[from as usize].entry(hop).or_default().sends.insert(to);
                traffic[to as usize].entry(hop).or_default().receives.insert(from);
                let (from, to) = if tree.action == Action::Copy { (near, far) } else { (far, near) };
                if rank != tree.root && channel(from, rank) == channel(rank, to) {
                    let fusable = &mut traffic[rank as usize].entry(hop).or_default().fusable;
                    *fusable.entry((from, to)).or_default() += u64::from(piece.count);
                }
            }
        }
    }
    traffic.into_iter().map(join).collect()
}

fn join(channels: BTreeMap<u32, Traffic>) -> Vec<Peers> {
    let mut blocks = Vec::new();
    for (channel, Traffic { mut receives, mut sends, fusable }) in channels {
        let mut by_gain: Vec<((u32, u32), u64)> = fusable.into_iter().collect();
        by_gain.sort_by_key(|&(pair, chunks)| (std::cmp::Reverse(chunks), pair));
        for ((from, to), _) in by_gain {
            if receives.contains(&from) && sends.contains(&to) {
                receives.remove(&from);
                sends.remove(&to);
                blocks.push(Peers { receive: Some(from), send: Some(to), channel });
            }
        }
        while let (receive, send) = (receives.pop_first(), sends.pop_first())
            && (receive.is_some() || send.is_some())
        {
            blocks.push(Peers { receive, send, channel });
        }
    }
    blocks.sort_by_key(|block| block.receive.is_none());
    blocks
}
