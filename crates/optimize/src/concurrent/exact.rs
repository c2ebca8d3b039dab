//! The linear program of concurrent flows, solved whole: for networks of up to some hundred nodes.

mod mend;
mod paths;
mod program;
mod snap;
mod tree;

use good_lp::{Expression, Variable};

use super::problem::{ConcurrentError, ConcurrentProblem};
use super::{ConcurrentOptimum, ProposedFlow, length_bound};
use crate::stop::Stop;
pub(crate) use mend::as_float;
use mend::mended;
pub use paths::{PATHS_MAX, PathOptimum, path_optimum};
pub(crate) use program::{Program, Solution};
pub use snap::sharpened;
use tree::{Distances, distances};

/// Most variables, one for each commodity and arc, of a program that is solved whole: a solver of this kind takes some
/// ten seconds for as many.
pub const EXACT_VARIABLES_MAX: u64 = 40_000;

/// The greatest rate, with lengths that prove it: both to about nine digits, and where [`sharpened`] finds the face that
/// the lengths lie on, these prove the very fraction.
///
/// * **Source.** Basu 2024, equations (6)–(9), without the flows into each commodity's own source; nodes that want nothing
///   are passed through only.
/// * **In.** Any capacities: they are scaled to what can be used at all.
/// * **Out.** `None` where there are more than [`EXACT_VARIABLES_MAX`] variables, or the solver gives up.
/// * **Errors.** Sinks out of reach, sums beyond 128 bits, stopped.
/// * **Cost.** 20 to 30 factorisations: 40 nodes of degree 4 take some tenths of a second, 48 about one, and it grows faster than
///   the variables do.
pub fn solve_exactly(
    problem: &ConcurrentProblem<'_>,
    stop: &dyn Stop,
) -> Result<Option<ConcurrentOptimum>, ConcurrentError> {
    let (arcs, commodities) = (&problem.graph().arcs, problem.commodities());
    if arcs.len() as u64 * commodities.len() as u64 > EXACT_VARIABLES_MAX {
        return Ok(None);
    }
    let resistances: Vec<f64> = arcs.iter().map(|arc| 1.0 / as_float(arc.capacity)).collect();
    let ways = distances(problem, &resistances)?;
    let scale = Scale::new(problem, &ways);
    let class_of = |arc: usize| problem.orbits().get(arc).map_or(arc, |&orbit| orbit as usize);
    let class_count = (0..arcs.len()).map(|arc| class_of(arc) + 1).max().unwrap_or(0);
    // F of equations (6)–(9), in parts of a bound: at most 1.
    let mut program = Program::default();
    let rate = program.variable();
    let mut used: Vec<Vec<(f64, Variable)>> = vec![Vec::new(); class_count];
    let mut flows: Vec<Vec<(u32, Variable)>> = Vec::with_capacity(commodities.len());
    for commodity in commodities {
        let mut net: Vec<Vec<(f64, Variable)>> = vec![Vec::new(); problem.graph().node_count as usize];
        let mut own = Vec::new();
        for (number, arc) in (0_u32..).zip(arcs) {
            if arc.capacity == 0 || arc.from == arc.to || arc.to == commodity.source {
                continue;
            }
            let flow = program.variable();
            used[class_of(number as usize)].push((as_float(commodity.copies), flow));
            net[arc.to as usize].push((-1.0, flow));
            net[arc.from as usize].push((1.0, flow));
            own.push((number, flow));
        }
        for &(node, demand) in &commodity.sinks {
            net[node as usize].push((as_float(demand) / scale.demand, rate));
        }
        net[commodity.source as usize].clear();
        for sum in net.into_iter().filter(|sum| !sum.is_empty()) {
            program.at_most(expression(&sum), 0.0);
        }
        flows.push(own);
    }
    let first_capacity = program.row_count();
    let mut capacities = vec![0_u128; class_count];
    arcs.iter().enumerate().for_each(|(number, arc)| capacities[class_of(number)] += u128::from(arc.capacity));
    for (sum, capacity) in used.iter().zip(capacities) {
        program.at_most(expression(sum), scale.capacity(capacity));
    }
    let Some(Solution { values, prices }) = program.maximised(rate.into(), stop)? else { return Ok(None) };
    let rate_found = values[0].max(f64::MIN_POSITIVE);
    let proposed = flows.iter().scan(1, |next, own| {
        let first = std::mem::replace(next, *next + own.len());
        Some(own.iter().zip(&values[first..]).map(|(&(arc, _), &value)| (arc, value / rate_found * scale.demand)))
    });
    let amounts: Vec<Vec<(u32, f64)>> = commodities
        .iter()
        .zip(&ways)
        .zip(proposed)
        .map(|((commodity, ways), flow)| mended(problem, commodity, &flow.collect::<Vec<_>>(), &ways.into))
        .collect();
    let flow = ProposedFlow { amounts };
    let lengths: Vec<f64> = (0..arcs.len()).map(|arc| prices[first_capacity + class_of(arc)]).collect();
    let lengths = sharpened(problem, &lengths, stop)?;
    let limit = length_bound(problem, &lengths, stop)?;
    let Some(limit) = limit else { return Ok(None) };
    Ok(Some(ConcurrentOptimum { rate: rate_of(problem, &flow), limit: limit.to_float(), lengths, flow }))
}

/// A sum of variables with their factors.
fn expression(sum: &[(f64, Variable)]) -> Expression {
    let mut all = Expression::with_capacity(sum.len());
    sum.iter().for_each(|&(factor, variable)| all.add_mul(factor, variable));
    all
}

/// What numbers are divided by, to be within some powers of ten of 1.
struct Scale {
    /// For demands: their mean.
    demand: f64,
    /// For capacities: a rate that is out of reach, for a mean demand.
    rate: f64,
    /// All demands, scaled.
    total: f64,
}

impl Scale {
    /// Of a bound on the rate with lengths in inverse proportion to the capacities, which is not above the rate by more than
    /// the number of arcs.
    fn new(problem: &ConcurrentProblem<'_>, ways: &[Distances]) -> Self {
        let commodities = problem.commodities();
        let sinks = commodities.iter().map(|commodity| commodity.copies.saturating_mul(commodity.sinks.len() as u64));
        let count = as_float(sinks.fold(0, u64::saturating_add));
        let demand_of = |sinks: &[(u32, u64)]| sinks.iter().map(|&(_, demand)| as_float(demand)).sum::<f64>();
        let all = commodities.iter().map(|commodity| as_float(commodity.copies) * demand_of(&commodity.sinks));
        let demand = all.sum::<f64>() / count;
        let distance: f64 = ways.iter().map(|ways| ways.sum).sum();
        let used = problem.graph().arcs.iter().filter(|arc| arc.capacity > 0).count();
        Self { demand, rate: as_float(used as u64) / distance * demand, total: count }
    }

    /// Scaled, and no more than everything together.
    #[expect(clippy::cast_precision_loss, reason = "floats only propose")]
    fn capacity(&self, capacity: u128) -> f64 {
        (capacity as f64 / self.rate).min(self.total)
    }
}

/// The rate of a flow: 1 over the greatest load of an arc, or of an orbit, for its capacity.
#[expect(clippy::cast_precision_loss, reason = "a float for display; what counts is recomputed in whole numbers")]
pub(crate) fn rate_of(problem: &ConcurrentProblem<'_>, flow: &ProposedFlow) -> f64 {
    let arcs = &problem.graph().arcs;
    let class_of = |arc: usize| problem.orbits().get(arc).map_or(arc, |&orbit| orbit as usize);
    let class_count = (0..arcs.len()).map(|arc| class_of(arc) + 1).max().unwrap_or(0);
    let mut loads = vec![(0.0, 0_u128); class_count];
    for (number, arc) in arcs.iter().enumerate() {
        loads[class_of(number)].1 += u128::from(arc.capacity);
    }
    for (commodity, amounts) in problem.commodities().iter().zip(&flow.amounts) {
        for &(arc, amount) in amounts {
            loads[class_of(arc as usize)].0 += as_float(commodity.copies) * amount;
        }
    }
    let busiest = loads.iter().filter(|(load, _)| *load > 0.0).map(|&(load, capacity)| load / capacity as f64);
    1.0 / busiest.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;
