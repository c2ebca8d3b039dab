//! Networks made of one: as other machines would have it, under other names and ranks; and with other latencies.

use std::hash::{DefaultHasher, Hash, Hasher};

use canopy_proto::v1;
use canopy_topology::{
    Attributes, DraftLink, DraftNode, Latency, NodeIndex, NodeKind, Topology, TopologyDocument, TopologyDraft,
    TopologyLimits,
};

use crate::exit::Failure;

/// A network that has the shape of `topology`, one for each seed.
pub(super) fn permuted(topology: &Topology, seed: &impl Hash) -> Result<v1::TopologySource, Failure> {
    let number = hashed(seed);
    let node_count = topology.nodes().len();
    let ranks = shuffled(topology.rank_count() as usize, number, 0);
    let names = shuffled(node_count, number, 1);
    let name = |node: NodeIndex| format!("n{number:x}-{}", names[node.index()]);
    let mut draft = TopologyDraft::default();
    for place in shuffled(node_count, number, 2) {
        let index = NodeIndex::new(u32::try_from(place).map_err(|error| fault(&error))?);
        let node = topology.node(index);
        let rank = (node.kind == NodeKind::Compute).then(|| ranks[index.index()]);
        let rank = rank.map(u32::try_from).transpose().map_err(|error| fault(&error))?;
        let box_name = node.attributes.box_name.as_ref().map(|name| format!("{name}-{number:x}"));
        let attributes = Attributes { box_name, ..Attributes::default() };
        draft.nodes.push(DraftNode { id: name(index), kind: node.kind, rank, attributes });
    }
    for place in shuffled(topology.links().len(), number, 3) {
        let link = topology.links()[place];
        let (from, to) = (name(link.from), name(link.to));
        draft.links.push(DraftLink { from, to, capacity: link.capacity, latency: link.latency, count: 1 });
    }
    document(draft)
}

/// The network with so many nanoseconds more on every link: another shape, and the same search.
pub(super) fn slower(topology: &Topology, nanos: u64) -> Result<v1::TopologySource, Failure> {
    let mut draft = TopologyDraft::default();
    for (rank, node) in (0_u32..).zip(topology.nodes()) {
        let rank = (node.kind == NodeKind::Compute).then_some(rank);
        draft.nodes.push(DraftNode { id: node.id.clone(), kind: node.kind, rank, attributes: node.attributes.clone() });
    }
    for link in topology.links() {
        let id = |node: NodeIndex| topology.node(node).id.clone();
        let latency = Latency::from_nanos(link.latency.nanos().saturating_add(nanos));
        draft.add_link(id(link.from), id(link.to), link.capacity, latency);
    }
    document(draft)
}

fn document(draft: TopologyDraft) -> Result<v1::TopologySource, Failure> {
    let limits = TopologyLimits { nodes_max: usize::MAX, links_max: usize::MAX, bytes_max: usize::MAX };
    let topology = draft.build(&limits).map_err(|error| fault(&error))?;
    let content = serde_json::to_vec(&TopologyDocument::from(&topology)).map_err(|error| fault(&error))?;
    let document = v1::TopologyDocument { format: v1::DocumentFormat::Json.into(), content: content.into() };
    Ok(v1::TopologySource { source: Some(v1::topology_source::Source::Document(document)) })
}

fn fault(error: &dyn std::fmt::Display) -> Failure {
    Failure::fault(format!("cannot make another topology of the one given: {error}"))
}

/// The numbers below `count` in an order that depends on the seed and the purpose.
fn shuffled(count: usize, seed: u64, purpose: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_cached_key(|place| (hashed(&(seed, purpose, place)), *place));
    order
}

fn hashed(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use canopy_canonical::{Budget, Comparison, WORK_STANDARD, compare, graph_of};
    use canopy_topology::{generate, read_document_until};

    use super::*;

    #[test]
    fn the_shape_stays_and_all_else_changes() {
        let topology = generate("dgx-a100:boxes=2,gpus=4", &TopologyLimits::STANDARD).unwrap();
        let read = |number: u64| {
            let source = permuted(&topology, &number).unwrap();
            let Some(v1::topology_source::Source::Document(document)) = source.source else { panic!("a document") };
            read_document_until(&document.content, None, &TopologyLimits::STANDARD, &|| false).unwrap().topology
        };
        let budget = Budget { work_max: WORK_STANDARD, stop: &|| false };
        for number in 0..4 {
            let other = read(number);
            let graphs = [&topology, &other].map(|topology| graph_of(topology, &[]).unwrap());
            let same = compare(&graphs[0], &graphs[1], budget).unwrap();
            assert!(matches!(same, Comparison::Same(_)), "{same:?}");
            assert_ne!(canopy_topology::content_hash(&other), canopy_topology::content_hash(&topology));
            assert_eq!(other, read(number));
        }
        assert_ne!(read(0), read(1));
    }
}
