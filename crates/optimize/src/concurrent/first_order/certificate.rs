//! What any iterate proves: a rate that a flow made of it has, and a rate that no flow exceeds.

use std::array::from_fn;

use super::block::{Block, Steps};
use super::distances::{Trees, distances};
use super::layout::Layout;
use super::real::{Real, lane_sum};

/// Buffers of a block's certificate, used again by the next block.
#[derive(Debug)]
pub(super) struct Workspace<R, const L: usize> {
    distance: Vec<[R; L]>,
    trees: Trees,
}

impl<R: Real, const L: usize> Workspace<R, L> {
    pub(super) fn new(layout: &Layout<'_>) -> Self {
        Self { distance: Vec::new(), trees: Trees::new(layout) }
    }
}

impl<R: Real, const L: usize> Block<R, L> {
    /// Finds distances for the lengths and makes the flow meet all demands; adds what that puts on each arc to `load`.
    ///
    /// The flow is that which the next step leads to: the iterate itself, an average, still has a little on all arcs that once
    /// carried something. What a node
    /// then lacks is sent to it along the shortest-path tree, and what it has too much of is taken off the tree's arc as far as
    /// that carries anything.
    ///
    /// * **Out.** `Σ copies·demand·distance`.
    /// * **Cost.** O(L × arcs) for each pass of the distances, and as much again.
    pub(super) fn certify(
        &mut self,
        layout: &Layout<'_>,
        lengths: &[R],
        steps: &Steps<R>,
        workspace: &mut Workspace<R, L>,
        load: &mut [f64],
    ) -> f64 {
        distances(layout, lengths, &self.sources(layout), &mut workspace.distance);
        self.clip(layout, steps);
        self.mend(layout, lengths, workspace);
        self.add_load(&self.mended, load);
        self.weighted_distance(&workspace.distance)
    }

    /// Sends everything along shortest paths, and takes the distances for potentials; adds what that puts on each arc to `load`.
    ///
    /// **Out, cost.** As [`certify`](Self::certify).
    pub(super) fn start(
        &mut self,
        layout: &Layout<'_>,
        lengths: &[R],
        workspace: &mut Workspace<R, L>,
        load: &mut [f64],
    ) -> f64 {
        distances(layout, lengths, &self.sources(layout), &mut workspace.distance);
        for node in 0..layout.node_count {
            self.net[node] = self.demand(node);
        }
        self.mend(layout, lengths, workspace);
        self.flow.copy_from_slice(&self.mended);
        self.best.copy_from_slice(&self.mended);
        self.add_load(&self.mended, load);
        for (potential, distance) in self.potential.iter_mut().zip(&workspace.distance) {
            *potential = distance.map(|distance| if distance < R::INFINITY { distance } else { R::ZERO });
        }
        self.weighted_distance(&workspace.distance)
    }

    /// Sends what each node lacks to it along the tree of its lane.
    fn mend(&mut self, layout: &Layout<'_>, lengths: &[R], workspace: &mut Workspace<R, L>) {
        let Workspace { distance, trees } = workspace;
        for (lane, &source) in self.sources(layout).iter().enumerate() {
            for &arc in trees.grow(layout, lengths, distance, source, lane).iter().rev() {
                let ends = layout.arcs[arc as usize];
                let amount = &mut self.mended[arc as usize][lane];
                let lacks = self.net[ends.to as usize][lane];
                let sent = lacks.greater(R::ZERO - *amount);
                *amount += sent;
                self.net[ends.from as usize][lane] += sent;
            }
        }
    }

    /// Adds what a flow of this block puts on each arc.
    fn add_load(&self, flow: &[[R; L]], load: &mut [f64]) {
        for (load, amounts) in load.iter_mut().zip(flow) {
            let weighted = from_fn::<R, L, _>(|lane| amounts[lane] * self.weights[lane]);
            *load += lane_sum(weighted).wide();
        }
    }

    /// `Σ copies·demand·distance` over the lanes.
    fn weighted_distance(&self, distance: &[[R; L]]) -> f64 {
        let mut total = [0.0; L];
        for (node, distance) in distance.iter().enumerate() {
            let demand = self.demand(node);
            for lane in 0..L {
                if demand[lane] > R::ZERO {
                    total[lane] += demand[lane].wide() * distance[lane].wide();
                }
            }
        }
        total.iter().zip(&self.weights).map(|(total, weight)| total * weight.wide()).sum()
    }

    /// Puts the flow after a step and clipped at zero into `mended`, and what each node then lacks into `net`.
    fn clip(&mut self, layout: &Layout<'_>, steps: &Steps<R>) {
        for node in 0..layout.node_count {
            self.net[node] = self.demand(node);
        }
        let flows = self.mended.iter_mut().zip(&self.flow);
        for ((arc, (mended, flow)), (&length, &step)) in
            layout.arcs.iter().zip(flows).zip(steps.lengths.iter().zip(&steps.flow))
        {
            let tail = self.potential[arc.from as usize];
            let head = self.potential[arc.to as usize];
            for lane in 0..L {
                mended[lane] = (flow[lane] - step * (length + tail[lane] - head[lane])).positive();
            }
            let enters = &mut self.net[arc.to as usize];
            for lane in 0..L {
                enters[lane] -= mended[lane];
            }
            let leaves = &mut self.net[arc.from as usize];
            for lane in 0..L {
                leaves[lane] += mended[lane];
            }
        }
    }
}
