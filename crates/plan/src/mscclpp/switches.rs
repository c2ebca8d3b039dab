//! Which ranks a network lets one switch write to, or add up, at once.

use std::collections::{BTreeMap, BTreeSet};

use canopy_topology::{LinkIndex, NodeIndex, NodeKind, Topology};

/// Ranks that all reach each other's memory through one switch that multicasts, or through several that link the same ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchDomain {
    /// The ranks by rising number, at least three: fewer have nothing to share.
    pub ranks: Vec<u32>,
    /// Whether all the switches add up what passes them, too.
    pub aggregates: bool,
    /// The links by which ranks reach the switches.
    pub links: BTreeSet<LinkIndex>,
}

/// The domains of a network, by their ranks.
///
/// A switch counts with the ranks that have a link to it and one from it, if it multicasts and they all are in one box:
/// those of different boxes cannot map each other's memory. `boxes` gives the box of each rank by number, and is empty where
/// all are in one. O(links log links).
pub fn switch_domains(topology: &Topology, boxes: &[u32]) -> Vec<SwitchDomain> {
    let mut entering: BTreeMap<NodeIndex, Vec<(u32, LinkIndex)>> = BTreeMap::new();
    for (number, link) in (0_u32..).zip(topology.links()) {
        if let (NodeKind::Switch { multicast: true, .. }, Some(rank)) =
            (topology.node(link.to).kind, topology.rank_of(link.from))
        {
            entering.entry(link.to).or_default().push((rank.number(), LinkIndex::new(number)));
        }
    }
    let mut domains: BTreeMap<Vec<u32>, SwitchDomain> = BTreeMap::new();
    for (switch, mut links) in entering {
        let left = topology.links_from(switch).filter_map(|link| topology.rank_of(topology.link(link).to));
        let fed: BTreeSet<u32> = left.map(|rank| rank.number()).collect();
        links.retain(|(rank, _)| fed.contains(rank));
        let ranks: BTreeSet<u32> = links.iter().map(|&(rank, _)| rank).collect();
        let ranks: Vec<u32> = ranks.into_iter().collect();
        let of = |rank: &u32| boxes.get(*rank as usize);
        let first = ranks.first().map(of);
        if ranks.len() < 3 || ranks.iter().any(|rank| Some(of(rank)) != first) {
            continue;
        }
        let fresh = || SwitchDomain { ranks: ranks.clone(), aggregates: true, links: BTreeSet::new() };
        let domain = domains.entry(ranks.clone()).or_insert_with(fresh);
        domain.aggregates &= matches!(topology.node(switch).kind, NodeKind::Switch { aggregate: true, .. });
        domain.links.extend(links.into_iter().map(|(_, link)| link));
    }
    domains.into_values().collect()
}

#[cfg(test)]
mod tests {
    use canopy_topology::{TopologyLimits, generate, read_document};

    use super::*;

    fn document(switches: &str) -> Topology {
        let nodes: Vec<String> = (0..4).map(|rank| format!("- {{id: g{rank}, rank: {rank}, box: b}}\n")).collect();
        let names = ["v", "w"].iter().filter(|name| switches.contains(&format!("id: {name},")));
        let links: Vec<String> = names
            .flat_map(|switch| {
                (0..4).map(move |rank| format!("- {{from: g{rank}, to: {switch}, bandwidth: 100GB/s, both: true}}\n"))
            })
            .collect();
        let text = format!("canopy: 1\nnodes:\n{}{switches}links:\n{}", nodes.concat(), links.concat());
        read_document(text.as_bytes(), None, &TopologyLimits::STANDARD).unwrap().topology
    }

    #[test]
    fn switches_that_link_the_same_ranks_are_one() {
        let both =
            "- {id: v, kind: switch, multicast: true, aggregate: true}\n- {id: w, kind: switch, multicast: true}\n";
        let domains = switch_domains(&document(both), &[]);
        assert_eq!(domains.len(), 1);
        assert_eq!((&domains[0].ranks[..], domains[0].aggregates), (&[0, 1, 2, 3][..], false));
        assert_eq!(domains[0].links.len(), 8);
    }

    #[test]
    fn a_switch_that_only_forwards_is_none() {
        assert_eq!(switch_domains(&document("- {id: v, kind: switch, aggregate: true}\n"), &[]), []);
        assert_eq!(switch_domains(&generate("dgx-h100:boxes=1", &TopologyLimits::STANDARD).unwrap(), &[]), []);
    }

    #[test]
    fn ranks_of_different_boxes_share_no_memory() {
        let one = "- {id: v, kind: switch, multicast: true, aggregate: true}\n";
        assert_eq!(switch_domains(&document(one), &[7, 7, 7, 7]).len(), 1);
        assert_eq!(switch_domains(&document(one), &[7, 7, 7, 2]), []);
    }
}
