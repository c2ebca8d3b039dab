//! Rate of an all-to-all on a graph: exact if known, else an upper bound.

mod proven;

use std::ops::ControlFlow;

use canopy_optimize::{Fraction, Stop, Stopped};

use crate::bases::is_cyclic;
use crate::construction::Construction;
use crate::digraph::Digraph;
use crate::error::GraphError;
use crate::size::Limit;

pub use proven::proven_rate;

/// The rate of an all-to-all: what each node sends each other one at the same time, in what one edge carries.
///
/// With d edges and bandwidth B per node, one unit that is divided among N nodes takes `d/(N·rate)` units over B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllToAllRate {
    /// The rate.
    pub rate: Fraction,
    /// Whether the rate is reached, or only an upper bound.
    pub is_reached: bool,
}

/// Errors of computing a rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RateError {
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error("no path leads from node {from} to node {to}; add links that connect them")]
    Unreachable { from: u32, to: u32 },
    #[error("a graph with a single node sends nothing; use at least two nodes")]
    Trivial,
    #[error("the exact rate overflows 128 bits; use a smaller graph")]
    Overflow,
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl Construction {
    /// The rate of an all-to-all on its graph: of a product or power by the least of the factors' rates times their part of
    /// the nodes, otherwise [`proven_rate`], or else [`all_to_all_rate`] of the graph.
    ///
    /// Routes that go through the dimensions in order load no link of a factor more than that factor's own all-to-all does,
    /// once for each node of the others; and no routes do better.
    ///
    /// # Errors
    /// [`RateError`]. Cost: that of the factors' graphs.
    pub fn all_to_all_rate(&self, limit: Limit, stop: &dyn Stop) -> Result<AllToAllRate, RateError> {
        if let Some(rate) = proven_rate(self) {
            return Ok(AllToAllRate { rate, is_reached: true });
        }
        let factors: Vec<(&Self, u32)> = match self {
            Self::Power { n, inner } if *n >= 1 => vec![(inner, *n)],
            Self::Product(factors) if !factors.is_empty() => factors.iter().map(|factor| (factor, 1)).collect(),
            _ => return all_to_all_rate(&self.graph(limit)?, stop),
        };
        let mut order = 1_u128;
        let mut least: Option<AllToAllRate> = None;
        for (factor, copies) in factors {
            let own = u128::from(factor.graph(limit)?.order());
            order = own.checked_pow(copies).and_then(|nodes| nodes.checked_mul(order)).ok_or(RateError::Overflow)?;
            let found = factor.all_to_all_rate(limit, stop)?;
            let rate = Fraction::new(own, 1).and_then(|own| own.checked_mul(found.rate)).ok_or(RateError::Overflow)?;
            least = Some(match least {
                // The least of several bounds is reached only if every factor reaches its own.
                Some(before) => {
                    AllToAllRate { rate: before.rate.min(rate), is_reached: before.is_reached && found.is_reached }
                }
                None => AllToAllRate { rate, ..found },
            });
        }
        let AllToAllRate { rate, is_reached } = least.ok_or(RateError::Trivial)?;
        let part = Fraction::new(1, order).ok_or(RateError::Trivial)?;
        Ok(AllToAllRate { rate: rate.checked_mul(part).ok_or(RateError::Overflow)?, is_reached })
    }
}

/// The rate of an all-to-all by distances: `edges / Σ distances`, as every unit uses as many edges as its distance.
///
/// It is reached if routes along shortest paths load all edges alike. Tried are routes that divide evenly among all shortest
/// paths of each pair.
///
/// * **Source.** The bound: distances as the lengths of an LP dual, as in the dissertation's appendix A.1.
/// * **Errors.** A node that is not reached from some other; a single node; stopped.
/// * **Cost.** O(order · edges) additions of fractions; O(edges) where `x → x + 1` is an automorphism.
pub fn all_to_all_rate(graph: &Digraph, stop: &dyn Stop) -> Result<AllToAllRate, RateError> {
    if graph.order() < 2 {
        return Err(RateError::Trivial);
    }
    let order = graph.order();
    let is_cyclic = is_cyclic(graph);
    let mut even = EvenRoutes::new(graph);
    let mut sum = 0_u128;
    for source in 0..if is_cyclic { 1 } else { order } {
        if stop.is_requested() {
            return Err(Stopped.into());
        }
        sum += u128::from(even.search(source)?);
        if even.add_loads().is_break() {
            even.are_known = false;
        }
    }
    let sources = if is_cyclic { u128::from(order) } else { 1 };
    let edges = graph.edges().filter(|(tail, head)| tail != head).count() as u128;
    let rate = Fraction::new(edges, sum * sources).ok_or(RateError::Trivial)?;
    let is_reached = even.are_known && if is_cyclic { even.are_equal_by_slot() } else { even.are_equal() };
    Ok(AllToAllRate { rate, is_reached })
}

/// The rate that no all-to-all exceeds on any graph of so many nodes with so many edges each: `degree / Σ depth` over the nodes
/// of an out-tree of this degree, full but for its last level. `None` for fewer than two nodes, without edges, or beyond
/// 128 bits.
///
/// Every unit uses as many edges as its distance, and no node has others nearer to it than such a tree has.
///
/// * **Source.** Basu 2024, equation (25), turned over. **Cost.** O(log order), O(1) for degree 1.
#[must_use]
pub fn full_tree_rate(order: u32, degree: u32) -> Option<Fraction> {
    let (degree, mut left) = (u128::from(degree), u128::from(order).checked_sub(1)?);
    if degree == 1 {
        return Fraction::new(1, left * (left + 1) / 2);
    }
    let (mut sum, mut depth, mut width) = (0, 1, degree);
    while left > 0 && degree > 0 {
        let level = left.min(width);
        sum += level * depth;
        left -= level;
        (depth, width) = (depth + 1, width * degree);
    }
    Fraction::new(degree, sum)
}

/// Loads of edges when all pairs divide what they send evenly among their shortest paths.
struct EvenRoutes<'a> {
    graph: &'a Digraph,
    /// By edge; meaningless unless `are_known`.
    loads: Vec<Fraction>,
    /// Whether all numbers so far fit 128 bits.
    are_known: bool,
    /// Of the source searched from last: nodes by distance, and by node the distance and the number of shortest paths.
    reached: Vec<u32>,
    distances: Vec<u32>,
    paths: Vec<u128>,
}

impl<'a> EvenRoutes<'a> {
    fn new(graph: &'a Digraph) -> Self {
        let loads = vec![Fraction::ZERO; graph.edge_count() as usize];
        Self { graph, loads, are_known: true, reached: Vec::new(), distances: Vec::new(), paths: Vec::new() }
    }

    /// Searches from a source; returns the sum of all distances.
    fn search(&mut self, source: u32) -> Result<u64, RateError> {
        let order = self.graph.order() as usize;
        self.reached.clear();
        self.reached.push(source);
        self.distances.clear();
        self.distances.resize(order, u32::MAX);
        self.distances[source as usize] = 0;
        self.paths.clear();
        self.paths.resize(order, 0);
        self.paths[source as usize] = 1;
        let (mut next, mut sum) = (0, 0);
        while let Some(&node) = self.reached.get(next) {
            next += 1;
            let distance = self.distances[node as usize];
            sum += u64::from(distance);
            for &head in self.graph.out(node) {
                let known = &mut self.distances[head as usize];
                if *known == u32::MAX {
                    *known = distance + 1;
                    self.reached.push(head);
                }
                if *known == distance + 1 {
                    // Saturates far beyond what loads can be added up of.
                    self.paths[head as usize] = self.paths[head as usize].saturating_add(self.paths[node as usize]);
                }
            }
        }
        match (0..self.graph.order()).find(|&to| self.distances[to as usize] == u32::MAX) {
            Some(to) => Err(RateError::Unreachable { from: source, to }),
            None => Ok(sum),
        }
    }

    /// Adds what the source searched from last sends; breaks off where numbers do not fit.
    ///
    /// Source: U. Brandes, "A faster algorithm for betweenness centrality", J. Math. Sociology 25(2), 2001, for edges.
    fn add_loads(&mut self) -> ControlFlow<()> {
        if !self.are_known {
            return ControlFlow::Break(());
        }
        let mut through = vec![Fraction::ZERO; self.graph.order() as usize];
        let one = Fraction { numerator: 1, denominator: 1 };
        let mut add = || {
            for &node in self.reached.iter().rev() {
                for edge in self.graph.out_edges(node) {
                    let head = self.graph.head(edge);
                    if self.distances[head as usize] != self.distances[node as usize] + 1 {
                        continue;
                    }
                    let part = Fraction::new(self.paths[node as usize], self.paths[head as usize])?;
                    let load = part.checked_mul(through[head as usize].checked_add(one)?)?;
                    through[node as usize] = through[node as usize].checked_add(load)?;
                    self.loads[edge as usize] = self.loads[edge as usize].checked_add(load)?;
                }
            }
            Some(())
        };
        if add().is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Whether all edges but those from a node to itself have one load.
    fn are_equal(&self) -> bool {
        let loads = self.graph.edges().zip(&self.loads).filter(|((tail, head), _)| tail != head);
        let mut loads = loads.map(|(_, load)| load);
        let first = loads.next();
        loads.all(|load| Some(load) == first)
    }

    /// The same from one source, where all edges of one offset are alike: the sums over each offset's edges are.
    fn are_equal_by_slot(&self) -> bool {
        let order = self.graph.order();
        let mut sums = std::collections::BTreeMap::new();
        for ((tail, head), &load) in self.graph.edges().zip(&self.loads).filter(|((tail, head), _)| tail != head) {
            let (sum, edges) = sums.entry((head + order - tail) % order).or_insert((Fraction::ZERO, 0_u128));
            let Some(more) = sum.checked_add(load) else { return false };
            (*sum, *edges) = (more, *edges + 1);
        }
        let part = |(sum, edges): (Fraction, u128)| sum.checked_mul(Fraction::new(u128::from(order), edges)?);
        let mut loads = sums.into_values().map(part);
        let first = loads.next().flatten();
        first.is_some() && loads.all(|load| load == first)
    }
}

#[cfg(test)]
mod tests {
    use canopy_optimize::Never;

    use super::*;
    use crate::families::Family;

    const LIMIT: Limit = Limit { order_max: 2048, edges_max: 1 << 14 };

    #[track_caller]
    fn check(construction: &Construction, (numerator, denominator): (u128, u128), is_reached: bool) {
        let rate = Fraction::new(numerator, denominator).unwrap();
        let found = construction.all_to_all_rate(LIMIT, &Never).unwrap();
        assert_eq!(found, AllToAllRate { rate, is_reached }, "{construction}");
    }

    fn base(family: Family) -> Construction {
        Construction::Base(family)
    }

    fn uni_ring(n: u64) -> Construction {
        base(Family::UniRing { n, d: 1 })
    }

    /// Values of linear programs, as the digest of table A.1 lists them.
    #[test]
    fn rates_that_linear_programs_confirm() {
        check(&base(Family::Bipartite { left: 2, right: 2 }), (1, 2), true);
        check(&uni_ring(4), (1, 6), true);
        check(&base(Family::BiRing { n: 8, d: 2 }), (1, 8), true);
        check(&base(Family::BiRing { n: 4, d: 2 }).power(2), (1, 8), true);
        let rings = Construction::Product(vec![base(Family::BiRing { n: 8, d: 2 }), uni_ring(4).power(2)]);
        check(&rings, (1, 192), true);
        check(&base(Family::Bipartite { left: 4, right: 4 }).line(1), (2, 35), true);
        check(&base(Family::Diamond), (3, 20), true);
        check(&base(Family::Diamond).power(2), (3, 160), true);
        // 2.936e-3.
        check(&base(Family::ModifiedDeBruijn { d: 2, n: 4 }).power(2), (7, 16 * 149), true);
    }

    /// The bound alone is above what an all-to-all reaches there: 0.132075, and 3/20 for the graph by itself.
    #[test]
    fn bounds_are_marked_where_they_are_not_known_to_be_reached() {
        let found = all_to_all_rate(&Family::Diamond.graph(LIMIT).unwrap(), &Never).unwrap();
        assert!(found.rate > Fraction::new(3, 20).unwrap() && !found.is_reached);
        let found = base(Family::DeBruijn { d: 4, n: 2 }).all_to_all_rate(LIMIT, &Never).unwrap();
        assert!(found.rate > Fraction::new(132_075, 1_000_000).unwrap() && !found.is_reached);
    }

    /// A power taken as a graph of its own has the same bound.
    #[test]
    fn the_rule_for_products_agrees_with_the_graph_itself() {
        for construction in [uni_ring(4).power(3), base(Family::Complete { n: 3 }).power(2)] {
            let graph = construction.graph(LIMIT).unwrap();
            let whole = all_to_all_rate(&graph, &Never).unwrap();
            assert_eq!(construction.all_to_all_rate(LIMIT, &Never).unwrap(), whole);
        }
    }

    #[test]
    fn what_has_no_rate_is_refused() {
        let apart = Digraph::new(3, [(0, 1), (1, 0)]).unwrap();
        assert_eq!(all_to_all_rate(&apart, &Never), Err(RateError::Unreachable { from: 0, to: 2 }));
        assert_eq!(all_to_all_rate(&Digraph::new(1, [(0, 0)]).unwrap(), &Never), Err(RateError::Trivial));
    }

    /// Basu 2024, the last columns but one of the table of generalised Kautz graphs, and closed forms: all others at distance 1, and
    /// Σ i·dⁱ of full trees.
    #[test]
    fn full_trees_bound_the_rate() {
        for (order, degree, time) in [
            (5, 4, (1, 1)),
            (8, 3, (11, 3)),
            (10, 4, (7, 2)),
            (12, 2, (25, 2)),
            (12, 3, (19, 3)),
            (15, 4, (6, 1)),
            (20, 4, (17, 2)),
            (25, 4, (12, 1)),
            (27, 8, (11, 2)),
            (30, 4, (63, 4)),
            (40, 4, (93, 4)),
            (48, 4, (117, 4)),
            (80, 4, (213, 4)),
            (85, 4, (57, 1)),
            (100, 4, (72, 1)),
            (6, 1, (15, 1)),
            (1 + 3 + 9 + 27, 3, (3 + 2 * 9 + 3 * 27, 3)),
        ] {
            assert_eq!(full_tree_rate(order, degree), Fraction::new(time.1, time.0), "{order} {degree}");
        }
        for (order, degree) in [(0, 4), (1, 4), (5, 0), (1, 1)] {
            assert_eq!(full_tree_rate(order, degree), None, "{order} {degree}");
        }
        assert!(full_tree_rate(u32::MAX, u32::MAX).is_some() && full_tree_rate(u32::MAX, 1).is_some());
    }

    /// The rate by distances is never above it, and reaches it where nodes are as near as they can be.
    #[test]
    fn trees_are_full_at_best() {
        for family in [
            Family::GenKautz { n: 10, d: 4 },
            Family::GenKautz { n: 30, d: 4 },
            Family::Torus { extents: vec![3, 3] },
            Family::Hypercube { n: 4 },
            Family::Kautz { d: 2, n: 3 },
        ] {
            let graph = family.graph(LIMIT).unwrap();
            let degree = u32::try_from(graph.out(0).len()).unwrap();
            let least = full_tree_rate(graph.order(), degree).unwrap();
            assert!(all_to_all_rate(&graph, &Never).unwrap().rate <= least, "{family}");
        }
    }
}
