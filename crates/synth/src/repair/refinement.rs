//! Into how many smaller chunks a chunk is divided, so that loads can be balanced, and how they become larger again.

/// Chunks on a busy link from which on one more or less makes no difference.
const CHUNKS_ENOUGH: u64 = 240;

/// Numbers that many others divide.
const FACTORS: [u64; 8] = [1, 2, 4, 6, 12, 24, 60, 120];

/// By how many each of `chunks` is divided where a busy link carries so many; that makes at most `chunks_max`, if they are not
/// more already.
pub(super) fn factor(chunks_where_busy: u64, chunks: u64, chunks_max: u64) -> u64 {
    let is_enough = |factor: &u64| chunks_where_busy.saturating_mul(*factor) >= CHUNKS_ENOUGH;
    let enough = FACTORS.into_iter().find(is_enough).unwrap_or(FACTORS[FACTORS.len() - 1]);
    let is_within =
        |factor: &u64| *factor <= enough && chunks.checked_mul(*factor).is_some_and(|all| all <= chunks_max);
    FACTORS.into_iter().rev().find(is_within).unwrap_or(1)
}

/// The greatest number that divides all.
pub(super) fn common_divisor(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, num_integer::gcd).max(1)
}
