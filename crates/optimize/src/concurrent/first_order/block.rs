//! The iterates of a few sources side by side, one lane each, and the pass over all arcs that moves them on.
//!
//! Lanes of one arc or node are neighbours in memory, so that a pass is arithmetic on short vectors; blocks share nothing
//! but the lengths of arcs, and can be worked on at the same time.

use std::array::from_fn;

use super::layout::Layout;
use super::real::{Real, lane_sum};

/// What a source wants of its own node: so much less than nothing that its potential stays zero.
const SOURCE_DEMAND: f64 = -1e30;

/// Flow and potentials below this are none: some 10⁻¹² of the least that matters.
const TINY: f64 = 1e-15;

/// The iterates of `L` sources.
#[derive(Debug)]
pub(super) struct Block<R, const L: usize> {
    /// By lane, which commodity it is; the last block may have fewer.
    pub(super) commodities: Vec<usize>,
    /// By lane, how many sources it stands for; 0 for lanes that are not used.
    pub(super) weights: [R; L],
    /// By arc.
    pub(super) flow: Vec<[R; L]>,
    /// By arc, where the flow was at the last restart.
    flow_anchor: Vec<[R; L]>,
    /// By node.
    pub(super) potential: Vec<[R; L]>,
    potential_anchor: Vec<[R; L]>,
    /// By node, what is wanted there, in units of demand.
    demand: Vec<[R; L]>,
    /// By node, what enters less what leaves; scratch.
    pub(super) net: Vec<[R; L]>,
    /// By arc, a flow that meets all demands, with the greatest rate so far.
    pub(super) best: Vec<[R; L]>,
    /// By arc, a flow that is being made to meet all demands.
    pub(super) mended: Vec<[R; L]>,
}

/// The steps of an iteration.
#[derive(Debug)]
pub(super) struct Steps<R> {
    /// By arc, its length.
    pub(super) lengths: Vec<R>,
    /// By arc, how far flow moves for each unit of length saved.
    pub(super) flow: Vec<R>,
    /// By node, how far its potential moves for each unit of demand that is not met.
    pub(super) potential: Vec<R>,
    /// Share of the new point in the average with the anchor.
    pub(super) new_share: R,
    /// The rest.
    pub(super) anchor_share: R,
    /// Whether the point of departure is to be the anchor from here on.
    pub(super) anchors: bool,
}

/// Sums of squares in the metric of the steps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Squares {
    pub(super) flow: f64,
    pub(super) potential: f64,
}

impl<R: Real, const L: usize> Block<R, L> {
    /// No flow, no potentials.
    pub(super) fn new(layout: &Layout<'_>, commodities: &[usize]) -> Self {
        let mut weights = [R::ZERO; L];
        let mut demand = vec![[R::ZERO; L]; layout.node_count];
        for (lane, &commodity) in commodities.iter().enumerate() {
            let commodity = &layout.commodities[commodity];
            weights[lane] = R::of(commodity.copies as f64);
            demand[commodity.source as usize][lane] = R::of(SOURCE_DEMAND);
            for &(sink, amount) in &commodity.sinks {
                demand[sink as usize][lane] = R::of(amount as f64 / layout.demand_unit);
            }
        }
        let by_arc = vec![[R::ZERO; L]; layout.arcs.len()];
        let by_node = vec![[R::ZERO; L]; layout.node_count];
        Self {
            commodities: commodities.to_vec(),
            weights,
            flow: by_arc.clone(),
            flow_anchor: by_arc.clone(),
            potential: by_node.clone(),
            potential_anchor: by_node.clone(),
            demand,
            net: by_node,
            best: by_arc.clone(),
            mended: by_arc,
        }
    }

    /// By lane the node it starts at.
    pub(super) fn sources(&self, layout: &Layout<'_>) -> Vec<u32> {
        self.commodities.iter().map(|&commodity| layout.commodities[commodity].source).collect()
    }

    /// What is wanted at a node other than the source.
    pub(super) fn demand(&self, node: usize) -> [R; L] {
        self.demand[node].map(R::positive)
    }

    /// One iteration: the reflected step from where the block is, averaged with the anchor. Adds to `load` the flow on
    /// each arc at the reflected point, and says how far the step went where that is `measured`.
    ///
    /// * **Source.** Lu and Yang, *Restarted Halpern PDHG for linear programming*, 2024, with reflection: `z ← k+1/k+2·(2T(z)−z)
    ///   + 1/k+2·z₀`, T the primal-dual step with a step for each arc and node.
    /// * **Cost.** O(L × arcs), three passes over memory of that size.
    pub(super) fn step<const MEASURED: bool>(
        &mut self,
        layout: &Layout<'_>,
        steps: &Steps<R>,
        load: &mut [f64],
    ) -> Squares {
        if steps.anchors {
            anchor(&mut self.flow, &mut self.flow_anchor);
            anchor(&mut self.potential, &mut self.potential_anchor);
        }
        self.net.fill([R::ZERO; L]);
        let two = R::of(2.0);
        let Steps { new_share, anchor_share, .. } = *steps;
        let weights = self.weights;
        let mut flow_squares = [R::ZERO; L];
        let flows = self.flow.iter_mut().zip(&self.flow_anchor);
        let of_arcs = steps.lengths.iter().zip(&steps.flow).zip(load);
        for ((arc, (flow, anchor)), ((&length, &step), load)) in layout.arcs.iter().zip(flows).zip(of_arcs) {
            let here = *flow;
            let tail = &self.potential[arc.from as usize];
            let head = &self.potential[arc.to as usize];
            let there: [R; L] = from_fn(|lane| (here[lane] - step * (length + tail[lane] - head[lane])).positive());
            if MEASURED {
                for lane in 0..L {
                    let moved = there[lane] - here[lane];
                    flow_squares[lane] += moved * moved / step;
                }
            }
            let reflected: [R; L] = from_fn(|lane| two * there[lane] - here[lane]);
            *flow = from_fn(|lane| new_share * reflected[lane] + anchor_share * anchor[lane]);
            *load += lane_sum(from_fn::<R, L, _>(|lane| weights[lane] * reflected[lane])).wide();
            add(&mut self.net[arc.to as usize], &reflected);
            subtract(&mut self.net[arc.from as usize], &reflected);
        }
        let mut potential_squares = [R::ZERO; L];
        let potentials = self.potential.iter_mut().zip(&self.potential_anchor);
        let wanted = self.demand.iter().zip(&self.net).zip(&steps.potential);
        for ((potential, anchor), ((demand, net), &step)) in potentials.zip(wanted) {
            for lane in 0..L {
                let there = (potential[lane] + step * (demand[lane] - net[lane])).positive();
                if MEASURED {
                    let moved = there - potential[lane];
                    potential_squares[lane] += moved * moved / step;
                }
                let reflected = two * there - potential[lane];
                potential[lane] = new_share * reflected + anchor_share * anchor[lane];
            }
        }
        Squares { flow: self.weighted_sum(flow_squares), potential: self.weighted_sum(potential_squares) }
    }

    /// How far the block is from its anchor.
    pub(super) fn anchor_squares(&self, steps: &Steps<R>) -> Squares {
        let squares = |now: &[[R; L]], anchors: &[[R; L]], steps: &[R]| {
            let mut squares = [R::ZERO; L];
            for ((now, anchor), &step) in now.iter().zip(anchors).zip(steps) {
                for lane in 0..L {
                    let moved = now[lane] - anchor[lane];
                    squares[lane] += moved * moved / step;
                }
            }
            self.weighted_sum(squares)
        };
        Squares {
            flow: squares(&self.flow, &self.flow_anchor, &steps.flow),
            potential: squares(&self.potential, &self.potential_anchor, &steps.potential),
        }
    }

    fn weighted_sum(&self, values: [R; L]) -> f64 {
        values.iter().zip(&self.weights).map(|(value, weight)| value.wide() * weight.wide()).sum()
    }
}

/// Makes values their own anchor, without what is so small that arithmetic on its fractions would leave the normal numbers,
/// where processors are slow: averages shrink what should be zero at every restart, and never get there.
fn anchor<R: Real, const L: usize>(values: &mut [[R; L]], anchors: &mut [[R; L]]) {
    let tiny = R::of(TINY);
    for (value, anchor) in values.as_flattened_mut().iter_mut().zip(anchors.as_flattened_mut()) {
        let small = *value < tiny && R::ZERO - *value < tiny;
        *value = if small { R::ZERO } else { *value };
        *anchor = *value;
    }
}

fn add<R: Real, const L: usize>(sum: &mut [R; L], values: &[R; L]) {
    for (sum, &value) in sum.iter_mut().zip(values) {
        *sum += value;
    }
}

fn subtract<R: Real, const L: usize>(sum: &mut [R; L], values: &[R; L]) {
    for (sum, &value) in sum.iter_mut().zip(values) {
        *sum -= value;
    }
}
