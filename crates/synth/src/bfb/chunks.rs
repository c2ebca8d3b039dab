//! Into how many chunks shares are divided, and what links carry in each step then.

use std::num::NonZeroU64;

use canopy_optimize::{Arrivals, BfbGraph, Fraction, StepLoads, Stop, chunks_needed};
use rayon::prelude::*;

use super::likeness::Likeness;
use super::network::Direction;
use crate::algorithm::TreeLimits;
use crate::error::SynthesisError;

/// Most chunks that all shares are divided into together.
const CHUNKS_MAX: u128 = 1 << 62;

/// Numbers of chunks that are tried where there is a limit, besides the limit itself: one to so many.
const TRIED: u64 = 16;

/// The number of chunks for each unit of a share's weight, and by phase the loads of all steps, in chunks.
///
/// A number that is stated is taken. Else it is the one with which links reach the exact optimum of each step; where that
/// exceeds the stated limit, the best one found of those within it: of the first few numbers and the limit itself, the one
/// of least time in all, the smaller one among equals.
///
/// # Errors
/// More chunks than can be counted; stopped.
pub(super) fn choose(
    directions: &[Direction],
    likeness: &Likeness,
    limits: TreeLimits,
    stop: &dyn Stop,
) -> Result<(u64, Vec<StepLoads>), SynthesisError> {
    let with = |chunks: u64| -> Result<Vec<StepLoads>, SynthesisError> {
        require_countable(directions, chunks)?;
        directions.iter().map(|direction| loads(&direction.graph, likeness, Some(chunks), stop)).collect()
    };
    if let Some(chunks) = limits.chunks.map(NonZeroU64::get) {
        return Ok((chunks, with(chunks)?));
    }
    let exact = directions.iter().map(|direction| loads(&direction.graph, likeness, None, stop));
    let exact: Vec<StepLoads> = exact.collect::<Result<_, _>>()?;
    let all = StepLoads { loads: exact.iter().flat_map(|loads| &loads.loads).copied().collect() };
    let needed = chunks_needed(&all);
    let limit = limits.max_chunks.map(NonZeroU64::get);
    match (needed, limit) {
        (Some(needed), limit) if limit.is_none_or(|limit| needed <= limit) => {
            require_countable(directions, needed)?;
            Ok((needed, exact.iter().map(|loads| in_chunks(loads, needed)).collect()))
        }
        (_, None) => Err(SynthesisError::TooManyChunks { needed: None, limit: CHUNKS_MAX }),
        (_, Some(limit)) => {
            let mut best: Option<(Fraction, u64, Vec<StepLoads>)> = None;
            for chunks in (1..=limit.min(TRIED)).chain((limit > TRIED).then_some(limit)) {
                let loads = with(chunks)?;
                let time = time_per_share(&loads, chunks);
                if best.as_ref().is_none_or(|(least, ..)| time < *least) {
                    best = Some((time, chunks, loads));
                }
            }
            let (_, chunks, loads) = best.expect("a limit is at least 1");
            Ok((chunks, loads))
        }
    }
}

/// Greatest loads over all ranks, of which one of each kind is looked at.
fn loads(
    graph: &BfbGraph,
    likeness: &Likeness,
    chunks: Option<u64>,
    stop: &dyn Stop,
) -> Result<StepLoads, SynthesisError> {
    let of = |arrivals: &mut Arrivals<'_>, &node: &u32| {
        arrivals.visit(node, stop)?;
        arrivals.loads(chunks, stop)
    };
    let each = likeness.first_of_each().par_iter().map_init(|| Arrivals::new(graph), of);
    Ok(each.try_reduce(StepLoads::default, |most, loads| Ok(most.max(&loads)))?)
}

/// Loads that are whole numbers with so many chunks.
fn in_chunks(loads: &StepLoads, chunks: u64) -> StepLoads {
    let scaled = |load: &Fraction| {
        let factor = u128::from(chunks) / load.denominator;
        Fraction::new(load.numerator * factor, 1).expect("1 is not 0")
    };
    StepLoads { loads: loads.loads.iter().map(scaled).collect() }
}

/// Time for a share of weight 1, in units that all numbers of chunks have in common. Beyond 128 bits it counts as endless.
fn time_per_share(loads: &[StepLoads], chunks: u64) -> Fraction {
    let endless = Fraction { numerator: u128::MAX, denominator: 1 };
    let sum = loads.iter().try_fold(Fraction::ZERO, |sum, loads| sum.checked_add(loads.total()?));
    let sum = sum.and_then(|sum| Fraction::new(sum.numerator, sum.denominator.checked_mul(chunks.into())?));
    sum.unwrap_or(endless)
}

fn require_countable(directions: &[Direction], chunks: u64) -> Result<(), SynthesisError> {
    let total = |graph: &BfbGraph| (0..graph.node_count()).map(|node| u128::from(graph.amount(node))).sum::<u128>();
    let amount = directions.iter().map(|direction| total(&direction.graph)).max().unwrap_or(0);
    let largest = |graph: &BfbGraph| (0..graph.node_count()).map(|node| u128::from(graph.amount(node))).max();
    let share = directions.iter().filter_map(|direction| largest(&direction.graph)).max().unwrap_or(0);
    let is_countable = amount.checked_mul(chunks.into()).is_some_and(|all| all <= CHUNKS_MAX);
    // Parts of a share are kept in 32 bits.
    if is_countable && share * u128::from(chunks) <= u128::from(u32::MAX) {
        return Ok(());
    }
    Err(SynthesisError::TooManyChunks { needed: Some(chunks), limit: u128::from(u32::MAX) / share.max(1) })
}
