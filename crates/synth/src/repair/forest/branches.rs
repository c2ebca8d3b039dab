//! Branches: where they can be hung, and hanging them there.

use canopy_schedule::{Action, RouteIndex};
use canopy_topology::{LinkIndex, NodeIndex, Rank};

use crate::reach::ask;
use crate::repair::RepairError;
use crate::repair::balance::STEPS_LOG2_AT_FIRST;
use crate::repair::finder::{FreeLinks, Visit, Way};
use crate::repair::forest::Trees;
use crate::repair::tree::{Tree, Up, Ways};

/// Where a rank of a tree is while parts of it are cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// In the branch at hand.
    Branch,
    /// With the root.
    Root,
    /// In another branch.
    Elsewhere,
}

/// What hanging a branch did to the loads: chunks that left a route, or came to it.
pub(super) type Changes = Vec<(RouteIndex, u64, bool)>;

impl Trees<'_> {
    /// Hangs up all branches that are cut off: as long as that is possible over links that are then no busier than the
    /// busiest is before; over any, else.
    pub(super) fn join(&mut self) -> Result<(), RepairError> {
        self.loads.aim_at(self.loads.worst(), STEPS_LOG2_AT_FIRST);
        for phase in 0..self.phases.len() {
            for entry in 0..self.phases[phase].entries.len() {
                let Some(mut tree) = self.phases[phase].entries[entry].changed.take() else { continue };
                ask(self.stop)?;
                self.join_tree(phase, &mut tree)?;
                self.phases[phase].entries[entry].changed = Some(tree);
            }
        }
        Ok(())
    }

    fn join_tree(&mut self, phase: usize, tree: &mut Tree) -> Result<(), RepairError> {
        let mut tops = tree.tops();
        while !tops.is_empty() {
            let before = tops.len();
            let mut waiting = Vec::new();
            for top in tops {
                let sides = sides(tree, top);
                self.loads.heed_limits(true);
                let mut way = self.way_for(phase, tree, top, i128::MAX, &sides);
                self.loads.heed_limits(false);
                if way.is_none() {
                    way = self.way_for(phase, tree, top, i128::MAX, &sides);
                }
                match way {
                    Some(way) => drop(self.hang(phase, tree, &way)?),
                    None => waiting.push(top),
                }
            }
            if waiting.len() == before {
                // No branch can be turned around so that it can be entered: a part of one may do without.
                waiting = self.join_a_part(phase, tree, waiting)?;
            }
            tops = waiting;
        }
        match tree.branch(tree.root).len() == tree.ups.len() {
            true => Ok(()),
            false => Err(RepairError::Malformed { what: "a tree goes in a circle" }),
        }
    }

    /// Hangs up a part of a branch that is entered from above.
    fn join_a_part(&mut self, phase: usize, tree: &mut Tree, mut tops: Vec<u32>) -> Result<Vec<u32>, RepairError> {
        for &top in &tops {
            let sides = sides(tree, top);
            let starts: Vec<(NodeIndex, i128)> =
                tree.branch(top).into_iter().map(|rank| (Rank::new(rank).node(), 0)).collect();
            if let Some(way) = self.search(phase, tree.weight, &starts, i128::MAX, &sides) {
                let rank = way.start.number();
                if let Some(up) = tree.ups[rank as usize].take() {
                    for (route, count) in up.ways.parts(tree.weight) {
                        self.loads.remove(&self.routes[route.index()], count);
                    }
                } else {
                    tops.retain(|&other| other != top);
                }
                self.hang(phase, tree, &way)?;
                return Ok(tops);
            }
        }
        Err(RepairError::Malformed { what: "a tree cannot be joined though its ranks reach each other" })
    }

    /// The cheapest way from a rank of a branch to a rank that is with the root, turning the branch around included, if it
    /// costs less than `most`.
    pub(super) fn way_for(&mut self, phase: usize, tree: &Tree, top: u32, most: i128, sides: &Sides) -> Option<Way> {
        let mut costs: Vec<Option<i128>> = vec![None; tree.ups.len()];
        costs[top as usize] = Some(0);
        let mut starts = Vec::new();
        for &rank in &sides.branch {
            if let Some(up) = tree.ups[rank as usize].as_ref().filter(|_| rank != top) {
                let turned =
                    costs[up.parent as usize].and_then(|cost| self.cost_of_turning(&up.ways, tree.weight, cost));
                costs[rank as usize] = turned;
            }
            starts.extend(costs[rank as usize].map(|cost| (Rank::new(rank).node(), cost)));
        }
        self.search(phase, tree.weight, &starts, most, sides)
    }

    fn search(
        &mut self,
        phase: usize,
        weight: u64,
        starts: &[(NodeIndex, i128)],
        most: i128,
        sides: &Sides,
    ) -> Option<Way> {
        let (left, network) = (self.of.remainder.left, &self.phases[phase].network);
        let visit = |node: NodeIndex| match left.rank_of(node).map(|rank| sides.side[rank.index()]) {
            None => Visit::Pass,
            Some(Side::Root) => Visit::End,
            Some(Side::Branch | Side::Elsewhere) => Visit::Avoid,
        };
        self.finder.find(FreeLinks { network, loads: &self.loads, count: weight }, starts, most, visit)
    }

    /// What it costs, on top of `cost`, if the chunks of a hop go the other way; none if they cannot.
    fn cost_of_turning(&self, ways: &Ways, weight: u64, cost: i128) -> Option<i128> {
        let mut sum = cost;
        for (route, count) in ways.parts(weight) {
            for link in &self.routes[route.index()] {
                let back = self.opposites[link.index()].filter(|&back| self.loads.has_room(back, count))?;
                sum += self.loads.price(back, count) - self.loads.relief(*link, count);
            }
        }
        Some(sum)
    }

    /// Hangs the branch that a way starts in, turned around so that the start is its top.
    pub(super) fn hang(&mut self, phase: usize, tree: &mut Tree, way: &Way) -> Result<Changes, RepairError> {
        let mut links = way.links.clone();
        if self.phases[phase].action == Action::Copy {
            links.reverse();
        }
        let mut changes = Vec::new();
        let mut rank = way.start.number();
        let mut next = Up { parent: way.end.number(), ways: Ways::One(self.route(links)) };
        loop {
            for (route, count) in next.ways.parts(tree.weight) {
                self.loads.add(&self.routes[route.index()], count)?;
                changes.push((route, count, true));
            }
            let Some(old) = tree.ups[rank as usize].replace(next) else { return Ok(changes) };
            let mut turned = Vec::new();
            for (route, count) in old.ways.parts(tree.weight) {
                self.loads.remove(&self.routes[route.index()], count);
                changes.push((route, count, false));
                let back =
                    self.turned(route).ok_or(RepairError::Malformed { what: "a hop that leads one way was turned" })?;
                turned.push((back, count));
            }
            next = Up { parent: rank, ways: Ways::of(turned) };
            rank = old.parent;
        }
    }

    /// The same route the other way.
    fn turned(&mut self, route: RouteIndex) -> Option<RouteIndex> {
        let links = self.routes[route.index()].iter().rev();
        let back = links.map(|link| self.opposites[link.index()]).collect::<Option<Vec<LinkIndex>>>()?;
        Some(self.route(back))
    }
}

/// The ranks of a tree by where they are, and those of the branch at hand, top first.
pub(super) struct Sides {
    side: Vec<Side>,
    pub(super) branch: Vec<u32>,
}

/// Where the ranks of a tree are with the branch of `top` cut off. O(ranks).
pub(super) fn sides(tree: &Tree, top: u32) -> Sides {
    let mut side = vec![Side::Elsewhere; tree.ups.len()];
    let children = tree.children();
    children.branch(tree.root).into_iter().for_each(|rank| side[rank as usize] = Side::Root);
    let branch = children.branch(top);
    branch.iter().for_each(|&rank| side[rank as usize] = Side::Branch);
    Sides { side, branch }
}
