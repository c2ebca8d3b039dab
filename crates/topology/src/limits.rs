//! How large a topology may be, asked before anything is built for it.

use crate::error::TopologyError;

/// Upper limits on a topology, all inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopologyLimits {
    /// Most nodes, switches included.
    pub nodes_max: usize,
    /// Most directed links, counted before parallels are merged.
    pub links_max: usize,
    /// Most bytes of text or document.
    pub bytes_max: usize,
}

impl TopologyLimits {
    /// 10,000 nodes, 1,000,000 links, 64 MiB of text.
    pub const STANDARD: Self = Self { nodes_max: 10_000, links_max: 1_000_000, bytes_max: 64 << 20 };

    /// Refuses counts over the limits.
    ///
    /// # Errors
    /// [`TopologyError::TooLarge`] names the first limit exceeded.
    pub fn check(&self, nodes: usize, links: usize) -> Result<(), TopologyError> {
        for (what, found, limit) in [("nodes", nodes, self.nodes_max), ("links", links, self.links_max)] {
            if found > limit {
                return Err(TopologyError::TooLarge { what, found: found.to_string(), limit });
            }
        }
        Ok(())
    }
}
