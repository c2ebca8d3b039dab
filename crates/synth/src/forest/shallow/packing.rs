//! All trees together: how they begin, are relieved and divided.

use canopy_optimize::{Fraction, Stop};
use canopy_schedule::RouteInterner;
use canopy_topology::{LinkIndex, Topology};

use super::distances::Distances;
use super::editing::Editing;
use super::growth::Grower;
use super::hanging::{Hanging, Hop};
use super::prices::Prices;
use super::relief::{Depth, Relief};
use crate::error::SynthesisError;
use crate::forest::{ask, packing};
use crate::progress::{Progress, Stage};

/// Looks at ranks with one kind of prices, until hardly any of them moves.
struct Round {
    /// By how many powers of two the busiest link is dearer than one without load.
    steepness: u128,
    /// By how many 16ths a hop is worth more than it costs for each hop that its start is away from the root: ranks
    /// near the root leave room for others below them.
    bias: u64,
    depth: Depth,
}

const fn round(steepness: u128, bias: u64, depth: Depth) -> Round {
    Round { steepness, bias, depth }
}

/// First rounds of one tree per root.
const FIRST_ROUNDS: [Round; 2] = [round(24, 16, Depth::Ranks), round(96, 0, Depth::Branches)];

/// Rounds that are repeated as long as they find anything better.
const ROUNDS: [Round; 2] = [round(48, 64, Depth::Branches), round(192, 0, Depth::Branches)];

/// Repetitions, at most.
const REPEATS_MAX: u32 = 6;

/// Looks at all ranks in one round, at most.
const PASSES_MAX: u32 = 6;

/// One rank of so many must move, or another look is in vain.
const MOVED_MIN: u64 = 50;

/// Bias and steepness with which trees are grown, if they are.
const GROWTHS: [(u128, u128); 2] = [(256, 16), (64, 16)];

/// Joins times switches that growing all trees once may take, a link between switches as four of them: some tenths of
/// a second.
const GROWTH_MAX: u64 = 1 << 25;

/// Links that all searches together may look at before the best so far has to do, and so many more for each rank of
/// each root: half a second with 100 ranks, some seconds with 500.
const WORK_MAX: u64 = 1 << 27;
const WORK_PER_HOP: u64 = 1 << 10;

/// Steepness of prices while no tree has its load yet.
const STEEPNESS_AT_FIRST: u128 = 16;

/// Trees with the time per share that they take.
pub(super) struct Packed {
    pub(super) time: Fraction,
    pub(super) trees: Vec<Hanging>,
}

/// Trees in the making.
pub(super) struct Packing<'a> {
    topology: &'a Topology,
    /// Ranks that have something to tell, with their weights.
    weighted: Vec<(u32, u64)>,
    depth_max: u32,
    /// Time per share that need not be beaten.
    enough: Fraction,
    /// By root.
    trees: Vec<Hanging>,
    routes: RouteInterner,
    prices: Prices,
    relief: Relief<'a>,
    stop: &'a dyn Stop,
}

impl<'a> Packing<'a> {
    /// No trees yet. **Errors.** Too many hops.
    pub(super) fn new(
        topology: &'a Topology,
        weighted: Vec<(u32, u64)>,
        depth_max: u32,
        enough: Fraction,
        stop: &'a dyn Stop,
    ) -> Result<Self, SynthesisError> {
        packing::require_room(weighted.len(), topology.rank_count() as usize)?;
        let hops = weighted.len() as u64 * u64::from(topology.rank_count());
        Ok(Self {
            topology,
            weighted,
            depth_max,
            enough,
            trees: Vec::new(),
            routes: RouteInterner::default(),
            prices: Prices::new(topology),
            relief: Relief::new(topology, depth_max, WORK_MAX + WORK_PER_HOP * hops),
            stop,
        })
    }

    /// The routes that hops name.
    pub(super) fn into_routes(self) -> RouteInterner {
        self.routes
    }

    /// Begins with one tree for each root, `count` times its weight.
    pub(super) fn start(&mut self, count: u64, progress: &dyn Progress) -> Result<(), SynthesisError> {
        let total = self.weighted.len() as u64;
        self.prices.expect(&self.allowed(count));
        self.prices.set(self.weighted.iter().map(|&(_, weight)| count * weight).max().unwrap_or(1), STEEPNESS_AT_FIRST);
        for (done, &(root, weight)) in (0..).zip(&self.weighted) {
            ask(self.stop)?;
            progress.report(Stage::Trees, done, total);
            self.trees.push(flattest(self.topology, root, count * weight, &mut self.routes, &mut self.prices));
        }
        progress.report(Stage::Trees, total, total);
        if self.growth() <= GROWTH_MAX { self.grow(count) } else { Ok(()) }
    }

    /// What growing all trees once takes.
    fn growth(&self) -> u64 {
        let rank_count = self.topology.rank_count();
        let switches = self.topology.nodes().len() as u64 - u64::from(rank_count);
        let is_switch = |node| self.topology.rank_of(node).is_none();
        let between = self.topology.links().iter().filter(|link| is_switch(link.from) && is_switch(link.to)).count();
        let joins = (self.trees.len() as u64).saturating_mul(rank_count.into());
        joins.saturating_mul(switches + 4 * between as u64 + 8)
    }

    /// Grows each tree anew, in the prices of the others, and keeps the best.
    fn grow(&mut self, count: u64) -> Result<(), SynthesisError> {
        let mut grower = Grower::new(self.topology, self.depth_max);
        let mut best = (self.prices.time(self.topology, count), self.trees.clone());
        for (bias, steepness) in GROWTHS {
            grower.bias = bias;
            self.prices.set(self.heaviest(), steepness);
            for tree in &mut self.trees {
                ask(self.stop)?;
                self.prices.remove(tree, &self.routes);
                *tree = grower.grow(&mut self.prices, &mut self.routes, tree.root, tree.weight, self.stop)?;
            }
            let time = self.prices.time(self.topology, count);
            if time < best.0 {
                best = (time, self.trees.clone());
            }
        }
        self.trees = best.1;
        Ok(())
    }

    /// Divides the trees of each root into at most so many parts of nearly the same weight, where `count` of them
    /// belong to a unit of weight. Says whether there is room for these.
    pub(super) fn divide(&mut self, count: u64, parts_max: u64) -> bool {
        let parts_of = |weight: u64| (count * weight).min(parts_max);
        let total: u64 = self.weighted.iter().map(|&(_, weight)| parts_of(weight)).sum();
        let total = usize::try_from(total).unwrap_or(usize::MAX);
        if total > self.trees.len() && packing::require_room(total, self.topology.rank_count() as usize).is_err() {
            return false;
        }
        let mut old = self.trees.chunk_by(|a, b| a.root == b.root);
        let mut divided = Vec::with_capacity(total);
        for &(_, weight) in &self.weighted {
            let old = old.next().expect("every root has a tree");
            let (parts, trees) = (parts_of(weight), count * weight);
            for part in 0..parts {
                let place = usize::try_from(part * old.len() as u64 / parts).expect("no more than the trees there are");
                let weight = trees / parts + u64::from(part < trees % parts);
                divided.push(Hanging { weight, ..old[place].clone() });
            }
        }
        self.trees = divided;
        self.prices.load_all(&self.trees, &self.routes);
        true
    }

    /// Hangs ranks elsewhere as long as that helps and there is time. Returns the best trees met, with `count` of
    /// them in a share.
    pub(super) fn relieve(&mut self, count: u64) -> Result<Packed, SynthesisError> {
        let allowed = self.allowed(count);
        self.prices.expect(&allowed);
        let mut best = Packed { time: self.prices.time(self.topology, count), trees: self.trees.clone() };
        let mut is_first = self.trees.len() == self.weighted.len();
        for _ in 0..REPEATS_MAX {
            let before = best.time;
            for round in if is_first { &FIRST_ROUNDS } else { &ROUNDS } {
                if self.run(round, count, &allowed, &mut best)? {
                    return Ok(best);
                }
            }
            if best.time == before && !is_first {
                break;
            }
            is_first = false;
        }
        Ok(best)
    }

    /// One round; says whether the search is over.
    fn run(&mut self, round: &Round, count: u64, allowed: &[u64], best: &mut Packed) -> Result<bool, SynthesisError> {
        self.relief.bias = round.bias;
        let mut depth = Depth::Ranks;
        for _ in 0..PASSES_MAX {
            if best.time <= self.enough || self.relief.is_over() {
                return Ok(true);
            }
            self.prices.set(self.heaviest(), round.steepness);
            let pass =
                self.relief.pass(&mut self.trees, &mut self.routes, &mut self.prices, (allowed, depth), self.stop)?;
            let time = self.prices.time(self.topology, count);
            if time < best.time {
                *best = Packed { time, trees: self.trees.clone() };
            }
            if pass.moved * MOVED_MIN < pass.looked {
                if depth == round.depth {
                    break;
                }
                depth = round.depth;
            }
        }
        Ok(false)
    }

    /// Most equal trees.
    fn heaviest(&self) -> u64 {
        self.trees.iter().map(|tree| tree.weight).max().unwrap_or(1)
    }

    /// By link: trees that it can carry in the time that is enough.
    fn allowed(&self, count: u64) -> Vec<u64> {
        let Fraction { numerator, denominator } = self.enough;
        let allowed = |position: u32| {
            let capacity = self.topology.link(LinkIndex::new(position)).capacity.bytes_per_sec();
            let trees = numerator.checked_mul(u128::from(count) * u128::from(capacity));
            trees.and_then(|trees| u64::try_from(trees / denominator).ok()).unwrap_or(u64::MAX)
        };
        (0_u32..).take(self.topology.links().len()).map(allowed).collect()
    }
}

/// Trees in which every rank is as near to the root as it can be. O(links · log).
fn flattest(topology: &Topology, root: u32, weight: u64, routes: &mut RouteInterner, prices: &mut Prices) -> Hanging {
    let distances = Distances::from(topology, root, |link| prices.of(link));
    let alone = Hop { depth: 0, from: root, route: None };
    let mut tree = Hanging::new(root, weight, vec![alone; topology.rank_count() as usize]);
    let mut edit = Editing { tree: &mut tree, routes, prices };
    for rank in topology.ranks().filter(|rank| rank.number() != root) {
        let (from, links) = distances.last_hop(topology, rank.number()).expect("the root reaches every rank");
        edit.hang(rank.number() as usize, from, &links);
    }
    tree.count_depths();
    tree
}
