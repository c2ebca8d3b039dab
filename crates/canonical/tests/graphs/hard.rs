//! Graphs that refinement cannot tell apart: strongly regular ones, and those of Cai, Fürer and Immerman.

use canopy_canonical::{Budget, Graph, Outcome, analyse};

use crate::support::{analysed, cases, form, plain, shuffled};

/// Cells of a 4×4 grid, joined where this says so.
fn on_a_grid(joined: impl Fn((i32, i32), (i32, i32)) -> bool) -> Graph {
    let cell = |index: u32| (i32::try_from(index / 4).unwrap(), i32::try_from(index % 4).unwrap());
    plain(16, (0..16).flat_map(|a| (0..a).map(move |b| (a, b))).filter(|&(a, b)| joined(cell(a), cell(b))))
}

/// Both are strongly regular with parameters (16, 6, 2, 2).
#[test]
fn shrikhande_is_not_the_rook() {
    let rook = on_a_grid(|a, b| a.0 == b.0 || a.1 == b.1);
    let steps = [(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)];
    let shrikhande = on_a_grid(|a, b| steps.contains(&((a.0 - b.0).rem_euclid(4), (a.1 - b.1).rem_euclid(4))));
    let order = |graph: &Graph| analysed(graph).solution().unwrap().group_order.to_string();
    assert_eq!((order(&rook), order(&shrikhande)), ("1152".to_owned(), "192".to_owned()));
    for seed in 0..u64::from(cases(200)) {
        let places = shuffled(16, seed);
        let (a, b) = (form(&rook.renumbered(&places).unwrap()), form(&shrikhande.renumbered(&places).unwrap()));
        assert!(a != b && a == form(&rook) && b == form(&shrikhande));
    }
}

/// The graph that Cai, Fürer and Immerman (1992) make of a cubic one: of every node, one node for each even set of its
/// edges, and two for each of its edges; `is_twisted` crosses the two of the first edge.
fn cai_fuerer_immerman(cubic: &[(u32, u32)], is_twisted: bool) -> Graph {
    let node_count = 2 * u32::try_from(cubic.len()).unwrap() / 3;
    let edges_at =
        |node: u32| (0_u32..).zip(cubic).filter(move |(_, edge)| edge.0 == node || edge.1 == node).map(|pair| pair.0);
    let mut edges = Vec::new();
    // Ten nodes each: six ends of edges, four sets.
    for node in 0..node_count {
        for set in 0..4_u32 {
            for place in 0..3 {
                let is_in = if place == 2 { set.count_ones() % 2 } else { set >> place & 1 };
                edges.push((10 * node + 6 + set, 10 * node + 2 * place + is_in));
            }
        }
    }
    for (number, &(a, b)) in (0_u32..).zip(cubic) {
        let place = |node| u32::try_from(edges_at(node).position(|edge| edge == number).unwrap()).unwrap();
        for bit in 0..2 {
            let crossed = bit ^ u32::from(is_twisted && number == 0);
            edges.push((10 * a + 2 * place(a) + bit, 10 * b + 2 * place(b) + crossed));
        }
    }
    plain(10 * node_count, edges)
}

/// A ring of so many nodes, each joined with its counterpart or one nearby.
fn cubic(half: u32, step: u32) -> Vec<(u32, u32)> {
    (0..half).flat_map(|i| [(i, (i + 1) % half), (i, i + half), (i + half, (i + step) % half + half)]).collect()
}

#[test]
fn twisted_pairs_are_told_apart() {
    let four: Vec<(u32, u32)> = vec![(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    for base in [four, cubic(3, 1), cubic(5, 2), cubic(8, 3)] {
        let (straight, twisted) = (cai_fuerer_immerman(&base, false), cai_fuerer_immerman(&base, true));
        let (a, b) = (form(&straight), form(&twisted));
        assert!(a != b);
        for seed in 0..5 {
            let places = shuffled(straight.node_count(), seed);
            assert!(form(&straight.renumbered(&places).unwrap()) == a);
            assert!(form(&twisted.renumbered(&places).unwrap()) == b);
        }
    }
}

/// Whether five hundred nodes are solved is a matter of the budget; that the search ends is not.
#[test]
fn hard_graphs_end_within_their_budget() {
    for (half, step) in [(25, 7), (25, 1)] {
        let graph = cai_fuerer_immerman(&cubic(half, step), true);
        assert_eq!(graph.node_count(), 500);
        let asked = std::cell::Cell::new(0_u64);
        let stop = || {
            asked.set(asked.get() + 1);
            false
        };
        let analysis = analyse(&graph, Budget { work_max: 1 << 24, stop: &stop }).unwrap();
        // One question for every 2¹⁴ units and every larger step.
        assert!(asked.get() < 3 << 10, "{}", asked.get());
        if analysis.outcome == Outcome::BudgetSpent {
            assert!(analysis.cell_count() < graph.node_count());
        }
    }
}

/// The search goes hundreds of parts deep here, on a stack half as large as threads have.
#[test]
fn deep_searches_fit_the_stack() {
    let search = || {
        let graph = cai_fuerer_immerman(&cubic(300, 7), false);
        analyse(&graph, Budget { work_max: 1 << 28, stop: &|| false }).unwrap().outcome
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(search).unwrap();
    assert_eq!(thread.join().unwrap(), Outcome::BudgetSpent);
}
