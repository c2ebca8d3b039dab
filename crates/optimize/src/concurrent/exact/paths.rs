//! Concurrent flows on given paths only.

use good_lp::{Expression, Variable};

use super::mend::as_float;
use super::program::{Program, Solution};
use crate::concurrent::ConcurrentError;
use crate::digraph::Digraph;
use crate::stop::Stop;

/// Most paths of a program that is solved whole.
pub const PATHS_MAX: u64 = 200_000;

/// The best use of given paths.
#[derive(Clone, Debug, PartialEq)]
pub struct PathOptimum {
    /// By pair, by path: parts of the pair's demand, which add up to 1.
    pub weights: Vec<Vec<f64>>,
    /// F for each unit of demand, of these weights, in units of capacity.
    pub rate: f64,
    /// The price of each arc, for display and for searching better paths: no path of a pair costs less than its
    /// cheapest one.
    pub prices: Vec<f64>,
}

/// Divides pairs among given paths so that all get the greatest common rate.
///
/// * **Source.** Basu 2024, equations (21)–(24).
/// * **In.** `pairs`: by pair its paths, each the arcs that it passes. `demands`: by pair how much it wants. A pair that
///   wants nothing, or has a path without arcs, costs nothing.
/// * **Out.** `None` where there are more than [`PATHS_MAX`] paths, or the solver gives up. Weights are to about nine digits;
///   with several best ones, a mixture of all.
/// * **Errors.** [`ConcurrentError`]: a pair that wants something without a path, arcs that are not there or have no capacity,
///   nothing to move, stopped.
/// * **Cost.** 20 to 30 factorisations of a sparse matrix of as many rows as there are paths, pairs and arcs.
pub fn path_optimum(
    graph: &Digraph,
    pairs: &[Vec<Vec<u32>>],
    demands: &[u64],
    stop: &dyn Stop,
) -> Result<Option<PathOptimum>, ConcurrentError> {
    require_usable(graph, pairs, demands)?;
    if pairs.iter().map(|paths| paths.len() as u64).sum::<u64>() > PATHS_MAX {
        return Ok(None);
    }
    // Rates in parts of what the paths reach when each pair shares its demand equally among them: at least 1.
    let equal: Vec<Vec<f64>> =
        pairs.iter().map(|paths| vec![1.0 / as_float(paths.len() as u64); paths.len()]).collect();
    let reached = rate_of(graph, pairs, demands, &equal);
    let total: f64 = demands.iter().map(|&demand| as_float(demand)).sum();
    let wanting = demands.iter().filter(|&&demand| demand > 0).count();
    let mean = total / as_float(wanting as u64);
    let mut program = Program::default();
    let rate = program.variable();
    let mut used: Vec<Vec<Variable>> = vec![Vec::new(); graph.arcs.len()];
    let mut amounts: Vec<Vec<Variable>> = Vec::with_capacity(pairs.len());
    for (paths, &demand) in pairs.iter().zip(demands) {
        let mut own = Vec::with_capacity(paths.len());
        let mut sum = Expression::with_capacity(paths.len() + 1);
        sum.add_mul(as_float(demand) / mean, rate);
        for path in paths {
            let amount = program.variable();
            sum.add_mul(-1.0, amount);
            path.iter().for_each(|&arc| used[arc as usize].push(amount));
            own.push(amount);
        }
        program.at_most(sum, 0.0);
        amounts.push(own);
    }
    let first_capacity = program.row_count();
    let unit = reached * mean;
    for (arc, sum) in graph.arcs.iter().zip(&used) {
        let mut load = Expression::with_capacity(sum.len());
        sum.iter().for_each(|&amount| load.add_mul(1.0, amount));
        program.at_most(load, (as_float(arc.capacity) / unit).min(total / mean * as_float(graph.arcs.len() as u64)));
    }
    let Some(Solution { values, prices }) = program.maximised(rate.into(), stop)? else { return Ok(None) };
    let mut left = values[1..].iter().copied();
    let weights: Vec<Vec<f64>> = amounts
        .iter()
        .map(|own| {
            let parts: Vec<f64> = left.by_ref().take(own.len()).collect();
            let sum: f64 = parts.iter().sum();
            let equal = 1.0 / as_float(own.len() as u64);
            parts.into_iter().map(|part| if sum > 0.0 { part / sum } else { equal }).collect()
        })
        .collect();
    let rate = rate_of(graph, pairs, demands, &weights);
    Ok(Some(PathOptimum { rate, weights, prices: prices[first_capacity..].to_vec() }))
}

/// 1 over the greatest load of an arc for its capacity.
fn rate_of(graph: &Digraph, pairs: &[Vec<Vec<u32>>], demands: &[u64], weights: &[Vec<f64>]) -> f64 {
    let mut loads = vec![0.0; graph.arcs.len()];
    for ((paths, &demand), weights) in pairs.iter().zip(demands).zip(weights) {
        for (path, weight) in paths.iter().zip(weights) {
            path.iter().for_each(|&arc| loads[arc as usize] += as_float(demand) * weight);
        }
    }
    let times = loads.iter().zip(&graph.arcs).filter(|(load, _)| **load > 0.0);
    1.0 / times.map(|(load, arc)| load / as_float(arc.capacity)).fold(0.0, f64::max)
}

fn require_usable(graph: &Digraph, pairs: &[Vec<Vec<u32>>], demands: &[u64]) -> Result<(), ConcurrentError> {
    if pairs.len() != demands.len() {
        return Err(ConcurrentError::PairCount { found: demands.len(), expected: pairs.len() });
    }
    for (pair, (paths, &demand)) in pairs.iter().zip(demands).enumerate() {
        if demand > 0 && paths.is_empty() {
            return Err(ConcurrentError::NoPath { pair });
        }
        let usable = |&arc: &u32| graph.arcs.get(arc as usize).is_some_and(|arc| arc.capacity > 0);
        for (path, arcs) in paths.iter().enumerate() {
            if let Some(&arc) = arcs.iter().find(|arc| !usable(arc)) {
                return Err(ConcurrentError::PathArc { pair, path, arc, arc_count: graph.arcs.len() });
            }
        }
    }
    let moves = |(paths, &demand): (&Vec<Vec<u32>>, &u64)| demand > 0 && paths.iter().any(|path| !path.is_empty());
    if pairs.iter().zip(demands).any(moves) { Ok(()) } else { Err(ConcurrentError::NothingToMove) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digraph::Arc;
    use crate::stop::Never;

    /// Two parallel ways of capacity 3 and 1, used by two pairs, one of which may take the narrow one only.
    #[test]
    fn pairs_share_what_is_best_for_the_last_of_them() {
        let arc = |from, to, capacity| Arc { from, to, capacity };
        let graph = Digraph { node_count: 2, arcs: vec![arc(0, 1, 3), arc(0, 1, 1), arc(1, 0, 5)] };
        let pairs = vec![vec![vec![0], vec![1]], vec![vec![1]]];
        let optimum = path_optimum(&graph, &pairs, &[4, 1], &Never).unwrap().unwrap();
        // The wide way alone carries 3, of 4: F = 3/4 if the narrow one keeps 3/4 for the other, and 4/5 with 1/5 of it.
        assert!((optimum.rate - 0.8).abs() < 1e-8, "{optimum:?}");
        assert!((optimum.weights[0][0] - 15.0 / 16.0).abs() < 1e-7, "{optimum:?}");
        assert!(optimum.prices[0] > 0.1 && optimum.prices[1] > 0.1 && optimum.prices[2] < 1e-7, "{optimum:?}");
    }

    /// A bidirectional ring of four, both ways round for opposite nodes: 1/F is 2; one way only, 3.
    #[test]
    fn fewer_paths_are_no_better() {
        let arcs = (0..4).flat_map(|from| [1, 3].map(|step| Arc { from, to: (from + step) % 4, capacity: 7 }));
        let graph = Digraph { node_count: 4, arcs: arcs.collect() };
        let way = |from: u32, hops: u32, side: u32| -> Vec<u32> {
            (0..hops).map(|hop| (from + if side == 0 { hop } else { 4 - hop }) % 4 * 2 + side).collect()
        };
        let both = |from: u32| [vec![way(from, 1, 0)], vec![way(from, 2, 0), way(from, 2, 1)], vec![way(from, 1, 1)]];
        let pairs: Vec<Vec<Vec<u32>>> = (0..4).flat_map(both).collect();
        let found = path_optimum(&graph, &pairs, &[1; 12], &Never).unwrap().unwrap();
        assert!((found.rate - 3.5).abs() < 1e-7, "{found:?}");
        let first: Vec<Vec<Vec<u32>>> = pairs.iter().map(|paths| paths[..1].to_vec()).collect();
        let found = path_optimum(&graph, &first, &[1; 12], &Never).unwrap().unwrap();
        assert!((found.rate - 7.0 / 3.0).abs() < 1e-7, "{found:?}");
    }

    #[test]
    fn paths_that_can_not_be_used_are_named() {
        let graph = Digraph { node_count: 2, arcs: vec![Arc { from: 0, to: 1, capacity: 1 }] };
        let refused = |pairs: &[Vec<Vec<u32>>], demands: &[u64]| {
            path_optimum(&graph, pairs, demands, &Never).unwrap_err().to_string()
        };
        assert!(refused(&[vec![vec![1]]], &[1]).contains("pairs[0][0]"));
        assert!(refused(&[vec![]], &[1]).contains("pairs[0]"));
        assert!(refused(&[], &[1]).contains("demands"));
        assert!(refused(&[vec![vec![0]]], &[0]).contains("no commodity has a demand"));
    }
}
