//! Why a cluster is refused, or has no such part.

use canopy_import::ComposeError;
use canopy_planner::chain;
use canopy_topology::HostsError;
use canopy_wire::ClusterError;

use crate::store::clusters::{ClusterStoreError, FOLDER};

/// Why a cluster is refused, or has no such part.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterFailure {
    #[error("cluster `{name}` is not stored; store it with `canopy network cluster put`, or list the clusters")]
    Unknown { name: String },
    #[error("`{name}` does not name a cluster; use {FOLDER} and 1 to 63 letters, digits and `- _ .`")]
    Name { name: String },
    #[error(transparent)]
    Description(#[from] ClusterError),
    #[error("description: {}", chain(_0))]
    Machines(ComposeError),
    #[error("nodes: {}", chain(_0))]
    Part(ComposeError),
    #[error("nodes: {_0}")]
    Hosts(HostsError),
    #[error(transparent)]
    Store(#[from] ClusterStoreError),
}
