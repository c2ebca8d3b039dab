//! The links that data of ranks may take: those between ranks and switches.

use canopy_topology::{NodeIndex, NodeKind, Topology};

/// A link and its capacity in bytes per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) other: u32,
    pub(super) link: u32,
    pub(super) capacity: u64,
}

/// Links that leave and that enter a node, by the node at their other end: one for each, the fastest.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    /// Nodes of smaller numbers are ranks, others switches.
    pub(super) rank_count: u32,
    out: Vec<Ends>,
    into: Vec<Ends>,
}

/// Links of a node, those to ranks first.
#[derive(Clone, Debug, Default)]
struct Ends {
    lanes: Vec<Lane>,
    ranks: usize,
}

impl Lanes {
    /// Those of a network. O(nodes + links).
    pub(super) fn of(topology: &Topology) -> Self {
        let empty = || vec![Ends::default(); topology.nodes().len()];
        let (mut out, mut into) = (empty(), empty());
        let passes = |node: NodeIndex| {
            topology.rank_of(node).is_some() || matches!(topology.node(node).kind, NodeKind::Switch { .. })
        };
        // Links come by (from, to), so both lists are sorted by the other end.
        for (link, of) in (0..).zip(topology.links()).filter(|(_, link)| passes(link.from) && passes(link.to)) {
            let lane = |other: NodeIndex| Lane { other: other.number(), link, capacity: of.capacity.bytes_per_sec() };
            out[of.from.index()].add(lane(of.to), topology.rank_count());
            into[of.to.index()].add(lane(of.from), topology.rank_count());
        }
        Self { rank_count: topology.rank_count(), out, into }
    }

    pub(super) fn node_count(&self) -> usize {
        self.out.len()
    }

    pub(super) fn out(&self, node: u32) -> &[Lane] {
        self.out.get(node as usize).map_or(&[], |ends| ends.lanes.as_slice())
    }

    pub(super) fn into(&self, node: u32) -> &[Lane] {
        self.into.get(node as usize).map_or(&[], |ends| ends.lanes.as_slice())
    }

    /// Links to switches.
    pub(super) fn up(&self, node: u32) -> &[Lane] {
        self.out.get(node as usize).map_or(&[], Ends::switches)
    }

    /// Links from switches.
    pub(super) fn down(&self, node: u32) -> &[Lane] {
        self.into.get(node as usize).map_or(&[], Ends::switches)
    }

    /// The link from one node to another.
    pub(super) fn between(&self, from: u32, to: u32) -> Option<Lane> {
        find(self.out(from), to).copied()
    }
}

impl Ends {
    /// Adds a link at the end, unless a link to the same node is as fast.
    fn add(&mut self, lane: Lane, rank_count: u32) {
        match self.lanes.last_mut().filter(|last| last.other == lane.other) {
            Some(last) if last.capacity < lane.capacity => *last = lane,
            Some(_) => {}
            None => {
                self.lanes.push(lane);
                self.ranks += usize::from(lane.other < rank_count);
            }
        }
    }

    fn switches(&self) -> &[Lane] {
        self.lanes.get(self.ranks..).unwrap_or_default()
    }
}

fn find(lanes: &[Lane], other: u32) -> Option<&Lane> {
    lanes.binary_search_by_key(&other, |lane| lane.other).ok().map(|at| &lanes[at])
}

/// Links to and from the same nodes, in order: a search in the longer list for each of the shorter one.
pub(super) fn common<'a>(out: &'a [Lane], into: &'a [Lane]) -> impl Iterator<Item = (&'a Lane, &'a Lane)> {
    let is_out_shorter = out.len() <= into.len();
    let (short, long) = if is_out_shorter { (out, into) } else { (into, out) };
    short.iter().filter_map(move |lane| {
        let other = find(long, lane.other)?;
        Some(if is_out_shorter { (lane, other) } else { (other, lane) })
    })
}
