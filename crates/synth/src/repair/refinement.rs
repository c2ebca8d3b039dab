//! Into how many smaller chunks a chunk is divided, so that loads can be balanced, and how they become larger again.

/// Chunks on a busy link from which on one more or less makes no difference.
const CHUNKS_ENOUGH: u64 = 240;

/// Numbers that many others divide.
const FACTORS: [u64; 8] = [1, 2, 4, 6, 12, 24, 60, 120];

/// By how many a chunk is divided where a busy link carries so many.
pub(super) fn factor(chunks_where_busy: u64) -> u64 {
    let is_enough = |factor: &u64| chunks_where_busy.saturating_mul(*factor) >= CHUNKS_ENOUGH;
    FACTORS.into_iter().find(is_enough).unwrap_or(FACTORS[FACTORS.len() - 1])
}

/// The greatest number that divides all.
pub(super) fn common_divisor(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, num_integer::gcd).max(1)
}
