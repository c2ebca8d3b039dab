//! What a solver proposes nearly conserves flow; this makes it do so, as far as floats can.

use crate::concurrent::cycles::cancel_cycles;
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
    for &node in order.iter().filter(|&&node| node != commodity.source) {
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

/// Takes cycles out of a flow; all nodes, each behind those that it sends to.
fn without_cycles(problem: &ConcurrentProblem<'_>, source: u32, flow: &mut [f64]) -> Vec<u32> {
    let (arcs, node_count) = (&problem.graph().arcs, problem.graph().node_count);
    let mut leaving: Vec<Vec<u32>> = vec![Vec::new(); node_count as usize];
    for (number, arc) in (0_u32..).zip(arcs) {
        if flow[number as usize] > 0.0 {
            leaving[arc.from as usize].push(number);
        }
    }
    let starts = std::iter::once(source).chain(0..node_count);
    let ends = |arc: u32| (arcs[arc as usize].from, arcs[arc as usize].to);
    cancel_cycles(leaving.len(), starts, |node| &leaving[node as usize], ends, flow)
}

/// The nearest float.
#[expect(clippy::cast_precision_loss, reason = "floats only propose")]
pub(crate) const fn as_float(number: u64) -> f64 {
    number as f64
}
