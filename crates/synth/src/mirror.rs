//! Networks that are their own mirror image: with all links turned around, they are what they were but for names of switches.
//!
//! Then what is known of data that is spread is known of data that is collected. Links that run both ways make such a network,
//! and so do hosts that send by one switch and take in by another.
//!
//! Source: our own; nodes are told apart by refining colours (Weisfeiler and Leman 1968), and what is found is verified.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use canopy_topology::{Link, LinkIndex, Topology};

/// Rounds of telling switches apart by their neighbours, at most: in hosts one does, in trees one for each level.
const ROUNDS_MAX: usize = 12;

/// By link of a network: the link of the network with all links turned around, `transposed`, that is like it when all ranks stay
/// where they are; `None` if it is no mirror image, or that is not seen.
///
/// O(links · log links) in each of [`ROUNDS_MAX`] rounds at most.
pub(crate) fn mirror(topology: &Topology, transposed: &Topology) -> Option<Vec<LinkIndex>> {
    if topology.links() == transposed.links() {
        return Some((0_u32..).take(topology.links().len()).map(LinkIndex::new).collect());
    }
    if topology.links().len() != transposed.links().len() {
        return None;
    }
    // Switches of one colour are matched in their order.
    let (own, others) = (in_order_of_colours(topology), in_order_of_colours(transposed));
    let mut image = vec![0_u32; own.len()];
    for (&(colour, node), &(other_colour, other)) in own.iter().zip(&others) {
        if colour != other_colour {
            return None;
        }
        image[node as usize] = other;
    }
    let key = |from: u32, to: u32, link: &Link| (from, to, link.latency, link.capacity);
    let mut places: HashMap<_, LinkIndex> = HashMap::with_capacity(transposed.links().len());
    for (number, link) in (0_u32..).zip(transposed.links()) {
        places.insert(key(link.from.number(), link.to.number(), link), LinkIndex::new(number));
    }
    let like = |link: &Link| places.remove(&key(image[link.from.index()], image[link.to.index()], link));
    topology.links().iter().map(like).collect()
}

/// All nodes by what is around them, each with its colour; ranks are what they are.
fn in_order_of_colours(topology: &Topology) -> Vec<(u64, u32)> {
    let rank_count = topology.rank_count();
    let mut colours: Vec<u64> = (0_u32..)
        .take(topology.nodes().len())
        .map(|node| hashed(&if node < rank_count { Some(node) } else { None }))
        .collect();
    let mut count = 0;
    for _ in 0..ROUNDS_MAX {
        // Sums do not depend on the order of links.
        let mut around = vec![0_u64; colours.len()];
        for link in topology.links() {
            let (from, to) = (link.from.index(), link.to.index());
            let seen = |colour: u64, is_ahead: bool| hashed(&(colour, is_ahead, link.capacity, link.latency));
            around[from] = around[from].wrapping_add(seen(colours[to], true));
            around[to] = around[to].wrapping_add(seen(colours[from], false));
        }
        for (colour, around) in colours.iter_mut().zip(around).skip(rank_count as usize) {
            *colour = hashed(&(*colour, around));
        }
        let mut different = colours.clone();
        different.sort_unstable();
        different.dedup();
        if different.len() == count {
            break;
        }
        count = different.len();
    }
    let mut sorted: Vec<(u64, u32)> = colours.into_iter().zip(0..).collect();
    sorted.sort_unstable();
    sorted
}

/// The same in every process.
fn hashed(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    /// Whether a network is seen to be its own mirror image, and, if so, that its links are those of the other under the names
    /// that they say.
    #[track_caller]
    fn is_mirror(expression: &str) -> bool {
        let topology =
            generate(expression, &TopologyLimits::STANDARD).unwrap_or_else(|error| panic!("{expression}: {error}"));
        let transposed = topology.transposed();
        let Some(like) = mirror(&topology, &transposed) else { return false };
        let mut image = vec![None; topology.nodes().len()];
        let mut is_taken = vec![false; like.len()];
        for (link, &other) in topology.links().iter().zip(&like) {
            let turned = transposed.link(other);
            assert!(!std::mem::replace(&mut is_taken[other.index()], true), "{expression}");
            assert_eq!((link.capacity, link.latency), (turned.capacity, turned.latency), "{expression}");
            for (node, other) in [(link.from, turned.from), (link.to, turned.to)] {
                assert_eq!(*image[node.index()].get_or_insert(other), other, "{expression}");
                assert!(node == other || node.number() >= topology.rank_count(), "{expression}");
            }
        }
        true
    }

    #[test]
    fn links_both_ways_and_hosts_make_mirror_images() {
        for expression in [
            "dgx-a100:boxes=4",
            "torus:4x4",
            "torus:8x8,host=75GB/s,bw=25GB/s",
            "torus:8x8,host=75GB/s,bw=25GB/s,faults=links:3+seed:1",
            "fat-tree:k=4",
        ] {
            assert!(is_mirror(expression), "{expression}");
        }
        for expression in ["torus:4x4,degrade=00>01*1/2", "uniring:n=5,d=1", "dgx-a100:boxes=2,degrade=b0g3>ib*1/2"] {
            assert!(!is_mirror(expression), "{expression}");
        }
    }
}
