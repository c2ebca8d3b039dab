//! Variants of a topology: without latencies, or with boxes.

use std::sync::Arc;

use crate::model::{Link, Topology};
use crate::units::{Capacity, Latency};

impl Topology {
    /// The network without latencies; parallel links that differ only in latency become one.
    ///
    /// * **None.** The capacities of parallels do not add up within 64 bits. **Cost.** O(nodes + links).
    pub fn without_latencies(&self) -> Option<Self> {
        let mut links: Vec<Link> = Vec::with_capacity(self.links().len());
        // Sorted by both ends first.
        for &link in self.links() {
            match links.last_mut().filter(|last| (last.from, last.to) == (link.from, link.to)) {
                None => links.push(Link { latency: Latency::default(), ..link }),
                Some(last) => {
                    let sum = last.capacity.bytes_per_sec().checked_add(link.capacity.bytes_per_sec());
                    last.capacity = sum.and_then(Capacity::from_bytes_per_sec)?;
                }
            }
        }
        Some(Self::assemble(self.names(), self.shared_nodes(), links, self.rank_count()))
    }

    /// The network with these boxes, by node, instead of its own. `None` unless there is one entry per node. O(nodes).
    #[must_use]
    pub fn with_boxes(mut self, boxes: Vec<Option<String>>) -> Option<Self> {
        if boxes.len() != self.nodes().len() {
            return None;
        }
        for (node, box_name) in self.nodes_mut().iter_mut().zip(boxes) {
            Arc::make_mut(node).attributes.box_name = box_name;
        }
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use crate::draft::TopologyDraft;
    use crate::generate::generate;
    use crate::limits::TopologyLimits;
    use crate::units::{Capacity, Latency};

    #[test]
    fn links_that_differ_in_latency_alone_become_one() {
        let mut draft = TopologyDraft::default();
        ["a", "b"].into_iter().for_each(|id| draft.add_compute(id));
        for (rate, nanos) in [(3, 700), (4, 0), (5, 100)] {
            let capacity = Capacity::from_bytes_per_sec(rate).unwrap();
            draft.add_link("a", "b", capacity, Latency::from_nanos(nanos));
        }
        draft.add_link("b", "a", Capacity::from_bytes_per_sec(u64::MAX).unwrap(), Latency::from_nanos(1));
        let topology = draft.clone().build(&TopologyLimits::STANDARD).unwrap();
        assert_eq!(topology.links().len(), 4);
        let plain = topology.without_latencies().unwrap();
        let rates: Vec<u64> = plain.links().iter().map(|link| link.capacity.bytes_per_sec()).collect();
        assert_eq!(rates, [12, u64::MAX]);
        assert!(plain.links().iter().all(|link| link.latency == Latency::default()));
        assert_eq!(plain.without_latencies().as_ref(), Some(&plain));
        draft.add_link("b", "a", Capacity::from_bytes_per_sec(1).unwrap(), Latency::default());
        assert_eq!(draft.build(&TopologyLimits::STANDARD).unwrap().without_latencies(), None);
    }

    #[test]
    fn boxes_are_all_that_changes() {
        let ring = generate("ring:4", &TopologyLimits::STANDARD).unwrap();
        let boxes = ["x", "x", "y", "y"].map(|name| Some(name.to_owned()));
        let boxed = ring.clone().with_boxes(boxes.to_vec()).unwrap();
        assert_eq!(boxed.nodes().iter().map(|node| node.attributes.box_name.clone()).collect::<Vec<_>>(), boxes);
        assert_eq!(boxed.with_boxes(vec![None; 4]), Some(ring.clone()));
        assert_eq!(ring.with_boxes(vec![None; 3]), None);
    }
}
