//! The best rate at which all nodes can spread their data to all terminals at once.

use crate::digraph::{Digraph, MergedGraph};
use crate::error::OptimumError;
use crate::flow::FlowUnit;
use crate::fraction::Fraction;
use crate::stop::{Meter, Stop};
use crate::sweep::{first_violated, set_demands};

/// The optimum of [`forest_optimum`] with its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForestOptimum {
    /// `1/x* = max w(S)/B⁺(S)`: time per unit of weight, in reciprocal units of capacity.
    pub inverse_rate: Fraction,
    /// Membership of a set S that attains the maximum.
    pub cut: Vec<bool>,
}

/// Greatest rate per unit of weight at which every node can send its data to all nodes of positive weight.
///
/// As [`forest_optimum_for`], with the nodes of positive weight as terminals.
///
/// # Errors
/// See [`OptimumError`].
pub fn forest_optimum(graph: &Digraph, weights: &[u64], stop: &dyn Stop) -> Result<ForestOptimum, OptimumError> {
    let terminals: Vec<bool> = weights.iter().map(|&weight| weight > 0).collect();
    forest_optimum_for(graph, weights, &terminals, stop)
}

/// Greatest rate per unit of weight at which every node can send its data to all terminals, as the reciprocal
/// `1/x* = max w(S)/B⁺(S)` over the sets S that lack a terminal.
///
/// All data inside S has to leave it, hence no schedule is faster than the maximum; in an Eulerian graph, and in one
/// where every node is a terminal, packed trees reach it. The maximum of ratios is found by Newton's method
/// (Dinkelbach): a terminal that can not pull its data at the rate assumed yields a cut with a larger ratio, which is
/// assumed next. Terminals that passed stay passed, because the rate only falls.
///
/// * **Source.** Zhao 2026 §4.4 (⋆) and theorem 23; the article bisects, with one flow per terminal and step.
/// * **In.** Any directed capacities; `weights` and `terminals` per node. Nodes of weight zero that are no terminals
///   only forward.
/// * **Out.** Exact fraction in reciprocal units of capacity, and a set S that attains it.
/// * **Errors.** See [`OptimumError`]; never an overflow.
/// * **Cost.** One flow per terminal and Newton step, most of them local; O(nodes + arcs) memory. Works in 64 bits
///   wherever the numbers fit, else in 128.
pub fn forest_optimum_for(
    graph: &Digraph,
    weights: &[u64],
    terminals: &[bool],
    stop: &dyn Stop,
) -> Result<ForestOptimum, OptimumError> {
    for found in [weights.len(), terminals.len()] {
        if found != graph.node_count as usize {
            return Err(OptimumError::WrongLength { found, node_count: graph.node_count });
        }
    }
    forest_optimum_of(MergedGraph::new(graph, &mut Meter::new(stop))?, weights, terminals, stop)
}

/// [`forest_optimum_for`] of a graph whose arcs are merged already, with a weight and a mark for each node.
pub(crate) fn forest_optimum_of(
    graph: MergedGraph,
    weights: &[u64],
    terminals: &[bool],
    stop: &dyn Stop,
) -> Result<ForestOptimum, OptimumError> {
    let mut ascent = Ascent::start(graph, weights, terminals, &mut Meter::new(stop))?;
    while !ascent.is_done() {
        ascent.advance(stop)?;
    }
    Ok(ForestOptimum { inverse_rate: ascent.inverse_rate(), cut: complement(&ascent.entered) })
}

/// Newton's method in progress.
struct Ascent<'a> {
    graph: MergedGraph,
    weights: &'a [u64],
    weight_total: u128,
    /// Terminals in order of testing; those before `passed` need no further test.
    order: Vec<u32>,
    passed: usize,
    /// The largest ratio met, per unit of capacity, and the complement T of the set that has it.
    ratio: Fraction,
    entered: Vec<bool>,
}

impl<'a> Ascent<'a> {
    /// Starts from the best cut around a single terminal.
    fn start(
        graph: MergedGraph,
        weights: &'a [u64],
        terminals: &[bool],
        meter: &mut Meter<'_>,
    ) -> Result<Self, OptimumError> {
        let weight_total = weights.iter().map(|&weight| u128::from(weight)).sum();
        let entering = graph.entering_each();
        let mut best: Option<(Fraction, u32)> = None;
        for node in (0..graph.node_count).filter(|&node| terminals[node as usize]) {
            let outside = weight_total - u128::from(weights[node as usize]);
            if outside == 0 {
                continue;
            }
            let Some(ratio) = Fraction::new(outside, entering[node as usize]) else {
                return Err(OptimumError::Disconnected { cut: complement(&only(node, graph.node_count)) });
            };
            if best.is_none_or(|(largest, _)| ratio > largest) {
                best = Some((ratio, node));
            }
        }
        let (ratio, node) = best.ok_or(OptimumError::NothingToMove)?;
        let mut order = graph.breadth_first_order(meter)?;
        order.retain(|&node| terminals[node as usize]);
        let entered = only(node, graph.node_count);
        Ok(Self { graph, weights, weight_total, order, passed: 0, ratio, entered })
    }

    fn is_done(&self) -> bool {
        self.passed == self.order.len()
    }

    fn inverse_rate(&self) -> Fraction {
        // The unit is a divisor of every capacity, so the product is at most the capacity of a cut.
        Fraction::new(self.ratio.numerator, self.ratio.denominator * self.graph.unit).expect("no factor is zero")
    }

    /// Tests terminals at the present ratio, in the narrowest integers that hold it, up to the next larger ratio.
    fn advance(&mut self, stop: &dyn Stop) -> Result<(), OptimumError> {
        match self.advance_in::<i64>(stop)? {
            true => Ok(()),
            false if self.advance_in::<i128>(stop)? => Ok(()),
            false => Err(OptimumError::TooLarge { weight: self.weight_total }),
        }
    }

    /// Says `false`, and does nothing, if the numbers do not fit `C`.
    fn advance_in<C: FlowUnit>(&mut self, stop: &dyn Stop) -> Result<bool, OptimumError> {
        let Fraction { numerator, denominator } = self.ratio;
        let scaled = |weight: u128| weight.checked_mul(denominator).and_then(C::try_from_u128);
        let network = self.graph.network::<C>(numerator, &mut Meter::new(stop))?;
        let (Some(_), Some(mut network)) = (scaled(self.weight_total), network) else {
            return Ok(false);
        };
        let demands: Option<Vec<C>> = self.weights.iter().map(|&weight| scaled(u128::from(weight))).collect();
        let total = set_demands(&mut network, &demands.expect("no demand exceeds their sum"));
        for &node in &self.order[..self.passed] {
            network.set_supply(node, C::MAX);
        }
        match first_violated(&mut network, total, &self.order[self.passed..], stop)? {
            None => self.passed = self.order.len(),
            Some((position, entered)) => {
                self.passed += position;
                self.improve(entered)?;
            }
        }
        Ok(true)
    }

    /// Takes over the ratio of a violated set, which is larger than the present one.
    fn improve(&mut self, entered: Vec<bool>) -> Result<(), OptimumError> {
        let inside: u128 = self
            .weights
            .iter()
            .zip(&entered)
            .filter(|&(_, &inside)| inside)
            .map(|(&weight, _)| u128::from(weight))
            .sum();
        let Some(ratio) = Fraction::new(self.weight_total - inside, self.graph.entering(&entered)) else {
            return Err(OptimumError::Disconnected { cut: complement(&entered) });
        };
        assert!(ratio > self.ratio, "a violated set has a larger ratio, so the method ends");
        self.ratio = ratio;
        self.entered = entered;
        Ok(())
    }
}

/// Membership of the set of one node.
fn only(node: u32, node_count: u32) -> Vec<bool> {
    (0..node_count).map(|other| other == node).collect()
}

/// Membership of the complement.
pub(crate) fn complement(set: &[bool]) -> Vec<bool> {
    set.iter().map(|&inside| !inside).collect()
}
