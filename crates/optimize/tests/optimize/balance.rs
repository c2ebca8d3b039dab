//! Balanced parts of random graphs: what they promise, against enumeration.

use canopy_optimize::{
    Arc, BalancedOptimum, Digraph, Fraction, Never, OptimumError, balanced_optimum, forest_optimum_for,
};
use proptest::prelude::*;

use crate::support::brute_force;

/// Arcs on top of a cycle through all nodes, of which the first are terminals.
fn connected(terminals_max: u32, others_max: u32) -> impl Strategy<Value = (Digraph, Vec<bool>)> {
    (2..=terminals_max, 1..=others_max).prop_flat_map(|(terminals, others)| {
        let node_count = terminals + others;
        let order = Just((0..node_count).collect::<Vec<_>>()).prop_shuffle();
        let arc = (0..node_count, 0..node_count, 0..9_u64);
        (order, 1..4_u64, prop::collection::vec(arc, 0..=(3 * node_count as usize))).prop_map(
            move |(order, around, mut arcs)| {
                arcs.extend((0..order.len()).map(|at| (order[at], order[(at + 1) % order.len()], around)));
                let arcs = arcs.into_iter().map(|(from, to, capacity)| Arc { from, to, capacity }).collect();
                (Digraph { node_count, arcs }, (0..node_count).map(|node| node < terminals).collect())
            },
        )
    })
}

/// Terminals that send and take in over a node each, as hosts that are slower than their links, or over few nodes that all send
/// through, in rates of one digit or of ten.
fn behind_switches() -> impl Strategy<Value = (Digraph, Vec<bool>)> {
    let rate = prop_oneof![Just(9_u64), Just(1_000_000_007)];
    let size = (3..=16_u32, rate, any::<bool>());
    let random = prop::collection::vec((any::<u32>(), any::<u32>(), any::<u64>()), 64);
    (size, random).prop_map(|((terminals, digits, are_hosts), random)| {
        let rate = |number: u64| 1 + number % digits;
        let shared = if are_hosts { terminals } else { 1 + terminals / 4 };
        // Node of the switch that a terminal sends to, and takes in from.
        let sends = |terminal: u32| terminals + terminal % shared;
        let takes = |terminal: u32| if are_hosts { 2 * terminals + terminal } else { sends(terminal) };
        let mut arcs = Vec::new();
        for (terminal, &(_, _, number)) in (0..terminals).zip(&random) {
            arcs.push(Arc { from: terminal, to: sends(terminal), capacity: rate(number) });
            arcs.push(Arc { from: takes(terminal), to: terminal, capacity: 2 * rate(number >> 20) });
            arcs.push(Arc {
                from: sends(terminal),
                to: takes((terminal + 1) % terminals),
                capacity: rate(number >> 40),
            });
        }
        let more = random.iter().skip(terminals as usize);
        arcs.extend(more.map(|&(from, to, number)| Arc {
            from: sends(from % terminals),
            to: takes(to % terminals),
            capacity: rate(number),
        }));
        let node_count = if are_hosts { 3 * terminals } else { terminals + shared };
        (Digraph { node_count, arcs }, (0..node_count).map(|node| node < terminals).collect())
    })
}

/// What enters and what leaves each node.
fn sums(graph: &Digraph) -> Vec<(u64, u64)> {
    let mut sums = vec![(0, 0); graph.node_count as usize];
    for arc in graph.arcs.iter().filter(|arc| arc.from != arc.to) {
        sums[arc.to as usize].0 += arc.capacity;
        sums[arc.from as usize].1 += arc.capacity;
    }
    sums
}

/// The part as a graph of its own, in parts of the unit.
fn part_of(graph: &Digraph, found: &BalancedOptimum) -> Digraph {
    let kept = graph.arcs.iter().zip(&found.kept);
    let narrow = |kept: u128| u64::try_from(kept).expect("small numbers stay small");
    let arcs = kept.map(|(arc, &kept)| Arc { capacity: narrow(kept), ..*arc }).collect();
    Digraph { node_count: graph.node_count, arcs }
}

/// Everything that is promised of every balanced part.
fn check(graph: &Digraph, weights: &[u64], terminals: &[bool]) -> Result<BalancedOptimum, TestCaseError> {
    let found = balanced_optimum(graph, weights, terminals, &Never)
        .map_err(|error| TestCaseError::fail(format!("{error}: {graph:?}")))?;
    for (arc, &kept) in graph.arcs.iter().zip(&found.kept) {
        prop_assert!(kept <= u128::from(arc.capacity) * found.scale);
    }
    let part = part_of(graph, &found);
    for (&(entering, leaving), &terminal) in sums(&part).iter().zip(terminals) {
        prop_assert!(terminal || entering == leaving);
    }
    let of_part = brute_force::forest(&part, weights, terminals).expect("a positive rate");
    prop_assert_eq!(Fraction::new(of_part.numerator * found.scale, of_part.denominator), Some(found.inverse_rate));
    let limit = forest_optimum_for(graph, weights, terminals, &Never).expect("connected").inverse_rate;
    prop_assert!(found.inverse_rate >= limit);
    check_limit(graph, weights, terminals, &found)?;
    Ok(found)
}

/// The limit is proven by its sets and potentials, and the part reaches it.
fn check_limit(
    graph: &Digraph,
    weights: &[u64],
    terminals: &[bool],
    found: &BalancedOptimum,
) -> Result<(), TestCaseError> {
    let limit = &found.limit;
    let mut demand = 0;
    for (weight, set) in &limit.sets {
        prop_assert!(set.iter().zip(terminals).any(|(&inside, &terminal)| inside && terminal));
        let outside: u64 = weights.iter().zip(set).filter(|&(_, &inside)| !inside).map(|(&weight, _)| weight).sum();
        demand += u128::from(*weight) * u128::from(outside);
    }
    prop_assert!(limit.potentials.iter().zip(terminals).all(|(&potential, &terminal)| potential == 0 || !terminal));
    let mut capacity = 0;
    for &Arc { from, to, capacity: own } in &graph.arcs {
        let potential = |node: u32| i128::from(limit.potentials[node as usize]);
        let entered = limit.sets.iter().filter(|(_, set)| !set[from as usize] && set[to as usize]);
        let worth = entered.map(|&(weight, _)| i128::from(weight)).sum::<i128>() + potential(to) - potential(from);
        capacity += u128::from(own) * u128::try_from(worth.max(0)).expect("not negative");
    }
    prop_assert_eq!(Fraction::new(demand, capacity), Some(limit.inverse_rate));
    prop_assert_eq!(limit.inverse_rate, found.inverse_rate, "{:?}", graph);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any connected graph has a balanced part with a positive rate.
    #[test]
    fn parts_are_balanced_and_rated_right((graph, terminals) in connected(5, 4), root in 0..5_u32) {
        let all: Vec<u64> = terminals.iter().map(|&terminal| u64::from(terminal)).collect();
        check(&graph, &all, &terminals)?;
        let root = root % u32::try_from(all.iter().sum::<u64>()).expect("few");
        let one: Vec<u64> = (0..graph.node_count).map(|node| u64::from(node == root)).collect();
        check(&graph, &one, &terminals)?;
    }

    /// Links that many may use, behind what each can send.
    #[test]
    fn parts_behind_switches_are_best((graph, terminals) in behind_switches()) {
        let weights: Vec<u64> = terminals.iter().map(|&terminal| u64::from(terminal)).collect();
        let found = balanced_optimum(&graph, &weights, &terminals, &Never).expect("connected");
        let part = forest_optimum_for(&part_of(&graph, &found), &weights, &terminals, &Never).expect("connected");
        let in_parts = Fraction::new(part.inverse_rate.numerator * found.scale, part.inverse_rate.denominator);
        prop_assert_eq!(in_parts, Some(found.inverse_rate));
        check_limit(&graph, &weights, &terminals, &found)?;
    }

    /// Rates of any magnitude up to 2⁶⁰: the part is within a thousandth of what is proven.
    #[test]
    fn parts_of_rates_far_apart_are_near_the_limit(
        (mut graph, terminals) in connected(6, 4),
        rates in prop::collection::vec((any::<u64>(), 4..63_u32), 60),
    ) {
        graph.arcs.iter_mut().zip(rates).for_each(|(arc, (rate, shift))| arc.capacity = (rate >> shift).max(1));
        let weights: Vec<u64> = terminals.iter().map(|&terminal| u64::from(terminal)).collect();
        let found = balanced_optimum(&graph, &weights, &terminals, &Never).expect("connected");
        let (limit, reached) = (found.limit.inverse_rate.to_float(), found.inverse_rate.to_float());
        prop_assert!(limit <= reached * (1.0 + 1e-12) && reached <= limit * 1.001, "{} {} {:?}", limit, reached, graph);
    }

    /// Weights of any magnitude, 0 among them: likewise.
    #[test]
    fn parts_for_weights_far_apart_are_near_the_limit(
        (graph, terminals) in connected(6, 4),
        weights in prop::collection::vec(prop_oneof![Just(0), 1..5_u64, 1..1_000_000_000_000_u64], 10),
        source in 0..6_usize,
    ) {
        let count = terminals.iter().filter(|&&terminal| terminal).count();
        let mut weights: Vec<u64> =
            weights.iter().zip(&terminals).map(|(&weight, &terminal)| if terminal { weight } else { 0 }).collect();
        weights[source % count] += 1;
        let found = balanced_optimum(&graph, &weights, &terminals, &Never).expect("connected");
        let (limit, reached) = (found.limit.inverse_rate.to_float(), found.inverse_rate.to_float());
        prop_assert!(limit <= reached * (1.0 + 1e-12) && reached <= limit * 1.001, "{} {} {:?}", limit, reached, graph);
    }

    /// What enters a node and can not leave it is no loss, whatever is thrown away of it.
    #[test]
    fn nodes_that_more_enters_than_leaves_cost_nothing((mut graph, terminals) in connected(5, 4)) {
        for (node, (entering, leaving)) in (0_u32..).zip(sums(&graph)) {
            if !terminals[node as usize] && leaving > entering {
                // From terminals, so that no other node is left by more.
                graph.arcs.push(Arc { from: node % 2, to: node, capacity: leaving - entering });
            }
        }
        let weights: Vec<u64> = terminals.iter().map(|&terminal| u64::from(terminal)).collect();
        let found = check(&graph, &weights, &terminals)?;
        let limit = forest_optimum_for(&graph, &weights, &terminals, &Never).expect("connected").inverse_rate;
        prop_assert_eq!(found.inverse_rate, limit);
    }

    /// A balanced graph is its own best part.
    #[test]
    fn balanced_graphs_stay_whole((mut graph, terminals) in connected(5, 4)) {
        for (node, (entering, leaving)) in (0_u32..).zip(sums(&graph)) {
            if !terminals[node as usize] {
                graph.arcs.push(Arc { from: 0, to: node, capacity: leaving.saturating_sub(entering) });
                graph.arcs.push(Arc { from: node, to: 0, capacity: entering.saturating_sub(leaving) });
            }
        }
        let weights: Vec<u64> = terminals.iter().map(|&terminal| u64::from(terminal)).collect();
        let found = check(&graph, &weights, &terminals)?;
        let whole = graph.arcs.iter().map(|arc| if arc.from == arc.to { 0 } else { arc.capacity.into() });
        prop_assert_eq!((found.kept, found.scale), (whole.collect(), 1));
    }
}

fn graph(node_count: u32, arcs: &[(u32, u32, u64)]) -> Digraph {
    let arcs = arcs.iter().map(|&(from, to, capacity)| Arc { from, to, capacity });
    Digraph { node_count, arcs: arcs.collect() }
}

/// One way in, two ways out: a node that could copy would reach the cut of 1, one that can not gives each terminal half.
#[test]
fn a_node_that_can_not_copy_halves_what_enters_it() {
    let fork = graph(4, &[(0, 3, 1), (3, 1, 1), (3, 2, 1)]);
    let found = balanced_optimum(&fork, &[1, 0, 0, 0], &[true, true, true, false], &Never).expect("connected");
    assert_eq!(found.inverse_rate, Fraction { numerator: 2, denominator: 1 });
    assert_eq!((found.kept, found.scale), (vec![2, 1, 1], 2));
    assert_eq!(
        forest_optimum_for(&fork, &[1, 0, 0, 0], &[true, true, true, false], &Never).map(|o| o.inverse_rate),
        Ok(Fraction { numerator: 1, denominator: 1 })
    );
}

#[test]
fn what_has_no_optimum_has_no_part_either() {
    let one_way = graph(2, &[(0, 1, 1)]);
    let refused = balanced_optimum(&one_way, &[1, 1], &[true, true], &Never);
    assert_eq!(refused, Err(OptimumError::Disconnected { cut: vec![false, true] }));
    let stopped =
        balanced_optimum(&graph(3, &[(0, 1, 2), (1, 2, 1), (2, 0, 1)]), &[1, 0, 1], &[true, false, true], &|| true);
    assert!(matches!(stopped, Err(OptimumError::Stopped(_))));
    let refused = balanced_optimum(&one_way, &[1], &[true, true], &Never);
    assert_eq!(refused, Err(OptimumError::WrongLength { found: 1, node_count: 2 }));
}

/// Four terminals around a node, one of which sends half: what then leaves the node less, all of them do without alike.
#[test]
fn a_loss_that_can_not_be_helped_is_shared() {
    let star = graph(5, &[(0, 4, 4), (4, 0, 8), (1, 4, 8), (4, 1, 8), (2, 4, 8), (4, 2, 8), (3, 4, 8), (4, 3, 8)]);
    let (weights, terminals) = ([1, 1, 1, 1, 0], [true, true, true, true, false]);
    let found = balanced_optimum(&star, &weights, &terminals, &Never).expect("connected");
    assert_eq!(found.inverse_rate, Fraction { numerator: 3, denominator: 7 });
    assert_eq!((found.kept, found.scale), (vec![4, 7, 8, 7, 8, 7, 8, 7], 1));
}
