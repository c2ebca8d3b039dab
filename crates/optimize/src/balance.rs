//! The part of a graph that trees without copies at inner nodes can use, and how fast they are on it.
//!
//! What passes a node that is no terminal leaves it once for each time it enters. So whatever trees do, the capacity
//! they use enters and leaves every such node in equal amounts: they live on a *balanced part* of the graph. On a
//! balanced part, packed trees reach the cut (Bang-Jensen, Frank and Jackson 1995). Finding the best rate is finding the
//! best balanced part.

mod attempt;

use num_integer::Integer;

use crate::digraph::{Arc, Digraph, MergedGraph};
use crate::error::OptimumError;
use crate::flow::FlowUnit;
use crate::fraction::Fraction;
use crate::optimum::forest_optimum_of;
use crate::stop::{Meter, Stop};
use attempt::{Attempt, Ending, Order};

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
    /// Whether no packing of trees in the whole graph is faster, because no cut of the graph allows it.
    pub reaches_the_cut: bool,
}

/// A balanced part of a graph on which trees from all nodes of positive weight to all terminals are fast.
///
/// At a rate that is assumed, capacity in excess is taken away along shortest paths between nodes that have too
/// much on one side and terminals, as far as every set that holds a terminal can still be entered by all data from
/// outside it. If some excess can not go, the sets that hold it say which rate to try next (Newton's method on the
/// sum of their slacks). Links alike in both directions are tried first, which keeps a symmetric network symmetric, and
/// where the rate of the cut is out of reach, a loss that all ways around a node share.
///
/// * **Exact** where every node that is no terminal is entered by at least as much as leaves it: the rate is that of the
///   cut of the whole graph. *Why:* let more enter such a node w than leaves it, and let no arc into w be dispensable,
///   that is, let each enter a tight set around w. Of two tight sets around w, the intersection is tight if it holds a
///   terminal; if not, `in(X) + in(Y) ≥ in(X∖Y) + in(Y∖X) + in(X∩Y) − out(X∩Y)` says that one of the differences is entered
///   by too little. So the least tight set M around w is left by no arc into w but entered by all of them, and
///   `in(M∖w) ≤ in(M) − in(w) + out(w) < in(M)`: too little enters M without w, which has the same terminals. Exact as
///   well, by the same sets, for a single node that more leaves than enters if all others are balanced. Elsewhere
///   the rate is a lower bound, and [`reaches_the_cut`](BalancedOptimum::reaches_the_cut) says whether it is best for sure.
/// * **In.** As [`forest_optimum_for`](crate::forest_optimum_for). **Out.** As much enters as leaves each node that is no
///   terminal, counting what arcs keep. Parallel arcs keep what they can in the order given.
/// * **Errors.** As there; [`OptimumError::NoBalancedPart`] if none with a positive rate was found.
/// * **Cost.** That of the optimum if the graph is balanced; else some sweeps per arc that lies in a tight cut.
pub fn balanced_optimum(
    graph: &Digraph,
    weights: &[u64],
    terminals: &[bool],
    stop: &dyn Stop,
) -> Result<BalancedOptimum, OptimumError> {
    for found in [weights.len(), terminals.len()] {
        if found != graph.node_count as usize {
            return Err(OptimumError::WrongLength { found, node_count: graph.node_count });
        }
    }
    let merged = MergedGraph::new(graph, &mut Meter::new(stop))?;
    let whole: Vec<[u128; 2]> = merged.pairs().map(|(_, _, capacities)| capacities).collect();
    let limit = forest_optimum_of(merged.clone(), weights, terminals, stop)?.inverse_rate;
    let search = Search { graph: &merged, weights, terminals, stop };
    let best = match search.surpluses(&whole) {
        (0, 0) => Part { capacities: whole, scale: 1, inverse_rate: limit },
        // No order is better than another.
        (_, 0 | 1) => search.run(limit, &Order::ALL[..1])?.ok_or(OptimumError::NoBalancedPart)?,
        _ => search.run(limit, &Order::ALL)?.ok_or(OptimumError::NoBalancedPart)?,
    };
    let reaches_the_cut = best.inverse_rate == limit;
    Ok(best.spread(graph, &merged, reaches_the_cut))
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
    stop: &'a dyn Stop,
}

impl Search<'_> {
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

    /// The best part met on the way from the rate of the cut downwards; `None` if all fall apart.
    fn run(&self, limit: Fraction, orders: &[Order]) -> Result<Option<Part>, OptimumError> {
        let two_way = self.graph.pairs().map(|(_, _, [up, down])| [up.min(down); 2]).collect();
        let mut best = self.rated(two_way, 1)?;
        let mut assumed = limit;
        for round in 0..RATES_MAX {
            // Where the rate of the cut is out of reach, the loss is shared, if that costs no more: what is alike stays so.
            if round == 1
                && let Some((capacities, scale)) = self.evenly_reduced()
                && let Some(part) = self.rated(capacities, scale)?
                && best.as_ref().is_none_or(|best| part.inverse_rate < best.inverse_rate)
            {
                best = Some(part);
            }
            // A part found at a lower rate is faster by chance only.
            if best.as_ref().is_some_and(|best| best.inverse_rate <= assumed) {
                break;
            }
            let mut next: Option<Fraction> = None;
            for &order in orders {
                let Some(Attempted { ending, capacities, scale }) = self.attempt(assumed, order)? else {
                    return Ok(best);
                };
                if let Some(part) = self.rated(capacities, scale)?
                    && best.as_ref().is_none_or(|best| part.inverse_rate < best.inverse_rate)
                {
                    best = Some(part);
                }
                match ending {
                    Ending::Balanced => return Ok(best),
                    Ending::Stuck { times } => {
                        let slower = times.and_then(|times| assumed.checked_mul(times));
                        next = [next, slower].into_iter().flatten().filter(|&next| next > assumed).min();
                    }
                }
            }
            // Rates that close in on one without end would cost ever more digits, and trees.
            let is_short = |next: &Fraction| next.numerator / limit.numerator.max(1) < FACTOR_MAX;
            let half = Fraction { numerator: 2, denominator: 1 };
            match next.filter(is_short).or_else(|| assumed.checked_mul(half)) {
                Some(next) => assumed = next,
                None => break,
            }
        }
        Ok(best)
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

impl Part {
    /// What each arc of the original graph keeps.
    fn spread(self, graph: &Digraph, merged: &MergedGraph, reaches_the_cut: bool) -> BalancedOptimum {
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
        BalancedOptimum { inverse_rate: self.inverse_rate, kept, scale: self.scale / divisor, reaches_the_cut }
    }
}
