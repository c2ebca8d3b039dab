//! Routes in whole units of bytes: what files of chunks need, in which each chunk takes one route.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use crate::route::{Hop, Part, Route};

/// Units of a pair's bytes that take one route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitPart {
    /// The ranks that have them, one after the other: the sender, those that pass them on, the receiver.
    pub ranks: Vec<u32>,
    /// The first of them, counted from the first byte of the pair.
    pub first: u64,
    /// How many; at least 1.
    pub count: u64,
}

/// Divides parts, which take the bytes of their pairs in order, at whole units.
///
/// A unit takes the route of its first byte. So the last one of a pair may be filled in part, a part has less than one
/// unit more than its bytes, and a part whose units all belong to its neighbours is left out. Where parts have more
/// bytes than 64 bits count, the rest of them is left out, too: a check of the units finds it.
///
/// O(parts log parts).
pub fn in_units(parts: &[Part], unit_bytes: NonZeroU64) -> Vec<UnitPart> {
    let mut bytes_so_far: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    let mut found = Vec::with_capacity(parts.len());
    for part in parts {
        let bytes = bytes_so_far.entry((part.from, part.to)).or_default();
        let first = bytes.div_ceil(unit_bytes.get());
        *bytes = bytes.saturating_add(part.bytes);
        let count = bytes.div_ceil(unit_bytes.get()) - first;
        if count > 0 {
            found.push(UnitPart { ranks: ranks_of(part), first, count });
        }
    }
    found
}

/// The ranks that the bytes of a part come to.
fn ranks_of(part: &Part) -> Vec<u32> {
    let mut ranks = match &part.route {
        Route::Inside => vec![part.from, part.to],
        &Route::Across { leaves, enters } => vec![part.from, leaves, enters, part.to],
        Route::Relayed(hops) => {
            let next = |hop: &Hop| match *hop {
                Hop::Inside(rank) | Hop::Across(rank) => rank,
            };
            std::iter::once(part.from).chain(hops.iter().map(next)).collect()
        }
    };
    ranks.dedup();
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(from: u32, to: u32, ends: (u32, u32), bytes: u64) -> Part {
        Part { from, to, route: Route::Across { leaves: ends.0, enters: ends.1 }, bytes }
    }

    fn units(parts: &[Part], unit: u64) -> Vec<(Vec<u32>, u64, u64)> {
        let found = in_units(parts, NonZeroU64::new(unit).unwrap());
        found.into_iter().map(|part| (part.ranks, part.first, part.count)).collect()
    }

    #[test]
    fn a_unit_takes_the_route_of_its_first_byte() {
        let parts = [part(0, 3, (0, 2), 25), part(0, 3, (1, 3), 4), part(0, 3, (0, 3), 12)];
        // Bytes 0..25, 25..29 and 29..41: units begin at 0, 10, 20, 30 and 40.
        let expected = [(vec![0, 2, 3], 0, 3), (vec![0, 3], 3, 2)];
        assert_eq!(units(&parts, 10), expected);
        assert_eq!(units(&parts, 1), [(vec![0, 2, 3], 0, 25), (vec![0, 1, 3], 25, 4), (vec![0, 3], 29, 12)]);
        assert_eq!(units(&parts, u64::MAX), [(vec![0, 2, 3], 0, 1)]);
    }

    #[test]
    fn pairs_are_counted_for_themselves() {
        let inside = Part { from: 0, to: 1, route: Route::Inside, bytes: 7 };
        let parts = [inside.clone(), part(2, 1, (3, 0), 5), inside];
        assert_eq!(units(&parts, 7), [(vec![0, 1], 0, 1), (vec![2, 3, 0, 1], 0, 1), (vec![0, 1], 1, 1)]);
    }

    #[test]
    fn parts_have_less_than_a_unit_more_than_their_bytes() {
        for unit in 1..40_u64 {
            let parts: Vec<Part> =
                (0..30).map(|number| part(100, 200, (number, 150), u64::from(number) * 7 % 23 + 1)).collect();
            let found = units(&parts, unit);
            let all: u64 = parts.iter().map(|part| part.bytes).sum();
            let mut next = 0;
            for (ranks, first, count) in found {
                assert_eq!(first, next, "{unit}");
                next += count;
                let part = &parts[ranks[1] as usize];
                assert!(count * unit < part.bytes + unit, "{unit} {part:?}");
            }
            assert_eq!(next, all.div_ceil(unit));
        }
    }

    #[test]
    fn bytes_that_64_bits_do_not_count_are_left_out() {
        let huge = part(0, 2, (0, 2), u64::MAX);
        assert_eq!(units(&[huge.clone(), huge], 1), [(vec![0, 2], 0, u64::MAX)]);
    }
}
