//! Sets of ranks and links in the words of people: boxes where they are known, few names, then numbers.

use std::collections::{BTreeMap, HashSet};

use canopy_topology::{LinkIndex, NodeIndex, Topology};

use crate::output::gigabytes;
use crate::table::{self, count};

/// Most ranks and links that are named.
const NAMES_MAX: usize = 4;
/// Most boxes that are named.
const BOXES_MAX: usize = 3;

/// The two sides of a set: the ranks in it, and those outside.
pub(super) struct Sides {
    /// By node.
    pub(super) is_inside: Vec<bool>,
    pub(super) inside: Vec<NodeIndex>,
    pub(super) outside: Vec<NodeIndex>,
}

impl Sides {
    pub(super) fn of(topology: &Topology, nodes: &[NodeIndex]) -> Self {
        let mut is_inside = vec![false; topology.nodes().len()];
        nodes.iter().for_each(|node| is_inside[node.index()] = true);
        let (inside, outside) = topology.ranks().map(|rank| rank.node()).partition(|node| is_inside[node.index()]);
        Self { is_inside, inside, outside }
    }

    /// The same with the other side inside.
    pub(super) fn swapped(self) -> Self {
        let is_inside = self.is_inside.into_iter().map(|is_inside| !is_inside).collect();
        Self { is_inside, inside: self.outside, outside: self.inside }
    }

    /// Whether fewer ranks are outside than inside.
    pub(super) fn is_outside_smaller(&self) -> bool {
        self.outside.len() < self.inside.len()
    }
}

/// `the 8 ranks of box b0`, `b0g0 and b0g1`, `all ranks but b0g0`, `30 ranks from b0g2 on`.
pub(super) fn ranks_in_words(topology: &Topology, ranks: &[NodeIndex]) -> String {
    let all = topology.rank_count() as usize;
    if ranks.len() == all {
        return "all ranks".to_owned();
    }
    if let Some(words) = boxes_in_words(topology, ranks) {
        return words;
    }
    if ranks.len() <= NAMES_MAX {
        return joined(ranks.iter().map(|&rank| topology.node(rank).id.clone()).collect());
    }
    let others: Vec<NodeIndex> =
        topology.ranks().map(|rank| rank.node()).filter(|node| ranks.binary_search(node).is_err()).collect();
    if others.len() <= NAMES_MAX || others.len() < ranks.len() && boxes_in_words(topology, &others).is_some() {
        return format!("all ranks but {}", ranks_in_words(topology, &others));
    }
    let first = ranks.first().map_or("", |&rank| topology.node(rank).id.as_str());
    format!("{} from {first} on", count(ranks.len(), "rank"))
}

/// Boxes all of whose ranks are meant; none where a part of one is.
fn boxes_in_words(topology: &Topology, ranks: &[NodeIndex]) -> Option<String> {
    let box_of = |node: NodeIndex| topology.node(node).attributes.box_name.as_deref();
    let (mut boxes, mut known) = (Vec::<&str>::new(), HashSet::new());
    for &rank in ranks {
        let name = box_of(rank)?;
        if known.insert(name) {
            boxes.push(name);
        }
    }
    let whole = topology.ranks().filter(|rank| box_of(rank.node()).is_some_and(|name| known.contains(name))).count();
    if whole != ranks.len() {
        return None;
    }
    let number = count(ranks.len(), "rank");
    match boxes.as_slice() {
        [] => None,
        [only] if ranks.len() == 1 => Some(format!("the one rank of box {only}")),
        [only] => Some(format!("the {number} of box {only}")),
        few if few.len() <= BOXES_MAX => {
            Some(format!("boxes {} ({number})", joined(few.iter().map(|&name| name.to_owned()).collect())))
        }
        [first, ..] => Some(format!("{} boxes from {first} on ({number})", boxes.len())),
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn joined(names: Vec<String>) -> String {
    if names.is_empty() { "none".to_owned() } else { table::joined(&names, "and") }
}

/// `b0nv -> b0g0 (300 GB/s) and ib -> b0g0 (25 GB/s)`, `8 links of 25 GB/s`, `12 links with 400 GB/s together`.
pub(super) fn links_in_words(topology: &Topology, links: &[LinkIndex]) -> String {
    if links.len() <= NAMES_MAX {
        return joined(links.iter().map(|&link| link_in_words(topology, link)).collect());
    }
    let rates = rates_of(topology, links);
    match rates.as_slice() {
        [(rate, _)] => format!("{} of {} GB/s", count(links.len(), "link"), gigabytes(u128::from(*rate))),
        _ => {
            let all: u128 = rates.iter().map(|&(rate, number)| u128::from(rate) * number as u128).sum();
            format!("{} with {} GB/s together", count(links.len(), "link"), gigabytes(all))
        }
    }
}

/// `a -> b (25 GB/s)`.
pub(super) fn link_in_words(topology: &Topology, link: LinkIndex) -> String {
    let link = topology.link(link);
    let [from, to] = [link.from, link.to].map(|node| topology.node(node).id.as_str());
    format!("{from} -> {to} ({} GB/s)", gigabytes(link.capacity.bytes_per_sec().into()))
}

/// How many links have each rate, in bytes per second, the greatest first.
pub(super) fn rates_of(topology: &Topology, links: &[LinkIndex]) -> Vec<(u64, usize)> {
    let mut rates: BTreeMap<u64, usize> = BTreeMap::new();
    for &link in links {
        *rates.entry(topology.link(link).capacity.bytes_per_sec()).or_default() += 1;
    }
    rates.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    #[track_caller]
    fn check(expression: &str, ids: &[&str], expected: &str) {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let mut ranks: Vec<NodeIndex> = ids.iter().map(|id| topology.find_node(id).unwrap()).collect();
        ranks.sort_unstable();
        assert_eq!(ranks_in_words(&topology, &ranks), expected);
    }

    #[test]
    fn boxes_come_before_names_and_names_before_numbers() {
        let box_ids = |number: usize| (0..8).map(move |gpu| format!("b{number}g{gpu}"));
        let ids = |boxes: std::ops::Range<usize>| boxes.flat_map(box_ids).collect::<Vec<_>>();
        let check_boxes = |of: &str, names: Vec<String>, expected: &str| {
            check(of, &names.iter().map(String::as_str).collect::<Vec<_>>(), expected);
        };
        check("dgx-a100:boxes=4", &["b0g1"], "b0g1");
        check("dgx-a100:boxes=4", &["b0g1", "b2g3", "b0g0"], "b0g0, b0g1 and b2g3");
        check_boxes("dgx-a100:boxes=4", ids(1..2), "the 8 ranks of box b1");
        check_boxes("dgx-a100:boxes=4", ids(1..3), "boxes b1 and b2 (16 ranks)");
        check_boxes("dgx-a100:boxes=8", ids(1..6), "5 boxes from b1 on (40 ranks)");
        check_boxes("dgx-a100:boxes=4", ids(0..4), "all ranks");
        check_boxes("dgx-a100:boxes=2", ids(0..2).split_off(1), "all ranks but b0g0");
        check("ring:16", &["3", "4", "5", "6", "7", "8"], "6 ranks from 3 on");
    }

    #[test]
    fn links_are_named_while_they_are_few() {
        let topology = generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap();
        let links = |numbers: std::ops::Range<u32>| numbers.map(LinkIndex::new).collect::<Vec<_>>();
        assert_eq!(links_in_words(&topology, &links(0..2)), "b0g0 -> b0nv (300 GB/s) and b0g0 -> ib (25 GB/s)");
        assert_eq!(links_in_words(&topology, &links(0..8)), "8 links with 1300 GB/s together");
        let slow: Vec<LinkIndex> = links(0..16).into_iter().skip(1).step_by(2).collect();
        assert_eq!(links_in_words(&topology, &slow), "8 links of 25 GB/s");
    }
}
