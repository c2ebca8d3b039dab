//! The same network with other rates and latencies.

use crate::draft::TopologyDraft;
use crate::error::TopologyError;
use crate::limits::TopologyLimits;
use crate::model::{Link, Topology};
use crate::units::{Capacity, Latency};

impl Topology {
    /// The same nodes and links with other rates and latencies, by link; links without a rate are left out.
    /// O(links log links).
    ///
    /// # Errors
    /// Rates whose sum is too large.
    pub fn remeasured(&self, mut of: impl FnMut(&Link) -> (Option<Capacity>, Latency)) -> Result<Self, TopologyError> {
        let mut draft = TopologyDraft::like(self);
        for node in self.nodes() {
            draft.add_node(node.id.clone(), node.kind, node.attributes.clone());
        }
        for link in self.links() {
            let (capacity, latency) = of(link);
            let Some(capacity) = capacity else { continue };
            draft.add_link(self.node(link.from).id.clone(), self.node(link.to).id.clone(), capacity, latency);
        }
        // The result is no larger than the topology it comes from, whose limits are not known here.
        draft.build(&TopologyLimits::UNLIMITED)
    }
}
