//! Large networks in fewer plates: ranks on one switch are one plate, and so are the parts of a hypercube.

use std::collections::{BTreeMap, BTreeSet};

use canopy_topology::{Latency, NodeIndex, Topology, TopologyDraft, TopologyLimits};

use crate::layout::hypercube_numbers;

/// Most nodes that are drawn one by one if they can be summarised.
const NODES_MAX: usize = 100;
/// Dimensions of a hypercube that remain in its summary.
const DIMENSIONS: u32 = 4;

/// A network with plates for several nodes.
pub(crate) struct Summary {
    pub(crate) topology: Topology,
    /// By node of the whole network: its plate.
    pub(crate) places: Vec<NodeIndex>,
    /// By plate: what it says, where this is not its id.
    pub(crate) labels: Vec<Option<String>>,
    /// What a plate and a line stand for.
    pub(crate) note: String,
}

impl Summary {
    /// The summary of a network that is too large to be drawn node by node. `None` for a small network, and for one
    /// whose nodes do not fall into groups. O((nodes + links) log links).
    pub(crate) fn of(topology: &Topology) -> Option<Self> {
        if topology.nodes().len() <= NODES_MAX {
            return None;
        }
        hypercube(topology).or_else(|| ranks_by_switch(topology))
    }
}

/// A hypercube of few dimensions whose nodes are hypercubes.
fn hypercube(topology: &Topology) -> Option<Summary> {
    let (numbers, dimensions) = hypercube_numbers(topology)?;
    let low = dimensions.checked_sub(DIMENSIONS).filter(|&low| low > 0)?;
    let keys: Vec<String> = numbers.iter().map(|number| (number >> low).to_string()).collect();
    let (topology, places) = grouped(topology, &keys)?;
    let labels = topology.nodes().iter().map(|node| {
        let first = node.id.parse::<u32>().ok()? << low;
        Some(format!("{first}–{}", first + ((1 << low) - 1)))
    });
    let labels = labels.collect();
    let note = format!(
        "Summary: a plate is a hypercube of {low} dimensions, whose links are not drawn; a line is all links between two \
         plates, coloured by the busiest."
    );
    Some(Summary { topology, places, labels, note })
}

/// One plate for all ranks on a switch, if every rank is on one switch only.
fn ranks_by_switch(topology: &Topology) -> Option<Summary> {
    let mut near: Vec<Option<NodeIndex>> = vec![None; topology.nodes().len()];
    for link in topology.links() {
        for (node, other) in [(link.from, link.to), (link.to, link.from)] {
            if topology.rank_of(node).is_some() && near[node.index()].replace(other).is_some_and(|known| known != other)
            {
                return None;
            }
        }
    }
    let mut on: BTreeMap<NodeIndex, Vec<NodeIndex>> = BTreeMap::new();
    for rank in topology.ranks() {
        let switch = near[rank.node().index()].filter(|&node| topology.rank_of(node).is_none())?;
        on.entry(switch).or_default().push(rank.node());
    }
    let mut keys: Vec<String> = topology.nodes().iter().map(|node| node.id.clone()).collect();
    for nodes in on.values().chain(twins(topology).values()) {
        let mut ids: Vec<&str> = nodes.iter().map(|&node| topology.node(node).id.as_str()).collect();
        // `c9` before `c10`.
        ids.sort_by_key(|id| (id.len(), *id));
        let [first, .., last] = ids.as_slice() else { continue };
        let key = format!("{first}–{last}");
        nodes.iter().for_each(|node| keys[node.index()].clone_from(&key));
    }
    let (topology, places) = grouped(topology, &keys)?;
    let labels = vec![None; topology.nodes().len()];
    let note = "Summary: a plate is all ranks on one switch, or all switches with equal neighbours; a line is all links \
                between two plates, coloured by the busiest.";
    Some(Summary { topology, places, labels, note: note.to_owned() })
}

/// Switches by their neighbours, all of which are switches.
fn twins(topology: &Topology) -> BTreeMap<BTreeSet<NodeIndex>, Vec<NodeIndex>> {
    let mut near: BTreeMap<NodeIndex, BTreeSet<NodeIndex>> = BTreeMap::new();
    for link in topology.links() {
        near.entry(link.from).or_default().insert(link.to);
        near.entry(link.to).or_default().insert(link.from);
    }
    let is_switch = |node: NodeIndex| topology.rank_of(node).is_none();
    near.retain(|&node, others| is_switch(node) && others.iter().all(|&other| is_switch(other)));
    let mut found: BTreeMap<BTreeSet<NodeIndex>, Vec<NodeIndex>> = BTreeMap::new();
    for (node, others) in near {
        found.entry(others).or_default().push(node);
    }
    found
}

/// The network with one node for each key. `None` if nothing is saved.
fn grouped(topology: &Topology, keys: &[String]) -> Option<(Topology, Vec<NodeIndex>)> {
    let mut draft = TopologyDraft::default();
    let mut known = BTreeSet::new();
    for (node, key) in topology.nodes().iter().zip(keys) {
        if known.insert(key) {
            draft.add_node(key, node.kind, node.attributes.clone());
        }
    }
    if known.len() == keys.len() {
        return None;
    }
    let mut joined = BTreeSet::new();
    for link in topology.links() {
        let [from, to] = [link.from, link.to].map(|node| &keys[node.index()]);
        if from != to && joined.insert((from, to)) {
            draft.add_link(from, to, link.capacity, Latency::default());
        }
    }
    let summary = draft.build(&TopologyLimits::STANDARD).ok()?;
    let places = keys.iter().map(|key| summary.find_node(key)).collect::<Option<_>>()?;
    Some((summary, places))
}

#[cfg(test)]
mod tests {
    use canopy_topology::generate;

    use super::*;

    fn summary(expression: &str) -> Option<(usize, usize)> {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let Summary { topology: found, places, labels, .. } = Summary::of(&topology)?;
        assert_eq!((places.len(), labels.len()), (topology.nodes().len(), found.nodes().len()));
        Some((found.nodes().len(), found.links().len()))
    }

    #[test]
    fn large_fat_trees_and_hypercubes_have_one() {
        assert_eq!((summary("fat-tree:k=4"), summary("hypercube:6"), summary("torus:12x12")), (None, None, None));
        // 4 plates of core switches, 32 aggregation switches, 32 edge switches and a plate of 4 ranks on each.
        assert_eq!(summary("fat-tree:k=8"), Some((4 + 3 * 32, 2 * (4 * 8 + 32 * 4 + 32))));
        assert_eq!(summary("hypercube:8"), Some((16, 64)));
    }
}
