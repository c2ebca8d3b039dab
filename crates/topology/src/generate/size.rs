//! The size of a network before it is built.

use crate::error::TopologyError;
use crate::limits::TopologyLimits;

/// Numbers of ranks, switches and directed links.
///
/// All arithmetic saturates: a count that does not fit 128 bits is over every limit all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) ranks: u128,
    pub(super) switches: u128,
    pub(super) links: u128,
}

impl Size {
    /// Refuses fewer than two ranks, and more nodes or links than allowed.
    pub(super) fn check(self, limits: &TopologyLimits) -> Result<(), TopologyError> {
        let nodes = self.ranks.saturating_add(self.switches);
        for (what, found, limit) in [("nodes", nodes, limits.nodes_max), ("links", self.links, limits.links_max)] {
            if found > limit as u128 {
                return Err(TopologyError::TooLarge { what, found: found.to_string(), limit });
            }
        }
        match usize::try_from(self.ranks) {
            Ok(found @ (0 | 1)) => Err(TopologyError::TooFewRanks { found }),
            _ => Ok(()),
        }
    }
}

/// Product of counts, saturating.
pub(super) fn product(factors: &[usize]) -> u128 {
    factors.iter().fold(1, |product, &factor| product.saturating_mul(factor as u128))
}

/// Sum of counts, saturating.
pub(super) fn sum(terms: &[u128]) -> u128 {
    terms.iter().fold(0, |sum, &term| sum.saturating_add(term))
}
