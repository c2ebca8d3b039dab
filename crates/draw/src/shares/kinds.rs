//! Kinds of links: what they join and how fast they are, and which part of them each class takes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use canopy_schedule::SharedLink;
use canopy_topology::{NodeIndex, Topology};

/// Most kinds; those beyond are one.
pub(super) const KINDS_MAX: usize = 16;

/// Links that join the same and are equally fast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) words: String,
    /// Bytes per second of one; none where they differ.
    pub(super) bytes_per_sec: Option<u128>,
    /// The links by position, the busiest first.
    pub(super) links: Vec<usize>,
}

/// Of the links of a kind, in billionths of their capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spread {
    pub(super) least: u32,
    pub(super) mean: u32,
    pub(super) greatest: u32,
}

impl Spread {
    pub(super) fn of(parts: impl Iterator<Item = u32> + Clone) -> Self {
        let sum: u64 = parts.clone().map(u64::from).sum();
        let count = u64::try_from(parts.clone().count()).unwrap_or(u64::MAX).max(1);
        Self {
            least: parts.clone().min().unwrap_or(0),
            mean: u32::try_from(sum / count).unwrap_or(u32::MAX),
            greatest: parts.max().unwrap_or(0),
        }
    }
}

/// What all classes take of a link.
pub(super) fn total(link: &SharedLink) -> u32 {
    link.billionths.iter().fold(0, |sum: u32, &part| sum.saturating_add(part))
}

/// What a node is to others. The order is that of the drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Rank,
    /// In a box, and the number of hops from its ranks.
    Inside(u32),
    /// So many hops from ranks.
    Between(u32),
}

/// Whether a link stays in a box; `Unknown` where the network names no boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Inside,
    Between,
    Unknown,
}

/// The kinds of links of a network, in a fixed order. O(nodes + links log links).
pub(super) fn kinds(topology: &Topology, links: &[SharedLink]) -> Vec<Kind> {
    let roles = roles(topology);
    let name = |node: NodeIndex| topology.node(node).attributes.box_name.as_deref();
    let has_boxes = topology.nodes().iter().any(|node| node.attributes.box_name.is_some());
    let role = |node: NodeIndex| roles.get(node.index()).copied().unwrap_or(Role::Rank);
    let mut found: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (position, link) in links.iter().enumerate() {
        let (from, to) = (role(link.from), role(link.to));
        let is_inside = name(link.from).is_some() && name(link.from) == name(link.to);
        let reach =
            match is_inside || matches!((from, to), (Role::Inside(_), Role::Rank) | (Role::Rank, Role::Inside(_))) {
                true => Reach::Inside,
                false if has_boxes => Reach::Between,
                false => Reach::Unknown,
            };
        found.entry((from, to, reach, Reverse(link.bytes_per_sec))).or_default().push(position);
    }
    let is_deep = roles.iter().any(|role| matches!(role, Role::Between(2..)));
    let kind = |((from, to, reach, rate), positions): ((Role, Role, Reach, Reverse<u128>), Vec<usize>)| Kind {
        words: words(from, to, reach, is_deep),
        bytes_per_sec: Some(rate.0),
        links: sorted(positions, links),
    };
    folded(found.into_iter().map(kind).collect(), links)
}

/// The busiest first; equal ones by what the first classes take, and then in the order of the network.
fn sorted(mut positions: Vec<usize>, links: &[SharedLink]) -> Vec<usize> {
    let key = |position: &usize| {
        links.get(*position).map(|link| Reverse((link.is_busiest, total(link), link.billionths.clone())))
    };
    positions.sort_by_cached_key(key);
    positions
}

/// Those beyond the limit as one: the least busy ones.
fn folded(kinds: Vec<Kind>, links: &[SharedLink]) -> Vec<Kind> {
    if kinds.len() <= KINDS_MAX {
        return kinds;
    }
    let most = |kind: &Kind| kind.links.first().and_then(|&first| links.get(first)).map_or(0, total);
    let mut order: Vec<usize> = (0..kinds.len()).collect();
    order.sort_by_key(|&number| (Reverse(kinds.get(number).map_or(0, most)), number));
    let kept: BTreeSet<usize> = order.into_iter().take(KINDS_MAX - 1).collect();
    let (mut found, mut rest, mut others) = (Vec::new(), Vec::new(), 0_usize);
    for (number, kind) in kinds.into_iter().enumerate() {
        if kept.contains(&number) {
            found.push(kind);
        } else {
            rest.extend(kind.links);
            others += 1;
        }
    }
    let words = format!("links of {others} other kinds");
    found.push(Kind { words, bytes_per_sec: None, links: sorted(rest, links) });
    found
}

/// By node. A switch is inside where it names its box, or if all its neighbours are ranks of one box among several.
fn roles(topology: &Topology) -> Vec<Role> {
    let mut near = vec![Vec::new(); topology.nodes().len()];
    for link in topology.links() {
        for (node, other) in [(link.from, link.to), (link.to, link.from)] {
            near.iter_mut().skip(node.index()).take(1).for_each(|list| list.push(other));
        }
    }
    let box_of = |node: NodeIndex| topology.node(node).attributes.box_name.as_deref();
    let boxes: BTreeSet<_> = topology.ranks().filter_map(|rank| box_of(rank.node())).collect();
    let hops = hops(topology, &near);
    let role = |node: NodeIndex| {
        let hops = hops.get(&node).copied().unwrap_or(1);
        let near = near.get(node.index()).map(Vec::as_slice).unwrap_or_default();
        let is_rank = |other: &NodeIndex| topology.rank_of(*other).is_some();
        let around: BTreeSet<_> = near.iter().map(|&other| box_of(other)).collect();
        let is_alone = boxes.len() > 1 && around.len() == 1 && !around.contains(&None) && near.iter().all(is_rank);
        match topology.rank_of(node) {
            Some(_) => Role::Rank,
            None if box_of(node).is_some() || is_alone => Role::Inside(hops),
            None => Role::Between(hops),
        }
    };
    (0_u32..).take(topology.nodes().len()).map(|number| role(NodeIndex::new(number))).collect()
}

/// How far each node is from ranks.
fn hops(topology: &Topology, near: &[Vec<NodeIndex>]) -> BTreeMap<NodeIndex, u32> {
    let mut edge: Vec<NodeIndex> = topology.ranks().map(|rank| rank.node()).collect();
    let mut found: BTreeMap<NodeIndex, u32> = edge.iter().map(|&node| (node, 0)).collect();
    let mut hop = 0;
    while !edge.is_empty() {
        hop += 1;
        let mut next = Vec::new();
        for other in edge.iter().flat_map(|node| near.get(node.index()).into_iter().flatten()) {
            if !found.contains_key(other) {
                found.insert(*other, hop);
                next.push(*other);
            }
        }
        edge = next;
    }
    found
}

/// Such as `NIC out: rank → switch`.
fn words(from: Role, to: Role, reach: Reach, is_deep: bool) -> String {
    let name = |role: Role| match role {
        Role::Rank => "rank".to_owned(),
        Role::Inside(0 | 1) => "switch in the box".to_owned(),
        Role::Inside(hops) => format!("switch {hops} hops from ranks, in the box"),
        Role::Between(hops) if is_deep => format!("switch of layer {hops}"),
        Role::Between(_) => "switch".to_owned(),
    };
    let place = match (from, to, reach) {
        (_, _, Reach::Unknown) => "",
        (_, _, Reach::Inside) => "inside boxes: ",
        (Role::Rank | Role::Inside(_), Role::Between(_), Reach::Between) => "NIC out: ",
        (Role::Between(_), Role::Rank | Role::Inside(_), Reach::Between) => "NIC in: ",
        (_, _, Reach::Between) => "between boxes: ",
    };
    format!("{place}{} → {}", name(from), name(to))
}

/// A part of a capacity, with a decimal.
pub(super) fn percent(billionths: u32) -> String {
    let tenths = (u64::from(billionths) + 500_000) / 1_000_000;
    match (billionths, tenths) {
        (0, _) => "0 %".to_owned(),
        (_, 0) => "< 0.1 %".to_owned(),
        _ => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}
