//! Directed graphs with integer capacities, and the form on which kernels work.

use num_integer::Integer;

use crate::error::{DigraphError, OptimumError};
use crate::flow::{FlowNetwork, FlowUnit};
use crate::stop::{Meter, Stopped};

/// A directed arc with a capacity, in any unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arc {
    /// Tail.
    pub from: u32,
    /// Head.
    pub to: u32,
    /// Capacity; an arc of capacity zero counts for nothing.
    pub capacity: u64,
}

impl Arc {
    /// Whether it can carry anything anywhere.
    pub(crate) const fn counts(&self) -> bool {
        self.capacity > 0 && self.from != self.to
    }
}

/// A directed graph. Parallel arcs add up, loops and arcs of capacity zero count for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digraph {
    /// Nodes are `0 … node_count−1`.
    pub node_count: u32,
    /// Arcs in any order.
    pub arcs: Vec<Arc>,
}

/// All arcs between two nodes.
#[derive(Clone, Copy, Debug)]
struct Pair {
    low: u32,
    high: u32,
    /// Capacity from `low` to `high`, in units.
    up: u128,
    /// Capacity from `high` to `low`, in units.
    down: u128,
}

/// A [`Digraph`] with the arcs between two nodes merged and all capacities divided by their greatest common divisor:
/// real networks have capacities such as 25 and 300 GB/s, and 1 and 12 keep products short.
#[derive(Clone, Debug)]
pub(crate) struct MergedGraph {
    pub(crate) node_count: u32,
    pairs: Vec<Pair>,
    /// The capacity that one unit stands for, at least 1.
    pub(crate) unit: u128,
}

impl MergedGraph {
    /// O(nodes + arcs log arcs). Sums fit `u128`: fewer than 2⁶⁴ arcs of less than 2⁶⁴ each.
    pub(crate) fn new(graph: &Digraph, meter: &mut Meter<'_>) -> Result<Self, OptimumError> {
        let mut pairs = grouped_by_low(graph, meter)?;
        for group in pairs.chunk_by_mut(|first, second| first.low == second.low) {
            meter.spend_many(group.len())?;
            group.sort_unstable_by_key(|pair| pair.high);
        }
        pairs.dedup_by(|next, kept| {
            let same = (next.low, next.high) == (kept.low, kept.high);
            if same {
                kept.up += next.up;
                kept.down += next.down;
            }
            same
        });
        pairs.shrink_to_fit();
        let mut unit: u128 = 0;
        for pair in &pairs {
            meter.spend(1)?;
            for capacity in [pair.up, pair.down] {
                if unit == 0 || !capacity.is_multiple_of(unit) {
                    unit = unit.gcd(&capacity);
                }
            }
        }
        let unit = unit.max(1);
        for pair in pairs.iter_mut().filter(|_| unit > 1) {
            meter.spend(1)?;
            (pair.up, pair.down) = (pair.up / unit, pair.down / unit);
        }
        Ok(Self { node_count: graph.node_count, pairs, unit })
    }

    /// The same graph with every arc turned around.
    #[must_use]
    pub(crate) fn transposed(mut self) -> Self {
        for pair in &mut self.pairs {
            std::mem::swap(&mut pair.up, &mut pair.down);
        }
        self
    }

    /// Neighbours with the capacities from the lower to the higher node and back, in units; sorted.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (u32, u32, [u128; 2])> {
        self.pairs.iter().map(|pair| (pair.low, pair.high, [pair.up, pair.down]))
    }

    /// The arcs that have a capacity, pair by pair: both ends and the capacity in units.
    pub(crate) fn ways(&self) -> impl Iterator<Item = (u32, u32, u128)> {
        let both = self.pairs().flat_map(|(low, high, [up, down])| [(low, high, up), (high, low, down)]);
        both.filter(|&(.., capacity)| capacity > 0)
    }

    /// The same graph with other capacities, in the order of [`pairs`](Self::pairs), whatever its unit is.
    #[must_use]
    pub(crate) fn with_capacities(&self, capacities: &[[u128; 2]]) -> Self {
        let unit = capacities.as_flattened().iter().fold(0, |unit: u128, capacity| unit.gcd(capacity)).max(1);
        let pairs = self.pairs.iter().zip(capacities);
        let pairs = pairs.map(|(&pair, &[up, down])| Pair { up: up / unit, down: down / unit, ..pair });
        Self { node_count: self.node_count, pairs: pairs.collect(), unit }
    }

    /// The graph in which each pair of nodes is joined by the sum of both directions, either way.
    #[must_use]
    pub(crate) fn undirected(mut self) -> Self {
        for pair in &mut self.pairs {
            let sum = pair.up + pair.down;
            (pair.up, pair.down) = (sum, sum);
        }
        self
    }

    /// The links of an undirected graph in order: both ends, the lower one first, and the capacity in units.
    pub(crate) fn links(&self) -> impl Iterator<Item = (u32, u32, u128)> {
        self.pairs.iter().map(|pair| (pair.low, pair.high, pair.up))
    }

    /// Capacity that enters each node, in units.
    pub(crate) fn entering_each(&self) -> Vec<u128> {
        let mut entering = vec![0; self.node_count as usize];
        for pair in &self.pairs {
            entering[pair.low as usize] += pair.down;
            entering[pair.high as usize] += pair.up;
        }
        entering
    }

    /// Capacity that enters a set of nodes, in units.
    pub(crate) fn entering(&self, set: &[bool]) -> u128 {
        let into = |pair: &Pair| match (set[pair.low as usize], set[pair.high as usize]) {
            (false, true) => pair.up,
            (true, false) => pair.down,
            _ => 0,
        };
        self.pairs.iter().map(into).sum()
    }

    /// See [`FlowNetwork::breadth_first_order`].
    pub(crate) fn breadth_first_order(&self, meter: &mut Meter<'_>) -> Result<Vec<u32>, Stopped> {
        let mut network = FlowNetwork::<i64>::new(self.node_count);
        for pair in &self.pairs {
            meter.spend(1)?;
            network.add_arc(pair.low, pair.high, 0);
        }
        network.breadth_first_order_until(meter)
    }

    /// [`network`](Self::network), if all capacities together fit `C` too: then no flow reaches `C::MAX`, and a limit of
    /// that much is none.
    pub(crate) fn network_without_limits<C: FlowUnit>(
        &self,
        factor: u128,
        meter: &mut Meter<'_>,
    ) -> Result<Option<FlowNetwork<C>>, Stopped> {
        let total: u128 = self.pairs.iter().map(|pair| pair.up + pair.down).sum();
        let beyond = total.checked_mul(factor).and_then(|total| total.checked_add(1));
        if beyond.and_then(C::try_from_u128).is_none() { Ok(None) } else { self.network(factor, meter) }
    }

    /// A network whose capacities are those of the graph times `factor`; `None` when they do not fit `C`.
    pub(crate) fn network<C: FlowUnit>(
        &self,
        factor: u128,
        meter: &mut Meter<'_>,
    ) -> Result<Option<FlowNetwork<C>>, Stopped> {
        // The sums must fit: a residual capacity can reach them.
        let largest = self.pairs.iter().map(|pair| pair.up + pair.down).max().unwrap_or(0);
        if largest.checked_mul(factor).and_then(C::try_from_u128).is_none() {
            return Ok(None);
        }
        let mut network = FlowNetwork::new(self.node_count);
        for pair in &self.pairs {
            meter.spend(1)?;
            let scaled = |capacity: u128| C::try_from_u128(capacity * factor).expect("no more than the largest sum");
            network.add_pair(pair.low, pair.high, scaled(pair.up), scaled(pair.down));
        }
        Ok(Some(network))
    }
}

/// The arcs that count, as pairs by increasing `low`: a counting sort, which can be stopped.
fn grouped_by_low(graph: &Digraph, meter: &mut Meter<'_>) -> Result<Vec<Pair>, OptimumError> {
    let mut next = vec![0_usize; graph.node_count as usize + 1];
    for (position, &Arc { from, to, capacity }) in graph.arcs.iter().enumerate() {
        meter.spend(1)?;
        if from.max(to) >= graph.node_count {
            let node_count = graph.node_count;
            return Err(DigraphError::NoSuchNode { position, from, to, node_count }.into());
        }
        next[from.min(to) as usize + 1] += usize::from(from != to && capacity > 0);
    }
    for node in 1..next.len() {
        next[node] += next[node - 1];
    }
    let mut pairs = vec![Pair { low: 0, high: 0, up: 0, down: 0 }; next[graph.node_count as usize]];
    for &Arc { from, to, capacity } in graph.arcs.iter().filter(|arc| arc.from != arc.to && arc.capacity > 0) {
        meter.spend(1)?;
        let (low, high, capacity) = (from.min(to), from.max(to), u128::from(capacity));
        let (up, down) = if from < to { (capacity, 0) } else { (0, capacity) };
        pairs[next[low as usize]] = Pair { low, high, up, down };
        next[low as usize] += 1;
    }
    Ok(pairs)
}
