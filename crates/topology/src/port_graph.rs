//! What the ports of a network of ranks alone are.

use canopy_direct::Digraph;

use crate::units::Capacity;

/// A network of ranks alone as a graph: nodes are ranks, an edge is a port of its tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Parallel links are parallel edges, and a port that leads back to its own rank is an edge that does.
    pub graph: Digraph,
    /// Rate of each port; `None` if there is no common one, and every link is an edge.
    pub rate: Option<Capacity>,
}
