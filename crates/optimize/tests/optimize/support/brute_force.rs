//! The optima by their definitions: every cut, every partition. Shares no code with the library but its types.

use canopy_optimize::{Digraph, Fraction};

/// All sets of nodes, as bit masks.
fn sets(graph: &Digraph) -> std::ops::Range<u32> {
    0..1 << graph.node_count
}

fn holds(set: u32, node: u32) -> bool {
    set >> node & 1 == 1
}

/// Capacity that leaves a set.
pub(crate) fn leaving(graph: &Digraph, set: u32) -> u128 {
    let crossing = |arc: &&canopy_optimize::Arc| holds(set, arc.from) && !holds(set, arc.to);
    graph.arcs.iter().filter(crossing).map(|arc| u128::from(arc.capacity)).sum()
}

/// A set as a bit mask.
pub(crate) fn mask(set: &[bool]) -> u32 {
    (0..).zip(set).map(|(node, &inside)| u32::from(inside) << node).sum()
}

pub(crate) fn transposed(graph: &Digraph) -> Digraph {
    let turned = |arc: &canopy_optimize::Arc| canopy_optimize::Arc { from: arc.to, to: arc.from, ..*arc };
    Digraph { node_count: graph.node_count, arcs: graph.arcs.iter().map(turned).collect() }
}

/// Sum of the weights in a set.
pub(crate) fn weight(weights: &[u64], set: u32) -> u128 {
    (0..).zip(weights).filter(|&(node, _)| holds(set, node)).map(|(_, &weight)| u128::from(weight)).sum()
}

/// `max w(S)/B⁺(S)` over the sets that lack a terminal; `None` if data has to leave a set that nothing leaves.
pub(crate) fn forest(graph: &Digraph, weights: &[u64], terminals: &[bool]) -> Option<Fraction> {
    let open = |&set: &u32| mask(terminals) & !set != 0 && weight(weights, set) > 0;
    let ratios = sets(graph).filter(open).map(|set| Fraction::new(weight(weights, set), leaving(graph, set)));
    ratios.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// `min B⁺(S)` over the sets that hold the root and lack a terminal.
pub(crate) fn broadcast(graph: &Digraph, terminals: &[bool], root: u32) -> u128 {
    let open = |&set: &u32| holds(set, root) && mask(terminals) & !set != 0;
    sets(graph).filter(open).map(|set| leaving(graph, set)).min().expect("there is a terminal besides the root")
}

/// `max w(V∖S)/B⁺(S)` over the sets that hold the root; `None` as in [`forest`].
pub(crate) fn scatter(graph: &Digraph, weights: &[u64], root: u32) -> Option<Fraction> {
    let all = (1 << graph.node_count) - 1;
    let open = |&set: &u32| holds(set, root) && weight(weights, all & !set) > 0;
    let ratios = sets(graph).filter(open).map(|set| Fraction::new(weight(weights, all & !set), leaving(graph, set)));
    ratios.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// Least capacity that leaves a set which holds exactly these terminals.
pub(crate) fn isolating(graph: &Digraph, terminals: u32, part: u32) -> u128 {
    sets(graph).filter(|set| set & terminals == part).map(|set| leaving(graph, set)).min().expect("the part itself")
}

/// `min ½·Σλ(V_i)/(p−1)` with `λ(X)` in the undirected graph.
pub(crate) fn strength(graph: &Digraph, terminals: &[bool]) -> Fraction {
    // Both directions of every arc: twice the capacity of the undirected graph.
    let mut doubled = graph.clone();
    doubled.arcs.extend(transposed(graph).arcs);
    let terminals = mask(terminals);
    let lambda: Vec<u128> = sets(graph).map(|part| isolating_or_zero(&doubled, terminals, part)).collect();
    let mut best = None;
    for_partitions(terminals, &mut Vec::new(), &mut |parts| {
        if parts.len() > 1 {
            let sum: u128 = parts.iter().map(|&part| lambda[part as usize]).sum();
            let ratio = Fraction::new(sum, 4 * (parts.len() as u128 - 1)).expect("more than one part");
            best = Some(best.map_or(ratio, |least: Fraction| least.min(ratio)));
        }
    });
    best.expect("there are two terminals")
}

fn isolating_or_zero(graph: &Digraph, terminals: u32, part: u32) -> u128 {
    if part & !terminals == 0 { isolating(graph, terminals, part) } else { 0 }
}

/// Calls back with every partition of a set into non-empty parts.
fn for_partitions(left: u32, parts: &mut Vec<u32>, found: &mut impl FnMut(&[u32])) {
    if left == 0 {
        return found(parts);
    }
    let first = left & left.wrapping_neg();
    let rest = left & !first;
    // Every subset of the rest, joined by the first node.
    let mut subset = rest;
    loop {
        parts.push(subset | first);
        for_partitions(rest & !subset, parts, found);
        parts.pop();
        if subset == 0 {
            return;
        }
        subset = (subset - 1) & rest;
    }
}
