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
    /// 200,000 nodes, 2,000,000 links, 64 MiB of text: some 131,072 ranks with all their switches.
    pub const STANDARD: Self = Self { nodes_max: 200_000, links_max: 2_000_000, bytes_max: 64 << 20 };

    /// Most nodes and links of what is searched for more than its parts: by work that grows faster than they do.
    pub const SEARCHED: Self = Self { nodes_max: 10_000, links_max: 1_000_000, bytes_max: usize::MAX };

    /// None: for what is made of a topology that is within its limits.
    pub const UNLIMITED: Self = Self { nodes_max: usize::MAX, links_max: usize::MAX, bytes_max: usize::MAX };

    /// These limits, and [`TopologyLimits::SEARCHED`] where those are lower.
    #[must_use]
    pub fn searched(self) -> Self {
        Self {
            nodes_max: self.nodes_max.min(Self::SEARCHED.nodes_max),
            links_max: self.links_max.min(Self::SEARCHED.links_max),
            ..self
        }
    }

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
