//! How far from each source everything is, by the lengths that prove the limit: where flows of the best rate run.

use std::rc::Rc;

use super::super::distances::Ways;
use super::super::problem::ConcurrentProblem;
use crate::digraph::{Arc, Digraph};

/// What it costs to go astray by the mean length of an arc, and the most that it can cost.
const COST: u128 = 1 << 30;
const COST_MAX: u128 = 1 << 40;

/// Distances from sources that were asked for.
pub(super) struct Distances<'a> {
    lengths: &'a [u64],
    /// Mean length of an arc, at least 1.
    unit: u128,
    ways: Ways,
    known: Vec<Option<Rc<[u128]>>>,
}

impl<'a> Distances<'a> {
    /// Lengths that are missing are 0.
    pub(super) fn new(graph: &Digraph, lengths: &'a [u64]) -> Self {
        let sum: u128 = lengths.iter().map(|&length| u128::from(length)).sum();
        let unit = (sum / (lengths.len() as u128).max(1)).max(1);
        Self { lengths, unit, ways: Ways::new(graph, lengths), known: Vec::new() }
    }

    /// By node, the distance from the source of a commodity; that of nodes out of reach is the greatest number.
    pub(super) fn of(&mut self, problem: &ConcurrentProblem<'_>, commodity: u32) -> Rc<[u128]> {
        self.known.resize(problem.commodities().len(), None);
        if let Some(known) = &self.known[commodity as usize] {
            return Rc::clone(known);
        }
        let distances = self.ways.from(problem.commodities()[commodity as usize].source);
        let distances: Rc<[u128]> = distances.into_iter().map(|distance| distance.unwrap_or(u128::MAX)).collect();
        self.known[commodity as usize] = Some(Rc::clone(&distances));
        distances
    }

    /// What it costs to take an arc: nothing on a shortest way.
    pub(super) fn astray(&self, distances: &[u128], arc: u32, Arc { from, to, .. }: &Arc) -> u64 {
        let way = distances[*from as usize].saturating_add(self.length(arc));
        let excess = way.saturating_sub(distances[*to as usize]);
        let cost = excess.saturating_mul(COST) / self.unit;
        u64::try_from(cost.min(COST_MAX)).unwrap_or(u64::MAX)
    }

    fn length(&self, arc: u32) -> u128 {
        self.lengths.get(arc as usize).copied().unwrap_or(0).into()
    }
}
