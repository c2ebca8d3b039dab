//! Known costs of the graphs at the leaves of constructions.

use std::collections::HashMap;

use canopy_optimize::{BfbError, Fraction, Stop, step_loads};

use crate::cost::{Cost, Exactness, least_bandwidth};
use crate::digraph::Digraph;
use crate::error::PredictError;
use crate::families::Family;
use crate::given::{Given, given};
use crate::prediction::{Prediction, Side};
use crate::regular::{bfb_graph, regular_degree};
use crate::reversal::reversal;
use crate::size::Limit;

/// Predictions for members of families, each found once.
///
/// The cost is that of the breadth-first broadcast with the least loads, or of a stored schedule for the few graphs that
/// have a better one.
#[derive(Clone, Debug)]
pub struct Bases {
    limit: Limit,
    known: HashMap<Family, Result<Prediction, PredictError>>,
}

impl Bases {
    /// An empty store; graphs over the limit are not analysed.
    pub fn new(limit: Limit) -> Self {
        Self { limit, known: HashMap::new() }
    }

    /// Size limit of graphs that are analysed.
    pub const fn limit(&self) -> Limit {
        self.limit
    }

    /// The prediction for a member of a family, computed on first use.
    ///
    /// # Errors
    /// [`PredictError`], the same each time.
    pub fn predict(&mut self, family: &Family, stop: &dyn Stop) -> Result<Prediction, PredictError> {
        if let Some(known) = self.known.get(family) {
            return known.clone();
        }
        let graph = family.graph(self.limit).map_err(PredictError::from);
        let found = graph.and_then(|graph| self.evaluate(&graph, stop));
        if !matches!(found, Err(PredictError::Bfb(BfbError::Stopped(_)))) {
            self.known.insert(family.clone(), found.clone());
        }
        found
    }

    /// Cost of the breadth-first broadcasts on a graph, or of its stored schedules.
    ///
    /// One node is looked at where `x → x + 1` is an automorphism, else all. O(order · edges) at worst.
    ///
    /// # Errors
    /// The graph is not regular, or some node does not reach some other; stopped.
    pub fn evaluate(&self, graph: &Digraph, stop: &dyn Stop) -> Result<Prediction, PredictError> {
        let transpose = graph.transpose();
        let degree = regular_degree(graph, &transpose)?;
        let has_loops = graph.edges().any(|(tail, head)| tail == head);
        let is_simple = !has_loops && (0..graph.order()).all(|node| distinct(graph.out(node)) == graph.out(node).len());
        let is_reverse_symmetric = reversal(graph).is_some();
        let allgather = side(graph, degree, is_simple, stop)?;
        let reduce_scatter = match given(&transpose) {
            // An isomorphism carries one schedule to the other.
            None if is_reverse_symmetric => allgather,
            _ => side(&transpose, degree, is_simple, stop)?,
        };
        Ok(Prediction {
            order: graph.order().into(),
            degree,
            allgather,
            reduce_scatter,
            is_simple,
            has_loops,
            is_reverse_symmetric,
        })
    }
}

/// Different numbers.
fn distinct(numbers: &[u32]) -> usize {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len()
}

/// The allgather on a graph.
fn side(graph: &Digraph, degree: u32, is_simple: bool, stop: &dyn Stop) -> Result<Side, PredictError> {
    if let Some(Given { cost, extends_exactly, .. }) = given(graph) {
        return Ok(Side { cost, exactness: Exactness::Exact, is_optimal_by_bfb: false, extends_exactly });
    }
    let order = graph.order();
    let links = bfb_graph(graph, stop)?;
    let nodes = if is_cyclic(graph) { 0..order.min(1) } else { 0..order };
    let loads = step_loads(&links, nodes, None, stop)?;
    let steps = u32::try_from(loads.loads.len()).map_err(|_| PredictError::Overflow)?;
    let per_edge = Fraction::new(degree.into(), order.max(1).into());
    let total = loads.total().ok_or(PredictError::Overflow)?;
    let bandwidth = per_edge.and_then(|factor| total.checked_mul(factor)).ok_or(PredictError::Overflow)?;
    let others = |node: u32| {
        let mut heads: Vec<u32> = graph.out(node).iter().copied().filter(|&head| head != node).collect();
        heads.sort_unstable();
        heads.dedup();
        heads.len()
    };
    Ok(Side {
        cost: Cost { steps, bandwidth },
        exactness: Exactness::Exact,
        is_optimal_by_bfb: is_simple && order >= 2 && bandwidth == least_bandwidth(order.into()),
        extends_exactly: (0..order).all(|node| others(node) >= 2),
    })
}

/// Whether adding 1 to all numbers, modulo the order, keeps the edges: then all nodes are alike. O(edges · log degree).
pub(crate) fn is_cyclic(graph: &Digraph) -> bool {
    let order = graph.order();
    let sorted = |mut heads: Vec<u32>| {
        heads.sort_unstable();
        heads
    };
    (0..order).all(|node| {
        let moved = graph.out(node).iter().map(|&head| (head + 1) % order).collect();
        sorted(moved) == sorted(graph.out((node + 1) % order).to_vec())
    })
}
