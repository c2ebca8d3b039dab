//! Whether the nodes a scheduler gave to a job are those a topology is for, as far as both say.

use canopy_topology::Topology;

use crate::hosts::same_host;

/// Nodes that cannot be those of the topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PlacementError {
    #[error("the job has {nodes} nodes, the topology {boxes} boxes; name the topology of exactly these nodes")]
    Count { nodes: usize, boxes: usize },
    #[error("{ranks} ranks cannot be spread evenly over {nodes} nodes; name the topology of exactly these nodes")]
    Uneven { nodes: usize, ranks: u32 },
    #[error(
        "rank {rank} is on {found} by the topology, and on {expected} by the order of the nodes; a plan holds for one \
         assignment of ranks only"
    )]
    Host { rank: u32, found: String, expected: String },
}

/// Compares the nodes of a job, in the order in which the scheduler numbers them, with a topology.
///
/// Where every rank of the topology names its machine, consecutive ranks of a machine must be those of one node, in
/// the order of the nodes: the scheduler's default. Where ranks only name their boxes, the number of boxes must be that
/// of the nodes. Where they name neither, the ranks must divide evenly. O(ranks).
pub(crate) fn check(topology: &Topology, nodes: &[String]) -> Result<(), PlacementError> {
    let ranks = || topology.nodes().iter().take(topology.rank_count() as usize);
    let hosts: Option<Vec<&str>> = ranks().map(|node| node.attributes.host.as_deref()).collect();
    if let Some(hosts) = hosts {
        return check_hosts(&hosts, nodes);
    }
    let boxes: Option<std::collections::BTreeSet<&str>> =
        ranks().map(|node| node.attributes.box_name.as_deref()).collect();
    match boxes {
        Some(boxes) if boxes.len() != nodes.len() => {
            Err(PlacementError::Count { nodes: nodes.len(), boxes: boxes.len() })
        }
        None if !(topology.rank_count() as usize).is_multiple_of(nodes.len()) => {
            Err(PlacementError::Uneven { nodes: nodes.len(), ranks: topology.rank_count() })
        }
        _ => Ok(()),
    }
}

/// Walks the ranks and the nodes side by side.
fn check_hosts(hosts: &[&str], nodes: &[String]) -> Result<(), PlacementError> {
    let distinct: std::collections::BTreeSet<&str> = hosts.iter().copied().collect();
    if distinct.len() != nodes.len() {
        return Err(PlacementError::Count { nodes: nodes.len(), boxes: distinct.len() });
    }
    let (mut at, mut before) = (0, None);
    for (rank, &host) in (0_u32..).zip(hosts) {
        if before.is_some_and(|before| before != host) {
            at += 1;
        }
        before = Some(host);
        let expected = nodes.get(at).or(nodes.last()).map_or("", String::as_str);
        if at >= nodes.len() || !same_host(host, expected) {
            return Err(PlacementError::Host { rank, found: host.to_owned(), expected: expected.to_owned() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use canopy_topology::{Attributes, Capacity, Latency, NodeKind, TopologyDraft, TopologyLimits, generate};

    use super::*;

    fn nodes(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn on_hosts(hosts: &[&str]) -> Topology {
        let mut draft = TopologyDraft::default();
        let id = |rank: usize| format!("g{rank}");
        for (rank, &host) in hosts.iter().enumerate() {
            let attributes = Attributes { host: Some(host.to_owned()), ..Attributes::default() };
            draft.add_node(id(rank), NodeKind::Compute, attributes);
        }
        for rank in 0..hosts.len() {
            let next = (rank + 1) % hosts.len();
            draft.add_link(id(rank), id(next), Capacity::from_bytes_per_sec(1).unwrap(), Latency::default());
        }
        draft.build(&TopologyLimits::STANDARD).unwrap()
    }

    #[test]
    fn machines_must_be_the_nodes_in_order() {
        let topology = on_hosts(&["a", "a", "b", "b"]);
        assert_eq!(check(&topology, &nodes(&["a.example", "b"])), Ok(()));
        let swapped = check(&topology, &nodes(&["b", "a"]));
        assert!(matches!(swapped, Err(PlacementError::Host { rank: 0, .. })), "{swapped:?}");
        let other = check(&topology, &nodes(&["a", "c"]));
        assert!(matches!(other, Err(PlacementError::Host { rank: 2, .. })), "{other:?}");
        assert_eq!(check(&topology, &nodes(&["a"])), Err(PlacementError::Count { nodes: 1, boxes: 2 }));
        let cyclic = check(&on_hosts(&["a", "b", "a", "b"]), &nodes(&["a", "b"]));
        assert!(matches!(cyclic, Err(PlacementError::Host { rank: 2, .. })), "{cyclic:?}");
    }

    #[test]
    fn boxes_are_counted() {
        let topology = generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap();
        assert_eq!(check(&topology, &nodes(&["x", "y"])), Ok(()));
        assert_eq!(check(&topology, &nodes(&["x", "y", "z"])), Err(PlacementError::Count { nodes: 3, boxes: 2 }));
    }

    #[test]
    fn without_either_the_ranks_must_divide() {
        let topology = generate("ring:8", &TopologyLimits::STANDARD).unwrap();
        assert_eq!(check(&topology, &nodes(&["x", "y"])), Ok(()));
        assert_eq!(check(&topology, &nodes(&["x", "y", "z"])), Err(PlacementError::Uneven { nodes: 3, ranks: 8 }));
    }
}
