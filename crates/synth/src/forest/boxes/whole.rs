//! Trees of machines of boxes that stay whole: each enters every other box once, at one member that sends it to the rest.
//!
//! Where demands differ, flows divide a tree wherever one of them happens to be divided. Trees that are laid one after the
//! other, each link to the member that has most room for it, heavy trees first, need to be divided only where nobody has
//! room for all of one, which comes late and seldom.

use std::cmp::Reverse;

use canopy_optimize::Stop;

use super::layout::Layout;
use super::{BoxTrees, Edges};
use crate::error::SynthesisError;
use crate::forest::ask;
use crate::parts::HOPS_MAX;

/// Hops from the root after which a member no longer passes a tree on to other boxes: two more, and all are reached.
const RELAY_DEPTH_MAX: u32 = 3;

/// Different trees per member, at most, on average.
const TREES_PER_MEMBER: u64 = 4;

/// Trees for the demands of all members; `None` where boxes cannot be served from one member each, or a tree finds no way
/// into a box.
///
/// A box whose members can send all of its trees to every other box does so; one with more trees has some of them passed on
/// by boxes with fewer. None passes on so much that it could not send its own.
///
/// * **Source.** Our own. **Errors.** Stopped. **Cost.** O(members) for every box of every tree.
pub(super) fn whole_trees(layout: &Layout, stop: &dyn Stop) -> Result<Option<BoxTrees>, SynthesisError> {
    let Some(mut budget) = PortBudget::new(layout) else { return Ok(None) };
    let mut roots: Vec<usize> = (0..layout.members.len()).filter(|&root| layout.members[root].demand > 0).collect();
    roots.sort_by_key(|&root| (Reverse(layout.members[root].demand), root));
    let member_count = layout.members.len() as u64;
    let tree_count_max = (TREES_PER_MEMBER * member_count).min(HOPS_MAX / member_count);
    let mut finished: Vec<Growth> = Vec::new();
    for root in roots {
        let mut waiting = vec![Growth::new(layout, root)];
        while let Some(mut growth) = waiting.pop() {
            while let Some(to) = budget.next_box(&growth) {
                ask(stop)?;
                let Some(Way { sender, entry, weight }) = budget.way(&growth, to) else { return Ok(None) };
                if weight < growth.weight {
                    waiting.push(Growth { weight: growth.weight - weight, ..growth.clone() });
                    growth.weight = weight;
                }
                if !budget.enter(&mut growth, to, (sender, entry)) {
                    return Ok(None);
                }
            }
            finished.push(growth);
            if (finished.len() + waiting.len()) as u64 > tree_count_max {
                return Ok(None);
            }
        }
    }
    finished.sort_by_key(|growth| (growth.root, Reverse(growth.weight)));
    let mut edges = Edges::default();
    let trees = finished.into_iter().map(|growth| edges.whole(&growth.hops, growth.root, growth.weight)).collect();
    Ok(Some(BoxTrees { trees, edges: edges.list }))
}

/// Equal trees on their way.
#[derive(Clone)]
struct Growth {
    root: usize,
    weight: i64,
    /// Tail and head.
    hops: Vec<(usize, usize)>,
    /// By member: hops from the root, if it is reached.
    depths: Vec<Option<u32>>,
    /// By box, whether it is.
    is_entered: Vec<bool>,
}

impl Growth {
    /// From the root to its own box.
    fn new(layout: &Layout, root: usize) -> Self {
        let home = layout.members[root].in_box;
        let mut growth = Self {
            root,
            weight: layout.members[root].demand,
            hops: Vec::with_capacity(layout.members.len() - 1),
            depths: vec![None; layout.members.len()],
            is_entered: vec![false; layout.boxes.len()],
        };
        growth.depths[root] = Some(0);
        growth.spread(layout, root, home);
        growth
    }

    /// From a member that is reached to all others of its box.
    fn spread(&mut self, layout: &Layout, from: usize, in_box: usize) {
        self.is_entered[in_box] = true;
        for &member in layout.boxes[in_box].iter().filter(|&&member| member != from) {
            self.hop(from, member);
        }
    }

    fn hop(&mut self, from: usize, to: usize) {
        self.hops.push((from, to));
        self.depths[to] = self.depths[from].map(|depth| depth + 1);
    }
}

/// From one box into another.
struct Way {
    sender: usize,
    entry: usize,
    /// How many of the equal trees can go there.
    weight: i64,
}

/// What ports have left.
struct PortBudget<'a> {
    layout: &'a Layout,
    /// By member: to its switch outside and from it, to its box and from it.
    sends: Vec<i64>,
    receives: Vec<i64>,
    inner_sends: Vec<i64>,
    inner_receives: Vec<i64>,
    /// By box: what its members can send to other boxes beyond what those still need of its own trees.
    surplus: Vec<i64>,
}

impl<'a> PortBudget<'a> {
    /// What is left once all roots have sent to their own boxes; `None` if they cannot.
    fn new(layout: &'a Layout) -> Option<Self> {
        let members = &layout.members;
        let others = i64::try_from(layout.boxes.len() - 1).expect("members are counted in u32");
        let surplus = layout.boxes.iter().zip(&layout.demands).map(|(of_box, demand)| {
            of_box.iter().map(|&member| members[member].outer.sends).sum::<i64>() - others * demand
        });
        let of_others = |member: usize| layout.demands[members[member].in_box] - members[member].demand;
        let budget = Self {
            layout,
            sends: members.iter().map(|member| member.outer.sends).collect(),
            receives: members.iter().map(|member| member.outer.receives).collect(),
            inner_sends: (0..members.len()).map(|member| layout.spare(member)).collect(),
            inner_receives: (0..members.len())
                .map(|member| members[member].inner.receives - of_others(member))
                .collect(),
            surplus: surplus.collect(),
        };
        budget.inner_sends.iter().chain(&budget.inner_receives).all(|&left| left >= 0).then_some(budget)
    }

    /// The box to enter next: those that can best pass a tree on come first.
    fn next_box(&self, growth: &Growth) -> Option<usize> {
        let open = (0..self.surplus.len()).filter(|&in_box| !growth.is_entered[in_box]);
        open.max_by_key(|&in_box| (self.surplus[in_box], Reverse(in_box)))
    }

    /// Who sends a tree to a box, who of that receives it, and how many of the equal ones.
    fn way(&self, growth: &Growth, to: usize) -> Option<Way> {
        let others = i64::try_from(self.layout.boxes[to].len() - 1).expect("members are counted in u32");
        let room = |entry: usize| match others {
            0 => self.receives[entry],
            _ => self.receives[entry].min(self.inner_sends[entry] / others),
        };
        let mut best: Option<((i64, i64), Way)> = None;
        // Of the switch at hand: who sends over it, and how much.
        let mut known = None;
        for &entry in &self.layout.boxes[to] {
            let (trunk, room) = (self.layout.members[entry].trunk, room(entry));
            let Some(trunk) = trunk.filter(|_| room > 0) else { continue };
            let sender = match known {
                Some((of, sender)) if of == trunk => sender,
                _ => self.sender(growth, trunk),
            };
            known = Some((trunk, sender));
            let Some((sender, left)) = sender else { continue };
            let (amount, least) = (growth.weight.min(room).min(left), room.min(left));
            if best.as_ref().is_none_or(|&(most, _)| (amount, least) > most) {
                best = Some(((amount, least), Way { sender, entry, weight: amount }));
            }
        }
        best.map(|(_, way)| way)
    }

    /// Who sends over a switch, and as how many trees as they can: a member of the root's box unless that has too much to
    /// send, and another box can.
    fn sender(&self, growth: &Growth, trunk: usize) -> Option<(usize, i64)> {
        let home = self.layout.members[growth.root].in_box;
        let members = self.layout.trunks[trunk].get(&home);
        let of_home = members.and_then(|members| self.of_home(growth, members));
        let is_enough = |&(_, left): &(usize, i64)| left >= growth.weight;
        if self.surplus[home] >= 0 && of_home.is_some_and(|sender| is_enough(&sender)) {
            return of_home;
        }
        let relay = self.relay(growth, trunk);
        relay.filter(is_enough).or(of_home.filter(is_enough)).or(of_home).or(relay)
    }

    /// The root if it can, else the one with most left.
    fn of_home(&self, growth: &Growth, members: &[usize]) -> Option<(usize, i64)> {
        let left = |member: usize| (member, self.sends[member]);
        if members.contains(&growth.root) && self.sends[growth.root] >= growth.weight {
            return Some(left(growth.root));
        }
        let most = members.iter().copied().max_by_key(|&member| (self.sends[member], Reverse(member)));
        most.filter(|&member| self.sends[member] > 0).map(left)
    }

    /// Of those in boxes that can do without, the nearest to the root with room for all, and most of it.
    fn relay(&self, growth: &Growth, trunk: usize) -> Option<(usize, i64)> {
        let home = self.layout.members[growth.root].in_box;
        let boxes = self.layout.trunks[trunk]
            .iter()
            .filter(|&(&in_box, _)| in_box != home && growth.is_entered[in_box] && self.surplus[in_box] > 0);
        let members = boxes.flat_map(|(&in_box, members)| members.iter().map(move |&member| (in_box, member)));
        let rating = |(in_box, member): (usize, usize)| {
            let left = self.sends[member].min(self.surplus[in_box]);
            let is_near = growth.depths[member].is_some_and(|depth| depth <= RELAY_DEPTH_MAX);
            (left > 0 && is_near)
                .then(|| (left >= growth.weight, Reverse(growth.depths[member]), left, Reverse(member)))
        };
        members.filter_map(rating).max().map(|(.., left, Reverse(member))| (member, left))
    }

    /// Sends a tree to a box, and on to all of it. Says whether there was room.
    fn enter(&mut self, growth: &mut Growth, to: usize, (sender, entry): (usize, usize)) -> bool {
        let (home, from) = (self.layout.members[growth.root].in_box, self.layout.members[sender].in_box);
        self.sends[sender] -= growth.weight;
        self.receives[entry] -= growth.weight;
        // What others send for a box it need not send itself.
        self.surplus[home] += growth.weight;
        self.surplus[from] -= growth.weight;
        growth.hop(sender, entry);
        growth.spread(self.layout, entry, to);
        for &member in self.layout.boxes[to].iter().filter(|&&member| member != entry) {
            self.inner_sends[entry] -= growth.weight;
            self.inner_receives[member] -= growth.weight;
            if self.inner_receives[member] < 0 {
                return false;
            }
        }
        true
    }
}
