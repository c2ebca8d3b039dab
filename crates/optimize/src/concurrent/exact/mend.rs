//! What a solver proposes nearly conserves flow; this makes it do so, as far as floats can.

use crate::concurrent::{Commodity, ConcurrentProblem};

/// What is less than this part of a commodity's demand is no flow.
const NOISE: f64 = 1e-9;

/// A commodity's flow that brings each sink what it wants and leaves nothing elsewhere, near `amounts`.
///
/// Cycles are taken out. Then nodes are looked at from the last to the first, and what enters each is scaled to what leaves it
/// and what it wants; where nothing enters, that takes the way of `tree`.
///
/// * **In.** `amounts`: pairs of an arc and how much, in units of demand. `tree`: by node, an arc into it, which lead back
///   to the source from wherever something is wanted.
/// * **Out.** Arcs that carry something, ascending.
/// * **Cost.** O(arcs²) at worst, where there are as many cycles.
pub(crate) fn mended(
    problem: &ConcurrentProblem<'_>,
    commodity: &Commodity,
    amounts: &[(u32, f64)],
    tree: &[Option<u32>],
) -> Vec<(u32, f64)> {
    let arcs = &problem.graph().arcs;
    let node_count = problem.graph().node_count as usize;
    let mut wanted = vec![0.0; node_count];
    for &(node, demand) in &commodity.sinks {
        wanted[node as usize] = as_float(demand);
    }
    let least = NOISE * wanted.iter().sum::<f64>();
    let mut flow = vec![0.0; arcs.len()];
    let useful = |&&(arc, amount): &&(u32, f64)| amount > least && arcs[arc as usize].to != commodity.source;
    for &(arc, amount) in amounts.iter().filter(useful) {
        flow[arc as usize] += amount;
    }
    let order = without_cycles(problem, commodity.source, &mut flow);
    let mut entering: Vec<Vec<u32>> = vec![Vec::new(); node_count];
    for (number, arc) in (0_u32..).zip(arcs) {
        if flow[number as usize] > 0.0 {
            entering[arc.to as usize].push(number);
        }
    }
    // What a node needs: what it wants, and what leaves it.
    let mut missing = Vec::new();
    for &node in order.iter().rev().filter(|&&node| node != commodity.source) {
        let need = wanted[node as usize];
        let total: f64 = entering[node as usize].iter().map(|&arc| flow[arc as usize]).sum();
        if total <= 0.0 && need > 0.0 {
            missing.push((node, need));
        }
        for &arc in &entering[node as usize] {
            let part = flow[arc as usize] / total * need;
            flow[arc as usize] = part;
            wanted[arcs[arc as usize].from as usize] += part;
        }
    }
    for (mut node, need) in missing {
        while let Some(arc) = tree[node as usize] {
            flow[arc as usize] += need;
            node = arcs[arc as usize].from;
        }
    }
    (0_u32..).zip(flow).filter(|&(_, amount)| amount > 0.0).collect()
}

/// Takes cycles out of a flow; an order of all nodes in which what is left leads onwards.
fn without_cycles(problem: &ConcurrentProblem<'_>, source: u32, flow: &mut [f64]) -> Vec<u32> {
    let arcs = &problem.graph().arcs;
    let mut leaving: Vec<Vec<u32>> = vec![Vec::new(); problem.graph().node_count as usize];
    for (number, arc) in (0_u32..).zip(arcs) {
        if flow[number as usize] > 0.0 {
            leaving[arc.from as usize].push(number);
        }
    }
    // From each node the next arc to look at. Depth first: a node is closed when all beyond it is free of cycles.
    let mut next = vec![0; leaving.len()];
    let (mut is_closed, mut is_on_way) = (vec![false; leaving.len()], vec![false; leaving.len()]);
    let mut closed = Vec::with_capacity(leaving.len());
    let mut way: Vec<u32> = Vec::new();
    let starts = std::iter::once(source).chain(0..problem.graph().node_count);
    for start in starts {
        if is_closed[start as usize] {
            continue;
        }
        let mut node = start;
        is_on_way[node as usize] = true;
        loop {
            let arc = leaving[node as usize].get(next[node as usize]).copied();
            let Some(arc) = arc else {
                is_closed[node as usize] = true;
                is_on_way[node as usize] = false;
                closed.push(node);
                let Some(back) = way.pop() else { break };
                node = arcs[back as usize].from;
                next[node as usize] += 1;
                continue;
            };
            let to = arcs[arc as usize].to;
            if flow[arc as usize] <= 0.0 || is_closed[to as usize] {
                next[node as usize] += 1;
            } else if is_on_way[to as usize] {
                let first = way.iter().position(|&arc| arcs[arc as usize].from == to).unwrap_or(way.len());
                let cycle: Vec<u32> = way[first..].iter().copied().chain([arc]).collect();
                let least = cycle.iter().map(|&arc| flow[arc as usize]).fold(f64::INFINITY, f64::min);
                for &arc in &cycle {
                    let left = flow[arc as usize] - least;
                    flow[arc as usize] = if left > 0.0 { left } else { 0.0 };
                }
                // Back to the start of the first arc that is empty.
                while let Some(empty) = way[first..].iter().position(|&arc| flow[arc as usize] <= 0.0) {
                    for &arc in &way[first + empty..] {
                        is_on_way[arcs[arc as usize].to as usize] = false;
                    }
                    node = arcs[way[first + empty] as usize].from;
                    way.truncate(first + empty);
                }
            } else {
                way.push(arc);
                node = to;
                is_on_way[node as usize] = true;
            }
        }
    }
    closed.reverse();
    closed
}

/// The nearest float.
#[expect(clippy::cast_precision_loss, reason = "floats only propose")]
pub(crate) const fn as_float(number: u64) -> f64 {
    number as f64
}
