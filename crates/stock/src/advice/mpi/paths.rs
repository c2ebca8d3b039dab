//! Paths between ranks, and how long a round of messages takes on them.

use std::collections::{BTreeMap, BTreeSet};

use canopy_topology::{Link, LinkIndex, NodeIndex, Topology};

use super::patterns::Message;

/// Most ranks of a communicator whose algorithms are compared.
pub const RANKS_MAX: u32 = 1024;

/// One path between each two ranks of a communicator: the first ranks of a network.
pub struct Paths<'a> {
    topology: &'a Topology,
    /// By rank and node, the last link to it; `None` for the rank itself and what it cannot reach.
    last_links: Vec<Vec<Option<LinkIndex>>>,
    /// What each message takes at each of its ends, in ns.
    message_ns: u64,
}

/// A message of a round whose time no other message of it exceeds at all sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    latency_ns: u64,
    /// Parts that pass its busiest link, and the rate of that in bytes per second.
    parts: u64,
    rate: u64,
}

impl Line {
    /// In picoseconds, of which a part has `bytes / of` bytes.
    pub(super) fn time_ps(self, bytes: u64, of: u64) -> u128 {
        const PS_PER_SECOND: u128 = 1_000_000_000_000;
        let transfer = u128::from(bytes) * u128::from(self.parts) * PS_PER_SECOND;
        u128::from(self.latency_ns) * 1_000 + transfer / (u128::from(of.max(1)) * u128::from(self.rate.max(1)))
    }

    /// Whether it takes no longer than another at any size.
    fn is_below(self, other: Self) -> bool {
        let [own, others] =
            [(self, other.rate), (other, self.rate)].map(|(line, rate)| u128::from(line.parts) * u128::from(rate));
        self.latency_ns <= other.latency_ns && own <= others
    }
}

impl<'a> Paths<'a> {
    /// Paths among the first `ranks` ranks. `message_ns` is what a message takes before its first byte is sent.
    /// O(ranks · links).
    pub fn new(topology: &'a Topology, ranks: u32, message_ns: u64) -> Self {
        let ranks = ranks.min(topology.rank_count()).min(RANKS_MAX);
        let last_links = (0..ranks).map(|rank| last_links(topology, NodeIndex::new(rank))).collect();
        Self { topology, last_links, message_ns }
    }

    /// Ranks of the communicator.
    pub fn ranks(&self) -> u64 {
        self.last_links.len() as u64
    }

    /// Links of the path, last first; empty where there is none.
    fn path(&self, from: u64, to: u64) -> Vec<LinkIndex> {
        let mut path = Vec::new();
        let tree = usize::try_from(from).ok().and_then(|from| self.last_links.get(from));
        let (Some(tree), Ok(to)) = (tree, u32::try_from(to)) else { return path };
        let mut node = NodeIndex::new(to);
        while let Some(link) = tree.get(node.index()).copied().flatten() {
            path.push(link);
            node = self.topology.link(link).from;
        }
        path
    }

    /// The messages that decide how long a round takes.
    pub(super) fn lines(&self, messages: &[Message]) -> Vec<Line> {
        let paths: Vec<Vec<LinkIndex>> = messages.iter().map(|message| self.path(message.from, message.to)).collect();
        let mut loads: BTreeMap<LinkIndex, u64> = BTreeMap::new();
        let (mut sends, mut receives) = (BTreeMap::new(), BTreeMap::new());
        for (message, path) in messages.iter().zip(&paths) {
            *sends.entry(message.from).or_insert(0_u64) += 1;
            *receives.entry(message.to).or_insert(0_u64) += 1;
            for &link in path {
                *loads.entry(link).or_default() += message.parts;
            }
        }
        let mut lines: BTreeSet<Line> = BTreeSet::new();
        for (message, path) in messages.iter().zip(&paths) {
            let ends = sends.get(&message.from).max(receives.get(&message.to)).copied().unwrap_or(1);
            let link_ns = |&link: &LinkIndex| self.topology.link(link).latency.nanos();
            let latency_ns = path.iter().map(link_ns).fold(self.message_ns.saturating_mul(ends), u64::saturating_add);
            let line = |link: &LinkIndex| {
                let rate = self.topology.link(*link).capacity.bytes_per_sec();
                Line { latency_ns, parts: loads.get(link).copied().unwrap_or(0), rate }
            };
            lines.extend(path.iter().map(line));
        }
        // Most rounds have few that differ.
        let mut kept: Vec<Line> = Vec::new();
        for line in lines {
            if !kept.iter().any(|other| line.is_below(*other)) {
                kept.retain(|other| !other.is_below(line));
                kept.push(line);
            }
        }
        kept
    }
}

/// The last link of a path to each node: of the paths with fewest links, one with the greatest least rate.
fn last_links(topology: &Topology, start: NodeIndex) -> Vec<Option<LinkIndex>> {
    let mut last = vec![None; topology.nodes().len()];
    // Least rates of paths, by node.
    let mut level: BTreeMap<NodeIndex, u64> = BTreeMap::from([(start, u64::MAX)]);
    let mut seen = BTreeSet::from([start]);
    while !level.is_empty() {
        let mut next: BTreeMap<NodeIndex, (u64, LinkIndex)> = BTreeMap::new();
        for (&node, &width) in &level {
            for link in topology.links_from(node) {
                let Link { to, capacity, .. } = *topology.link(link);
                let width = width.min(capacity.bytes_per_sec());
                if !seen.contains(&to) && next.get(&to).is_none_or(|(found, _)| width > *found) {
                    next.insert(to, (width, link));
                }
            }
        }
        for (&node, &(_, link)) in &next {
            seen.insert(node);
            if let Some(place) = last.get_mut(node.index()) {
                *place = Some(link);
            }
        }
        level = next.into_iter().map(|(node, (width, _))| (node, width)).collect();
    }
    last
}

#[cfg(test)]
mod tests;
