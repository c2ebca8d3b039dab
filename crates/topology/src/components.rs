//! Which ranks reach each other: what a network falls into when it falls apart.

use crate::index::{NodeIndex, Rank};
use crate::model::Topology;

/// A node that is on no component yet and was not met.
const UNSEEN: u32 = u32::MAX;

impl Topology {
    /// The ranks in groups that reach each other both ways: one group where every rank reaches every other.
    ///
    /// Groups are in the order of their lowest ranks, ranks in each rise. Paths may lead through anything that forwards.
    ///
    /// Source: Tarjan 1972, strongly connected components, without recursion. O(nodes + links + ranks · log ranks).
    pub fn components(&self) -> Vec<Vec<Rank>> {
        let component_of = strong_components(self);
        let mut by_component: Vec<(u32, Rank)> = self.ranks().map(|rank| (component_of[rank.index()], rank)).collect();
        by_component.sort_unstable();
        let groups = by_component.chunk_by(|one, other| one.0 == other.0);
        let mut groups: Vec<Vec<Rank>> = groups.map(|group| group.iter().map(|&(_, rank)| rank).collect()).collect();
        groups.sort_unstable();
        groups
    }
}

/// By node: the number of its strongly connected component.
fn strong_components(topology: &Topology) -> Vec<u32> {
    let nodes = topology.nodes().len();
    let mut search = Search {
        entered: vec![UNSEEN; nodes],
        lowest: vec![0; nodes],
        component: vec![UNSEEN; nodes],
        open: Vec::new(),
        met: 0,
        found: 0,
    };
    for start in (0_u32..).take(nodes).map(NodeIndex::new) {
        if search.entered[start.index()] != UNSEEN {
            continue;
        }
        search.enter(start);
        let mut walk = vec![(start, topology.links_from(start))];
        while let Some((node, links)) = walk.last_mut() {
            let node = *node;
            match links.next() {
                Some(link) => {
                    let next = topology.link(link).to;
                    if search.entered[next.index()] == UNSEEN {
                        search.enter(next);
                        walk.push((next, topology.links_from(next)));
                    } else if search.component[next.index()] == UNSEEN {
                        search.lower(node, search.entered[next.index()]);
                    }
                }
                None => {
                    walk.pop();
                    search.leave(node);
                    if let Some(&(parent, _)) = walk.last() {
                        search.lower(parent, search.lowest[node.index()]);
                    }
                }
            }
        }
    }
    search.component
}

/// Tables of a depth-first search, by node.
struct Search {
    /// When the node was met.
    entered: Vec<u32>,
    /// When the earliest node was met that is known to be in the same component.
    lowest: Vec<u32>,
    component: Vec<u32>,
    /// Nodes that were met and have no component yet.
    open: Vec<NodeIndex>,
    met: u32,
    found: u32,
}

impl Search {
    fn enter(&mut self, node: NodeIndex) {
        (self.entered[node.index()], self.lowest[node.index()]) = (self.met, self.met);
        self.met += 1;
        self.open.push(node);
    }

    fn lower(&mut self, node: NodeIndex, to: u32) {
        let lowest = &mut self.lowest[node.index()];
        *lowest = (*lowest).min(to);
    }

    /// Closes the component of a node all of whose links were followed, if it was the first of it.
    fn leave(&mut self, node: NodeIndex) {
        if self.lowest[node.index()] != self.entered[node.index()] {
            return;
        }
        while let Some(member) = self.open.pop() {
            self.component[member.index()] = self.found;
            if member == node {
                break;
            }
        }
        self.found += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::TopologyLimits;
    use crate::model::TopologyDraft;
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
