//! Operators undone: the network of which another is the line graph, or of which each node was made several.
//!
//! Heads of the links of each node say it all. In a line graph nodes are links, and all that lead to the same node go on to
//! the same nodes: sets of heads are equal or have nothing in common (Heuchenne 1964), and each of them is a node of the
//! network below. Copies of a node have the same heads and the same tails.

use std::collections::BTreeMap;

use canopy_topology::{NodeIndex, Topology, TopologyDraft, TopologyLimits};

/// Heads of the links of every node of a network of ranks alone, rising.
fn heads(topology: &Topology) -> Vec<Vec<u32>> {
    let nodes = (0_u32..).take(topology.nodes().len()).map(NodeIndex::new);
    let of = |node| {
        let links = topology.links_from(node).map(|link| topology.link(link).to.number());
        let mut heads: Vec<u32> = links.collect();
        heads.sort_unstable();
        heads
    };
    nodes.map(of).collect()
}

/// The same from the other end.
fn tails(heads: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut tails = vec![Vec::new(); heads.len()];
    for (tail, heads) in (0_u32..).zip(heads) {
        heads.iter().for_each(|&head| tails[head as usize].push(tail));
    }
    tails
}

/// A number for each different list, by the first node that has it.
fn classes<T: Ord>(lists: impl Iterator<Item = T>) -> (Vec<u32>, u32) {
    let mut numbers = BTreeMap::new();
    let of = lists.map(|list| {
        let next = u32::try_from(numbers.len()).expect("no more than nodes, which are counted in u32");
        *numbers.entry(list).or_insert(next)
    });
    let of: Vec<u32> = of.collect();
    (of, u32::try_from(numbers.len()).expect("no more than nodes"))
}

/// The network of which this one is the line graph, if it is one of a smaller network without parallel links and without
/// links from a node to itself. O(links log links).
pub(crate) fn line_root(topology: &Topology) -> Option<Topology> {
    let heads = heads(topology);
    if heads.iter().any(Vec::is_empty) {
        return None;
    }
    // A node is a link, into the node that its heads leave.
    let (into, count) = classes(heads.iter());
    let tails = tails(&heads);
    let mut links = Vec::with_capacity(heads.len());
    for (tails, &to) in tails.iter().zip(&into) {
        let from = into[*tails.first()? as usize];
        if tails.iter().any(|&tail| into[tail as usize] != from) || from == to {
            return None;
        }
        links.push((from, to));
    }
    let before = links.len();
    links.sort_unstable();
    links.dedup();
    // All that lead into a node go on over all that leave it: as many as its class has heads.
    let is_smaller = (count as usize) < heads.len() && links.len() == before;
    is_smaller.then(|| network(count, &links))?
}

/// The network of which this one has so many copies of every node, at least two, each joined with all copies of what it is
/// joined with. O(links log links).
pub(crate) fn degree_root(topology: &Topology) -> Option<(usize, Topology)> {
    let heads = heads(topology);
    let tails = tails(&heads);
    let (copy_of, count) = classes(heads.iter().zip(&tails));
    let copies = heads.len() / count as usize;
    let mut found = vec![0; count as usize];
    copy_of.iter().for_each(|&node| found[node as usize] += 1);
    if copies < 2 || found.iter().any(|&found| found != copies) {
        return None;
    }
    let pairs = (0..heads.len()).flat_map(|tail| heads[tail].iter().map(move |&head| (tail, head)));
    let mut links: Vec<(u32, u32)> = pairs.map(|(tail, head)| (copy_of[tail], copy_of[head as usize])).collect();
    links.sort_unstable();
    links.dedup();
    let has_loops = links.iter().any(|(from, to)| from == to);
    (!has_loops).then(|| network(count, &links).map(|root| (copies, root)))?
}

/// Ranks joined by links of one rate, which says nothing: it is given once the whole is known.
fn network(count: u32, links: &[(u32, u32)]) -> Option<Topology> {
    let mut draft = TopologyDraft::default();
    (0..count).for_each(|node| draft.add_compute(format!("n{node}")));
    let rate = canopy_topology::Capacity::from_bytes_per_sec(1_000_000_000)?;
    for (from, to) in links {
        draft.add_link(format!("n{from}"), format!("n{to}"), rate, canopy_topology::Latency::default());
    }
    draft.build(&TopologyLimits::STANDARD).ok()
}
