//! The elements of a network that break as a whole, by kind.

use std::collections::BTreeMap;

use crate::fault::Fault;
use crate::fault_kind::FaultKind;
use crate::index::{NodeIndex, Rank};
use crate::model::{NodeKind, Topology};
use crate::placement::same_host;

/// What breaks as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    /// Nodes with all their links, ascending.
    Nodes(Vec<NodeIndex>),
    /// All parallel links between two nodes.
    Link {
        /// Where they start.
        from: NodeIndex,
        /// Where they end.
        to: NodeIndex,
        /// Whether there are links of the opposite direction, which break too.
        both_ways: bool,
    },
}

impl Topology {
    /// The elements of a kind, in the order of the topology: links once for both directions, NICs by rank and switch.
    ///
    /// A *box* is a machine: a host, or where no node names one, a box. A link is *inside* if both ends are on one
    /// machine; on a network without machines all links are outside.
    ///
    /// O((nodes + links) · log nodes).
    pub fn elements(&self, kind: FaultKind) -> Vec<Element> {
        let one = |node| Element::Nodes(vec![node]);
        match kind {
            FaultKind::Boxes => self.machines().into_iter().map(Element::Nodes).collect(),
            FaultKind::Switches => self.switches().map(one).collect(),
            FaultKind::Gpus => self.ranks().map(Rank::node).map(one).collect(),
            FaultKind::Nics => {
                let to_switch = |(from, to): &(NodeIndex, NodeIndex)| {
                    self.rank_of(*from).is_some() && self.is_switch(*to) && !self.share_machine(*from, *to)
                };
                self.directed_pairs().filter(to_switch).map(|pair| self.link_element(pair)).collect()
            }
            FaultKind::LinksInside => self.links_where(|from, to| self.share_machine(from, to)),
            FaultKind::LinksOutside => self.links_where(|from, to| !self.share_machine(from, to)),
            FaultKind::Links => self.links_where(|_, _| true),
        }
    }

    /// The faults of elements of which this fraction is left; of `None`, nothing is. Slow nodes have slow links, a link
    /// between two of them once.
    ///
    /// O((nodes + links) · log links) at most.
    pub fn faults_of(&self, elements: &[Element], left: Option<(u64, u64)>) -> Vec<Fault> {
        let id = |node: NodeIndex| self.node(node).id.clone();
        let (mut faults, mut slow_nodes) = (Vec::new(), Vec::new());
        for element in elements {
            match (element, left) {
                (Element::Nodes(nodes), None) => faults.extend(nodes.iter().map(|&node| Fault::Node { id: id(node) })),
                (Element::Nodes(nodes), Some(_)) => slow_nodes.extend(nodes),
                (link, _) => faults.extend(self.link_fault(link, left)),
            }
        }
        faults.extend(self.links_at(&slow_nodes).iter().filter_map(|link| self.link_fault(link, left)));
        faults
    }

    /// The fault of a link; `None` for nodes.
    fn link_fault(&self, element: &Element, left: Option<(u64, u64)>) -> Option<Fault> {
        let &Element::Link { from, to, both_ways } = element else { return None };
        let (from, to) = (self.node(from).id.clone(), self.node(to).id.clone());
        Some(match left {
            None => Fault::Link { from, to, both_ways },
            Some((numerator, denominator)) => Fault::Degrade { from, to, both_ways, numerator, denominator },
        })
    }

    /// Links that start or end at any of these nodes. O(nodes + links · log links).
    pub(crate) fn links_at(&self, nodes: &[NodeIndex]) -> Vec<Element> {
        if nodes.is_empty() {
            return Vec::new();
        }
        let mut is_meant = vec![false; self.nodes().len()];
        nodes.iter().for_each(|node| is_meant[node.index()] = true);
        self.links_where(|from, to| is_meant[from.index()] || is_meant[to.index()])
    }

    /// Whether two nodes are of one host, or where not both name one, of one box.
    pub fn share_machine(&self, one: NodeIndex, other: NodeIndex) -> bool {
        let (one, other) = (&self.node(one).attributes, &self.node(other).attributes);
        match (&one.host, &other.host) {
            (Some(one), Some(other)) => same_host(one, other),
            _ => one.box_name.is_some() && one.box_name == other.box_name,
        }
    }

    /// Nodes of each host, or of each box where no node names a host, by their first node.
    fn machines(&self) -> Vec<Vec<NodeIndex>> {
        let has_hosts = self.nodes().iter().any(|node| node.attributes.host.is_some());
        let mut machines: BTreeMap<&str, Vec<NodeIndex>> = BTreeMap::new();
        for (number, node) in (0_u32..).zip(self.nodes()) {
            let name = if has_hosts { &node.attributes.host } else { &node.attributes.box_name };
            if let Some(name) = name {
                machines.entry(name).or_default().push(NodeIndex::new(number));
            }
        }
        let mut machines: Vec<_> = machines.into_values().collect();
        machines.sort_unstable();
        machines
    }

    fn is_switch(&self, node: NodeIndex) -> bool {
        matches!(self.node(node).kind, NodeKind::Switch { .. })
    }

    fn switches(&self) -> impl Iterator<Item = NodeIndex> {
        (0_u32..).zip(self.nodes()).map(|(number, _)| NodeIndex::new(number)).filter(|&node| self.is_switch(node))
    }

    /// Ends of links in their direction, parallels once.
    fn directed_pairs(&self) -> impl Iterator<Item = (NodeIndex, NodeIndex)> {
        let mut last = None;
        let ends = self.links().iter().map(|link| (link.from, link.to));
        ends.filter(move |&pair| last.replace(pair) != Some(pair))
    }

    /// Pairs of neighbours: of two directions the one from the lower node.
    fn pairs(&self) -> impl Iterator<Item = (NodeIndex, NodeIndex)> {
        self.directed_pairs().filter(|&pair| self.spoken_for(pair) == pair)
    }

    /// The direction that speaks for both, where there are both.
    fn spoken_for(&self, (from, to): (NodeIndex, NodeIndex)) -> (NodeIndex, NodeIndex) {
        if from > to && self.has_link(to, from) { (to, from) } else { (from, to) }
    }

    fn link_element(&self, (from, to): (NodeIndex, NodeIndex)) -> Element {
        Element::Link { from, to, both_ways: self.has_link(to, from) }
    }

    fn links_where(&self, is_meant: impl Fn(NodeIndex, NodeIndex) -> bool) -> Vec<Element> {
        self.pairs().filter(|&(from, to)| is_meant(from, to)).map(|pair| self.link_element(pair)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::generate;
    use crate::limits::TopologyLimits;

    fn topology(expression: &str) -> Topology {
        generate(expression, &TopologyLimits::STANDARD).unwrap()
    }

    fn counts(topology: &Topology) -> [usize; 7] {
        FaultKind::ALL.map(|kind| topology.elements(kind).len())
    }

    #[test]
    fn networks_have_so_many_elements_of_each_kind() {
        assert_eq!(counts(&topology("dgx-a100:boxes=4")), [4, 5, 32, 32, 32, 32, 64]);
        assert_eq!(counts(&topology("rail:boxes=4,gpus=2,spine=50GB/s")), [4, 7, 8, 8, 8, 10, 18]);
        assert_eq!(counts(&topology("mi250:boxes=2")), [2, 1, 32, 32, 56, 32, 88]);
        assert_eq!(counts(&topology("torus:4x4")), [0, 0, 16, 0, 0, 32, 32]);
        // 4 links from each rank, and one for both directions where there are both.
        let directed = topology("uniring:n=5,d=2");
        assert_eq!(counts(&directed), [0, 0, 5, 0, 0, 5, 5]);
        assert!(matches!(directed.elements(FaultKind::Links)[4], Element::Link { both_ways: false, .. }));
    }

    #[test]
    fn hosts_are_machines_as_boxes_are() {
        let mut draft = crate::draft::TopologyDraft::default();
        let rate = crate::units::Capacity::from_bytes_per_sec(1).unwrap();
        for (id, host) in [("a", "gpu1"), ("b", "gpu1.cluster"), ("c", "gpu2")] {
            let attributes = crate::model::Attributes { host: Some(host.to_owned()), ..Default::default() };
            draft.add_node(id, NodeKind::Compute, attributes);
        }
        draft.add_both("a", "b", rate, crate::units::Latency::default());
        draft.add_both("b", "c", rate, crate::units::Latency::default());
        let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
        assert_eq!(counts(&topology), [3, 0, 3, 0, 1, 1, 2]);
    }

    #[test]
    fn a_link_between_slow_switches_is_slow_once() {
        let topology = topology("leaf-spine:leaves=2,hosts=2,spines=2");
        let switches = topology.elements(FaultKind::Switches);
        assert_eq!(topology.faults_of(&switches, Some((1, 2))).len(), 8);
        assert_eq!(topology.faults_of(&switches, None).len(), 4);
        let slow = topology.punctured(&topology.faults_of(&switches, Some((1, 2)))).unwrap();
        let halved = |(one, other): (&crate::model::Link, &crate::model::Link)| {
            one.capacity.bytes_per_sec() == 2 * other.capacity.bytes_per_sec()
        };
        assert!(topology.links().iter().zip(slow.links()).all(halved));
    }
}
