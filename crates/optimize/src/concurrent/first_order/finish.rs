//! From the best iterates to the result: flows without circles or surplus that bring each sink exactly what it wants, and whole
//! lengths with the limit that they prove.

use rayon::prelude::*;

use super::block::Block;
use super::layout::Layout;
use super::primal_dual::PrimalDual;
use super::real::Real;
use crate::concurrent::bound::length_bound;
use crate::concurrent::cycles::cancel_cycles;
use crate::concurrent::problem::{Commodity, ConcurrentError, ConcurrentProblem};
use crate::concurrent::{ConcurrentOptimum, ProposedFlow};
use crate::stop::Stop;

/// The longest length: what rounding takes off lengths a hundred thousand times shorter is less than a billionth, and any path
/// of 2¹⁵ arcs fits 64 bits.
const LENGTH_MAX: f64 = (1_u64 << 48) as f64;
/// Sums beyond this come too near what 128 bits hold.
const SUM_MAX: f64 = (1_u128 << 126) as f64;
/// Flow below this share of the least that a sink wants is none.
const TINY_SHARE: f64 = 1e-9;

/// The result of an iteration that has ended.
///
/// **Errors.** Stopped. **Cost.** O(commodities × arcs), and a search by Dijkstra for each commodity.
pub(super) fn finished<R: Real, const L: usize>(
    problem: &ConcurrentProblem<'_>,
    layout: &Layout<'_>,
    iteration: PrimalDual<'_, R, L>,
    stop: &dyn Stop,
) -> Result<ConcurrentOptimum, ConcurrentError> {
    let lengths = whole_lengths(layout, &iteration.best_prices, iteration.upper, problem.graph().arcs.len());
    let limit = length_bound(problem, &lengths, stop)?.ok_or(ConcurrentError::TooLarge)?.to_float();
    let blocks = iteration.into_blocks();
    let flows = blocks.par_iter().map(|block| flows_of(layout, block, stop)).collect::<Result<Vec<_>, _>>()?;
    let flows: Vec<Vec<f64>> = flows.into_iter().flatten().collect();
    let mut loads = vec![0.0; layout.classes.len()];
    for (flow, commodity) in flows.iter().zip(layout.commodities) {
        for (amount, arc) in flow.iter().zip(&layout.arcs) {
            let class = &layout.classes[arc.class as usize];
            loads[arc.class as usize] += amount * commodity.copies as f64 / (class.size * class.capacity);
        }
    }
    let rate = layout.capacity_unit / layout.demand_unit / loads.into_iter().fold(0.0, f64::max);
    let amounts = flows.par_iter().map(|flow| {
        let arcs = layout.original.iter().zip(flow).filter(|(_, amount)| **amount > 0.0);
        let mut amounts: Vec<(u32, f64)> = arcs.map(|(&arc, amount)| (arc, amount * layout.demand_unit)).collect();
        amounts.sort_unstable_by_key(|&(arc, _)| arc);
        amounts
    });
    Ok(ConcurrentOptimum { lengths, flow: ProposedFlow { amounts: amounts.collect() }, rate: rate.min(limit), limit })
}

/// Prices as whole lengths, by arc of the graph. Arcs that count for nothing have length zero.
fn whole_lengths(layout: &Layout<'_>, prices: &[f64], limit: f64, arc_count: usize) -> Vec<u64> {
    let greatest = prices.iter().copied().fold(0.0, f64::max);
    // What the sums of `length_bound` come to if prices are taken as they are.
    let volume = super::prices::volume(&layout.classes, prices);
    let sums = (volume * layout.capacity_unit).max(volume / limit * layout.demand_unit);
    let scale = (LENGTH_MAX / greatest).min(SUM_MAX / sums);
    let mut lengths = vec![0; arc_count];
    for (&arc, laid) in layout.original.iter().zip(&layout.arcs) {
        lengths[arc as usize] = rounded(prices[laid.class as usize] * scale);
    }
    lengths
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between zero and 2⁴⁸")]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}

/// The flows of a block's commodities, by arc of the layout.
fn flows_of<R: Real, const L: usize>(
    layout: &Layout<'_>,
    block: &Block<R, L>,
    stop: &dyn Stop,
) -> Result<Vec<Vec<f64>>, ConcurrentError> {
    let commodities = block.commodities.iter().enumerate();
    let flows = commodities.map(|(lane, &commodity)| {
        if stop.is_requested() {
            return Err(ConcurrentError::Stopped);
        }
        let commodity = &layout.commodities[commodity];
        let flow: Vec<f64> = block.best.iter().map(|lanes| lanes[lane].wide()).collect();
        Ok(cleaned(layout, commodity, flow).unwrap_or_else(|| tree_flow(layout, commodity)))
    });
    flows.collect()
}

/// The flow without circles, in which each node receives exactly what it wants and passes on.
///
/// **None.** Rounding has left a sink with nothing at all.
fn cleaned(layout: &Layout<'_>, commodity: &Commodity, mut flow: Vec<f64>) -> Option<Vec<f64>> {
    let order = cancel_circles(layout, commodity.source, &mut flow);
    let mut wanted = vec![0.0; layout.node_count];
    for &(sink, demand) in &commodity.sinks {
        wanted[sink as usize] = demand as f64 / layout.demand_unit;
    }
    let tiny =
        TINY_SHARE * commodity.sinks.iter().map(|&(sink, _)| wanted[sink as usize]).fold(f64::INFINITY, f64::min);
    // Down from the source: nothing leaves a node that nothing worth speaking of enters.
    let mut entering = vec![0.0; layout.node_count];
    for &node in order.iter().rev() {
        let dry = node != commodity.source && entering[node as usize] <= tiny;
        for &arc in layout.leaving(node) {
            let amount = &mut flow[arc as usize];
            if dry || *amount <= tiny {
                *amount = 0.0;
            }
            entering[layout.arcs[arc as usize].to as usize] += *amount;
        }
    }
    // Up from the sinks: what enters a node is stretched or shrunk to what it wants and passes on.
    let mut factors = vec![1.0; layout.node_count];
    for &node in &order {
        let mut needed = wanted[node as usize];
        for &arc in layout.leaving(node) {
            let amount = &mut flow[arc as usize];
            *amount *= factors[layout.arcs[arc as usize].to as usize];
            needed += *amount;
        }
        let entering = entering[node as usize];
        if node != commodity.source && needed > 0.0 && entering <= 0.0 {
            return None;
        }
        factors[node as usize] = if entering > 0.0 { needed / entering } else { 1.0 };
    }
    let is_reached = |&(sink, _): &(u32, u64)| entering[sink as usize] > 0.0;
    commodity.sinks.iter().all(is_reached).then_some(flow)
}

/// Takes circles out of a flow, and what the source does not reach; nodes in an order in which what they send to comes first.
fn cancel_circles(layout: &Layout<'_>, source: u32, flow: &mut [f64]) -> Vec<u32> {
    let ends = |arc: u32| (layout.arcs[arc as usize].from, layout.arcs[arc as usize].to);
    let starts = std::iter::once(source);
    let order = cancel_cycles(layout.node_count, starts, |node| layout.leaving(node), ends, flow);
    let mut is_reached = vec![false; layout.node_count];
    order.iter().for_each(|&node| is_reached[node as usize] = true);
    for (arc, amount) in layout.arcs.iter().zip(flow) {
        if !is_reached[arc.from as usize] {
            *amount = 0.0;
        }
    }
    order
}

/// Everything along paths of the fewest arcs.
fn tree_flow(layout: &Layout<'_>, commodity: &Commodity) -> Vec<f64> {
    let mut needed = vec![0.0; layout.node_count];
    for &(sink, demand) in &commodity.sinks {
        needed[sink as usize] = demand as f64 / layout.demand_unit;
    }
    let mut seen = vec![false; layout.node_count];
    seen[commodity.source as usize] = true;
    let mut nodes = vec![commodity.source];
    let mut tree = Vec::new();
    let mut next = 0;
    while let Some(&node) = nodes.get(next) {
        next += 1;
        for &arc in layout.leaving(node) {
            let to = layout.arcs[arc as usize].to;
            if !std::mem::replace(&mut seen[to as usize], true) {
                nodes.push(to);
                tree.push(arc);
            }
        }
    }
    let mut flow = vec![0.0; layout.arcs.len()];
    for &arc in tree.iter().rev() {
        let ends = layout.arcs[arc as usize];
        flow[arc as usize] = needed[ends.to as usize];
        needed[ends.from as usize] += needed[ends.to as usize];
    }
    flow
}
