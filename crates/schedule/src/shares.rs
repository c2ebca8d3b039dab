//! How large the ranks' shares are, and how that numbers the chunks.

use std::ops::Range;

use canopy_topology::Rank;

use crate::collective::{Collective, CollectiveKind};

/// Sizes of the ranks' shares, relative to each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Shares {
    /// Every share has the same size.
    #[default]
    Equal,
    /// The share of rank `r` has size in proportion to the `r`-th weight, which may be 0: so many times
    /// `chunks_per_share` chunks. One weight for each rank, not all 0.
    ///
    /// For allgather, reduce-scatter, allreduce, gather and scatter. Broadcast and reduce have one message and
    /// all-to-all has blocks of one size, so weights mean nothing there and are refused.
    Weighted(Vec<u64>),
}

impl Shares {
    /// Shares in proportion to weights, in lowest terms: weights without a common factor, and equal ones as
    /// [`Shares::Equal`]. So equal proportions are equal shares.
    ///
    /// # Errors
    /// Weights that do not fit the collective or the ranks, are all 0, or add up to more than 2⁶⁴−1 even in lowest
    /// terms. O(weights · log weight).
    pub fn in_proportion(collective: Collective, rank_count: u32, mut weights: Vec<u64>) -> Result<Self, SharesError> {
        let divisor = weights.iter().copied().fold(0, common_divisor).max(1);
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
            Self::Weighted(weights) => weights.iter().map(|&weight| u128::from(weight)).sum(),
        }
    }

    /// Weight of a rank's share: 1 for equal shares, 0 for a rank without one.
    pub fn weight(&self, rank: Rank) -> u64 {
        match self {
            Self::Equal => 1,
            Self::Weighted(weights) => weights.get(rank.index()).copied().unwrap_or(0),
        }
    }
}

/// Greatest common divisor; 0 divides nothing and is divided by everything. Euclid's algorithm.
const fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Why weights are no shares of a collective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SharesError {
    #[error("shares have weights, but {collective} has no shares to weigh; leave them out")]
    NotApplicable { collective: CollectiveKind },
    #[error("shares have {found} weights for {rank_count} ranks; give one for each")]
    Count { found: usize, rank_count: u32 },
    #[error("all weights of shares are 0; at least one rank needs a share")]
    Nothing,
    #[error("chunks_per_share is 0; a share needs at least one chunk")]
    NoChunks,
    #[error(
        "{rank_count} shares of {chunks_per_share} chunks, times their weights, are more than 18446744073709551615"
    )]
    TooManyChunks { chunks_per_share: u64, rank_count: u32 },
}

/// Which chunk belongs to which share, as [`TransferGraph`](crate::TransferGraph) numbers them.
///
/// 8 bytes per rank for weighted shares, else nothing but the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkLayout {
    kind: CollectiveKind,
    root: Rank,
    rank_count: u32,
    chunks_per_share: u64,
    /// Where each share ends, for weighted shares.
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
        let (ends, total) = match (shares, kind) {
            (Shares::Equal, CollectiveKind::Broadcast | CollectiveKind::Reduce) => (None, chunks_per_share),
            (Shares::Equal, CollectiveKind::AllToAll) => {
                let blocks = ranks.checked_mul(ranks);
                (None, blocks.and_then(|blocks| blocks.checked_mul(chunks_per_share)).ok_or(too_many)?)
            }
            (Shares::Equal, _) => (None, ranks.checked_mul(chunks_per_share).ok_or(too_many)?),
            (Shares::Weighted(_), CollectiveKind::Broadcast | CollectiveKind::Reduce | CollectiveKind::AllToAll) => {
                return Err(SharesError::NotApplicable { collective: kind });
            }
            (Shares::Weighted(weights), _) => {
                if weights.len() != rank_count as usize {
                    return Err(SharesError::Count { found: weights.len(), rank_count });
                }
                let mut end = 0_u64;
                let mut add = |&weight: &u64| {
                    end = chunks_per_share.checked_mul(weight).and_then(|chunks| end.checked_add(chunks))?;
                    Some(end)
                };
                let ends: Vec<u64> = weights.iter().map(&mut add).collect::<Option<_>>().ok_or(too_many)?;
                (Some(ends), end)
            }
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

    /// Chunks of a rank's share; in all-to-all, of all blocks it sends; in broadcast and reduce, of the message, which
    /// counts as the root's share. Empty for a rank without share.
    pub fn chunks_of(&self, rank: Rank) -> Range<u64> {
        let index = u64::from(rank.number());
        if rank.number() >= self.rank_count {
            return self.total..self.total;
        }
        match (self.kind, &self.ends) {
            (CollectiveKind::Broadcast | CollectiveKind::Reduce, _) if rank == self.root => 0..self.total,
            (CollectiveKind::Broadcast | CollectiveKind::Reduce, _) => 0..0,
            (_, Some(ends)) => match rank.index() {
                0 => 0..ends[0],
                index => ends[index - 1]..ends[index],
            },
            (CollectiveKind::AllToAll, None) => {
                let row = self.chunks_per_share * u64::from(self.rank_count);
                index * row..(index + 1) * row
            }
            (_, None) => index * self.chunks_per_share..(index + 1) * self.chunks_per_share,
        }
    }

    /// All-to-all: chunks of the block that `source` has for `destination`, both existing ranks. Elsewhere: chunks of
    /// the share of the rank that is not the root, for gather and scatter; of the source's share otherwise.
    pub fn chunks_between(&self, source: Rank, destination: Rank) -> Range<u64> {
        match self.kind {
            CollectiveKind::AllToAll => {
                let block = u64::from(source.number()) * u64::from(self.rank_count) + u64::from(destination.number());
                block * self.chunks_per_share..(block + 1) * self.chunks_per_share
            }
            CollectiveKind::Scatter => self.chunks_of(destination),
            _ => self.chunks_of(source),
        }
    }

    /// The rank whose share a chunk below [`total`](Self::total) belongs to; in all-to-all, the one that sends it; the
    /// root in broadcast and reduce. O(log ranks).
    pub fn share_of(&self, chunk: u64) -> Rank {
        let share = match (self.kind, &self.ends) {
            (CollectiveKind::Broadcast | CollectiveKind::Reduce, _) => return self.root,
            (_, Some(ends)) => ends.partition_point(|&end| end <= chunk) as u64,
            (CollectiveKind::AllToAll, None) => chunk / self.chunks_per_share / u64::from(self.rank_count),
            (_, None) => chunk / self.chunks_per_share,
        };
        Rank::new(u32::try_from(share).expect("a chunk of the vector lies in the share of a rank"))
    }

    /// All-to-all: the rank that a chunk below [`total`](Self::total) is for.
    pub fn destination_of(&self, chunk: u64) -> Rank {
        let destination = chunk / self.chunks_per_share % u64::from(self.rank_count);
        Rank::new(u32::try_from(destination).expect("a remainder by a number of ranks"))
    }

    /// First chunk of the share, in all-to-all of the block, that a chunk below [`total`](Self::total) lies in.
    pub(crate) fn unit_start(&self, chunk: u64) -> u64 {
        let share = self.share_of(chunk);
        match self.kind {
            CollectiveKind::AllToAll => self.chunks_between(share, self.destination_of(chunk)).start,
            _ => self.chunks_of(share).start,
        }
    }

    /// Whether a chunk below [`total`](Self::total) is the first of a share, in all-to-all of a block.
    pub(crate) fn is_start(&self, chunk: u64) -> bool {
        self.unit_start(chunk) == chunk
    }

    /// First chunks of all shares, in order; in all-to-all of all blocks. Shares of weight 0 repeat a number.
    pub fn starts(&self) -> impl Iterator<Item = u64> + '_ {
        let units = match self.kind {
            CollectiveKind::Broadcast | CollectiveKind::Reduce => 1,
            CollectiveKind::AllToAll => u64::from(self.rank_count) * u64::from(self.rank_count),
            _ => u64::from(self.rank_count),
        };
        (0..units).map(move |unit| match &self.ends {
            None => unit * self.chunks_per_share,
            Some(_) => self.chunks_of(Rank::new(u32::try_from(unit).expect("one share per rank"))).start,
        })
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
        for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce, CollectiveKind::AllToAll] {
            assert_eq!(in_proportion(kind, &[1; 3]), Err(SharesError::NotApplicable { collective: kind }));
        }
    }
}
