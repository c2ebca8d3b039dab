//! Connected components: sets of ranks that reach each other.

use std::collections::BTreeMap;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;

use crate::index::Rank;
use crate::model::Topology;

impl Topology {
    /// Sets of ranks that reach each other in both directions; one set if the network is connected.
    ///
    /// Sets are ordered by their lowest rank, and ranks in each ascend. Paths may pass any node that forwards.
    /// O(nodes + links + ranks · log ranks).
    pub fn components(&self) -> Vec<Vec<Rank>> {
        let mut graph = DiGraph::<(), ()>::with_capacity(self.nodes().len(), self.links().len());
        self.nodes().iter().for_each(|_| {
            graph.add_node(());
        });
        graph.extend_with_edges(self.links().iter().map(|link| (link.from.number(), link.to.number())));
        let mut component_of = vec![0; self.nodes().len()];
        for (number, nodes) in kosaraju_scc(&graph).into_iter().enumerate() {
            nodes.into_iter().for_each(|node| component_of[node.index()] = number);
        }
        let mut groups = BTreeMap::<usize, Vec<Rank>>::new();
        self.ranks().for_each(|rank| groups.entry(component_of[rank.index()]).or_default().push(rank));
        let mut groups: Vec<Vec<Rank>> = groups.into_values().collect();
        groups.sort_unstable();
        groups
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::draft::TopologyDraft;
    use crate::limits::TopologyLimits;
    use crate::units::{Capacity, Latency};

    /// Ranks `0..ranks`, then switches, with links between any of them.
    fn network(ranks: u8, switches: u8, links: &[(u8, u8)]) -> Topology {
        let mut draft = TopologyDraft::default();
        (0..ranks).for_each(|rank| draft.add_compute(format!("r{rank}")));
        (0..switches).for_each(|switch| draft.add_switch(format!("s{switch}")));
        let ids: Vec<String> = draft.nodes.iter().map(|node| node.id.clone()).collect();
        for &(from, to) in links {
            let (from, to) = (usize::from(from) % ids.len(), usize::from(to) % ids.len());
            if from != to {
                let rate = Capacity::from_bytes_per_sec(1).unwrap();
                draft.add_link(ids[from].as_str(), ids[to].as_str(), rate, Latency::default());
            }
        }
        draft.build(&TopologyLimits::STANDARD).unwrap()
    }

    fn components(topology: &Topology) -> Vec<Vec<u32>> {
        topology.components().iter().map(|group| group.iter().map(|rank| rank.number()).collect()).collect()
    }

    #[test]
    fn a_switch_joins_and_one_way_links_do_not() {
        assert_eq!(
            components(&network(4, 1, &[(0, 4), (4, 0), (2, 4), (4, 2), (3, 1)])),
            [vec![0, 2], vec![1], vec![3]]
        );
        assert_eq!(components(&network(3, 0, &[(0, 1), (1, 2), (2, 0)])), [vec![0, 1, 2]]);
        assert_eq!(components(&network(3, 0, &[(0, 1), (1, 2)])), [vec![0], vec![1], vec![2]]);
    }

    proptest! {
        /// Two ranks are together exactly if each reaches the other.
        #[test]
        fn together_means_both_ways(ranks in 2_u8..7, switches in 0_u8..3, links in prop::collection::vec((0_u8..9, 0_u8..9), 0..20)) {
            let topology = network(ranks, switches, &links);
            let groups = topology.components();
            prop_assert_eq!(groups.len() == 1, topology.first_unreachable().is_none());
            let mut listed: Vec<Rank> = groups.concat();
            listed.sort_unstable();
            prop_assert!(listed.into_iter().eq(topology.ranks()));
            for group in &groups {
                let (reached, reaching) = (topology.ranks_reached_from(group[0]), topology.ranks_reaching(group[0]));
                let both = topology.ranks().filter(|rank| reached[rank.index()] && reaching[rank.index()]);
                prop_assert!(both.eq(group.iter().copied()));
            }
        }
    }
}
