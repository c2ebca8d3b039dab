//! The part of a network that runs both ways: links in pairs, each with one back.

use canopy_optimize::{Arc, Digraph, Fraction, Stop, Strength, strength};
use canopy_topology::{LinkIndex, Topology};

use crate::error::SynthesisError;
use crate::forest::sums::refusal;
use crate::symmetry::boxes;

/// A link and one that leads back, as far as both have the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    /// The lower end.
    pub(super) low: u32,
    pub(super) high: u32,
    /// From `low` to `high`, and back.
    pub(super) links: [LinkIndex; 2],
    /// Bytes per second, in each direction.
    pub(super) capacity: u64,
    /// The greater of both.
    pub(super) latency_ns: u64,
}

/// All lanes of a topology.
pub(super) struct Lanes<'a> {
    pub(super) rank_count: u32,
    pub(super) node_count: u32,
    /// By both ends.
    pub(super) list: Vec<Lane>,
    /// Whether no link has more than its lanes take.
    pub(super) are_all: bool,
    /// The box of each rank.
    pub(super) boxes: Vec<Option<u32>>,
    topology: &'a Topology,
}

impl<'a> Lanes<'a> {
    /// Pairs links off with those back, in the order of latency: whatever has no counterpart stays out. O(links).
    pub(super) fn of(topology: &'a Topology) -> Self {
        let mut list = Vec::new();
        let links = topology.links();
        let ends = |position: usize| (links[position].from, links[position].to);
        let mut start = 0;
        while start < links.len() {
            let (from, to) = ends(start);
            let length = links[start..].iter().take_while(|link| (link.from, link.to) == (from, to)).count();
            if from < to {
                let back = links.partition_point(|link| (link.from, link.to) < (to, from));
                let back = (back..links.len()).take_while(|&position| ends(position) == (to, from)).collect::<Vec<_>>();
                pair_off(topology, start..start + length, &back, &mut list);
            }
            start += length;
        }
        let total: u128 = links.iter().map(|link| u128::from(link.capacity.bytes_per_sec())).sum();
        let taken: u128 = list.iter().map(|lane: &Lane| 2 * u128::from(lane.capacity)).sum();
        Self {
            rank_count: topology.rank_count(),
            node_count: u32::try_from(topology.nodes().len()).expect("limits keep node counts within u32"),
            list,
            are_all: taken == total,
            boxes: boxes(topology),
            topology,
        }
    }

    /// The same network with other lanes.
    pub(super) fn with(&self, list: Vec<Lane>) -> Self {
        Self { list, boxes: self.boxes.clone(), ..*self }
    }

    /// Name of a switch.
    pub(super) fn switch_name(&self, switch: u32) -> &'a str {
        &self.topology.nodes()[switch as usize].id
    }

    /// The ranks between which links lead that start and end there.
    pub(super) fn ends_of(&self, first: LinkIndex, last: LinkIndex) -> [u32; 2] {
        [self.topology.link(first).from.number(), self.topology.link(last).to.number()]
    }

    /// The greatest rate of trees on these lanes, with a partition that proves it.
    pub(super) fn strength(&self, stop: &dyn Stop) -> Result<Strength, SynthesisError> {
        let arcs = self.list.iter().map(|lane| Arc { from: lane.low, to: lane.high, capacity: lane.capacity });
        let graph = Digraph { node_count: self.node_count, arcs: arcs.collect() };
        let terminals: Vec<bool> = (0..self.node_count).map(|node| node < self.rank_count).collect();
        let found = strength(&graph, &terminals, stop).map_err(|error| refusal(error, self.rank_count))?;
        // There an arc counts half in either direction, here it stands for one each way.
        let rate = Fraction::new(2 * found.rate.numerator, found.rate.denominator).expect("a fraction is one");
        Ok(Strength { rate, ..found })
    }
}

/// Lanes between two nodes.
fn pair_off(topology: &Topology, there: std::ops::Range<usize>, back: &[usize], list: &mut Vec<Lane>) {
    let links = topology.links();
    let capacity = |position: usize| links[position].capacity.bytes_per_sec();
    let mut back = back.iter().copied();
    let mut way_back = back.next().map(|position| (position, capacity(position)));
    for position in there {
        let mut left = capacity(position);
        while left > 0
            && let Some((other, rest)) = way_back
        {
            let common = left.min(rest);
            if common > 0 {
                let [link, reverse] = [position, other].map(|position| &links[position]);
                let index = |position: usize| {
                    LinkIndex::new(u32::try_from(position).expect("limits keep link counts within u32"))
                };
                list.push(Lane {
                    low: link.from.number(),
                    high: link.to.number(),
                    links: [index(position), index(other)],
                    capacity: common,
                    latency_ns: link.latency.nanos().max(reverse.latency.nanos()),
                });
            }
            left -= common;
            way_back = match rest - common {
                0 => back.next().map(|position| (position, capacity(position))),
                rest => Some((other, rest)),
            };
        }
    }
}
