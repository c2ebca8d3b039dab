//! The first step: what is kept for the shape, or the bound.

use std::sync::Arc;

use canopy_plan::PlanFile;
use canopy_schedule::{Bound, CollectiveKind};
use canopy_synth::{Algorithm, Found, bound_found, quick_bound};
use canopy_topology::Rate;

use super::{Case, Record, Search, Source, attempt, first_limits};
use crate::bounded::proven;
use crate::context::Note;
use crate::error::PlanError;

/// Most ranks of an all-to-all by `direct` whose best bound is searched for.
const SEARCHED_RANKS_MAX: u32 = 512;

/// A search that knows its bound, and the plan that is kept for the shape, if there is one.
///
/// # Errors
/// No plan can be, a bound that is not proven, nothing known where nothing may be searched for, or stopped.
pub(crate) fn start(case: Case<'_>) -> Result<Search<'_>, PlanError> {
    let context = case.context;
    let started = context.clock.now_ms();
    context.watch.stage("bound", 0, 1);
    if let Some((known, bound)) = known(&case)? {
        let certificate = known.bound.certificate.clone();
        let mut record = Record::new();
        record.timings.bound_ms = context.since(started);
        return Ok(Search { case, known: Some(known), bound, certificate, found: None, record });
    }
    if matches!(case.source, Source::Kept { may_search: false, .. }) {
        return Err(PlanError::NotKnown);
    }
    let mut record = Record::new();
    let (collective, shares) = match case.labels() {
        Some(labels) => (labels.collective, &labels.shares),
        None => (case.prepared.collective, &case.prepared.shares),
    };
    let flow = attempt::all_to_all_flow(&case, shares, &mut record.rejections)?;
    // The flow of an all-to-all is found with its bound, and is most of the schedule.
    let (flow, synthesis_ms) = flow.map_or((None, 0.0), |(flow, millis)| (Some(flow), millis));
    let found = match flow {
        Some(flow) => Ok((flow.bound(case.network), Some(Found::Flow(Box::new(flow))))),
        None if wants_quick_bound(&case) => quick_bound(case.network, shares, context.stop).map(|bound| (bound, None)),
        None => bound_found(case.network, collective, shares, context.stop),
    };
    let (mut found, with) = found.map_err(PlanError::Bound)?;
    if case.request.kind == CollectiveKind::AllToAll {
        // Only what a plan reaches can be seen without a solver.
        found.lower = Rate::zero();
    }
    let bound = in_own_labels(&case, &found)?;
    record.timings.bound_ms = context.since(started) - synthesis_ms;
    record.timings.synthesis_ms = synthesis_ms;
    Ok(Search { case, known: None, bound, certificate: found.certificate, found: with, record })
}

/// Whether the bound is counted instead of searched for, which would take longer than the plan itself: plans by `direct`
/// stand in for others, and are wanted at once.
fn wants_quick_bound(case: &Case<'_>) -> bool {
    let Case { request, prepared, algorithm, .. } = case;
    request.kind == CollectiveKind::AllToAll
        && *algorithm == Algorithm::Direct
        && prepared.topology.rank_count() > SEARCHED_RANKS_MAX
}

/// The plan that is kept, and its bound in the caller's labels. One whose bound is wrong is put aside.
fn known(case: &Case<'_>) -> Result<Option<(Arc<PlanFile>, Bound)>, PlanError> {
    let Some(labels) = case.labels() else { return Ok(None) };
    let (schedules, limits) = (case.context.schedules, first_limits(case.request));
    let Some(plan) = labels.answer(schedules, case.request, case.sums, limits) else { return Ok(None) };
    match in_own_labels(case, &plan.bound) {
        Ok(bound) => Ok(Some((plan, bound))),
        Err(reason) => {
            let key = labels.key(case.request, case.sums, limits);
            case.context.watch.note(Note::WrongSchedule { key: &key, reason: &reason });
            schedules.quarantine(&key);
            Ok(None)
        }
    }
}

/// A bound that was found, in the caller's labels, with the certificate's own word for it.
fn in_own_labels(case: &Case<'_>, found: &Bound) -> Result<Bound, PlanError> {
    let own = case.labels().map_or_else(|| found.clone(), |labels| labels.bound(found));
    proven(&case.prepared.topology, case.prepared.collective, &case.prepared.shares, own)
}
