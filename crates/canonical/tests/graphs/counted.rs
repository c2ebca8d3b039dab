//! Graphs too large for all permutations: isomorphisms are counted by backtracking, without any refinement.

use std::collections::BTreeMap;

use canopy_canonical::{Budget, Carriers, Comparison, Graph, WORK_STANDARD, Weight, compare};
use proptest::prelude::*;

use crate::support::{analysed, cases, form, graphs, plain, shuffled};

/// Weights of all arcs from one node to another.
type Joins = BTreeMap<(u32, u32), Vec<Weight>>;

fn joins(graph: &Graph) -> Joins {
    let mut joins = Joins::new();
    for arc in graph.arcs() {
        joins.entry((arc.from, arc.to)).or_default().push(arc.weight);
    }
    joins
}

/// All isomorphisms from one graph to another, node by node.
fn isomorphisms(from: &Graph, to: &Graph) -> Vec<Vec<u32>> {
    let (before, after) = (joins(from), joins(to));
    let count = u32::try_from(from.node_count()).unwrap();
    let mut found = Vec::new();
    let mut waiting = vec![Vec::new()];
    while let Some(images) = waiting.pop() {
        let node = u32::try_from(images.len()).unwrap();
        if node == count {
            found.push(images);
            continue;
        }
        for image in (0..count).filter(|image| !images.contains(image)) {
            let is_alike = |(other, &moved): (u32, &u32)| {
                before.get(&(node, other)) == after.get(&(image, moved))
                    && before.get(&(other, node)) == after.get(&(moved, image))
            };
            if from.colours()[node as usize] == to.colours()[image as usize] && (0_u32..).zip(&images).all(is_alike) {
                waiting.push(images.iter().copied().chain([image]).collect());
            }
        }
    }
    found
}

/// Number of orbits, and of automorphisms.
fn counted(graph: &Graph) -> (usize, String) {
    let all = isomorphisms(graph, graph);
    let is_first = |node: &usize| all.iter().all(|images| images[*node] as usize >= *node);
    ((0..graph.node_count()).filter(is_first).count(), all.len().to_string())
}

fn found(graph: &Graph) -> (usize, String) {
    let analysis = analysed(graph);
    (analysis.orbits.count(), analysis.solution().unwrap().group_order.to_string())
}

/// Rings and ladders, and generalised Petersen graphs: among them the cube, Möbius–Kantor, the dodecahedron and Desargues.
#[test]
fn named_graphs() {
    let check = |graph: &Graph| assert_eq!(found(graph), counted(graph));
    for count in [5, 8, 13] {
        check(&plain(count, (0..count).map(|node| (node, (node + 1) % count))));
        check(&plain(count, (0..count).flat_map(|node| [(node, (node + 1) % count), (node, (node + 2) % count)])));
    }
    for (count, step) in [(4, 1), (5, 2), (8, 3), (10, 2), (10, 3), (12, 5), (9, 2), (7, 3)] {
        let spokes = |i| [(i, (i + 1) % count), (i, i + count), (i + count, (i + step) % count + count)];
        check(&plain(2 * count, (0..count).flat_map(spokes)));
    }
}

/// Four automorphisms, of which others have been seen to find two.
#[test]
fn ten_nodes_of_degree_four() {
    let graph = switched(10, 17_726_317_827_485_964_517);
    assert_eq!((found(&graph), counted(&graph)), ((4, "4".to_owned()), (4, "4".to_owned())));
}

/// A graph of degree four: switching two edges leaves all degrees as they are.
fn switched(count: u32, seed: u64) -> Graph {
    let mut edges: Vec<(u32, u32)> =
        (0..count).flat_map(|node| [(node, (node + 1) % count), (node, (node + 3) % count)]).collect();
    let order = shuffled(edges.len(), seed);
    for pair in order.chunks_exact(2).take(count as usize / 3) {
        let ((a, b), (c, d)) = (edges[pair[0] as usize], edges[pair[1] as usize]);
        let is_edge = |x, y| edges.contains(&(x, y)) || edges.contains(&(y, x));
        if a != d && c != b && a != c && b != d && !is_edge(a, d) && !is_edge(c, b) {
            edges[pair[0] as usize] = (a, d);
            edges[pair[1] as usize] = (c, b);
        }
    }
    plain(count, edges)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(150), ..ProptestConfig::default() })]

    #[test]
    fn random_graphs(graph in graphs(7)) {
        prop_assert_eq!(found(&graph), counted(&graph));
    }

    /// As many automorphisms carry a node to another as there are.
    #[test]
    fn carriers(graph in graphs(7), to in 0..7_u32) {
        let to = to % u32::try_from(graph.node_count()).unwrap();
        let budget = Budget { work_max: WORK_STANDARD, stop: &|| false };
        let found = Carriers::new(&graph, budget).unwrap().between(0, to, 5040).unwrap().unwrap();
        let mut found: Vec<_> = found.iter().map(|carrier| carrier.to_table(graph.node_count())).collect();
        let mut all = isomorphisms(&graph, &graph);
        all.retain(|images| images[0] == to);
        found.sort_unstable();
        all.sort_unstable();
        prop_assert_eq!(found, all);
    }

    /// Counterparts make an isomorphism, and a difference is named where there is none.
    #[test]
    fn comparisons(a in graphs(5), b in graphs(5), seed: u64) {
        let budget = Budget { work_max: WORK_STANDARD, stop: &|| false };
        let renumbered = a.renumbered(&shuffled(a.node_count(), seed)).unwrap();
        for other in [&renumbered, &b] {
            let is_as_large = a.node_count() == other.node_count();
            let all = if is_as_large { isomorphisms(&a, other) } else { Vec::new() };
            match compare(&a, other, budget).unwrap() {
                Comparison::Same(images) => prop_assert!(all.contains(&images)),
                Comparison::Different(_) => prop_assert!(all.is_empty()),
                Comparison::Undetermined => prop_assert!(false, "the budget suffices"),
            }
        }
    }

    #[test]
    fn regular_graphs(count in 8..24_u32, seed: u64) {
        let graph = switched(count, seed);
        prop_assert_eq!(found(&graph), counted(&graph));
        let other = graph.renumbered(&shuffled(count as usize, seed ^ 1)).unwrap();
        prop_assert!(form(&other) == form(&graph));
    }

    /// Few switches on few nodes: some pairs are isomorphic.
    #[test]
    fn regular_graphs_in_pairs(count in 8..12_u32, first in 0..40_u64, second in 0..40_u64) {
        let (a, b) = (switched(count, first), switched(count, second));
        prop_assert_eq!(form(&a) == form(&b), !isomorphisms(&a, &b).is_empty());
    }
}
