//! Balance of capacities at nodes that are no terminals, and how it is restored once they are cut down to whole numbers.

use std::collections::BTreeMap;

use crate::digraph::Digraph;
use crate::error::OptimumError;
use crate::flow::FlowNetwork;
use crate::stop::{Stop, Stopped};

/// Whether, at every node that is no terminal, the capacities that enter are link for link those that leave: then floors
/// of equal multiples of them are balanced, too.
///
/// * **Errors.** [`OptimumError::Unbalanced`]: at such a node not even the sums are equal.
/// * **Cost.** O(arcs log arcs).
pub(crate) fn is_kept_by_floors(graph: &Digraph, terminals: &[bool]) -> Result<bool, OptimumError> {
    let mut sides: BTreeMap<u32, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
    for arc in graph.arcs.iter().filter(|arc| arc.counts()) {
        if !terminals[arc.to as usize] {
            sides.entry(arc.to).or_default().0.push(arc.capacity);
        }
        if !terminals[arc.from as usize] {
            sides.entry(arc.from).or_default().1.push(arc.capacity);
        }
    }
    let mut is_kept = true;
    for (node, (mut entering, mut leaving)) in sides {
        let sum = |side: &[u64]| side.iter().map(|&capacity| u128::from(capacity)).sum();
        let (sum_in, sum_out): (u128, u128) = (sum(&entering), sum(&leaving));
        if sum_in != sum_out {
            return Err(OptimumError::Unbalanced { node, entering: sum_in, leaving: sum_out });
        }
        entering.sort_unstable();
        leaving.sort_unstable();
        is_kept &= entering == leaving;
    }
    Ok(is_kept)
}

/// Lowers capacities until every node that is no terminal is balanced, by about as little as possible.
///
/// What is taken away is a flow: where too much enters, some of it is taken from a link that enters, which then leaves
/// too much at the other end, and so on, up to a terminal or a node where too much left. Taking everything away would
/// do, so such a flow exists; shortest augmenting paths keep it small.
///
/// * **In.** `capacities`: by arc of the graph, in place of its own; their sum is less than a quarter of what 127 bits
///   hold.
/// * **Errors.** Stopped.
/// * **Cost.** One flow per unbalanced node.
pub fn lower(graph: &Digraph, terminals: &[bool], capacities: &mut [u128], stop: &dyn Stop) -> Result<(), Stopped> {
    let signed = |value: u128| i128::try_from(value).expect("the caller keeps the sum of all capacities within range");
    let mut network = FlowNetwork::<i128>::new(graph.node_count);
    let mut surplus = vec![0_i128; graph.node_count as usize];
    let mut arcs = Vec::with_capacity(capacities.len());
    for (arc, &capacity) in graph.arcs.iter().zip(&*capacities) {
        let capacity = signed(capacity);
        arcs.push(network.add_arc(arc.from, arc.to, capacity));
        surplus[arc.to as usize] += capacity;
        surplus[arc.from as usize] -= capacity;
    }
    // Terminals take and give any amount, among themselves as well.
    let all = capacities.iter().copied().map(signed).sum();
    let terminal = network.add_node();
    for node in (0..graph.node_count).filter(|&node| terminals[node as usize]) {
        network.add_pair(terminal, node, all, all);
        surplus[node as usize] = 0;
    }
    for (node, &surplus) in (0..graph.node_count).zip(&surplus).filter(|&(_, &surplus)| surplus < 0) {
        network.set_supply(node, -surplus);
    }
    network.set_supply(terminal, i128::MAX);
    for (node, &surplus) in (0..graph.node_count).zip(&surplus).filter(|&(_, &surplus)| surplus > 0) {
        let pulled = network.pull(node, surplus, stop)?;
        assert_eq!(pulled, surplus, "taking everything away would do");
        network.commit();
    }
    network.set_supply(terminal, 0);
    network.pull(terminal, all, stop)?;
    network.commit();
    for (&arc, capacity) in arcs.iter().zip(capacities) {
        *capacity = network.capacity(arc).try_into().expect("no flow exceeds a capacity");
    }
    Ok(())
}
