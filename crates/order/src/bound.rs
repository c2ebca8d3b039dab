//! What every order loads at least.

use crate::fabric::{Edge, Fabric, WHOLE, ratio};
use crate::levels::parts;

/// What the busiest link carries at least, whatever the order: each machine sends one flow and gets one, and so does
/// each part that levels of switches make.
pub(crate) fn least(fabric: &Fabric) -> u128 {
    let machines = fabric.machines().len();
    if machines < 2 {
        return 0;
    }
    let single = (0..machines).map(|machine| vec![machine]);
    single.chain(parts(fabric)).map(|part| least_out_of(fabric, &part)).max().unwrap_or(0)
}

/// The same of one part, among whose links out and in a flow each must divide.
fn least_out_of(fabric: &Fabric, nodes: &[usize]) -> u128 {
    let mut is_in = vec![false; fabric.node_count()];
    nodes.iter().for_each(|&node| is_in[node] = true);
    if (0..fabric.machines().len()).all(|machine| is_in[machine]) {
        return 0;
    }
    let sum = |edges: &[Vec<usize>], far: fn(&Edge) -> usize| -> u128 {
        let all = nodes.iter().flat_map(|&node| &edges[node]).map(|&edge| &fabric.edges[edge]);
        all.filter(|edge| !is_in[far(edge)]).map(|edge| u128::from(edge.capacity)).sum()
    };
    let out = sum(&fabric.leaving, |edge| edge.to);
    ratio(WHOLE, out.min(sum(&fabric.entering, |edge| edge.from)))
}
