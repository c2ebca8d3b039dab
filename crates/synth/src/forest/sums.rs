//! Allreduce as sums that go up trees and come down again: the optimum wherever links are alike both ways.
//!
//! A reduce-scatter followed by an allgather gives every rank a share of the vector to add up, and so is held up by the
//! weakest of them. Nothing asks for that: a chunk may be added up anywhere. So trees are packed without regard to
//! roots, at the *strength* of the network; each is rooted at its own centre, the sum goes up to there and comes back
//! down, over the same links in the other direction. A link then carries in either direction just the trees that pass it.
//!
//! The strength comes with directions for the links (`canopy_optimize::orientation`), in which trees of one root fit, so
//! the stages of broadcast trees do the rest (`flat`). A large network is taken apart first (`pieces`): where the links
//! inside a cluster alone are strong enough, any tree of it goes with any tree of all that is around it (`glue`). What is
//! joined by one switch only has stars in a closed form (`star`).
//!
//! Where links are not alike both ways, trees that come down are others than those that went up, and each link is divided
//! between them (`divided`).
//!
//! Sources: Tutte 1961 and Nash-Williams 1961 for the packing without switches; Bang-Jensen, Frank and Jackson 1995 with
//! them. Zhao 2026 §6 plans allreduce as two phases; that is kept where it is as fast, since its trees are lower.

mod divided;
mod flat;
mod glue;
mod lanes;
mod limited;
mod packing;
mod pieces;
mod rooting;
mod star;
#[cfg(test)]
mod tests;

use canopy_optimize::{Fraction, OptimumError, Stop};
use canopy_schedule::{Collective, CollectiveKind, Forest, Shares};
use canopy_topology::{Rate, Topology};
use num_bigint::BigUint;

use crate::algorithm::TreeLimits;
use crate::error::SynthesisError;
use crate::forest;
use crate::forest::instance::{self, Roots};
use crate::load::seconds_per_byte_of_forest;
use crate::progress::{Progress, Stage};
use crate::reach::disconnected;
use lanes::Lanes;

/// Plans an allreduce: by the fastest of its forms, in two phases with equal shares where these are as fast.
///
/// Shares of different sizes say where the sums are to be made, so they leave no choice of roots; equal ones, whatever
/// their weight, say nothing. Two phases may lack as much as the tolerance of `limits` says of their rate.
///
/// * **Out.** The forest and how large the part of the vector is that is added up at each rank. Where links are alike
///   in both directions, the rate is the greatest possible. **Errors.** As [`forest::plan`].
/// * **Cost.** Besides that of the form chosen, the optima of all.
pub(crate) fn plan_allreduce(
    topology: &Topology,
    shares: &Shares,
    limits: TreeLimits,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<(Forest, Shares), SynthesisError> {
    let broken = |error| SynthesisError::Broken { what: format!("allreduce has no root: {error}") };
    let collective = Collective::new(CollectiveKind::Allreduce, None, topology.rank_count()).map_err(broken)?;
    let in_phases = || Ok((forest::plan(topology, collective, shares, limits, stop, progress)?, shares.clone()));
    let mut weights = topology.ranks().map(|rank| shares.weight(rank));
    let first = weights.next();
    if !weights.all(|weight| Some(weight) == first) || limits.max_depth.is_some() {
        return in_phases();
    }
    if let Some((from, to)) = topology.first_unreachable() {
        return Err(disconnected(topology, from, to));
    }
    progress.report(Stage::Optimum, 0, 1);
    let lanes = Lanes::of(topology);
    let strength = lanes.strength(stop)?;
    let of_strength = Rate::new(strength.rate.numerator, strength.rate.denominator).unwrap_or_else(Rate::zero);
    let of_phases = rate_in_phases(topology, stop)?.unwrap_or_else(Rate::zero);
    if limits.without_tolerance() != TreeLimits::NONE {
        let sums = match of_strength > of_phases {
            true => limited::find(&lanes, &strength.parts, limits, stop)?,
            false => None,
        };
        let Some(sums) = sums else { return in_phases() };
        if sums.rate <= of_phases {
            match in_phases() {
                Ok(phases) if rate_of_forest(topology, &phases.0) >= Some(sums.rate.clone()) => return Ok(phases),
                Ok(_) | Err(SynthesisError::TooManyTrees { .. } | SynthesisError::TooManyHops { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        return sums.plan(stop, progress)?.map_or_else(in_phases, Ok);
    }
    if !lanes.are_all {
        let least = of_strength.clone().max(of_phases.clone());
        if let Some(division) = divided::find(topology, &least, stop)? {
            match divided::plan(topology, &division, stop, progress) {
                Err(SynthesisError::TooManyTrees { .. } | SynthesisError::TooManyHops { .. }) => {}
                planned => return planned,
            }
        }
    }
    if of_strength <= of_phases {
        return in_phases();
    }
    match plan_at(&lanes, strength.rate, &strength.parts, stop, progress) {
        Err(SynthesisError::TooManyTrees { .. } | SynthesisError::TooManyHops { .. }) => in_phases(),
        planned => planned,
    }
}

/// Trees of total weight `rate`, which is at most the strength, with a list of sets that may make pieces of their own.
fn plan_at(
    lanes: &Lanes<'_>,
    rate: Fraction,
    parts: &[Vec<u32>],
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<(Forest, Shares), SynthesisError> {
    let pieces = pieces::take_apart(lanes, rate, parts, stop)?;
    let solved = pieces::solve(&pieces, (rate, None), lanes.rank_count, stop, progress)?;
    let trees = glue::glue(lanes, &pieces, &solved, stop)?;
    rooting::write(lanes, trees, stop)
}

/// Rate of a forest with equal shares.
fn rate_of_forest(topology: &Topology, forest: &Forest) -> Option<Rate> {
    let Fraction { numerator, denominator } = seconds_per_byte_of_forest(topology, forest);
    Rate::new(BigUint::from(denominator) * topology.rank_count(), numerator)
}

/// The rate of a reduce-scatter followed by an allgather; `None` where they can not be planned.
fn rate_in_phases(topology: &Topology, stop: &dyn Stop) -> Result<Option<Rate>, SynthesisError> {
    let transposed = topology.transposed();
    let seconds = |network: &Topology| instance::seconds_per_unit(network, Roots::All(&Shares::Equal), stop);
    let spread = seconds(topology);
    let collect = if transposed == *topology { spread.clone() } else { seconds(&transposed) };
    let (spread, collect) = match (spread, collect) {
        (Ok(spread), Ok(collect)) => (spread, collect),
        (Err(SynthesisError::NotEulerian { .. }), _) | (_, Err(SynthesisError::NotEulerian { .. })) => {
            return Ok(None);
        }
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    // N/(a/b + c/d) = N·b·d/(a·d + c·b).
    let big = |number: u128| BigUint::from(number);
    let (b, d) = (big(spread.denominator), big(collect.denominator));
    let together = big(spread.numerator) * &d + big(collect.numerator) * &b;
    Ok(Rate::new(big(topology.rank_count().into()) * b * d, together))
}

/// Says in terms of plans why a kernel found nothing.
fn refusal(error: OptimumError, rank_count: u32) -> SynthesisError {
    match error {
        OptimumError::Stopped(stopped) => stopped.into(),
        OptimumError::TooLarge { weight } => SynthesisError::TooManyTrees { trees_per_rank: weight, rank_count },
        other => SynthesisError::Broken { what: format!("no trees for an allreduce: {other}") },
    }
}
