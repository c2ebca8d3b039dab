//! Which plan `auto` takes: that of the best rate, or one that is faster at the size of the messages.
//!
//! Rates say what large messages take. Where the request states a size, plans by all other algorithms that can be made
//! in about a second are simulated at it, and the fastest one is taken; that of the best rate where others are no
//! faster, and the first of equals. Where it states none, that is done only if latencies count. What cannot be faster,
//! by its steps or by what its busiest link carries, is not simulated, and not even made where that is known before.
//! What would take too long to make or to simulate is named in a note, if it could be faster by a ten-thousandth.
//!
//! | module | what it knows |
//! |---|---|
//! | `distance` | how many messages must follow one another |
//! | `rivals` | what can be compared, and what that takes |
//! | `timer` | how long plans take |
//! | `note` | what is said of plans that were not compared |

mod distance;
mod note;
mod rivals;
mod timer;

use canopy_plan::TargetReason;
use canopy_schedule::CollectiveKind;
use canopy_simulate::PIECE_BYTES_USUAL;
use canopy_synth::{Algorithm, SumOptions, TreeLimits};
use canopy_topology::Rate;

use self::rivals::{Field, Rival};
use self::timer::{Time, Timer};
use super::fitted::{self, Fitted};
use super::{Attempt, Case, Search, Source};
use crate::error::PlanError;
use crate::request::Request;

/// Latencies count if all hops of the deepest tree, so many times, take longer than the bytes do: a plan without any
/// latency would be faster by one part in seventeen at least.
const LATENCY_FACTOR: u128 = 16;

/// Most transfers of a plan that is compared: it is simulated in some tenths of a second.
const TRANSFERS_MAX: usize = 1 << 18;

/// The plan for a request: by the algorithm that was asked for, or, where that is left open, the faster one at its
/// size.
///
/// # Errors
/// As [`fitted::that_fit`].
pub(crate) fn best(search: &mut Search<'_>) -> Result<Fitted, PlanError> {
    let fitted = match fitted::that_fit(search) {
        Ok(fitted) => fitted,
        Err(failure) => return otherwise(search, failure),
    };
    let case = search.case;
    let by_latency = latency_counts(&case, &fitted.attempt);
    if !rivals::is_open(&case) || !(case.request.is_size_stated() || by_latency) {
        return Ok(fitted);
    }
    if !rivals::is_timed(&fitted.attempt) {
        let is_worth = is_slowed(&case, &fitted.attempt) && case.request.is_size_stated();
        let note = if is_worth { note::of_all(&case, &Field::of(&case)) } else { None };
        return Ok(Fitted { note, ..fitted });
    }
    let field = Field::of(&case);
    let timer = Timer::of(&case);
    let time = match timer.time_ps(&fitted.attempt) {
        Err(failure) if failure.fault().is_some() => {
            // It is checked all the same, and any other would be compared with a time that is not known.
            search.record.rejections.note(case.algorithm, &failure, case.context.watch);
            None
        }
        time => time?,
    };
    let Some(time) = time else { return Ok(Fitted { note: note::of_all(&case, &field), ..fitted }) };
    if timer.least_ps(&search.bound.upper, field.messages_min) >= time {
        return Ok(fitted);
    }
    if matches!(case.source, Source::Kept { may_search: false, .. }) && !by_latency {
        // It takes a planner, who has more time.
        return Err(PlanError::NotKnown);
    }
    compared(search, field, &timer, (time, fitted))
}

/// The fastest of the plans in a field and this one, which takes so long.
fn compared(
    search: &mut Search<'_>,
    field: Field,
    timer: &Timer<'_>,
    mut best: (u64, Fitted),
) -> Result<Fitted, PlanError> {
    let mut budget = field.budget();
    let mut left = Vec::new();
    for rival in field.rivals {
        let least_ps = timer.least_ps(&search.bound.upper, rival.steps_min);
        if least_ps >= best.0 {
            continue;
        }
        if !budget.takes(&rival, (least_ps, best.0)) {
            left.push((rival, least_ps));
            continue;
        }
        let Rival { algorithm, .. } = rival;
        let mut other = search.by(algorithm);
        let found = against(&mut other, best.0, timer);
        search.take_over(other.record);
        match found {
            Ok(Against::Faster(time, fitted)) => {
                best = (time, *fitted);
                // The schedule of the best rate has no part in the plan.
                search.record.schedules.clear();
            }
            Err(PlanError::Stopped) => return Err(PlanError::Stopped),
            Ok(Against::Slower) => {}
            Ok(Against::TooLarge) => left.push((rival, least_ps)),
            // It has no part in the plan, whose request need not suffer for it: such as one for which a runtime has no
            // room, or a wrong one.
            Err(failure) => search.record.rejections.note(algorithm, &failure, search.case.context.watch),
        }
    }
    let (time, fitted) = best;
    let note = note::of(&search.case, &left, time);
    Ok(Fitted { note, ..fitted })
}

/// What is planned where there is no plan of the best rate, if there is a way out.
///
/// # Errors
/// Why there is no plan of the best rate; stopped.
fn otherwise(search: &mut Search<'_>, failure: PlanError) -> Result<Fitted, PlanError> {
    let Some(algorithm) = way_out(search.case.request, &failure) else { return Err(failure) };
    let mut other = search.by(algorithm);
    let fitted = fitted::that_fit(&mut other);
    if let Err(failure) = &fitted
        && !failure.is_cancellation()
    {
        other.record.rejections.note(algorithm, failure, search.case.context.watch);
    }
    search.take_over(other.record);
    search.record.schedules.clear();
    fitted.map_err(|other| if matches!(other, PlanError::Stopped) { other } else { failure })
}

/// A rival beside the fastest plan so far.
enum Against {
    /// Its time and its plan with the files.
    Faster(u64, Box<Fitted>),
    Slower,
    /// It is not known how long its plan takes.
    TooLarge,
}

/// A rival's plan, beside a plan that takes so long.
fn against(search: &mut Search<'_>, best_ps: u64, timer: &Timer<'_>) -> Result<Against, PlanError> {
    let first = fitted::first(search)?;
    let time = timer.time_below(&first, best_ps)?;
    let Time::Less(time_ps) = time else { return Ok(Against::without_time(time)) };
    let fitted = fitted::fitted(search, first)?;
    if fitted.warning.is_none() {
        return Ok(Against::Faster(time_ps, Box::new(fitted)));
    }
    // With fewer trees it is another plan.
    Ok(match timer.time_below(&fitted.attempt, best_ps)? {
        Time::Less(time_ps) => Against::Faster(time_ps, Box::new(fitted)),
        time => Against::without_time(time),
    })
}

impl Against {
    fn without_time(time: Time) -> Self {
        if time == Time::Unknown { Self::TooLarge } else { Self::Slower }
    }
}

/// What is planned where a runtime can not have the plan of the best rate, if the request leaves the choice to the
/// planner: routes of one chunk each may have room where the least that a flow needs has not, and an allreduce in steps
/// adds up as much at every rank, where trees may have chosen otherwise.
fn way_out(request: &Request, failure: &PlanError) -> Option<Algorithm> {
    let is_open = request.algorithm == Algorithm::Auto && request.limits.without_tolerance() == TreeLimits::NONE;
    let has_uneven_sums = matches!(failure, PlanError::File { error, .. } if error.reason == TargetReason::Shares)
        && request.shares.is_empty()
        && request.sums == SumOptions::AUTO;
    match request.kind {
        CollectiveKind::AllToAll if is_open && fitted::over_limit(failure).is_some() => Some(Algorithm::Direct),
        CollectiveKind::Allreduce if is_open && has_uneven_sums => Some(Algorithm::Bfb),
        _ => None,
    }
}

/// Whether the first bytes take over a hundredth of the time that all of them take to come through the deepest tree,
/// piece by piece: then another plan could be faster by about as much.
fn is_slowed(case: &Case<'_>, attempt: &Attempt) -> bool {
    let (links, ranks) = (case.prepared.topology.links(), case.prepared.topology.rank_count());
    let latency = links.iter().map(|link| link.latency.nanos()).max().unwrap_or(0);
    let slowest = links.iter().map(|link| link.capacity.bytes_per_sec()).min().unwrap_or(u64::MAX);
    let size = u128::from(case.request.size_bytes_max);
    let shares = if matches!(case.request.kind, CollectiveKind::Broadcast | CollectiveKind::Reduce) {
        1
    } else {
        u128::from(ranks)
    };
    let chunks = shares * u128::from(attempt.plan.schedule.shape.chunks_per_share());
    let piece = (size / chunks.max(1)).min(PIECE_BYTES_USUAL.into());
    let hop_ns = u128::from(case.request.alpha_ns.saturating_add(latency))
        + (piece * 1_000_000_000).div_ceil(u128::from(slowest.max(1)));
    let hops_ns = hop_ns.saturating_mul(u128::from(attempt.verdict.depth_max));
    Rate::new(size * 1_000_000_000, (hops_ns * 100).max(1)).is_some_and(|rate| attempt.verdict.algbw > rate)
}

/// Whether a plan of fewer hops could be faster by a part worth a simulation.
fn latency_counts(case: &Case<'_>, attempt: &Attempt) -> bool {
    let latency = case.prepared.topology.links().iter().map(|link| link.latency.nanos()).max().unwrap_or(0);
    let waiting = u128::from(attempt.verdict.depth_max)
        * u128::from(case.request.alpha_ns.saturating_add(latency))
        * LATENCY_FACTOR;
    // The rate at which the bytes take as long as all hops, in nanoseconds, so many times.
    let balance = Rate::new(u128::from(case.request.size_bytes_max) * 1_000_000_000, waiting);
    balance.is_some_and(|balance| attempt.verdict.algbw > balance)
}
