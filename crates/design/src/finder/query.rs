//! Queries, and their errors.

use crate::finder::search::Links;

/// Most nodes of a queried network.
pub const NODES_MAX: u32 = 1 << 14;
/// Most ports of each node.
pub const DEGREE_MAX: u32 = 32;

/// A query for networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    /// Number of nodes, from 2 to [`NODES_MAX`].
    pub nodes: u32,
    /// Ports of each node, from 1 to [`DEGREE_MAX`]: the links that leave it, and those that enter it.
    pub degree: u32,
    /// The kind of links.
    pub links: Links,
}

impl Query {
    /// Refuses numbers out of range.
    ///
    /// # Errors
    /// [`FindError::Nodes`] or [`FindError::Degree`].
    pub fn check(self) -> Result<(), FindError> {
        if !(2..=NODES_MAX).contains(&self.nodes) {
            return Err(FindError::Nodes { found: self.nodes, limit: NODES_MAX });
        }
        if !(1..=DEGREE_MAX).contains(&self.degree) {
            return Err(FindError::Degree { found: self.degree, limit: DEGREE_MAX });
        }
        Ok(())
    }
}

/// Errors of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum FindError {
    #[error("nodes: {found} is out of range; use 2 to {limit}")]
    Nodes { found: u32, limit: u32 },
    #[error("degree: {found} is out of range; use 1 to {limit} ports per node")]
    Degree { found: u32, limit: u32 },
    #[error("stopped before every network was compared")]
    Stopped,
}
