//! The linear program of all divisions, with its rows found as they are needed.
//!
//! It computes in floats, and so only proposes: what is made of it is whole and tested (`rounding`).

use std::collections::BTreeSet;

use microlp::{ComparisonOp, OptimizationDirection, Problem, Solution, SolveOutcome, Variable};

use crate::digraph::{Arc, Digraph};
use crate::flow::{ArcId, FlowNetwork};
use crate::stop::{Stop, Stopped};
use crate::strength::division::is_large;

/// Rounds of looking for rows that the solution violates, at most: fewer are the rule, and its trees are few.
const CORNER_ROUNDS_MAX: u32 = 16;

/// Rounds of looking for rows that a point before the solution violates, at most.
const ROUNDS_MAX: u32 = 100;

/// Part of the rate of the solution at which a point that violates no row is as good; of large networks, where each
/// round takes long.
const NEAR: f64 = 0.9998;
const NEAR_OF_LARGE: f64 = 0.999;

/// How far the point of a large network with switches moves from the best one towards that of roots everywhere.
///
/// At the best one, few nodes have all the roots, and most cuts are tight, so that trees have to be tested edge by edge,
/// which takes some ten times as long.
const LEANING: f64 = 0.04;

/// What a row may be violated by, in parts of the rate: less is noise.
const TOLERANCE: f64 = 1e-7;

/// Rates tried for a point that violates no row, each three quarters of the one before.
const INNER_TRIES_MAX: u32 = 16;

/// Parts of a unit of capacity that flows are computed in.
const PARTS: f64 = (1_u64 << 40) as f64;

/// Parts of links and roots at a good rate.
#[derive(Clone)]
pub(super) struct Fractional {
    /// What all numbers are in units of: no rate is greater.
    pub(super) unit: u64,
    /// By arc, no more than all trees together can make use of.
    pub(super) capacities: Vec<f64>,
    /// By arc.
    pub(super) spread: Vec<f64>,
    /// By arc.
    pub(super) collect: Vec<f64>,
    /// By node.
    pub(super) roots: Vec<f64>,
}

/// Whether trees spread, into every set, or collect, out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Spread,
    Collect,
}

/// The optimum of `max x(V)` subject to `spread(e) + collect(e) ≤ b(e)`, balance of both at every node that is no terminal,
/// and for every set S with a terminal `spread(entering S) ≥ x(V∖S)` and `collect(leaving S) ≥ x(V∖S)`; `None` where
/// nothing can be spread or the solver gives up. Where rows are still violated after many rounds, the last solution.
///
/// Rows are violated where a terminal can not pull all of x over what spreads, or push it over what collects: the least
/// cut is the set. A terminal that was looked at gives whatever is asked for from then on, so that flows are short, and
/// sets of one round rarely overlap. Where no end is other than a terminal, what does not spread collects.
///
/// Solutions wander between corners of equal rate. Where they do so for long, rows are looked for half way from a point that
/// violates none, and where half way violates none either, it is the next such point. Of large networks with switches, the
/// point then moves a little towards one with roots everywhere, if there is one: its rate is up to 4 % less.
///
/// * **Source.** Zhao 2026, appendix B.7, without flow variables; Bang-Jensen, Frank and Jackson 1995 for switches;
///   Ben-Ameur and Neto 2007 for the point half way.
/// * **Cost.** Two flows per terminal and round, most of them local, and a few pivots per row.
pub(super) fn solve(graph: &Digraph, terminals: &[bool], stop: &dyn Stop) -> Result<Option<Fractional>, Stopped> {
    let Some(mut program) = Program::new(graph, terminals) else { return Ok(None) };
    let point = program.optimum(CORNER_ROUNDS_MAX, stop)?;
    if is_large(terminals)
        && terminals.contains(&false)
        && let Some(everywhere) = program.inner_point(stop)?
    {
        return Ok(Some(point.towards(&everywhere, LEANING)));
    }
    Ok(Some(point))
}

/// What became of violated rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mended {
    /// The solution violates none of them.
    Nothing,
    /// It does not any more.
    Some,
    /// The solver found no other.
    GaveUp,
}

impl Fractional {
    /// Of all roots.
    pub(super) fn rate(&self) -> f64 {
        self.roots.iter().sum()
    }

    /// The point that lies this part of the way towards another one.
    fn towards(&self, other: &Self, part: f64) -> Self {
        let mean = |one: &[f64], other: &[f64]| {
            one.iter().zip(other).map(|(one, other)| one * (1.0 - part) + other * part).collect()
        };
        Self {
            unit: self.unit,
            capacities: self.capacities.clone(),
            spread: mean(&self.spread, &other.spread),
            collect: mean(&self.collect, &other.collect),
            roots: mean(&self.roots, &other.roots),
        }
    }
}

struct Program<'a> {
    graph: &'a Digraph,
    terminals: &'a [bool],
    spread: Vec<Variable>,
    /// Where it is not what spreading leaves.
    collect: Vec<Option<Variable>>,
    /// By node, of terminals.
    roots: Vec<Option<Variable>>,
    /// `None` once the solver has given up.
    solution: Option<Solution>,
    values: Fractional,
    networks: [(FlowNetwork<i64>, Vec<ArcId>); 2],
    /// Terminals, neighbours after each other.
    order: Vec<u32>,
    /// Where the next round begins in that order.
    first: usize,
    /// Sets whose rows are there.
    known: BTreeSet<(Kind, Vec<bool>)>,
}

impl<'a> Program<'a> {
    /// The program with the rows of all terminals alone, solved.
    fn new(graph: &'a Digraph, terminals: &'a [bool]) -> Option<Self> {
        let unit = least_around_a_terminal(graph, terminals).filter(|&unit| unit > 0)?;
        // A tree passes a link once for each terminal at most.
        let most = 2.0 * terminals.iter().filter(|&&is_terminal| is_terminal).count() as f64;
        let capacity = |arc: &Arc| if arc.from == arc.to { 0.0 } else { (arc.capacity as f64 / unit as f64).min(most) };
        let capacities: Vec<f64> = graph.arcs.iter().map(capacity).collect();
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let roots: Vec<Option<Variable>> =
            terminals.iter().map(|&is_root| is_root.then(|| problem.add_var(1.0, (0.0, f64::INFINITY)))).collect();
        let spread: Vec<Variable> = capacities.iter().map(|&capacity| problem.add_var(0.0, (0.0, capacity))).collect();
        let mut collect = Vec::with_capacity(spread.len());
        for ((arc, &capacity), &spread) in graph.arcs.iter().zip(&capacities).zip(&spread) {
            let is_shared = terminals[arc.from as usize] && terminals[arc.to as usize];
            collect.push((!is_shared).then(|| {
                let collect = problem.add_var(0.0, (0.0, capacity));
                problem.add_constraint([(spread, 1.0), (collect, 1.0)], ComparisonOp::Le, capacity);
                collect
            }));
        }
        for node in (0_u32..).zip(terminals).filter(|&(_, &is_terminal)| !is_terminal).map(|(node, _)| node) {
            let mut rows = [Vec::new(), Vec::new()];
            for (arc, (&spread, &collect)) in graph.arcs.iter().zip(spread.iter().zip(&collect)) {
                if arc.from != arc.to && (arc.from == node || arc.to == node) {
                    let sign = if arc.to == node { 1.0 } else { -1.0 };
                    rows[0].push((spread, sign));
                    rows[1].extend(collect.map(|collect| (collect, sign)));
                }
            }
            rows.into_iter().for_each(|row| problem.add_constraint(row, ComparisonOp::Eq, 0.0));
        }
        let network = |is_turned: bool| {
            let mut network = FlowNetwork::new(graph.node_count);
            let arc = |arc: &Arc| if is_turned { (arc.to, arc.from) } else { (arc.from, arc.to) };
            let arcs = graph.arcs.iter().map(arc).map(|(from, to)| network.add_arc(from, to, 0)).collect();
            (network, arcs)
        };
        let values = Fractional { unit, capacities, spread: Vec::new(), collect: Vec::new(), roots: Vec::new() };
        let mut networks = [network(false), network(true)];
        let mut order = networks[0].0.breadth_first_order();
        order.retain(|&node| terminals[node as usize]);
        let (solution, known) = (None, BTreeSet::new());
        let mut program =
            Self { graph, terminals, spread, collect, roots, solution, values, networks, order, first: 0, known };
        for node in (0..terminals.len()).filter(|&node| terminals[node]) {
            let mut alone = vec![false; terminals.len()];
            alone[node] = true;
            for kind in [Kind::Spread, Kind::Collect] {
                let (row, least) = program.row(kind, &alone);
                problem.add_constraint(row, ComparisonOp::Ge, least);
            }
        }
        program.take(problem.solve().ok()?).then_some(program)
    }

    /// The best point that is found, with so many rounds before rows are looked for half way.
    fn optimum(&mut self, corner_rounds_max: u32, stop: &dyn Stop) -> Result<Fractional, Stopped> {
        for _ in 0..corner_rounds_max {
            let corner = self.values.clone();
            let sets = self.violated(&corner, stop)?;
            match self.mend(sets, stop)? {
                Mended::Nothing => return Ok(corner),
                Mended::Some => {}
                Mended::GaveUp => break,
            }
        }
        let Some(mut inner) = self.inner_point(stop)? else {
            // Without a point inside there is no half way: only a solution that violates nothing is any good.
            for _ in 0..ROUNDS_MAX {
                let corner = self.values.clone();
                let sets = self.violated(&corner, stop)?;
                if self.mend(sets, stop)? != Mended::Some {
                    break;
                }
            }
            return Ok(self.values.clone());
        };
        let near = if is_large(self.terminals) { NEAR_OF_LARGE } else { NEAR };
        for _ in 0..ROUNDS_MAX {
            if inner.rate() >= near * self.values.rate() {
                break;
            }
            let middle = inner.towards(&self.values, 0.5);
            let sets = self.violated(&middle, stop)?;
            if sets.is_empty() {
                inner = middle;
            } else if self.mend(sets, stop)? != Mended::Some {
                break;
            }
        }
        Ok(inner)
    }

    /// The row of a set: what its variables count, and the least that they must add up to.
    fn row(&self, kind: Kind, set: &[bool]) -> (Vec<(Variable, f64)>, f64) {
        let (mut row, mut least) = (Vec::new(), 0.0);
        for (position, arc) in self.graph.arcs.iter().enumerate() {
            let (from, to) = (set[arc.from as usize], set[arc.to as usize]);
            match (kind, self.collect[position]) {
                (Kind::Spread, _) if !from && to => row.push((self.spread[position], 1.0)),
                (Kind::Collect, Some(collect)) if from && !to => row.push((collect, 1.0)),
                (Kind::Collect, None) if from && !to => {
                    row.push((self.spread[position], -1.0));
                    least -= self.values.capacities[position];
                }
                _ => {}
            }
        }
        let outside = self.roots.iter().zip(set).filter(|&(_, &inside)| !inside);
        row.extend(outside.filter_map(|(root, _)| root.map(|root| (root, -1.0))));
        (row, least)
    }

    /// Takes over a solution; says whether there is one.
    fn take(&mut self, outcome: SolveOutcome) -> bool {
        let Ok(solution) = outcome.into_solution() else { return false };
        let value = |variable: Variable| solution.var_value(variable).max(0.0);
        let spread: Vec<f64> = self.spread.iter().map(|&spread| value(spread)).collect();
        let rest = |position: usize| (self.values.capacities[position] - spread[position]).max(0.0);
        let collect = self.collect.iter().enumerate().map(|(position, &collect)| collect.map_or(rest(position), value));
        let collect = collect.collect();
        let roots = self.roots.iter().map(|&root| root.map_or(0.0, value)).collect();
        (self.values.spread, self.values.collect, self.values.roots) = (spread, collect, roots);
        self.solution = Some(solution);
        true
    }

    /// Adds a row and solves again; says whether that was possible.
    fn add(&mut self, kind: Kind, set: &[bool]) -> bool {
        let (row, least) = self.row(kind, set);
        let Some(solution) = self.solution.take() else { return false };
        solution.add_constraint(row, ComparisonOp::Ge, least).is_ok_and(|outcome| self.take(outcome))
    }

    /// Whether a row is violated.
    fn lacks(&self, kind: Kind, set: &[bool]) -> bool {
        let mut passing = 0.0;
        for (position, arc) in self.graph.arcs.iter().enumerate() {
            passing += match (kind, set[arc.from as usize], set[arc.to as usize]) {
                (Kind::Spread, false, true) => self.values.spread[position],
                (Kind::Collect, true, false) => self.values.collect[position],
                _ => 0.0,
            };
        }
        let outside = self.values.roots.iter().zip(set).filter(|&(_, &inside)| !inside);
        let wanted: f64 = outside.map(|(root, _)| root).sum();
        passing < wanted - TOLERANCE * self.values.rate()
    }

    /// Adds the rows of these sets that the solution violates.
    fn mend(&mut self, sets: Vec<(Kind, Vec<bool>)>, stop: &dyn Stop) -> Result<Mended, Stopped> {
        let mut mended = Mended::Nothing;
        for (kind, set) in sets {
            if stop.is_requested() {
                return Err(Stopped);
            }
            // Rows added since may have mended it.
            if self.lacks(kind, &set) && self.known.insert((kind, set.clone())) {
                mended = Mended::Some;
                if !self.add(kind, &set) {
                    return Ok(Mended::GaveUp);
                }
            }
        }
        Ok(mended)
    }

    /// Half of every link for each kind, and roots everywhere, as many as fit: violates no row, where that is found.
    fn inner_point(&mut self, stop: &dyn Stop) -> Result<Option<Fractional>, Stopped> {
        let half: Vec<f64> = self.values.capacities.iter().map(|capacity| capacity / 2.0).collect();
        let mut surplus = vec![0.0; self.terminals.len()];
        for (arc, half) in self.graph.arcs.iter().zip(&half) {
            surplus[arc.to as usize] += half;
            surplus[arc.from as usize] -= half;
        }
        let is_balanced = |(&surplus, &is_terminal): (&f64, &bool)| is_terminal || surplus.abs() < TOLERANCE;
        if !surplus.iter().zip(self.terminals).all(is_balanced) {
            return Ok(None);
        }
        let count = self.terminals.iter().filter(|&&is_terminal| is_terminal).count() as f64;
        let mut rate = self.values.rate();
        for _ in 0..INNER_TRIES_MAX {
            let roots =
                self.terminals.iter().map(|&is_terminal| if is_terminal { rate / count } else { 0.0 }).collect();
            let point = Fractional { spread: half.clone(), collect: half.clone(), roots, ..self.values.clone() };
            if self.violated(&point, stop)?.is_empty() {
                return Ok(Some(point));
            }
            rate *= 0.75;
        }
        Ok(None)
    }

    /// Sets whose rows a point violates, one per terminal and kind at most; none only if it violates none.
    ///
    /// Of a set, the terminals looked at before are outside, since they give all that is asked for. So each round begins
    /// with another terminal.
    fn violated(&mut self, point: &Fractional, stop: &dyn Stop) -> Result<Vec<(Kind, Vec<bool>)>, Stopped> {
        let mut sets = Vec::new();
        self.first = (self.first + self.order.len() * 5 / 13) % self.order.len();
        let (last, first) = self.order.split_at(self.first);
        for (kind, (network, arcs)) in [Kind::Spread, Kind::Collect].into_iter().zip(&mut self.networks) {
            let values = if kind == Kind::Spread { &point.spread } else { &point.collect };
            for (&arc, &value) in arcs.iter().zip(values) {
                network.set_capacity(arc, parts(value));
            }
            let mut total = 0;
            for (node, &root) in (0_u32..).zip(&point.roots) {
                network.set_supply(node, parts(root));
                total += parts(root);
            }
            let enough = total - parts(TOLERANCE * point.rate());
            for &node in first.iter().chain(last) {
                if network.pull(node, total, stop)? < enough {
                    sets.push((kind, network.min_cut_sink_side()));
                }
                network.set_supply(node, i64::MAX);
            }
        }
        Ok(sets)
    }
}

/// The least that enters or leaves a terminal: no rate is greater.
fn least_around_a_terminal(graph: &Digraph, terminals: &[bool]) -> Option<u64> {
    let mut sums = vec![[0_u64; 2]; terminals.len()];
    for arc in graph.arcs.iter().filter(|arc| arc.from != arc.to) {
        for (node, side) in [(arc.from, 0), (arc.to, 1)] {
            let sum = &mut sums[node as usize][side];
            *sum = sum.saturating_add(arc.capacity);
        }
    }
    sums.iter().zip(terminals).filter(|&(_, &is_terminal)| is_terminal).flat_map(|(sums, _)| sums).copied().min()
}

/// A value of the program as flows count it.
#[expect(clippy::cast_possible_truncation, reason = "values are between 0 and some thousands")]
fn parts(value: f64) -> i64 {
    (value * PARTS) as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stop::Never;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

        /// Rows found half way from inside lead as far as those found at the corners, and to a point that violates none.
        #[test]
        fn both_ways_to_the_optimum_agree(
            walks in prop::collection::vec((prop::collection::vec(0_u32..9, 2..7), 1_u64..10), 0..9),
            extra in prop::collection::vec(any::<bool>(), 9),
        ) {
            let tour = ((0..9).collect::<Vec<u32>>(), 2);
            let closed = |(walk, capacity): (Vec<u32>, u64)| {
                let next = walk.iter().copied().cycle().skip(1).take(walk.len()).collect::<Vec<_>>();
                walk.into_iter().zip(next).map(move |(from, to)| Arc { from, to, capacity })
            };
            let graph = Digraph { node_count: 9, arcs: walks.into_iter().chain([tour]).flat_map(closed).collect() };
            let terminals: Vec<bool> = extra.iter().zip(0..).map(|(&extra, node)| extra || node < 2).collect();
            let point = |rounds| Program::new(&graph, &terminals).unwrap().optimum(rounds, &Never).unwrap();
            let (corner, inner) = (point(u32::MAX), point(0));
            prop_assert!(inner.rate() >= NEAR * corner.rate() * (1.0 - 1e-6), "{} of {}", inner.rate(), corner.rate());
            prop_assert!(inner.rate() <= corner.rate() * (1.0 + 1e-6), "{} of {}", inner.rate(), corner.rate());
            let mut program = Program::new(&graph, &terminals).unwrap();
            for point in [inner, corner] {
                prop_assert!(program.violated(&point, &Never).unwrap().is_empty());
            }
        }
    }
}
