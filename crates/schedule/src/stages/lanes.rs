//! The links that data of ranks may take: those between ranks and switches.

use canopy_topology::{NodeKind, Topology};

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
    out: Ends,
    into: Ends,
}

impl Lanes {
    /// Those of a network. O(nodes + links).
    pub(super) fn of(topology: &Topology) -> Self {
        let rank_count = topology.rank_count();
        let passes = topology.nodes().iter().map(|node| !matches!(node.kind, NodeKind::Forwarder));
        let passes: Vec<bool> = passes.collect();
        let mut lanes: Vec<(u32, Lane)> = Vec::with_capacity(topology.links().len());
        // Links come by (from, to), so parallels follow each other.
        for (link, of) in (0..).zip(topology.links()).filter(|(_, link)| passes[link.from.index()]) {
            let (from, capacity) = (of.from.number(), of.capacity.bytes_per_sec());
            let lane = Lane { other: of.to.number(), link, capacity };
            match lanes.last_mut().filter(|(last, before)| (*last, before.other) == (from, lane.other)) {
                Some((_, before)) if before.capacity < capacity => *before = lane,
                Some(_) => {}
                None if passes[of.to.index()] => lanes.push((from, lane)),
                None => {}
            }
        }
        let nodes = topology.nodes().len();
        let into = lanes.iter().map(|&(from, lane)| (lane.other, Lane { other: from, ..lane }));
        let into = Ends::of(nodes, rank_count, into);
        Self { rank_count, out: Ends::of(nodes, rank_count, lanes.iter().copied()), into }
    }

    pub(super) fn node_count(&self) -> usize {
        self.out.ranges.len()
    }

    pub(super) fn out(&self, node: u32) -> &[Lane] {
        self.out.of_node(node)
    }

    pub(super) fn into(&self, node: u32) -> &[Lane] {
        self.into.of_node(node)
    }

    /// Links to switches.
    pub(super) fn up(&self, node: u32) -> &[Lane] {
        self.out.to_switches(node)
    }

    /// Links from switches.
    pub(super) fn down(&self, node: u32) -> &[Lane] {
        self.into.to_switches(node)
    }

    /// The link from one node to another.
    pub(super) fn between(&self, from: u32, to: u32) -> Option<Lane> {
        find(self.out(from), to).copied()
    }
}

/// Links of all nodes in one direction, those of each node by the other end, so that ranks come before switches.
#[derive(Clone, Debug)]
struct Ends {
    ranges: Vec<Range>,
    lanes: Vec<Lane>,
}

/// Where the links of a node are: first those to ranks, then those to switches.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    ranks: u32,
    switches: u32,
    end: u32,
}

impl Ends {
    /// Sorts links by node; those of one node come by their other ends.
    fn of(nodes: usize, rank_count: u32, lanes: impl Iterator<Item = (u32, Lane)> + Clone) -> Self {
        let mut ranges = vec![Range::default(); nodes];
        for (node, lane) in lanes.clone() {
            let range = &mut ranges[node as usize];
            range.end += 1;
            range.switches += u32::from(lane.other < rank_count);
        }
        let mut next = 0;
        for range in &mut ranges {
            let (ranks, all) = (range.switches, range.end);
            *range = Range { ranks: next, switches: next + ranks, end: next };
            next += all;
        }
        let mut sorted = vec![Lane { other: 0, link: 0, capacity: 0 }; next as usize];
        for (node, lane) in lanes {
            let end = &mut ranges[node as usize].end;
            sorted[*end as usize] = lane;
            *end += 1;
        }
        Self { ranges, lanes: sorted }
    }

    fn range(&self, node: u32) -> Range {
        self.ranges.get(node as usize).copied().unwrap_or_default()
    }

    fn of_node(&self, node: u32) -> &[Lane] {
        let Range { ranks, end, .. } = self.range(node);
        &self.lanes[ranks as usize..end as usize]
    }

    fn to_switches(&self, node: u32) -> &[Lane] {
        let Range { switches, end, .. } = self.range(node);
        &self.lanes[switches as usize..end as usize]
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
