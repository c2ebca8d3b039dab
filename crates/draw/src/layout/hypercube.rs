//! Hypercubes: networks whose ids are numbers and whose links change one bit.

use std::collections::BTreeSet;

use canopy_topology::{NodeIndex, Topology};

use super::{Bend, GAP, Labels, Layout, real};

/// Distance of rows, with room for the arcs between nodes of one row.
const ROW: f64 = 104.0;

/// The numbers of all nodes and the number of dimensions, of at least three. `None` if the network is not a hypercube;
/// some of its nodes may be missing.
pub(crate) fn hypercube_numbers(topology: &Topology) -> Option<(Vec<u32>, u32)> {
    let numbers: Vec<u32> = topology.nodes().iter().map(|node| node.id.parse().ok()).collect::<Option<_>>()?;
    let dimensions = numbers.iter().max()?.checked_ilog2()? + 1;
    let is_cube = (3..=16).contains(&dimensions)
        && numbers.iter().collect::<BTreeSet<_>>().len() == numbers.len()
        && 2 * numbers.len() > 1_usize << dimensions;
    let differ = |from: NodeIndex, to: NodeIndex| (numbers[from.index()] ^ numbers[to.index()]).count_ones();
    let is_cube = is_cube && topology.links().iter().all(|link| differ(link.from, link.to) == 1);
    is_cube.then_some((numbers, dimensions))
}

/// Places a hypercube: half of the bits give the column and the others the row, in the order of a Gray code, so that
/// most links join neighbours. `None` if the network is not a hypercube.
pub(super) fn place(topology: &Topology, labels: &Labels) -> Option<Layout> {
    let (numbers, dimensions) = hypercube_numbers(topology)?;
    let bits = dimensions.div_ceil(2);
    let (columns, rows) = (1_usize << bits, 1_usize << (dimensions - bits));
    let column = labels.pitch() + 46.0;
    let margin = (40.0 + labels.width / 2.0, 50.0 + GAP);
    let spot = |number: u32| {
        let (x, y) = (position(number & ((1 << bits) - 1)), position(number >> bits));
        (margin.0 + real(x) * column, margin.1 + real(y) * ROW)
    };
    let spots = (0_u32..).zip(&numbers).map(|(node, &number)| labels.rank(NodeIndex::new(node), spot(number)));
    let size = (2.0 * margin.0 + real(columns - 1) * column, 2.0 * margin.1 + real(rows - 1) * ROW);
    Some(Layout { size, spots: spots.collect(), bends: vec![Bend::Around; numbers.len()], frames: Vec::new() })
}

/// Where a number stands in a Gray code, in which neighbours differ in one bit.
fn position(number: u32) -> usize {
    let mut position = number;
    for shift in [1, 2, 4, 8] {
        position ^= position >> shift;
    }
    position as usize
}

#[cfg(test)]
mod tests {
    use super::position;

    #[test]
    fn neighbours_differ_in_one_bit() {
        let mut numbers: Vec<u32> = (0..16).collect();
        numbers.sort_by_key(|&number| position(number));
        assert_eq!(&numbers[..5], [0, 1, 3, 2, 6]);
        assert!(numbers.windows(2).all(|pair| (pair[0] ^ pair[1]).count_ones() == 1));
    }
}
