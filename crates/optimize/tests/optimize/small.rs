//! All digraphs on three nodes with capacities up to 2, and all on four with capacity 1: enumeration agrees.

use canopy_optimize::{
    Arc, Digraph, Never, OptimumError, broadcast_optimum, forest_optimum_for, gather_optimum, scatter_optimum, strength,
};

use crate::support::brute_force;

/// Every way to give each ordered pair of nodes a capacity of 0 to `capacity_max`.
fn all_graphs(node_count: u32, capacity_max: u64) -> impl Iterator<Item = Digraph> {
    let pairs: Vec<(u32, u32)> =
        (0..node_count).flat_map(|a| (0..node_count).map(move |b| (a, b))).filter(|(a, b)| a != b).collect();
    let base = capacity_max + 1;
    (0..pairs.iter().map(|_| base).product()).map(move |mut number| {
        let arc = |&(from, to): &(u32, u32)| {
            let capacity = number % base;
            number /= base;
            Arc { from, to, capacity }
        };
        Digraph { node_count, arcs: pairs.iter().map(arc).collect() }
    })
}

/// `None` where the graph is disconnected in a way that matters.
fn connected<T>(answer: Result<T, OptimumError>) -> Option<T> {
    match answer {
        Ok(value) => Some(value),
        Err(OptimumError::Disconnected { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Every optimum, with the last node as a rank and as a switch.
fn check(graph: &Digraph) {
    let count = graph.node_count as usize;
    for switch_count in 0..2 {
        let terminals: Vec<bool> = (0..count).map(|node| node < count - switch_count).collect();
        let weights: Vec<u64> = terminals.iter().map(|&terminal| u64::from(terminal)).collect();
        let forest = connected(forest_optimum_for(graph, &weights, &terminals, &Never));
        assert_eq!(
            forest.map(|optimum| optimum.inverse_rate),
            brute_force::forest(graph, &weights, &terminals),
            "{graph:?}"
        );
        let broadcast = connected(broadcast_optimum(graph, &terminals, 0, &Never)).map_or(0, |(rate, _)| rate);
        assert_eq!(broadcast, brute_force::broadcast(graph, &terminals, 0), "{graph:?}");
        let scatter = connected(scatter_optimum(graph, &weights, 0, &Never)).map(|(inverse_rate, _)| inverse_rate);
        assert_eq!(scatter, brute_force::scatter(graph, &weights, 0), "{graph:?}");
        let gather = connected(gather_optimum(graph, &weights, 0, &Never)).map(|(inverse_rate, _)| inverse_rate);
        assert_eq!(gather, brute_force::scatter(&brute_force::transposed(graph), &weights, 0), "{graph:?}");
        let weakest = strength(graph, &terminals, &Never).map(|strength| strength.rate);
        assert_eq!(weakest, Ok(brute_force::strength(graph, &terminals)), "{graph:?}");
    }
}

#[test]
fn three_nodes() {
    all_graphs(3, 2).for_each(|graph| check(&graph));
}

#[test]
fn four_nodes() {
    all_graphs(4, 1).for_each(|graph| check(&graph));
}
