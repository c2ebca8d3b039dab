//! What Kubernetes knows of where its nodes are: labels of nodes, levels of Kueue, and models of Topograph.
//!
//! All of them are trees without rates. Source: kubernetes-sigs/kueue `apis/kueue/v1beta2/topology_types.go`,
//! NVIDIA/topograph `docs/reference/node-labels-and-annotations.md` and `tests/models`.

mod hypernodes;
mod labels;
mod levels;
mod topograph;
mod tree;

pub(crate) use labels::{begins as begins_labels, read as read_labels};
pub(crate) use topograph::{begins as begins_topograph, read as read_topograph};

#[cfg(test)]
mod tests;
