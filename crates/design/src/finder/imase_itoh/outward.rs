//! Distances from the nodes of Π(d, m), and loads of links out of them: the allgather of the transpose.
//!
//! The nodes within t links of u are a union of at most T runs of consecutive nodes, so that everything is counted with
//! interval arithmetic.

use canopy_optimize::{Fraction, Stop};

use super::Graph;
use crate::finder::hall::{Divider, Group, Largest};

/// Largest load at each step, in shards, and the sum of all distances, from one of each kind of nodes; `None` when stopped.
pub(super) fn sweep(graph: &Graph, stop: &dyn Stop) -> Option<(Vec<Fraction>, u64)> {
    let last = graph.last_step();
    let cells = cells(graph);
    let mut largest = vec![Largest::default(); last + 1];
    let mut groups: Vec<Group> = cells.iter().map(|cell| Group { links: cell.links, count: 0 }).collect();
    let mut divider = Divider::new(graph.degree);
    let mut near = Runs::default();
    let mut distance_sum = 0;
    for kind in graph.representatives_until(stop) {
        let (node, copies) = kind?;
        near.runs.clear();
        near.insert(node, node + 1);
        for (step, largest) in largest.iter_mut().enumerate().skip(1) {
            let (start, length) = (run_start(graph, node, step), graph.powers[step]);
            let new =
                if step < last { length - near.within(start, length, graph.nodes) } else { graph.nodes - near.total() };
            distance_sum += copies * new * step as u64;
            if step < last {
                raise_by_parts(largest, graph, &near, step, start);
                near.insert_round(start, length, graph.nodes);
            } else if new > 0 {
                for (group, cell) in groups.iter_mut().zip(&cells) {
                    group.count = cell.length - near.within(start + cell.start, cell.length, graph.nodes);
                }
                divider.raise(largest, &groups);
            }
        }
    }
    let mut loads: Vec<Fraction> = largest.iter().skip(1).map(Largest::fraction).collect();
    while loads.last().is_some_and(|&load| load == Fraction::ZERO) {
        loads.pop();
    }
    Some((loads, distance_sum))
}

/// Before the last step each link has a part of the run to itself. None can have more than all of it, and once one has,
/// the step is settled for all nodes.
fn raise_by_parts(largest: &mut Largest, graph: &Graph, near: &Runs, step: usize, start: u64) {
    let part = graph.powers[step - 1];
    if largest.is_less_than(part) {
        for link in 0..graph.degree {
            largest.raise(part - near.within(start + link * part, part, graph.nodes), 1);
        }
    }
}

/// The first of the d^t consecutive nodes to which t links lead from u.
fn run_start(graph: &Graph, node: u64, step: usize) -> u64 {
    let (power, nodes) = (graph.powers[step] % graph.nodes, graph.nodes);
    if step.is_multiple_of(2) { power * node % nodes } else { (nodes - power * (node + 1) % nodes) % nodes }
}

/// Consecutive nodes that are reached in T links over the same first links, counted from the first node of the run.
struct Cell {
    start: u64,
    length: u64,
    /// Bit ℓ: the ℓ-th part of the run reaches them.
    links: u64,
}

/// The run of T links goes round at least once: the parts that its d links reach overlap.
fn cells(graph: &Graph) -> Vec<Cell> {
    let last = graph.last_step();
    let (part, whole) = (graph.powers[last - 1], graph.powers[last]);
    let mut cuts: Vec<u64> = (0..=graph.degree).map(|link| link * part % graph.nodes).collect();
    cuts.extend([0, graph.nodes]);
    cuts.sort_unstable();
    cuts.dedup();
    let cell = |pair: &[u64]| {
        let places = (pair[0]..whole).step_by(usize::try_from(graph.nodes).expect("64 bits"));
        let links = places.fold(0, |links, place| links | 1 << (place / part));
        Cell { start: pair[0], length: pair[1] - pair[0], links }
    };
    cuts.windows(2).map(cell).collect()
}

/// Disjoint runs of nodes in ascending order, none going round.
#[derive(Default)]
struct Runs {
    runs: Vec<(u64, u64)>,
}

impl Runs {
    /// Adds the nodes from `start` to before `end`.
    fn insert(&mut self, start: u64, end: u64) {
        let (mut start, mut end) = (start, end);
        self.runs.retain(|&(from, to)| {
            let apart = to < start || end < from;
            if !apart {
                (start, end) = (start.min(from), end.max(to));
            }
            apart
        });
        let place = self.runs.partition_point(|run| run.0 < start);
        self.runs.insert(place, (start, end));
    }

    /// Adds `length` nodes from `start` on, going round after `nodes`; `start` < `nodes`, `length` ≤ `nodes`.
    fn insert_round(&mut self, start: u64, length: u64, nodes: u64) {
        let end = start + length;
        self.insert(start, end.min(nodes));
        if end > nodes {
            self.insert(0, end - nodes);
        }
    }

    fn total(&self) -> u64 {
        self.runs.iter().map(|(from, to)| to - from).sum()
    }

    /// How many of the `length` ≤ `nodes` nodes from `start` on, going round, are among them.
    fn within(&self, start: u64, length: u64, nodes: u64) -> u64 {
        let start = start % nodes;
        let end = start + length;
        let beyond = end.saturating_sub(nodes);
        let overlap = |&(from, to): &(u64, u64)| {
            let plain = to.min(end).saturating_sub(from.max(start));
            plain + to.min(beyond).saturating_sub(from)
        };
        self.runs.iter().map(overlap).sum()
    }
}
