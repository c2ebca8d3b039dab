//! How large the blocks of an all-to-all are that has blocks of different sizes.

use canopy_topology::Rank;

use crate::weights_error::SharesError;

/// A weight for the block of each source and destination: block sizes are in proportion to them.
///
/// A weight of 0 means that nothing is sent. The diagonal is what ranks have for themselves: it stays where it is, but
/// counts for *size* as it does where all blocks are equal. Something has to move.
///
/// 8 bytes for each pair of ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Blocks {
    rank_count: u32,
    /// Row by row: what rank 0 has for each rank, then rank 1, …
    weights: Vec<u64>,
}

impl Blocks {
    /// Most ranks whose blocks can be weighed: 2¹¹, hence 2²² weights of 32 MiB.
    pub const RANKS_MAX: u32 = 1 << 11;

    /// Accepts one weight for each pair of ranks, row by row.
    ///
    /// # Errors
    /// More ranks than [`RANKS_MAX`](Self::RANKS_MAX), another number of weights than the square of the ranks, nothing off
    /// the diagonal, or a sum of more than 2⁶⁴−1. O(weights).
    pub fn new(rank_count: u32, weights: Vec<u64>) -> Result<Self, SharesError> {
        if rank_count > Self::RANKS_MAX {
            return Err(SharesError::TooManyBlocks { rank_count, limit: Self::RANKS_MAX });
        }
        let (found, expected) = (weights.len(), rank_count as usize * rank_count as usize);
        if found != expected {
            return Err(SharesError::BlockCount { found, rank_count, expected });
        }
        let mut sum = 0_u64;
        for (weight, index) in weights.iter().zip(0_u32..) {
            let (row, column) = (index / rank_count, index % rank_count);
            sum = sum.checked_add(*weight).ok_or(SharesError::BlockSum { row, column })?;
        }
        let blocks = Self { rank_count, weights };
        let moves = blocks.moving().next().is_some();
        if moves { Ok(blocks) } else { Err(SharesError::NothingMoves) }
    }

    /// Number of ranks.
    pub const fn rank_count(&self) -> u32 {
        self.rank_count
    }

    /// All weights, row by row.
    pub fn weights(&self) -> &[u64] {
        &self.weights
    }

    /// What each rank has for all, by destination.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[u64]> {
        // Without ranks there are no weights, and no rows of any length.
        self.weights.chunks_exact(self.rank_count.max(1) as usize)
    }

    /// Weight of what one rank has for another, or for itself; 0 for ranks that do not exist.
    pub fn weight(&self, source: Rank, destination: Rank) -> u64 {
        let ranks = self.rank_count as usize;
        if source.index() >= ranks || destination.index() >= ranks {
            return 0;
        }
        self.weights[source.index() * ranks + destination.index()]
    }

    /// Pairs of different ranks between which something moves, with its weight: by source, then by destination.
    pub fn moving(&self) -> impl Iterator<Item = (Rank, Rank, u64)> {
        let ranks = self.rank_count;
        let pairs = self.weights.iter().zip(0_u32..);
        let moving = pairs.filter(move |&(&weight, index)| weight > 0 && index / ranks != index % ranks);
        moving.map(move |(&weight, index)| (Rank::new(index / ranks), Rank::new(index % ranks), weight))
    }

    /// Divides all weights by their greatest common divisor.
    pub(crate) fn in_lowest_terms(mut self) -> Self {
        let divisor = self.weights.iter().copied().fold(0, num_integer::gcd).max(1);
        self.weights.iter_mut().for_each(|weight| *weight /= divisor);
        self
    }

    /// The blocks where rank `r` is called `ranks[r]`, a permutation of all ranks.
    #[must_use]
    pub fn relabelled(&self, ranks: &[Rank]) -> Self {
        assert_eq!(ranks.len(), self.rank_count as usize, "one new name for each rank");
        let mut weights = vec![0; self.weights.len()];
        for (row, source) in self.rows().zip(ranks) {
            for (&weight, destination) in row.iter().zip(ranks) {
                weights[source.index() * ranks.len() + destination.index()] = weight;
            }
        }
        Self { rank_count: self.rank_count, weights }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(number: u32) -> Rank {
        Rank::new(number)
    }

    #[test]
    fn rows_are_sources_and_columns_destinations() {
        let blocks = Blocks::new(3, vec![9, 1, 0, 0, 0, 2, 3, 0, 0]).unwrap();
        assert_eq!(blocks.weight(rank(0), rank(1)), 1);
        assert_eq!(blocks.weight(rank(1), rank(0)), 0);
        assert_eq!((blocks.weight(rank(3), rank(0)), blocks.weight(rank(0), rank(3))), (0, 0));
        let moving: Vec<_> = blocks.moving().collect();
        assert_eq!(moving, [(rank(0), rank(1), 1), (rank(1), rank(2), 2), (rank(2), rank(0), 3)]);
        assert_eq!(blocks.rows().nth(1), Some(&[0, 0, 2][..]));
    }

    #[test]
    fn renaming_moves_rows_and_columns() {
        let blocks = Blocks::new(3, vec![9, 1, 0, 0, 0, 2, 3, 0, 0]).unwrap();
        let moved = blocks.relabelled(&[rank(2), rank(0), rank(1)]);
        assert_eq!(moved.weight(rank(2), rank(0)), 1);
        assert_eq!(moved.weight(rank(0), rank(1)), 2);
        assert_eq!(moved.weight(rank(2), rank(2)), 9);
        assert_eq!(moved.relabelled(&[rank(1), rank(2), rank(0)]), blocks);
    }

    #[test]
    fn matrices_that_mean_nothing_are_refused() {
        let count = |found| Err(SharesError::BlockCount { found, rank_count: 2, expected: 4 });
        assert_eq!(Blocks::new(2, vec![1; 3]), count(3));
        assert_eq!(Blocks::new(2, Vec::new()), count(0));
        assert_eq!(Blocks::new(2, vec![0; 4]), Err(SharesError::NothingMoves));
        // Ranks keep what they have for themselves.
        assert_eq!(Blocks::new(2, vec![7, 0, 0, 7]), Err(SharesError::NothingMoves));
        assert_eq!(Blocks::new(0, Vec::new()), Err(SharesError::NothingMoves));
        let sum = Err(SharesError::BlockSum { row: 1, column: 0 });
        assert_eq!(Blocks::new(2, vec![0, u64::MAX, 1, 0]), sum);
        let (rank_count, limit) = (Blocks::RANKS_MAX + 1, Blocks::RANKS_MAX);
        assert_eq!(Blocks::new(rank_count, vec![1]), Err(SharesError::TooManyBlocks { rank_count, limit }));
    }
}
