//! What limits an allreduce where what enters a node that is no terminal must leave it.

use super::TERMS_PER_NODE_MAX;
use super::cuts::CutRows;
use super::program::{BalanceProgram, Proof, Row, Rows};
use super::way::Way;
use crate::digraph::{Arc, Digraph, MergedGraph};
use crate::error::OptimumError;
use crate::fraction::Fraction;
use crate::isolate::isolating_cuts;
use crate::stop::{Meter, Stop, Stopped};
use crate::strength::strength;

/// Parts of the unit of what is kept that partitions are looked for in.
const PARTS: f64 = (1_u64 << 32) as f64;

/// Violation of a row, in parts of the rate, that is more than noise.
const TOLERANCE: f64 = 1e-7;

/// A rate that no sums of all terminals exceed, with its proof, as of [`BalanceLimit`](super::BalanceLimit).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumsLimit {
    /// In units of capacity.
    pub rate: Fraction,
    /// Sums that must pass, with weights.
    pub terms: Vec<(u64, SumsTerm)>,
    /// Potentials by node, 0 for terminals.
    pub potentials: Vec<i64>,
}

/// What must pass between terminals that add up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SumsTerm {
    /// One sum enters this set.
    Entered(Vec<bool>),
    /// One sum leaves this set.
    Left(Vec<bool>),
    /// One sum less than there are of these disjoint sets leaves them, and as many results.
    Partition(Vec<Vec<u32>>),
}

/// The least limit on sums of all terminals that cuts, partitions and balance prove together.
///
/// * **In.** `bound`: one on the rate, in units of capacity. **Out.** `None` where nothing below it is found.
/// * **Errors.** As [`strength`].
/// * **Cost.** Some dozen linear programs with a variable for each arc, and as many partitions of the least strength.
pub fn sums_limit(
    graph: &Digraph,
    terminals: &[bool],
    bound: Fraction,
    stop: &dyn Stop,
) -> Result<Option<SumsLimit>, OptimumError> {
    if terminals.len() != graph.node_count as usize {
        return Err(OptimumError::WrongLength { found: terminals.len(), node_count: graph.node_count });
    }
    let mut meter = Meter::new(stop);
    let merged = MergedGraph::new(graph, &mut meter)?;
    let mut order = merged.breadth_first_order(&mut meter)?;
    order.retain(|&node| terminals[node as usize]);
    let Some(&root) = order.first().filter(|_| order.len() > 1) else { return Err(OptimumError::NothingToMove) };
    let ways: Vec<Way> = merged.ways().collect();
    let ends: Vec<(u32, u32)> = ways.iter().map(|&(from, to, _)| (from, to)).collect();
    let turned = ends.iter().map(|&(from, to)| (to, from)).collect();
    let weights: Vec<u64> = (0..graph.node_count).map(|node| u64::from(node == root)).collect();
    let mut rows = SumsRows {
        terminals,
        entered: CutRows::new(ends.clone(), &weights, order.clone()),
        left: CutRows::new(turned, &weights, order.clone()),
        ends,
        terms: Vec::new(),
    };
    let alone = rows.partition(order.iter().map(|&node| vec![node]).collect());
    let most = 2.0 * order.len() as f64;
    let balanced = terminals.iter().map(|&terminal| !terminal).collect();
    let unit = bound.to_float() / merged.unit as f64;
    let Some(mut program) = BalanceProgram::new(ways, balanced, vec![alone], unit, most) else { return Ok(None) };
    if !program.solve(&mut rows, stop)? {
        return Ok(None);
    }
    let Some(Proof { inverse_rate, weights, potentials }) = program.proof(stop)? else { return Ok(None) };
    let whole = Fraction::new(merged.unit, 1).expect("not zero");
    let rate = inverse_rate.inverse().and_then(|rate| rate.checked_mul(whole));
    let found = rate.filter(|rate| *rate < bound).map(|rate| {
        let SumsRows { terms, entered, left, .. } = rows;
        let (mut entered, mut left) = (entered.into_sets().into_iter(), left.into_sets().into_iter());
        let terms = terms.into_iter().map(|term| match term {
            Kind::Entered => SumsTerm::Entered(entered.next().unwrap_or_default()),
            Kind::Left => SumsTerm::Left(left.next().unwrap_or_default()),
            Kind::Partition(sets) => SumsTerm::Partition(sets),
        });
        let terms = weights.into_iter().zip(terms).filter(|(weight, _)| *weight > 0).collect();
        SumsLimit { rate, terms, potentials }
    });
    Ok(found.filter(|found| found.terms.len() <= TERMS_PER_NODE_MAX * terminals.len()))
}

/// Partitions and cuts that kept capacities violate.
struct SumsRows<'a> {
    terminals: &'a [bool],
    ends: Vec<(u32, u32)>,
    entered: CutRows<'a>,
    left: CutRows<'a>,
    /// Kinds of all rows found, in order.
    terms: Vec<Kind>,
}

enum Kind {
    /// The next set that the cuts know.
    Entered,
    Left,
    Partition(Vec<Vec<u32>>),
}

impl SumsRows<'_> {
    /// The row of disjoint sets.
    fn partition(&mut self, sets: Vec<Vec<u32>>) -> Row {
        let mut set_of = vec![None; self.terminals.len()];
        sets.iter()
            .enumerate()
            .for_each(|(set, nodes)| nodes.iter().for_each(|&node| set_of[node as usize] = Some(set)));
        let leaves = |(_, (from, to)): &(u32, (u32, u32))| {
            set_of[*from as usize].is_some() && set_of[*from as usize] != set_of[*to as usize]
        };
        let arcs = (0..).zip(self.ends.iter().copied()).filter(leaves).map(|(arc, _)| arc).collect();
        let demand = 2 * (sets.len() as u64 - 1);
        self.terms.push(Kind::Partition(sets));
        Row { arcs, demand }
    }

    /// The weakest partition of what is kept, each part with the nodes that are best on its side.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats saturate")]
    fn weakest(&self, kept: &[f64], stop: &dyn Stop) -> Result<Option<Vec<Vec<u32>>>, Stopped> {
        let arc = |(&(from, to), &kept): (&(u32, u32), &f64)| Arc { from, to, capacity: (kept * PARTS) as u64 };
        let arcs = self.ends.iter().zip(kept).map(arc).collect();
        let graph = Digraph { node_count: self.terminals.len() as u32, arcs };
        let cuts = strength(&graph, self.terminals, stop).and_then(|found| isolating_cuts(&graph, &found.parts, stop));
        let mut cuts = match cuts {
            Ok(cuts) => cuts,
            Err(OptimumError::Stopped(stopped)) => return Err(stopped),
            Err(_) => return Ok(None),
        };
        // Rounding leaves what is kept a little out of balance, so that sets may meet.
        let mut is_taken = vec![false; self.terminals.len()];
        for cut in &mut cuts {
            cut.retain(|&node| !std::mem::replace(&mut is_taken[node as usize], true));
        }
        Ok(Some(cuts))
    }
}

impl Rows for SumsRows<'_> {
    fn violated(&mut self, kept: &[f64], rate: f64, stop: &dyn Stop) -> Result<Vec<Row>, Stopped> {
        let mut rows = Vec::new();
        if let Some(sets) = self.weakest(kept, stop)? {
            let row = self.partition(sets);
            let passing: f64 = row.arcs.iter().map(|&arc| kept[arc as usize]).sum();
            match passing < rate * row.demand as f64 * (1.0 - TOLERANCE) {
                true => rows.push(row),
                false => drop(self.terms.pop()),
            }
        }
        for is_entered in [true, false] {
            let cuts = if is_entered { &mut self.entered } else { &mut self.left };
            let found = cuts.violated(kept, rate, stop)?;
            self.terms.extend(found.iter().map(|_| if is_entered { Kind::Entered } else { Kind::Left }));
            rows.extend(found);
        }
        Ok(rows)
    }
}
