//! Predicts the cost of a composed schedule from its parts, without building a graph or schedule.
//!
//! A prediction is a few numbers and flags, and every operator a function of them, so that a search may try thousands.

mod error;
#[cfg(test)]
mod tests;

use canopy_optimize::Fraction;

use crate::cost::{Cost, Exactness, least_bandwidth};
pub use error::RuleError;

/// What is known of a graph with a schedule, without building either.
///
/// The graph is regular: as many edges enter each node as leave it, parallel edges and edges from a node to itself counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prediction {
    /// N: number of nodes, at least 1.
    pub order: u64,
    /// d: edges that leave each node, and edges that enter it.
    pub degree: u32,
    /// The allgather.
    pub allgather: Side,
    /// The reduce-scatter: an allgather on the graph with all edges turned around, run backwards.
    pub reduce_scatter: Side,
    /// Whether there are neither parallel edges nor edges from a node to itself.
    pub is_simple: bool,
    /// Whether some edge leads from a node to itself.
    pub has_loops: bool,
    /// Whether the graph is known to be isomorphic to itself with all edges turned around.
    pub is_reverse_symmetric: bool,
}

/// What is known of one of the two collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Side {
    /// What it costs.
    pub cost: Cost,
    /// Whether exactly that, or at most.
    pub exactness: Exactness,
    /// Whether a breadth-first broadcast on the graph is known to have bandwidth `(N−1)/N`, in as many steps as
    /// [`cost`](Self::cost) says.
    pub is_optimal_by_bfb: bool,
    /// Whether the line graph's schedule is known to cost exactly `1/N` more: in every step some link of greatest load begins
    /// an endless walk through nodes whose shares it does not carry.
    pub extends_exactly: bool,
}

impl Prediction {
    /// The `n`-fold line graph: `dⁿ·N` nodes of degree d.
    ///
    /// Each fold takes one step and `1/N` more, N being the nodes before it. It is exactly that for a breadth-first
    /// broadcast if every node has links to two others at least, for Cartesian powers and degree expansions, and for line
    /// graphs of these; otherwise it may be less. A graph of degree 1 is its own line graph.
    ///
    /// * **Source.** Theorem 10 of the dissertation; that powers and degree expansions keep the equality is shown at
    ///   [`Side::extends_exactly`]: in them a link never carries shares of all nodes with some other coordinate.
    /// * **Errors.** n = 0, or more than 2⁶⁴ nodes.
    pub fn line(&self, n: u32) -> Result<Self, RuleError> {
        match (n, self.degree) {
            (0, _) => Err(RuleError::Zero { operator: "line" }),
            (_, 1) => Ok(*self),
            // Every fold at least doubles the order, so few fit.
            _ => (0..n).try_fold(*self, |inner, _| inner.line_once()),
        }
    }

    fn line_once(&self) -> Result<Self, RuleError> {
        let too_large = RuleError::TooLarge { operator: "line" };
        let order = self.order.checked_mul(self.degree.into()).ok_or(too_large)?;
        let share = Fraction::new(1, self.order.into()).ok_or(too_large)?;
        let side = |side: &Side| {
            let bandwidth = side.cost.bandwidth.checked_add(share).ok_or(too_large)?;
            let cost = Cost { steps: side.cost.steps.checked_add(1).ok_or(too_large)?, bandwidth };
            let is_exact = side.exactness == Exactness::Exact && side.extends_exactly;
            Ok(Side {
                cost,
                exactness: if is_exact { Exactness::Exact } else { Exactness::AtMost },
                is_optimal_by_bfb: false,
                extends_exactly: is_exact && self.degree >= if self.has_loops { 3 } else { 2 },
            })
        };
        Ok(Self {
            order,
            allgather: side(&self.allgather)?,
            reduce_scatter: side(&self.reduce_scatter)?,
            is_simple: !self.has_loops,
            ..*self
        })
    }

    /// The degree expansion `G∗n`: `n·N` nodes of degree `n·d`; one step and `(n−1)/(n·N)` more. For n = 1 the graph itself.
    ///
    /// * **Source.** The dissertation's section 3.5, degree expansion. It keeps optimal bandwidth.
    /// * **Errors.** n = 0, an edge from a node to itself, numbers beyond 64 bits.
    pub fn degree(&self, n: u32) -> Result<Self, RuleError> {
        let too_large = RuleError::TooLarge { operator: "degree" };
        match n {
            0 => return Err(RuleError::Zero { operator: "degree" }),
            1 => return Ok(*self),
            _ if self.has_loops => return Err(RuleError::Loops),
            _ => {}
        }
        let order = self.order.checked_mul(n.into()).ok_or(too_large)?;
        let more = Fraction::new(u128::from(n) - 1, order.into()).ok_or(too_large)?;
        let side = |side: &Side| {
            let bandwidth = side.cost.bandwidth.checked_add(more).ok_or(too_large)?;
            let cost = Cost { steps: side.cost.steps.checked_add(1).ok_or(too_large)?, bandwidth };
            Ok(Side { cost, exactness: side.exactness, is_optimal_by_bfb: false, extends_exactly: true })
        };
        Ok(Self {
            order,
            degree: self.degree.checked_mul(n).ok_or(too_large)?,
            allgather: side(&self.allgather)?,
            reduce_scatter: side(&self.reduce_scatter)?,
            ..*self
        })
    }

    /// The Cartesian power `G^□n`: `Nⁿ` nodes of degree `n·d`; n times the steps, and `N/(N−1)·(Nⁿ−1)/Nⁿ` times the
    /// bandwidth. For n = 1 the graph itself.
    ///
    /// * **Source.** The dissertation's definition 14 and its theorem. It keeps optimal bandwidth.
    /// * **Errors.** n = 0, a single node, numbers that do not fit.
    pub fn power(&self, n: u32) -> Result<Self, RuleError> {
        let too_large = RuleError::TooLarge { operator: "power" };
        match n {
            0 => return Err(RuleError::Zero { operator: "power" }),
            1 => return Ok(*self),
            _ if self.order < 2 => return Err(RuleError::Trivial { operator: "power" }),
            _ => {}
        }
        let order = self.order.checked_pow(n).ok_or(too_large)?;
        let factor = inverse(least_bandwidth(self.order)).checked_mul(least_bandwidth(order)).ok_or(too_large)?;
        let side = |side: &Side| {
            let bandwidth = side.cost.bandwidth.checked_mul(factor).ok_or(too_large)?;
            let cost = Cost { steps: side.cost.steps.checked_mul(n).ok_or(too_large)?, bandwidth };
            let is_optimal_by_bfb = side.is_optimal_by_bfb && self.is_simple;
            Ok(Side { cost, exactness: side.exactness, is_optimal_by_bfb, extends_exactly: true })
        };
        Ok(Self {
            order,
            degree: self.degree.checked_mul(n).ok_or(too_large)?,
            allgather: side(&self.allgather)?,
            reduce_scatter: side(&self.reduce_scatter)?,
            ..*self
        })
    }

    /// The Cartesian product `G1□…□Gm`, with a breadth-first broadcast on the whole: `ΠNi` nodes of degree `Σdi`, the sum of
    /// the factors' steps, and optimal bandwidth.
    ///
    /// * **Source.** The dissertation's theorem on Cartesian products by BFB.
    /// * **Errors.** Fewer than two factors; one that has a single node, is not simple, or is not known to be bandwidth-optimal
    ///   by breadth-first broadcast; numbers that do not fit.
    pub fn product(factors: &[Self]) -> Result<Self, RuleError> {
        let too_large = RuleError::TooLarge { operator: "product" };
        if factors.len() < 2 {
            return Err(RuleError::FewFactors { found: factors.len() });
        }
        for (position, factor) in factors.iter().enumerate() {
            if factor.order < 2 {
                return Err(RuleError::Trivial { operator: "product" });
            }
            let is_optimal = factor.allgather.is_optimal_by_bfb && factor.reduce_scatter.is_optimal_by_bfb;
            if !(factor.is_simple && is_optimal) {
                return Err(RuleError::Factor { position: position + 1 });
            }
        }
        let order = factors.iter().try_fold(1_u64, |order, factor| order.checked_mul(factor.order)).ok_or(too_large)?;
        let degree = factors.iter().try_fold(0_u32, |sum, factor| sum.checked_add(factor.degree)).ok_or(too_large)?;
        let side = |of: fn(&Self) -> Side| {
            let steps = factors.iter().try_fold(0_u32, |sum, factor| sum.checked_add(of(factor).cost.steps));
            let cost = Cost { steps: steps.ok_or(too_large)?, bandwidth: least_bandwidth(order) };
            Ok(Side { cost, exactness: Exactness::Exact, is_optimal_by_bfb: true, extends_exactly: true })
        };
        Ok(Self {
            order,
            degree,
            allgather: side(|factor| factor.allgather)?,
            reduce_scatter: side(|factor| factor.reduce_scatter)?,
            is_simple: true,
            has_loops: false,
            is_reverse_symmetric: factors.iter().all(|factor| factor.is_reverse_symmetric),
        })
    }

    /// `G ∪ Gᵀ` with half of each share by the schedule and half by its image: degree 2d, the same cost.
    ///
    /// * **Source.** The dissertation's appendix A.1.6.
    /// * **Errors.** The graph is not known to be reverse-symmetric; numbers that do not fit.
    pub fn bidirect(&self) -> Result<Self, RuleError> {
        if !self.is_reverse_symmetric {
            return Err(RuleError::NotReverseSymmetric);
        }
        let degree = self.degree.checked_mul(2).ok_or(RuleError::TooLarge { operator: "bidirect" })?;
        let side = |side: Side| Side { is_optimal_by_bfb: false, ..side };
        // Whether both graphs share an edge is not known here, so neither is that the union is simple.
        Ok(Self {
            degree,
            is_simple: false,
            allgather: side(self.allgather),
            reduce_scatter: side(self.reduce_scatter),
            ..*self
        })
    }

    /// The cost of a reduce-scatter followed by an allgather; `None` where it does not fit.
    pub fn allreduce(&self) -> Option<(Cost, Exactness)> {
        let cost = self.reduce_scatter.cost.then(self.allgather.cost)?;
        Some((cost, self.reduce_scatter.exactness.max(self.allgather.exactness)))
    }
}

fn inverse(fraction: Fraction) -> Fraction {
    fraction.inverse().expect("there are at least two nodes")
}
