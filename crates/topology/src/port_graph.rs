//! The ports of a network without switches.

use canopy_direct::Digraph;

use crate::units::Capacity;

/// A network without switches as a graph: nodes are ranks, and an edge is a port of its tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Parallel links are parallel edges, and a port that leads back to its own rank is a loop.
    pub graph: Digraph,
    /// Rate of each port; `None` if ports differ, in which case every link is an edge.
    pub rate: Option<Capacity>,
}
