//! Cheapest trees over the members of a group, in the distances between them.

use std::cell::OnceCell;

use canopy_optimize::Stop;

use crate::groups::joined::Joined;
use crate::groups::patience::Asking;
use crate::groups::problem::{GroupProblem, GroupsError};
use crate::groups::ways::{Distance, NO_WAY, Passing, Ways, plus};

/// What passes from one member to another, and the arcs that it takes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// The member that sends.
    pub from: u32,
    /// The member that receives.
    pub to: u32,
    /// The arcs in between, in order.
    pub arcs: Vec<u32>,
}

/// The cheapest tree over all members, where lengths are the same both ways: its hops, in either direction.
///
/// * **Source.** Mehlhorn 1988, *A faster approximation algorithm for the Steiner problem in graphs*, Lemma 1: a
///   minimum spanning tree of the distances needs only those between members whose regions of nearest nodes touch.
/// * **Errors.** [`GroupsError::NoWay`], stopped.
/// * **Cost.** O((nodes + arcs) log nodes).
pub(crate) fn spanning_tree(
    problem: &GroupProblem,
    group: usize,
    lengths: &[u128],
    stop: &dyn Stop,
) -> Result<(u128, Vec<Hop>), GroupsError> {
    let members = &problem.groups()[group].members;
    let mut asking = Asking::of(stop);
    let passing = Passing::of(problem, members, stop);
    let ways = passing.ways_from(members, lengths)?;
    let mut touching: Vec<(Distance, u32)> = Vec::new();
    for (number, arc) in (0_u32..).zip(&problem.graph().arcs) {
        let (near, far) = (ways.distances[arc.from as usize], ways.distances[arc.to as usize]);
        let is_between = ways.nearest[arc.from as usize] != ways.nearest[arc.to as usize];
        if near != NO_WAY && far != NO_WAY && is_between && passing.passes(arc.from) && passing.passes(arc.to) {
            let near = plus(near, lengths[number as usize]);
            touching.push(((near.0.saturating_add(far.0), near.1.saturating_add(far.1)), number));
        }
    }
    touching.sort_unstable();
    let mut joined = Joined::new(problem.graph().node_count as usize);
    let (mut cost, mut hops) = (0_u128, Vec::with_capacity(members.len() - 1));
    for (distance, number) in touching {
        let arc = problem.graph().arcs[number as usize];
        let (from, to) = (ways.nearest[arc.from as usize], ways.nearest[arc.to as usize]);
        if joined.join(from as usize, to as usize) {
            cost = cost.saturating_add(distance.0);
            hops.push(Hop { from, to, arcs: between(problem, &ways, number) });
            asking.before(16 * hops.last().map_or(0, |hop| hop.arcs.len()))?;
        }
    }
    match members.iter().find(|&&member| joined.of(member as usize) != joined.of(members[0] as usize)) {
        Some(&other) => Err(GroupsError::NoWay { group, from: members[0], to: other }),
        None => Ok((cost, hops)),
    }
}

/// The arcs of the way through an arc between two regions; where it enters the second, lengths are the same backwards.
fn between(problem: &GroupProblem, ways: &Ways, number: u32) -> Vec<u32> {
    let arc = problem.graph().arcs[number as usize];
    let mut arcs = ways.way_to(problem, arc.from);
    arcs.push(number);
    let back = ways.way_to(problem, arc.to);
    arcs.extend(back.into_iter().rev().filter_map(|arc| problem.reverse(arc)));
    arcs
}

/// All ways between members, found where they are asked for.
pub(crate) struct Closure<'a> {
    problem: &'a GroupProblem,
    group: usize,
    stop: &'a dyn Stop,
    lengths: &'a [u128],
    passing: Passing<'a>,
    /// By member, the ways from it.
    ways: Vec<OnceCell<Ways>>,
    members: &'a [u32],
}

impl<'a> Closure<'a> {
    /// A search of the network follows for each member from which distances are asked for.
    pub(crate) fn of(problem: &'a GroupProblem, group: usize, lengths: &'a [u128], stop: &'a dyn Stop) -> Self {
        let members = &problem.groups()[group].members;
        let ways = vec![OnceCell::new(); members.len()];
        Self { problem, group, stop, lengths, passing: Passing::of(problem, members, stop), ways, members }
    }

    fn ways(&self, from: usize) -> Result<&Ways, GroupsError> {
        if let Some(known) = self.ways[from].get() {
            return Ok(known);
        }
        let found = self.passing.ways_to_members(self.members[from], self.lengths)?;
        Ok(self.ways[from].get_or_init(|| found))
    }

    /// From one member, by position, to another.
    ///
    /// # Errors
    /// Stopped.
    pub(crate) fn distance(&self, from: usize, to: usize) -> Result<Distance, GroupsError> {
        Ok(self.ways(from)?.distances[self.members[to] as usize])
    }

    /// # Errors
    /// Stopped.
    pub(crate) fn hop(&self, from: usize, to: usize) -> Result<Hop, GroupsError> {
        let arcs = self.ways(from)?.way_to(self.problem, self.members[to]);
        Ok(Hop { from: self.members[from], to: self.members[to], arcs })
    }

    /// The cheapest tree away from a root, or `inwards` towards it: its cost and its hops.
    ///
    /// # Errors
    /// [`GroupsError::NoWay`], stopped.
    pub(crate) fn arborescence(&self, root: usize, inwards: bool) -> Result<(u128, Vec<Hop>), GroupsError> {
        let count = self.members.len();
        let distance = |from: usize, to: usize| if inwards { self.distance(to, from) } else { self.distance(from, to) };
        for member in (0..count).filter(|&member| member != root) {
            if distance(root, member)? == NO_WAY {
                let mut ends = [self.members[root], self.members[member]];
                if inwards {
                    ends.reverse();
                }
                let [from, to] = ends;
                return Err(GroupsError::NoWay { group: self.group, from, to });
            }
        }
        let parents = if count == 2 {
            vec![root; 2]
        } else {
            let row = |from: usize| (0..count).map(|to| distance(from, to)).collect::<Result<Vec<_>, _>>();
            let costs = (0..count).map(row).collect::<Result<Vec<_>, _>>()?;
            cheapest_parents(costs, root, &mut Asking::of(self.stop))?
        };
        let mut cost = 0_u128;
        let mut hops = Vec::with_capacity(count - 1);
        for (child, parent) in parents.into_iter().enumerate().filter(|&(child, _)| child != root) {
            cost = cost.saturating_add(distance(parent, child)?.0);
            let hop = if inwards { self.hop(child, parent)? } else { self.hop(parent, child)? };
            hops.push(hop);
        }
        Ok((cost, hops))
    }
}

/// By node, its parent in the cheapest tree away from the root; that of the root is itself.
///
/// * **Source.** Chu and Liu 1965, Edmonds 1967.
/// * **In.** `costs[from][to]`; everything can be reached from the root.
/// * **Errors.** Stopped.
/// * **Cost.** O(nodes²) for each cycle that is contracted.
fn cheapest_parents(
    costs: Vec<Vec<Distance>>,
    root: usize,
    asking: &mut Asking<'_>,
) -> Result<Vec<usize>, GroupsError> {
    let count = costs.len();
    let mut parents: Vec<usize> = vec![root; count];
    for node in (0..count).filter(|&node| node != root) {
        asking.before(8 * count)?;
        let others = (0..count).filter(|&other| other != node);
        parents[node] = others.min_by_key(|&other| costs[other][node]).expect("there are two nodes at least");
    }
    let Some(cycle) = cycle(&parents, root) else { return Ok(parents) };
    // Nodes outside keep their order and the cycle is the last one.
    let mut in_cycle = vec![false; count];
    cycle.iter().for_each(|&node| in_cycle[node] = true);
    let outside: Vec<usize> = (0..count).filter(|&node| !in_cycle[node]).collect();
    let last = outside.len();
    let mut smaller = vec![vec![NO_WAY; last + 1]; last + 1];
    let (mut entered, mut left) = (vec![0; last], vec![0; last]);
    for (number, &node) in outside.iter().enumerate() {
        asking.before(8 * count)?;
        for (other_number, &other) in outside.iter().enumerate() {
            smaller[number][other_number] = costs[node][other];
        }
        // Entering at a node saves the arc of the cycle that leads to it.
        let saved = |inside: usize| minus(costs[node][inside], costs[parents[inside]][inside]);
        let enters = cycle.iter().copied().min_by_key(|&inside| saved(inside)).expect("a cycle has nodes");
        (entered[number], smaller[number][last]) = (enters, saved(enters));
        let leaves = cycle.iter().copied().min_by_key(|&inside| costs[inside][node]).expect("a cycle has nodes");
        (left[number], smaller[last][number]) = (leaves, costs[leaves][node]);
    }
    drop(costs);
    let place = outside.iter().position(|&node| node == root).expect("the root is in no cycle");
    let found = cheapest_parents(smaller, place, asking)?;
    for (number, &node) in outside.iter().enumerate().filter(|&(_, &node)| node != root) {
        parents[node] = if found[number] == last { left[number] } else { outside[found[number]] };
    }
    let from = found[last];
    parents[entered[from]] = outside[from];
    Ok(parents)
}

/// What is more than the cheapest; no way stays none.
fn minus(distance: Distance, least: Distance) -> Distance {
    if distance == NO_WAY {
        return NO_WAY;
    }
    // A shorter way of more arcs counts as none less: arcs only decide between equal lengths.
    (distance.0.saturating_sub(least.0), distance.1.saturating_sub(least.1))
}

/// A cycle of parents, if there is one.
fn cycle(parents: &[usize], root: usize) -> Option<Vec<usize>> {
    let mut seen = vec![usize::MAX; parents.len()];
    for start in 0..parents.len() {
        let mut node = start;
        while node != root && seen[node] == usize::MAX {
            seen[node] = start;
            node = parents[node];
        }
        if node != root && seen[node] == start {
            let mut cycle = vec![node];
            let mut other = parents[node];
            while other != node {
                cycle.push(other);
                other = parents[other];
            }
            return Some(cycle);
        }
    }
    None
}
