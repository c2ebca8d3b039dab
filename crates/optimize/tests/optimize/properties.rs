//! Flows against another implementation, optima against enumeration, on random graphs.

use canopy_optimize::{
    Arc, Digraph, FlowNetwork, FlowUnit, Fraction, Never, OptimumError, broadcast_optimum, forest_optimum,
    forest_optimum_for, gather_optimum, isolating_cuts, orientation, scatter_optimum, strength, sweep,
};
use proptest::prelude::*;

use crate::support::brute_force;

/// Graphs of 2 to `nodes_max` nodes with parallel arcs, loops and arcs of capacity zero among the others.
fn graphs(nodes_max: u32, capacities: impl Strategy<Value = u64> + Clone + 'static) -> impl Strategy<Value = Digraph> {
    (2..=nodes_max).prop_flat_map(move |node_count| {
        let arc = (0..node_count, 0..node_count, capacities.clone());
        let arcs = prop::collection::vec(arc, 0..=(4 * node_count as usize));
        arcs.prop_map(move |arcs| Digraph {
            node_count,
            arcs: arcs.into_iter().map(|(from, to, capacity)| Arc { from, to, capacity }).collect(),
        })
    })
}

/// Small capacities and the largest ones.
fn capacities() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![3 => 0..8_u64, 1 => Just(u64::MAX), 1 => u64::MAX - 8..=u64::MAX]
}

/// A graph with weights and terminals, at least two of which have weight.
fn instances() -> impl Strategy<Value = (Digraph, Vec<u64>, Vec<bool>)> {
    graphs(8, capacities()).prop_flat_map(|graph| {
        let count = graph.node_count as usize;
        let weights = prop::collection::vec(prop_oneof![Just(0_u64), Just(1), 1..5_u64], count);
        (Just(graph), weights, prop::collection::vec(any::<bool>(), count)).prop_map(
            |(graph, mut weights, mut terminals)| {
                for node in 0..2 {
                    (weights[node], terminals[node]) = (weights[node].max(1), true);
                }
                (graph, weights, terminals)
            },
        )
    })
}

fn network_of<C: FlowUnit>(graph: &Digraph) -> FlowNetwork<C> {
    let mut network = FlowNetwork::new(graph.node_count);
    for arc in &graph.arcs {
        network.add_arc(arc.from, arc.to, C::try_from_u128(u128::from(arc.capacity)).expect("small capacities"));
    }
    network
}

/// The value of the greatest flow according to petgraph.
fn flow_by_petgraph(graph: &Digraph, source: u32, sink: u32) -> u64 {
    let mut other = petgraph::graph::DiGraph::<(), u64>::new();
    let nodes: Vec<_> = (0..graph.node_count).map(|_| other.add_node(())).collect();
    for arc in graph.arcs.iter().filter(|arc| arc.from != arc.to) {
        other.add_edge(nodes[arc.from as usize], nodes[arc.to as usize], arc.capacity);
    }
    petgraph::algo::maximum_flow::dinics(&other, nodes[source as usize], nodes[sink as usize]).0
}

/// Net flow out of each node.
fn divergence(network: &FlowNetwork<i64>, graph: &Digraph, arcs: &[canopy_optimize::ArcId]) -> Vec<i64> {
    let mut divergence = vec![0; graph.node_count as usize];
    for (&id, arc) in arcs.iter().zip(&graph.arcs) {
        let flow = network.flow(id);
        assert!(flow >= 0 && flow <= network.capacity(id), "a flow stays within its capacity");
        divergence[arc.from as usize] += flow;
        divergence[arc.to as usize] -= flow;
    }
    divergence
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Value, conservation and both cuts of a flow, in both integer widths.
    #[test]
    fn max_flow_agrees_with_petgraph(graph in graphs(12, 0..20_u64)) {
        let (source, sink) = (0, graph.node_count - 1);
        let expected = flow_by_petgraph(&graph, source, sink);
        let mut network = FlowNetwork::<i64>::new(graph.node_count);
        let arcs: Vec<_> =
            graph.arcs.iter().map(|arc| network.add_arc(arc.from, arc.to, arc.capacity.try_into().unwrap())).collect();
        let value = network.max_flow(source, sink, i64::MAX, &Never).unwrap();
        prop_assert_eq!(u64::try_from(value).unwrap(), expected);
        let wide = network_of::<i128>(&graph).max_flow(source, sink, i128::MAX, &Never).unwrap();
        prop_assert_eq!(wide.to_u128(), u128::from(expected));

        let divergence = divergence(&network, &graph, &arcs);
        for (node, net) in (0..).zip(divergence) {
            prop_assert_eq!(net, if node == source { value } else if node == sink { -value } else { 0 });
        }
        let inner = brute_force::mask(&network.min_cut_source_side(source));
        let outer = !brute_force::mask(&network.min_cut_sink_side()) & ((1 << graph.node_count) - 1);
        for cut in [inner, outer] {
            prop_assert_eq!(cut >> source & 1, 1);
            prop_assert_eq!(cut >> sink & 1, 0);
            prop_assert_eq!(brute_force::leaving(&graph, cut), u128::from(expected));
        }
        prop_assert_eq!(inner & !outer, 0, "the smallest source side lies within the largest");
    }

    /// A limit is met exactly, what is left can be added, and a reset forgets all.
    #[test]
    fn limits_add_up_and_reset_forgets(graph in graphs(10, 0..20_u64), limit in 0..15_i64) {
        let (source, sink) = (0, graph.node_count - 1);
        let mut network = network_of::<i64>(&graph);
        let total = network.max_flow(source, sink, i64::MAX, &Never).unwrap();
        prop_assert_eq!(network.max_flow(source, sink, i64::MAX, &Never).unwrap(), 0);
        network.reset();
        let first = network.max_flow(source, sink, limit, &Never).unwrap();
        prop_assert_eq!(first, limit.min(total));
        prop_assert_eq!(network.max_flow(source, sink, i64::MAX, &Never).unwrap(), total - first);
        network.reset();
        prop_assert_eq!(network.max_flow(source, sink, i64::MAX, &Never).unwrap(), total);
    }

    /// A network with changed capacities and grown by nodes and arcs answers as one built like that at once.
    #[test]
    fn changes_equal_a_fresh_network(
        graph in graphs(10, 0..20_u64),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..20_i64), 0..6),
        extra in 0..20_i64,
    ) {
        let (source, sink) = (0, graph.node_count - 1);
        let mut network = FlowNetwork::<i64>::new(graph.node_count);
        let mut capacities: Vec<i64> = graph.arcs.iter().map(|arc| arc.capacity.try_into().unwrap()).collect();
        let ids: Vec<_> =
            graph.arcs.iter().zip(&capacities).map(|(arc, &capacity)| network.add_arc(arc.from, arc.to, capacity)).collect();
        network.max_flow(source, sink, i64::MAX, &Never).unwrap();
        for (position, capacity) in changes.into_iter().filter(|_| !ids.is_empty()) {
            let position = position.index(ids.len());
            network.set_capacity(ids[position], capacity);
            capacities[position] = capacity;
            network.max_flow(source, sink, 3, &Never).unwrap();
        }
        let node = network.add_node();
        let (into, out) = (network.add_arc(source, node, extra), network.add_arc(node, sink, i64::MAX));
        network.max_flow(source, sink, i64::MAX, &Never).unwrap();
        network.reset();

        let mut fresh = FlowNetwork::<i64>::new(graph.node_count + 1);
        for (arc, &capacity) in graph.arcs.iter().zip(&capacities) {
            fresh.add_arc(arc.from, arc.to, capacity);
        }
        let expected = fresh.max_flow(source, sink, i64::MAX, &Never).unwrap() + extra;
        prop_assert_eq!(network.max_flow(source, sink, i64::MAX, &Never).unwrap(), expected);
        prop_assert_eq!((network.flow(into), network.flow(out)), (extra, extra));
    }

    /// Supplies per node do what arcs from one more node would; committing a flow in two parts loses nothing.
    #[test]
    fn pulling_equals_a_super_source(
        graph in graphs(10, 0..20_u64),
        supplies in prop::collection::vec(prop_oneof![4 => 0..20_i64, 1 => Just(i64::MAX)], 10),
        limit in 0..30_i64,
    ) {
        let (count, sink) = (graph.node_count, graph.node_count - 1);
        let mut with_source = network_of::<i64>(&graph);
        let source = with_source.add_node();
        let mut pulling = network_of::<i64>(&graph);
        for (node, &supply) in (0..count).zip(&supplies) {
            let supply = if node == sink { supply.min(20) } else { supply };
            with_source.add_arc(source, node, supply);
            pulling.set_supply(node, supply);
        }
        let expected = with_source.max_flow(source, sink, i64::MAX, &Never).unwrap();
        let first = pulling.pull(sink, limit, &Never).unwrap();
        prop_assert_eq!(first, limit.min(expected));
        pulling.commit();
        prop_assert_eq!(pulling.pull(sink, i64::MAX, &Never).unwrap(), expected - first);
        pulling.reset();
        prop_assert_eq!(pulling.pull(sink, i64::MAX, &Never).unwrap(), expected - first);
    }

    /// Newton's method against every cut, capacities near 2⁶⁴ included; and the cut returned has the ratio.
    #[test]
    fn forest_optimum_is_the_worst_cut((graph, weights, terminals) in instances()) {
        let expected = brute_force::forest(&graph, &weights, &terminals);
        match forest_optimum_for(&graph, &weights, &terminals, &Never) {
            Ok(optimum) => {
                prop_assert_eq!(Some(optimum.inverse_rate), expected);
                let cut = brute_force::mask(&optimum.cut);
                let ratio = Fraction::new(brute_force::weight(&weights, cut), brute_force::leaving(&graph, cut));
                prop_assert_eq!(ratio, expected);
                prop_assert!(brute_force::mask(&terminals) & !cut != 0);
            }
            Err(OptimumError::Disconnected { cut }) => {
                prop_assert_eq!(expected, None);
                let cut = brute_force::mask(&cut);
                prop_assert_eq!(brute_force::leaving(&graph, cut), 0);
                prop_assert!(brute_force::weight(&weights, cut) > 0 && brute_force::mask(&terminals) & !cut != 0);
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }

    /// The sweep finds a violated set exactly if there is one, and what it returns is one.
    #[test]
    fn sweep_agrees_with_all_sets(
        graph in graphs(7, 0..10_u64),
        demands in prop::collection::vec(0..4_i64, 7),
        terminals in prop::collection::vec(any::<bool>(), 7),
    ) {
        let demands = &demands[..graph.node_count as usize];
        let plain: Vec<u64> = demands.iter().map(|&demand| demand.try_into().unwrap()).collect();
        let all = (1 << graph.node_count) - 1;
        let terminal_mask = brute_force::mask(&terminals) & all;
        // in(T) = B⁺(V∖T) must be at least what is demanded outside T.
        let violated = |set: u32| {
            set & terminal_mask != 0 && brute_force::leaving(&graph, all & !set) < brute_force::weight(&plain, all & !set)
        };
        let mut network = network_of::<i64>(&graph);
        let order: Vec<u32> = (0..graph.node_count).filter(|&node| terminals[node as usize]).collect();
        for _ in 0..2 {
            match sweep(&mut network, demands, &order, &Never).unwrap() {
                Some(set) => prop_assert!(violated(brute_force::mask(&set))),
                None => prop_assert!(!(0..=all).any(violated)),
            }
        }
    }

    /// Broadcast, scatter and gather against every cut.
    #[test]
    fn rooted_optima_are_the_worst_cuts((graph, weights, terminals) in instances(), root in any::<prop::sample::Index>()) {
        let root = u32::try_from(root.index(graph.node_count as usize)).unwrap();
        let turned = brute_force::transposed(&graph);
        let rest = ((1 << graph.node_count) - 1) & !(1_u32 << root);

        let least = brute_force::broadcast(&graph, &terminals, root);
        match broadcast_optimum(&graph, &terminals, root, &Never) {
            Ok((rate, cut)) => {
                prop_assert_eq!(rate, least);
                prop_assert_eq!(brute_force::leaving(&graph, brute_force::mask(&cut)), least);
                prop_assert!(cut[root as usize] && brute_force::mask(&terminals) & !brute_force::mask(&cut) != 0);
            }
            Err(OptimumError::Disconnected { .. }) => prop_assert_eq!(least, 0),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
        let scatter = scatter_optimum(&graph, &weights, root, &Never);
        let gather = gather_optimum(&graph, &weights, root, &Never);
        for (found, graph) in [(scatter, &graph), (gather, &turned)] {
            let expected = brute_force::scatter(graph, &weights, root);
            match found {
                Ok((inverse_rate, cut)) => {
                    prop_assert_eq!(Some(inverse_rate), expected);
                    let cut = brute_force::mask(&cut);
                    let moved = brute_force::weight(&weights, rest & !cut);
                    prop_assert_eq!(Fraction::new(moved, brute_force::leaving(graph, cut)), expected);
                }
                Err(OptimumError::Disconnected { .. }) => prop_assert_eq!(expected, None),
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            }
        }
    }

    /// Directions divide each link's capacity, keep what is no terminal balanced, and let all trees into every set
    /// without the root; they exist up to the strength and not beyond.
    #[test]
    fn orientations_let_all_trees_in(
        graph in graphs(7, prop_oneof![3 => 0..8_u64, 1 => Just(1 << 40), 1 => Just(u64::MAX)]),
        extra in prop::collection::vec(any::<bool>(), 7),
        root in 0..2_u32,
        part in (1..4_u128, 3..5_u128),
    ) {
        let mut terminals = extra[..graph.node_count as usize].to_vec();
        (terminals[0], terminals[1]) = (true, true);
        // An arc is a link either way here, and half of one there.
        let most = strength(&graph, &terminals, &Never).unwrap().rate;
        let most = Fraction::new(2 * most.numerator, most.denominator).unwrap();
        if most == Fraction::ZERO {
            return Ok(());
        }
        let less = Fraction::new(most.numerator * part.0, most.denominator * part.1).unwrap();
        for rate in [most, less].into_iter().filter(|&rate| rate <= most) {
            let found = orientation(&graph, &terminals, rate, root, &Never).unwrap().expect("no more than the strength");
            let count = graph.node_count;
            let mut capacity = vec![0_u128; (count * count) as usize];
            for arc in &graph.arcs {
                capacity[(arc.from.min(arc.to) * count + arc.from.max(arc.to)) as usize] += u128::from(arc.capacity);
            }
            let mut arcs = Vec::new();
            for pair in &found.pairs {
                prop_assert!(pair.low < pair.high);
                let known = std::mem::take(&mut capacity[(pair.low * count + pair.high) as usize]);
                prop_assert_eq!(Fraction::new(pair.up + pair.down, found.tree_count), Fraction::new(known * rate.denominator, rate.numerator));
                arcs.extend([(pair.low, pair.high, pair.up), (pair.high, pair.low, pair.down)]);
            }
            prop_assert!((0..count * count).all(|at| capacity[at as usize] == 0 || at % (count + 1) == 0));
            let is_terminal = brute_force::mask(&terminals);
            for set in 1..1_u32 << count {
                let holds = |node: u32| set >> node & 1 == 1;
                let into: u128 = arcs.iter().filter(|&&(from, to, _)| !holds(from) && holds(to)).map(|arc| arc.2).sum();
                let out: u128 = arcs.iter().filter(|&&(from, to, _)| holds(from) && !holds(to)).map(|arc| arc.2).sum();
                if set & is_terminal == 0 {
                    prop_assert_eq!(into, out);
                } else if !holds(root) {
                    prop_assert!(into >= found.tree_count, "{set:b} is entered by {into} of {}", found.tree_count);
                }
            }
        }
        for (times, of) in [(1001, 1000), (3, 2), (40, 1)] {
            let more = Fraction::new(most.numerator * times, most.denominator * of).unwrap();
            prop_assert_eq!(orientation(&graph, &terminals, more, root, &Never), Ok(None));
        }
    }

    /// Strength against every partition; the parts returned attain it, and the sets around them are disjoint where
    /// the graph runs both ways.
    #[test]
    fn strength_is_the_weakest_partition(graph in graphs(7, capacities()), extra in prop::collection::vec(any::<bool>(), 7)) {
        let count = graph.node_count as usize;
        let terminals: Vec<bool> = (0..count).map(|node| node < 2 || extra[node]).collect();
        let found = strength(&graph, &terminals, &Never).unwrap();
        prop_assert_eq!(found.rate, brute_force::strength(&graph, &terminals));
        let mut members: Vec<u32> = found.parts.iter().flatten().copied().collect();
        members.sort_unstable();
        prop_assert_eq!(members, (0..graph.node_count).filter(|&node| terminals[node as usize]).collect::<Vec<_>>());

        let mut both_ways = graph.clone();
        both_ways.arcs.extend(brute_force::transposed(&graph).arcs);
        let cuts = isolating_cuts(&both_ways, &found.parts, &Never).unwrap();
        let masks: Vec<u32> = cuts.iter().map(|cut| cut.iter().map(|node| 1 << node).sum()).collect();
        prop_assert_eq!(masks.iter().map(|mask| mask.count_ones()).sum::<u32>(), masks.iter().fold(0, |all, mask| all | mask).count_ones());
        let separating: u128 = masks.iter().map(|&mask| brute_force::leaving(&both_ways, mask)).sum();
        prop_assert_eq!(Fraction::new(separating, 4 * (masks.len() as u128 - 1)), Some(found.rate));
    }

    /// Each set around a part is a smallest one of least capacity, in any directed graph.
    #[test]
    fn isolating_cuts_are_least(graph in graphs(7, capacities()), colours in prop::collection::vec(0..4_usize, 7)) {
        let mut parts = vec![Vec::new(); 3];
        for (node, &colour) in (0..graph.node_count).zip(&colours) {
            if let Some(part) = parts.get_mut(colour) {
                part.push(node);
            }
        }
        parts.retain(|part: &Vec<u32>| !part.is_empty());
        prop_assume!(parts.len() > 1);
        let masks: Vec<u32> = parts.iter().map(|part| part.iter().map(|node| 1 << node).sum()).collect();
        let terminals = masks.iter().sum();
        let cuts = isolating_cuts(&graph, &parts, &Never).unwrap();
        for (&part, cut) in masks.iter().zip(cuts) {
            let set: u32 = cut.iter().map(|node| 1 << node).sum();
            prop_assert_eq!(set & terminals, part);
            let least = brute_force::isolating(&graph, terminals, part);
            prop_assert_eq!(brute_force::leaving(&graph, set), least);
            let smaller = (0..1_u32 << graph.node_count)
                .filter(|other| other & terminals == part && brute_force::leaving(&graph, *other) == least)
                .any(|other| other & set != set);
            prop_assert!(!smaller, "every least set holds the smallest");
        }
    }

    /// Names of nodes carry no meaning, and capacities no unit.
    #[test]
    fn optima_ignore_labels_and_units(
        (graph, weights, terminals) in instances(),
        keys in prop::collection::vec(any::<u64>(), 8),
        factor in 1..1000_u64,
    ) {
        let mut order: Vec<usize> = (0..graph.node_count as usize).collect();
        order.sort_by_key(|&node| keys[node]);
        let mut to = vec![0_u32; order.len()];
        for (position, &node) in (0..).zip(&order) {
            to[node] = position;
        }
        let halved = |capacity: u64| capacity % 1000;
        let original = Digraph { arcs: graph.arcs.iter().map(|arc| Arc { capacity: halved(arc.capacity), ..*arc }).collect(), ..graph };
        let renamed = Digraph {
            node_count: original.node_count,
            arcs: original.arcs.iter().map(|arc| Arc {
                from: to[arc.from as usize],
                to: to[arc.to as usize],
                capacity: arc.capacity * factor,
            }).collect(),
        };
        let renamed_weights: Vec<u64> = order.iter().map(|&node| weights[node]).collect();
        let renamed_terminals: Vec<bool> = order.iter().map(|&node| terminals[node]).collect();
        match (forest_optimum(&original, &weights, &Never), forest_optimum(&renamed, &renamed_weights, &Never)) {
            (Ok(first), Ok(second)) => {
                let scaled = Fraction::new(second.inverse_rate.numerator * u128::from(factor), second.inverse_rate.denominator);
                prop_assert_eq!(Some(first.inverse_rate), scaled);
            }
            (Err(OptimumError::Disconnected { .. }), Err(OptimumError::Disconnected { .. })) => {}
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        }
        let scaled = strength(&renamed, &renamed_terminals, &Never).unwrap().rate;
        let plain = strength(&original, &terminals, &Never).unwrap().rate;
        prop_assert_eq!(Fraction::new(plain.numerator * u128::from(factor), plain.denominator), Some(scaled));
    }
}
