//! Taking away what is in excess, at a rate that is assumed.

use crate::digraph::MergedGraph;
use crate::error::OptimumError;
use crate::flow::{ArcId, FlowNetwork, FlowUnit};
use crate::fraction::Fraction;
use crate::stop::{Meter, Stop, Stopped};
use crate::sweep::{first_violated, set_demands};

/// How an attempt ended. In both cases what is left is balanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The rate assumed is reached.
    Balanced,
    /// Some of what was in excess had to be taken where it was needed. With this many times the time per unit of
    /// weight, the sets in the way would have let it go; `None` if no time would do.
    Stuck {
        /// More than 1.
        times: Option<Fraction>,
    },
}

/// What is taken away first, where several nodes are out of balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    /// From the node of largest number on.
    last_node_first: bool,
    /// Ways that have least beyond their opposite direction first, instead of those that have most: what the latter
    /// lose makes links alike both ways.
    two_way_first: bool,
}

impl Order {
    /// The best one for real networks first.
    pub(super) const ALL: [Self; 4] = [
        Self { last_node_first: false, two_way_first: false },
        Self { last_node_first: true, two_way_first: false },
        Self { last_node_first: false, two_way_first: true },
        Self { last_node_first: true, two_way_first: true },
    ];
}

/// Which imbalance is taken away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// More enters than leaves: paths that end there.
    Entering,
    /// More leaves than enters: paths that start there.
    Leaving,
}

/// A direction of a pair of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    pair: usize,
    /// From the higher to the lower node.
    is_down: bool,
}

/// A path and what was taken from it.
struct Cut<C> {
    ways: Vec<Way>,
    amount: C,
}

/// A network from which capacity is taken while all sets with a terminal can still be entered by all demands outside.
pub(super) struct Attempt<'a, C> {
    network: FlowNetwork<C>,
    arcs: Vec<ArcId>,
    ends: Vec<(u32, u32)>,
    /// Ways out of and into each node.
    leaving: Vec<Vec<Way>>,
    entering: Vec<Vec<Way>>,
    /// By pair: the tight set that a way enters, which must not lose more.
    needed: Vec<[Option<usize>; 2]>,
    tight_sets: Vec<Vec<u32>>,
    /// What enters less what leaves.
    surplus: Vec<C>,
    demands: Vec<C>,
    terminals: &'a [bool],
    preference: Order,
    /// Terminals, those that failed most recently first.
    order: Vec<u32>,
    stop: &'a dyn Stop,
}

impl<'a, C: FlowUnit> Attempt<'a, C> {
    /// The graph with all capacities, in units, times `factor`; the sum of all numbers fits four times over.
    pub(super) fn new(
        graph: &MergedGraph,
        factor: u128,
        demands: Vec<C>,
        terminals: &'a [bool],
        preference: Order,
        stop: &'a dyn Stop,
    ) -> Result<Self, Stopped> {
        let mut meter = Meter::new(stop);
        let node_count = graph.node_count as usize;
        let mut attempt = Self {
            network: FlowNetwork::new(graph.node_count),
            arcs: Vec::new(),
            ends: Vec::new(),
            leaving: vec![Vec::new(); node_count],
            entering: vec![Vec::new(); node_count],
            needed: Vec::new(),
            tight_sets: Vec::new(),
            surplus: vec![C::ZERO; node_count],
            demands,
            terminals,
            preference,
            order: graph.breadth_first_order(&mut meter)?,
            stop,
        };
        attempt.order.retain(|&node| terminals[node as usize]);
        for (pair, (low, high, capacities)) in graph.pairs().enumerate() {
            meter.spend(1)?;
            let [up, down] = capacities
                .map(|capacity| C::try_from_u128(capacity * factor).expect("the sum of all numbers was found to fit"));
            attempt.arcs.push(attempt.network.add_pair(low, high, up, down));
            attempt.ends.push((low, high));
            attempt.needed.push([None; 2]);
            for way in [Way { pair, is_down: false }, Way { pair, is_down: true }] {
                let (from, to) = attempt.ends_of(way);
                attempt.leaving[from as usize].push(way);
                attempt.entering[to as usize].push(way);
                let capacity = attempt.capacity(way);
                attempt.surplus[to as usize] += capacity;
                attempt.surplus[from as usize] -= capacity;
            }
        }
        attempt.sort_ways();
        Ok(attempt)
    }

    /// What is left, from the lower to the higher node of each pair and back.
    pub(super) fn capacities(&self) -> Vec<[u128; 2]> {
        let both = |&arc: &ArcId| [self.network.capacity(arc), self.network.reverse_capacity(arc)].map(C::to_u128);
        self.arcs.iter().map(both).collect()
    }

    /// Takes away all that is in excess.
    pub(super) fn run(&mut self) -> Result<Ending, OptimumError> {
        let mut ending = Ending::Balanced;
        for side in [Side::Leaving, Side::Entering] {
            if ending == Ending::Balanced
                && let Some(node) = self.thin(side)?
            {
                ending = Ending::Stuck { times: self.slowdown(node, side) };
            }
            while let Some(node) = self.first_in_excess(side) {
                self.ask()?;
                // As long as a node has an excess, some path leads on to a terminal or to a node that lacks as much.
                let Some(cut) = self.next_cut(node, side, true) else { return Err(OptimumError::NoBalancedPart) };
                self.take(&cut, cut.amount);
            }
        }
        Ok(ending)
    }

    /// Gives up if that is asked for: before each path, of which a search takes some microseconds to a millisecond.
    fn ask(&self) -> Result<(), Stopped> {
        if self.stop.is_requested() { Err(Stopped) } else { Ok(()) }
    }

    fn sort_ways(&mut self) {
        let excess = |way: &Way| {
            let back = Way { is_down: !way.is_down, ..*way };
            let excess = self.capacity(*way) - self.capacity(back);
            if self.preference.two_way_first { excess } else { C::ZERO - excess }
        };
        let (mut leaving, mut entering) = (self.leaving.clone(), self.entering.clone());
        leaving.iter_mut().chain(&mut entering).for_each(|ways| ways.sort_by_key(excess));
        (self.leaving, self.entering) = (leaving, entering);
    }

    fn ends_of(&self, way: Way) -> (u32, u32) {
        let (low, high) = self.ends[way.pair];
        if way.is_down { (high, low) } else { (low, high) }
    }

    fn capacity(&self, way: Way) -> C {
        let arc = self.arcs[way.pair];
        if way.is_down { self.network.reverse_capacity(arc) } else { self.network.capacity(arc) }
    }

    fn set_capacity(&mut self, way: Way, capacity: C) {
        let arc = self.arcs[way.pair];
        let (up, down) = (self.network.capacity(arc), self.network.reverse_capacity(arc));
        let (up, down) = if way.is_down { (up, capacity) } else { (capacity, down) };
        self.network.set_pair(arc, up, down);
    }

    /// By how much a node is out of balance on this side.
    fn excess(&self, node: usize, side: Side) -> C {
        let surplus = self.surplus[node];
        match side {
            _ if self.terminals[node] => C::ZERO,
            Side::Entering => surplus.max(C::ZERO),
            Side::Leaving => (C::ZERO - surplus).max(C::ZERO),
        }
    }

    fn first_in_excess(&self, side: Side) -> Option<u32> {
        let mut nodes = (0_u32..).zip(&self.surplus).map(|(node, _)| node);
        let is_open = |&node: &u32| self.excess(node as usize, side) > C::ZERO;
        if self.preference.last_node_first { nodes.filter(is_open).last() } else { nodes.find(is_open) }
    }

    /// Takes away the excess of this side as far as nothing is lost; returns a node that keeps some.
    ///
    /// Paths are tested many at a time, and one by one where that fails.
    fn thin(&mut self, side: Side) -> Result<Option<u32>, Stopped> {
        let mut most = 1;
        loop {
            let mut cuts = Vec::new();
            let mut stuck = None;
            while cuts.len() < most
                && let Some(node) = self.first_in_excess(side)
            {
                self.ask()?;
                let Some(cut) = self.next_cut(node, side, false) else {
                    stuck = Some(node);
                    break;
                };
                self.take(&cut, cut.amount);
                cuts.push(cut);
            }
            match (cuts.as_slice(), self.violation()?) {
                ([], _) => return Ok(stuck),
                (_, None) => most = cuts.len() * 2,
                ([cut], Some(violation)) => self.shrink(cut, violation)?,
                (_, Some(_)) => {
                    cuts.iter().rev().for_each(|cut| self.give_back(cut, cut.amount));
                    most = cuts.len() / 2;
                }
            }
        }
    }

    /// A shortest path to this node (from it, for [`Side::Leaving`]) from a terminal or a node that has too much
    /// on the other side, and how much of it both ends and all ways can lose.
    fn next_cut(&self, node: u32, side: Side, may_harm: bool) -> Option<Cut<C>> {
        let opposite = if side == Side::Entering { Side::Leaving } else { Side::Entering };
        let mut came_by: Vec<Option<Way>> = vec![None; self.surplus.len()];
        let mut queue = vec![node];
        let mut next = 0;
        while let Some(&here) = queue.get(next) {
            next += 1;
            let ways = if side == Side::Entering { &self.entering } else { &self.leaving };
            for &way in &ways[here as usize] {
                let (from, to) = self.ends_of(way);
                let there = if side == Side::Entering { from } else { to };
                let is_needed = self.needed[way.pair][usize::from(way.is_down)].is_some() && !may_harm;
                if is_needed || there == node || came_by[there as usize].is_some() || self.capacity(way) == C::ZERO {
                    continue;
                }
                came_by[there as usize] = Some(way);
                let lacking = self.excess(there as usize, opposite);
                if self.terminals[there as usize] || lacking > C::ZERO {
                    let room = if self.terminals[there as usize] { C::MAX } else { lacking };
                    return Some(self.cut_along(&came_by, node, there, side, room));
                }
                queue.push(there);
            }
        }
        None
    }

    fn cut_along(&self, came_by: &[Option<Way>], node: u32, end: u32, side: Side, room: C) -> Cut<C> {
        let mut amount = room.min(self.excess(node as usize, side));
        let mut ways = Vec::new();
        let mut here = end;
        while let Some(way) = came_by[here as usize].filter(|_| here != node) {
            amount = amount.min(self.capacity(way));
            ways.push(way);
            let (from, to) = self.ends_of(way);
            here = if side == Side::Entering { to } else { from };
        }
        Cut { ways, amount }
    }

    fn take(&mut self, cut: &Cut<C>, amount: C) {
        for &way in &cut.ways {
            let (from, to) = self.ends_of(way);
            self.set_capacity(way, self.capacity(way) - amount);
            self.surplus[to as usize] -= amount;
            self.surplus[from as usize] += amount;
        }
    }

    fn give_back(&mut self, cut: &Cut<C>, amount: C) {
        for &way in &cut.ways {
            let (from, to) = self.ends_of(way);
            self.set_capacity(way, self.capacity(way) + amount);
            self.surplus[to as usize] += amount;
            self.surplus[from as usize] -= amount;
        }
    }

    /// A set with a terminal that too little enters, and how much is missing.
    fn violation(&mut self) -> Result<Option<(Vec<bool>, C)>, Stopped> {
        let total = set_demands(&mut self.network, &self.demands);
        let found = first_violated(&mut self.network, total, &self.order, self.stop)?;
        self.network.clear_supplies();
        let Some((position, set)) = found else { return Ok(None) };
        self.order[..=position].rotate_right(1);
        let deficit = self.outside(&set) - self.inflow(&set);
        Ok(Some((set, deficit)))
    }

    fn outside(&self, set: &[bool]) -> C {
        self.demands.iter().zip(set).filter(|&(_, &inside)| !inside).fold(C::ZERO, |sum, (&demand, _)| sum + demand)
    }

    fn inflow(&self, set: &[bool]) -> C {
        self.ways().filter(|&way| self.enters(way, set)).fold(C::ZERO, |sum, way| sum + self.capacity(way))
    }

    fn ways(&self) -> impl Iterator<Item = Way> + use<C> {
        (0..self.arcs.len()).flat_map(|pair| [Way { pair, is_down: false }, Way { pair, is_down: true }])
    }

    fn enters(&self, way: Way, set: &[bool]) -> bool {
        let (from, to) = self.ends_of(way);
        !set[from as usize] && set[to as usize]
    }

    /// Gives back of a path, taken in full, as much as violates the condition, and marks what stood in the way.
    fn shrink(&mut self, cut: &Cut<C>, first: (Vec<bool>, C)) -> Result<(), Stopped> {
        let mut amount = cut.amount;
        let mut violation = Some(first);
        while let Some((set, deficit)) = violation {
            let times = cut.ways.iter().filter(|&&way| self.enters(way, &set)).count();
            // The condition held before, so the path enters the set, and taking less of it mends that.
            let excess = deficit.to_u128().div_ceil(times.max(1) as u128);
            let excess = C::try_from_u128(excess).unwrap_or(amount).min(amount);
            self.give_back(cut, excess);
            amount -= excess;
            violation = if amount > C::ZERO { self.violation()? } else { None };
            if violation.is_none() {
                self.mark_needed(cut, &set);
            }
        }
        Ok(())
    }

    /// No way into a tight set can lose anything any more. A set that is not quite tight, because the path enters it
    /// several times, stops at least this path.
    fn mark_needed(&mut self, cut: &Cut<C>, set: &[bool]) {
        let is_tight = self.inflow(set) == self.outside(set);
        let number = self.tight_sets.len();
        let of_cut = cut.ways.iter().copied().find(|&way| self.enters(way, set));
        let marked: Vec<Way> =
            self.ways().filter(|&way| if is_tight { self.enters(way, set) } else { Some(way) == of_cut }).collect();
        for way in marked {
            self.needed[way.pair][usize::from(way.is_down)].get_or_insert(number);
        }
        self.tight_sets.push((0_u32..).zip(set).filter(|&(_, &inside)| inside).map(|(node, _)| node).collect());
    }

    /// How many times longer everything has to take for the tight sets around what can not lose its excess to let
    /// go of it: they then need less by their weights outside.
    ///
    /// Sets that share a terminal are tight together, and count once.
    fn slowdown(&self, node: u32, side: Side) -> Option<Fraction> {
        let mut is_near = vec![false; self.surplus.len()];
        is_near[node as usize] = true;
        let mut queue = vec![node];
        let mut in_the_way = std::collections::BTreeSet::new();
        let mut excess = C::ZERO;
        while let Some(here) = queue.pop() {
            excess += self.excess(here as usize, side);
            let ways = if side == Side::Entering { &self.entering } else { &self.leaving };
            for &way in ways[here as usize].iter().filter(|&&way| self.capacity(way) > C::ZERO) {
                let (from, to) = self.ends_of(way);
                let there = if side == Side::Entering { from } else { to };
                match self.needed[way.pair][usize::from(way.is_down)] {
                    Some(set) => {
                        in_the_way.insert(set);
                    }
                    None if !std::mem::replace(&mut is_near[there as usize], true) => queue.push(there),
                    None => {}
                }
            }
        }
        let mut joined: Vec<Vec<bool>> = Vec::new();
        for set in in_the_way {
            let mut union = vec![false; self.surplus.len()];
            self.tight_sets[set].iter().for_each(|&node| union[node as usize] = true);
            joined.retain(|other| {
                let shares =
                    other.iter().zip(&union).zip(self.terminals).any(|((a, b), terminal)| *a && *b && *terminal);
                if shares {
                    union.iter_mut().zip(other).for_each(|(inside, &other)| *inside |= other);
                }
                !shares
            });
            joined.push(union);
        }
        let needed: u128 = joined.iter().map(|set| self.outside(set).to_u128()).sum();
        Fraction::new(needed, needed.checked_sub(excess.to_u128())?)
    }
}
