//! What several of the tests need.

use canopy_canonical::{Analysis, Arc, Budget, Graph, WORK_STANDARD, analyse};
use proptest::prelude::*;

/// The number that `CANOPY_CASES` asks for, or so many.
pub(crate) fn cases(few: u32) -> u32 {
    let given = std::env::var("CANOPY_CASES").ok();
    given.map_or(few, |text| text.parse().expect("CANOPY_CASES is a number"))
}

pub(crate) fn analysed(graph: &Graph) -> Analysis {
    analyse(graph, Budget { work_max: WORK_STANDARD, stop: &|| false }).unwrap()
}

/// The canonical form, which has to be found.
pub(crate) fn form(graph: &Graph) -> Graph {
    analysed(graph).solution().expect("the budget suffices").form(graph)
}

/// A graph of edges without weights or colours.
pub(crate) fn plain(node_count: u32, edges: impl IntoIterator<Item = (u32, u32)>) -> Graph {
    let both = edges.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
    let arcs = both.map(|(from, to)| Arc { from, to, weight: [1, 0] }).collect();
    Graph::new(vec![0; node_count as usize], arcs).unwrap()
}

/// Numbers in an order that the seed decides.
pub(crate) fn shuffled(count: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0_u32..).take(count).collect();
    let mut state = seed;
    for last in (1..count).rev() {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        order.swap(last, usize::try_from(state >> 33).unwrap() % (last + 1));
    }
    order
}

/// Graphs with arcs in any direction, of few weights and colours.
pub(crate) fn graphs(node_count_max: u32) -> impl Strategy<Value = Graph> {
    let sizes = (1..=node_count_max, 1..=2_u64, 1..=2_u64, any::<bool>(), 0..=100_u32);
    sizes.prop_flat_map(|(node_count, colour_count, weight_count, is_two_way, density)| {
        let colours = prop::collection::vec(0..colour_count, node_count as usize);
        let pairs = (node_count * node_count) as usize;
        let weights = prop::collection::vec((0..100_u32, 1..=weight_count), pairs);
        (colours, weights).prop_map(move |(colours, weights)| {
            let mut arcs = Vec::new();
            for ((from, to), (chance, weight)) in
                (0..node_count).flat_map(|from| (0..node_count).map(move |to| (from, to))).zip(weights)
            {
                if from == to || chance >= density || (is_two_way && from > to) {
                    continue;
                }
                arcs.push(Arc { from, to, weight: [weight, 0] });
                if is_two_way {
                    arcs.push(Arc { from: to, to: from, weight: [weight, 0] });
                }
            }
            Graph::new(colours, arcs).unwrap()
        })
    })
}
