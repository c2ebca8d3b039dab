//! Which receives and sends become one step.

use std::collections::BTreeMap;

use canopy_schedule::Action;

use super::blocks::Peers;
use super::channels::Channels;
use super::placement::Placed;
use crate::msccl::profile::Profile;
use crate::msccl::program::Operation;

/// Thread blocks of a rank by what they serve.
pub(super) struct Ends {
    /// By peer and channel.
    senders: BTreeMap<(u32, u32), usize>,
    receivers: BTreeMap<(u32, u32), usize>,
}

impl Ends {
    pub(super) fn new(peers: &[Peers]) -> Self {
        let (mut senders, mut receivers) = (BTreeMap::new(), BTreeMap::new());
        for (index, Peers { receive, send, channel }) in peers.iter().enumerate() {
            senders.extend(send.map(|peer| ((peer, *channel), index)));
            receivers.extend(receive.map(|peer| ((peer, *channel), index)));
        }
        Self { senders, receivers }
    }

    /// The block that sends to a peer.
    pub(super) fn block_to(&self, peer: u32, channel: u32) -> usize {
        *self.senders.get(&(peer, channel)).expect("blocks were made for every move")
    }

    /// The block that receives from a peer.
    pub(super) fn block_from(&self, peer: u32, channel: u32) -> usize {
        *self.receivers.get(&(peer, channel)).expect("blocks were made for every move")
    }
}

/// What a receiving move is fused with, and what is fused away.
pub(super) struct Fusion {
    /// For each move: the move that its receiver makes in the same step, and the operation.
    pub(super) onward: Vec<Option<(usize, Operation)>>,
    /// For each move: the one whose step sends it too.
    pub(super) within: Vec<Option<usize>>,
}

/// Fuses a receive with the send of the same chunks, where one block does the two directly after each other.
///
/// The step takes the place of the receive in the one order of moves. Where it is a single transfer, its onward queue is
/// empty by then: what the block sent before has been received. Several transfers may need more slots than the queue has,
/// so whoever they go to must be ready for them: that holds within a piece of a tree, of which each block has at most one
/// step, and not across pieces or waves. A sum that is sent once and needed no more is not stored.
pub(super) fn fuse(placed: &[Placed], channels: &Channels, ends: &[Ends], profile: Profile) -> Fusion {
    let mut fusion = Fusion { onward: vec![None; placed.len()], within: vec![None; placed.len()] };
    // The last move that each block has received, unless it did something else since.
    let mut received: BTreeMap<(u32, usize), usize> = BTreeMap::new();
    for (index, at) in placed.iter().enumerate() {
        let channel = channels.of(&at.moving);
        let sender = (at.moving.from, ends[at.moving.from as usize].block_to(at.moving.to, channel));
        if let Some(earlier) = received.remove(&sender)
            && at.writer == Some(earlier)
            && placed[earlier].moving.chunks == at.moving.chunks
            && (at.moving.count() == 1 || placed[earlier].moving.is_of_piece(&at.moving))
        {
            let operation = match placed[earlier].moving.action {
                Action::Copy => Operation::ReceiveCopySend,
                Action::Reduce if at.is_first_use && at.moving.is_last_use => Operation::ReceiveReduceSend,
                Action::Reduce => Operation::ReceiveReduceCopySend,
            };
            if profile.allows(operation) {
                fusion.onward[earlier] = Some((index, operation));
                fusion.within[index] = Some(earlier);
            }
        }
        received.insert((at.moving.to, ends[at.moving.to as usize].block_from(at.moving.from, channel)), index);
    }
    fusion
}
