//! Partners at distances 1, −1, 3, −5, 11 …: the sums of powers of −2.
//!
//! These are a third shorter than the powers of two of recursive doubling. [`Bine`](crate::BINE) and
//! [`Swing`](crate::SWING) exchange with them.

use canopy_synth::SteppedError;

/// The partner of a place on a ring of `extent` places, a power of two, at a level from 0 on: even places go up the
/// ring by the sum of the powers of −2 to that of the level, and odd ones down by it.
///
/// Partners have each other. O(1).
pub(crate) fn partner(place: u32, level: u32, extent: u32) -> u32 {
    let sum = (1 - (-2_i64).pow(level + 1)) / 3;
    let signed = if place.is_multiple_of(2) { sum } else { -sum };
    let found = (i64::from(place) + signed).rem_euclid(i64::from(extent));
    u32::try_from(found).expect("less than the extent")
}

/// Ranks that the data of each of `count` ranks still reaches before each exchange, the rank itself first.
///
/// Shape: by exchange, one more for after the last, then by rank. `partners` gives the partner of a rank in an exchange.
pub(crate) fn reached(count: u32, exchanges: u32, partners: impl Fn(u32, u32) -> u32) -> Vec<Vec<Vec<u32>>> {
    let mut levels: Vec<Vec<Vec<u32>>> = vec![(0..count).map(|rank| vec![rank]).collect()];
    for exchange in (0..exchanges).rev() {
        let after = &levels[levels.len() - 1];
        let both = |rank: u32| {
            let other = partners(rank, exchange);
            [after[rank as usize].as_slice(), after[other as usize].as_slice()].concat()
        };
        let before = (0..count).map(both).collect();
        levels.push(before);
    }
    levels.reverse();
    levels
}

/// Refuses a number of ranks that is no power of two.
pub(crate) const fn require_power_of_two(name: &'static str, ranks: u32) -> Result<(), SteppedError> {
    if ranks.is_power_of_two() { Ok(()) } else { Err(SteppedError::NoPowerOfTwo { name, ranks }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_sums_of_powers_of_minus_two() {
        let distances: Vec<u32> = (0..5).map(|level| partner(0, level, 1 << 20)).collect();
        assert_eq!(distances, [1, (1 << 20) - 1, 3, (1 << 20) - 5, 11]);
    }

    /// After all exchanges everyone is reached once, and partners have each other.
    #[test]
    fn everyone_is_reached_once() {
        for exchanges in 0..11 {
            let count = 1 << exchanges;
            let levels = reached(count, exchanges, |rank, level| partner(rank, level, count));
            for mut all in levels[0].clone() {
                all.sort_unstable();
                assert_eq!(all, (0..count).collect::<Vec<u32>>(), "{count} ranks");
            }
            for (rank, level) in (0..count).flat_map(|rank| (0..exchanges).map(move |level| (rank, level))) {
                assert_eq!(partner(partner(rank, level, count), level, count), rank);
            }
        }
    }
}
