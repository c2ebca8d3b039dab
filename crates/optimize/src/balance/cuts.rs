//! Rows of the program that are cuts.

use super::program::{Row, Rows};
use crate::flow::{ArcId, FlowNetwork};
use crate::stop::{Stop, Stopped};

/// Parts of the greatest rate that flows are computed in.
const FLOW_PARTS: f64 = (1_u64 << 36) as f64;

/// Violation of a row, in parts of the rate, that is more than noise.
const FLOW_TOLERANCE: f64 = 1e-7;

/// Cuts that kept capacities violate, found by a flow into each terminal.
pub(super) struct CutRows<'a> {
    ends: Vec<(u32, u32)>,
    weights: &'a [u64],
    network: FlowNetwork<i64>,
    arcs: Vec<ArcId>,
    /// Terminals, neighbours after each other.
    order: Vec<u32>,
    /// Sets of all rows found, in order.
    sets: Vec<Vec<bool>>,
}

impl<'a> CutRows<'a> {
    /// Cuts that arcs with these ends enter, where data of these weights of nodes must reach all terminals of `order`.
    pub(super) fn new(ends: Vec<(u32, u32)>, weights: &'a [u64], order: Vec<u32>) -> Self {
        let mut network = FlowNetwork::new(u32::try_from(weights.len()).expect("nodes are counted in u32"));
        let arcs = ends.iter().map(|&(from, to)| network.add_arc(from, to, 0)).collect();
        Self { ends, weights, network, arcs, order, sets: Vec::new() }
    }

    /// Each terminal alone.
    pub(super) fn alone(&mut self) -> Vec<Row> {
        let only = |&node: &u32| (0_u32..).take(self.weights.len()).map(|other| other == node).collect();
        let sets: Vec<Vec<bool>> = self.order.iter().map(only).collect();
        self.rows(sets)
    }

    /// The sets of all rows, in the order in which these were found.
    pub(super) fn into_sets(self) -> Vec<Vec<bool>> {
        self.sets
    }

    /// The rows of sets that have some weight outside.
    fn rows(&mut self, sets: Vec<Vec<bool>>) -> Vec<Row> {
        let mut rows = Vec::new();
        for set in sets {
            let outside = self.weights.iter().zip(&set).filter(|&(_, &inside)| !inside);
            let outside: u128 = outside.map(|(&weight, _)| u128::from(weight)).sum();
            let Some(demand) = u64::try_from(outside).ok().filter(|&demand| demand > 0) else { continue };
            let enters = |(_, (from, to)): &(u32, (u32, u32))| !set[*from as usize] && set[*to as usize];
            let arcs = (0..).zip(self.ends.iter().copied()).filter(enters).map(|(arc, _)| arc).collect();
            rows.push(Row { arcs, demand });
            self.sets.push(set);
        }
        rows
    }
}

impl Rows for CutRows<'_> {
    /// A terminal that was looked at gives whatever is asked for from then on, so that flows are short, and sets of one call
    /// rarely overlap.
    #[expect(clippy::cast_possible_truncation, reason = "casts of floats saturate")]
    fn violated(&mut self, kept: &[f64], rate: f64, stop: &dyn Stop) -> Result<Vec<Row>, Stopped> {
        let parts = |value: f64| (value * FLOW_PARTS) as i64;
        for (&arc, &kept) in self.arcs.iter().zip(kept) {
            self.network.set_capacity(arc, parts(kept));
        }
        let mut total = 0;
        for (node, &weight) in (0_u32..).zip(self.weights) {
            let supply = parts(rate * weight as f64);
            self.network.set_supply(node, supply);
            total += supply;
        }
        let enough = total - (total as f64 * FLOW_TOLERANCE) as i64;
        let mut sets = Vec::new();
        for &node in &self.order {
            if self.network.pull(node, total, stop)? < enough {
                sets.push(self.network.min_cut_sink_side());
            }
            self.network.set_supply(node, i64::MAX);
        }
        self.network.clear_supplies();
        Ok(self.rows(sets))
    }
}
