//! Shortest ways between members of a group, for whole lengths of arcs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use canopy_optimize::Stop;

use crate::groups::patience::Asking;
use crate::groups::problem::{GroupProblem, GroupsError};

/// A length, then the number of arcs: of equally long ways that of fewest arcs is taken.
pub(crate) type Distance = (u128, u32);

/// Bytes of the ways of a search for each node, with what the search holds beside.
pub(crate) const WAYS_NODE_BYTES: u64 = 112;

/// No way at all.
pub(crate) const NO_WAY: Distance = (u128::MAX, u32::MAX);

/// The sum; lengths are so small that none is out of range.
pub(crate) const fn plus(distance: Distance, length: u128) -> Distance {
    (distance.0.saturating_add(length), distance.1.saturating_add(1))
}

/// Which nodes pass on what for one group: its members, and those that relay.
pub(crate) struct Passing<'a> {
    problem: &'a GroupProblem,
    is_member: Vec<bool>,
    stop: &'a dyn Stop,
}

impl<'a> Passing<'a> {
    pub(crate) fn of(problem: &'a GroupProblem, members: &[u32], stop: &'a dyn Stop) -> Self {
        let mut is_member = vec![false; problem.graph().node_count as usize];
        members.iter().for_each(|&node| is_member[node as usize] = true);
        Self { problem, is_member, stop }
    }

    pub(crate) fn passes(&self, node: u32) -> bool {
        self.is_member[node as usize] || self.problem.relays()[node as usize]
    }

    /// Shortest ways from the nearest of some nodes to all others. O((nodes + arcs) log nodes).
    ///
    /// # Errors
    /// Stopped.
    pub(crate) fn ways_from(&self, sources: &[u32], lengths: &[u128]) -> Result<Ways, GroupsError> {
        self.ways(sources, lengths, None)
    }

    /// Shortest ways from a node to all members; of ways to other nodes nothing is known. As above, with nodes that are
    /// nearer than the farthest member only.
    ///
    /// # Errors
    /// Stopped.
    pub(crate) fn ways_to_members(&self, source: u32, lengths: &[u128]) -> Result<Ways, GroupsError> {
        self.ways(&[source], lengths, Some(Wanted::new(&self.is_member, source)))
    }

    fn ways(&self, sources: &[u32], lengths: &[u128], wanted: Option<Wanted>) -> Result<Ways, GroupsError> {
        let count = u128::from(self.problem.graph().node_count);
        let longest = lengths.iter().copied().max().unwrap_or(0).checked_mul(count);
        match longest.is_some_and(|longest| longest < PACKED_MAX) {
            true => self.searched::<Packed>(sources, lengths, wanted),
            false => self.searched::<Wide>(sources, lengths, wanted),
        }
    }

    fn searched<K: Key>(
        &self,
        sources: &[u32],
        lengths: &[u128],
        mut wanted: Option<Wanted>,
    ) -> Result<Ways, GroupsError> {
        let mut asking = Asking::of(self.stop);
        let problem = self.problem;
        let count = problem.graph().node_count as usize;
        let mut keys = vec![K::NONE; count];
        let (mut last, mut nearest) = (vec![None; count], vec![u32::MAX; count]);
        let mut open = BinaryHeap::new();
        for &source in sources {
            keys[source as usize] = K::at(source);
            nearest[source as usize] = source;
            open.push(Reverse(K::at(source)));
        }
        while let Some(Reverse(key)) = open.pop() {
            if wanted.as_ref().is_some_and(|wanted| wanted.are_nearer(key.distance())) {
                break;
            }
            let node = key.node();
            if key > keys[node as usize] || !self.passes(node) {
                continue;
            }
            asking.before(16 * problem.leaving(node).len())?;
            for &number in problem.leaving(node) {
                let to = problem.graph().arcs[number as usize].to;
                let further = key.further(lengths[number as usize], to);
                if further < keys[to as usize] {
                    if let Some(wanted) = wanted.as_mut().filter(|_| self.is_member[to as usize]) {
                        wanted.reach(keys[to as usize] == K::NONE, further.distance());
                    }
                    keys[to as usize] = further;
                    last[to as usize] = Some(number);
                    nearest[to as usize] = nearest[node as usize];
                    open.push(Reverse(further));
                }
            }
        }
        let distance = |key: K| if key == K::NONE { NO_WAY } else { key.distance() };
        Ok(Ways { distances: keys.into_iter().map(distance).collect(), last, nearest })
    }
}

/// A node and how far it is, as searches compare them: by length, then by number of arcs, then by node.
trait Key: Copy + Ord {
    /// Farther than any.
    const NONE: Self;
    /// A node where a search begins.
    fn at(node: u32) -> Self;
    /// A node one arc further.
    fn further(self, length: u128, to: u32) -> Self;
    fn node(self) -> u32;
    fn distance(self) -> Distance;
}

/// In one number, if all ways are shorter than [`PACKED_MAX`]: the length, 24 bits for the number of arcs, 24 for the
/// node. Problems have no more parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Packed(u128);

const FIELD_BITS: u32 = 24;
const PACKED_MAX: u128 = 1 << (127 - 2 * FIELD_BITS);

impl Key for Packed {
    const NONE: Self = Self(u128::MAX);

    fn at(node: u32) -> Self {
        Self(u128::from(node))
    }

    fn further(self, length: u128, to: u32) -> Self {
        let distance = (self.0 >> FIELD_BITS) + (length << FIELD_BITS) + 1;
        Self(distance << FIELD_BITS | u128::from(to))
    }

    fn node(self) -> u32 {
        low(self.0)
    }

    fn distance(self) -> Distance {
        let distance = self.0 >> FIELD_BITS;
        (distance >> FIELD_BITS, low(distance))
    }
}

/// The last field.
fn low(packed: u128) -> u32 {
    u32::try_from(packed & ((1 << FIELD_BITS) - 1)).unwrap_or(u32::MAX)
}

/// Whatever the lengths are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wide(Distance, u32);

impl Key for Wide {
    const NONE: Self = Self(NO_WAY, u32::MAX);

    fn at(node: u32) -> Self {
        Self((0, 0), node)
    }

    fn further(self, length: u128, to: u32) -> Self {
        Self(plus(self.0, length), to)
    }

    fn node(self) -> u32 {
        self.1
    }

    fn distance(self) -> Distance {
        self.0
    }
}

/// Members to which ways are looked for.
struct Wanted {
    /// How many have no way yet.
    missing: usize,
    /// The greatest distance at which one was first reached: none is farther.
    farthest: Distance,
}

impl Wanted {
    fn new(is_member: &[bool], source: u32) -> Self {
        let members = is_member.iter().filter(|&&is_member| is_member).count();
        Self { missing: members - usize::from(is_member[source as usize]), farthest: (0, 0) }
    }

    fn reach(&mut self, is_first: bool, distance: Distance) {
        if is_first {
            self.missing -= 1;
            self.farthest = self.farthest.max(distance);
        }
    }

    /// Whether all of them are known to be as near as this, so that nothing from here on makes a way shorter.
    fn are_nearer(&self, distance: Distance) -> bool {
        self.missing == 0 && distance >= self.farthest
    }
}

/// Shortest ways from the nearest of some nodes.
#[derive(Clone)]
pub(crate) struct Ways {
    pub(crate) distances: Vec<Distance>,
    /// By node, the last arc of its way.
    last: Vec<Option<u32>>,
    /// By node, where its way begins.
    pub(crate) nearest: Vec<u32>,
}

impl Ways {
    /// The arcs of the way to a node, from its beginning on.
    pub(crate) fn way_to(&self, problem: &GroupProblem, node: u32) -> Vec<u32> {
        let mut arcs = Vec::new();
        let mut node = node;
        while let Some(arc) = self.last[node as usize] {
            arcs.push(arc);
            node = problem.graph().arcs[arc as usize].from;
        }
        arcs.reverse();
        arcs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both kinds of keys put ways in the same order.
    #[test]
    fn keys_compare_alike() {
        let ways = [(0, 3), (1, 5), (1 << 60, 1), (1 << 60, 7), (PACKED_MAX >> 2, 0)];
        let keys = ways.map(|(length, to)| (Packed::at(9).further(length, to), Wide::at(9).further(length, to)));
        for (packed, wide) in keys {
            assert_eq!((packed.distance(), packed.node()), (wide.distance(), wide.node()));
            let next = (packed.further(17, 2), wide.further(17, 2));
            assert_eq!((next.0.distance(), next.0.node()), (next.1.distance(), next.1.node()));
            for (other_packed, other_wide) in keys {
                assert_eq!(packed.cmp(&other_packed), wide.cmp(&other_wide));
            }
            assert!(packed < Packed::NONE && wide < Wide::NONE);
        }
    }
}
