//! What is looked for, and what cannot be.

use crate::search::Links;

/// Most nodes of a network that is looked for.
pub const NODES_MAX: u32 = 1 << 14;
/// Most ports of each.
pub const DEGREE_MAX: u32 = 32;

/// What networks are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    /// Number of nodes, from 2 to [`NODES_MAX`].
    pub nodes: u32,
    /// Ports of each, from 1 to [`DEGREE_MAX`]: so many links leave it, and so many enter it.
    pub degree: u32,
    /// Which links they may have.
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

/// Why nothing was looked for, or not to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum FindError {
    #[error("nodes: {found} is not from 2 to {limit}; ask for that many nodes")]
    Nodes { found: u32, limit: u32 },
    #[error("degree: {found} is not from 1 to {limit}; ask for that many ports per node")]
    Degree { found: u32, limit: u32 },
    #[error("stopped before all networks were compared")]
    Stopped,
}
