//! The iteration as a whole: all blocks, the prices between them, restarts, and the bracket.

use rayon::prelude::*;

use super::SolverOptions;
use super::block::{Block, Squares, Steps};
use super::certificate::{Tally, Workspace};
use super::layout::Layout;
use super::prices::{project, volume};
use super::real::Real;
use super::restarts::Restarts;
use super::stepsizes::StepSizes;
use crate::concurrent::problem::ConcurrentError;
use crate::stop::Stop;

/// Blocks are dealt to so many groups at most: what each puts on the arcs is summed up in their order.
const GROUPS_MAX: usize = 32;
/// Below so many variables a step takes less time than handing it to other threads.
const PARALLEL_MIN: usize = 40_000;
/// Iterations between two certificates.
const CERTIFICATE_EVERY: u64 = 40;
/// Share of what is found at a restart in the new ratio of steps, on a scale of logarithms,
const REBALANCING: f64 = 0.2;
/// and where it is farther than this factor from the ratio so far.
const REBALANCING_FAR: f64 = 0.5;
const FAR: f64 = 8.0;
/// Passes over all variables that a certificate is counted as.
const CERTIFICATE_PASSES: u64 = 4;

/// Blocks that one thread works on.
#[derive(Debug)]
struct Group<R, const L: usize> {
    blocks: Vec<Block<R, L>>,
    workspace: Workspace<R, L>,
    tally: Tally,
}

/// Iterates, and the best bracket so far, in the units of the layout.
pub(super) struct PrimalDual<'a, R, const L: usize> {
    layout: &'a Layout<'a>,
    stop: &'a dyn Stop,
    groups: Vec<Group<R, L>>,
    /// By class.
    prices: Vec<f64>,
    prices_anchor: Vec<f64>,
    /// `prices` after the last step, before it was averaged: nowhere negative.
    projected: Vec<f64>,
    price_volume: f64,
    sizes: StepSizes,
    /// Ratio of the steps of prices and potentials to those of flows.
    weight: f64,
    work: u64,
    pub(super) lower: f64,
    pub(super) upper: f64,
    pub(super) best_prices: Vec<f64>,
}

impl<'a, R: Real, const L: usize> PrimalDual<'a, R, L> {
    pub(super) fn new(layout: &'a Layout<'a>, stop: &'a dyn Stop) -> Self {
        let commodities: Vec<usize> = (0..layout.commodities.len()).collect();
        let blocks = commodities.chunks(L).count();
        let groups = commodities.chunks(L * blocks.div_ceil(GROUPS_MAX)).map(|commodities| Group {
            blocks: commodities.chunks(L).map(|commodities| Block::new(layout, commodities)).collect(),
            workspace: Workspace::new(layout),
            tally: Tally::new(layout),
        });
        let class_count = layout.classes.len();
        let sizes = StepSizes::new(layout);
        Self {
            layout,
            stop,
            groups: groups.collect(),
            prices: vec![0.0; class_count],
            prices_anchor: vec![0.0; class_count],
            projected: vec![0.0; class_count],
            price_volume: 1.0,
            sizes,
            weight: 1.0,
            work: 0,
            lower: 0.0,
            upper: f64::INFINITY,
            best_prices: vec![0.0; class_count],
        }
    }

    /// Iterates until the bracket is as narrow as asked for, or the work is spent.
    pub(super) fn run(
        &mut self,
        options: &SolverOptions,
        progress: &mut dyn FnMut(f64, f64),
    ) -> Result<(), ConcurrentError> {
        let unit = self.layout.capacity_unit / self.layout.demand_unit;
        let is_done = |iteration: &Self| {
            iteration.upper - iteration.lower <= options.tolerance * iteration.upper
                || iteration.work >= options.work_max
        };
        self.start()?;
        let mut steps = self.steps();
        let mut restarts = Restarts::new();
        loop {
            if restarts.total().is_multiple_of(CERTIFICATE_EVERY) {
                if restarts.total() > 0 {
                    self.certify(&steps)?;
                }
                progress(self.lower * unit, self.upper * unit);
                if is_done(self) {
                    return Ok(());
                }
            }
            let measured = restarts.is_measured();
            let error = self.step(&mut steps, restarts.inner(), measured)?;
            if restarts.after_step(measured.then_some(error)) {
                self.rebalance(&steps);
                steps = self.steps();
            }
        }
    }

    /// Does something with every group, on all threads where that pays; results in the order of groups.
    fn each<T: Send>(
        &mut self,
        work: impl Fn(&Layout<'_>, &mut Group<R, L>) -> T + Sync,
    ) -> Result<Vec<T>, ConcurrentError> {
        if self.stop.is_requested() {
            return Err(ConcurrentError::Stopped);
        }
        let (layout, stop) = (self.layout, self.stop);
        let guarded = |group: &mut Group<R, L>| {
            if stop.is_requested() { Err(ConcurrentError::Stopped) } else { Ok(work(layout, group)) }
        };
        if self.layout.arcs.len() * self.layout.commodities.len() < PARALLEL_MIN {
            self.groups.iter_mut().map(guarded).collect()
        } else {
            self.groups.par_iter_mut().map(guarded).collect()
        }
    }

    /// Load of the arcs of each class over their capacity, of what the groups put on arcs.
    fn loads(&self) -> Vec<f64> {
        let mut by_arc = vec![0.0; self.layout.arcs.len()];
        for group in &self.groups {
            for (sum, load) in by_arc.iter_mut().zip(&group.tally.load) {
                *sum += load;
            }
        }
        let mut by_class = vec![0.0; self.layout.classes.len()];
        for (arc, load) in self.layout.arcs.iter().zip(by_arc) {
            by_class[arc.class as usize] += load;
        }
        for (load, class) in by_class.iter_mut().zip(&self.layout.classes) {
            *load /= class.size;
        }
        by_class
    }

    /// Takes up the bounds that lengths and a flow give; whether the flow is the best so far.
    fn narrow(&mut self, lengths: &[f64], distances: &[f64]) -> bool {
        let loads = self.loads();
        let limit = volume(&self.layout.classes, lengths) / distances.iter().sum::<f64>();
        if limit < self.upper {
            self.upper = limit;
            self.best_prices.copy_from_slice(lengths);
        }
        let used = loads.iter().zip(&self.layout.classes).map(|(load, class)| load / class.capacity);
        let rate = 1.0 / used.fold(0.0, f64::max);
        let improves = rate > self.lower;
        if improves {
            self.lower = rate;
        }
        improves
    }

    /// Lengths by class, as short as distances need them: those give a smaller volume for the same distances.
    fn needed(&self, lengths: &[f64]) -> Vec<f64> {
        let mut needed = vec![0.0_f64; lengths.len()];
        for group in &self.groups {
            for (arc, of_arc) in self.layout.arcs.iter().zip(&group.tally.needed) {
                let needed = &mut needed[arc.class as usize];
                *needed = needed.max(*of_arc);
            }
        }
        needed.iter().zip(lengths).map(|(needed, length)| needed.min(*length)).collect()
    }

    /// Sends everything along shortest paths where long is what has little capacity: the first iterate, and the first bracket.
    fn start(&mut self) -> Result<(), ConcurrentError> {
        let prices: Vec<f64> = self.layout.classes.iter().map(|class| 1.0 / class.capacity).collect();
        let lengths: Vec<R> = self.layout.by_arc(|class| R::of(prices[class]));
        let distances = self.each(|layout, group| {
            group.tally.clear();
            let start = |block: &mut Block<R, L>| block.start(layout, &lengths, &mut group.workspace, &mut group.tally);
            group.blocks.iter_mut().map(start).sum::<f64>()
        })?;
        self.work += self.variables() * CERTIFICATE_PASSES;
        self.prices = self.needed(&prices);
        let prices = self.prices.clone();
        self.narrow(&prices, &distances);
        self.price_volume = volume(&self.layout.classes, &prices);
        let mut squares = self.anchor_squares(&self.steps());
        squares.potential += self.price_squares(&prices);
        if squares.flow > 0.0 && squares.potential > 0.0 {
            self.weight = (squares.potential / squares.flow).sqrt();
        }
        Ok(())
    }

    fn variables(&self) -> u64 {
        let count = self.layout.arcs.len() as u64;
        count * self.layout.commodities.len() as u64
    }

    fn price_squares(&self, differences: &[f64]) -> f64 {
        let squares = differences.iter().zip(&self.sizes.price).zip(&self.layout.classes);
        squares.map(|((difference, step), class)| difference * difference / step * class.size).sum()
    }

    /// Distance of blocks from their anchors, in the metric of steps before the ratio is applied.
    fn anchor_squares(&self, steps: &Steps<R>) -> Squares {
        let mut sum = Squares::default();
        for group in &self.groups {
            for block in &group.blocks {
                let squares = block.anchor_squares(steps);
                sum.flow += squares.flow / self.weight;
                sum.potential += squares.potential * self.weight;
            }
        }
        sum
    }

    /// The steps for the ratio as it is.
    fn steps(&self) -> Steps<R> {
        Steps {
            lengths: self.layout.by_arc(|class| R::of(self.prices[class])),
            flow: self.sizes.flow.iter().map(|step| R::of(step / self.weight)).collect(),
            potential: self.sizes.potential.iter().map(|step| R::of(step * self.weight)).collect(),
            new_share: R::ZERO,
            anchor_share: R::ZERO,
            anchors: false,
        }
    }

    /// One iteration; how far it went, where that is measured.
    fn step(&mut self, steps: &mut Steps<R>, inner: u64, measured: bool) -> Result<f64, ConcurrentError> {
        let anchor_share = 1.0 / (inner + 2) as f64;
        steps.anchor_share = R::of(anchor_share);
        steps.new_share = R::of(1.0 - anchor_share);
        steps.anchors = inner == 0;
        if steps.anchors {
            self.prices_anchor.copy_from_slice(&self.prices);
        }
        let shared: &Steps<R> = steps;
        let squares = self.each(|layout, group| {
            group.tally.load.fill(0.0);
            let mut sum = Squares::default();
            for block in &mut group.blocks {
                let squares = if measured {
                    block.step::<true>(layout, shared, &mut group.tally.load)
                } else {
                    block.step::<false>(layout, shared, &mut group.tally.load)
                };
                sum.flow += squares.flow;
                sum.potential += squares.potential;
            }
            sum
        })?;
        self.work += self.variables();
        let loads = self.loads();
        let mut there = self.prices.clone();
        let price_steps: Vec<f64> = self.sizes.price.iter().map(|step| step * self.weight).collect();
        for ((price, load), step) in there.iter_mut().zip(&loads).zip(&price_steps) {
            *price += step * load;
        }
        project(&self.layout.classes, &price_steps, &mut there, self.price_volume);
        let mut error = 0.0;
        if measured {
            let moved: Vec<f64> = there.iter().zip(&self.prices).map(|(there, here)| there - here).collect();
            let sum: f64 = squares.iter().map(|squares| squares.flow + squares.potential).sum();
            error = (sum + self.price_squares(&moved) / self.weight).sqrt();
        }
        for ((price, there), anchor) in self.prices.iter_mut().zip(&there).zip(&self.prices_anchor) {
            *price = (1.0 - anchor_share) * (2.0 * there - *price) + anchor_share * anchor;
        }
        self.projected = there;
        for (length, arc) in steps.lengths.iter_mut().zip(&self.layout.arcs) {
            *length = R::of(self.prices[arc.class as usize]);
        }
        Ok(error)
    }

    /// Sets the ratio of steps by how far flows and prices went since the last restart.
    fn rebalance(&mut self, steps: &Steps<R>) {
        let mut squares = self.anchor_squares(steps);
        let moved: Vec<f64> = self.prices.iter().zip(&self.prices_anchor).map(|(here, anchor)| here - anchor).collect();
        squares.potential += self.price_squares(&moved);
        if squares.flow > 0.0 && squares.potential > 0.0 {
            let ratio = (squares.potential / squares.flow).sqrt();
            let is_far = ratio > FAR * self.weight || self.weight > FAR * ratio;
            let share = if is_far { REBALANCING_FAR } else { REBALANCING };
            self.weight = ratio.powf(share) * self.weight.powf(1.0 - share);
        }
    }

    /// Makes a bracket of the iterates.
    fn certify(&mut self, steps: &Steps<R>) -> Result<(), ConcurrentError> {
        let lengths: Vec<R> = self.layout.by_arc(|class| R::of(self.projected[class]));
        let distances = self.each(|layout, group| {
            group.tally.clear();
            let certify = |block: &mut Block<R, L>| {
                block.certify(layout, &lengths, steps, &mut group.workspace, &mut group.tally)
            };
            group.blocks.iter_mut().map(certify).sum::<f64>()
        })?;
        self.work += self.variables() * CERTIFICATE_PASSES;
        let prices = self.needed(&self.projected);
        if self.narrow(&prices, &distances) {
            for block in self.groups.iter_mut().flat_map(|group| &mut group.blocks) {
                std::mem::swap(&mut block.best, &mut block.mended);
            }
        }
        Ok(())
    }

    /// The blocks, with the best flow in each.
    pub(super) fn into_blocks(self) -> Vec<Block<R, L>> {
        self.groups.into_iter().flat_map(|group| group.blocks).collect()
    }
}
