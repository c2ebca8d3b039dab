//! Bytes from each rank to each rank, and their sums. It knows no routes.

use crate::tiers::{RANKS_MAX, Tiers};

/// Most bytes of a matrix in sum.
pub const BYTES_MAX: u64 = 1 << 60;

/// Why a matrix is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum MatrixError {
    #[error("`ranks` is {ranks}; state 1 to {RANKS_MAX}")]
    Ranks { ranks: u32 },
    #[error("`bytes` has {found} entries for {ranks} ranks; state {expected}, row by row")]
    EntryCount { ranks: u32, found: usize, expected: usize },
    #[error("`bytes` adds up to more than {BYTES_MAX}; divide the exchange")]
    TooManyBytes,
}

/// Bytes from each rank to each rank. Those from a rank to itself pass no link and count nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    ranks: usize,
    bytes: Vec<u64>,
}

impl Matrix {
    /// Checks a matrix: row `s` has the bytes that rank `s` sends.
    ///
    /// * **Errors.** [`MatrixError`].
    /// * **Cost.** O(ranks²).
    pub fn new(ranks: u32, bytes: Vec<u64>) -> Result<Self, MatrixError> {
        if ranks == 0 || ranks > RANKS_MAX {
            return Err(MatrixError::Ranks { ranks });
        }
        let count = ranks as usize;
        if bytes.len() != count * count {
            return Err(MatrixError::EntryCount { ranks, found: bytes.len(), expected: count * count });
        }
        let total: u128 = bytes.iter().map(|&entry| u128::from(entry)).sum();
        if total > u128::from(BYTES_MAX) {
            return Err(MatrixError::TooManyBytes);
        }
        Ok(Self { ranks: count, bytes })
    }

    /// Ranks.
    pub const fn ranks(&self) -> usize {
        self.ranks
    }

    /// What a rank sends to each; empty if there is no such rank.
    pub fn row(&self, rank: usize) -> &[u64] {
        self.bytes.get(rank * self.ranks..(rank + 1) * self.ranks).unwrap_or(&[])
    }
}

/// Sums of a matrix on a network with as many ranks, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    /// By rank, to and from others of its box.
    pub(crate) inside_out: Vec<u64>,
    pub(crate) inside_in: Vec<u64>,
    /// By rank, to and from other boxes.
    pub(crate) across_out: Vec<u64>,
    pub(crate) across_in: Vec<u64>,
    /// From box to box, row by row; nothing from a box to itself.
    pub(crate) boxes: Vec<u64>,
}

impl Sums {
    /// Adds up. O(ranks²).
    pub(crate) fn new(tiers: &Tiers, matrix: &Matrix) -> Self {
        let (ranks, size, boxes) = (tiers.ranks(), tiers.box_size(), tiers.boxes());
        let zero = || vec![0_u64; ranks];
        let (mut inside_out, mut inside_in, mut across_out, mut received) = (zero(), zero(), zero(), zero());
        let mut between = vec![0_u64; boxes * boxes];
        for from in 0..ranks {
            let (row, home) = (matrix.row(from), from / size);
            for (total, bytes) in received.iter_mut().zip(row) {
                *total += bytes;
            }
            for (to, bytes) in row.chunks(size).enumerate() {
                let sum: u64 = bytes.iter().sum();
                if to == home {
                    inside_out[from] = sum - row[from];
                    let first = home * size;
                    inside_in[first..first + size].iter_mut().zip(bytes).for_each(|(total, bytes)| *total += bytes);
                    inside_in[from] -= row[from];
                    received[from] -= row[from];
                } else {
                    across_out[from] += sum;
                    between[home * boxes + to] += sum;
                }
            }
        }
        let across_in = received.iter().zip(&inside_in).map(|(all, inside)| all - inside).collect();
        Self { inside_out, inside_in, across_out, across_in, boxes: between }
    }
}

/// The whole part of a number of bytes, within 64 bits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and bytes are positive"
)]
pub(crate) fn whole(bytes: f64) -> u64 {
    bytes as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiers::Fabric;

    #[test]
    fn refusals_name_the_field_and_the_remedy() {
        let text = |ranks, bytes| Matrix::new(ranks, bytes).map_err(|error| error.to_string());
        assert_eq!(text(0, vec![]), Err("`ranks` is 0; state 1 to 4096".to_owned()));
        assert_eq!(text(u32::MAX, vec![]), Err("`ranks` is 4294967295; state 1 to 4096".to_owned()));
        assert_eq!(text(2, vec![1; 3]), Err("`bytes` has 3 entries for 2 ranks; state 4, row by row".to_owned()));
        let much = Err("`bytes` adds up to more than 1152921504606846976; divide the exchange".to_owned());
        assert_eq!(text(2, vec![u64::MAX; 4]), much);
        assert!(text(2, vec![BYTES_MAX / 4; 4]).is_ok());
    }

    #[test]
    fn sums_leave_out_what_stays_with_its_rank() {
        let tiers = Tiers::even(Fabric::Full, 2, 2, 1, 1).unwrap();
        let matrix = Matrix::new(4, (1..=16).collect()).unwrap();
        let sums = Sums::new(&tiers, &matrix);
        assert_eq!(sums.inside_out, [2, 5, 12, 15]);
        assert_eq!(sums.inside_in, [5, 2, 15, 12]);
        assert_eq!(sums.across_out, [7, 15, 19, 27]);
        assert_eq!(sums.across_in, [22, 24, 10, 12]);
        assert_eq!(sums.boxes, [0, 22, 46, 0]);
    }
}
