//! Instances somewhat below the optimal rate, whose trees are found sooner.
//!
//! At the optimum some sets of nodes are entered by just as many trees as they need, and whatever is done must be tested
//! against all of them. Where links have something to spare, most proposals pass at once, greedy trees fit, and clusters
//! can be cut off that need all of their links at the optimum.

use std::num::NonZeroU64;

use canopy_optimize::{OptimumError, Stop};
use canopy_topology::Topology;

use super::whole::Spread;
use super::{Instance, Part, Roots};
use crate::error::SynthesisError;
use crate::tolerance::Tolerance;

/// Most trees per root that are tried: with so many, floors lose next to nothing.
const TREES_MAX: u64 = 1 << 10;

/// An instance within a tolerance of the optimum, with few trees per root: the least number tried that already fits with
/// half of what may be given up; the other half is what makes the trees easy to find. `None` where no number tried does.
///
/// * **Source.** Our own; the floors are those of Zhao 2026, appendix B.5.4.
/// * **In.** The part of the network that is planned on. **Errors.** Stopped.
/// * **Cost.** That of the optimum, and at most two tests of the network for each of some twenty numbers.
pub(super) fn near(
    topology: &Topology,
    roots: Roots<'_>,
    part: &Part,
    tolerance: Tolerance,
    stop: &dyn Stop,
) -> Result<Option<Instance>, SynthesisError> {
    let Some(spread) = Spread::of_part(topology, roots, &part.bandwidths) else { return Ok(None) };
    // Numbers too large for this are no obstacle to the optimum itself.
    let forgive = |error| match error {
        SynthesisError::TooManyTrees { .. } => Ok(None),
        error => Err(error),
    };
    let mut forest = match spread.forest(NonZeroU64::MIN, stop) {
        Ok(forest) => forest,
        Err(error) => return forgive(error),
    };
    let Some(times) = tolerance.stretched(forest.optimum()) else { return Ok(None) };
    for trees_per_root in numbers_tried() {
        let mut within = |time| match forest.pack_within(trees_per_root, time, stop) {
            Ok(trees) => Ok(trees),
            Err(OptimumError::TooLarge { .. }) => Ok(None),
            Err(error) => Err(super::whole::refusal(error, trees_per_root, topology)),
        };
        if within(times.half)?.is_some()
            && let Some(trees) = within(times.all)?
        {
            return spread.instance(trees_per_root, &trees).map(Some).or_else(forgive);
        }
    }
    Ok(None)
}

/// 1, 2, 3, 4, 6, 8, 12 …: twice as many with every other step.
fn numbers_tried() -> impl Iterator<Item = NonZeroU64> {
    let powers = (0..).map(|exponent| 1_u64 << exponent).take_while(|&power| power <= TREES_MAX);
    powers.flat_map(|power| [Some(power), (power > 1).then_some(power / 2 * 3)]).flatten().filter_map(NonZeroU64::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_trees_double_with_every_other_step() {
        let numbers: Vec<u64> = numbers_tried().map(NonZeroU64::get).collect();
        assert_eq!(numbers[..8], [1, 2, 3, 4, 6, 8, 12, 16]);
        assert_eq!(numbers.last(), Some(&(TREES_MAX / 2 * 3)));
    }
}
