//! Reads a transfer graph as moves, and puts them in the one order all thread blocks follow.

mod order;
mod uses;

use std::ops::Range;

use canopy_schedule::{Action, Batch, CollectiveKind, Pace, TransferGraph};

use super::message::Message;
use super::{LowerError, Stop, check_stop};

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
        // The last batch, by number from 1, that brought something to a rank (copy) or took it away (reduce).
        let mut settled = vec![0_usize; graph.rank_count as usize];
        for (index, batch) in graph.batches.iter().enumerate() {
            check_stop(stop, index)?;
            let malformed = |what| LowerError::Malformed { batch: index, what };
            let hops = read_hops(graph, batch, index + 1, &mut settled).map_err(malformed)?;
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

/// The hops of a batch, which form a tree and stand in an order in which data can flow.
fn read_hops(
    graph: &TransferGraph,
    batch: &Batch,
    number: usize,
    settled: &mut [usize],
) -> Result<Vec<(u32, u32)>, &'static str> {
    let transfers = graph.transfers_of(batch);
    let root = settled.get_mut(batch.root.index()).ok_or("has a root that is no rank")?;
    *root = number;
    if transfers.is_empty() {
        return Err("moves nothing");
    }
    let mut hops = Vec::with_capacity(transfers.len());
    for transfer in transfers {
        let (from, to) = (transfer.from, transfer.to);
        let (near, far) = match batch.action {
            Action::Copy => (from, to),
            Action::Reduce => (to, from),
        };
        let (Some(&near_settled), Some(far_settled)) = (settled.get(near.index()), settled.get(far.index())) else {
            return Err("names a rank that does not exist");
        };
        if *far_settled == number {
            return Err("is no tree: a rank has two neighbours towards the root");
        }
        let flows = match batch.action {
            Action::Copy => near_settled == number,
            // The root takes part in all of its batch; any other rank must not have sent yet.
            Action::Reduce => near_settled != number || near == batch.root,
        };
        if !flows {
            return Err("is no tree that data can flow along in the order of its transfers");
        }
        settled[far.index()] = number;
        hops.push((from.number(), to.number()));
    }
    Ok(hops)
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
