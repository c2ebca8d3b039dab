//! Routes behind edges.

use canopy_optimize::Never;
use canopy_topology::{LinkIndex, Topology};

use super::both_ways;
use crate::forest::logical::{LogicalGraph, Strand};
use crate::forest::network::Network;

fn capacities(topology: &Topology) -> Vec<i64> {
    topology.links().iter().map(|link| i64::try_from(link.capacity.bytes_per_sec()).unwrap()).collect()
}

/// Names of the nodes a route visits.
fn visited(topology: &Topology, route: &[LinkIndex]) -> String {
    let ids = route.iter().map(|&link| topology.node(topology.link(link).to).id.clone());
    let first = topology.node(topology.link(route[0]).from).id.clone();
    std::iter::once(first).chain(ids).collect::<Vec<_>>().join(" ")
}

/// Two switches between a and b; nodes a b s0 s1 are 0 to 3.
#[test]
fn splits_join_routes_and_keep_them_apart() {
    let topology = both_ways("a b s0 s1", &[("a", "s0", 5), ("s0", "b", 5), ("a", "s1", 3), ("s1", "b", 3)]);
    let network = Network::of(&topology);
    let mut graph = LogicalGraph::new(&network, &capacities(&topology), &Never).unwrap();
    graph.split(0, 2, 1, 4);
    graph.split(0, 3, 1, 3);
    // Back to where it came from: the capacity is given up.
    graph.split(1, 2, 1, 1);
    assert_eq!(graph.sides(1), (vec![(0, 7)], vec![(2, 4), (3, 3)]));
    let routes: Vec<(String, i64)> = graph.into_strands(&Never).unwrap()[&(0, 1)]
        .iter()
        .map(|strand| (visited(&topology, &strand.links), strand.amount))
        .collect();
    assert_eq!(routes, [("a s0 b".to_owned(), 4), ("a s1 b".to_owned(), 3)]);
}

/// s1 hangs on s0 with both its ways, as a rail switch may; nodes a b c s0 s1 are 0 to 4. Once s0 is gone, the way
/// a–s1–b is a–s0–s1–s0–b, which is a–s0–b.
#[test]
fn routes_pass_a_switch_once() {
    let topology = both_ways("a b c s0 s1", &[("a", "s0", 1), ("b", "s0", 1), ("s0", "s1", 2), ("s1", "c", 2)]);
    let network = Network::of(&topology);
    let mut graph = LogicalGraph::new(&network, &capacities(&topology), &Never).unwrap();
    graph.split(0, 3, 4, 1);
    graph.split(4, 3, 1, 1);
    graph.split(0, 4, 1, 1);
    let strands = graph.into_strands(&Never).unwrap();
    let [Strand { amount: 1, links }] = strands[&(0, 1)].as_slice() else { panic!("one way for one tree") };
    assert_eq!(visited(&topology, links), "a s0 b");
}

/// A strand of the amount wanted is taken whole before thicker ones are cut.
#[test]
fn strands_are_cut_only_where_they_must_be() {
    let links = [("a", "s0", 5), ("s0", "s2", 5), ("a", "s1", 3), ("s1", "s2", 3), ("s2", "b", 8)];
    let topology = both_ways("a b s0 s1 s2", &links);
    let network = Network::of(&topology);
    let mut graph = LogicalGraph::new(&network, &capacities(&topology), &Never).unwrap();
    graph.split(0, 2, 4, 5);
    graph.split(0, 3, 4, 3);
    graph.split(0, 4, 1, 5);
    let strands = graph.into_strands(&Never).unwrap();
    let [Strand { amount: 5, links }] = strands[&(0, 1)].as_slice() else { panic!("one way for five trees") };
    assert_eq!(visited(&topology, links), "a s0 s2 b");
}
