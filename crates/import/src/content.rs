//! What a file can describe.

use canopy_topology::TopologyDraft;

use crate::fabric::Fabric;
use crate::machine::Machine;
use crate::report::Report;

/// What a file describes.
#[derive(Clone, Debug)]
pub enum Content {
    /// A whole network.
    Network(TopologyDraft, Report),
    /// A machine, with ports that lead out of it.
    Machine(Machine),
    /// What joins machines, by their names.
    Fabric(Fabric),
}
