//! Shortest ways by lengths in floats.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::mend::as_float;
use crate::concurrent::{Commodity, ConcurrentError, ConcurrentProblem};
use crate::digraph::Arc;

/// Shortest ways of a commodity.
pub(super) struct Distances {
    /// By node, the arc of a shortest way that leads to it; none at the source and where no way leads.
    pub(super) into: Vec<Option<u32>>,
    /// By node; infinite where no way leads.
    distances: Vec<f64>,
    /// Of its sinks, each times what it wants; all that times the number of copies.
    pub(super) sum: f64,
    /// What its sinks want, times the number of copies.
    demand: f64,
}

/// A node at a distance, the nearest greatest, then the one of lower number.
#[derive(PartialEq)]
struct Near(f64, u32);

impl Eq for Near {}

impl Ord for Near {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.total_cmp(&self.0).then(other.1.cmp(&self.1))
    }
}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One search by Dijkstra for each commodity.
///
/// * **Errors.** A sink out of reach.
pub(super) fn distances(problem: &ConcurrentProblem<'_>, lengths: &[f64]) -> Result<Vec<Distances>, ConcurrentError> {
    let graph = problem.graph();
    let mut leaving: Vec<Vec<u32>> = vec![Vec::new(); graph.node_count as usize];
    for (number, arc) in (0_u32..).zip(&graph.arcs).filter(|(_, arc)| arc.capacity > 0) {
        leaving[arc.from as usize].push(number);
    }
    problem.commodities().iter().map(|commodity| search(&graph.arcs, &leaving, lengths, commodity)).collect()
}

fn search(
    arcs: &[Arc],
    leaving: &[Vec<u32>],
    lengths: &[f64],
    commodity: &Commodity,
) -> Result<Distances, ConcurrentError> {
    let mut distances = vec![f64::INFINITY; leaving.len()];
    let mut into = vec![None; leaving.len()];
    distances[commodity.source as usize] = 0.0;
    let mut queue = BinaryHeap::from([Near(0.0, commodity.source)]);
    while let Some(Near(distance, node)) = queue.pop() {
        if distance > distances[node as usize] {
            continue;
        }
        for &number in &leaving[node as usize] {
            let to = arcs[number as usize].to;
            let through = distance + lengths[number as usize];
            if through < distances[to as usize] {
                distances[to as usize] = through;
                into[to as usize] = Some(number);
                queue.push(Near(through, to));
            }
        }
    }
    let (mut sum, mut wanted) = (0.0, 0.0);
    for &(to, demand) in &commodity.sinks {
        if into[to as usize].is_none() {
            return Err(ConcurrentError::Unreachable { from: commodity.source, to });
        }
        sum += distances[to as usize] * as_float(demand);
        wanted += as_float(demand);
    }
    let copies = as_float(commodity.copies);
    Ok(Distances { into, distances, sum: copies * sum, demand: copies * wanted })
}

/// The mean distance of all demands.
pub(super) fn mean(all: &[Distances]) -> f64 {
    all.iter().map(|each| each.sum).sum::<f64>() / all.iter().map(|each| each.demand).sum::<f64>()
}

/// The greatest distance of any node that is reached.
pub(super) fn greatest(all: &[Distances]) -> f64 {
    all.iter().flat_map(|each| &each.distances).filter(|distance| distance.is_finite()).copied().fold(0.0, f64::max)
}

impl Distances {
    /// The arcs of the way found to a node, from its end.
    pub(super) fn way<'a>(&'a self, arcs: &'a [Arc], node: u32) -> impl Iterator<Item = usize> + 'a {
        let mut at = node;
        std::iter::from_fn(move || {
            let arc = self.into[at as usize]? as usize;
            at = arcs[arc].from;
            Some(arc)
        })
    }

    /// The arcs of all ways to sinks that are longer than shortest ones by `near` for each arc at most, but those of
    /// the ways found.
    pub(super) fn tight_arcs(
        &self,
        problem: &ConcurrentProblem<'_>,
        commodity: &Commodity,
        lengths: &[f64],
        near: f64,
    ) -> Vec<usize> {
        let graph = problem.graph();
        let mut entering: Vec<Vec<usize>> = vec![Vec::new(); graph.node_count as usize];
        for (number, arc) in graph.arcs.iter().enumerate() {
            let through = self.distances[arc.from as usize] + lengths[number];
            let is_tight = arc.capacity > 0 && through - self.distances[arc.to as usize] <= near;
            if is_tight && arc.to != commodity.source && arc.to != arc.from {
                entering[arc.to as usize].push(number);
            }
        }
        let mut is_seen = vec![false; entering.len()];
        let mut open: Vec<u32> = commodity.sinks.iter().map(|&(node, _)| node).collect();
        open.iter().for_each(|&node| is_seen[node as usize] = true);
        let mut tight = Vec::new();
        while let Some(node) = open.pop() {
            for &number in &entering[node as usize] {
                let from = graph.arcs[number].from;
                if !std::mem::replace(&mut is_seen[from as usize], true) {
                    open.push(from);
                }
                if self.into[node as usize].is_none_or(|into| into as usize != number) {
                    tight.push(number);
                }
            }
        }
        tight
    }
}
