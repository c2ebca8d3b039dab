//! Into how many chunks shares are divided, and what links carry in each step then.

use std::num::NonZeroU64;

use canopy_optimize::{Arrivals, BfbGraph, Fraction, JointArrivals, StepLoads, Stop, chunks_needed};
use rayon::prelude::*;

use super::latencies;
use super::likeness::Likeness;
use super::network::Direction;
use super::wires::Wires;
use crate::error::SynthesisError;
use crate::limits::TreeLimits;

/// Most chunks that all shares are divided into together.
const CHUNKS_MAX: u128 = 1 << 62;

/// Numbers of chunks that are tried where there is a limit, besides the limit itself: one to so many.
const TRIED: u64 = 16;

/// Numbers beyond these that are tried where no number is exact, because latencies count or rates have no common unit.
const TRIED_IN_TIME: [u64; 3] = [24, 32, 64];

/// Then a number will do that takes no more than this part longer than undivided shares.
const SLACK: (u128, u128) = (1, 100);

/// The number of chunks for each unit of a share's weight, and by phase the loads of all steps, in chunks.
///
/// A number that is stated is taken. Else it is one with which links reach the exact optimum of each step, the smallest one on
/// links of one width, and on others if it is one of the first few. Where that
/// exceeds the stated limit, it is the best one found of those within it: of the first few numbers and the limit itself, the one
/// of least time in all, the smaller one among equals. Where nothing is stated and it cannot be counted, because rates that
/// faults left have no common unit, it is the first one tried that comes close to the optimum, or else the best.
///
/// # Errors
/// More chunks than can be counted though they are stated, or with one for each unit of weight; stopped.
pub(super) fn choose(
    directions: &[Direction],
    likeness: &Likeness,
    limits: TreeLimits,
    stop: &dyn Stop,
) -> Result<(u64, Vec<StepLoads>), SynthesisError> {
    let with = |chunks: u64| all_loads(directions, likeness, Some(chunks), stop);
    if let Some(chunks) = limits.chunks.map(NonZeroU64::get) {
        return Ok((chunks, with(chunks)?));
    }
    let exact = all_loads(directions, likeness, None, stop)?;
    let needed = needed_by(&exact);
    let limit = limits.max_chunks.map(NonZeroU64::get);
    if let Some(few) = fewer(directions, &exact, needed.into_iter().chain(limit).min(), with)? {
        return Ok(few);
    }
    let is_countable = |&chunks: &u64| require_countable(directions, chunks).is_ok();
    match (needed, limit) {
        (Some(needed), Some(limit)) if needed <= limit => {
            require_countable(directions, needed)?;
            Ok((needed, exact.iter().map(|loads| in_chunks(loads, needed)).collect()))
        }
        (_, Some(limit)) => {
            best_of((1..=limit.min(TRIED)).chain((limit > TRIED).then_some(limit)), Fraction::ZERO, with)
        }
        (needed, None) => match needed.filter(is_countable) {
            Some(needed) => Ok((needed, exact.iter().map(|loads| in_chunks(loads, needed)).collect())),
            None => {
                let more = (2..=TRIED).chain(TRIED_IN_TIME).filter(is_countable);
                best_of(std::iter::once(1).chain(more), close_to(&exact), with)
            }
        },
    }
}

/// A time per share that will do where the optimum is not reached: of these loads of undivided shares, and [`SLACK`].
fn close_to(undivided: &[StepLoads]) -> Fraction {
    let (over, of) = SLACK;
    let least = time_per_share(undivided, 1);
    let parts = least.numerator.checked_mul(of + over).zip(least.denominator.checked_mul(of));
    parts.and_then(|(top, bottom)| Fraction::new(top, bottom)).unwrap_or(Fraction::ZERO)
}

/// A small number of chunks below `limit` with which links reach the exact times, where links are of different widths.
///
/// Loads are counted for each width there, so that whole chunks need not be whole loads; on links of one width they must be,
/// and fewer chunks than that never do.
fn fewer(
    directions: &[Direction],
    exact: &[StepLoads],
    limit: Option<u64>,
    with: impl Fn(u64) -> Result<Vec<StepLoads>, SynthesisError>,
) -> Result<Option<(u64, Vec<StepLoads>)>, SynthesisError> {
    let is_even =
        |graph: &BfbGraph| (0..graph.node_count()).all(|node| graph.in_links(node).iter().all(|link| link.width == 1));
    if directions.iter().all(|direction| direction.joint.is_none() && is_even(&direction.graph)) {
        return Ok(None);
    }
    let least = time_per_share(exact, 1);
    for chunks in 1..=TRIED.min(limit.unwrap_or(TRIED)) {
        let loads = with(chunks)?;
        if time_per_share(&loads, chunks) <= least {
            return Ok(Some((chunks, loads)));
        }
    }
    Ok(None)
}

/// Directions as they are divided, the number of chunks of a share, and the loads that follow.
pub(super) struct Chosen {
    pub(super) directions: Vec<Direction>,
    /// Chunks of each share.
    pub(super) chunks: u64,
    /// By direction.
    pub(super) loads: Vec<StepLoads>,
}

/// [`choose`] where links into ranks differ in latency, for messages of a size; with the directions as they are divided.
///
/// Where the differences count, times of steps have no common measure and no number of chunks is exact. Then a stated
/// number is taken, or the smallest one tried, of those within the limit, that comes close to the time of undivided
/// shares; if none does, the best one.
///
/// # Errors
/// The same.
pub(super) fn choose_in_time(
    wires: &Wires,
    directions: Vec<Direction>,
    likeness: &Likeness,
    limits: TreeLimits,
    size_bytes: NonZeroU64,
    stop: &dyn Stop,
) -> Result<Chosen, SynthesisError> {
    let exact = all_loads(&directions, likeness, None, stop)?;
    let delayed = match latencies::that_count(wires, &directions, &exact, size_bytes) {
        Some(delays) => latencies::delayed(&directions, &delays)?,
        None => None,
    };
    let Some(delayed) = delayed else {
        let (chunks, loads) = choose(&directions, likeness, limits, stop)?;
        return Ok(Chosen { directions, chunks, loads });
    };
    let with = |chunks: u64| all_loads(&delayed, likeness, Some(chunks), stop);
    if let Some(chunks) = limits.chunks.map(NonZeroU64::get) {
        let loads = with(chunks)?;
        return Ok(Chosen { directions: delayed, chunks, loads });
    }
    let enough = close_to(&all_loads(&delayed, likeness, None, stop)?);
    let limit = limits.max_chunks.map_or(u64::MAX, NonZeroU64::get);
    let exactly = needed_by(&exact).filter(|&needed| require_countable(&delayed, needed).is_ok());
    let mut tried: Vec<u64> =
        (1..=TRIED).chain(TRIED_IN_TIME).chain(exactly).filter(|&chunks| chunks <= limit).collect();
    tried.sort_unstable();
    tried.dedup();
    let (chunks, loads) = best_of(tried.into_iter(), enough, with)?;
    Ok(Chosen { directions: delayed, chunks, loads })
}

/// Of numbers of chunks, the first one whose time is `enough`, or else the one of least time, the first one among equals.
fn best_of(
    tried: impl Iterator<Item = u64>,
    enough: Fraction,
    with: impl Fn(u64) -> Result<Vec<StepLoads>, SynthesisError>,
) -> Result<(u64, Vec<StepLoads>), SynthesisError> {
    let mut best: Option<(Fraction, u64, Vec<StepLoads>)> = None;
    for chunks in tried {
        let loads = with(chunks)?;
        let time = time_per_share(&loads, chunks);
        if time <= enough {
            return Ok((chunks, loads));
        }
        if best.as_ref().is_none_or(|(least, ..)| time < *least) {
            best = Some((time, chunks, loads));
        }
    }
    let (_, chunks, loads) = best.expect("1 is tried");
    Ok((chunks, loads))
}

/// Greatest loads of all directions, in so many chunks or undivided.
fn all_loads(
    directions: &[Direction],
    likeness: &Likeness,
    chunks: Option<u64>,
    stop: &dyn Stop,
) -> Result<Vec<StepLoads>, SynthesisError> {
    if let Some(chunks) = chunks {
        require_countable(directions, chunks)?;
    }
    let of = |direction: &Direction| match &direction.joint {
        Some(joint) => joint_loads(joint, chunks, stop),
        None => loads(&direction.graph, likeness, chunks, stop),
    };
    directions.iter().map(of).collect()
}

/// The least number of chunks with which all these loads are whole, if 64 bits count it.
fn needed_by(exact: &[StepLoads]) -> Option<u64> {
    chunks_needed(&StepLoads { loads: exact.iter().flat_map(|loads| &loads.loads).copied().collect() })
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

/// Greatest loads of all ranks behind hosts.
fn joint_loads(joint: &JointArrivals, chunks: Option<u64>, stop: &dyn Stop) -> Result<StepLoads, SynthesisError> {
    let of = |step| {
        let undivided = joint.load(step, stop)?;
        chunks.map_or(Ok(undivided), |chunks| joint.chunk_load(step, chunks, undivided, stop))
    };
    let loads = (1..=joint.step_count()).into_par_iter().map(of).collect::<Result<_, _>>()?;
    Ok(StepLoads { loads })
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
    let amount = directions.iter().map(|direction| direction.graph.amount_at_once()).max().unwrap_or(0);
    let largest = |graph: &BfbGraph| (0..graph.node_count()).map(|node| u128::from(graph.amount(node))).max();
    let share = directions.iter().filter_map(|direction| largest(&direction.graph)).max().unwrap_or(0);
    let is_countable = amount.checked_mul(chunks.into()).is_some_and(|all| all <= CHUNKS_MAX);
    // Parts of a share are kept in 32 bits.
    if is_countable && share * u128::from(chunks) <= u128::from(u32::MAX) {
        return Ok(());
    }
    Err(SynthesisError::TooManyChunks { needed: chunks, limit: u128::from(u32::MAX) / share.max(1) })
}
