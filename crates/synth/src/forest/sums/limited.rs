//! A given number of trees, or the best one up to a limit, at the expense of the rate: links carry whole trees.

use std::num::NonZeroU64;

use canopy_optimize::{Arc, Digraph, Fraction, OptimumError, Stop, WholeSums, WholeTrees};
use canopy_schedule::{Forest, Shares};
use canopy_topology::Rate;

use crate::error::SynthesisError;
use crate::forest::instance::whole::{numbers_tried, numbers_worth_trying};
use crate::forest::sums::lanes::{Lane, Lanes};
use crate::forest::sums::{glue, pieces, refusal, rooting};
use crate::limits::TreeLimits;
use crate::progress::Progress;

/// Lanes cut down to whole trees of a number that was asked for.
pub(super) struct Limited<'l> {
    lanes: Lanes<'l>,
    parts: &'l [Vec<u32>],
    tree_count: NonZeroU64,
    /// Of all trees together, in bytes per second.
    pub(super) rate: Rate,
}

/// Finds the best rate of exactly so many trees, or of the best number of them up to a limit, the least among equals.
/// `None` where there are too many to compute with.
///
/// More trees are not always better, so numbers are tried as for trees of given roots, see
/// [`numbers_worth_trying`].
///
/// * **In.** A connected network; sets that may make pieces of their own. **Errors.** Stopped.
/// * **Cost.** Some strengths for the number asked for, one for each other number tried.
pub(super) fn find<'l>(
    lanes: &Lanes<'l>,
    parts: &'l [Vec<u32>],
    limits: TreeLimits,
    stop: &dyn Stop,
) -> Result<Option<Limited<'l>>, SynthesisError> {
    let arcs = lanes.list.iter().map(|lane| Arc { from: lane.low, to: lane.high, capacity: lane.capacity });
    let graph = Digraph { node_count: lanes.node_count, arcs: arcs.collect() };
    let terminals = lanes.terminals();
    let broken = |error| refusal(error, lanes.rank_count);
    let sums = match WholeSums::new(&graph, &terminals, stop) {
        Err(OptimumError::TooLarge { .. }) => return Ok(None),
        sums => sums.map_err(broken)?,
    };
    let work = u64::from(lanes.terminal_count).saturating_mul(lanes.list.len() as u64);
    let last = limits.max_chunks.map_or(0, NonZeroU64::get);
    let up_to = numbers_tried(last, numbers_worth_trying(work)).filter_map(NonZeroU64::new);
    let mut best: Option<(Fraction, NonZeroU64, WholeTrees)> = None;
    for tree_count in limits.trees_per_root.into_iter().chain(up_to) {
        let below = best.as_ref().map(|&(time, ..)| time);
        let trees = match sums.pack(tree_count, below, stop) {
            Err(OptimumError::TooLarge { .. }) => break,
            trees => trees.map_err(broken)?,
        };
        let better = trees.and_then(|trees| Some((trees.inverse_rate(tree_count)?, tree_count, trees)));
        best = better.or(best);
        if best.as_ref().is_some_and(|&(time, ..)| time == sums.optimum()) {
            break;
        }
    }
    let whole = best
        .and_then(|(time, tree_count, trees)| Some((Rate::new(time.denominator, time.numerator)?, tree_count, trees)));
    let Some((rate, tree_count, trees)) = whole else { return Ok(None) };
    let of_lane = |(lane, &trees): (&Lane, &u128)| Some(Lane { capacity: u64::try_from(trees).ok()?, ..*lane });
    let list = lanes.list.iter().zip(&trees.capacities).map(of_lane).collect::<Option<Vec<Lane>>>();
    let Some(mut list) = list else { return Ok(None) };
    list.retain(|lane| lane.capacity > 0);
    Ok(Some(Limited { lanes: lanes.with(list), parts, tree_count, rate }))
}

impl Limited<'_> {
    /// Plans so many trees. `None` where they would not come whole, or are too many.
    ///
    /// * **Errors.** Stopped. **Cost.** That of the trees.
    pub(super) fn plan(
        &self,
        stop: &dyn Stop,
        progress: &dyn Progress,
    ) -> Result<Option<(Forest, Shares)>, SynthesisError> {
        let count = self.tree_count.get();
        let all = Fraction { numerator: count.into(), denominator: 1 };
        let trees = pieces::take_apart(&self.lanes, all, self.parts, stop).and_then(|pieces| {
            let solved = pieces::solve(&pieces, (all, Some(count)), self.lanes.rank_count, stop, progress)?;
            glue::glue(&self.lanes, &pieces, &solved, stop)
        });
        let mut trees = match trees {
            Err(SynthesisError::TooManyTrees { .. } | SynthesisError::TooManyHops { .. }) => return Ok(None),
            trees => trees?,
        };
        if !count.is_multiple_of(trees.tree_count) {
            return Ok(None);
        }
        trees.scale(count / trees.tree_count);
        let rooted = rooting::root(&self.lanes, trees, None, stop)?;
        rooting::write(self.lanes.rank_count, rooted, stop).map(Some)
    }
}
