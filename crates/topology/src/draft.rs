//! Nodes and links on their way to a topology: collected in any order, validated as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::TopologyError;
use crate::index::NodeIndex;
use crate::invisible::{is_invisible, is_invisible_in_lines};
use crate::limits::TopologyLimits;
use crate::model::{Attributes, Link, Names, Node, NodeKind, Topology, is_cluster_name};
use crate::shorten::shorten;
use crate::units::{Capacity, Latency};

/// A node as an importer or generator states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftNode {
    /// Unique text.
    pub id: String,
    /// What the node can do.
    pub kind: NodeKind,
    /// Rank, for compute nodes only; all of them or none state one.
    pub rank: Option<u32>,
    /// Hints and names.
    pub attributes: Attributes,
}

/// A directed link as an importer or generator states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftLink {
    /// Id of the node where it starts.
    pub from: String,
    /// Id of the node where it ends.
    pub to: String,
    /// Rate of one of `count` parallel links.
    pub capacity: Capacity,
    /// Latency of each.
    pub latency: Latency,
    /// Number of parallel links, ≥ 1.
    pub count: u64,
}

/// Nodes and links on their way to a [`Topology`], in the order of the source, unchecked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopologyDraft {
    /// Name for display.
    pub name: Option<String>,
    /// Name of the cluster that it is a part of.
    pub cluster: Option<String>,
    /// Nodes in the order of the source.
    pub nodes: Vec<DraftNode>,
    /// Links in the order of the source.
    pub links: Vec<DraftLink>,
}

impl TopologyDraft {
    /// Nothing yet, under the names of another topology.
    pub(crate) fn like(topology: &Topology) -> Self {
        let Names { name, cluster } = topology.names();
        Self { name, cluster, ..Self::default() }
    }

    /// Adds a compute node without attributes, ranked by order of appearance.
    pub fn add_compute(&mut self, id: impl Into<String>) {
        self.add_node(id, NodeKind::Compute, Attributes::default());
    }

    /// Adds a switch that only forwards.
    pub fn add_switch(&mut self, id: impl Into<String>) {
        self.add_node(id, NodeKind::PLAIN_SWITCH, Attributes::default());
    }

    /// Adds a node, ranked by order of appearance if it computes.
    pub fn add_node(&mut self, id: impl Into<String>, kind: NodeKind, attributes: Attributes) {
        self.nodes.push(DraftNode { id: id.into(), kind, rank: None, attributes });
    }

    /// Adds one directed link.
    pub fn add_link(&mut self, from: impl Into<String>, to: impl Into<String>, capacity: Capacity, latency: Latency) {
        self.links.push(DraftLink { from: from.into(), to: to.into(), capacity, latency, count: 1 });
    }

    /// Adds a link in each direction.
    pub fn add_both(&mut self, a: &str, b: &str, capacity: Capacity, latency: Latency) {
        self.add_link(a, b, capacity, latency);
        self.add_link(b, a, capacity, latency);
    }

    /// Validates everything and fixes the order of nodes and links.
    ///
    /// # Errors
    /// The first thing that is wrong, by field, with what would be accepted. Disconnected networks are *not* refused
    /// here: they can be shown and stored, and [`Topology::first_unreachable`] names the ranks.
    ///
    /// O(nodes log nodes + links log links); refuses over-limit input before it allocates for it.
    pub fn build(self, limits: &TopologyLimits) -> Result<Topology, TopologyError> {
        self.build_until(limits, &|| false).map(|built| built.expect("no caller asks it to stop"))
    }

    /// The same, until `stop` says that nobody wants the topology any more: then `None`, soon after. It is asked every
    /// few thousand links, and before they are sorted.
    ///
    /// # Errors
    /// As [`TopologyDraft::build`].
    pub fn build_until(
        self,
        limits: &TopologyLimits,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Topology>, TopologyError> {
        limits.check(self.nodes.len(), self.links.len())?;
        if let Some(name) = self.cluster.as_ref().filter(|name| !is_cluster_name(name)) {
            return Err(TopologyError::BadCluster { name: shorten(name) });
        }
        if self.name.as_ref().is_some_and(|name| name.contains(is_invisible_in_lines)) {
            return Err(TopologyError::Invisible { field: "name".to_owned() });
        }
        let nodes = ordered_nodes(self.nodes)?;
        let rank_count = nodes.iter().filter(|node| node.kind == NodeKind::Compute).count();
        if rank_count < 2 {
            return Err(TopologyError::TooFewRanks { found: rank_count });
        }
        let index_of: HashMap<&str, u32> =
            (0_u32..).zip(&nodes).map(|(index, node)| (node.id.as_str(), index)).collect();
        let mut links: Vec<Link> = Vec::with_capacity(self.links.len());
        for (position, link) in self.links.iter().enumerate() {
            if position.is_multiple_of(LINKS_BETWEEN_STOPS) && stop() {
                return Ok(None);
            }
            let find = |id: &str, end: &'static str| {
                let index = index_of.get(id).copied().map(NodeIndex::new);
                index.ok_or_else(|| TopologyError::UnknownNode { position, end, id: shorten(id) })
            };
            let (from, to) = (find(&link.from, "from")?, find(&link.to, "to")?);
            if from == to {
                return Err(TopologyError::SelfLink { position, id: link.from.clone() });
            }
            if link.count == 0 {
                return Err(TopologyError::ZeroCount { position });
            }
            let capacity = link.capacity.bytes_per_sec().checked_mul(link.count).and_then(Capacity::from_bytes_per_sec);
            let capacity = capacity.ok_or_else(|| overflow(&nodes, from, to))?;
            links.push(Link { from, to, capacity, latency: link.latency });
        }
        if stop() {
            return Ok(None);
        }
        let links = merged(links).map_err(|(from, to)| overflow(&nodes, from, to))?;
        let rank_count = u32::try_from(rank_count).expect("limits keep node counts within u32");
        Ok(Some(Topology::assemble(
            Names { name: self.name, cluster: self.cluster },
            Arc::new(nodes),
            links,
            rank_count,
        )))
    }
}

/// Links that are looked at between two questions whether to stop: less than a millisecond's worth.
const LINKS_BETWEEN_STOPS: usize = 4096;

/// Adds up links that agree in (from, to, latency), in that order; the ends of the first sum that is too large.
fn merged(mut links: Vec<Link>) -> Result<Vec<Link>, (NodeIndex, NodeIndex)> {
    let key = |link: &Link| (link.from, link.to, link.latency);
    links.sort_unstable_by_key(key);
    let mut merged: Vec<Link> = Vec::with_capacity(links.len());
    for link in links {
        match merged.last_mut().filter(|last| key(last) == key(&link)) {
            None => merged.push(link),
            Some(last) => {
                let sum = last.capacity.bytes_per_sec().checked_add(link.capacity.bytes_per_sec());
                last.capacity = sum.and_then(Capacity::from_bytes_per_sec).ok_or((link.from, link.to))?;
            }
        }
    }
    Ok(merged)
}

fn overflow(nodes: &[Arc<Node>], from: NodeIndex, to: NodeIndex) -> TopologyError {
    let id = |node: NodeIndex| nodes[node.index()].id.clone();
    TopologyError::CapacityOverflow { from: id(from), to: id(to) }
}

/// Refuses names in which a person would not see every character.
fn require_visible(position: usize, attributes: &Attributes) -> Result<(), TopologyError> {
    let texts = [
        ("host", &attributes.host),
        ("box", &attributes.box_name),
        ("rail", &attributes.rail),
        ("label", &attributes.label),
    ];
    for (field, text) in texts {
        if text.as_ref().is_some_and(|text| text.contains(is_invisible_in_lines)) {
            return Err(TopologyError::Invisible { field: format!("nodes[{position}].{field}") });
        }
    }
    Ok(())
}

/// Compute nodes by rank, then all others by id.
fn ordered_nodes(drafts: Vec<DraftNode>) -> Result<Vec<Arc<Node>>, TopologyError> {
    for (position, node) in drafts.iter().enumerate() {
        require_visible(position, &node.attributes)?;
        let bad = |c: char| c.is_whitespace() || is_invisible(c) || matches!(c, ':' | '>' | '=' | ',');
        if node.id.is_empty() || node.id.len() > 255 || node.id.contains(bad) {
            return Err(TopologyError::BadId { position, id: shorten(&node.id) });
        }
        match (node.rank, node.kind) {
            (Some(_), NodeKind::Switch { .. }) => {
                return Err(TopologyError::RankOnSwitch { id: node.id.clone() });
            }
            (Some(_), NodeKind::Forwarder) => {
                return Err(TopologyError::RankOnForwarder { id: node.id.clone() });
            }
            _ => {}
        }
    }
    let (mut ranked, mut switches): (Vec<DraftNode>, Vec<DraftNode>) =
        drafts.into_iter().partition(|node| node.kind == NodeKind::Compute);
    assign_ranks(&mut ranked)?;
    ranked.sort_by_key(|node| node.rank);
    switches.sort_by(|a, b| a.id.cmp(&b.id));
    let nodes: Vec<Arc<Node>> = ranked
        .into_iter()
        .chain(switches)
        .map(|node| Arc::new(Node { id: node.id, kind: node.kind, attributes: node.attributes }))
        .collect();
    let mut ids: Vec<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(TopologyError::DuplicateId { id: pair[0].to_owned() }),
        None => Ok(nodes),
    }
}

/// Gives every compute node a rank: the stated ones if all state one, else the order of appearance.
fn assign_ranks(computes: &mut [DraftNode]) -> Result<(), TopologyError> {
    let stated = computes.iter().filter(|node| node.rank.is_some()).count();
    if stated == 0 {
        for (rank, node) in (0_u32..).zip(computes.iter_mut()) {
            node.rank = Some(rank);
        }
        return Ok(());
    }
    if let Some(silent) = computes.iter().find(|node| node.rank.is_none()) {
        return Err(TopologyError::RankMissing { id: silent.id.clone(), stated });
    }
    let mut owner: Vec<Option<&str>> = vec![None; computes.len()];
    for node in computes.iter() {
        let rank = node.rank.unwrap_or_default();
        let count = owner.len();
        let slot = owner.get_mut(rank as usize).ok_or_else(|| TopologyError::RankGap {
            id: node.id.clone(),
            rank,
            rank_count: count,
        })?;
        if let Some(first) = slot.replace(&node.id) {
            return Err(TopologyError::DuplicateRank { rank, first: first.to_owned(), second: node.id.clone() });
        }
    }
    Ok(())
}
