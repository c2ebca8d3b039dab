//! Bounds with what plans are known to reach.

use canopy_optimize::{Fraction, Stop};
use canopy_schedule::{Bound, Collective, CollectiveKind, Shares};
use canopy_topology::{Rate, Topology};

use crate::bound::{self, BoundError};
use crate::error::SynthesisError;
use crate::forest;
use crate::found::Found;
use crate::large::{are_listed, bound_of_parts};

/// Best algbw any schedule can have, as exact bounds from above and below with a certificate.
///
/// | collective | upper bound: the least of | reached from below |
/// |---|---|---|
/// | allgather, reduce-scatter | `N·B⁺(S)/s`, `N·B⁻(S)/s` over all cuts, and over sums of them | if no switch multiplies data |
/// | broadcast, reduce | `B⁺(S)`, `B⁻(S)` over the cuts that hold the root, and over sums of them | if no switch multiplies data |
/// | scatter, gather | `N·B⁺(S)/(N−s)`, `N·B⁻(S)/(N−s)`, same | always: they are flows |
/// | allreduce | `Σ B⁺(S_i)/(2(p−1))` over partitions, and over sums of them and of cuts | if links are alike in both directions, and more |
/// | all-to-all | `N·Σ c·ℓ / Σ dist_ℓ` over lengths ℓ of links | a flow in whole chunks |
///
/// With weighted shares `s` is the weight inside and `N` the total weight; with weighted blocks the bound of all-to-all is
/// `(W/N)·Σ c·ℓ / Σ w·dist_ℓ`, as [`certified_bound`](canopy_schedule::certified_bound) derives it. What an allreduce promises does not depend on
/// shares, so neither does its bound.
///
/// Trees that reach all ranks can be packed at the rate of the cut where as much capacity enters every switch as leaves
/// it (Edmonds where there are no switches; Bang-Jensen, Frank and Jackson, who ask for balance only at nodes that are no
/// terminals), and where more enters than leaves; in the direction of the data, so the other way round for reduce and
/// reduce-scatter. Elsewhere what enters a switch must leave it, and a sum of cuts says what that costs: the optimum is that of
/// the best part of the network that is balanced, which [`balanced_optimum`](canopy_optimize::balanced_optimum) finds.
///
/// Of more ranks than [`are_listed`] in an allgather, a reduce-scatter or an allreduce, the bound is that of the slowest rank,
/// box or pod, and only plans say what is reached.
///
/// * **Source.** Zhao 2026 §4.4, inequality (⋆), §4.6 and appendix B; for allreduce see `bound/allreduce`, and `forest/sums/mixture` for what trees reach that go through switches.
/// * **In.** Any directed capacities, Eulerian or not; weights may be 0. Multicasting and aggregating
///   switches change no bound but that of allreduce.
/// * **Errors.** [`BoundError`]: a rank that data must come from or go to can not be reached; shares that do not fit the
///   collective, or need not go anywhere; stopped.
/// * **Cost.** About one local max-flow per rank: milliseconds to a second for 1,000 ranks; for all-to-all that of
///   [`AllToAllFlow::of`](crate::AllToAllFlow::of), or of a search for symmetries on large networks with few kinds of links.
pub fn bound(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    stop: &dyn Stop,
) -> Result<Bound, BoundError> {
    bound_found(topology, collective, shares, stop).map(|(bound, _)| bound)
}

/// The same, with what it was found with if that takes a while.
///
/// # Errors
/// As [`bound`].
pub fn bound_found(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    stop: &dyn Stop,
) -> Result<(Bound, Option<Found>), BoundError> {
    if !are_listed(collective.kind(), topology.rank_count()) && *shares == Shares::Equal {
        let (bound, boxes) = bound_of_parts(topology, collective, stop)?;
        return Ok((bound, Some(Found::Boxes(boxes))));
    }
    let mut found = bound::bound(topology, collective, shares, stop)?;
    let is_open = found.lower < found.upper;
    if is_open && collective.kind() == CollectiveKind::Allreduce && topology.has_capable_switch() {
        let reached = match forest::strength_through_switches(topology, Fraction::ZERO, stop) {
            Err(SynthesisError::Stopped) => return Err(BoundError::Stopped),
            // What is not found is not reached.
            reached => reached.unwrap_or(Fraction::ZERO),
        };
        let reached = Rate::new(reached.numerator, reached.denominator).unwrap_or_else(Rate::zero);
        found.lower = found.lower.max(reached);
    }
    Ok((found, None))
}
