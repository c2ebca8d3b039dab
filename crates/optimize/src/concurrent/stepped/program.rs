//! How long each step takes at best.

use std::collections::VecDeque;

use good_lp::{Expression, Variable};

use super::{is_too_large, is_transit};
use crate::concurrent::exact::{Program, Solution, as_float};
use crate::concurrent::{ConcurrentError, ConcurrentProblem};
use crate::digraph::Digraph;
use crate::stop::Stop;

/// By commodity and node, the steps after which something of the source can be there, and at a node of transit those before
/// the one in which it can pass; none where it is out of reach.
pub(super) struct Hops(Vec<Vec<Option<u32>>>);

impl Hops {
    /// One breadth-first search for each commodity.
    pub(super) fn new(problem: &ConcurrentProblem<'_>, transit: &[bool]) -> Self {
        let graph = problem.graph();
        let mut leaving: Vec<Vec<u32>> = vec![Vec::new(); graph.node_count as usize];
        for arc in graph.arcs.iter().filter(|arc| arc.capacity > 0) {
            leaving[arc.from as usize].push(arc.to);
        }
        let search = |source: u32| {
            let mut hops: Vec<Option<u32>> = vec![None; leaving.len()];
            hops[source as usize] = Some(0);
            let mut queue = VecDeque::from([(source, 0)]);
            while let Some((node, distance)) = queue.pop_front() {
                for &to in &leaving[node as usize] {
                    if hops[to as usize].is_none() {
                        // In the order of distances: what is passed in this step comes before what is reached by it.
                        if is_transit(transit, to) {
                            hops[to as usize] = Some(distance);
                            queue.push_front((to, distance));
                        } else {
                            hops[to as usize] = Some(distance + 1);
                            queue.push_back((to, distance + 1));
                        }
                    }
                }
            }
            hops
        };
        Self(problem.commodities().iter().map(|commodity| search(commodity.source)).collect())
    }

    /// Of all sinks.
    pub(super) fn greatest(&self, problem: &ConcurrentProblem<'_>) -> Result<u32, ConcurrentError> {
        let mut greatest = 0;
        for (commodity, hops) in problem.commodities().iter().zip(&self.0) {
            for &(to, _) in &commodity.sinks {
                let from = commodity.source;
                greatest = greatest.max(hops[to as usize].ok_or(ConcurrentError::Unreachable { from, to })?);
            }
        }
        Ok(greatest)
    }
}

/// What the linear program says.
pub(super) struct StepTimes {
    pub(super) step_count: u32,
    /// By step, for units of demand and capacity.
    pub(super) times: Vec<f64>,
    /// By step, by arc: what a mean demand pays there, in parts of the time.
    pub(super) prices: Vec<Vec<f64>>,
}

impl StepTimes {
    /// Of all steps.
    pub(super) fn total(&self) -> f64 {
        self.times.iter().sum()
    }
}

/// The least sum of the times of so many steps; `None` where the program is too large or the solver gives up.
///
/// Grouped by source, in a graph with a copy of every node for each step and arcs on which things stay where they are, which
/// nodes of transit do not have.
/// Times are in parts of what it takes without steps, demands in parts of their mean.
pub(super) fn step_times(
    problem: &ConcurrentProblem<'_>,
    transit: &[bool],
    hops: &Hops,
    step_count: u32,
    rate: f64,
    stop: &dyn Stop,
) -> Result<Option<StepTimes>, ConcurrentError> {
    let graph = problem.graph();
    let steps = step_count as usize;
    let (sum, count) = problem
        .commodities()
        .iter()
        .flat_map(|commodity| &commodity.sinks)
        .fold((0.0, 0_u64), |(sum, count), &(_, demand)| (sum + as_float(demand), count + 1));
    let mean = sum / as_float(count);
    // What a capacity carries in the time that all takes without steps.
    let carried = |capacity: u64| as_float(capacity) / (rate * mean);
    let mut program = Program::default();
    let times: Vec<Variable> = (0..steps).map(|_| program.variable()).collect();
    let mut loads = vec![vec![Vec::new(); graph.arcs.len()]; steps];
    for (commodity, hops) in problem.commodities().iter().zip(&hops.0) {
        let reached = |node: u32, step: usize| hops[node as usize].is_some_and(|distance| distance as usize <= step);
        let net = add_flows(&mut program, graph, transit, commodity.source, &reached, &mut loads);
        if is_too_large(program.variable_count() as u64) {
            return Ok(None);
        }
        let mut wanted = vec![0.0; graph.node_count as usize];
        commodity.sinks.iter().for_each(|&(node, demand)| wanted[node as usize] = as_float(demand) / mean);
        for (step, net) in net.into_iter().enumerate() {
            for (node, sum) in (0_u32..).zip(net) {
                let right = if step == steps { -wanted[node as usize] } else { 0.0 };
                if node != commodity.source && reached(node, step) && (step < steps || right < 0.0) {
                    program.at_most(sum, right);
                }
            }
        }
    }
    let first_load = program.row_count();
    for (loads, &time) in loads.iter().zip(&times) {
        for (arc, flows) in graph.arcs.iter().zip(loads) {
            // A row for each, so that prices are found again; without flows it says that time is not negative.
            program.at_most(occupied(flows, carried(arc.capacity.max(1)), time), 0.0);
        }
    }
    let total = times.iter().fold(Expression::with_capacity(steps), |sum, &time| sum - time);
    let Some(Solution { values, prices }) = program.maximised(total, stop)? else { return Ok(None) };
    let price = |step: usize| {
        let rows = graph.arcs.iter().zip(&prices[first_load + step * graph.arcs.len()..]);
        rows.map(|(arc, &price)| price / carried(arc.capacity.max(1)).max(1.0)).collect()
    };
    Ok(Some(StepTimes {
        step_count,
        times: values[..steps].iter().map(|&time| time / rate).collect(),
        prices: (0..steps).map(price).collect(),
    }))
}

/// Adds the flows of one source on all arcs, which in each step are listed in `loads`, and what stays at nodes.
///
/// Returned by step and node: what leaves a node's copy less what enters it; after the last step there is a copy, too.
fn add_flows(
    program: &mut Program,
    graph: &Digraph,
    transit: &[bool],
    source: u32,
    reached: &impl Fn(u32, usize) -> bool,
    loads: &mut [Vec<Vec<Variable>>],
) -> Vec<Vec<Expression>> {
    let mut net = vec![vec![Expression::with_capacity(8); graph.node_count as usize]; loads.len() + 1];
    for (step, loads) in loads.iter_mut().enumerate() {
        for (arc, load) in graph.arcs.iter().zip(loads) {
            if arc.capacity == 0 || arc.from == arc.to || arc.to == source || !reached(arc.from, step) {
                continue;
            }
            let flow = program.variable();
            net[step][arc.from as usize].add_mul(1.0, flow);
            let arrival = if is_transit(transit, arc.to) { step } else { step + 1 };
            net[arrival][arc.to as usize].add_mul(-1.0, flow);
            load.push(flow);
        }
        let rests = |node: &u32| *node != source && !is_transit(transit, *node) && reached(*node, step);
        for node in (0..graph.node_count).filter(rests) {
            let stay = program.variable();
            net[step][node as usize].add_mul(1.0, stay);
            net[step + 1][node as usize].add_mul(-1.0, stay);
        }
    }
    net
}

/// How much longer some flows take than a step does.
fn occupied(flows: &[Variable], carried: f64, time: Variable) -> Expression {
    let mut sum = Expression::with_capacity(flows.len() + 1);
    // Wide links and narrow ones alike: in units of time where they are wide, of flow where they are narrow.
    let (flow_factor, time_factor) = if carried > 1.0 { (1.0 / carried, 1.0) } else { (1.0, carried) };
    flows.iter().for_each(|&flow| sum.add_mul(flow_factor, flow));
    sum.add_mul(-time_factor, time);
    sum
}
