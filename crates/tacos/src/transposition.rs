//! Networks that are isomorphic to their reverse.

use crate::network::{TimedLink, TimedNetwork};
use crate::sends::{Sends, Sent};
use crate::symmetry::is_permutation;
use crate::task::CopyTask;

/// Maps a network onto the [`transposed`](TimedNetwork::transposed) one, hence copies on the one to copies on the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transposition {
    /// By node, where it goes.
    nodes: Vec<u32>,
    /// By link, the one that takes its place; each once.
    links: Vec<u32>,
}

impl Transposition {
    /// Maps nodes as stated, and each link to one that takes as long and leads back between the images of its ends. None where some link has
    /// none, or these are not all nodes, each once. O(nodes + links · log links).
    ///
    /// With every node in its place, each link goes to one that leads back. Of a group of translations that commute, the
    /// [inversion](crate::FreeGroup::inversion) turns every network around.
    pub fn of(network: &TimedNetwork, nodes: Vec<u32>) -> Option<Self> {
        if nodes.len() != network.node_count() as usize || !is_permutation(&nodes) {
            return None;
        }
        let image =
            |&link: &TimedLink| TimedLink { from: nodes[link.to as usize], to: nodes[link.from as usize], ..link };
        let mut order: Vec<(TimedLink, u32)> = network.links().iter().copied().zip(0..).collect();
        let mut images: Vec<(TimedLink, u32)> = network.links().iter().map(image).zip(0..).collect();
        order.sort_unstable();
        images.sort_unstable();
        let mut links = vec![0; order.len()];
        for (&(link, number), &(image, origin)) in order.iter().zip(&images) {
            if link != image {
                return None;
            }
            links[origin as usize] = number;
        }
        Some(Self { nodes, links })
    }

    /// Copies on the transposed network that are like these on the network. O(sends + chunks).
    ///
    /// * **In.** Nodes own as many chunks as their images; all are members, or exactly the images of members.
    ///
    /// # Panics
    /// Where copies are of other links or chunks.
    #[must_use]
    pub fn copies(&self, task: &CopyTask, copies: &Sends) -> Sends {
        let places = task.places();
        let moved = |sent: &Sent| Sent {
            start: sent.start,
            link: self.links[sent.link as usize],
            chunk: places.image(sent.chunk, &self.nodes),
        };
        Sends { sends: copies.sends.iter().map(moved).collect(), end: copies.end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(node_count: u32, links: &[(u32, u32, u64)]) -> TimedNetwork {
        let link = |&(from, to, ticks)| TimedLink { from, to, latency: ticks, occupancy: ticks };
        TimedNetwork::new(node_count, links.iter().map(link).collect()).unwrap()
    }

    #[test]
    fn links_that_lead_back_take_each_others_place() {
        let both_ways = network(3, &[(0, 1, 1), (1, 2, 2), (1, 0, 1), (2, 1, 2), (0, 1, 3), (1, 0, 3)]);
        let transposition = Transposition::of(&both_ways, vec![0, 1, 2]).unwrap();
        assert_eq!(transposition.links, [2, 3, 0, 1, 5, 4]);
        let one_takes_longer = network(2, &[(0, 1, 1), (1, 0, 2)]);
        assert_eq!(Transposition::of(&one_takes_longer, vec![0, 1]), None);
    }

    #[test]
    fn a_cycle_of_one_way_is_turned_by_another_order_of_nodes() {
        let cycle = network(4, &[(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 0, 1)]);
        assert_eq!(Transposition::of(&cycle, vec![0, 1, 2, 3]), None);
        assert_eq!(Transposition::of(&cycle, vec![0, 3, 3, 1]), None);
        assert_eq!(Transposition::of(&cycle, vec![0, 3, 2]), None);
        assert_eq!(Transposition::of(&cycle, vec![0, 3, 2, 4]), None);
        let transposition = Transposition::of(&cycle, vec![0, 3, 2, 1]).unwrap();
        assert_eq!(transposition.links, [3, 2, 1, 0]);
        // Chunk 0 from node 0 to node 1, chunk 3 of node 1 to node 2.
        let sends = Sends {
            sends: [(0, 0, 0), (2, 1, 3)].map(|(start, link, chunk)| Sent { start, link, chunk }).into(),
            end: 3,
        };
        let task = CopyTask::new(vec![0, 0, 1, 1, 2, 2, 3, 3], vec![true; 4]).unwrap();
        let turned = transposition.copies(&task, &sends);
        // Against the links, from node 0 to node 3, and from node 3 to node 2.
        assert_eq!(turned.sends, [(0, 3, 0), (2, 2, 7)].map(|(start, link, chunk)| Sent { start, link, chunk }));
        assert_eq!(turned.end, 3);
    }
}
