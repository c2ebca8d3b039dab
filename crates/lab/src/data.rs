//! The words that ranks send, by their place in the vector: known to every rank, so each can check its own result.

/// Word `index` of the vector of all ranks; of a sum, what rank 0 adds. Rank `r` adds `r + 1` times as much, so the sum
/// over `n` ranks is `n(n + 1)/2` times this, all modulo 2³².
pub const fn value(index: u64) -> u32 {
    // The finalizer of MurmurHash3: neighbours differ in every bit.
    let mut word = index ^ (index >> 33);
    word = word.wrapping_mul(0xff51_afd7_ed55_8ccd);
    word ^= word >> 33;
    word = word.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
    let low = (word ^ (word >> 33)) as u32;
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_differ_by_their_places() {
        let words: std::collections::BTreeSet<u32> = (0..10_000).map(value).collect();
        assert!(words.len() > 9_990);
    }
}
