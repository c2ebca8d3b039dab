//! The best rate of a given number of trees per root, with capacities rounded down to whole trees.

mod breakpoints;
mod sums;

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use crate::digraph::{Arc, Digraph};
use crate::error::OptimumError;
use crate::flow::{FlowNetwork, FlowUnit};
use crate::fraction::Fraction;
use crate::lowered;
use crate::optimum::forest_optimum_for;
use crate::stop::{Stop, Stopped};
use crate::sweep::sweep;
use breakpoints::{Breakpoints, Side};
pub use sums::WholeSums;

/// Capacities in whole trees that admit a given number of trees per root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeTrees {
    /// U: time of the `k` trees per unit of weight, in reciprocal units of capacity. A link of capacity `b` has time for
    /// `⌊U·b⌋` of them.
    pub scale: Fraction,
    /// Trees that each arc of the graph may carry, in its order.
    pub capacities: Vec<u128>,
}

impl WholeTrees {
    /// `U/k`: time per unit of weight, to be compared with `1/x*`; `None` where it does not fit 128 bits.
    pub fn inverse_rate(&self, trees_per_root: NonZeroU64) -> Option<Fraction> {
        divided(self.scale, trees_per_root.get().into())
    }
}

/// A graph on which forests of several numbers of trees are compared.
///
/// For `k` trees per root and unit of weight, the time `U` they take is the least for which the capacities `⌊U·b⌋`
/// admit them: every set T with a terminal is entered by as many trees as are rooted outside it. Only the times `j/b`
/// matter, at which some link has room for one more tree, and more time never hurts; so they are bisected, between the
/// optimum `k/x*` and the time at which every link carries at least its share of the optimum.
///
/// Nodes that are no terminals must be balanced for trees to exist. They stay so where the capacities that enter one
/// are, link for link, those that leave it, as of links that run both ways. Elsewhere capacities are lowered further to
/// the nearest balance, which makes the result sound, and the best of its kind, but not always the best there is.
///
/// * **Source.** Zhao 2026, appendix B.5.4 and theorem 35, with breakpoints in place of a search for the fraction.
/// * **Departure.** Arcs between the same nodes are kept apart, each with a floor of its own.
#[derive(Clone, Debug)]
pub struct WholeForest<'a> {
    graph: &'a Digraph,
    weights: &'a [u64],
    terminals: &'a [bool],
    /// `1/x*`.
    optimum: Fraction,
    breakpoints: Breakpoints,
    /// Whether floors are balanced at all nodes that are no terminals, for every U.
    floors_are_balanced: bool,
    pairs: Pairs,
    /// Terminals, those that failed most recently first.
    order: Vec<u32>,
}

/// How arcs enter a flow network: those between two nodes together.
#[derive(Clone, Debug)]
struct Pairs {
    ends: Vec<(u32, u32)>,
    /// By arc: its pair, and whether it runs against it. `None` for loops.
    of_arc: Vec<Option<(usize, bool)>>,
}

impl<'a> WholeForest<'a> {
    /// Prepares a graph whose nodes have data by `weights` that all `terminals` want.
    ///
    /// * **In.** As [`forest_optimum_for`]; every node that is no terminal is entered by as much as leaves it.
    /// * **Errors.** Those of [`forest_optimum_for`], [`OptimumError::Unbalanced`].
    /// * **Cost.** That of [`forest_optimum_for`].
    pub fn new(
        graph: &'a Digraph,
        weights: &'a [u64],
        terminals: &'a [bool],
        stop: &dyn Stop,
    ) -> Result<Self, OptimumError> {
        let optimum = forest_optimum_for(graph, weights, terminals, stop)?.inverse_rate;
        let floors_are_balanced = lowered::is_kept_by_floors(graph, terminals)?;
        let breakpoints = Breakpoints::of(graph);
        let pairs = Pairs::of(graph);
        let order = pairs.order(graph.node_count, terminals);
        Ok(Self { graph, weights, terminals, optimum, breakpoints, floors_are_balanced, pairs, order })
    }

    /// `1/x*`: time per unit of weight that no number of trees can beat.
    pub const fn optimum(&self) -> Fraction {
        self.optimum
    }

    /// Whether [`pack`](Self::pack) finds the best there is, see [`WholeForest`].
    pub const fn is_exact(&self) -> bool {
        self.floors_are_balanced
    }

    /// The least time for `trees_per_root` trees per unit of weight, with the capacities that admit them; `None` if it
    /// is not less than `below`, a time per unit of weight.
    ///
    /// * **Out.** Capacities that meet the condition of [`sweep`] for `k·w` trees at each node, balanced where there is
    ///   no terminal; `U/k` is at least `1/x*` and at most `1/x* + 1/(k·b)`, for the least capacity b (theorem 35)
    ///   or, where floors are not balanced, the greatest common divisor of all.
    /// * **Errors.** Too large for 128 bits, stopped.
    /// * **Cost.** Some ten sweeps: O(log) of the number of breakpoints; a single one if `below` can not be beaten.
    pub fn pack(
        &mut self,
        trees_per_root: NonZeroU64,
        below: Option<Fraction>,
        stop: &dyn Stop,
    ) -> Result<Option<WholeTrees>, OptimumError> {
        let k = u128::from(trees_per_root.get());
        let demands = self.demands(k)?;
        // In units of capacity from here on.
        let times_k = |ratio: Fraction| self.product(ratio, k * u128::from(self.breakpoints.unit));
        let (mut low, below) = (times_k(self.optimum)?, below.map(times_k).transpose()?);
        if below.is_some_and(|below| below <= low) {
            return Ok(None);
        }
        if let Some(capacities) = self.admitting(low, &demands, stop)? {
            return Ok(Some(self.answer(low, capacities)));
        }
        let enough = self.enough(low)?;
        let (mut high, must_hold) = match below {
            Some(below) if below <= enough => (self.breakpoint(below, Side::Before)?, false),
            _ => (enough, true),
        };
        if high <= low {
            return Ok(None);
        }
        let Some(mut capacities) = self.admitting(high, &demands, stop)? else {
            assert!(!must_hold, "every link carries its share of the optimum");
            return Ok(None);
        };
        while let Some(middle) = self.breakpoints.between(low, high).ok_or_else(|| self.too_large())? {
            match self.admitting(middle, &demands, stop)? {
                Some(admitting) => (high, capacities) = (middle, admitting),
                None => low = middle,
            }
        }
        Ok(Some(self.answer(high, capacities)))
    }

    /// The capacities that links have in this time for `trees_per_root` trees per unit of weight, if they admit them.
    ///
    /// * **In.** `time` per unit of weight, not less than the optimum. **Out.** As [`pack`](Self::pack), but for the time.
    /// * **Errors.** Too large for 128 bits, stopped. **Cost.** One sweep.
    pub fn pack_within(
        &mut self,
        trees_per_root: NonZeroU64,
        time: Fraction,
        stop: &dyn Stop,
    ) -> Result<Option<WholeTrees>, OptimumError> {
        let k = u128::from(trees_per_root.get());
        let demands = self.demands(k)?;
        let scale = self.product(time, k * u128::from(self.breakpoints.unit))?;
        let capacities = self.admitting(scale, &demands, stop)?;
        Ok(capacities.map(|capacities| self.answer(scale, capacities)))
    }

    fn answer(&self, scale: Fraction, capacities: Vec<u128>) -> WholeTrees {
        let scale = Fraction::new(scale.numerator, scale.denominator * u128::from(self.breakpoints.unit));
        WholeTrees { scale: scale.expect("no factor is zero"), capacities }
    }

    fn too_large(&self) -> OptimumError {
        OptimumError::TooLarge { weight: self.weights.iter().map(|&weight| u128::from(weight)).sum() }
    }

    fn demands(&self, trees_per_root: u128) -> Result<Vec<u128>, OptimumError> {
        let demand = |&weight: &u64| u128::from(weight).checked_mul(trees_per_root);
        self.weights.iter().map(demand).collect::<Option<_>>().ok_or_else(|| self.too_large())
    }

    fn product(&self, ratio: Fraction, factor: u128) -> Result<Fraction, OptimumError> {
        let common = num_integer::gcd(factor, ratio.denominator);
        let numerator = ratio.numerator.checked_mul(factor / common).ok_or_else(|| self.too_large())?;
        Ok(Fraction { numerator, denominator: ratio.denominator / common })
    }

    /// A time that surely is enough, given that of the optimum: with one more tree of the thinnest link, every link
    /// carries at least its share `k·b/x*`; a whole number keeps all products whole, and balanced as the capacities are.
    fn enough(&self, optimum: Fraction) -> Result<Fraction, OptimumError> {
        let whole = Fraction { numerator: optimum.numerator.div_ceil(optimum.denominator), denominator: 1 };
        let thinnest = self.breakpoints.thinnest().filter(|_| self.floors_are_balanced);
        let Some(thinnest) = thinnest.map(u128::from) else { return Ok(whole) };
        let numerator = optimum.numerator.checked_mul(thinnest).and_then(|n| n.checked_add(optimum.denominator));
        let denominator = optimum.denominator.checked_mul(thinnest);
        let sum = numerator.zip(denominator).and_then(|(numerator, denominator)| Fraction::new(numerator, denominator));
        self.breakpoint(sum.ok_or_else(|| self.too_large())?.min(whole), Side::At)
    }

    /// The last breakpoint at or before `limit`.
    fn breakpoint(&self, limit: Fraction, side: Side) -> Result<Fraction, OptimumError> {
        self.breakpoints.last(limit, side).ok_or_else(|| self.too_large())
    }

    /// The capacities `⌊scale·b⌋`, balanced, if they admit the demands.
    fn admitting(
        &mut self,
        scale: Fraction,
        demands: &[u128],
        stop: &dyn Stop,
    ) -> Result<Option<Vec<u128>>, OptimumError> {
        let unit = self.breakpoints.unit;
        let floor = |arc: &Arc| match arc.counts() {
            true => Breakpoints::whole_part(scale, arc.capacity / unit).ok_or_else(|| self.too_large()),
            false => Ok((0, true)),
        };
        let mut capacities = self.graph.arcs.iter().map(|arc| floor(arc).map(|(trees, _)| trees));
        let mut capacities: Vec<u128> = capacities.by_ref().collect::<Result<_, _>>()?;
        // What a residual capacity, a demand or a flow can come to.
        let numbers = capacities.iter().chain(demands).copied();
        let sum = numbers.clone().try_fold(0, u128::checked_add).filter(|&sum| sum < i128::MAX.unsigned_abs() / 4);
        let sum = sum.ok_or_else(|| self.too_large())?;
        if !self.floors_are_balanced {
            lowered::lower(self.graph, self.terminals, &mut capacities, stop)?;
        }
        let holds = match sum < u128::from(i64::MAX.unsigned_abs()) / 4 {
            true => self.holds::<i64>(&capacities, demands, stop)?,
            false => self.holds::<i128>(&capacities, demands, stop)?,
        };
        Ok(holds.then_some(capacities))
    }

    /// Whether capacities admit demands.
    fn holds<C: FlowUnit>(&mut self, capacities: &[u128], demands: &[u128], stop: &dyn Stop) -> Result<bool, Stopped> {
        let convert = |value: u128| C::try_from_u128(value).expect("the sum of all numbers fits");
        let mut both = vec![(C::ZERO, C::ZERO); self.pairs.ends.len()];
        for (&pair, &capacity) in self.pairs.of_arc.iter().zip(capacities) {
            match pair {
                Some((pair, false)) => both[pair].0 += convert(capacity),
                Some((pair, true)) => both[pair].1 += convert(capacity),
                None => {}
            }
        }
        let mut network = FlowNetwork::<C>::new(self.graph.node_count);
        for (&(low, high), (up, down)) in self.pairs.ends.iter().zip(both) {
            network.add_pair(low, high, up, down);
        }
        let demands: Vec<C> = demands.iter().map(|&demand| convert(demand)).collect();
        let Some(violated) = sweep(&mut network, &demands, &self.order, stop)? else { return Ok(true) };
        // A terminal that fails once is likely to fail again.
        if let Some(failed) = self.order.iter().position(|&node| violated[node as usize]) {
            self.order[..=failed].rotate_right(1);
        }
        Ok(false)
    }
}

impl Pairs {
    /// O(arcs log arcs).
    fn of(graph: &Digraph) -> Self {
        let mut numbers = BTreeMap::new();
        let mut ends = Vec::new();
        let of_arc = graph.arcs.iter().map(|arc| {
            let (low, high) = (arc.from.min(arc.to), arc.from.max(arc.to));
            (low != high).then(|| {
                let pair = *numbers.entry((low, high)).or_insert_with(|| {
                    ends.push((low, high));
                    ends.len() - 1
                });
                (pair, arc.from > arc.to)
            })
        });
        let of_arc = of_arc.collect();
        Self { ends, of_arc }
    }

    /// Terminals, neighbours after each other.
    fn order(&self, node_count: u32, terminals: &[bool]) -> Vec<u32> {
        let mut network = FlowNetwork::<i64>::new(node_count);
        for &(low, high) in &self.ends {
            network.add_arc(low, high, 0);
        }
        let mut order = network.breadth_first_order();
        order.retain(|&node| terminals[node as usize]);
        order
    }
}

fn divided(ratio: Fraction, divisor: u128) -> Option<Fraction> {
    let common = num_integer::gcd(ratio.numerator, divisor);
    let denominator = ratio.denominator.checked_mul(divisor / common)?;
    Some(Fraction { numerator: ratio.numerator / common, denominator })
}
