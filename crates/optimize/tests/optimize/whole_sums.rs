//! Given numbers of trees up and down the same links, against enumeration.

use std::num::NonZeroU64;

use canopy_optimize::{Arc, Digraph, Fraction, Never, OptimumError, WholeSums, strength};
use proptest::prelude::*;

use crate::support::brute_force;

/// Links either way on a path through all nodes.
fn graphs() -> impl Strategy<Value = Digraph> {
    (2_u32..6).prop_flat_map(|node_count| {
        let path = prop::collection::vec(1_u64..9, node_count as usize - 1);
        let links = prop::collection::vec((0..node_count, 0..node_count, 0_u64..9), 0..7);
        (path, links).prop_map(move |(path, links)| {
            let along = (0..).zip(path).map(|(from, capacity)| Arc { from, to: from + 1, capacity });
            let others = links.into_iter().map(|(from, to, capacity)| Arc { from, to, capacity });
            Digraph { node_count, arcs: along.chain(others).collect() }
        })
    })
}

fn fraction(numerator: u128, denominator: u128) -> Fraction {
    Fraction::new(numerator, denominator).expect("denominators are not zero")
}

/// Whether links of `⌊time·b⌋`, or of these capacities, are as strong as `trees`.
fn is_strong(graph: &Digraph, terminals: &[bool], trees: u64, capacities: impl Iterator<Item = u128>) -> bool {
    let arcs = graph.arcs.iter().zip(capacities);
    let arcs =
        arcs.map(|(&arc, capacity)| Arc { capacity: u64::try_from(capacity).expect("a floor of 64 bits"), ..arc });
    let whole = Digraph { node_count: graph.node_count, arcs: arcs.collect() };
    // There an arc counts half in either direction.
    brute_force::strength(&whole, terminals) >= fraction(trees.into(), 2)
}

/// The least of all times at which a link has room for one more tree and the strength is enough.
fn best_time(graph: &Digraph, terminals: &[bool], trees: u64) -> Fraction {
    let links = || graph.arcs.iter().filter(|arc| arc.capacity > 0 && arc.from != arc.to);
    let most = |capacity: u64| 9 * trees * capacity;
    let times = links().flat_map(|arc| (1..=most(arc.capacity)).map(|room| fraction(room.into(), arc.capacity.into())));
    let mut times: Vec<Fraction> = times.collect();
    times.sort_unstable();
    times.dedup();
    let floor = |time: Fraction| move |arc: &Arc| time.numerator * u128::from(arc.capacity) / time.denominator;
    let is_enough = |&time: &Fraction| is_strong(graph, terminals, trees, graph.arcs.iter().map(floor(time)));
    times[times.partition_point(|time| !is_enough(time))]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Where all nodes are terminals the time is the least; elsewhere it is sound, and the loss bounded.
    #[test]
    fn whole_trees_take_the_least_time(graph in graphs(), extra in prop::collection::vec(any::<bool>(), 6), trees in 1_u64..5) {
        let all = vec![true; graph.node_count as usize];
        let some: Vec<bool> = (0..graph.node_count as usize).map(|node| node < 2 || extra[node]).collect();
        let count = NonZeroU64::new(trees).unwrap();
        for terminals in [all, some] {
            let sums = WholeSums::new(&graph, &terminals, &Never).unwrap();
            let optimum = strength(&graph, &terminals, &Never).unwrap().rate;
            prop_assert_eq!(sums.optimum(), fraction(optimum.denominator, 2 * optimum.numerator));
            let found = sums.pack(count, None, &Never).unwrap().expect("any time will do");
            prop_assert!(is_strong(&graph, &terminals, trees, found.capacities.iter().copied()));
            for (arc, &room) in graph.arcs.iter().zip(&found.capacities) {
                prop_assert!(room * found.scale.denominator <= found.scale.numerator * u128::from(arc.capacity));
            }
            let (least, time) = (best_time(&graph, &terminals, trees), found.scale);
            prop_assert!(time >= least);
            prop_assert!(time == least || terminals.contains(&false));
            let thinnest = graph.arcs.iter().filter(|arc| arc.capacity > 0 && arc.from != arc.to).map(|arc| arc.capacity).min();
            let lost = fraction(2, thinnest.unwrap().into());
            let limit = fraction(sums.optimum().numerator * u128::from(trees), sums.optimum().denominator);
            prop_assert!(time <= limit.checked_add(lost).unwrap());
            // Only what is better is found.
            let per_tree = found.inverse_rate(count);
            prop_assert_eq!(sums.pack(count, per_tree, &Never).unwrap(), None);
        }
    }
}

#[test]
fn what_is_not_joined_is_refused() {
    let graph = Digraph { node_count: 3, arcs: vec![Arc { from: 0, to: 1, capacity: 4 }] };
    let refused = WholeSums::new(&graph, &[true; 3], &Never).map(|_| ());
    assert!(matches!(refused, Err(OptimumError::Disconnected { .. })), "{refused:?}");
    let alone = WholeSums::new(&graph, &[true, false, false], &Never).map(|_| ());
    assert_eq!(alone, Err(OptimumError::NothingToMove));
}

/// A star of three thin links: the switch has no halves to give, so one tree takes two units of the widest.
#[test]
fn odd_links_lose_a_tree() {
    let arcs = (0..3).map(|from| Arc { from, to: 3, capacity: 1 }).collect();
    let graph = Digraph { node_count: 4, arcs };
    let terminals = [true, true, true, false];
    let sums = WholeSums::new(&graph, &terminals, &Never).unwrap();
    assert_eq!(sums.optimum(), fraction(4, 3));
    let rate = |trees| {
        let trees = NonZeroU64::new(trees).unwrap();
        sums.pack(trees, None, &Never).unwrap().unwrap().inverse_rate(trees).unwrap()
    };
    // Centres take three lanes of two, the others one each: three trees need four units of each link.
    assert_eq!((rate(1), rate(2), rate(3)), (fraction(2, 1), fraction(3, 2), fraction(4, 3)));
}
