//! The transfer graph: the one form the checker, the simulator and every lowering read.

use std::ops::Range;

use canopy_topology::Rank;

use crate::collective::Collective;
use crate::route::RouteTable;
use crate::schedule::{Action, Carrier};

/// Transfers of chunk ranges between ranks, with routes and dependencies.
///
/// **Chunk numbers.** Allgather, reduce-scatter and allreduce work on a vector of `N·k` chunks: chunk `r·k + i` is the
/// `i`-th of rank `r`'s share. Broadcast and reduce work on a vector of `k` chunks. Every rank has a place for the
/// whole vector; initially rank `q` holds its own contribution to chunk `c` where the collective gives it one
/// (allgather: its own share; broadcast: the root everything; reduce, reduce-scatter, allreduce: every chunk).
///
/// **Order.** `transfers` is a topological order: a dependency has a smaller index. All transfers of one batch are
/// neighbours, work on one and the same chunk range, and form a tree on the ranks.
///
/// Size: 40 bytes per transfer, 16 per carrier, 4 per dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferGraph {
    /// What the graph does.
    pub collective: Collective,
    /// N.
    pub rank_count: u32,
    /// k.
    pub chunks_per_share: u64,
    /// Routes that the carriers refer to.
    pub routes: RouteTable,
    /// Carriers of all transfers, flat.
    pub carriers: Vec<Carrier>,
    /// Dependencies of all transfers, flat: indices of transfers. Transfers that wait for the same may share a range.
    pub dependencies: Vec<u32>,
    /// Ranges of one root's chunks that move along one tree, in order; their transfers tile `transfers`.
    pub batches: Vec<Batch>,
    /// The transfers, in a topological order.
    pub transfers: Vec<Transfer>,
}

/// One tree's worth of transfers on one chunk range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// What receivers do.
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
    /// What it travels on, in [`TransferGraph::carriers`].
    pub carriers: Range<u32>,
    /// Transfers that must be complete before this one starts, in [`TransferGraph::dependencies`].
    pub dependencies: Range<u32>,
}

impl TransferGraph {
    /// Chunks of the whole vector; see the chunk numbers above. `None` on overflow.
    pub fn chunk_count(&self) -> Option<u64> {
        use crate::collective::CollectiveKind::{Broadcast, Reduce};
        match self.collective.kind() {
            Broadcast | Reduce => Some(self.chunks_per_share),
            _ => self.chunks_per_share.checked_mul(u64::from(self.rank_count)),
        }
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
