//! The topology itself: nodes and directed links with exact capacities, immutable once built.
//!
//! It knows nothing of file formats, families or algorithms. A [`TopologyDraft`](crate::TopologyDraft) collects
//! nodes and links in any order; its `build` validates them and fixes the order every other part relies on: compute nodes
//! first, in rank order, then switches and forwarders by id; links by (from, to, latency) with parallels merged.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::TopologyError;
use crate::index::{LinkIndex, NodeIndex, Rank};
use crate::shorten::shorten;
use crate::units::{Capacity, Latency};

/// What a node can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    /// Holds data of one rank; can store, forward, replicate and reduce.
    Compute,
    /// A compute device that takes no part: it has no rank and no data, but forwards what others send through it.
    Forwarder,
    /// Forwards only, unless it says more.
    Switch {
        /// Can send one incoming stream out on several links.
        multicast: bool,
        /// Can reduce several incoming streams into one.
        aggregate: bool,
    },
}

impl NodeKind {
    /// A switch that only forwards.
    pub const PLAIN_SWITCH: Self = Self::Switch { multicast: false, aggregate: false };
}

/// Free attributes of a node: hints for heuristics and names for people, never part of optimality.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes {
    /// Machine the node sits in.
    pub host: Option<String>,
    /// Box (chassis) the node sits in.
    pub box_name: Option<String>,
    /// Rail or plane the node belongs to.
    pub rail: Option<String>,
    /// Anything a person wants to read in a report.
    pub label: Option<String>,
    /// Bandwidth of ports that lead from the node back to itself: they carry nothing, and the node has them all the same.
    pub loops: Option<Capacity>,
}

/// A vertex of the network.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// Unique text without white space and `: > = ,`.
    pub id: String,
    /// What the node can do.
    pub kind: NodeKind,
    /// Hints and names.
    pub attributes: Attributes,
}

/// A directed link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Where it starts.
    pub from: NodeIndex,
    /// Where it ends; never its start.
    pub to: NodeIndex,
    /// Sum of the capacities of all parallel links of this latency.
    pub capacity: Capacity,
    /// Latency of each of them.
    pub latency: Latency,
}

/// A network of compute nodes and switches, joined by directed links.
///
/// Invariants: at least two ranks; the node of rank `r` has index `r`, switches and forwarders follow, sorted by id; links are
/// sorted by (from, to, latency), no two agree in all three, none is a loop; ids are unique; the sum of all
/// capacities fits 100 bits (10⁶ links of 2⁶⁴), so kernels may work in 128.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    name: Option<String>,
    cluster: Option<String>,
    /// Copies share the list, and so do networks that differ in links alone. Of a network with fewer nodes, those that are
    /// left are shared.
    nodes: Arc<Vec<Arc<Node>>>,
    links: Arc<Vec<Link>>,
    rank_count: u32,
    /// `links` of node `v` leave at `out_start[v] .. out_start[v + 1]`.
    out_start: Arc<Vec<u32>>,
}

impl Topology {
    /// Name for display, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Name of the cluster that it is a part of, if it says so. Faults of switches and of links between machines are
    /// those of the cluster then, for every part that has them.
    pub fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    /// The same topology under another display name.
    #[must_use]
    pub fn with_name(mut self, name: Option<String>) -> Self {
        self.name = name;
        self
    }

    /// The same topology as a part of a cluster, under its name.
    ///
    /// # Errors
    /// The text cannot name a cluster, see [`is_cluster_name`].
    pub fn in_cluster(mut self, name: &str) -> Result<Self, TopologyError> {
        if !is_cluster_name(name) {
            return Err(TopologyError::BadCluster { name: shorten(name) });
        }
        (self.name, self.cluster) = (Some(name.to_owned()), Some(name.to_owned()));
        Ok(self)
    }

    /// Number of compute nodes (N).
    pub const fn rank_count(&self) -> u32 {
        self.rank_count
    }

    /// All ranks, `0 … N−1`.
    pub fn ranks(&self) -> impl ExactSizeIterator<Item = Rank> + Clone + use<> {
        (0..self.rank_count).map(Rank::new)
    }

    /// All nodes; see [`NodeIndex`] for their order.
    pub fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    /// The nodes, for what does not touch their order.
    pub(crate) fn nodes_mut(&mut self) -> &mut [Arc<Node>] {
        Arc::make_mut(&mut self.nodes).as_mut_slice()
    }

    /// The nodes, for a network that differs in links alone.
    pub(crate) fn shared_nodes(&self) -> Arc<Vec<Arc<Node>>> {
        Arc::clone(&self.nodes)
    }

    /// All directed links, parallels of equal latency merged.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The node at an index.
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[index.index()]
    }

    /// The link at an index.
    pub fn link(&self, index: LinkIndex) -> &Link {
        &self.links[index.index()]
    }

    /// The rank of a node; `None` for a switch or forwarder.
    pub fn rank_of(&self, node: NodeIndex) -> Option<Rank> {
        (node.number() < self.rank_count).then(|| Rank::new(node.number()))
    }

    /// Links that leave a node, by increasing (to, latency).
    pub fn links_from(&self, node: NodeIndex) -> impl ExactSizeIterator<Item = LinkIndex> + Clone + use<> {
        (self.out_start[node.index()]..self.out_start[node.index() + 1]).map(LinkIndex::new)
    }

    /// Whether any link leads from one node to another. O(log links).
    pub fn has_link(&self, from: NodeIndex, to: NodeIndex) -> bool {
        self.links.binary_search_by_key(&(from, to), |link| (link.from, link.to)).is_ok()
    }

    /// Index of the node with this id, in O(nodes).
    pub fn find_node(&self, id: &str) -> Option<NodeIndex> {
        let position = self.nodes.iter().position(|node| node.id == id)?;
        u32::try_from(position).ok().map(NodeIndex::new)
    }

    /// The nodes of these ids, as far as there are such. O(nodes · log ids).
    pub fn find_nodes<'a>(&self, ids: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, NodeIndex> {
        let mut found: BTreeMap<&str, Option<NodeIndex>> = ids.map(|id| (id, None)).collect();
        if !found.is_empty() {
            for (index, node) in (0..).zip(&*self.nodes) {
                if let Some(found) = found.get_mut(node.id.as_str()) {
                    *found = Some(NodeIndex::new(index));
                }
            }
        }
        found.into_iter().filter_map(|(id, found)| Some((id, found?))).collect()
    }

    /// Capacity entering and leaving each node, in bytes per second: `(in, out)` by node index. O(links).
    pub fn degrees(&self) -> Vec<(u128, u128)> {
        let mut degrees = vec![(0_u128, 0_u128); self.nodes.len()];
        for link in &*self.links {
            let capacity = u128::from(link.capacity.bytes_per_sec());
            degrees[link.from.index()].1 += capacity;
            degrees[link.to.index()].0 += capacity;
        }
        degrees
    }

    /// The greatest bandwidth that a rank has to send with, in bytes per second: its links, and ports that lead back to it.
    /// In a regular graph of equal links that is the degree times the rate of a link. O(nodes + links).
    pub fn node_bandwidth(&self) -> u128 {
        let loops = |node: &Arc<Node>| node.attributes.loops.map_or(0, |loops| u128::from(loops.bytes_per_sec()));
        let ranks = self.nodes.iter().zip(self.degrees()).take(self.rank_count as usize);
        ranks.map(|(node, (_, leaving))| leaving + loops(node)).max().unwrap_or(0)
    }

    /// First node whose entering and leaving capacities differ, with both sums; `None` when the network is Eulerian.
    pub fn first_unbalanced(&self) -> Option<(NodeIndex, u128, u128)> {
        let degrees = self.degrees();
        let position = degrees.iter().position(|(entering, leaving)| entering != leaving)?;
        let index = NodeIndex::new(u32::try_from(position).expect("built topologies have at most u32::MAX nodes"));
        Some((index, degrees[position].0, degrees[position].1))
    }

    /// Whether any switch can replicate or reduce.
    pub fn has_capable_switch(&self) -> bool {
        self.nodes
            .iter()
            .any(|node| matches!(node.kind, NodeKind::Switch { multicast, aggregate } if multicast || aggregate))
    }

    /// The same network with switches that only forward; `None` where all do. O(nodes + links).
    pub fn with_plain_switches(&self) -> Option<Self> {
        let mut plain = self.has_capable_switch().then(|| self.clone())?;
        let switches = plain.nodes_mut().iter_mut().filter(|node| matches!(node.kind, NodeKind::Switch { .. }));
        switches.for_each(|node| Arc::make_mut(node).kind = NodeKind::PLAIN_SWITCH);
        Some(plain)
    }

    /// Nodes without a rank that can replicate or add up what passes them, by index: compute devices that only forward,
    /// and switches that multicast or aggregate. O(nodes).
    pub fn capable_nodes(&self) -> impl Iterator<Item = NodeIndex> + Clone + '_ {
        let first = self.rank_count as usize;
        let others = (self.rank_count..).zip(&self.nodes[first..]);
        others.filter(|(_, node)| node.kind != NodeKind::PLAIN_SWITCH).map(|(index, _)| NodeIndex::new(index))
    }

    /// Compute devices that only forward, by index. O(nodes).
    pub fn forwarders(&self) -> impl Iterator<Item = NodeIndex> + Clone + '_ {
        self.capable_nodes().filter(|&node| self.node(node).kind == NodeKind::Forwarder)
    }

    /// Two ranks `(from, to)` such that no path leads from the first to the second; `None` when every rank reaches
    /// every other. O(nodes + links).
    pub fn first_unreachable(&self) -> Option<(Rank, Rank)> {
        let first = Rank::new(0);
        let lost = self.first_unreachable_from(first).map(|lost| (first, lost));
        lost.or_else(|| Some((self.first_not_reaching(first)?, first)))
    }

    /// First rank to which no path leads from `root`. O(nodes + links).
    pub fn first_unreachable_from(&self, root: Rank) -> Option<Rank> {
        let reached = self.reach(root, false);
        self.ranks().find(|rank| !reached[rank.index()])
    }

    /// First rank from which no path leads to `root`. O(nodes + links).
    pub fn first_not_reaching(&self, root: Rank) -> Option<Rank> {
        let reached = self.reach(root, true);
        self.ranks().find(|rank| !reached[rank.index()])
    }

    /// Which ranks a path leads to from `root`, by rank. O(nodes + links).
    pub fn ranks_reached_from(&self, root: Rank) -> Vec<bool> {
        let mut reached = self.reach(root, false);
        reached.truncate(self.rank_count as usize);
        reached
    }

    /// From which ranks a path leads to `root`, by rank. O(nodes + links).
    pub fn ranks_reaching(&self, root: Rank) -> Vec<bool> {
        let mut reached = self.reach(root, true);
        reached.truncate(self.rank_count as usize);
        reached
    }

    /// The same nodes with every link turned around.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let links = self.links.iter().map(|link| Link { from: link.to, to: link.from, ..*link }).collect();
        Self::assemble(self.names(), self.shared_nodes(), links, self.rank_count)
    }

    /// Nodes reached from an existing rank, along links or against them.
    fn reach(&self, root: Rank, against_links: bool) -> Vec<bool> {
        let against = against_links.then(|| self.sources());
        let mut seen = vec![false; self.nodes.len()];
        let mut stack = vec![root.node()];
        seen[root.index()] = true;
        let mut see = |next: NodeIndex, stack: &mut Vec<NodeIndex>| {
            if !std::mem::replace(&mut seen[next.index()], true) {
                stack.push(next);
            }
        };
        while let Some(node) = stack.pop() {
            match &against {
                Some((start, sources)) => {
                    let own = start[node.index()] as usize..start[node.index() + 1] as usize;
                    sources[own].iter().for_each(|&from| see(from, &mut stack));
                }
                None => self.links_from(node).for_each(|link| see(self.link(link).to, &mut stack)),
            }
        }
        seen
    }

    /// Where links to each node begin: those to node `v` are at `start[v] .. start[v + 1]` of the second list.
    fn sources(&self) -> (Vec<u32>, Vec<NodeIndex>) {
        let mut start = starts(self.nodes.len(), self.links.iter().map(|link| link.to));
        let mut sources = vec![NodeIndex::new(0); self.links.len()];
        // Filled from the back, so that each start ends up where it belongs.
        for link in self.links.iter().rev() {
            let at = &mut start[link.to.index() + 1];
            *at -= 1;
            sources[*at as usize] = link.from;
        }
        start.rotate_left(1);
        if let Some(end) = start.last_mut() {
            *end = u32::try_from(self.links.len()).unwrap_or(u32::MAX);
        }
        (start, sources)
    }

    /// What it is called.
    pub(crate) fn names(&self) -> Names {
        Names { name: self.name.clone(), cluster: self.cluster.clone() }
    }

    /// Sorts links, merges nothing: callers hand in links that differ in (from, to, latency).
    pub(crate) fn assemble(names: Names, nodes: Arc<Vec<Arc<Node>>>, mut links: Vec<Link>, rank_count: u32) -> Self {
        links.sort_unstable_by_key(|link| (link.from, link.to, link.latency));
        let out_start = Arc::new(starts(nodes.len(), links.iter().map(|link| link.from)));
        let Names { name, cluster } = names;
        Self { name, cluster, nodes, links: Arc::new(links), rank_count, out_start }
    }
}

/// Where the links of each node begin in a list that is sorted by these ends; at last its length.
fn starts(node_count: usize, ends: impl Iterator<Item = NodeIndex>) -> Vec<u32> {
    let mut start = vec![0_u32; node_count + 1];
    ends.for_each(|end| start[end.index() + 1] += 1);
    for index in 1..start.len() {
        start[index] += start[index - 1];
    }
    start
}

/// What a topology is called, and of what it is a part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) name: Option<String>,
    pub(crate) cluster: Option<String>,
}

/// Longest name of a cluster, in bytes.
const CLUSTER_BYTES_MAX: usize = 63;

/// Whether a text can name a cluster: 1 to 63 of the ASCII letters, digits and `- _ .`, the first a letter or a digit.
pub fn is_cluster_name(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.len() <= CLUSTER_BYTES_MAX
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_inner)
}
