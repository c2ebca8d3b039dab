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
//! joined by one switch only has stars in a closed form (`star`). In the end trees are hung up where they are lowest, or where
//! roots are asked for (`rooting`, `roots`), and the deepest exchange hops with others (`lowering`).
//!
//! Where links are not alike both ways, trees that come down are others than those that went up, and each link is divided
//! between them (`divided`).
//!
//! Sources: Tutte 1961 and Nash-Williams 1961 for the packing without switches; Bang-Jensen, Frank and Jackson 1995 with
//! them. Zhao 2026 §6 plans allreduce as two phases; that is kept where it is as fast, since its trees are lower.

mod contracted;
mod divided;
mod flat;
mod glue;
mod hung;
mod lanes;
mod limited;
mod lowering;
mod mixture;
mod packing;
mod piece;
mod pieces;
mod rooting;
mod roots;
mod star;
#[cfg(test)]
mod tests;

use canopy_optimize::{Fraction, OptimumError, Stop, Strength};
use canopy_schedule::{AllreduceForm, Collective, CollectiveKind, Forest, FormChoice, FormReason, Shares};
use canopy_topology::{Rate, Topology};
use num_bigint::BigUint;

use crate::error::SynthesisError;
use crate::forest;
use crate::forest::instance::{self, Roots};
use crate::limits::TreeLimits;
use crate::load::seconds_per_byte_of_forest;
use crate::mirror::mirror;
use crate::progress::{Progress, Stage};
use crate::reach::disconnected;
use crate::sum_options::{RootPolicy, SumOptions};
use lanes::Lanes;
use mixture::Mixture;
use rooting::Rooted;

/// An allreduce as trees.
pub(crate) struct PlannedAllreduce {
    pub(crate) forest: Forest,
    /// How large the part of the vector is that is added up at each rank.
    pub(crate) shares: Shares,
    /// Which form it has, and why.
    pub(crate) form: FormChoice,
}

/// Plans an allreduce: by the fastest of its forms, in two phases where these are as fast; or by that asked for.
///
/// Where trees are gone up and down, the roots are at their centres, unless shares of different sizes say where the sums
/// are to be made, or equal ones are asked for as such. Depth is limited in two phases only. Two phases may lack as much as
/// the tolerance says of their rate.
///
/// * **Out.** The forest, how large the part of the vector is that is added up at each rank, and why it has this form.
///   Where links are alike in both directions, the rate is the greatest possible. **Errors.** As [`forest::plan`].
/// * **Cost.** Besides that of the form chosen, the optima of all.
pub(crate) fn plan_allreduce(
    topology: &Topology,
    shares: &Shares,
    limits: TreeLimits,
    options: SumOptions,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<PlannedAllreduce, SynthesisError> {
    let broken = |error| SynthesisError::Broken { what: format!("allreduce has no root: {error}") };
    let collective = Collective::new(CollectiveKind::Allreduce, None, topology.rank_count()).map_err(broken)?;
    let in_phases = |reason| {
        let forest = forest::plan(topology, collective, shares, limits, stop, progress)?;
        let choice = FormChoice { form: AllreduceForm::TwoPhases, reason, two_phases: None };
        Ok(PlannedAllreduce { forest, shares: shares.clone(), form: choice })
    };
    let weights = stated_weights(topology, shares, options.roots);
    let is_limited = limits.without_tolerance() != TreeLimits::NONE;
    if let Some(reason) = phases_alone(limits, options, weights.is_some()) {
        return in_phases(reason);
    }
    if let Some((from, to)) = topology.first_unreachable() {
        return Err(disconnected(topology, from, to));
    }
    let asks_for_trees = options.form == Some(AllreduceForm::Trees);
    progress.report(Stage::Optimum, 0, 1);
    let lanes = Lanes::of(topology);
    let strength = lanes.strength(stop)?;
    let two_phases = rate_in_phases(topology, shares, stop)?;
    let of_strength = rate_of(strength.rate);
    let of_phases = two_phases.clone().unwrap_or_else(Rate::zero);
    let in_trees = |(forest, shares): (Forest, Shares)| {
        let reason = if asks_for_trees { FormReason::Asked } else { FormReason::Faster };
        let form = FormChoice { form: AllreduceForm::Trees, reason, two_phases: two_phases.clone() };
        PlannedAllreduce { forest, shares, form }
    };
    if !is_limited {
        let least = of_strength.clone().max(of_phases.clone());
        let weights = weights.as_deref();
        if let Some(planned) = plan_beyond((&lanes, strength.rate), &least, (options, weights), stop, progress)? {
            return Ok(in_trees(planned));
        }
    }
    if strength.rate == Fraction::ZERO {
        return if asks_for_trees { Err(SynthesisError::NoTrees) } else { in_phases(FormReason::OneWay) };
    }
    if !asks_for_trees && of_phases >= of_strength {
        return in_phases(FormReason::AsFast);
    }
    if is_limited {
        let Some(sums) = limited::find(&lanes, &strength.parts, limits, stop)? else {
            return in_phases(FormReason::Limited);
        };
        if !asks_for_trees && sums.rate <= of_phases {
            match in_phases(FormReason::Limited) {
                Ok(phases) if rate_of_forest(topology, &phases.forest) >= Some(sums.rate.clone()) => return Ok(phases),
                Err(error) if !is_too_large(&error) => return Err(error),
                _ => {}
            }
        }
        let planned = sums.plan(stop, progress)?;
        return planned.map_or_else(|| in_phases(FormReason::Limited), |planned| Ok(in_trees(planned)));
    }
    match plan_at(&lanes, strength.rate, &strength.parts, weights.as_deref(), stop, progress) {
        Err(error) if !asks_for_trees && is_too_large(&error) => in_phases(FormReason::TooMany),
        planned => planned.map(in_trees),
    }
}

/// Why only two phases are looked for, if that is so.
fn phases_alone(limits: TreeLimits, options: SumOptions, has_weights: bool) -> Option<FormReason> {
    let is_limited = limits.without_tolerance() != TreeLimits::NONE;
    match options.form {
        Some(AllreduceForm::TwoPhases) => Some(FormReason::Asked),
        _ if limits.max_depth.is_some() || (is_limited && has_weights) => Some(FormReason::Limited),
        _ => None,
    }
}

/// How much each rank is to add up, where anything says so.
fn stated_weights(topology: &Topology, shares: &Shares, roots: RootPolicy) -> Option<Vec<u64>> {
    match (shares, roots) {
        (Shares::Weighted(weights), _) if weights.windows(2).any(|pair| pair[0] != pair[1]) => Some(weights.clone()),
        (_, RootPolicy::Spread) => Some(vec![1; topology.rank_count() as usize]),
        (_, RootPolicy::Centre) => None,
    }
}

/// Whether trees are more than there is room for.
const fn is_too_large(error: &SynthesisError) -> bool {
    matches!(error, SynthesisError::TooManyTrees { .. } | SynthesisError::TooManyHops { .. })
}

/// The form that [`plan_allreduce`] takes, but for trees that turn out to be too many. The optima of both.
pub(crate) fn form(
    topology: &Topology,
    shares: &Shares,
    options: SumOptions,
    stop: &dyn Stop,
) -> Result<AllreduceForm, SynthesisError> {
    if let Some(form) = options.form {
        return Ok(form);
    }
    let mut strength = Lanes::of(topology).strength(stop)?.rate;
    if options.in_network {
        strength = strength_through_switches(topology, strength, stop)?;
    }
    let best = rate_of(strength);
    let in_phases = if best.is_zero() { None } else { rate_in_phases(topology, shares, stop)? };
    let is_faster = !best.is_zero() && in_phases.is_none_or(|rate| rate < best);
    Ok(if is_faster { AllreduceForm::Trees } else { AllreduceForm::TwoPhases })
}

/// Trees of total weight `rate`, which is at most the strength, with a list of sets that may make pieces of their own,
/// and weights of roots by rank if these are not to be the centres.
fn plan_at(
    lanes: &Lanes<'_>,
    rate: Fraction,
    parts: &[Vec<u32>],
    weights: Option<&[u64]>,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<(Forest, Shares), SynthesisError> {
    rooting::write(lanes.rank_count, rooted_at(lanes, (rate, parts), weights, stop, progress)?, stop)
}

/// Trees faster than the plainest ones and than two phases: through switches that replicate and add up, where that is
/// allowed, or up and down over different links; `None` where there are none, or too many.
fn plan_beyond(
    (lanes, strength): (&Lanes<'_>, Fraction),
    least: &Rate,
    (options, weights): (SumOptions, Option<&[u64]>),
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Option<(Forest, Shares)>, SynthesisError> {
    let topology = lanes.topology;
    if options.in_network
        && let Some(planned) = plan_through_switches(topology, (strength, least), weights, stop, progress)?
    {
        return Ok(Some(planned));
    }
    if lanes.are_all || weights.is_some() {
        return Ok(None);
    }
    let Some(division) = divided::find(topology, least, stop)? else { return Ok(None) };
    match divided::plan(topology, &division, stop, progress) {
        Err(error) if is_too_large(&error) => Ok(None),
        planned => planned.map(Some),
    }
}

/// Trees that span switches which replicate and add up; `None` where these are no faster than others, of this strength
/// and at this rate, or too many.
fn plan_through_switches(
    topology: &Topology,
    (strength, least): (Fraction, &Rate),
    weights: Option<&[u64]>,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Option<(Forest, Shares)>, SynthesisError> {
    let Some((lanes, strength)) = Lanes::through_switches(topology, strength, stop)? else { return Ok(None) };
    let mixture = Mixture::find(topology, strength.rate, stop)?;
    if rate_of(mixture.as_ref().map_or(strength.rate, |mixture| mixture.rate)) <= *least {
        return Ok(None);
    }
    let planned = match mixture {
        Some(mixture) => mixture.plan(topology.rank_count(), weights, stop, progress),
        None => {
            // A root adds up for the switches next to it, so all ranks are to have as much to do.
            let equal = vec![1; topology.rank_count() as usize];
            plan_at(&lanes, strength.rate, &strength.parts, Some(weights.unwrap_or(&equal)), stop, progress)
        }
    };
    match planned {
        Err(error) if is_too_large(&error) => Ok(None),
        planned => planned.map(Some),
    }
}

/// The total weight of trees that may span switches which replicate and add up, at least that of trees which do not.
pub(crate) fn strength_through_switches(
    topology: &Topology,
    least: Fraction,
    stop: &dyn Stop,
) -> Result<Fraction, SynthesisError> {
    let Some((_, Strength { rate, .. })) = Lanes::through_switches(topology, least, stop)? else { return Ok(least) };
    Ok(Mixture::find(topology, rate, stop)?.map_or(rate, |mixture| mixture.rate))
}

/// The same trees, not yet written.
fn rooted_at(
    lanes: &Lanes<'_>,
    (rate, parts): (Fraction, &[Vec<u32>]),
    weights: Option<&[u64]>,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Rooted, SynthesisError> {
    let pieces = pieces::take_apart(lanes, rate, parts, stop)?;
    let solved = pieces::solve(&pieces, (rate, None), lanes.rank_count, stop, progress)?;
    rooting::root(lanes, glue::glue(lanes, &pieces, &solved, stop)?, weights, stop)
}

/// Rate of trees of the strength of a network.
fn rate_of(strength: Fraction) -> Rate {
    Rate::new(strength.numerator, strength.denominator).expect("a fraction is one")
}

/// Rate of a forest with equal shares.
fn rate_of_forest(topology: &Topology, forest: &Forest) -> Option<Rate> {
    let Fraction { numerator, denominator } = seconds_per_byte_of_forest(topology, forest);
    Rate::new(BigUint::from(denominator) * topology.rank_count(), numerator)
}

/// The algbw that a reduce-scatter followed by an allgather reaches; none where it can not be planned.
fn rate_in_phases(topology: &Topology, shares: &Shares, stop: &dyn Stop) -> Result<Option<Rate>, SynthesisError> {
    let transposed = topology.transposed();
    let seconds = |network: &Topology| instance::seconds_per_unit(network, Roots::All(shares), stop);
    let spread = seconds(topology);
    let collect = if mirror(topology, &transposed).is_some() { spread.clone() } else { seconds(&transposed) };
    let (spread, collect) = match (spread, collect) {
        (Ok(spread), Ok(collect)) => (spread, collect),
        (Err(SynthesisError::NotEulerian { .. }), _) | (_, Err(SynthesisError::NotEulerian { .. })) => {
            return Ok(None);
        }
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    // W/(a/b + c/d) = W·b·d/(a·d + c·b), for shares that weigh W in all.
    let big = |number: u128| BigUint::from(number);
    let (b, d) = (big(spread.denominator), big(collect.denominator));
    let together = big(spread.numerator) * &d + big(collect.numerator) * &b;
    let rate = Rate::new(big(shares.weight_total(topology.rank_count())) * b * d, together);
    Ok(Some(rate.expect("data that has to move takes time")))
}

/// Says in terms of plans why a kernel found nothing.
fn refusal(error: OptimumError, rank_count: u32) -> SynthesisError {
    match error {
        OptimumError::Stopped(stopped) => stopped.into(),
        OptimumError::TooLarge { weight } => SynthesisError::TooManyTrees { trees_per_rank: weight, rank_count },
        other => SynthesisError::Broken { what: format!("no trees for an allreduce: {other}") },
    }
}
