//! Grids: networks whose ids are coordinates and whose links change one of them.

use std::collections::BTreeSet;

use canopy_topology::{NodeIndex, Topology};

use super::{Bend, GAP, Labels, Layout, real};
use crate::svg::Point;

/// Most dimensions that can be told apart on a sheet.
const DIMENSIONS_MAX: usize = 4;
/// How far a step in the third dimension leads to the right and up.
const SLANT: (f64, f64) = (46.0, 40.0);

/// Places a grid: columns, rows, a slanted third dimension, and blocks for the fourth. `None` for what is no grid.
pub(super) fn place(topology: &Topology, labels: &Labels) -> Option<Layout> {
    let coordinates: Vec<Vec<usize>> =
        topology.nodes().iter().map(|node| coordinates(&node.id)).collect::<Option<_>>()?;
    let dimensions = coordinates.first()?.len();
    if !(2..=DIMENSIONS_MAX).contains(&dimensions) || coordinates.iter().any(|place| place.len() != dimensions) {
        return None;
    }
    // Ids that say the same place in different words.
    if coordinates.iter().collect::<BTreeSet<_>>().len() != coordinates.len() {
        return None;
    }
    let differ = |a: NodeIndex, b: NodeIndex| {
        let pairs = coordinates[a.index()].iter().zip(&coordinates[b.index()]);
        pairs.filter(|(x, y)| x != y).count()
    };
    if topology.links().iter().any(|link| differ(link.from, link.to) != 1) {
        return None;
    }
    let extent = |dimension: usize| coordinates.iter().map(|place| place[dimension]).max().map(|last| last + 1);
    let extents: Vec<usize> = (0..dimensions).map(extent).collect::<Option<_>>()?;
    // Coordinates far apart would be a sheet of nothing.
    if extents.iter().product::<usize>() > 2 * coordinates.len() {
        return None;
    }
    // The last coordinate is the fastest: it goes along a row.
    let depth = if dimensions > 2 { extents[dimensions - 3] } else { 1 };
    let shift = (SLANT.0 * real(depth - 1), SLANT.1 * real(depth - 1));
    let pitch = (labels.pitch().max(SLANT.0) + 44.0 + shift.0, 84.0 + shift.1);
    let (columns, rows) = (extents[dimensions - 1], extents[dimensions - 2]);
    let blocks = if dimensions > 3 { extents[0] } else { 1 };
    let block = real(columns) * pitch.0 + 40.0;
    let margin = 50.0;
    let origin = (margin + labels.width / 2.0, margin + shift.1 + GAP);
    let spot = |place: &[usize]| -> Point {
        let at = |back: usize| if back <= dimensions { real(place[dimensions - back]) } else { 0.0 };
        (origin.0 + at(1) * pitch.0 + at(3) * SLANT.0 + at(4) * block, origin.1 + at(2) * pitch.1 - at(3) * SLANT.1)
    };
    let spots = (0_u32..).zip(&coordinates).map(|(node, place)| labels.rank(NodeIndex::new(node), spot(place)));
    let size = (
        2.0 * origin.0 + real(blocks - 1) * block + real(columns - 1) * pitch.0 + shift.0,
        origin.1 + real(rows - 1) * pitch.1 + margin + GAP,
    );
    Some(Layout { size, spots: spots.collect(), bends: vec![Bend::Around; coordinates.len()], frames: Vec::new() })
}

/// `1.2.0`, or one digit for each dimension: `120`.
fn coordinates(id: &str) -> Option<Vec<usize>> {
    let number = |text: &str| text.parse::<u16>().ok().map(usize::from);
    if id.contains('.') {
        id.split('.').map(number).collect()
    } else {
        id.chars().map(|digit| number(digit.encode_utf8(&mut [0; 4]))).collect()
    }
}
