//! Capacities that are nearly multiples of a grain, as two thirds of a rate are that is no multiple of three.

/// Most that a capacity loses, as a part of it.
pub(super) const LOST_MOST: f64 = 1.0 / LOST_PARTS as f64;
const LOST_PARTS: u128 = 1 << 20;
/// Most grains of the greatest capacity.
const GRAINS_MOST: u128 = 1024;
/// Most different capacities.
const KINDS_MOST: usize = 64;

/// The greatest grain of which all capacities are multiples but for what they may lose; `None` if there is none, or they are
/// multiples already.
///
/// O(capacities + kinds · [`GRAINS_MOST`]).
pub(super) fn of(capacities: &[u128]) -> Option<u128> {
    let mut kinds: Vec<u128> = Vec::new();
    for &capacity in capacities.iter().filter(|&&capacity| capacity > 0) {
        if let Err(place) = kinds.binary_search(&capacity) {
            if kinds.len() == KINDS_MOST {
                return None;
            }
            kinds.insert(place, capacity);
        }
    }
    let most = *kinds.last()?;
    let fits = |grain: &u128| *grain > 1 && kinds.iter().all(|&capacity| capacity % grain <= capacity / LOST_PARTS);
    let grain = (1..=GRAINS_MOST).map(|grains| most / grains).find(fits)?;
    kinds.iter().any(|capacity| !capacity.is_multiple_of(grain)).then_some(grain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirds_of_what_is_no_multiple_of_three_are_grains() {
        assert_eq!(of(&[25_000_000_000, 16_666_666_666, 0]), Some(8_333_333_333));
        assert_eq!(of(&[25_000_000_000, 22_500_000_000, 8_333_333_333]), Some(25_000_000_000 / 30));
        // Multiples, too few digits, and what is no part.
        assert_eq!(of(&[25, 50]), None);
        assert_eq!(of(&[3, 2]), None);
        assert_eq!(of(&[25_000_000_000, 13_371_337_133]), None);
        assert_eq!(of(&[]), None);
    }
}
