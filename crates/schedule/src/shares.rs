//! How large the ranks' shares are, and how that numbers the chunks.

use std::ops::Range;

use canopy_topology::{Rank, Ratio};
use num_bigint::BigUint;
use num_integer::Integer as _;

use crate::blocks::Blocks;
use crate::collective::{Collective, CollectiveKind};
use crate::weights_error::SharesError;

/// Sizes of the ranks' shares, relative to each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Shares {
    /// All shares have equal size.
    #[default]
    Equal,
    /// The share of rank `r` has size in proportion to the `r`-th weight, which may be 0: so many times
    /// `chunks_per_share` chunks. One weight for each rank, not all 0.
    ///
    /// For allgather, reduce-scatter, allreduce, gather and scatter. Broadcast and reduce have one message, and all-to-all
    /// has [blocks](Self::Blocks), so weights of ranks mean nothing there and are refused.
    Weighted(Vec<u64>),
    /// All-to-all: the block from `s` to `d` has its weight times `chunks_per_share` chunks. As many rows as there are ranks.
    Blocks(Blocks),
}

impl Shares {
    /// Shares in proportion to weights, in lowest terms: weights without a common factor, and equal ones as
    /// [`Shares::Equal`]. So equal proportions are equal shares. In all-to-all they are the weights of blocks, row by row.
    ///
    /// # Errors
    /// Weights that do not fit the collective or the ranks, are all 0, or add up to more than 2⁶⁴−1 even in lowest
    /// terms. O(weights · log weight).
    pub fn in_proportion(collective: Collective, rank_count: u32, mut weights: Vec<u64>) -> Result<Self, SharesError> {
        if collective.kind() == CollectiveKind::AllToAll {
            let blocks = Blocks::new(rank_count, weights)?.in_lowest_terms();
            return Ok(if blocks.weights().iter().all(|&weight| weight == 1) {
                Self::Equal
            } else {
                Self::Blocks(blocks)
            });
        }
        let divisor = weights.iter().copied().fold(0, num_integer::gcd).max(1);
        weights.iter_mut().for_each(|weight| *weight /= divisor);
        let shares = Self::Weighted(weights);
        ChunkLayout::new(collective, rank_count, 1, &shares)?;
        match shares {
            Self::Weighted(weights) if weights.iter().any(|&weight| weight != 1) => Ok(Self::Weighted(weights)),
            _ => Ok(Self::Equal),
        }
    }

    /// Sum of all weights: the number of ranks for equal shares.
    pub fn weight_total(&self, rank_count: u32) -> u128 {
        match self {
            Self::Equal => rank_count.into(),
            Self::Weighted(_) | Self::Blocks(_) => self.weights().iter().map(|&weight| u128::from(weight)).sum(),
        }
    }

    /// All weights, those of blocks row by row; none of equal shares.
    pub fn weights(&self) -> &[u64] {
        match self {
            Self::Equal => &[],
            Self::Weighted(weights) => weights,
            Self::Blocks(blocks) => blocks.weights(),
        }
    }

    /// Weight of a rank's share: 1 for equal shares, 0 for a rank without one; of blocks, of all that it sends.
    pub fn weight(&self, rank: Rank) -> u64 {
        match self {
            Self::Equal => 1,
            Self::Weighted(weights) => weights.get(rank.index()).copied().unwrap_or(0),
            // No overflow: the sum of all weights has 64 bits.
            Self::Blocks(blocks) => blocks.rows().nth(rank.index()).map_or(0, |row| row.iter().sum()),
        }
    }

    /// All-to-all: weight of the block that one rank has for another, 1 for equal ones.
    pub fn block(&self, source: Rank, destination: Rank) -> u64 {
        match self {
            Self::Equal | Self::Weighted(_) => 1,
            Self::Blocks(blocks) => blocks.weight(source, destination),
        }
    }
}

/// *Size* of a collective in chunks, which need not be a whole number of them: `chunks / divisor`, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSize {
    /// The numerator, at least 1.
    pub chunks: u64,
    /// The denominator, at least 1.
    pub divisor: u32,
}

impl ChunkSize {
    /// So many chunks for each one of this size.
    pub(crate) fn ratio(self, chunks: impl Into<BigUint>) -> Ratio {
        Ratio::new(chunks.into() * self.divisor, self.chunks).expect("a collective has some chunks")
    }
}

/// Which chunk belongs to which share, as [`TransferGraph`](crate::TransferGraph) numbers them.
///
/// 8 bytes per rank for weighted shares, 8 per pair of ranks for weighted blocks, else nothing but the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkLayout {
    kind: CollectiveKind,
    root: Rank,
    rank_count: u32,
    chunks_per_share: u64,
    /// Where each share ends, for weighted shares; for weighted blocks each block, by source, then by destination.
    ends: Option<Vec<u64>>,
    total: u64,
}

impl ChunkLayout {
    /// Numbers the chunks of a collective.
    ///
    /// # Errors
    /// Weights that do not fit the collective or the ranks, no chunk at all, or more than 2⁶⁴−1. O(weights).
    pub fn new(
        collective: Collective,
        rank_count: u32,
        chunks_per_share: u64,
        shares: &Shares,
    ) -> Result<Self, SharesError> {
        let (kind, ranks) = (collective.kind(), u64::from(rank_count));
        let root = collective.root().unwrap_or(Rank::new(0));
        if chunks_per_share == 0 {
            return Err(SharesError::NoChunks);
        }
        let too_many = SharesError::TooManyChunks { chunks_per_share, rank_count };
        let weights: Option<&[u64]> = match (shares, kind) {
            (Shares::Equal, _) => None,
            (Shares::Blocks(blocks), CollectiveKind::AllToAll) => {
                if blocks.rank_count() != rank_count {
                    let (found, expected) = (blocks.weights().len(), rank_count as usize * rank_count as usize);
                    return Err(SharesError::BlockCount { found, rank_count, expected });
                }
                Some(blocks.weights())
            }
            (Shares::Blocks(_), _) => return Err(SharesError::BlocksNotApplicable { collective: kind }),
            (Shares::Weighted(_), CollectiveKind::Broadcast | CollectiveKind::Reduce | CollectiveKind::AllToAll) => {
                return Err(SharesError::NotApplicable { collective: kind });
            }
            (Shares::Weighted(weights), _) => {
                if weights.len() != rank_count as usize {
                    return Err(SharesError::Count { found: weights.len(), rank_count });
                }
                Some(weights)
            }
        };
        let (ends, total) = match (weights, kind) {
            (Some(weights), _) => {
                let mut end = 0_u64;
                let mut add = |&weight: &u64| {
                    end = chunks_per_share.checked_mul(weight).and_then(|chunks| end.checked_add(chunks))?;
                    Some(end)
                };
                let ends: Vec<u64> = weights.iter().map(&mut add).collect::<Option<_>>().ok_or(too_many)?;
                (Some(ends), end)
            }
            (None, CollectiveKind::Broadcast | CollectiveKind::Reduce) => (None, chunks_per_share),
            (None, CollectiveKind::AllToAll) => {
                let blocks = ranks.checked_mul(ranks);
                (None, blocks.and_then(|blocks| blocks.checked_mul(chunks_per_share)).ok_or(too_many)?)
            }
            (None, _) => (None, ranks.checked_mul(chunks_per_share).ok_or(too_many)?),
        };
        match total {
            0 => Err(SharesError::Nothing),
            _ => Ok(Self { kind, root, rank_count, chunks_per_share, ends, total }),
        }
    }

    /// Chunks of the whole vector, ≥ 1; in all-to-all, of all ranks' vectors together.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// *Size* as rates are stated: the full vector of all shares, the message of broadcast and reduce; in all-to-all, the
    /// mean over ranks of what one has to send, its block for itself included: N blocks where all are equal.
    pub fn size(&self) -> ChunkSize {
        let ranks = if self.kind == CollectiveKind::AllToAll { self.rank_count } else { 1 };
        // A divisor of the number of ranks is none of more bits.
        let common = u32::try_from(self.total.gcd(&ranks.into())).unwrap_or(1);
        ChunkSize { chunks: self.total / u64::from(common), divisor: ranks / common }
    }

    /// Number of shares; in all-to-all of blocks.
    const fn unit_count(&self) -> u64 {
        match self.kind {
            CollectiveKind::Broadcast | CollectiveKind::Reduce => 1,
            CollectiveKind::AllToAll => self.rank_count as u64 * self.rank_count as u64,
            _ => self.rank_count as u64,
        }
    }

    /// Chunks of a share or block by its number; none, at the end, for a number that is too great.
    fn unit(&self, unit: u64) -> Range<u64> {
        let start = |unit: u64| match (&self.ends, unit) {
            (None, _) => unit * self.chunks_per_share,
            (Some(_), 0) => 0,
            (Some(ends), _) => ends[usize::try_from(unit - 1).expect("a position in a table")],
        };
        if unit < self.unit_count() { start(unit)..start(unit + 1) } else { self.total..self.total }
    }

    /// The number of the share, in all-to-all of the block, that a chunk below [`total`](Self::total) lies in: blocks by
    /// source, then by destination. O(log blocks) where these are weighted.
    pub(crate) fn unit_of(&self, chunk: u64) -> u64 {
        match &self.ends {
            None => chunk / self.chunks_per_share,
            Some(ends) => ends.partition_point(|&end| end <= chunk) as u64,
        }
    }

    /// Chunks of a rank's share; in all-to-all, of all blocks it sends; in broadcast and reduce, of the message, which
    /// counts as the root's share. Empty for a rank without share.
    pub fn chunks_of(&self, rank: Rank) -> Range<u64> {
        let (index, ranks) = (u64::from(rank.number()), u64::from(self.rank_count));
        if index >= ranks {
            return self.total..self.total;
        }
        match self.kind {
            CollectiveKind::Broadcast | CollectiveKind::Reduce if rank == self.root => 0..self.total,
            CollectiveKind::Broadcast | CollectiveKind::Reduce => 0..0,
            CollectiveKind::AllToAll => self.unit(index * ranks).start..self.unit((index + 1) * ranks).start,
            _ => self.unit(index),
        }
    }

    /// All-to-all: chunks of the block that `source` has for `destination`, both existing ranks. Elsewhere: chunks of
    /// the share of the rank that is not the root, for gather and scatter; of the source's share otherwise.
    pub fn chunks_between(&self, source: Rank, destination: Rank) -> Range<u64> {
        match self.kind {
            CollectiveKind::AllToAll => {
                self.unit(u64::from(source.number()) * u64::from(self.rank_count) + u64::from(destination.number()))
            }
            CollectiveKind::Scatter => self.chunks_of(destination),
            _ => self.chunks_of(source),
        }
    }

    /// The rank whose share a chunk below [`total`](Self::total) belongs to; in all-to-all, the one that sends it; the
    /// root in broadcast and reduce. O(log ranks).
    pub fn share_of(&self, chunk: u64) -> Rank {
        let share = match self.kind {
            CollectiveKind::Broadcast | CollectiveKind::Reduce => return self.root,
            CollectiveKind::AllToAll => self.unit_of(chunk) / u64::from(self.rank_count),
            _ => self.unit_of(chunk),
        };
        Rank::new(u32::try_from(share).expect("a chunk of the vector lies in the share of a rank"))
    }

    /// All-to-all: the rank that a chunk below [`total`](Self::total) is for.
    pub fn destination_of(&self, chunk: u64) -> Rank {
        let destination = self.unit_of(chunk) % u64::from(self.rank_count);
        Rank::new(u32::try_from(destination).expect("a remainder by a number of ranks"))
    }

    /// First chunks of all shares, in order; in all-to-all of all blocks. Shares of weight 0 repeat a number.
    pub fn starts(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.unit_count()).map(|unit| self.unit(unit).start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_proportion(kind: CollectiveKind, weights: &[u64]) -> Result<Shares, SharesError> {
        Shares::in_proportion(Collective::new(kind, None, 3).unwrap(), 3, weights.to_vec())
    }

    #[test]
    fn equal_proportions_are_equal_shares() {
        let lowest = Ok(Shares::Weighted(vec![2, 0, 3]));
        assert_eq!(in_proportion(CollectiveKind::Allgather, &[2, 0, 3]), lowest);
        assert_eq!(in_proportion(CollectiveKind::Gather, &[4_000_000_000, 0, 6_000_000_000]), lowest);
        // Too much to add up as they stand, but not in lowest terms.
        assert_eq!(
            in_proportion(CollectiveKind::Scatter, &[u64::MAX, 0, u64::MAX]),
            Ok(Shares::Weighted(vec![1, 0, 1]))
        );
        for same in [1, 7, u64::MAX] {
            assert_eq!(in_proportion(CollectiveKind::Allreduce, &[same; 3]), Ok(Shares::Equal));
        }
    }

    #[test]
    fn weights_that_mean_nothing_are_refused() {
        let kind = CollectiveKind::Allgather;
        assert_eq!(in_proportion(kind, &[1, 1]), Err(SharesError::Count { found: 2, rank_count: 3 }));
        assert_eq!(in_proportion(kind, &[]), Err(SharesError::Count { found: 0, rank_count: 3 }));
        assert_eq!(in_proportion(kind, &[0; 3]), Err(SharesError::Nothing));
        let too_many = SharesError::TooManyChunks { chunks_per_share: 1, rank_count: 3 };
        assert_eq!(in_proportion(kind, &[u64::MAX, u64::MAX - 1, 1]), Err(too_many));
        for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
            assert_eq!(in_proportion(kind, &[1; 3]), Err(SharesError::NotApplicable { collective: kind }));
        }
        let few = Err(SharesError::BlockCount { found: 3, rank_count: 3, expected: 9 });
        assert_eq!(in_proportion(CollectiveKind::AllToAll, &[1; 3]), few);
    }

    #[test]
    fn blocks_are_in_lowest_terms_too() {
        let kind = CollectiveKind::AllToAll;
        let lowest = Blocks::new(3, vec![0, 2, 0, 3, 0, 0, 0, 0, 5]).unwrap();
        assert_eq!(in_proportion(kind, &[0, 8, 0, 12, 0, 0, 0, 0, 20]), Ok(Shares::Blocks(lowest.clone())));
        assert_eq!(in_proportion(kind, &[7; 9]), Ok(Shares::Equal));
        let layout = ChunkLayout::new(Collective::new(kind, None, 3).unwrap(), 3, 2, &Shares::Blocks(lowest)).unwrap();
        assert_eq!((layout.total(), layout.size()), (20, ChunkSize { chunks: 20, divisor: 3 }));
        let rank = Rank::new;
        assert_eq!([0, 1, 2].map(|source| layout.chunks_of(rank(source))), [0..4, 4..10, 10..20]);
        assert_eq!(layout.chunks_between(rank(0), rank(1)), 0..4);
        assert_eq!(layout.chunks_between(rank(1), rank(0)), 4..10);
        assert_eq!(layout.chunks_between(rank(1), rank(2)), 10..10);
        assert_eq!((layout.share_of(9), layout.destination_of(9)), (rank(1), rank(0)));
        assert_eq!(layout.chunks_between(rank(1), rank(0)).start, 4);
        assert_eq!((layout.share_of(10), layout.destination_of(10)), (rank(2), rank(2)));
        assert_eq!(layout.starts().collect::<Vec<_>>(), [0, 0, 4, 4, 10, 10, 10, 10, 10]);
    }
}
