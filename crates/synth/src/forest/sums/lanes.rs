//! The part of a network that runs both ways: links in pairs, each with one back.

use canopy_optimize::{Arc, Digraph, Fraction, Stop, Strength, strength};
use canopy_topology::{LinkIndex, NodeKind, Topology};

use crate::error::SynthesisError;
use crate::forest::sums::refusal;
use crate::symmetry::boxes;

/// A link and one that leads back, as far as both have the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    /// The lower end, in the numbers of [`Lanes`].
    pub(super) low: u32,
    pub(super) high: u32,
    /// From `low` to `high`, and back.
    pub(super) links: [LinkIndex; 2],
    /// Bytes per second, in each direction.
    pub(super) capacity: u64,
    /// The greater of both.
    pub(super) latency_ns: u64,
}

/// All lanes of a topology. Nodes are numbered anew: ranks, the switches that trees span as if they were ranks, all others.
pub(super) struct Lanes<'a> {
    pub(super) rank_count: u32,
    /// Ranks, and switches that trees span.
    pub(super) terminal_count: u32,
    pub(super) node_count: u32,
    /// By both ends.
    pub(super) list: Vec<Lane>,
    /// Whether no link has more than its lanes take.
    pub(super) are_all: bool,
    /// The box of each terminal; that of a switch, if it joins the ranks of one box.
    pub(super) boxes: Vec<Option<u32>>,
    /// By node of the topology: its number here, and the reverse.
    numbers: Vec<u32>,
    nodes: Vec<u32>,
    pub(super) topology: &'a Topology,
}

impl<'a> Lanes<'a> {
    /// Pairs links off with those back, in the order of latency: whatever has no counterpart stays out. O(links).
    pub(super) fn of(topology: &'a Topology) -> Self {
        Self::spanning(topology, &[])
    }

    /// The same where trees also span these switches, which rise.
    pub(super) fn spanning(topology: &'a Topology, switches: &[u32]) -> Self {
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
        let rank_count = topology.rank_count();
        let node_count = u32::try_from(topology.nodes().len()).expect("limits keep node counts within u32");
        let others = (rank_count..node_count).filter(|node| switches.binary_search(node).is_err());
        let nodes: Vec<u32> = (0..rank_count).chain(switches.iter().copied()).chain(others).collect();
        let mut numbers = vec![0; nodes.len()];
        nodes.iter().zip(0..).for_each(|(&node, number)| numbers[node as usize] = number);
        let mut lanes = Self {
            rank_count,
            terminal_count: rank_count + u32::try_from(switches.len()).expect("no more than nodes"),
            node_count,
            list,
            are_all: taken == total,
            boxes: boxes(topology),
            numbers,
            nodes,
            topology,
        };
        if !switches.is_empty() {
            lanes.renumber();
        }
        lanes
    }

    /// Gives lanes between nodes of the topology the numbers here, and switches that are spanned their boxes.
    fn renumber(&mut self) {
        for lane in &mut self.list {
            let [low, high] = [lane.low, lane.high].map(|node| self.numbers[node as usize]);
            (lane.low, lane.high) = (low, high);
            if low > high {
                (lane.low, lane.high) = (high, low);
                lane.links.reverse();
            }
        }
        self.list.sort_by_key(|lane| (lane.low, lane.high));
        // The boxes around a switch: none, one, or too many.
        let mut around = vec![(None, true); (self.terminal_count - self.rank_count) as usize];
        for lane in self.list.iter().filter(|lane| lane.low < self.rank_count && lane.high < self.terminal_count) {
            let Some(position) = lane.high.checked_sub(self.rank_count) else { continue };
            let (known, is_one) = &mut around[position as usize];
            let found = self.boxes[lane.low as usize];
            *is_one &= found.is_some() && (known.is_none() || *known == found);
            *known = found;
        }
        self.boxes.extend(around.into_iter().map(|(known, is_one)| known.filter(|_| is_one)));
    }

    /// Lanes for trees that span switches which replicate and add up, and the strength of these; `None` where no such
    /// switch lets trees weigh more than `least`.
    ///
    /// At first all of these switches are spanned. Where parts of the weakest partition have no rank, their switches are
    /// not worth a hop of each tree, and forward from then on. This need not be the best choice: trees may span
    /// a switch in part, and which switches to span is as hard as Steiner's problem.
    ///
    /// * **Errors.** Stopped. **Cost.** A strength for each round, of which there are no more than switches.
    pub(super) fn through_switches(
        topology: &'a Topology,
        least: Fraction,
        stop: &dyn Stop,
    ) -> Result<Option<(Self, Strength)>, SynthesisError> {
        let mut switches = able(topology);
        let mut best: Option<(Self, Strength)> = None;
        while !switches.is_empty() {
            let lanes = Self::spanning(topology, &switches);
            let found = lanes.strength(stop)?;
            let has_rank = |part: &&Vec<u32>| part.iter().any(|&number| number < lanes.rank_count);
            let spare: Vec<u32> = found.parts.iter().filter(|part| !has_rank(part)).flatten().copied().collect();
            let spare: Vec<u32> = spare.into_iter().map(|number| lanes.nodes[number as usize]).collect();
            if found.rate > best.as_ref().map_or(least, |(_, best)| best.rate) {
                best = Some((lanes, found));
            }
            let before = switches.len();
            switches.retain(|switch| !spare.contains(switch));
            if switches.len() == before {
                break;
            }
        }
        Ok(best)
    }

    /// The same network with other lanes.
    pub(super) fn with(&self, list: Vec<Lane>) -> Self {
        let Self { boxes, numbers, nodes, .. } = self;
        Self { list, boxes: boxes.clone(), numbers: numbers.clone(), nodes: nodes.clone(), ..*self }
    }

    /// Which nodes are terminals.
    pub(super) fn terminals(&self) -> Vec<bool> {
        (0..self.node_count).map(|node| node < self.terminal_count).collect()
    }

    /// The node of the topology that has a number here.
    pub(super) fn node(&self, number: u32) -> u32 {
        self.nodes[number as usize]
    }

    /// Name of a switch.
    pub(super) fn switch_name(&self, switch: u32) -> &'a str {
        &self.topology.nodes()[self.nodes[switch as usize] as usize].id
    }

    /// The terminals between which links lead that start and end there.
    pub(super) fn ends_of(&self, first: LinkIndex, last: LinkIndex) -> [u32; 2] {
        [self.topology.link(first).from, self.topology.link(last).to].map(|node| self.numbers[node.index()])
    }

    /// The greatest rate of trees on these lanes, with a partition that proves it.
    pub(super) fn strength(&self, stop: &dyn Stop) -> Result<Strength, SynthesisError> {
        let arcs = self.list.iter().map(|lane| Arc { from: lane.low, to: lane.high, capacity: lane.capacity });
        let graph = Digraph { node_count: self.node_count, arcs: arcs.collect() };
        let found = strength(&graph, &self.terminals(), stop).map_err(|error| refusal(error, self.rank_count))?;
        // There an arc counts half in either direction, here it stands for one each way.
        let rate = Fraction::new(2 * found.rate.numerator, found.rate.denominator).expect("a fraction is one");
        Ok(Strength { rate, ..found })
    }
}

/// The switches that replicate and add up, rising.
pub(super) fn able(topology: &Topology) -> Vec<u32> {
    let nodes = (0..).zip(topology.nodes());
    let able = nodes.filter(|(_, node)| matches!(node.kind, NodeKind::Switch { multicast: true, aggregate: true }));
    able.map(|(number, _)| number).collect()
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
