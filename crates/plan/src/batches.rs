//! What every lowering reads of the batches of a transfer graph: the unit of their chunks, and trees of hops.

use canopy_schedule::{Action, Batch, TransferGraph};
use canopy_topology::Rank;

/// Greatest common divisor. Euclid's algorithm.
pub(crate) const fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Greatest common divisor of all chunk ranges of a graph and of a share.
pub(crate) fn unit(graph: &TransferGraph) -> u64 {
    let numbers = graph.batches.iter().flat_map(|batch| [batch.chunk_first, batch.chunk_count]);
    numbers.fold(graph.chunks_per_share, divisor)
}

/// The hops of batch after batch, each of which must form a tree and stand in an order in which data can flow.
pub(crate) struct HopReader<'g> {
    graph: &'g TransferGraph,
    /// By rank: the last batch, by number from 1, that reached it.
    settled: Vec<usize>,
    batches: usize,
}

impl<'g> HopReader<'g> {
    pub(crate) fn new(graph: &'g TransferGraph) -> Self {
        Self { graph, settled: vec![0; graph.rank_count as usize], batches: 0 }
    }

    /// From and to, for each transfer of the next batch; or what is wrong with it.
    pub(crate) fn next(&mut self, batch: &Batch) -> Result<Vec<(Rank, Rank)>, &'static str> {
        self.batches += 1;
        let transfers = self.graph.transfers_of(batch);
        *self.settled.get_mut(batch.root.index()).ok_or("has a root that is not a rank")? = self.batches;
        if transfers.is_empty() {
            return Err("moves nothing");
        }
        let mut hops = Vec::with_capacity(transfers.len());
        for transfer in transfers {
            let (near, far) = match batch.action {
                Action::Copy => (transfer.from, transfer.to),
                Action::Reduce => (transfer.to, transfer.from),
            };
            let near_settled = *self.settled.get(near.index()).ok_or("names a rank that does not exist")?;
            let far_settled = self.settled.get_mut(far.index()).ok_or("names a rank that does not exist")?;
            if *far_settled == self.batches {
                return Err("is not a tree: a rank has two neighbours towards the root");
            }
            // Copies leave ranks that are reached; sums reach ranks that have not sent yet, of which the root is one.
            let flows = match batch.action {
                Action::Copy => near_settled == self.batches,
                Action::Reduce => near_settled != self.batches || near == batch.root,
            };
            if !flows {
                return Err("is not a tree whose transfers are in the order of the data flow");
            }
            *far_settled = self.batches;
            hops.push((transfer.from, transfer.to));
        }
        Ok(hops)
    }
}
