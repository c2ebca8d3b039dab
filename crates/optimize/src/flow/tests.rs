//! What single operations promise; values of flows are compared with another implementation in `tests/optimize/properties.rs`.

use super::*;

/// Nodes 0 → 1 → 2 and a detour 0 → 3 → 2.
fn diamond() -> (FlowNetwork<i64>, [ArcId; 4]) {
    let mut network = FlowNetwork::new(4);
    let arcs = [(0, 1, 3), (1, 2, 2), (0, 3, 1), (3, 2, 5)];
    let arcs = arcs.map(|(from, to, capacity)| network.add_arc(from, to, capacity));
    (network, arcs)
}

fn flow(network: &mut FlowNetwork<i64>, source: u32, sink: u32) -> i64 {
    network.max_flow(source, sink, i64::MAX, &Never).unwrap()
}

#[test]
fn flows_cuts_and_arcs() {
    let (mut network, arcs) = diamond();
    assert_eq!(flow(&mut network, 0, 2), 3);
    assert_eq!(arcs.map(|arc| network.flow(arc)), [2, 2, 1, 1]);
    assert_eq!(network.min_cut_source_side(0), [true, true, false, false]);
    assert_eq!(network.min_cut_sink_side(), [false, false, true, true]);
    assert_eq!(network.min_cut_sink_nodes(), [2, 3]);
    assert_eq!(flow(&mut network, 2, 0), 3, "flow can be sent back");
    assert_eq!(arcs.map(|arc| network.flow(arc)), [0; 4]);
}

#[test]
fn capacities_change_between_flows() {
    let (mut network, arcs) = diamond();
    flow(&mut network, 0, 2);
    network.set_capacity(arcs[2], 9);
    assert_eq!(network.flow(arcs[0]), 0, "a change drops the flow");
    assert_eq!(flow(&mut network, 0, 2), 7);
    network.set_pair(arcs[1], 0, 4);
    assert_eq!(flow(&mut network, 0, 2), 5);
    network.reset();
    assert_eq!(flow(&mut network, 2, 1), 4, "a pair carries flow either way");
    assert_eq!(network.flow(arcs[1]), -4);
    assert_eq!((network.capacity(arcs[1]), network.reverse_capacity(arcs[1])), (0, 4));
    assert_eq!(network.ends(arcs[1]), (1, 2));
}

#[test]
fn committed_flow_survives_a_reset() {
    let (mut network, arcs) = diamond();
    network.set_supply(0, 10);
    assert_eq!(network.pull(2, 1, &Never), Ok(1));
    network.commit();
    assert_eq!(network.supply(0), 9);
    assert_eq!(network.pull(2, i64::MAX, &Never), Ok(2));
    network.reset();
    assert_eq!(network.pull(2, i64::MAX, &Never), Ok(2));
    let used: i64 = [arcs[1], arcs[3]].map(|arc| network.reverse_capacity(arc)).iter().sum();
    assert_eq!(used, 1, "what was committed can be sent back");
}

#[test]
fn supplies_are_drawn_down_and_unlimited_ones_are_not() {
    let (mut network, _) = diamond();
    network.set_supply(1, 1);
    network.set_supply(3, i64::MAX);
    network.set_supply(2, 4);
    assert_eq!(network.pull(2, i64::MAX, &Never), Ok(4 + 1 + 5), "a sink's own supply needs no arc");
    network.clear_supplies();
    assert_eq!(network.pull(2, i64::MAX, &Never), Ok(0));
    assert_eq!(network.min_cut_sink_side(), [true; 4], "every node leads to the sink");
}

#[test]
fn unlimited_arcs_are_never_cut() {
    let mut network = FlowNetwork::<i64>::new(3);
    network.add_arc(0, 1, i64::MAX);
    network.add_arc(1, 2, i64::MAX - 1);
    assert_eq!(flow(&mut network, 0, 2), i64::MAX - 1);
    assert_eq!(network.min_cut_sink_side(), [false, false, true]);
}

/// A path of ten thousand nodes needs no recursion, and takes one search.
#[test]
fn long_paths() {
    let mut network = FlowNetwork::<i128>::new(10_000);
    for node in 1..10_000 {
        network.add_pair(node - 1, node, 5, 7);
    }
    assert_eq!(network.max_flow(0, 9_999, i128::MAX, &Never), Ok(5));
    network.reset();
    assert_eq!(network.max_flow(9_999, 0, i128::MAX, &Never), Ok(7));
    assert_eq!(network.breadth_first_order(), (0..10_000).collect::<Vec<_>>());
}

#[test]
fn a_network_without_arcs_has_no_flow() {
    let mut network = FlowNetwork::<i64>::new(2);
    assert_eq!(network.min_cut_source_side(0), [true, false]);
    assert_eq!(flow(&mut network, 0, 1), 0);
    assert_eq!(network.add_node(), 2);
    network.add_arc(0, 2, 1);
    assert_eq!(flow(&mut network, 0, 2), 1);
    assert_eq!((network.node_count(), network.arc_count()), (3, 1));
    assert_eq!(network.breadth_first_order(), [0, 2, 1]);
}
