//! How far each kind of variable may move in a step.

use super::layout::Layout;

/// How much of the room for steps prices take, where each end of an arc takes one.
const PRICE_SHARE: f64 = 0.3;
/// Rounds in which the norm is estimated, from below.
const ROUNDS: usize = 60;
/// What the estimate may lack.
const MARGIN: f64 = 1.02;

/// Steps for a ratio of one between those of prices and potentials and those of flows.
#[derive(Debug)]
pub(super) struct StepSizes {
    /// By arc.
    pub(super) flow: Vec<f64>,
    /// By node.
    pub(super) potential: Vec<f64>,
    /// By class.
    pub(super) price: Vec<f64>,
}

impl StepSizes {
    /// Steps by the number of arcs and sources that meet in a row, made as long as the norm of the program allows.
    ///
    /// Rows are one for each arc, in which all sources meet, and one for each source and node, in which the node's arcs meet. The
    /// iteration converges while the product of the matrix with the roots of both steps has norm 1 at most, which the counts
    /// alone ensure. They are nearly tight where the network has two sides; on others the norm is found to be less. Flows that
    /// are the same for all sources show it, so that one source is looked at.
    ///
    /// * **Source.** T. Pock and A. Chambolle, *Diagonal preconditioning for first order primal-dual algorithms in convex
    ///   optimization*, ICCV 2011, α = 1; power iteration.
    /// * **Cost.** O(60 × arcs).
    pub(super) fn new(layout: &Layout<'_>) -> Self {
        let copies: f64 = layout.commodities.iter().map(|commodity| commodity.copies as f64).sum();
        let mut touching = vec![0.0; layout.node_count];
        for arc in &layout.arcs {
            touching[arc.from as usize] += 1.0;
            touching[arc.to as usize] += 1.0;
        }
        let potential: Vec<f64> = touching.into_iter().map(|touching: f64| 1.0 / touching.max(1.0)).collect();
        let by_count = 1.0 / (2.0 + PRICE_SHARE);
        let flow = by_count / (MARGIN * squared_norm(layout, &potential, by_count)).min(1.0);
        Self { flow: vec![flow; layout.arcs.len()], potential, price: vec![PRICE_SHARE / copies; layout.classes.len()] }
    }
}

/// The square of the norm for one step of all flows, or somewhat less.
fn squared_norm(layout: &Layout<'_>, potential: &[f64], flow: f64) -> f64 {
    // Any start will do that is no sum of the other eigenvectors; these numbers have no pattern that a network could share.
    let mut vector: Vec<f64> =
        (1..=layout.arcs.len()).map(|index| (index as f64 * 0.618_033_988_75).fract() - 0.5).collect();
    let mut norm: f64 = 0.0;
    for _ in 0..ROUNDS {
        let length = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
        if length <= 0.0 {
            break;
        }
        vector.iter_mut().for_each(|value| *value /= length);
        let mut net = vec![0.0; layout.node_count];
        for (arc, value) in layout.arcs.iter().zip(&vector) {
            net[arc.to as usize] += value;
            net[arc.from as usize] -= value;
        }
        let pull = |node: u32| potential[node as usize] * net[node as usize];
        let image = layout
            .arcs
            .iter()
            .zip(&vector)
            .map(|(arc, value)| flow * (PRICE_SHARE * value + pull(arc.to) - pull(arc.from)));
        let image: Vec<f64> = image.collect();
        norm = norm.max(image.iter().zip(&vector).map(|(image, value)| image * value).sum());
        vector = image;
    }
    norm
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::concurrent::{Commodity, ConcurrentProblem};
    use crate::digraph::{Arc, Digraph};

    fn flow_step(node_count: u32, arcs: impl Iterator<Item = (u32, u32)>) -> f64 {
        let arcs = arcs.map(|(from, to)| Arc { from, to, capacity: 1 });
        let graph = Digraph { node_count, arcs: arcs.collect() };
        let one = [Commodity { source: 0, sinks: vec![(1, 1)], copies: 1 }];
        let problem = ConcurrentProblem::new(&graph, &one, &[]).unwrap();
        StepSizes::new(&Layout::new(&problem).unwrap()).flow[0]
    }

    /// A hypercube has two sides: counts are tight. In a complete graph of n nodes the norm is n/(n−1) instead of 2.
    #[test]
    fn steps_are_as_long_as_the_norm_allows() {
        let cube = flow_step(32, (0..32).flat_map(|node| (0..5).map(move |bit| (node, node ^ 1 << bit))));
        assert!((cube - 1.0 / 2.3).abs() < 0.01, "{cube}");
        let pairs = (0..9).flat_map(|from| (0..9).filter(move |&to| to != from).map(move |to| (from, to)));
        let complete = flow_step(9, pairs);
        assert!((complete * MARGIN - 1.0 / (0.3 + 9.0 / 8.0)).abs() < 0.01, "{complete}");
    }
}
