//! Exact bounds from lengths.

use super::distances::Ways;
use super::problem::{Commodity, ConcurrentError, ConcurrentProblem};
use crate::fraction::Fraction;
use crate::stop::Stop;

/// `Σ c·ℓ / Σ D[s][t]·dist_ℓ(s, t)`, which no rate exceeds, whatever the lengths are.
///
/// * **Source.** Weak duality of Basu 2024, equations (6)–(9).
/// * **In.** A length for each arc; with orbits, one for each orbit: equal for arcs of the same one, else the sums over
///   the commodities given are not those of the ones they stand for.
/// * **Out.** `None` where all distances are zero, which says nothing.
/// * **Errors.** Lengths that do not fit the arcs, sinks out of reach, sums beyond 128 bits, stopped.
/// * **Cost.** One search by Dijkstra for each commodity.
pub fn length_bound(
    problem: &ConcurrentProblem<'_>,
    lengths: &[u64],
    stop: &dyn Stop,
) -> Result<Option<Fraction>, ConcurrentError> {
    let graph = problem.graph();
    if lengths.len() != graph.arcs.len() {
        return Err(ConcurrentError::LengthCount { found: lengths.len(), expected: graph.arcs.len() });
    }
    let products = graph.arcs.iter().zip(lengths).map(|(arc, &length)| u128::from(arc.capacity) * u128::from(length));
    let volume = products.into_iter().try_fold(0_u128, u128::checked_add).ok_or(ConcurrentError::TooLarge)?;
    let ways = Ways::new(graph, lengths);
    let mut total = 0_u128;
    for commodity in problem.commodities() {
        if stop.is_requested() {
            return Err(ConcurrentError::Stopped);
        }
        let sum = sum_of_distances(&ways, commodity)?.checked_mul(commodity.copies.into());
        total = sum.and_then(|sum| total.checked_add(sum)).ok_or(ConcurrentError::TooLarge)?;
    }
    Ok(Fraction::new(volume, total))
}

/// `Σ_t D[s][t]·dist(s, t)`.
fn sum_of_distances(ways: &Ways, commodity: &Commodity) -> Result<u128, ConcurrentError> {
    let distances = ways.from(commodity.source);
    commodity.sinks.iter().try_fold(0_u128, |sum, &(to, demand)| {
        let from = commodity.source;
        let distance = distances[to as usize].ok_or(ConcurrentError::Unreachable { from, to })?;
        let product = distance.checked_mul(demand.into());
        product.and_then(|product| sum.checked_add(product)).ok_or(ConcurrentError::TooLarge)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digraph::{Arc, Digraph};
    use crate::stop::Never;

    /// A ring of one direction: with lengths of 1 the distances from each node are 1, 2, 3, so F ≤ 4/24.
    #[test]
    fn lengths_of_one_bound_a_ring_by_its_hops() {
        let arc = |from| Arc { from, to: (from + 1) % 4, capacity: 1 };
        let graph = Digraph { node_count: 4, arcs: (0..4).map(arc).collect() };
        let others = |source: u32| (0..4).filter(|&node| node != source).map(|node| (node, 1)).collect();
        let all: Vec<Commodity> = (0..4).map(|source| Commodity { source, sinks: others(source), copies: 1 }).collect();
        let problem = ConcurrentProblem::new(&graph, &all, &[]).unwrap();
        assert_eq!(length_bound(&problem, &[1; 4], &Never), Ok(Fraction::new(1, 6)));
        assert_eq!(length_bound(&problem, &[0; 4], &Never), Ok(None));
        // Six of the twelve pairs pass one arc: as much.
        assert_eq!(length_bound(&problem, &[1, 0, 0, 0], &Never), Ok(Fraction::new(1, 6)));
        // One of the four stands for all.
        let one = [Commodity { copies: 4, ..all[0].clone() }];
        let problem = ConcurrentProblem::new(&graph, &one, &[0; 4]).unwrap();
        assert_eq!(length_bound(&problem, &[1; 4], &Never), Ok(Fraction::new(1, 6)));
        assert_eq!(
            length_bound(&problem, &[1; 3], &Never),
            Err(ConcurrentError::LengthCount { found: 3, expected: 4 })
        );
    }

    #[test]
    fn demands_out_of_reach_are_named() {
        let graph = Digraph { node_count: 3, arcs: vec![Arc { from: 0, to: 1, capacity: 1 }] };
        let one = [Commodity { source: 0, sinks: vec![(1, 1), (2, 5)], copies: 1 }];
        let problem = ConcurrentProblem::new(&graph, &one, &[]).unwrap();
        assert_eq!(length_bound(&problem, &[1], &Never), Err(ConcurrentError::Unreachable { from: 0, to: 2 }));
    }

    #[test]
    fn malformed_commodities_are_refused() {
        let graph = Digraph { node_count: 2, arcs: vec![Arc { from: 0, to: 1, capacity: 1 }] };
        let refused = |source, sinks: Vec<(u32, u64)>, copies| {
            ConcurrentProblem::new(&graph, &[Commodity { source, sinks, copies }], &[]).unwrap_err().to_string()
        };
        assert!(refused(2, vec![(1, 1)], 1).contains("starts at node 2"));
        assert!(refused(0, vec![(0, 1)], 1).contains("sinks[0]"));
        assert!(refused(0, vec![(1, 0)], 1).contains("with a demand above 0"));
        assert!(refused(0, vec![(1, 1), (1, 1)], 1).contains("sinks[1]"));
        assert!(refused(0, vec![(1, 1)], 0).contains("copies"));
        assert!(refused(0, vec![], 1).contains("no commodity has a demand"));
    }
}
