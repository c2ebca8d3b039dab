//! The ways of messages: along the grid, or shortest ones.

use canopy_synth::components::Heading;
use canopy_synth::{Composition, SynthesisError};
use canopy_topology::{LinkIndex, NodeIndex, Rank, Topology};

use crate::all_to_all::dor::{Line, lines_of};

/// No link leads there.
const NONE: u32 = u32::MAX;

/// Ways from every rank to every other.
pub(super) struct Ways<'a> {
    topology: &'a Topology,
    /// By node: the next nodes in order, and the widest link there.
    next: Vec<Vec<(NodeIndex, LinkIndex)>>,
    /// Dimensions, the slowest first; none where there is no whole grid.
    lines: Option<Vec<Line>>,
    heading: Heading,
}

impl<'a> Ways<'a> {
    /// O(nodes + links · log links).
    pub(super) fn new(topology: &'a Topology, composition: Option<&Composition>, heading: Heading) -> Self {
        let mut next = vec![Vec::new(); topology.nodes().len()];
        for (index, link) in (0..).map(LinkIndex::new).zip(topology.links()) {
            let (from, to) = if heading == Heading::Along { (link.from, link.to) } else { (link.to, link.from) };
            next[from.index()].push((to, index));
        }
        for links in &mut next {
            let capacity = |link: LinkIndex| topology.link(link).capacity;
            links.sort_by_key(|&(to, link)| (to, std::cmp::Reverse(capacity(link)), link));
            links.dedup_by_key(|&mut (to, _)| to);
        }
        let lines = composition.filter(|composition| composition.ranks.is_none());
        let lines = lines.and_then(|composition| lines_of(&composition.construction));
        let lines = lines.filter(|lines| Line::count(lines) == Some(topology.rank_count().into()));
        Self { topology, next, lines, heading }
    }

    /// All ways from a rank. O(nodes + links).
    pub(super) fn from(&self, source: Rank) -> WaysFrom<'_> {
        let mut before = vec![NONE; self.next.len()];
        let mut level = vec![source.node()];
        let mut is_known = vec![false; self.next.len()];
        is_known[source.index()] = true;
        while !level.is_empty() {
            let mut following = Vec::new();
            for node in level {
                for &(to, link) in &self.next[node.index()] {
                    if !std::mem::replace(&mut is_known[to.index()], true) {
                        before[to.index()] = link.number();
                        following.push(to);
                    }
                }
            }
            // Of several nodes before one, that of least number is asked first.
            following.sort_unstable();
            level = following;
        }
        WaysFrom { ways: self, source, before }
    }
}

/// Ways from one rank.
pub(super) struct WaysFrom<'a> {
    ways: &'a Ways<'a>,
    source: Rank,
    /// By node: the link that leads there on a shortest way.
    before: Vec<u32>,
}

impl WaysFrom<'_> {
    /// The way to a rank: along the grid with the last dimension first, if all links of that way are there; else the shortest, through
    /// nodes of least number.
    ///
    /// # Errors
    /// No way leads there, which was asked before. O(links of the way · log links of a node).
    pub(super) fn to(&self, destination: Rank) -> Result<Vec<u32>, SynthesisError> {
        if let Some(way) = self.ways.lines.as_ref().and_then(|lines| self.along(lines, destination)) {
            return Ok(way);
        }
        let topology = self.ways.topology;
        let (mut way, mut at) = (Vec::new(), destination.node());
        while at != self.source.node() {
            let link = self.before[at.index()];
            if link == NONE {
                let what = format!("no way from rank {} to rank {}", self.source.number(), destination.number());
                return Err(SynthesisError::Broken { what });
            }
            let ends = topology.link(LinkIndex::new(link));
            at = if self.ways.heading == Heading::Along { ends.from } else { ends.to };
            way.push(link);
        }
        way.reverse();
        Ok(way)
    }

    fn along(&self, lines: &[Line], destination: Rank) -> Option<Vec<u32>> {
        let (mut way, mut at) = (Vec::new(), u64::from(self.source.number()));
        let mut stride = 1;
        for line in lines.iter().rev() {
            let coordinate = |node: u64| node / stride % line.extent;
            let base = at - coordinate(at) * stride;
            for coordinate in line.walk_rising(coordinate(at), coordinate(destination.number().into())) {
                let next = NodeIndex::new(u32::try_from(base + coordinate * stride).ok()?);
                let links = self.ways.next.get(usize::try_from(at).ok()?)?;
                let place = links.binary_search_by_key(&next, |&(to, _)| to).ok()?;
                way.push(links[place].1.number());
                at = next.number().into();
            }
            stride *= line.extent;
        }
        Some(way)
    }
}
