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

/// What the flows and distances of several sources come to, by arc.
#[derive(Debug)]
pub(super) struct Tally {
    /// Flow, added up.
    pub(super) load: Vec<f64>,
    /// How long the arc must be for distances to be what they are.
    pub(super) needed: Vec<f64>,
}

impl Tally {
    pub(super) fn new(layout: &Layout<'_>) -> Self {
        Self { load: vec![0.0; layout.arcs.len()], needed: vec![0.0; layout.arcs.len()] }
    }

    pub(super) fn clear(&mut self) {
        self.load.fill(0.0);
        self.needed.fill(0.0);
    }
}

impl<R: Real, const L: usize> Block<R, L> {
    /// Finds distances for the lengths and makes the flow meet all demands; adds what that puts on each arc, and what its length
    /// is good for, to the tally.
    ///
    /// The flow is that which the next step leads to: the iterate itself, an average, still has a little on all arcs that once
    /// carried something. What a node then lacks is sent to it along the shortest-path tree, and what it has too much of is taken
    /// off the tree's arc as far as that carries anything.
    ///
    /// * **Out.** `Σ copies·demand·distance`.
    /// * **Cost.** O(L × arcs) for each pass of the distances, and as much again.
    pub(super) fn certify(
        &mut self,
        layout: &Layout<'_>,
        lengths: &[R],
        steps: &Steps<R>,
        workspace: &mut Workspace<R, L>,
        tally: &mut Tally,
    ) -> f64 {
        distances(layout, lengths, &self.sources(layout), &mut workspace.distance);
        self.clip(layout, steps);
        self.mend(layout, lengths, workspace);
        self.tally(layout, workspace, tally)
    }

    /// Sends everything along shortest paths, and takes the distances for potentials, no greater than that of the farthest sink.
    ///
    /// **Out, cost.** As [`certify`](Self::certify).
    pub(super) fn start(
        &mut self,
        layout: &Layout<'_>,
        lengths: &[R],
        workspace: &mut Workspace<R, L>,
        tally: &mut Tally,
    ) -> f64 {
        distances(layout, lengths, &self.sources(layout), &mut workspace.distance);
        for node in 0..layout.node_count {
            self.net[node] = self.demand(node);
        }
        self.mend(layout, lengths, workspace);
        self.flow.copy_from_slice(&self.mended);
        self.best.copy_from_slice(&self.mended);
        let total = self.tally(layout, workspace, tally);
        self.potential.copy_from_slice(&workspace.distance);
        total
    }

    /// Adds what the mended flow puts on each arc to the tally, and takes up how long each arc must be for the distances of
    /// sinks to be what they are; `Σ copies·demand·distance`.
    ///
    /// Distances cut off at that of the farthest sink prove as much as whole ones, and no arc needs to be longer than its head
    /// is farther than its tail from any source.
    fn tally(&self, layout: &Layout<'_>, workspace: &mut Workspace<R, L>, tally: &mut Tally) -> f64 {
        for (load, amounts) in tally.load.iter_mut().zip(&self.mended) {
            let weighted = from_fn::<R, L, _>(|lane| amounts[lane] * self.weights[lane]);
            *load += lane_sum(weighted).wide();
        }
        let distance = &mut workspace.distance;
        let mut total = [0.0; L];
        let mut farthest = [R::ZERO; L];
        for (node, distance) in distance.iter().enumerate() {
            let demand = self.demand(node);
            for lane in 0..L {
                if demand[lane] > R::ZERO {
                    total[lane] += demand[lane].wide() * distance[lane].wide();
                    farthest[lane] = farthest[lane].greater(distance[lane]);
                }
            }
        }
        for distance in distance.iter_mut() {
            *distance = from_fn(|lane| distance[lane].lesser(farthest[lane]));
        }
        let rounding = farthest.iter().fold(R::ZERO, |most, &far| most.greater(far)) * R::EPSILON;
        for (arc, needed) in layout.arcs.iter().zip(&mut tally.needed) {
            let (tail, head) = (&distance[arc.from as usize], &distance[arc.to as usize]);
            let most = (0..L).fold(R::ZERO, |most, lane| most.greater(head[lane] - tail[lane]));
            if most > R::ZERO {
                *needed = needed.max((most + rounding).wide());
            }
        }
        total.iter().zip(&self.weights).map(|(total, weight)| total * weight.wide()).sum()
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
