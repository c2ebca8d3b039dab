//! The invariant of the whole method, and how far a change may go before it breaks.
//!
//! For demands D (trees still to be rooted at each node), every set T that holds a rank must be entered by at least
//! the trees rooted outside it: `in(T) ≥ D(V∖T)`. Where every switch is balanced, that is necessary and sufficient for the
//! trees to exist. Switches are removed and trees are taken out step by step, and
//! no step may break it.
//!
//! The article has a formula of its own for each kind of step, with two families of flows for a split (theorem 28).
//! Here one test serves all: a step done in full and found wanting comes with a violated set, whose deficit says
//! exactly by how much the step was too large for *that* set. Doing less by that much and testing again is Newton's
//! method on a minimum of linear functions. It ends with the same exact amount after one to three tests, as a rule.

use std::collections::HashMap;

use canopy_optimize::{ArcId, FlowNetwork, FlowUnit, Stop, Stopped, sweep};

use crate::error::SynthesisError;
use crate::forest::{ASK_INTERVAL, ask};

/// Position of an edge in a [`Condition`].
pub(super) type EdgeIndex = usize;

/// A network with demands, and the machinery to test them.
#[derive(Clone)]
pub(super) struct Condition<'a, C> {
    ends: Vec<(u32, u32)>,
    capacities: Vec<C>,
    /// Where the flow network keeps an edge, and whether as the reverse of an arc.
    arcs: Vec<(ArcId, bool)>,
    edge_of: HashMap<(u32, u32), EdgeIndex>,
    network: FlowNetwork<C>,
    demands: Vec<C>,
    /// Terminals, those that failed most recently first: they are the likeliest to fail again.
    order: Vec<u32>,
    stop: &'a dyn Stop,
    /// Flows asked for so far: a measure of work that does not depend on the machine.
    flows: u64,
}

/// A set that its boundary lets too few trees into.
pub(super) struct Violation<C> {
    /// Membership of T.
    pub(super) set: Vec<bool>,
    /// `D(V∖T) − in(T)`, positive.
    pub(super) deficit: C,
}

/// A change to capacities and demands that can be done to any extent up to a greatest one.
pub(super) trait Step<C> {
    /// How far one would like to go.
    fn amount(&self) -> C;
    /// Goes this much further.
    fn apply(&self, condition: &mut Condition<'_, C>, amount: C);
    /// Goes back by this much.
    fn undo(&self, condition: &mut Condition<'_, C>, amount: C);
    /// By how much one unit of the step lowers `in(T) − D(V∖T)`.
    fn cost(&self, condition: &Condition<'_, C>, set: &[bool]) -> u64;
}

impl<'a, C: FlowUnit> Condition<'a, C> {
    /// A network of these edges, ranks being nodes `0 … rank_count−1`. O(edges).
    pub(super) fn new(
        edges: impl Iterator<Item = (u32, u32, C)>,
        demands: Vec<C>,
        rank_count: u32,
        stop: &'a dyn Stop,
    ) -> Result<Self, Stopped> {
        let node_count = u32::try_from(demands.len()).expect("node counts are u32");
        let mut condition = Self {
            ends: Vec::new(),
            capacities: Vec::new(),
            arcs: Vec::new(),
            edge_of: HashMap::new(),
            network: FlowNetwork::new(node_count),
            demands,
            order: Vec::new(),
            stop,
            flows: 0,
        };
        for ((from, to, capacity), position) in edges.zip(0_u32..) {
            if position % ASK_INTERVAL == 0 {
                ask(stop)?;
            }
            let edge = condition.edge_or_new(from, to);
            condition.raise(edge, capacity);
        }
        ask(stop)?;
        condition.order = condition.network.breadth_first_order();
        condition.order.retain(|&node| node < rank_count);
        Ok(condition)
    }

    /// Fails if it is time to stop.
    pub(super) fn ask(&self) -> Result<(), Stopped> {
        ask(self.stop)
    }

    /// Flows asked for so far.
    pub(super) fn flows(&self) -> u64 {
        self.flows
    }

    /// Number of edges, those of capacity zero included.
    pub(super) fn edge_count(&self) -> usize {
        self.ends.len()
    }

    /// Tail and head.
    pub(super) fn ends(&self, edge: EdgeIndex) -> (u32, u32) {
        self.ends[edge]
    }

    /// Capacity left.
    pub(super) fn capacity(&self, edge: EdgeIndex) -> C {
        self.capacities[edge]
    }

    /// Trees still to be rooted at a node.
    pub(super) fn demand(&self, node: u32) -> C {
        self.demands[node as usize]
    }

    /// All trees still to be rooted.
    pub(super) fn demand_total(&self) -> C {
        self.demands.iter().fold(C::ZERO, |sum, &demand| sum + demand)
    }

    /// Capacity left between two nodes, zero where there is no edge.
    pub(super) fn capacity_between(&self, from: u32, to: u32) -> C {
        self.edge_of.get(&(from, to)).map_or(C::ZERO, |&edge| self.capacities[edge])
    }

    /// The edge between two nodes, added with capacity zero if need be.
    pub(super) fn edge_or_new(&mut self, from: u32, to: u32) -> EdgeIndex {
        if let Some(&edge) = self.edge_of.get(&(from, to)) {
            return edge;
        }
        let arc = match self.edge_of.get(&(to, from)) {
            Some(&opposite) => (self.arcs[opposite].0, true),
            None => (self.network.add_pair(from, to, C::ZERO, C::ZERO), false),
        };
        let edge = self.ends.len();
        self.ends.push((from, to));
        self.capacities.push(C::ZERO);
        self.arcs.push(arc);
        self.edge_of.insert((from, to), edge);
        edge
    }

    /// Adds capacity to an edge.
    pub(super) fn raise(&mut self, edge: EdgeIndex, by: C) {
        self.set(edge, self.capacities[edge] + by);
    }

    /// Takes capacity from an edge, at most what it has.
    pub(super) fn lower(&mut self, edge: EdgeIndex, by: C) {
        self.set(edge, self.capacities[edge] - by);
    }

    /// Gives an edge another capacity.
    pub(super) fn set(&mut self, edge: EdgeIndex, capacity: C) {
        self.capacities[edge] = capacity;
        let (arc, reversed) = self.arcs[edge];
        if reversed {
            self.network.set_pair(arc, self.network.capacity(arc), capacity);
        } else {
            self.network.set_capacity(arc, capacity);
        }
    }

    /// Adds trees to be rooted at a node.
    pub(super) fn raise_demand(&mut self, node: u32, by: C) {
        self.demands[node as usize] += by;
    }

    /// Takes trees from those to be rooted at a node, at most what there are.
    pub(super) fn lower_demand(&mut self, node: u32, by: C) {
        self.demands[node as usize] -= by;
    }

    /// Tests the condition. One flow per rank, most of them local.
    pub(super) fn violation(&mut self) -> Result<Option<Violation<C>>, SynthesisError> {
        self.flows += self.order.len() as u64;
        let Some(set) = sweep(&mut self.network, &self.demands, &self.order, self.stop)? else {
            return Ok(None);
        };
        let failed = self.order.iter().position(|&node| set[node as usize]);
        self.order[..=failed.expect("a violated set holds the rank that failed")].rotate_right(1);
        Ok(Some(self.violated(set)))
    }

    /// Tests the condition where it may have been broken: in the sets that hold one of these terminals, best given in
    /// an order in which neighbours follow each other. One flow for each of them.
    pub(super) fn violation_around(&mut self, terminals: &[u32]) -> Result<Option<Violation<C>>, SynthesisError> {
        self.flows += terminals.len() as u64;
        let set = sweep(&mut self.network, &self.demands, terminals, self.stop)?;
        Ok(set.map(|set| self.violated(set)))
    }

    /// A violated set with its deficit. O(nodes + edges).
    fn violated(&self, set: Vec<bool>) -> Violation<C> {
        let outside = self.demands.iter().zip(&set).filter(|&(_, &inside)| !inside);
        let mut deficit = outside.fold(C::ZERO, |sum, (&demand, _)| sum + demand);
        for (&(from, to), &capacity) in self.ends.iter().zip(&self.capacities) {
            if !set[from as usize] && set[to as usize] {
                deficit -= capacity;
            }
        }
        Violation { set, deficit }
    }

    /// Trees that could still be led from `from` into `to`, beyond those the demands need there: the flow from `from`,
    /// which may give any amount, and from all demands, less the demands; at most `wanted`.
    ///
    /// The minimum over the sets T with `to` but not `from` of `in(T) − D(V∖T)`. If it is less than `wanted`, a set that
    /// attains it comes with it.
    ///
    /// * **Source.** Zhao 2026, theorem 32, for trees that are only roots yet: their nodes s_j need not be built.
    /// * **Cost.** One flow.
    pub(super) fn slack(&mut self, from: u32, to: u32, wanted: C) -> Result<(C, Option<Vec<bool>>), SynthesisError> {
        self.flows += 1;
        let mut total = C::ZERO;
        for (node, &demand) in (0_u32..).zip(&self.demands) {
            self.network.set_supply(node, demand);
            total += demand;
        }
        self.network.set_supply(from, C::MAX);
        let pulled = self.network.pull(to, total + wanted, self.stop)?;
        let tight = (pulled < total + wanted).then(|| self.network.min_cut_sink_side());
        if pulled < total {
            return Err(SynthesisError::Broken { what: format!("no room for the trees left to enter node {to}") });
        }
        Ok((pulled - total, tight))
    }

    /// Applies steps in turn, each in full, as far as the condition allows, then of the next one what it allows.
    /// Returns the number of full steps and the amount of the next one, zero if there is none.
    ///
    /// Breaking the condition can not be mended by later steps, so the longest prefix is found by bisection.
    pub(super) fn apply_longest_prefix<S: Step<C>>(&mut self, steps: &[S]) -> Result<(usize, C), SynthesisError> {
        let mut done = 0;
        let mut size = steps.len();
        while done < steps.len() {
            let block = &steps[done..(done + size).min(steps.len())];
            for (step, place) in block.iter().zip(0_u32..) {
                if place.is_multiple_of(ASK_INTERVAL) {
                    ask(self.stop)?;
                }
                step.apply(self, step.amount());
            }
            let Some(violation) = self.violation()? else {
                done += block.len();
                size = block.len() * 2;
                continue;
            };
            if let [step] = block {
                return Ok((done, self.shrink(step, violation)?));
            }
            for step in block.iter().rev() {
                step.undo(self, step.amount());
            }
            size = block.len() / 2;
        }
        Ok((done, C::ZERO))
    }

    /// Takes back as much of a step, done in full, as violates the condition; returns what stays.
    fn shrink<S: Step<C>>(&mut self, step: &S, first: Violation<C>) -> Result<C, SynthesisError> {
        let mut amount = step.amount();
        let mut violation = Some(first);
        while let Some(Violation { set, deficit }) = violation {
            let cost = u128::from(step.cost(self, &set));
            let excess = deficit.to_u128().checked_div(cost).map(|_| deficit.to_u128().div_ceil(cost));
            let excess = excess.and_then(C::try_from_u128).filter(|&excess| C::ZERO < excess && excess <= amount);
            let Some(excess) = excess else {
                return Err(SynthesisError::Broken { what: "the trees left do not fit the network left".to_owned() });
            };
            step.undo(self, excess);
            amount -= excess;
            // Nothing was done, and the condition held before.
            violation = if amount > C::ZERO { self.violation()? } else { None };
        }
        Ok(amount)
    }
}
