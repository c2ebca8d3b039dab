//! All permutations of small graphs, one after the other.

use std::collections::BTreeSet;

use canopy_canonical::{Arc, Graph};
use proptest::prelude::*;

use crate::support::{analysed, cases, form, graphs, shuffled};

/// Every permutation of so many numbers.
fn permutations(count: u32) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    for number in 0..count {
        let longer = |shorter: Vec<u32>| {
            (0..=shorter.len()).map(move |place| {
                let mut longer = shorter.clone();
                longer.insert(place, number);
                longer
            })
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

/// All permutations that turn one graph into the other.
fn isomorphisms(from: &Graph, to: &Graph) -> Vec<Vec<u32>> {
    let count = u32::try_from(from.node_count()).unwrap();
    permutations(count).into_iter().filter(|places| from.renumbered(places).as_ref() == Some(to)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(150), ..ProptestConfig::default() })]

    #[test]
    fn orbits_and_orders_are_those_of_all_permutations(graph in graphs(6)) {
        let analysis = analysed(&graph);
        let all = isomorphisms(&graph, &graph);
        prop_assert_eq!(analysis.solution().unwrap().group_order.to_string(), all.len().to_string());
        for (node, _) in (0_u32..).zip(graph.colours()) {
            let images: BTreeSet<u32> = all.iter().map(|places| places[node as usize]).collect();
            let orbits = analysis.orbits.to_sets();
            let orbit = orbits.iter().find(|orbit| orbit.contains(&node)).unwrap();
            prop_assert_eq!(orbit, &images.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(analysis.orbits.size_of(node) as usize, images.len());
            prop_assert!(images.iter().all(|&other| analysis.cells[other as usize] == analysis.cells[node as usize]));
        }
        for generator in &analysis.generators {
            prop_assert!(all.contains(&generator.to_table(graph.node_count())));
        }
    }

    /// Graphs that differ in one or two arcs are often isomorphic, and often not.
    #[test]
    fn forms_agree_where_some_permutation_does(
        graph in graphs(6), seed: u64, changes in prop::collection::vec((0..6_u32, 0..6_u32, 1..=2_u64), 0..4)
    ) {
        let places = shuffled(graph.node_count(), seed);
        let other = graph.renumbered(&places).unwrap();
        prop_assert!(form(&other) == form(&graph));
        let mut arcs = other.arcs().to_vec();
        for (from, to, weight) in changes {
            let node_count = u32::try_from(graph.node_count()).unwrap();
            let (from, to) = (from % node_count, to % node_count);
            if let Some(position) = arcs.iter().position(|arc| (arc.from, arc.to) == (from, to)) {
                arcs.swap_remove(position);
            } else if from != to {
                arcs.push(Arc { from, to, weight: [weight, 0] });
            }
        }
        let changed = Graph::new(other.colours().to_vec(), arcs).unwrap();
        prop_assert_eq!(form(&changed) == form(&graph), !isomorphisms(&graph, &changed).is_empty());
    }
}
