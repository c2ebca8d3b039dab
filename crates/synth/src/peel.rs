//! Flows from a root taken apart into paths.

use canopy_topology::{LinkIndex, NodeIndex, Topology};

/// A flow from a root, and what is left of it.
pub(crate) struct Peeler<'a> {
    topology: &'a Topology,
    root: NodeIndex,
    /// Whether data flows along the links, or against them.
    outwards: bool,
    /// What is left on each link.
    left: Vec<u64>,
    /// Links into each node, those with nothing left dropped from the end.
    entering: Vec<Vec<LinkIndex>>,
    /// Where on the current walk each node is.
    place: Vec<Option<usize>>,
}

impl<'a> Peeler<'a> {
    /// Of a flow that is kept at every node but the root and those it is for. O(links).
    ///
    /// * **In.** Whether the flow leaves the root along the links or against them; what each link carries.
    pub(crate) fn new(topology: &'a Topology, root: NodeIndex, outwards: bool, left: Vec<u64>) -> Self {
        let node_count = topology.nodes().len();
        let mut peeler = Self {
            topology,
            root,
            outwards,
            left,
            entering: vec![Vec::new(); node_count],
            place: vec![None; node_count],
        };
        for (number, _) in (0_u32..).zip(&peeler.left).filter(|&(_, &left)| left > 0) {
            let link = LinkIndex::new(number);
            let (_, end) = peeler.ends(link);
            peeler.entering[end.index()].push(link);
        }
        peeler
    }

    /// Where a link starts and ends as the flow sees it.
    fn ends(&self, link: LinkIndex) -> (NodeIndex, NodeIndex) {
        let link = self.topology.link(link);
        if self.outwards { (link.from, link.to) } else { (link.to, link.from) }
    }

    /// Paths that bring so much to a node: how much each carries, and its links from the node back to the root.
    pub(crate) fn paths(&mut self, node: NodeIndex, mut wanted: u64) -> Vec<(u64, Vec<LinkIndex>)> {
        let mut paths = Vec::new();
        while wanted > 0 {
            let links = self.walk(node);
            let least = links.iter().map(|link| self.left[link.index()]).min().expect("the node is not the root");
            let amount = least.min(wanted);
            links.iter().for_each(|link| self.left[link.index()] -= amount);
            wanted -= amount;
            paths.push((amount, links));
        }
        paths
    }

    /// Links with something left, from a node back to the root; cycles that are met are taken out of the flow.
    fn walk(&mut self, start: NodeIndex) -> Vec<LinkIndex> {
        let mut links: Vec<LinkIndex> = Vec::new();
        let mut node = start;
        while node != self.root {
            if let Some(place) = self.place[node.index()] {
                // From here on the walk has come back to where it was.
                let cycle = links.split_off(place);
                let least = cycle.iter().map(|link| self.left[link.index()]).min().unwrap_or_default();
                for link in &cycle {
                    self.left[link.index()] -= least;
                    let end = self.ends(*link).1;
                    self.place[end.index()] = None;
                }
            }
            self.place[node.index()] = Some(links.len());
            let link = self.entering(node);
            links.push(link);
            node = self.ends(link).0;
        }
        for link in &links {
            let end = self.ends(*link).1;
            self.place[end.index()] = None;
        }
        links
    }

    /// A link into a node with something left: as much enters a node as is wanted there and leaves it.
    fn entering(&mut self, node: NodeIndex) -> LinkIndex {
        let links = &mut self.entering[node.index()];
        while links.last().is_some_and(|link| self.left[link.index()] == 0) {
            links.pop();
        }
        *links.last().expect("what leaves a node has entered it")
    }
}
