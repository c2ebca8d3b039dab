//! A request to stop is heeded, wherever it comes.

use std::sync::atomic::{AtomicU64, Ordering};

use canopy_optimize::{
    Arc, Digraph, FlowNetwork, Fraction, OptimumError, Stop, Stopped, balanced_optimum, broadcast_optimum, divided,
    forest_optimum, gather_optimum, halved, isolating_cuts, scatter_optimum, strength, sweep,
};

/// Says yes from the question with this number on.
struct After {
    allowed: u64,
    asked: AtomicU64,
}

impl After {
    fn new(allowed: u64) -> Self {
        Self { allowed, asked: AtomicU64::new(0) }
    }
}

impl Stop for After {
    fn is_requested(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) >= self.allowed
    }
}

/// A ring with chords, each node to the next seven: large enough that each computation asks several times.
fn chords(node_count: u32) -> Digraph {
    let arc = |from: u32, step: u32| Arc { from, to: (from + step) % node_count, capacity: u64::from(from % 5 + step) };
    Digraph { node_count, arcs: (0..node_count).flat_map(|from| (1..8).map(move |step| arc(from, step))).collect() }
}

/// Runs to the end once, counting questions, then stops at the first, in the middle and at the last.
#[track_caller]
fn check<T: std::fmt::Debug + PartialEq>(compute: impl Fn(&dyn Stop) -> Result<T, OptimumError>) {
    let patient = After::new(u64::MAX);
    compute(&patient).expect("there is an optimum");
    let asked = patient.asked.into_inner();
    assert!(asked > 2, "asked {asked} times");
    for allowed in [0, asked / 2, asked - 1] {
        let impatient = After::new(allowed);
        assert_eq!(compute(&impatient), Err(OptimumError::Stopped(Stopped)));
        assert_eq!(impatient.asked.into_inner(), allowed + 1, "nothing goes on after a request to stop");
    }
}

#[test]
fn every_computation_stops() {
    let graph = chords(2000);
    let (weights, terminals) = (vec![1; 2000], vec![true; 2000]);
    let parts: Vec<Vec<u32>> = (0..2000).map(|node| vec![node]).collect();
    check(|stop| forest_optimum(&graph, &weights, stop));
    check(|stop| broadcast_optimum(&graph, &terminals, 5, stop));
    check(|stop| scatter_optimum(&graph, &weights, 5, stop));
    check(|stop| gather_optimum(&graph, &weights, 5, stop));
    check(|stop| strength(&graph, &terminals, stop));
    check(|stop| isolating_cuts(&graph, &parts, stop));
    let mut balanced = graph.clone();
    balanced.arcs.iter_mut().for_each(|arc| arc.capacity = 1 + (u64::from(arc.to) + 2000 - u64::from(arc.from)) % 2000);
    let half = Fraction { numerator: 1, denominator: 2 };
    check(|stop| halved(&balanced, &terminals, half, stop));
    check(|stop| divided(&chords(20), &[true; 20], stop));
    let graph = chords(60);
    let terminals: Vec<bool> = (0..60).map(|node| node % 3 > 0).collect();
    let weights: Vec<u64> = terminals.iter().map(|&terminal| u64::from(terminal)).collect();
    check(|stop| balanced_optimum(&graph, &weights, &terminals, stop));
}

/// A network that was stopped can be asked again.
#[test]
fn a_stopped_network_is_intact() {
    let graph = chords(500);
    let mut network = FlowNetwork::<i64>::new(500);
    for arc in &graph.arcs {
        network.add_arc(arc.from, arc.to, i64::try_from(arc.capacity).unwrap());
    }
    let patient = After::new(u64::MAX);
    let expected = network.max_flow(0, 250, i64::MAX, &patient).unwrap();
    let (order, mut demands) = ((0..500).collect::<Vec<u32>>(), [0; 500]);
    demands[7] = 3;
    for allowed in 0..patient.asked.into_inner() {
        network.reset();
        assert_eq!(network.max_flow(0, 250, i64::MAX, &After::new(allowed)), Err(Stopped));
        assert_eq!(sweep(&mut network, &demands, &order, &After::new(allowed + 1)), Err(Stopped));
    }
    network.reset();
    assert_eq!(network.max_flow(0, 250, i64::MAX, &|| false), Ok(expected));
}
