//! Trees of shortest paths that know nothing of each other.

use std::collections::BTreeSet;

use canopy_synth::SynthesisError;
use canopy_synth::components::Heading;
use canopy_tacos::Chance;
use canopy_topology::{NodeIndex, Rank, Topology};

use crate::queues::QueuedLink;

/// Nothing leads there.
const NONE: u32 = u32::MAX;

/// All links of a network with the times of a chunk.
pub(super) struct ShortestTrees<'a> {
    topology: &'a Topology,
    /// By node: the next nodes, the links there, and their times.
    next: Vec<Vec<(NodeIndex, u32, u64)>>,
    /// By link, where it begins.
    tails: Vec<NodeIndex>,
}

impl<'a> ShortestTrees<'a> {
    /// What comes to a switch goes on at once, so that only the latency of a link there counts. O(nodes + links).
    pub(super) fn new(topology: &'a Topology, links: &[QueuedLink], heading: Heading) -> Self {
        let mut next = vec![Vec::new(); topology.nodes().len()];
        let mut tails = Vec::with_capacity(links.len());
        for ((number, link), timed) in (0..).zip(topology.links()).zip(links) {
            let (from, to) = if heading == Heading::Along { (link.from, link.to) } else { (link.to, link.from) };
            let passed = if topology.rank_of(to).is_some() { 0 } else { timed.occupancy };
            next[from.index()].push((to, number, timed.latency.saturating_sub(passed).max(1)));
            tails.push(from);
        }
        Self { topology, next, tails }
    }

    /// A tree of shortest paths from a rank, any of them. O(links · log nodes).
    pub(super) fn from(&self, source: Rank, chance: &mut Chance) -> ShortestTree<'_> {
        let mut times = vec![u64::MAX; self.next.len()];
        let mut before = vec![NONE; self.next.len()];
        let mut choices = vec![0_u32; self.next.len()];
        let mut ranks = Vec::new();
        times[source.index()] = 0;
        let mut open = BTreeSet::from([(0_u64, source.node())]);
        while let Some((time, node)) = open.pop_first() {
            ranks.extend(self.topology.rank_of(node).filter(|&rank| rank != source));
            for &(to, link, more) in &self.next[node.index()] {
                let there = time.saturating_add(more);
                let known = times[to.index()];
                if there > known {
                    continue;
                }
                if there < known {
                    open.remove(&(known, to));
                    open.insert((there, to));
                    times[to.index()] = there;
                    choices[to.index()] = 0;
                }
                choices[to.index()] += 1;
                // Of all that are as short, each is as likely.
                if chance.below(choices[to.index()]) == 0 {
                    before[to.index()] = link;
                }
            }
        }
        ShortestTree { all: self, source, before, ranks }
    }
}

/// Shortest paths from one rank.
pub(super) struct ShortestTree<'a> {
    all: &'a ShortestTrees<'a>,
    source: Rank,
    /// By node, the link that leads there.
    before: Vec<u32>,
    /// All others that it comes to, nearer ones first.
    pub(super) ranks: Vec<Rank>,
}

impl ShortestTree<'_> {
    /// The rank before this one, and the links from there.
    ///
    /// # Errors
    /// No path leads there, which was asked before. O(links of the way).
    pub(super) fn leg(&self, rank: Rank) -> Result<(Rank, Vec<u32>), SynthesisError> {
        let (mut way, mut at) = (Vec::new(), rank.node());
        loop {
            let link = self.before[at.index()];
            if link == NONE {
                let what = format!("no way from rank {} to rank {}", self.source.number(), rank.number());
                return Err(SynthesisError::Broken { what });
            }
            way.push(link);
            at = self.all.tails[link as usize];
            if let Some(parent) = self.all.topology.rank_of(at) {
                way.reverse();
                return Ok((parent, way));
            }
        }
    }

    /// All links from the source to a rank.
    ///
    /// # Errors
    /// The same. O(links of the way).
    pub(super) fn path(&self, rank: Rank) -> Result<Vec<u32>, SynthesisError> {
        let (mut legs, mut at) = (Vec::new(), rank);
        while at != self.source {
            let (parent, leg) = self.leg(at)?;
            legs.push(leg);
            at = parent;
        }
        Ok(legs.into_iter().rev().flatten().collect())
    }
}
