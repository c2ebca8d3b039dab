//! Decides which receive peer shares a thread block with which send peer.

use std::collections::{BTreeMap, HashMap};

use canopy_schedule::Action;

use super::channels::Channels;
use super::moves::Move;
use super::{LowerError, Stop, check_stop};

/// Peers of one thread block: where it receives from, where it sends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peers {
    pub(super) receive: Option<u32>,
    pub(super) send: Option<u32>,
    pub(super) channel: u32,
}

/// Whether a block has both kinds of peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Where that lets one step receive and forward, and everywhere else because blocks are scarce.
    Always,
    /// Never: steps are scarcer than blocks, and nothing can be fused.
    Never,
}

/// What one rank does on one channel: moves from and to each peer.
#[derive(Default)]
struct Traffic {
    receives: BTreeMap<u32, u32>,
    sends: BTreeMap<u32, u32>,
    /// Chunks that could be received from the first and forwarded to the second by one step.
    fusable: BTreeMap<(u32, u32), u64>,
}

/// Chunks at a rank: the rank, the first chunk and the end.
type Place = (u32, u32, u32);

/// How chunks came to a rank.
struct Arrival {
    from: u32,
    channel: u32,
    piece: Option<u64>,
}

/// Thread blocks of each rank, those that receive first: dependencies can name only low ids.
///
/// Per rank and channel the pairs that can fuse most chunks are joined first (greedy; ties by peer), then of what is
/// left the busiest with the idlest. So a rank has as many blocks per channel as it has receive or send peers,
/// whichever is more. Two peers in one block take turns; that is safe, because all blocks follow one order of moves.
pub(super) fn thread_blocks<'a>(
    moves: impl Iterator<Item = &'a Move>,
    channels: &Channels,
    sharing: Sharing,
    is_in_waves: bool,
    rank_count: u32,
    stop: Stop<'_>,
) -> Result<Vec<Vec<Peers>>, LowerError> {
    let mut traffic: Vec<BTreeMap<u32, Traffic>> = (0..rank_count).map(|_| BTreeMap::new()).collect();
    // What came to a rank as one range: looked up, never listed. Any contribution of a piece of a tree can be made the
    // last to come; of waves, only what came last can be forwarded.
    let mut arrivals: HashMap<Place, Vec<Arrival>> = HashMap::new();
    for (index, moving) in moves.enumerate() {
        check_stop(stop, index)?;
        let Move { from, to, chunks, .. } = moving;
        let channel = channels.of(moving);
        let at_sender = traffic[*from as usize].entry(channel).or_default();
        *at_sender.sends.entry(*to).or_default() += 1;
        let sent = arrivals.get(&(*from, chunks.start, chunks.end));
        for arrival in sent.into_iter().flatten() {
            let fuses = moving.count() == 1 || !is_in_waves;
            if arrival.channel == channel && arrival.piece == moving.piece && fuses {
                *at_sender.fusable.entry((arrival.from, *to)).or_default() += u64::from(moving.count());
            }
        }
        let at_receiver = traffic[*to as usize].entry(channel).or_default();
        *at_receiver.receives.entry(*from).or_default() += 1;
        let arrived = arrivals.entry((*to, chunks.start, chunks.end)).or_default();
        let is_new = arrived.last().is_some_and(|last| last.piece != moving.piece);
        if is_in_waves || is_new || moving.action == Action::Copy {
            arrived.clear();
        }
        arrived.push(Arrival { from: *from, channel, piece: moving.piece });
    }
    Ok(traffic.into_iter().map(|channels| join(channels, sharing)).collect())
}

fn join(channels: BTreeMap<u32, Traffic>, sharing: Sharing) -> Vec<Peers> {
    let mut blocks = Vec::new();
    for (channel, Traffic { mut receives, mut sends, fusable }) in channels {
        if sharing == Sharing::Never {
            blocks.extend(receives.into_keys().map(|peer| Peers { receive: Some(peer), send: None, channel }));
            blocks.extend(sends.into_keys().map(|peer| Peers { receive: None, send: Some(peer), channel }));
            continue;
        }
        let mut by_gain: Vec<((u32, u32), u64)> = fusable.into_iter().collect();
        by_gain.sort_by_key(|&(pair, chunks)| (std::cmp::Reverse(chunks), pair));
        for ((from, to), _) in by_gain {
            if receives.contains_key(&from) && sends.contains_key(&to) {
                receives.remove(&from);
                sends.remove(&to);
                blocks.push(Peers { receive: Some(from), send: Some(to), channel });
            }
        }
        let mut receives: Vec<(u32, u32)> = receives.into_iter().map(|(peer, moves)| (moves, peer)).collect();
        let mut sends: Vec<(u32, u32)> = sends.into_iter().map(|(peer, moves)| (moves, peer)).collect();
        // The longer list sets the number of blocks; its busiest peers stay alone.
        receives.sort_unstable();
        sends.sort_unstable();
        let shorter = receives.len().min(sends.len());
        receives[..shorter].reverse();
        for position in 0..receives.len().max(sends.len()) {
            let peer = |list: &[(u32, u32)]| list.get(position).map(|&(_, peer)| peer);
            blocks.push(Peers { receive: peer(&receives), send: peer(&sends), channel });
        }
    }
    blocks.sort_by_key(|block| block.receive.is_none());
    blocks
}
