use super::*;
use crate::budget::WORK_STANDARD;
use crate::graph::Arc;

const STANDARD: Budget<'static> = Budget { work_max: WORK_STANDARD, stop: &|| false };

/// A graph of plain edges.
fn plain(node_count: u32, edges: impl IntoIterator<Item = (u32, u32)>) -> Graph {
    let both = edges.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
    let arcs = both.map(|(from, to)| Arc { from, to, weight: [1, 0] }).collect();
    Graph::new(vec![0; node_count as usize], arcs).unwrap()
}

fn ring(count: u32) -> Graph {
    plain(count, (0..count).map(|node| (node, (node + 1) % count)))
}

#[track_caller]
fn check(graph: &Graph, orbit_count: usize, group_order: &str) {
    let analysis = analyse(graph, STANDARD).unwrap();
    assert_eq!(analysis.orbits.count(), orbit_count);
    assert_eq!(analysis.solution().unwrap().group_order.to_string(), group_order);
    let mut orbits = Orbits::new(graph.node_count());
    for &(from, to) in automorphisms(graph, STANDARD).unwrap().iter().flat_map(Automorphism::moves) {
        orbits.join(from, to);
    }
    assert_eq!(orbits.count(), orbit_count, "automorphisms alone");
    let form = analysis.solution().unwrap().form(graph);
    // Backwards, every other one first: any other numbers.
    let node_count = u32::try_from(graph.node_count()).unwrap();
    let places: Vec<u32> = (0..node_count).rev().map(|node| node / 2 + node % 2 * node_count.div_ceil(2)).collect();
    let other = graph.renumbered(&places).unwrap();
    assert!(analyse(&other, STANDARD).unwrap().solution().unwrap().form(&other) == form);
}

/// The order of each group is in every textbook.
#[test]
fn groups_of_known_graphs() {
    check(&plain(1, []), 1, "1");
    check(&plain(5, []), 1, "120");
    check(&ring(7), 1, "14");
    check(&plain(4, [(0, 1), (1, 2), (2, 3)]), 2, "2");
    check(&plain(8, (0..8).flat_map(|a| (0..a).map(move |b| (a, b)))), 1, "40320");
    // Petersen: S5.
    let petersen = (0..5).flat_map(|i| [(i, (i + 1) % 5), (i, i + 5), (i + 5, (i + 2) % 5 + 5)]);
    check(&plain(10, petersen), 1, "120");
    // Cube: 48. Four-dimensional: 2⁴·4!.
    let cube = |bits: u32| {
        (0..1_u32 << bits)
            .flat_map(move |node| (0..bits).map(move |bit| (node, node ^ 1 << bit)).filter(|&(a, b)| a < b))
    };
    check(&plain(8, cube(3)), 1, "48");
    check(&plain(16, cube(4)), 1, "384");
    check(&plain(1024, cube(10)), 1, "3715891200");
    // Three rings of five apart: D5 wr S3.
    let apart = (0..15).map(|node| (node, node / 5 * 5 + (node + 1) % 5));
    check(&plain(15, apart), 1, "6000");
    // Cocktail party: all pairs but a matching, 2⁶·6!.
    let party = (0..12_u32).flat_map(|a| (0..a).filter(move |b| a ^ 1 != *b).map(move |b| (a, b)));
    check(&plain(12, party), 1, "46080");
}

#[test]
fn the_smallest_asymmetric_regular_graph() {
    // Frucht's graph: cubic, 12 nodes, no symmetry.
    let edges = [
        (0, 1),
        (1, 2),
        (2, 3),
        (3, 4),
        (4, 5),
        (5, 6),
        (6, 0),
        (0, 7),
        (1, 7),
        (2, 8),
        (3, 9),
        (4, 9),
        (5, 10),
        (6, 10),
        (7, 11),
        (8, 9),
        (8, 11),
        (10, 11),
    ];
    check(&plain(12, edges), 12, "1");
}

#[test]
fn directions_weights_and_colours_count() {
    let one_way =
        Graph::new(vec![0; 5], (0..5).map(|node| Arc { from: node, to: (node + 1) % 5, weight: [1, 0] }).collect());
    check(&one_way.unwrap(), 1, "5");
    let mut arcs = ring(6).arcs().to_vec();
    for arc in &mut arcs {
        // Every other link is faster.
        arc.weight[0] = if arc.from.min(arc.to) % 2 == 0 && arc.from.abs_diff(arc.to) == 1 { 2 } else { 1 };
    }
    check(&Graph::new(vec![0; 6], arcs.clone()).unwrap(), 1, "6");
    check(&Graph::new(vec![0, 0, 0, 0, 0, 7], arcs).unwrap(), 6, "1");
}

#[test]
fn a_budget_that_is_too_small_says_so() {
    let graph = ring(100);
    let spent = analyse(&graph, Budget { work_max: 3_000, stop: &|| false }).unwrap();
    assert_eq!((spent.outcome.clone(), spent.cell_count(), spent.solution()), (Outcome::BudgetSpent, 1, None));
    assert_eq!(analyse(&graph, Budget { work_max: 3_000, stop: &|| true }), Err(Stopped));
}

/// Links along either dimension of a torus are alike; around a square one all are, with weights per dimension they are not.
#[test]
fn orbits_of_arcs() {
    let torus = |weights: [u64; 2], rows: u32, columns: u32| {
        let arcs = (0..rows * columns).flat_map(|node| {
            let (row, column) = (node / columns, node % columns);
            let down = (row + 1) % rows * columns + column;
            let right = row * columns + (column + 1) % columns;
            [(node, down, weights[0]), (down, node, weights[0]), (node, right, weights[1]), (right, node, weights[1])]
        });
        let arcs = arcs.map(|(from, to, weight)| Arc { from, to, weight: [weight, 0] }).collect();
        Graph::new(vec![0; (rows * columns) as usize], arcs).unwrap()
    };
    let count = |graph: &Graph| analyse(graph, STANDARD).unwrap().arc_orbits(graph).count();
    assert_eq!(count(&torus([1, 1], 5, 5)), 1);
    assert_eq!(count(&torus([1, 1], 5, 6)), 2);
    assert_eq!(count(&torus([1, 2], 5, 5)), 2);
    assert_eq!(count(&plain(4, [(0, 1), (1, 2), (2, 3)])), 3);
}
