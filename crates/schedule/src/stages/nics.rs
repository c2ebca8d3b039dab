//! The one switch over which a rank reaches other boxes: what ways between boxes amount to where each rank has just
//! one.

use std::collections::HashMap;

use canopy_topology::{LinkIndex, Rank};

use super::boxes::Seating;
use super::lanes::{Lane, Lanes};
use super::ways::{Way, Ways};

/// Marks ranks that reach other boxes over none or several neighbours.
const NONE: u32 = u32::MAX;

/// By rank: the switch, and the links to it and from it.
#[derive(Clone, Debug)]
pub(crate) struct Nics {
    ports: Vec<Port>,
    /// By box, those with the same switches place by place; [`NONE`] where a place has no rank or no such switch.
    kinds: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Port {
    switch: u32,
    up: Option<Lane>,
    down: Option<Lane>,
}

impl Port {
    const NONE: Self = Self { switch: NONE, up: None, down: None };
}

impl Nics {
    /// Those of a network whose ranks sit like this. O(nodes + links).
    pub(crate) fn of(ways: &Ways, seating: &Seating) -> Self {
        let lanes = &ways.lanes;
        let ranks = lanes.rank_count as usize;
        let mut box_of = vec![NONE; ranks];
        for of_box in 0..seating.box_count() {
            seating.live(of_box).for_each(|(_, rank)| box_of[rank as usize] = of_box);
        }
        let is_outer = |of_box: u32, other: u32| match box_of.get(other as usize) {
            Some(&other) => other != of_box,
            // A switch that ranks of this box alone are at leads to no other.
            None => {
                let mut neighbours = neighbours(lanes, other);
                neighbours.any(|rank| box_of.get(rank as usize).is_none_or(|&other| other != of_box))
            }
        };
        let mut ports = vec![Port::NONE; ranks];
        for ((port, &of_box), name) in ports.iter_mut().zip(&box_of).zip(0_u32..) {
            let mut outer = neighbours(lanes, name).filter(|&other| is_outer(of_box, other));
            let only = outer.next().filter(|&first| first as usize >= ranks && outer.all(|other| other == first));
            let Some(switch) = only else { continue };
            *port = Port { switch, up: lanes.between(name, switch), down: lanes.between(switch, name) };
        }
        let kinds = kinds(&ports, seating);
        Self { ports, kinds }
    }

    /// Whether each rank of the one box reaches the rank at its place in the other over the switch that both have, and
    /// is reached so. O(1).
    pub(crate) fn are_alike(&self, one: u32, other: u32) -> bool {
        let [one, other] = [one, other].map(|of_box| self.kinds.get(of_box as usize).copied().unwrap_or(NONE));
        one != NONE && one == other
    }

    /// The links of a rank to and from its switch.
    pub(crate) fn of_rank(&self, rank: u32) -> Option<[LinkIndex; 2]> {
        let port = self.ports.get(rank as usize)?;
        Some([port.up?, port.down?].map(|lane| LinkIndex::new(lane.link)))
    }

    /// The way from a rank to one of another box, over the switch that both have. `None` where it takes a longer look.
    pub(crate) fn over_one(&self, from: u32, to: u32) -> Option<[LinkIndex; 2]> {
        let (from, to) = (self.ports.get(from as usize)?, self.ports.get(to as usize)?);
        let (up, down) = (from.up?, to.down?);
        (from.switch == to.switch).then(|| [up, down].map(|lane| LinkIndex::new(lane.link)))
    }

    /// Puts the way from a rank to one of another box into `way`, as [`Ways::between`] does.
    pub(crate) fn between(&self, ways: &mut Ways, from: u32, to: u32, turn: u64, way: &mut Way) -> Option<()> {
        if let Some(links) = self.over_one(from, to) {
            way.clear();
            way.extend(links);
            return Some(());
        }
        let (one, other) = (self.ports.get(from as usize)?, self.ports.get(to as usize)?);
        if one.switch == NONE || other.switch == NONE {
            return ways.between(Rank::new(from), Rank::new(to), turn, way);
        }
        // The link from the switch, seen from the rank.
        let down = Lane { other: other.switch, ..other.down? };
        ways.between_ports(one.up?, down, turn, way)
    }
}

/// Numbers of sets of boxes that have the same switches place by place. O(ranks).
fn kinds(ports: &[Port], seating: &Seating) -> Vec<u32> {
    let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
    let mut kind = |of_box: u32| {
        let switch = |&rank: &u32| {
            let port = ports.get(rank as usize)?;
            port.up.and(port.down).map(|_| port.switch)
        };
        let switches: Vec<u32> = seating.full(of_box)?.iter().map(switch).collect::<Option<_>>()?;
        let next = u32::try_from(known.len()).ok()?;
        Some(*known.entry(switches).or_insert(next))
    };
    (0..seating.box_count()).map(|of_box| kind(of_box).unwrap_or(NONE)).collect()
}

/// Nodes that a link leads to or from; some twice.
fn neighbours(lanes: &Lanes, node: u32) -> impl Iterator<Item = u32> + '_ {
    lanes.out(node).iter().chain(lanes.into(node)).map(|lane| lane.other)
}

#[cfg(test)]
mod tests {
    use canopy_topology::{Capacity, Latency, Topology, TopologyDraft, TopologyLimits};

    use super::*;
    use crate::stages::{BoxGrid, Seats};

    /// Pods of two boxes of three ranks, at one leaf or at one for each place, and spines that some links to are
    /// slower.
    fn network(by_rail: bool, seed: u64) -> Topology {
        let mut draft = TopologyDraft::default();
        let (places, boxes, pods, spines) = (3, 2, 3, 4);
        let mut draws = seed;
        let mut rate = || {
            draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            Capacity::from_bytes_per_sec([100, 200, 300][(draws >> 33) as usize % 3]).unwrap()
        };
        let seats = places * boxes * pods;
        (0..seats).for_each(|seat| draft.add_compute(format!("r{seat:02}")));
        (0..boxes * pods).for_each(|of_box| draft.add_switch(format!("box{of_box}")));
        let leaf = |pod: usize, place: usize| format!("leaf{pod}-{}", if by_rail { place } else { 0 });
        let leaves = (0..pods).flat_map(|pod| (0..if by_rail { places } else { 1 }).map(move |place| leaf(pod, place)));
        let leaves: Vec<String> = leaves.collect();
        leaves.iter().for_each(|leaf| draft.add_switch(leaf.clone()));
        (0..spines).for_each(|spine| draft.add_switch(format!("spine{spine}")));
        for seat in 0..seats {
            let (rank, of_box) = (format!("r{seat:02}"), seat / places);
            let inner = format!("box{of_box}");
            for switch in [inner, leaf(of_box / boxes, seat % places)] {
                draft.add_link(&rank, &switch, rate(), Latency::default());
                draft.add_link(&switch, &rank, rate(), Latency::default());
            }
        }
        for (leaf, spine) in leaves.iter().flat_map(|leaf| (0..spines).map(move |spine| (leaf, spine))) {
            draft.add_link(leaf, format!("spine{spine}"), rate(), Latency::default());
            draft.add_link(format!("spine{spine}"), leaf, rate(), Latency::default());
        }
        draft.build(&TopologyLimits::STANDARD).unwrap()
    }

    #[test]
    fn one_switch_for_a_box_is_on_all_ways_in_it() {
        let mut found = [0, 0];
        for (seed, by_rail) in (0..200).flat_map(|seed| [(seed, false), (seed, true)]) {
            let mut ways = Ways::of(&network(by_rail, seed));
            for first in (0..18).step_by(3) {
                let ranks = [first, first + 1, first + 2];
                let links = ways.over_one_switch(&ranks);
                found[usize::from(links.is_some())] += 1;
                let pairs = (0..3).flat_map(|from| (0..3).map(move |to| (from, to)));
                for (from, to) in pairs.filter(|(from, to)| from != to) {
                    let mut way = Vec::new();
                    assert!(ways.between(Rank::new(ranks[from]), Rank::new(ranks[to]), 0, &mut way).is_some());
                    let expected = links.as_ref().map(|links| vec![links[from][0], links[to][1]]);
                    assert!(expected.is_none_or(|expected| expected == way), "{seed} {from} {to}");
                }
            }
        }
        assert!(found.iter().all(|&count| count > 10), "{found:?}");
    }

    #[test]
    fn ways_are_those_that_a_longer_look_finds() {
        for (seed, by_rail) in (0..20).flat_map(|seed| [(seed, false), (seed, true)]) {
            let topology = network(by_rail, seed);
            let mut ways = Ways::of(&topology);
            let grid = BoxGrid { places: 3, digits: vec![6], seats: Seats::InOrder { empty: Vec::new() } };
            let nics = Nics::of(&ways, &grid.seating(18).unwrap());
            let pairs = (0..18).flat_map(|from| (0..18).map(move |to| (from, to)));
            for (from, to) in pairs.filter(|(from, to)| from / 3 != to / 3) {
                for turn in [0, 1, 2, 3, 11, u64::MAX] {
                    let [mut short, mut long] = [Vec::new(), Vec::new()];
                    assert!(nics.between(&mut ways, from, to, turn, &mut short).is_some());
                    ways.between(Rank::new(from), Rank::new(to), turn, &mut long);
                    assert_eq!(short, long, "{from} {to} {turn}");
                }
            }
            assert!(nics.ports.iter().all(|port| port.switch != NONE), "each has one switch");
        }
    }
}
