//! The cheapest way from any of some nodes to any of others, at the prices that loads give.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use canopy_topology::{LinkIndex, NodeIndex};

use super::loads::Loads;
use crate::routing::Network;

/// What a search may do at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visit {
    /// It may end there.
    End,
    /// It may go on from there.
    Pass,
    /// It may not come there.
    Avoid,
}

/// A way that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) start: NodeIndex,
    pub(super) end: NodeIndex,
    /// From the start to the end.
    pub(super) links: Vec<LinkIndex>,
}

/// Links with room for some chunks.
#[derive(Clone, Copy)]
pub(super) struct FreeLinks<'a, 't> {
    /// Where they lead.
    pub(super) network: &'a Network<'t>,
    /// What is on them already, which says what more costs and whether there is room.
    pub(super) loads: &'a Loads,
    /// Number of chunks that are to take one way.
    pub(super) count: u64,
}

/// Finds ways; keeps its tables from one search to the next.
#[derive(Debug)]
pub(super) struct Finder {
    search: u64,
    marks: Vec<Mark>,
    queue: BinaryHeap<Reverse<(i128, u32)>>,
    /// Links looked at so far.
    pub(super) visits: u64,
}

/// How a search has come to a node.
#[derive(Clone, Copy, Debug)]
struct Mark {
    search: u64,
    cost: i128,
    link: Option<LinkIndex>,
}

impl Finder {
    /// With tables for this many nodes.
    pub(super) fn new(node_count: usize) -> Self {
        let mark = Mark { search: 0, cost: 0, link: None };
        Self { search: 0, marks: vec![mark; node_count], queue: BinaryHeap::new(), visits: 0 }
    }

    /// The cheapest way for so many chunks over links that have room for them, if it costs less than `most`; of equal ones
    /// that to the first node.
    ///
    /// * **In.** Where it may start, and what each start costs, perhaps less than nothing; prices as of [`Loads::price`].
    /// * **Source.** Dijkstra 1959. **Cost.** O(links within reach · log nodes).
    pub(super) fn find(
        &mut self,
        FreeLinks { network, loads, count }: FreeLinks<'_, '_>,
        starts: &[(NodeIndex, i128)],
        most: i128,
        visit: impl Fn(NodeIndex) -> Visit,
    ) -> Option<Way> {
        self.search += 1;
        self.queue.clear();
        for &(node, cost) in starts {
            self.reach(node, cost, None);
        }
        while let Some(Reverse((cost, number))) = self.queue.pop() {
            let node = NodeIndex::new(number);
            let mark = self.marks[node.index()];
            if cost >= most {
                return None;
            }
            if cost > mark.cost {
                continue;
            }
            if mark.link.is_some() && visit(node) == Visit::End {
                return Some(self.way_to(network, node));
            }
            for &link in network.leaving(node) {
                self.visits += 1;
                let head = network.head(link);
                if loads.has_room(link, count) && visit(head) != Visit::Avoid {
                    self.reach(head, cost + loads.price(link, count), Some(link));
                }
            }
        }
        None
    }

    fn reach(&mut self, node: NodeIndex, cost: i128, link: Option<LinkIndex>) {
        let mark = &mut self.marks[node.index()];
        if mark.search != self.search || cost < mark.cost {
            *mark = Mark { search: self.search, cost, link };
            self.queue.push(Reverse((cost, node.number())));
        }
    }

    fn way_to(&self, network: &Network<'_>, end: NodeIndex) -> Way {
        let (mut node, mut links) = (end, Vec::new());
        while let Some(link) = self.marks[node.index()].link {
            links.push(link);
            node = network.tail(link);
        }
        links.reverse();
        Way { start: node, end, links }
    }
}
