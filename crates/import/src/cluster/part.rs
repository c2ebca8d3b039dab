//! A part of a network that is whole already: the ranks of some of its machines.

use std::collections::{BTreeMap, BTreeSet};

use canopy_topology::{Fault, Rank, Topology, Transit};

use super::ComposeError;
use crate::dead_ends::dead_ends;
use crate::machine::listed;

/// The machines of a network by the host of each rank, or else its box, in the order of their first ranks.
///
/// # Errors
/// A rank is on no machine.
///
/// O(ranks · log machines).
pub fn machines_of(topology: &Topology) -> Result<Vec<String>, ComposeError> {
    let mut ranks: Vec<_> = ranks_of(topology)?.into_iter().collect();
    ranks.sort_by_key(|(_, ranks)| ranks.first().copied());
    Ok(ranks.into_iter().map(|(name, _)| name.to_owned()).collect())
}

/// The network among the ranks of some machines, which are numbered machine by machine in the order of the list. What
/// other machines have does not forward.
///
/// # Errors
/// Names that no rank has, a machine named twice, fewer than two ranks.
///
/// O(ranks · log machines) and the cost of [`Topology::group`].
pub fn part_of(topology: &Topology, nodes: &[String]) -> Result<Topology, ComposeError> {
    let ranks = ranks_of(topology)?;
    let mut members = Vec::new();
    for node in nodes {
        let found = ranks
            .get(node.as_str())
            .ok_or_else(|| ComposeError::UnknownNode { node: node.clone(), known: listed(ranks.keys().copied()) })?;
        members.extend(found);
    }
    if members.is_empty() {
        return Err(ComposeError::NoNodes);
    }
    let part = topology.group(&members, Transit::Unused)?;
    let dead = dead_switches(&part);
    if dead.is_empty() {
        return Ok(part);
    }
    Ok(part.puncture(&dead)?.topology)
}

/// Switches that join nothing any more: those with fewer than two neighbours, and those that have fewer without them.
fn dead_switches(topology: &Topology) -> Vec<Fault> {
    let mut neighbours = vec![BTreeSet::new(); topology.nodes().len()];
    for link in topology.links() {
        neighbours[link.from.index()].insert(link.to.index());
        neighbours[link.to.index()].insert(link.from.index());
    }
    let mut others = vec![0; neighbours.len()];
    topology.ranks().for_each(|rank| others[rank.index()] = 2);
    let fault = |node: usize| Fault::Node { id: topology.nodes()[node].id.clone() };
    dead_ends(neighbours, &others).into_iter().map(fault).collect()
}

fn ranks_of(topology: &Topology) -> Result<BTreeMap<&str, Vec<Rank>>, ComposeError> {
    let mut ranks = BTreeMap::<&str, Vec<Rank>>::new();
    for rank in topology.ranks() {
        let node = topology.node(rank.node());
        let name = node.attributes.host.as_ref().or(node.attributes.box_name.as_ref());
        let unknown = || ComposeError::NoMachine { rank: rank.number(), node: node.id.clone() };
        ranks.entry(name.ok_or_else(unknown)?).or_default().push(rank);
    }
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    #[test]
    fn machines_are_chosen_by_name_in_the_order_of_the_list() {
        let whole = generate("dgx-a100:boxes=3", &TopologyLimits::STANDARD).unwrap();
        let machines = machines_of(&whole).unwrap();
        assert_eq!(machines, ["b0", "b1", "b2"]);
        let part = part_of(&whole, &["b2".to_owned(), "b0".to_owned()]).unwrap();
        assert_eq!(part.rank_count(), 16);
        assert_eq!(part.nodes()[0].attributes.box_name.as_deref(), Some("b2"));
        let two = generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap();
        let counts = |topology: &Topology| (topology.nodes().len(), topology.links().len());
        assert_eq!(counts(&part), counts(&two), "the switch of the third box joins nothing and is left out");
        let alone = part_of(&whole, &["b1".to_owned()]).unwrap();
        assert_eq!(alone.nodes().len(), 10, "the switch between boxes joins its GPUs as well");
        for (nodes, problem) in [(vec!["b7"], "b7"), (vec!["b0", "b0"], "twice"), (vec![], "empty")] {
            let nodes: Vec<String> = nodes.into_iter().map(str::to_owned).collect();
            let error = part_of(&whole, &nodes).unwrap_err();
            assert!(error.to_string().contains(problem), "{error}");
        }
    }
}
