//! Reads a transfer graph as moves, and puts them in the one order all thread blocks follow.

mod order;
mod touched;
mod uses;

use std::ops::Range;

use canopy_schedule::{Action, Batch, CollectiveKind, Pace, TransferGraph};

use super::message::Message;
use super::{LowerError, Stop, check_stop};
use crate::batches::HopReader;

pub(super) use order::{cut, in_trees, in_waves};
pub(super) use uses::{mark_last_uses, order_contributions};

/// A range of chunks on its way from one rank to another.
#[derive(Clone, Debug)]
pub(super) struct Move {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) chunks: Range<u32>,
    pub(super) action: Action,
    /// Moves with equal numbers prefer the same channel, so that they can be fused.
    pub(super) turn: u32,
    /// Moves with equal numbers belong to one piece of one tree, where the order is tree by tree.
    pub(super) piece: Option<u64>,
    /// Instance of the plan that it belongs to.
    pub(super) instance: u32,
    /// Position of its wave; 0 where the order is tree by tree.
    pub(super) wave: u32,
    /// Nobody needs the chunks at the sender afterwards.
    pub(super) is_last_use: bool,
}

impl Move {
    /// Chunks moved, ≥ 1.
    pub(super) fn count(&self) -> u32 {
        self.chunks.end - self.chunks.start
    }

    /// Whether both are of one piece of a tree.
    pub(super) fn is_of_piece(&self, other: &Self) -> bool {
        self.piece.is_some() && self.piece == other.piece
    }
}

/// The batches of a graph in the numbering of a file, each known to be a tree.
pub(super) struct Trees {
    pub(super) trees: Vec<Tree>,
    /// Whether each reaches every rank, as those of allgather, allreduce and their like do.
    pub(super) span: bool,
}

/// One batch.
pub(super) struct Tree {
    pub(super) action: Action,
    pub(super) chunks: Range<u32>,
    /// Sender and receiver, in an order in which data can flow.
    pub(super) hops: Vec<(u32, u32)>,
    /// The step in which it is sent, where all ranks wait for each other after every step; else 0.
    pub(super) step: u32,
}

impl Trees {
    /// Reads and checks each batch by itself.
    pub(super) fn read(graph: &TransferGraph, message: &Message, stop: Stop<'_>) -> Result<Self, LowerError> {
        let mut trees = Vec::with_capacity(graph.batches.len());
        let mut reader = HopReader::new(graph);
        for (index, batch) in graph.batches.iter().enumerate() {
            check_stop(stop, index)?;
            let malformed = |what| LowerError::Malformed { batch: index, what };
            let hops = reader.next(batch).map_err(malformed)?;
            let hops = hops.into_iter().map(|(from, to)| (from.number(), to.number())).collect::<Vec<_>>();
            let chunks = chunk_range(batch, message).ok_or_else(|| malformed("has chunks outside one share"))?;
            let step = graph.steps.get(batch.transfers.start as usize).filter(|_| graph.pace == Pace::Barriers);
            trees.push(Tree { action: batch.action, chunks, hops, step: step.copied().unwrap_or(0) });
        }
        let span = trees.iter().all(|tree| tree.hops.len() + 1 == graph.rank_count as usize);
        Ok(Self { trees, span })
    }

    /// Whether trees are more than single hops, so that following one from end to end can fuse steps.
    pub(super) fn have_depth(&self) -> bool {
        self.trees.iter().any(|tree| tree.hops.len() > 1)
    }
}

/// Chunks of a batch in the numbering of the file, if they lie in one share.
fn chunk_range(batch: &Batch, message: &Message) -> Option<Range<u32>> {
    let narrow = |chunk: u64| u32::try_from(chunk / message.unit).ok().filter(|&chunk| chunk <= message.total);
    let chunks = narrow(batch.chunk_first)?..narrow(batch.chunk_first.checked_add(batch.chunk_count)?)?;
    let is_inside = !chunks.is_empty() && message.share_of(chunks.start) == message.share_of(chunks.end - 1);
    Some(chunks).filter(|_| is_inside)
}

/// Key that keeps neighbours in time apart in space: roots, or pairs by their distance.
fn rotation(message: &Message, share: u32) -> (u32, u32) {
    match message.kind {
        CollectiveKind::AllToAll => {
            let (source, destination) = (share / message.rank_count, share % message.rank_count);
            ((destination + message.rank_count - source) % message.rank_count, source)
        }
        _ => (0, share),
    }
}
