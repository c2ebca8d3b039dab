//! Racks that stand in rows, and how far they are from each other.

use std::collections::BTreeMap;

use num_integer::Roots as _;

use crate::cost::parameters::Layout;

/// Lengths of cables in centimetres, and how many have each.
pub(crate) type Lengths = BTreeMap<u64, u128>;

impl Layout {
    /// A cable between racks so many places apart in the row and so many rows apart, along the aisles.
    pub(crate) const fn between(&self, places: u64, rows: u64) -> u64 {
        places * self.rack_width_cm + rows * self.rack_depth_cm + self.overhead_cm
    }
}

/// Cables between all pairs of so many racks in a nearly square block, one for each pair.
///
/// Rows are filled one after another, each with as many racks as the root of their number, rounded up. Pairs are counted by how far
/// apart they are in each direction: a column is as high as the full rows or one more, so each count is a sum of two products.
///
/// * **Source.** Besta and Hoefler 2014, section VI-B, for racks in a square and ways along the aisles.
/// * **Cost.** O(racks).
pub(crate) fn all_pairs(racks: u64, layout: &Layout) -> Lengths {
    let mut lengths = Lengths::new();
    let floor = Floor::new(racks);
    for places in 0..floor.columns {
        for rows in 0..=floor.rows {
            let count = floor.pairs(places, rows);
            if count > 0 {
                *lengths.entry(layout.between(places, rows)).or_default() += count;
            }
        }
    }
    lengths
}

/// A nearly square block of racks: so many full rows of so many columns, and what is left over in one more.
struct Floor {
    columns: u64,
    rows: u64,
    left: u64,
}

impl Floor {
    fn new(racks: u64) -> Self {
        let root = racks.sqrt();
        let columns = (root + u64::from(root * root < racks)).max(1);
        Self { columns, rows: racks / columns, left: racks % columns }
    }

    /// Pairs of racks so many columns and rows apart, in either direction.
    ///
    /// Of two columns the left one is at least as high. From the left one downwards to the right one, what counts is the
    /// height of the right one; from the right one downwards, that of the left one.
    fn pairs(&self, places: u64, rows: u64) -> u128 {
        let with = |tall: u64, short: u64| {
            let tall_pairs = u128::from(tall) * u128::from((self.rows + 1).saturating_sub(rows));
            tall_pairs + u128::from(short) * u128::from(self.rows.saturating_sub(rows))
        };
        // Columns that are the right one of a pair, and those that are the left one.
        let right = (self.left.saturating_sub(places), self.columns - places.max(self.left));
        let left = (self.left.min(self.columns - places), (self.columns - places).saturating_sub(self.left));
        match (places, rows) {
            (0, 0) => 0,
            (0, _) | (_, 0) => with(right.0, right.1),
            _ => with(right.0, right.1) + with(left.0, left.1),
        }
    }
}

/// Place in its row and row of each of so many racks.
pub(crate) fn places(racks: u64) -> impl Iterator<Item = (u64, u64)> {
    let columns = Floor::new(racks).columns;
    (0..racks).map(move |rack| (rack % columns, rack / columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_as_if_one_by_one() {
        let layout = Layout { rack_width_cm: 60, rack_depth_cm: 121, inside_rack_cm: 1, overhead_cm: 7, folded_cm: 1 };
        for racks in 0..60 {
            let all: Vec<(u64, u64)> = places(racks).collect();
            let mut expected = Lengths::new();
            for (index, one) in all.iter().enumerate() {
                for other in &all[..index] {
                    let length = layout.between(one.0.abs_diff(other.0), one.1.abs_diff(other.1));
                    *expected.entry(length).or_default() += 1;
                }
            }
            assert_eq!(all_pairs(racks, &layout), expected, "{racks}");
        }
    }
}
