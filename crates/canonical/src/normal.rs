//! Topologies in canonical order, so that a plan for one serves every isomorphic one.

use std::collections::BTreeMap;

use canopy_topology::{
    Attributes, DraftLink, DraftNode, LinkIndex, NodeIndex, NodeKind, Rank, Topology, TopologyDraft, TopologyHash,
    TopologyLimits,
};

use crate::analysis::analyse;
use crate::budget::{Budget, Stopped};
use crate::fingerprint::form_hash;
use crate::graph::{Arc, Graph};
use crate::network::graph_of;

/// Colour of the nodes that stand for boxes, above all that a topology has.
const BOX_COLOUR: u64 = 3 << 32;

/// A topology in canonical order, with the mapping from the original.
///
/// Two topologies have the same normal one if, and only if, they are isomorphic with their roles and their boxes. Names and
/// attributes other than boxes are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Normal {
    /// Nodes are named by their numbers, boxes by theirs.
    pub topology: Topology,
    /// Fingerprint of the graph of the normal topology, roles and boxes included.
    pub hash: TopologyHash,
    /// By node of the original: its node in the normal topology.
    pub nodes: Vec<NodeIndex>,
    /// By link of the original: its link in the normal topology.
    pub links: Vec<LinkIndex>,
}

impl Normal {
    /// Rank of the normal topology, by rank of the original.
    pub fn ranks(&self) -> Vec<Rank> {
        let ranks = self.topology.rank_count() as usize;
        self.nodes.iter().take(ranks).map(|node| Rank::new(node.number())).collect()
    }

    /// The way back: node and link of the original, by node and link of the normal topology.
    pub fn inverse(&self) -> (Vec<NodeIndex>, Vec<LinkIndex>) {
        let mut nodes = vec![NodeIndex::new(0); self.nodes.len()];
        for (original, normal) in (0_u32..).zip(&self.nodes) {
            nodes[normal.index()] = NodeIndex::new(original);
        }
        let mut links = vec![LinkIndex::new(0); self.links.len()];
        for (original, normal) in (0_u32..).zip(&self.links) {
            links[normal.index()] = LinkIndex::new(original);
        }
        (nodes, links)
    }
}

/// Puts a topology into canonical order.
///
/// Boxes stay, as a partition without names: planners group by them.
///
/// * **In.** `roles`: as for [`graph_of`]. **Out.** None where the budget does not suffice to find the order.
/// * **Errors.** Stopped. **Cost.** That of [`analyse`], and O(nodes log nodes + links log links).
pub fn normalised(topology: &Topology, roles: &[u32], budget: Budget<'_>) -> Result<Option<Normal>, Stopped> {
    let Some(graph) = graph_with_boxes(topology, roles) else { return Ok(None) };
    let analysis = analyse(&graph, budget)?;
    let Some(solution) = analysis.solution() else { return Ok(None) };
    let nodes: Vec<NodeIndex> =
        solution.places.iter().take(topology.nodes().len()).copied().map(NodeIndex::new).collect();
    let Some((normal, links)) = reordered(topology, &nodes, &solution.places) else { return Ok(None) };
    Ok(Some(Normal { topology: normal, hash: form_hash(&solution.form(&graph)), nodes, links }))
}

/// The graph of a topology with a node for each box, which has an arc without weight to each node in the box.
fn graph_with_boxes(topology: &Topology, roles: &[u32]) -> Option<Graph> {
    let plain = graph_of(topology, roles)?;
    let box_of = boxes(topology);
    let Some(last) = box_of.iter().flatten().max() else { return Some(plain) };
    let mut colours = plain.colours().to_vec();
    let first = u32::try_from(colours.len()).ok()?;
    colours.extend((0..=*last).map(|_| BOX_COLOUR));
    let mut arcs = plain.arcs().to_vec();
    for (to, number) in (0_u32..).zip(box_of) {
        // Every link has a capacity, so no link looks like this.
        arcs.extend(number.map(|number| Arc { from: first + number, to, weight: [0, 0] }));
    }
    Graph::new(colours, arcs).ok()
}

/// The box of each node, numbered in the order of first nodes: names of boxes mean nothing, not even by their order.
pub fn boxes(topology: &Topology) -> Vec<Option<u32>> {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut box_of = Vec::with_capacity(topology.nodes().len());
    for node in topology.nodes() {
        let next = u32::try_from(numbers.len()).expect("there are no more boxes than nodes");
        box_of.push(node.attributes.box_name.as_deref().map(|name| *numbers.entry(name).or_insert(next)));
    }
    box_of
}

/// The topology with node `v` at `nodes[v]`, and by link where that is. Boxes are numbered by their `places`, behind the
/// nodes.
fn reordered(topology: &Topology, nodes: &[NodeIndex], places: &[u32]) -> Option<(Topology, Vec<LinkIndex>)> {
    let node_count = topology.nodes().len();
    let id = |node: NodeIndex| format!("n{:09}", node.number());
    let mut draft = TopologyDraft::default();
    for ((node, &place), number) in topology.nodes().iter().zip(nodes).zip(boxes(topology)) {
        let number = number.and_then(|number| places.get(node_count + number as usize));
        let box_name = number.map(|number| format!("b{number:09}"));
        let rank = (node.kind == NodeKind::Compute).then_some(place.number());
        let attributes = Attributes { box_name, ..Attributes::default() };
        draft.nodes.push(DraftNode { id: id(place), kind: node.kind, rank, attributes });
    }
    let image = |node: NodeIndex| nodes.get(node.index()).copied();
    for link in topology.links() {
        let (from, to) = (id(image(link.from)?), id(image(link.to)?));
        draft.links.push(DraftLink { from, to, capacity: link.capacity, latency: link.latency, count: 1 });
    }
    let normal = draft.build(&TopologyLimits::UNLIMITED).ok()?;
    let mut links = Vec::with_capacity(topology.links().len());
    for link in topology.links() {
        let key = (image(link.from)?, image(link.to)?, link.latency);
        let place = normal.links().binary_search_by_key(&key, |link| (link.from, link.to, link.latency)).ok()?;
        links.push(LinkIndex::new(u32::try_from(place).ok()?));
    }
    Some((normal, links))
}

#[cfg(test)]
mod tests {
    use canopy_topology::generate;

    use super::*;
    use crate::budget::WORK_STANDARD;

    const STANDARD: Budget<'static> = Budget { work_max: WORK_STANDARD, stop: &|| false };

    fn network(expression: &str) -> Topology {
        generate(expression, &TopologyLimits::STANDARD).unwrap()
    }

    fn normal(topology: &Topology, roles: &[u32]) -> Normal {
        normalised(topology, roles, STANDARD).unwrap().unwrap()
    }

    /// The same network with its ranks turned by one and its boxes under other names.
    fn turned(topology: &Topology) -> Topology {
        let count = topology.rank_count();
        let mut draft = TopologyDraft::default();
        let id = |node: NodeIndex| match topology.rank_of(node) {
            Some(rank) => format!("x{:03}", (rank.number() + 1) % count),
            None => format!("y{:03}", 999 - node.number()),
        };
        for (node, number) in topology.nodes().iter().zip(0_u32..) {
            let box_name =
                node.attributes.box_name.as_ref().map(|name| format!("z{}", name.chars().rev().collect::<String>()));
            let rank = (node.kind == NodeKind::Compute).then(|| (number + 1) % count);
            let attributes = Attributes { box_name, ..Attributes::default() };
            draft.nodes.push(DraftNode { id: id(NodeIndex::new(number)), kind: node.kind, rank, attributes });
        }
        for link in topology.links() {
            draft.add_link(id(link.from), id(link.to), link.capacity, link.latency);
        }
        draft.build(&TopologyLimits::STANDARD).unwrap()
    }

    #[test]
    fn every_part_is_where_it_is_said_to_be() {
        for expression in ["dgx-a100:boxes=3", "fat-tree:k=4", "torus:3x4", "rail:boxes=3,gpus=4", "mi250:boxes=2"] {
            let topology = network(expression);
            let normal = normal(&topology, &[]);
            let (nodes, links) = normal.inverse();
            for (number, node) in (0_u32..).zip(topology.nodes()) {
                let place = normal.nodes[number as usize];
                assert_eq!(normal.topology.node(place).kind, node.kind, "{expression}");
                assert_eq!(nodes[place.index()].number(), number);
            }
            for (number, link) in (0_u32..).zip(topology.links()) {
                let place = normal.links[number as usize];
                let image = normal.topology.link(place);
                assert_eq!(links[place.index()].number(), number);
                assert_eq!((image.capacity, image.latency), (link.capacity, link.latency));
                let ends = [link.from, link.to].map(|end| normal.nodes[end.index()]);
                assert_eq!([image.from, image.to], ends, "{expression}");
            }
            assert_eq!(normal.ranks().len(), topology.rank_count() as usize);
        }
    }

    #[test]
    fn other_names_and_numbers_make_no_difference() {
        for expression in
            ["dgx-h100:boxes=3", "leaf-spine:leaves=3,hosts=4,spines=2", "torus:3x4", "rail:boxes=3,gpus=4"]
        {
            let topology = network(expression);
            let other = turned(&topology);
            assert_ne!(topology, other);
            let (a, b) = (normal(&topology, &[]), normal(&other, &[]));
            assert_eq!((&a.topology, a.hash), (&b.topology, b.hash), "{expression}");
            // What is normal stays as it is but for symmetries.
            let again = normal(&a.topology, &[]);
            assert_eq!((again.topology, again.hash), (a.topology, a.hash), "{expression}");
        }
    }

    #[test]
    fn roles_and_boxes_count() {
        let topology = network("torus:3x3");
        let plain = normal(&topology, &[]);
        let rooted = normal(&topology, &[0, 0, 0, 1]);
        assert_ne!(plain.hash, rooted.hash);
        assert_eq!(rooted.hash, normal(&topology, &[0, 1]).hash);
        // The rank with a role of its own has the last number among the ranks.
        assert_eq!(rooted.ranks()[3].number(), 8);

        let boxed = |names: [&str; 4]| {
            let mut draft = TopologyDraft::default();
            for (rank, name) in names.iter().enumerate() {
                let box_name = (!name.is_empty()).then(|| (*name).to_owned());
                let attributes = Attributes { box_name, ..Attributes::default() };
                draft.add_node(format!("g{rank}"), NodeKind::Compute, attributes);
            }
            let link = network("complete:4").links()[0];
            for (a, b) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
                draft.add_both(&format!("g{a}"), &format!("g{b}"), link.capacity, link.latency);
            }
            normal(&draft.build(&TopologyLimits::STANDARD).unwrap(), &[])
        };
        let pairs = boxed(["a", "b", "a", "b"]);
        assert_eq!(pairs.topology, boxed(["c", "c", "a", "a"]).topology);
        let hashes =
            [pairs.hash, boxed(["a", "a", "a", "b"]).hash, boxed(["a", "a", "", ""]).hash, boxed([""; 4]).hash];
        let distinct: std::collections::BTreeSet<_> = hashes.iter().collect();
        assert_eq!(distinct.len(), hashes.len());
    }
}
