//! The part of a graph that trees without copies at inner nodes can use, and how fast they are on it.
//!
//! What passes a node that is no terminal leaves it once for each time it enters. So whatever trees do, the capacity
//! they use enters and leaves every such node in equal amounts: they live on a *balanced part* of the graph. On a
//! balanced part, packed trees reach the cut (Bang-Jensen, Frank and Jackson 1995). Finding the best rate is finding the
//! best balanced part.

mod attempt;
mod cuts;
mod program;
mod sums;

use num_integer::Integer;

use crate::digraph::{Arc, Digraph, MergedGraph};
use crate::error::OptimumError;
use crate::flow::FlowUnit;
use crate::fraction::Fraction;
use crate::optimum::{complement, forest_optimum_of};
use crate::stop::{Meter, Stop};
use attempt::{Attempt, Ending, Order};
use cuts::CutRows;
use program::{BalanceProgram, Proof, Way};

pub use sums::{SumsLimit, SumsTerm, sums_limit};

/// Rates that are tried before the best part found so far has to do.
const RATES_MAX: u32 = 12;

/// Parts of a unit into which capacities may be cut where a loss is shared.
const SCALE_MAX: u128 = 1 << 24;

/// How many times longer a numerator may be than that of the cut.
const FACTOR_MAX: u128 = 1 << 16;

/// A balanced part of a graph with its optimum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalancedOptimum {
    /// Time per unit of weight on this part, in reciprocal units of the graph's capacity, as in
    /// [`ForestOptimum`](crate::ForestOptimum).
    pub inverse_rate: Fraction,
    /// The kept capacity of each arc, times [`scale`](Self::scale). At most its capacity times the scale.
    pub kept: Vec<u128>,
    /// At least 1.
    pub scale: u128,
    /// What no packing of trees in the whole graph is faster than.
    pub limit: BalanceLimit,
}

/// A rate that no trees without copies at inner nodes can exceed, with its proof.
///
/// Let `z` be what trees use of each arc while they spread a unit of weight of each source. Every set `S` with a terminal is
/// entered by the weight outside, and `z` is balanced at nodes that are no terminals. So for weights `λ ≥ 0` of sets and
/// potentials `π` of such nodes `Σ λ(S)·w(V∖S) ≤ Σ z(e)·d(e) ≤ time · Σ b(e)·max(d(e), 0)`, where
/// `d(e) = Σ λ(S), of the sets that e enters, + π(to) − π(from)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalanceLimit {
    /// The least time per unit of weight, in reciprocal units of capacity.
    pub inverse_rate: Fraction,
    /// Sets by membership of nodes, each with its weight. A single one, without potentials, is a cut.
    pub sets: Vec<(u64, Vec<bool>)>,
    /// By node; 0 for terminals.
    pub potentials: Vec<i64>,
}

/// The best balanced part of a graph for trees from all nodes of positive weight to all terminals, with the limit that says so.
///
/// First, capacity in excess is taken away at the rate of the least cut, along shortest paths between nodes that have too much
/// on one side and terminals, as far as every set that holds a terminal can still be entered by all data from outside it.
/// Links alike in both directions are tried first, which keeps a symmetric network symmetric. Where some excess can
/// not go, a linear program tells the best rate of all parts, and its prices prove it: parts are then looked for at that
/// rate, in the same way and on the face of its solutions. Graphs too large for it are searched at ever lower rates
/// (Newton's method on the sum of the slacks of the sets that hold the excess).
///
/// * **Exact** where every node that is no terminal is entered by at least as much as leaves it: the rate is that of the
///   cut of the whole graph. *Why:* let more enter such a node w than leaves it, and let no arc into w be dispensable,
///   that is, let each enter a tight set around w. Of two tight sets around w, the intersection is tight if it holds a
///   terminal; if not, `in(X) + in(Y) ≥ in(X∖Y) + in(Y∖X) + in(X∩Y) − out(X∩Y)` says that one of the differences is entered
///   by too little. So the least tight set M around w is left by no arc into w but entered by all of them, and
///   `in(M∖w) ≤ in(M) − in(w) + out(w) < in(M)`: too little enters M without w, which has the same terminals. Elsewhere the
///   rate is best if it is that of the [`limit`](BalancedOptimum::limit), as it is wherever the linear program is not too large
///   and its solution was read in fractions.
/// * **In.** As [`forest_optimum_for`](crate::forest_optimum_for). **Out.** As much enters as leaves each node that is no
///   terminal, counting what arcs keep. Parallel arcs keep what they can in the order given.
/// * **Errors.** As there; [`OptimumError::NoBalancedPart`] if none with a positive rate was found.
/// * **Cost.** That of the optimum if the graph is balanced; else some sweeps per arc that lies in a tight cut, and some linear
///   programs with a variable per arc.
pub fn balanced_optimum(
    graph: &Digraph,
    weights: &[u64],
    terminals: &[bool],
    stop: &dyn Stop,
) -> Result<BalancedOptimum, OptimumError> {
    let merged = merged(graph, weights, terminals, stop)?;
    let whole: Vec<[u128; 2]> = merged.pairs().map(|(_, _, capacities)| capacities).collect();
    let balanced: Vec<bool> = terminals.iter().map(|&terminal| !terminal).collect();
    let search = Search { graph: &merged, weights, terminals, balanced: &balanced, stop };
    let limit = search.cut()?;
    let (best, limit) = match search.surpluses(&whole) {
        (0, 0) => (Some(Part { capacities: whole, scale: 1, inverse_rate: limit.inverse_rate }), limit),
        // No order is better than another.
        (_, 0 | 1) => search.run(limit, &Order::ALL[..1])?,
        _ => search.run(limit, &Order::ALL)?,
    };
    Ok(best.ok_or(OptimumError::NoBalancedPart)?.spread(graph, &merged, limit))
}

/// What no packing of trees is faster than, if nodes that are `able` may send out more or less than enters them.
///
/// # Errors
/// As [`balanced_optimum`], the cost of which this has at most.
pub fn balance_limit(
    graph: &Digraph,
    weights: &[u64],
    terminals: &[bool],
    able: &[bool],
    stop: &dyn Stop,
) -> Result<BalanceLimit, OptimumError> {
    let merged = merged(graph, weights, terminals, stop)?;
    let balanced: Vec<bool> = terminals.iter().zip(able).map(|(&terminal, &able)| !terminal && !able).collect();
    let search = Search { graph: &merged, weights, terminals, balanced: &balanced, stop };
    let cut = search.cut()?;
    Ok(search.limit(&cut)?.map_or(cut, |(limit, _)| limit))
}

fn merged(graph: &Digraph, weights: &[u64], terminals: &[bool], stop: &dyn Stop) -> Result<MergedGraph, OptimumError> {
    for found in [weights.len(), terminals.len()] {
        if found != graph.node_count as usize {
            return Err(OptimumError::WrongLength { found, node_count: graph.node_count });
        }
    }
    Ok(MergedGraph::new(graph, &mut Meter::new(stop))?)
}

/// A balanced part in the making.
struct Part {
    /// By pair of nodes, in units of the merged graph divided by the scale.
    capacities: Vec<[u128; 2]>,
    scale: u128,
    /// In reciprocal units of the original graph.
    inverse_rate: Fraction,
}

/// What taking away capacities in excess has led to.
struct Attempted {
    ending: Ending,
    /// By pair, what both directions keep.
    capacities: Vec<[u128; 2]>,
    /// How many of these are one unit.
    scale: u128,
}

struct Search<'a> {
    graph: &'a MergedGraph,
    weights: &'a [u64],
    terminals: &'a [bool],
    /// Which nodes must send out what enters them.
    balanced: &'a [bool],
    stop: &'a dyn Stop,
}

impl Search<'_> {
    /// The limit of the least cut.
    fn cut(&self) -> Result<BalanceLimit, OptimumError> {
        let cut = forest_optimum_of(self.graph.clone(), self.weights, self.terminals, self.stop)?;
        let sets = vec![(1, complement(&cut.cut))];
        Ok(BalanceLimit { inverse_rate: cut.inverse_rate, sets, potentials: vec![0; self.weights.len()] })
    }

    /// How many nodes that are no terminals more enters than leaves, and how many more leaves than enters.
    fn surpluses(&self, capacities: &[[u128; 2]]) -> (usize, usize) {
        let mut sums = vec![(0_u128, 0_u128); self.weights.len()];
        for ((low, high, _), &[up, down]) in self.graph.pairs().zip(capacities) {
            let (low, high) = (low as usize, high as usize);
            (sums[low].0, sums[low].1) = (sums[low].0 + down, sums[low].1 + up);
            (sums[high].0, sums[high].1) = (sums[high].0 + up, sums[high].1 + down);
        }
        let others = || sums.iter().zip(self.terminals).filter(|&(_, &terminal)| !terminal).map(|(sums, _)| sums);
        let count = |is_more: fn(&(u128, u128)) -> bool| others().filter(|sums| is_more(sums)).count();
        (count(|(entering, leaving)| entering > leaving), count(|(entering, leaving)| leaving > entering))
    }

    /// The best part that is found, and the least limit: that of the cut, or where no part reaches it, of a linear program.
    fn run(&self, cut: BalanceLimit, orders: &[Order]) -> Result<(Option<Part>, BalanceLimit), OptimumError> {
        let mut best = Best { search: self, part: None };
        best.consider(self.graph.pairs().map(|(_, _, [up, down])| [up.min(down); 2]).collect(), 1)?;
        let next = best.reduced(cut.inverse_rate, orders)?;
        if best.is_as_fast_as(cut.inverse_rate) {
            return Ok((best.part, cut));
        }
        // Where the rate of the cut is out of reach, the loss is shared, if that costs no more: what is alike stays so.
        if let Some((capacities, scale)) = self.evenly_reduced() {
            best.consider(capacities, scale)?;
        }
        let Some((limit, program)) = self.limit(&cut)? else {
            best.search_on(cut.inverse_rate, next, orders)?;
            return Ok((best.part, cut));
        };
        if !best.is_as_fast_as(limit.inverse_rate) {
            best.reduced(limit.inverse_rate, orders)?;
        }
        if !best.is_as_fast_as(limit.inverse_rate) {
            for (kept, scale) in program.parts(self.stop)? {
                let mut kept = kept.into_iter();
                let mut keep = |capacity: u128| if capacity > 0 { kept.next().unwrap_or(0) } else { 0 };
                best.consider(self.graph.pairs().map(|(_, _, both)| both.map(&mut keep)).collect(), scale)?;
                if best.is_as_fast_as(limit.inverse_rate) {
                    break;
                }
            }
        }
        Ok((best.part, limit))
    }

    /// The limit of the linear program, and the program; `None` if it is too large, or proves no more than the cut.
    fn limit(&self, cut: &BalanceLimit) -> Result<Option<(BalanceLimit, BalanceProgram)>, OptimumError> {
        let order = self.graph.breadth_first_order(&mut Meter::new(self.stop))?;
        let order = order.into_iter().filter(|&node| self.terminals[node as usize]).collect();
        let ways: Vec<Way> = self.ways().filter(|&(.., capacity)| capacity > 0).collect();
        let ends = ways.iter().map(|&(from, to, _)| (from, to)).collect();
        let mut rows = CutRows::new(ends, self.weights, order);
        let first = rows.alone();
        let Some(bound) = cut.inverse_rate.inverse() else { return Ok(None) };
        let count = self.terminals.iter().filter(|&&terminal| terminal).count();
        let bound = bound.to_float() / self.graph.unit as f64;
        let Some(mut program) = BalanceProgram::new(ways, self.balanced.to_vec(), first, bound, count as f64) else {
            return Ok(None);
        };
        if !program.solve(&mut rows, self.stop)? {
            return Ok(None);
        }
        let Some(Proof { inverse_rate, weights, potentials }) = program.proof(self.stop)? else { return Ok(None) };
        let unit = Fraction::new(1, self.graph.unit).expect("units are at least 1");
        let Some(inverse_rate) = inverse_rate.checked_mul(unit) else { return Ok(None) };
        if inverse_rate <= cut.inverse_rate {
            return Ok(Some((cut.clone(), program)));
        }
        let sets = weights.into_iter().zip(rows.into_sets()).filter(|(weight, _)| *weight > 0).collect();
        Ok(Some((BalanceLimit { inverse_rate, sets, potentials }, program)))
    }

    /// Takes what is in excess at a node off all its ways to or from terminals, in proportion to their capacities.
    /// Capacities and their scale; `None` if a node has too few such ways, or the numbers are too long.
    fn evenly_reduced(&self) -> Option<(Vec<[u128; 2]>, u128)> {
        let mut sums = vec![(0_u128, 0_u128); self.weights.len()];
        // Of which come from, or go to, terminals.
        let mut open = sums.clone();
        for (from, to, capacity) in self.ways() {
            sums[from as usize].1 += capacity;
            sums[to as usize].0 += capacity;
            open[from as usize].1 += if self.terminals[to as usize] { capacity } else { 0 };
            open[to as usize].0 += if self.terminals[from as usize] { capacity } else { 0 };
        }
        // What a way of a node keeps: `1 − excess ÷ open`, on the side that has the excess.
        let kept = |node: u32, is_entering: bool| {
            let ((entering, leaving), open) = (sums[node as usize], open[node as usize]);
            let (more, less, open) =
                if is_entering { (entering, leaving, open.0) } else { (leaving, entering, open.1) };
            match more.saturating_sub(less) {
                0 => Some(Fraction { numerator: 1, denominator: 1 }),
                excess => Fraction::new(open.checked_sub(excess)?, open),
            }
        };
        let mut others = (0_u32..).zip(self.terminals).filter(|&(_, &terminal)| !terminal).map(|(node, _)| node);
        if others.any(|node| kept(node, false).is_none() || kept(node, true).is_none()) {
            return None;
        }
        let factor = |from: u32, to: u32| match (self.terminals[from as usize], self.terminals[to as usize]) {
            (false, true) => kept(from, false),
            (true, false) => kept(to, true),
            _ => Some(Fraction { numerator: 1, denominator: 1 }),
        };
        let mut scale = 1_u128;
        for (from, to, capacity) in self.ways().filter(|&(_, _, capacity)| capacity > 0) {
            let Fraction { denominator, .. } = factor(from, to)?;
            let needed = denominator / denominator.gcd(&capacity);
            scale = Some(scale.lcm(&needed)).filter(|&scale| scale <= SCALE_MAX)?;
        }
        let reduced = |from: u32, to: u32, capacity: u128| {
            let Fraction { numerator, denominator } = factor(from, to)?;
            Some(capacity.checked_mul(scale)?.checked_mul(numerator)? / denominator)
        };
        let pairs = self.graph.pairs();
        let capacities =
            pairs.map(|(low, high, [up, down])| Some([reduced(low, high, up)?, reduced(high, low, down)?]));
        Some((capacities.collect::<Option<Vec<_>>>()?, scale))
    }

    /// Both directions of all pairs, with their capacities in units.
    fn ways(&self) -> impl Iterator<Item = (u32, u32, u128)> {
        self.graph.pairs().flat_map(|(low, high, [up, down])| [(low, high, up), (high, low, down)])
    }

    /// The optimum on a part; `None` if it falls apart.
    fn rated(&self, capacities: Vec<[u128; 2]>, scale: u128) -> Result<Option<Part>, OptimumError> {
        match forest_optimum_of(self.graph.with_capacities(&capacities), self.weights, self.terminals, self.stop) {
            Ok(optimum) => {
                let unit = Fraction::new(scale, self.graph.unit).expect("units are at least 1");
                let time = optimum.inverse_rate.checked_mul(unit);
                let too_large = || OptimumError::TooLarge { weight: self.weight_total() };
                Ok(Some(Part { capacities, scale, inverse_rate: time.ok_or_else(too_large)? }))
            }
            Err(OptimumError::Disconnected { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn weight_total(&self) -> u128 {
        self.weights.iter().map(|&weight| u128::from(weight)).sum()
    }

    /// Takes away what is in excess at this rate, in the narrowest integers that hold it; `None` if none do.
    fn attempt(&self, inverse_rate: Fraction, order: Order) -> Result<Option<Attempted>, OptimumError> {
        // A set is entered by enough if `capacity · numerator ≥ weight outside · denominator`, in units.
        let in_units = inverse_rate.numerator.checked_mul(self.graph.unit);
        let in_units = in_units.and_then(|numerator| Fraction::new(numerator, inverse_rate.denominator));
        let Some(Fraction { numerator, denominator }) = in_units else { return Ok(None) };
        let all: u128 = self.graph.pairs().map(|(_, _, [up, down])| up + down).sum();
        let (all, demands) = (all.checked_mul(numerator), self.weight_total().checked_mul(denominator));
        let Some(most) = all.zip(demands).and_then(|(all, demands)| all.checked_add(demands)) else { return Ok(None) };
        let fits = |limit: u128| most < limit / 4;
        let (ending, capacities) = if fits(i64::MAX.unsigned_abs().into()) {
            self.attempt_in::<i64>(numerator, denominator, order)?
        } else if fits(i128::MAX.unsigned_abs()) {
            self.attempt_in::<i128>(numerator, denominator, order)?
        } else {
            return Ok(None);
        };
        Ok(Some(Attempted { ending, capacities, scale: numerator }))
    }

    fn attempt_in<C: FlowUnit>(
        &self,
        numerator: u128,
        denominator: u128,
        order: Order,
    ) -> Result<(Ending, Vec<[u128; 2]>), OptimumError> {
        let demands = self.weights.iter().map(|&weight| {
            C::try_from_u128(u128::from(weight) * denominator).expect("the sum of all numbers was found to fit")
        });
        let mut attempt =
            Attempt::<C>::new(self.graph, numerator, demands.collect(), self.terminals, order, self.stop)?;
        let ending = attempt.run()?;
        Ok((ending, attempt.capacities()))
    }
}

/// The best part so far.
struct Best<'a> {
    search: &'a Search<'a>,
    part: Option<Part>,
}

impl Best<'_> {
    fn is_as_fast_as(&self, inverse_rate: Fraction) -> bool {
        self.part.as_ref().is_some_and(|part| part.inverse_rate <= inverse_rate)
    }

    fn consider(&mut self, capacities: Vec<[u128; 2]>, scale: u128) -> Result<(), OptimumError> {
        if let Some(part) = self.search.rated(capacities, scale)?
            && self.part.as_ref().is_none_or(|best| part.inverse_rate < best.inverse_rate)
        {
            self.part = Some(part);
        }
        Ok(())
    }

    /// Takes away what is in excess at this rate, in each order until one succeeds; returns the next rate that may.
    fn reduced(&mut self, assumed: Fraction, orders: &[Order]) -> Result<Option<Fraction>, OptimumError> {
        let mut next: Option<Fraction> = None;
        for &order in orders {
            let Some(Attempted { ending, capacities, scale }) = self.search.attempt(assumed, order)? else { break };
            self.consider(capacities, scale)?;
            match ending {
                Ending::Balanced => return Ok(None),
                Ending::Stuck { times } => {
                    let slower = times.and_then(|times| assumed.checked_mul(times));
                    next = [next, slower].into_iter().flatten().filter(|&next| next > assumed).min();
                }
            }
        }
        Ok(next)
    }

    /// Assumes ever lower rates, the next one first, until a part reaches one of them.
    fn search_on(&mut self, limit: Fraction, mut next: Option<Fraction>, orders: &[Order]) -> Result<(), OptimumError> {
        let mut assumed = limit;
        for _ in 1..RATES_MAX {
            // Rates that close in on one without end would cost ever more digits, and trees.
            let is_short = |next: &Fraction| next.numerator / limit.numerator.max(1) < FACTOR_MAX;
            let half = Fraction { numerator: 2, denominator: 1 };
            let Some(slower) = next.filter(is_short).or_else(|| assumed.checked_mul(half)) else { break };
            assumed = slower;
            // A part found at a lower rate is faster by chance only.
            if self.is_as_fast_as(assumed) {
                break;
            }
            next = self.reduced(assumed, orders)?;
        }
        Ok(())
    }
}

impl Part {
    /// What each arc of the original graph keeps.
    fn spread(self, graph: &Digraph, merged: &MergedGraph, limit: BalanceLimit) -> BalancedOptimum {
        let mut left: std::collections::BTreeMap<(u32, u32), u128> = merged
            .pairs()
            .zip(&self.capacities)
            .flat_map(|((low, high, _), &[up, down])| [((low, high), up), ((high, low), down)])
            .map(|(ends, kept)| (ends, kept * merged.unit))
            .collect();
        let keep = |arc: &Arc| {
            let left = left.get_mut(&(arc.from, arc.to)).filter(|_| arc.from != arc.to);
            left.map_or(0, |left| {
                let kept = (u128::from(arc.capacity) * self.scale).min(*left);
                *left -= kept;
                kept
            })
        };
        let mut kept: Vec<u128> = graph.arcs.iter().map(keep).collect();
        let divisor = kept.iter().fold(self.scale, |divisor, kept| divisor.gcd(kept));
        kept.iter_mut().for_each(|kept| *kept /= divisor);
        BalancedOptimum { inverse_rate: self.inverse_rate, kept, scale: self.scale / divisor, limit }
    }
}
