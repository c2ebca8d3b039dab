use proptest::prelude::*;

use super::*;

const LIMIT: Limit = Limit { order_max: 10_000, edges_max: 100_000 };

fn graph(order: u32, edges: &[(u32, u32)]) -> Digraph {
    Digraph::new(order, edges.iter().copied()).unwrap()
}

fn edges(graph: &Digraph) -> Vec<(u32, u32)> {
    graph.edges().collect()
}

/// K2 and the directed triangle, small enough to write results out.
fn pair() -> Digraph {
    graph(2, &[(0, 1), (1, 0)])
}

fn triangle() -> Digraph {
    graph(3, &[(0, 1), (1, 2), (2, 0)])
}

#[test]
fn nodes_of_a_line_graph_are_the_edges() {
    assert_eq!(edges(&line(&triangle(), LIMIT).unwrap()), [(0, 1), (1, 2), (2, 0)]);
    // Parallel edges are parallel nodes, an edge to itself a node that follows itself.
    let doubled = graph(2, &[(0, 1), (0, 1), (1, 0), (1, 1)]);
    assert_eq!(
        edges(&line(&doubled, LIMIT).unwrap()),
        [(0, 2), (0, 3), (1, 2), (1, 3), (2, 0), (2, 1), (3, 2), (3, 3)]
    );
}

#[test]
fn copies_of_a_node_stand_side_by_side() {
    assert_eq!(
        edges(&degree(&pair(), 2, LIMIT).unwrap()),
        [(0, 2), (0, 3), (1, 2), (1, 3), (2, 0), (2, 1), (3, 0), (3, 1)]
    );
    assert_eq!(degree(&triangle(), 1, LIMIT).unwrap(), triangle());
}

#[test]
fn products_are_numbered_row_major() {
    let product = product(&[&pair(), &triangle()], LIMIT).unwrap();
    assert_eq!(product.out(0), [3, 1]);
    assert_eq!(product.out(2), [5, 0]);
    assert_eq!(product.out(4), [1, 5]);
    assert_eq!(power(&pair(), 2, LIMIT).unwrap(), super::product(&[&pair(), &pair()], LIMIT).unwrap());
    assert_eq!(power(&triangle(), 0, LIMIT).unwrap(), graph(1, &[]));
    assert_eq!(power(&graph(1, &[]), u32::MAX, LIMIT).unwrap(), graph(1, &[]));
}

#[test]
fn both_ways_keeps_what_both_have_as_parallel_edges() {
    assert_eq!(edges(&bidirect(&pair(), LIMIT).unwrap()), [(0, 1), (0, 1), (1, 0), (1, 0)]);
    assert_eq!(edges(&bidirect(&triangle(), LIMIT).unwrap()), [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)]);
}

#[test]
fn results_over_the_limit_are_refused_before_they_are_built() {
    let wide = Limit { order_max: u32::MAX, edges_max: u32::MAX };
    assert_eq!(degree(&pair(), u32::MAX, wide).unwrap_err().found, 2 * u128::from(u32::MAX));
    assert_eq!(power(&triangle(), u32::MAX, wide).unwrap_err().found, u128::MAX);
    assert_eq!(power(&triangle(), 20, wide).unwrap_err().what, "links");
    assert_eq!(power(&graph(1, &[(0, 0)]), u32::MAX, LIMIT).unwrap_err().what, "links");
    let small = Limit { order_max: 6, edges_max: 12 };
    assert!(product(&[&pair(), &triangle()], small).is_ok());
    assert_eq!(product(&[&pair(), &pair(), &pair()], small).unwrap_err().found, 8);
    assert_eq!(line(&degree(&pair(), 2, LIMIT).unwrap(), small).unwrap_err().found, 8);
    assert_eq!(bidirect(&degree(&pair(), 2, LIMIT).unwrap(), small).unwrap_err().what, "links");
}

fn graphs() -> impl Strategy<Value = Digraph> {
    (1_u32..5).prop_flat_map(|order| {
        proptest::collection::vec((0..order, 0..order), 0..9).prop_map(move |edges| graph(order, &edges))
    })
}

proptest! {
    /// Sizes by formula are those of what is built, and each operator has the edges that its definition says.
    #[test]
    fn sizes_and_edges_are_as_defined(first in graphs(), second in graphs(), copies in 1_u32..4) {
        let line = line(&first, LIMIT).unwrap();
        let all = edges(&first);
        let follow: usize = all.iter().map(|edge| all.iter().filter(|next| next.0 == edge.1).count()).sum();
        prop_assert_eq!((line.order() as usize, line.edge_count() as usize), (all.len(), follow));
        for (tail, head) in line.edges() {
            prop_assert_eq!(all[tail as usize].1, all[head as usize].0);
        }
        let degree = degree(&first, copies, LIMIT).unwrap();
        prop_assert_eq!(Size::of(&degree), Size::of(&first).expanded(copies.into()));
        for (tail, head) in degree.edges() {
            prop_assert!(first.out(tail / copies).contains(&(head / copies)));
        }
        let product = product(&[&first, &second], LIMIT).unwrap();
        prop_assert_eq!(Size::of(&product), Size::of(&first).times(Size::of(&second)));
        for (tail, head) in product.edges() {
            let split = |node: u32| (node / second.order(), node % second.order());
            let ((a, b), (c, d)) = (split(tail), split(head));
            prop_assert!((a == c && second.out(b).contains(&d)) || (b == d && first.out(a).contains(&c)));
        }
        let power = power(&first, copies, LIMIT).unwrap();
        prop_assert_eq!(Size::of(&power), Size::of(&first).power(copies.into()));
        prop_assert_eq!(Size::of(&bidirect(&first, LIMIT).unwrap()), Size::of(&first).both_ways());
    }
}
