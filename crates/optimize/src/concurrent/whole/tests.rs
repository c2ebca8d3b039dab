use proptest::prelude::*;

use super::*;
use crate::concurrent::problem::Commodity;
use crate::concurrent::samples::everyone;
use crate::digraph::{Arc, Digraph};
use crate::stop::Never;

/// Nodes x·sides[1] + y, joined both ways to their neighbours around the torus.
fn torus(sides: [u32; 2], capacity: u64) -> Digraph {
    let mut arcs = Vec::new();
    for x in 0..sides[0] {
        for y in 0..sides[1] {
            for (to_x, to_y) in [(x + 1, y), (x + sides[0] - 1, y), (x, y + 1), (x, y + sides[1] - 1)] {
                let to = to_x % sides[0] * sides[1] + to_y % sides[1];
                arcs.push(Arc { from: x * sides[1] + y, to, capacity });
            }
        }
    }
    Digraph { node_count: sides[0] * sides[1], arcs }
}

/// Each node passes on to all that are nearer to the source, in equal parts.
fn evenly(problem: &ConcurrentProblem<'_>) -> ProposedFlow {
    let graph = problem.graph();
    let flow = |commodity: &Commodity| {
        let mut distances = vec![u32::MAX; graph.node_count as usize];
        distances[commodity.source as usize] = 0;
        for round in 0..graph.node_count {
            for arc in &graph.arcs {
                if distances[arc.from as usize] == round {
                    let known = &mut distances[arc.to as usize];
                    *known = (*known).min(round + 1);
                }
            }
        }
        let mut needs = vec![0.0; distances.len()];
        commodity.sinks.iter().for_each(|&(node, demand)| needs[node as usize] = demand as f64);
        let mut nodes: Vec<usize> = (0..distances.len()).collect();
        nodes.sort_by_key(|&node| std::cmp::Reverse(distances[node]));
        let mut amounts = Vec::new();
        for node in nodes.into_iter().filter(|&node| distances[node] > 0) {
            let is_nearer =
                |arc: &&(u32, &Arc)| arc.1.to as usize == node && distances[arc.1.from as usize] < distances[node];
            let entering: Vec<(u32, &Arc)> = (0..).zip(&graph.arcs).filter(|arc| is_nearer(&arc)).collect();
            for (index, arc) in &entering {
                amounts.push((*index, needs[node] / entering.len() as f64));
                needs[arc.from as usize] += needs[node] / entering.len() as f64;
            }
        }
        amounts.sort_by_key(|&(arc, _)| arc);
        amounts
    };
    ProposedFlow { amounts: problem.commodities().iter().map(flow).collect() }
}

fn fraction(numerator: u128, denominator: u128) -> Fraction {
    Fraction::new(numerator, denominator).unwrap()
}

/// Adds paths up: that they are paths, bring what is wanted, and load arcs as much as the flow says.
fn require_right(problem: &ConcurrentProblem<'_>, flow: &WholeFlow) {
    let arcs = &problem.graph().arcs;
    let mut loads = vec![0_u128; flow.classes.loads.len()];
    for (index, commodity) in problem.commodities().iter().enumerate() {
        let mut got = vec![0; problem.graph().node_count as usize];
        let mut before = 0;
        for path in flow.paths(problem, index).unwrap() {
            assert!(path.sink >= before && path.chunks > 0);
            before = path.sink;
            let mut node = commodity.source;
            for &arc in &path.arcs {
                assert_eq!(arcs[arc as usize].from, node);
                node = arcs[arc as usize].to;
                loads[flow.classes.of(arc)] += u128::from(path.chunks * commodity.copies);
            }
            assert_eq!(node, path.sink);
            got[node as usize] += path.chunks;
        }
        for &(sink, demand) in &commodity.sinks {
            assert_eq!(got[sink as usize], demand * flow.chunks, "sink {sink} of {}", commodity.source);
        }
    }
    // Paths leave out cycles.
    assert!(loads.iter().zip(&flow.classes.loads).all(|(paths, flow)| paths <= flow), "{loads:?}");
}

#[test]
fn tori_are_filled_exactly() {
    // 1/F is 3, 8 and 15 for squares of 3, 4 and 5, and so it is for links of any capacity.
    for (side, most) in [(3, 3), (4, 8), (5, 15)] {
        let graph = torus([side, side], 7);
        let commodities = everyone(graph.node_count);
        let problem = ConcurrentProblem::new(&graph, &commodities, &[]).unwrap();
        let (ones, limit) = (vec![1; graph.arcs.len()], fraction(7, most));
        for chunks in [1, 2, 3, 8] {
            let flow =
                WholeFlow::new(&problem, &evenly(&problem), chunks, (&ones, limit), Effort::Full, &Never).unwrap();
            require_right(&problem, &flow);
            assert_eq!(flow.rate(), Some(limit), "{side}×{side} in {chunks} chunks");
        }
    }
}

#[test]
fn one_source_stands_for_all_by_orbits() {
    let graph = torus([4, 6], 1);
    let sinks = (1..24).map(|node| (node, 1)).collect();
    let commodities = [Commodity { source: 0, sinks, copies: 24 }];
    // Right, left, up and down.
    let orbits: Vec<u32> = (0..96).map(|arc| arc % 4).collect();
    let problem = ConcurrentProblem::new(&graph, &commodities, &orbits).unwrap();
    // Sides of 6 hold the rate down: 24 · 9/6 / 2.
    let (ones, limit) = (vec![1; graph.arcs.len()], fraction(1, 18));
    let flow = WholeFlow::new(&problem, &evenly(&problem), 1, (&ones, limit), Effort::Full, &Never).unwrap();
    require_right(&problem, &flow);
    assert_eq!(flow.rate(), Some(limit));
}

#[test]
fn what_is_not_proposed_goes_over_few_arcs() {
    let graph = torus([3, 3], 1);
    let commodities = everyone(graph.node_count);
    let problem = ConcurrentProblem::new(&graph, &commodities, &[]).unwrap();
    let ones = vec![1; graph.arcs.len()];
    let proposals = [
        ProposedFlow { amounts: Vec::new() },
        // Nonsense does no harm.
        ProposedFlow { amounts: vec![vec![(0, f64::NAN), (1, f64::INFINITY), (2, -1.0), (3, 1e300), (99, 1.0)]; 9] },
    ];
    for proposed in proposals {
        let flow = WholeFlow::new(&problem, &proposed, 1, (&ones, fraction(1, 3)), Effort::Full, &Never).unwrap();
        require_right(&problem, &flow);
        assert_eq!(flow.rate(), Some(fraction(1, 3)), "relief makes it the best there is");
    }
}

#[test]
fn refused_are_numbers_too_large_and_sinks_out_of_reach() {
    let graph = Digraph { node_count: 3, arcs: vec![Arc { from: 0, to: 1, capacity: 1 }] };
    let none = ProposedFlow { amounts: Vec::new() };
    let refused = |sinks, chunks| {
        let commodities = [Commodity { source: 0, sinks, copies: 2 }];
        let problem = ConcurrentProblem::new(&graph, &commodities, &[]).unwrap();
        WholeFlow::new(&problem, &none, chunks, (&[], fraction(1, 1)), Effort::Full, &Never).unwrap_err()
    };
    assert_eq!(refused(vec![(1, 1), (2, 1)], 1), ConcurrentError::Unreachable { from: 0, to: 2 });
    assert_eq!(refused(vec![(1, u64::MAX / 8)], 5), ConcurrentError::TooLarge);
    let commodities = [Commodity { source: 0, sinks: vec![(1, 1)], copies: 1 }];
    let problem = ConcurrentProblem::new(&graph, &commodities, &[]).unwrap();
    let stopped = WholeFlow::new(&problem, &none, 1, (&[], fraction(1, 1)), Effort::Full, &|| true);
    assert_eq!(stopped, Err(ConcurrentError::Stopped));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the network, the demands, the proposal and the number of chunks: flows conserve, and are no faster than
    /// lengths allow.
    #[test]
    fn any_proposal_is_rounded_to_a_flow(
        node_count in 2_u32..9,
        links in prop::collection::vec((0_u32..9, 0_u32..9, 0_u64..50), 0..30),
        demands in prop::collection::vec((0_u32..9, 0_u32..9, 1_u64..5), 1..20),
        wild in prop::collection::vec(prop::collection::vec((0_u32..40, -0.5_f64..3.0), 0..30), 0..9),
        chunks in 1_u64..20,
    ) {
        // A ring makes sure that everybody is within reach.
        let ring = (0..node_count).map(|from| Arc { from, to: (from + 1) % node_count, capacity: 3 });
        let links = links.into_iter().filter(|&(from, to, _)| from < node_count && to < node_count && from != to);
        let arcs = ring.chain(links.map(|(from, to, capacity)| Arc { from, to, capacity })).collect();
        let graph = Digraph { node_count, arcs };
        let mut by_source = std::collections::BTreeMap::<u32, std::collections::BTreeMap<u32, u64>>::new();
        for (from, to, demand) in demands {
            let (from, to) = (from % node_count, to % node_count);
            if from != to {
                by_source.entry(from).or_default().insert(to, demand);
            }
        }
        let commodity = |(source, sinks): (u32, std::collections::BTreeMap<u32, u64>)| {
            Commodity { source, sinks: sinks.into_iter().collect(), copies: 1 }
        };
        let commodities: Vec<Commodity> = by_source.into_iter().map(commodity).collect();
        prop_assume!(!commodities.is_empty());
        let problem = ConcurrentProblem::new(&graph, &commodities, &[]).unwrap();
        let ones = vec![1; graph.arcs.len()];
        let limit = super::super::bound::length_bound(&problem, &ones, &Never).unwrap().unwrap();
        for proposed in [ProposedFlow { amounts: wild }, evenly(&problem)] {
            let flow = WholeFlow::new(&problem, &proposed, chunks, (&ones, limit), Effort::Full, &Never).unwrap();
            require_right(&problem, &flow);
            prop_assert!(flow.rate().unwrap() <= limit);
        }
    }
}
