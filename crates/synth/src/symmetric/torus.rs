//! Tori: rings in several dimensions, found in the links of a network.

mod coordinates;
mod grid;
mod start;
mod twisted;

use canopy_topology::Topology;

pub(crate) use grid::Grid;

/// Most links of a rank: tori of four dimensions.
pub(crate) const HEADINGS_MAX: usize = 8;

/// A torus, which may have lost cables and ranks, or be twisted.
///
/// A side of 2 is one link both ways between two ranks. Two sides of 2 and a side of 4 are the same network: it is the
/// latter where numbers of ranks say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torus {
    /// Values of the coordinates, ≥ 2: ranks along each dimension, if lines are not twisted.
    pub sides: Vec<u32>,
    /// What a step along each dimension adds to the coordinates: 1 to its own, if lines are not twisted.
    pub steps: Vec<Vec<u32>>,
    /// By rank: the number that its coordinates make, the last one lowest.
    pub seats: Vec<u32>,
    /// Bytes per second of the links of each dimension, one way.
    pub rates: Vec<u64>,
}

impl Torus {
    /// Number of ranks if none is lost.
    pub fn seat_count(&self) -> u32 {
        self.sides.iter().product()
    }
}

/// Finds the torus that a network is, or was before cables and ranks were lost, whatever the numbers of its ranks.
///
/// Two neighbours of a rank are on one line if they have no other common neighbour. That says which pairs of links lead
/// on straight, and how long lines are. All other ranks follow from their neighbours: each is at the one place that
/// is next to all of theirs. Where a line ends at another rank of lines through lower dimensions than where it began,
/// the torus is twisted: its ranks are the elements of a sum of cyclic groups, found by the normal form of Smith 1861.
///
/// * **None.** The network has switches, links that a torus lacks, more than 8 links from a rank, or has lost so much
///   that no rank has intact lines in all dimensions, more than a quarter of its ranks, or anything if it is twisted.
/// * **Cost.** O(links · links of a rank).
pub fn torus(topology: &Topology) -> Option<Torus> {
    coordinates::find(topology)
}
