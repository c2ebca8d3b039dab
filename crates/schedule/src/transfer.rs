//! The transfer graph: the one form the checker, the simulator and every lowering read.

use std::ops::Range;

use canopy_topology::Rank;

use crate::collective::Collective;
use crate::forest::{Action, Carrier};
use crate::route::RouteTable;
use crate::schedule::Pace;
use crate::shares::{ChunkLayout, Shares};
use crate::weights_error::SharesError;

/// Transfers of chunk ranges between ranks, with routes and dependencies.
///
/// **Chunk numbers.** Allgather, reduce-scatter, allreduce, gather and scatter work on a vector of all shares, one after
/// the other: with equal shares of `N·k` chunks, of which chunk `r·k + i` is the `i`-th of rank `r`'s share; with weighted
/// ones rank `r`'s share has `k·w_r` chunks. Broadcast and reduce work on a vector of `k` chunks. All-to-all has `N²·k`:
/// chunk `(s·N + d)·k + i` is the `i`-th of the block that rank `s` has for rank `d`; with weighted blocks each has
/// `k·w(s, d)`, in the same order. [`ChunkLayout`] counts them.
///
/// **Places.** Every rank has a place for every chunk. Initially rank `q` holds its own contribution to chunk `c` where the
/// collective gives it one: allgather, gather: its own share; broadcast, scatter: the root everything; reduce,
/// reduce-scatter, allreduce: every chunk; all-to-all: the blocks it sends. Finally those hold what is promised: allgather,
/// broadcast, allreduce: all ranks everything; reduce-scatter, scatter: each its share; reduce, gather: the root everything;
/// all-to-all: each the blocks for it. The places of others are for transit. The block of a rank for itself stays.
///
/// **Order.** `transfers` is a topological order: a dependency has a smaller index. All transfers of one batch are
/// neighbours, work on one and the same chunk range of one share or block, and form a tree on the ranks.
///
/// Size: 24 bytes per transfer, 16 per carrier, 4 per dependency, 32 per batch. So a hop on one route takes 44 bytes, and
/// less where hops that wait for the same share their dependencies; a send, which is a batch of its own and has a step, 80 and up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferGraph {
    /// The collective.
    pub collective: Collective,
    /// N, the number of ranks.
    pub rank_count: u32,
    /// k, the number of chunks per share.
    pub chunks_per_share: u64,
    /// Sizes of the ranks' shares, or of the blocks of an all-to-all.
    pub shares: Shares,
    /// Routes that the carriers refer to.
    pub routes: RouteTable,
    /// Carriers of all transfers, flat.
    pub carriers: Vec<Carrier>,
    /// Dependencies of all transfers, flat: indices of transfers. Transfers with equal dependencies may share a range.
    pub dependencies: Vec<u32>,
    /// Chunk ranges of one share or block that move along one tree, in order; their transfers tile `transfers`.
    pub batches: Vec<Batch>,
    /// The transfers, in a topological order.
    pub transfers: Vec<Transfer>,
    /// The step of each transfer, in ascending order; a barrier after each step would change only the time. Empty if
    /// there are no steps.
    pub steps: Vec<u32>,
    /// How the times of steps add up, if the graph has steps.
    pub pace: Pace,
}

/// The transfers of one tree on one chunk range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// What receivers do with the data.
    pub action: Action,
    /// The rank the tree starts (copy) or ends (reduce) at.
    pub root: Rank,
    /// First chunk of the range.
    pub chunk_first: u64,
    /// Chunks in the range, ≥ 1.
    pub chunk_count: u64,
    /// Its transfers.
    pub transfers: Range<u32>,
}

/// A batch's chunks on their way from one rank to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The sending rank.
    pub from: Rank,
    /// The receiving rank.
    pub to: Rank,
    /// Its carriers in [`TransferGraph::carriers`].
    pub carriers: Range<u32>,
    /// Transfers that must be complete before this one starts, in [`TransferGraph::dependencies`].
    pub dependencies: Range<u32>,
}

impl TransferGraph {
    /// Which chunk belongs to which share.
    ///
    /// # Errors
    /// No chunk, more chunks than can be numbered, or weights that do not match. O(weights).
    pub fn layout(&self) -> Result<ChunkLayout, SharesError> {
        ChunkLayout::new(self.collective, self.rank_count, self.chunks_per_share, &self.shares)
    }

    /// Chunks of the whole vector, in all-to-all of all ranks' vectors together; see the chunk numbers above. `None`
    /// if [`layout`](Self::layout) fails.
    pub fn chunk_count(&self) -> Option<u64> {
        self.layout().ok().map(|layout| layout.total())
    }

    /// Transfers of a batch; an empty slice for a range outside the table.
    pub fn transfers_of(&self, batch: &Batch) -> &[Transfer] {
        self.transfers.get(batch.transfers.start as usize..batch.transfers.end as usize).unwrap_or_default()
    }

    /// Carriers of a transfer; an empty slice for a range outside the table.
    pub fn carriers_of(&self, transfer: &Transfer) -> &[Carrier] {
        self.carriers.get(transfer.carriers.start as usize..transfer.carriers.end as usize).unwrap_or_default()
    }

    /// Dependencies of a transfer; an empty slice for a range outside the table.
    pub fn dependencies_of(&self, transfer: &Transfer) -> &[u32] {
        let range = transfer.dependencies.start as usize..transfer.dependencies.end as usize;
        self.dependencies.get(range).unwrap_or_default()
    }
}
