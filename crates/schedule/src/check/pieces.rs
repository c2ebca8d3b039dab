//! The vector of a graph in pieces: neighbouring chunks that the same batches move, all of one share or block.

use rayon::slice::ParallelSliceMut as _;

use crate::shares::ChunkLayout;
use crate::transfer::{Batch, TransferGraph};

/// Where pieces start and which batches they meet, in a form from which any run of pieces can be listed.
pub(super) struct Pieces<'a> {
    graph: &'a TransferGraph,
    /// First chunks of all pieces, rising.
    cuts: Vec<u64>,
    /// Batches by first chunk, then by index.
    by_first: Vec<u32>,
    /// By position in `by_first`: the greatest end of a batch so far.
    ends: Vec<u64>,
}

impl<'a> Pieces<'a> {
    /// Cuts the vector at the ends of all batches, shares and blocks. O((batches + shares) log of these).
    pub(super) fn new(graph: &'a TransferGraph, layout: &ChunkLayout) -> Self {
        let count =
            u32::try_from(graph.batches.len()).expect("each batch owns a transfer, and these are indexed by u32");
        let mut pairs: Vec<(u64, u32)> = graph.batches.iter().map(|batch| batch.chunk_first).zip(0..count).collect();
        pairs.par_sort_unstable();
        let by_first: Vec<u32> = pairs.into_iter().map(|(_, index)| index).collect();
        let mut most = 0;
        let ends = by_first.iter().map(|&index| {
            most = end(&graph.batches[index as usize]).max(most);
            most
        });
        let ends = ends.collect();
        let mut cuts: Vec<u64> = graph.batches.iter().flat_map(|batch| [batch.chunk_first, end(batch)]).collect();
        cuts.extend(layout.starts());
        cuts.retain(|&cut| cut < layout.total());
        cuts.par_sort_unstable();
        cuts.dedup();
        Self { graph, cuts, by_first, ends }
    }

    /// Number of pieces.
    pub(super) fn len(&self) -> usize {
        self.cuts.len()
    }

    /// Calls `visit` with the first chunk and the batches, by index, of every piece of a range of them, in order, until
    /// one fails. O(batches that meet them, once for each piece they meet).
    pub(super) fn visit<E>(
        &self,
        pieces: std::ops::Range<usize>,
        mut visit: impl FnMut(u64, &[u32]) -> Result<(), E>,
    ) -> Result<(), E> {
        let batch = |index: u32| &self.graph.batches[index as usize];
        let cuts = &self.cuts[pieces];
        let Some(&start) = cuts.first() else { return Ok(()) };
        let mut entered = self.by_first.partition_point(|&index| batch(index).chunk_first < start);
        let earlier = (0..entered).rev().take_while(|&at| self.ends[at] > start).map(|at| self.by_first[at]);
        let mut active: Vec<u32> = earlier.filter(|&index| end(batch(index)) > start).collect();
        active.sort_unstable();
        for &chunk in cuts {
            active.retain(|&index| end(batch(index)) > chunk);
            let before = active.len();
            while let Some(&index) = self.by_first.get(entered).filter(|&&index| batch(index).chunk_first <= chunk) {
                active.push(index);
                entered += 1;
            }
            if active.len() > before {
                active.sort_unstable();
            }
            visit(chunk, &active)?;
        }
        Ok(())
    }
}

/// First chunk after a batch's range, which the structure check has found inside the vector.
fn end(batch: &Batch) -> u64 {
    batch.chunk_first + batch.chunk_count
}
