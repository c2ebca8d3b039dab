//! Whole trees from parts that a linear program proposed, tested exactly.

use crate::digraph::Digraph;
use crate::flow::FlowNetwork;
use crate::fraction::Fraction;
use crate::lowered;
use crate::stop::{Stop, Stopped};
use crate::strength::division::program::Fractional;
use crate::strength::division::{Division, is_large};
use crate::sweep::sweep;

/// Numbers of trees tried one by one, as long as these lose nothing: flows times arcs that this may take.
const WORK_MAX: usize = 1 << 22;

/// Powers of two tried then, as exponents.
const EXPONENTS: std::ops::Range<u32> = 4..15;

/// Time that trees get beyond what the program says they need, the least that is enough; the first is for its rounding.
const EXCESSES: [f64; 9] = [1e-6, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0];

/// Rates, in units of the least that enters or leaves a terminal, below which floats say nothing.
const LEAST: f64 = 1e-6;

/// Part of the rate of the program that is good enough; of large networks, where many trees take long to pack.
const ENOUGH: f64 = 0.999;
const ENOUGH_OF_LARGE: f64 = 0.995;

/// The division of fewest trees that comes close to the rate of the program, of those tried; `None` where none is found.
pub(super) fn round(
    graph: &Digraph,
    terminals: &[bool],
    fractional: &Fractional,
    stop: &dyn Stop,
) -> Result<Option<Division>, Stopped> {
    let all = fractional.rate();
    if all < LEAST {
        return Ok(None);
    }
    let rounding = Rounding { graph, terminals, fractional, all, order: order(graph, terminals) };
    let work = terminals.len() * graph.arcs.len();
    let one_by_one = (WORK_MAX / work.max(1)).clamp(16, 256) as u64;
    for tree_count in 1..=one_by_one {
        if let Some(division) = rounding.attempt(tree_count, EXCESSES[0], stop)? {
            return Ok(Some(division));
        }
    }
    let enough = if is_large(terminals) { ENOUGH_OF_LARGE } else { ENOUGH };
    let mut best: Option<(Fraction, Division)> = None;
    for tree_count in EXPONENTS.map(|exponent| 1 << exponent) {
        for excess in EXCESSES {
            let Some(division) = rounding.attempt(tree_count, excess, stop)? else { continue };
            let Some(rate) = division.rate(graph) else { break };
            if best.as_ref().is_none_or(|&(known, _)| known < rate) {
                best = Some((rate, division));
            }
            break;
        }
        let rate = best.as_ref().map_or(0.0, |(rate, _)| rate.numerator as f64 / rate.denominator as f64);
        if rate >= enough * all * fractional.unit as f64 {
            break;
        }
    }
    Ok(best.map(|(_, division)| division))
}

struct Rounding<'a> {
    graph: &'a Digraph,
    terminals: &'a [bool],
    fractional: &'a Fractional,
    /// The rate of the program.
    all: f64,
    /// Terminals, neighbours after each other.
    order: Vec<u32>,
}

impl Rounding<'_> {
    /// So many trees in the time that the program says they need, and some more; `None` where they do not fit.
    fn attempt(&self, tree_count: u64, excess: f64, stop: &dyn Stop) -> Result<Option<Division>, Stopped> {
        let time = tree_count as f64 / self.all * (1.0 + excess);
        let mut division = Division {
            tree_count: tree_count.into(),
            roots: self.roots(tree_count),
            spread: Vec::with_capacity(self.graph.arcs.len()),
            collect: Vec::with_capacity(self.graph.arcs.len()),
        };
        for (position, arc) in self.graph.arcs.iter().enumerate() {
            let (spread, collect) = (self.fractional.spread[position] * time, self.fractional.collect[position] * time);
            let room = whole_part(self.fractional.capacities[position] * time);
            let is_shared = self.terminals[arc.from as usize] && self.terminals[arc.to as usize];
            let (spread, collect) = match is_shared {
                // What one kind loses by rounding the other one gets.
                true => (whole_part(spread + 0.5).min(room), room - whole_part(spread + 0.5).min(room)),
                false => (whole_part(spread), whole_part(collect)),
            };
            let counts = arc.from != arc.to;
            division.spread.push(if counts { spread } else { 0 });
            division.collect.push(if counts { collect } else { 0 });
        }
        if self.terminals.contains(&false) {
            for kind in [&mut division.spread, &mut division.collect] {
                lowered::lower(self.graph, self.terminals, kind, stop)?;
            }
        }
        Ok(self.is_enough(&division, stop)?.then_some(division))
    }

    /// Whole numbers of roots in the proportions of the program: the largest remainders are rounded up.
    fn roots(&self, tree_count: u64) -> Vec<u128> {
        let shares: Vec<f64> = self.fractional.roots.iter().map(|root| root / self.all * tree_count as f64).collect();
        let mut roots: Vec<u128> = shares.iter().map(|&share| whole_part(share)).collect();
        let mut by_remainder: Vec<usize> = (0..roots.len()).filter(|&node| self.terminals[node]).collect();
        by_remainder.sort_by(|&one, &other| (shares[other].fract()).total_cmp(&shares[one].fract()));
        let mut missing = u128::from(tree_count).saturating_sub(roots.iter().sum());
        for &node in by_remainder.iter().cycle() {
            if missing == 0 {
                break;
            }
            roots[node] += 1;
            missing -= 1;
        }
        let mut excess = roots.iter().sum::<u128>().saturating_sub(tree_count.into());
        for root in &mut roots {
            let cut = excess.min(*root);
            *root -= cut;
            excess -= cut;
        }
        roots
    }

    /// Whether all trees of either kind fit.
    fn is_enough(&self, division: &Division, stop: &dyn Stop) -> Result<bool, Stopped> {
        let narrow =
            |value: u128| i64::try_from(value).expect("so few trees pass no link more often than nodes are left");
        let demands: Vec<i64> = division.roots.iter().map(|&roots| narrow(roots)).collect();
        for (kind, is_turned) in [(&division.spread, false), (&division.collect, true)] {
            let mut network = FlowNetwork::new(self.graph.node_count);
            for (arc, &capacity) in self.graph.arcs.iter().zip(kind) {
                let (from, to) = if is_turned { (arc.to, arc.from) } else { (arc.from, arc.to) };
                network.add_arc(from, to, narrow(capacity));
            }
            if sweep(&mut network, &demands, &self.order, stop)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn order(graph: &Digraph, terminals: &[bool]) -> Vec<u32> {
    let mut network = FlowNetwork::<i64>::new(graph.node_count);
    for arc in &graph.arcs {
        network.add_arc(arc.from, arc.to, 0);
    }
    let mut order = network.breadth_first_order();
    order.retain(|&node| terminals[node as usize]);
    order
}

/// The whole part of a number that may be off by rounding.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and far less than 2⁶⁴")]
fn whole_part(value: f64) -> u128 {
    (value + 1e-9) as u128
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::digraph::Arc;
    use crate::stop::Never;
    use crate::strength::division::program;

    /// More rounds than usual find the rows, and half of every link is out of balance, so nothing is there to go half way from.
    #[test]
    fn rows_are_looked_for_until_none_is_violated() {
        let arcs = [
            (0, 4, 9),
            (0, 7, 4),
            (2, 3, 6),
            (2, 4, 6),
            (3, 0, 3),
            (3, 2, 1),
            (4, 0, 8),
            (4, 1, 5),
            (4, 1, 1),
            (4, 6, 3),
        ];
        let more = [(4, 7, 4), (6, 4, 4), (7, 1, 5), (7, 3, 4), (7, 4, 2), (7, 6, 2), (1, 2, 5)];
        let tour = (0..8).map(|from| (from, (from + 1) % 8, 2));
        let arcs = arcs.into_iter().chain(more).chain(tour).map(|(from, to, capacity)| Arc { from, to, capacity });
        let graph = Digraph { node_count: 8, arcs: arcs.collect() };
        let terminals: Vec<bool> = (0..8).map(|node| node < 2).collect();
        let fractional = program::solve(&graph, &terminals, &Never).unwrap().unwrap();
        assert!(round(&graph, &terminals, &fractional, &Never).unwrap().is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        /// Little of what the program promises is lost, whatever the network.
        #[test]
        fn rounding_loses_little(
            arcs in prop::collection::vec((0_u32..8, 0_u32..8, 1_u64..10), 0..24),
            extra in prop::collection::vec(any::<bool>(), 8),
        ) {
            let tour = (0..8).map(|from| Arc { from, to: (from + 1) % 8, capacity: 2 });
            let arcs = arcs.into_iter().map(|(from, to, capacity)| Arc { from, to, capacity }).chain(tour).collect();
            let graph = Digraph { node_count: 8, arcs };
            let terminals: Vec<bool> = extra.iter().zip(0..).map(|(&extra, node)| extra || node < 2).collect();
            let fractional = program::solve(&graph, &terminals, &Never).unwrap().unwrap();
            let division = round(&graph, &terminals, &fractional, &Never).unwrap().unwrap();
            let rate = division.rate(&graph).unwrap();
            let promised = fractional.rate() * fractional.unit as f64;
            let reached = rate.numerator as f64 / rate.denominator as f64;
            prop_assert!(reached >= 0.995 * promised, "{reached} of {promised} with {} trees", division.tree_count);
            prop_assert!(reached <= promised * (1.0 + 1e-6), "{reached} of {promised}");
        }
    }
}
