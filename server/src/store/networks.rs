//! What sources of networks can name: stored topologies and clusters.

use super::clusters::ClusterStore;
use super::topologies::TopologyStore;

/// Stored topologies and clusters. Clones share them.
#[derive(Clone)]
pub(crate) struct StoredNetworks {
    pub(crate) topologies: TopologyStore,
    pub(crate) clusters: ClusterStore,
}
