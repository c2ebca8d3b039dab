//! The part of a graph that trees without copies at inner nodes can use, and how fast they are on it.
//!
//! What passes a node that is no terminal leaves it once for each time it enters. So whatever trees do, the capacity
//! they use enters and leaves every such node in equal amounts: they live on a *balanced part* of the graph. On a
//! balanced part, packed trees reach the cut (Bang-Jensen, Frank and Jackson 1995). Finding the best rate is finding the
//! best balanced part.

mod cuts;
mod even;
mod grain;
mod program;
mod rounded;
mod sums;
mod way;

use num_integer::Integer;

use crate::digraph::{Arc, Digraph, MergedGraph};
use crate::error::OptimumError;
use crate::fraction::Fraction;
use crate::optimum::{complement, forest_optimum_of};
use crate::stop::{Meter, Stop};
use cuts::CutRows;
use program::{BalanceProgram, MANY, Proof, SCALES};
use way::Way;

pub use sums::{SumsLimit, SumsTerm, sums_limit};

/// Bits of a rate down to which parts are rounded where units are too small for that.
const GRAINS: [i32; 3] = [20, 16, 12];
/// Bits of the part of a unit that is mixed in.
const MIXED: [u32; 2] = [20, 12];
/// Greatest time, as a multiple of the least, of a part for which nothing coarser is tried.
const NEAR: f64 = 1.001;

/// Most terms of a proof, for each node. A few are the rule, and a checker adds all of them up.
const TERMS_PER_NODE_MAX: usize = 8;

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
    /// Least time per unit of weight of all packings of trees in the whole graph, with its proof.
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
    /// Potentials by node, 0 for terminals.
    pub potentials: Vec<i64>,
}

/// The best balanced part of a graph for trees from all nodes of positive weight to all terminals, with the limit that says so.
///
/// A part that uses all arcs evenly comes first: if it reaches the cut of the whole graph, it is best, and the cut proves it.
/// Else a linear program tells the best rate, cuts found by flows being its rows, and its prices prove it. A part at that rate is
/// looked for near its solution, which lies inside the face of all solutions: rounded to whole numbers, to a few parts of a
/// unit, and by the equations of the face in fractions. Graphs too large for the program keep of each pair of arcs what both
/// directions have.
///
/// The rate of every part is computed as that of any graph, so whatever the program says, it is right. It is best if it is that
/// of the [`limit`](BalancedOptimum::limit), as it is unless the program is too large or its solution can not be read in
/// fractions. Where every node that is no terminal is entered by at least as much as leaves it, that is the rate of the cut
/// of the whole graph: let more enter such a node w than leaves it, and let no arc into w be dispensable,
/// that is, let each enter a tight set around w. Of two tight sets around w, the intersection is tight if it holds a
/// terminal; if not, `in(X) + in(Y) ≥ in(X∖Y) + in(Y∖X) + in(X∩Y) − out(X∩Y)` says that one of the differences is entered
/// by too little. So the least tight set M around w is left by no arc into w but entered by all of them, and
/// `in(M∖w) ≤ in(M) − in(w) + out(w) < in(M)`: too little enters M without w, which has the same terminals.
///
/// * **In.** As [`forest_optimum_for`](crate::forest_optimum_for). **Out.** As much enters as leaves each node that is no
///   terminal, counting what arcs keep. Parallel arcs keep what they can in the order given.
/// * **Errors.** As there; [`OptimumError::NoBalancedPart`] if none with a positive rate was found.
/// * **Cost.** That of the optimum if the graph is balanced; else some linear programs with a variable per arc, and some optima: a
///   torus of 1,024 ranks with hosts takes 0.15 s.
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
    let (best, limit) = match search.is_balanced() {
        true => (Some(Part { capacities: whole, scale: 1, inverse_rate: limit.inverse_rate }), limit),
        false => search.run(limit)?,
    };
    Ok(best.ok_or(OptimumError::NoBalancedPart)?.spread(graph, &merged, limit))
}

/// Least time of all packings of trees if nodes that are `able` may send out more or less than enters them.
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
    let Some((mut program, mut rows)) = search.program(&cut)? else { return Ok(cut) };
    let limit = if program.solve(&mut rows, stop)? { search.proved(&program, rows, &cut)? } else { None };
    Ok(limit.unwrap_or(cut))
}

fn merged(graph: &Digraph, weights: &[u64], terminals: &[bool], stop: &dyn Stop) -> Result<MergedGraph, OptimumError> {
    for found in [weights.len(), terminals.len()] {
        if found != graph.node_count as usize {
            return Err(OptimumError::WrongLength { found, node_count: graph.node_count });
        }
    }
    MergedGraph::new(graph, &mut Meter::new(stop))
}

/// A balanced part in the making.
struct Part {
    /// By pair of nodes, in units of the merged graph divided by the scale.
    capacities: Vec<[u128; 2]>,
    scale: u128,
    /// In reciprocal units of the original graph.
    inverse_rate: Fraction,
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

    /// Whether as much enters every node that is no terminal as leaves it.
    fn is_balanced(&self) -> bool {
        let mut sums = vec![(0_u128, 0_u128); self.weights.len()];
        for (from, to, capacity) in self.graph.ways() {
            sums[from as usize].1 += capacity;
            sums[to as usize].0 += capacity;
        }
        sums.iter().zip(self.terminals).all(|((entering, leaving), terminal)| *terminal || entering == leaving)
    }

    /// The best part that is found, and the least limit.
    fn run(&self, cut: BalanceLimit) -> Result<(Option<Part>, BalanceLimit), OptimumError> {
        let mut best = Best { search: self, part: None };
        let Some((mut program, mut rows)) = self.program(&cut)? else {
            best.consider(self.graph.pairs().map(|(_, _, [up, down])| [up.min(down); 2]).collect(), 1)?;
            return Ok((best.part, cut));
        };
        // A part that reaches the cut is best, wherever it comes from.
        if program.guess() && best.search_few(&program, cut.inverse_rate)? {
            return Ok((best.part, cut));
        }
        best.part = None;
        let is_solved = program.solve(&mut rows, self.stop)?;
        if is_solved && program.is_about_bound() && best.search_few(&program, cut.inverse_rate)? {
            return Ok((best.part, cut));
        }
        let limit = match if is_solved { self.proved(&program, rows, &cut)? } else { None } {
            Some(limit) => {
                best.search_near(&program, limit.inverse_rate)?;
                if !best.is_near(limit.inverse_rate) {
                    best.mix(&program)?;
                }
                limit
            }
            None => cut,
        };
        if best.part.is_none() {
            best.consider(self.graph.pairs().map(|(_, _, [up, down])| [up.min(down); 2]).collect(), 1)?;
        }
        Ok((best.part, limit))
    }

    /// The linear program with the rows that it begins with, and where more come from; `None` if it is too large.
    fn program(&self, cut: &BalanceLimit) -> Result<Option<(BalanceProgram, CutRows<'_>)>, OptimumError> {
        let order = self.graph.breadth_first_order(&mut Meter::new(self.stop))?;
        let order = order.into_iter().filter(|&node| self.terminals[node as usize]).collect();
        let ways: Vec<Way> = self.graph.ways().collect();
        let ends = ways.iter().map(|&(from, to, _)| (from, to)).collect();
        let mut rows = CutRows::new(ends, self.weights, order);
        let first = rows.alone();
        let Some(bound) = cut.inverse_rate.inverse() else { return Ok(None) };
        let count = self.terminals.iter().filter(|&&terminal| terminal).count();
        let bound = bound.to_float() / self.graph.unit as f64;
        let program = BalanceProgram::new(ways, self.balanced.to_vec(), first, bound, count as f64);
        Ok(program.map(|program| (program, rows)))
    }

    /// The limit of the solved program, or of the cut if that says more; `None` if it can not be read.
    fn proved(
        &self,
        program: &BalanceProgram,
        rows: CutRows<'_>,
        cut: &BalanceLimit,
    ) -> Result<Option<BalanceLimit>, OptimumError> {
        let Some(Proof { inverse_rate, weights, potentials }) = program.proof(self.stop)? else { return Ok(None) };
        let unit = Fraction::new(1, self.graph.unit).expect("units are at least 1");
        let Some(inverse_rate) = inverse_rate.checked_mul(unit) else { return Ok(None) };
        let sets: Vec<_> = weights.into_iter().zip(rows.into_sets()).filter(|(weight, _)| *weight > 0).collect();
        if inverse_rate <= cut.inverse_rate || sets.len() > TERMS_PER_NODE_MAX * self.weights.len() {
            return Ok(Some(cut.clone()));
        }
        Ok(Some(BalanceLimit { inverse_rate, sets, potentials }))
    }

    /// By pair, what both directions keep, of what each way keeps.
    fn by_pair(&self, kept: Vec<u128>) -> Vec<[u128; 2]> {
        let mut kept = kept.into_iter();
        let mut keep = |capacity: u128| if capacity > 0 { kept.next().unwrap_or(0) } else { 0 };
        self.graph.pairs().map(|(_, _, both)| both.map(&mut keep)).collect()
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

    fn is_near(&self, limit: Fraction) -> bool {
        self.part.as_ref().is_some_and(|part| part.inverse_rate.to_float() < NEAR * limit.to_float())
    }

    /// Mixes a little of a part that is best for equal weights into the solution of the program: of weights far apart, what the
    /// small ones need is less than rounding leaves.
    fn mix(&mut self, program: &BalanceProgram) -> Result<(), OptimumError> {
        let even: Vec<u64> = self.search.terminals.iter().map(|&terminal| u64::from(terminal)).collect();
        if self.search.weights == even {
            return Ok(());
        }
        let search = Search { weights: &even, ..*self.search };
        let cut = match search.cut() {
            Err(OptimumError::Stopped(stopped)) => return Err(stopped.into()),
            // Some have nothing to send, and could not.
            Err(_) => return Ok(()),
            Ok(cut) => cut,
        };
        let (Some(part), _) = search.run(cut)? else { return Ok(()) };
        self.consider(part.capacities.clone(), part.scale)?;
        for bits in MIXED {
            let parts = 1_u128 << bits;
            let Some(kept) = program.rounded(parts, self.search.stop)? else { continue };
            let mixed = |own: u128, even: u128| {
                own.checked_mul(part.scale)?.checked_mul(parts - 1)?.checked_add(even.checked_mul(parts)?)
            };
            let pairs = self.search.by_pair(kept).into_iter().zip(&part.capacities);
            let both =
                pairs.map(|([up, down], &[even_up, even_down])| Some([mixed(up, even_up)?, mixed(down, even_down)?]));
            let scale = parts.checked_mul(parts).and_then(|scale| scale.checked_mul(part.scale));
            if let (Some(capacities), Some(scale)) = (both.collect::<Option<Vec<_>>>(), scale) {
                self.consider(capacities, scale)?;
            }
        }
        Ok(())
    }

    /// Parts near the point of the program, until one reaches the limit, which this says: in the parts of a unit that it is made
    /// of, then in whole numbers of few parts.
    fn search_few(&mut self, program: &BalanceProgram, limit: Fraction) -> Result<bool, OptimumError> {
        let few = SCALES.split_at(SCALES.len() - MANY).0;
        // Rounding tells links apart that are alike, so parts that need none come first.
        let alike = few.iter().filter(|&&scale| program.is_made_of(scale)).take(1);
        for &scale in alike.chain(few) {
            if self.takes(program.rounded(scale, self.search.stop)?, scale, limit)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The same, and then parts on the face of solutions, and in many parts.
    fn search_near(&mut self, program: &BalanceProgram, limit: Fraction) -> Result<(), OptimumError> {
        let stop = self.search.stop;
        if self.search_few(program, limit)? {
            return Ok(());
        }
        program.parts(stop, |kept, scale| self.takes(Some(kept), scale, limit))?;
        if self.is_as_fast_as(limit) || self.search_in_grains(limit)? {
            return Ok(());
        }
        for bits in GRAINS {
            self.takes(program.rounded_coarsely(bits, stop)?, 1, limit)?;
            if self.is_near(limit) {
                break;
            }
        }
        for &scale in &SCALES[SCALES.len() - MANY..] {
            if self.takes(program.rounded(scale, stop)?, scale, limit)? {
                break;
            }
        }
        Ok(())
    }

    /// A best part where capacities are lowered a little, so that a few numbers tell them apart; says whether it is next to the
    /// limit. Its trees are few, and those of links that are alike are, too.
    fn search_in_grains(&mut self, limit: Fraction) -> Result<bool, OptimumError> {
        let Search { graph, .. } = *self.search;
        let capacities: Vec<[u128; 2]> = graph.pairs().map(|(.., capacities)| capacities).collect();
        let Some(grain) = grain::of(capacities.as_flattened()) else { return Ok(false) };
        let lowered: Vec<[u128; 2]> =
            capacities.iter().map(|both| both.map(|capacity| capacity / grain * grain)).collect();
        let coarse = graph.with_capacities(&lowered);
        let search = Search { graph: &coarse, ..*self.search };
        let cut = match search.cut() {
            Err(OptimumError::Stopped(stopped)) => return Err(stopped.into()),
            Err(_) => return Ok(false),
            Ok(cut) => cut,
        };
        let Some(part) = search.run(cut)?.0 else { return Ok(false) };
        let unit = Fraction::new(1, graph.unit).expect("units are at least 1");
        let Some(inverse_rate) = part.inverse_rate.checked_mul(unit) else { return Ok(false) };
        if inverse_rate.to_float() > limit.to_float() * (1.0 + grain::LOST_MOST) {
            return Ok(false);
        }
        let in_units = |both: &[u128; 2]| both.map(|kept| kept * coarse.unit);
        let capacities = part.capacities.iter().map(in_units).collect();
        self.part = Some(Part { capacities, scale: part.scale, inverse_rate });
        Ok(true)
    }

    /// Considers a part, if there is one; says whether the best reaches the limit.
    fn takes(&mut self, kept: Option<Vec<u128>>, scale: u128, limit: Fraction) -> Result<bool, OptimumError> {
        if let Some(kept) = kept {
            self.consider_ways(kept, scale, limit)?;
        }
        Ok(self.is_as_fast_as(limit))
    }

    /// A part by way of positive capacity, if what enters single terminals allows more than the best so far.
    fn consider_ways(&mut self, kept: Vec<u128>, scale: u128, limit: Fraction) -> Result<(), OptimumError> {
        let mut entering = vec![0_u128; self.search.weights.len()];
        self.search.graph.ways().zip(&kept).for_each(|((_, to, _), kept)| entering[to as usize] += kept);
        let total = self.search.weight_total();
        let unit = Fraction::new(scale, self.search.graph.unit).expect("units are at least 1");
        let is_worse = |(node, entering): (usize, u128)| {
            let outside = total - u128::from(self.search.weights[node]);
            let time = Fraction::new(outside, entering).and_then(|time| time.checked_mul(unit));
            outside > 0
                && time.is_none_or(|time| match &self.part {
                    Some(best) => time >= best.inverse_rate,
                    None => time.to_float() > 1.5 * limit.to_float(),
                })
        };
        let terminals = entering.into_iter().enumerate().filter(|&(node, _)| self.search.terminals[node]);
        if terminals.into_iter().any(is_worse) {
            return Ok(());
        }
        self.consider(self.search.by_pair(kept), scale)
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
