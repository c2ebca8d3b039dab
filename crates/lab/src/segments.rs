//! Segments: the ranges of a vector within which every transfer of a plan has one route and one set of waits.

use std::collections::BTreeSet;
use std::ops::Range;

use canopy_schedule::TransferGraph;

use crate::error::LabError;
use crate::program::MEMORY_BYTES_MAX;

/// The vector cut wherever a batch or a carrier begins or ends, with the words of each part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segments {
    /// Chunks at which segments begin, and the end of the last, rising.
    cuts: Vec<u64>,
    /// First words, likewise.
    words: Vec<u64>,
}

impl Segments {
    /// Cuts the vector of a graph at the ends of its batches and carriers and at `also`, into words that add up to
    /// `total_words`. O(carriers · log carriers).
    pub(crate) fn new(
        graph: &TransferGraph,
        also: impl Iterator<Item = u64>,
        chunk_total: u64,
        total_words: u128,
    ) -> Result<Self, LabError> {
        let mut cuts = BTreeSet::from([0, chunk_total]);
        cuts.extend(also.filter(|&chunk| chunk <= chunk_total));
        for batch in &graph.batches {
            let end = batch.chunk_first.checked_add(batch.chunk_count).filter(|&end| end <= chunk_total);
            let transfer = batch.transfers.start;
            let end = end.ok_or(LabError::Malformed { transfer, what: "moves chunks that do not exist" })?;
            cuts.extend([batch.chunk_first, end]);
            for (transfer, number) in graph.transfers_of(batch).iter().zip(transfer..) {
                let mut chunk = batch.chunk_first;
                for carrier in graph.carriers_of(transfer) {
                    chunk = chunk.saturating_add(carrier.chunk_count);
                    cuts.insert(chunk.min(end));
                }
                if chunk != end {
                    let what = "does not carry all of its chunks";
                    return Err(LabError::Malformed { transfer: number, what });
                }
            }
        }
        let cuts: Vec<u64> = cuts.into_iter().collect();
        let word = |&chunk: &u64| {
            let place = u128::from(chunk).checked_mul(total_words)? / u128::from(chunk_total.max(1));
            u64::try_from(place).ok()
        };
        let words: Option<Vec<u64>> = cuts.iter().map(word).collect();
        let words = words.ok_or(LabError::TooMuchMemory { found: u64::MAX, limit: MEMORY_BYTES_MAX })?;
        Ok(Self { cuts, words })
    }

    /// Number of segments, those without a word included.
    pub(crate) fn len(&self) -> usize {
        self.cuts.len() - 1
    }

    /// The segments that a range of chunks consists of; both ends are cuts.
    pub(crate) fn within(&self, chunks: &Range<u64>) -> Range<usize> {
        let at = |chunk: u64| self.cuts.partition_point(|&cut| cut < chunk);
        at(chunks.start)..at(chunks.end)
    }

    /// First chunk of a segment.
    pub(crate) fn chunk(&self, segment: usize) -> u64 {
        self.cuts[segment]
    }

    /// Words of a segment.
    pub(crate) fn words(&self, segment: usize) -> Range<u64> {
        self.words[segment]..self.words[segment + 1]
    }
}
