//! Judges canopy's own plan file.

use std::time::Duration;

use canopy_plan::{Expected, Format, PlanFile, Verdict, read_plan};
use canopy_schedule::{certified_bound, judge_until};
use canopy_synth::BoundError;
use canopy_topology::{Rank, Rate, TopologyLimits, content_hash};

use crate::clock::Deadline;
use crate::exit::words;

use super::Judged;

/// Longest search for a proof that a rate is reachable which the schedule does not reach itself.
const LOWER_SEARCH_MAX: Duration = Duration::from_secs(30);

/// Reads the plan and derives again everything it states.
pub(super) fn judge(bytes: &[u8], limits: &TopologyLimits, expected: &Expected<'_>) -> Judged {
    let mut judged = Judged { format: Some(Format::Json), ..Judged::default() };
    let report = &mut judged.verdict;
    let plan = match read_plan(bytes, limits) {
        Ok(plan) => plan,
        Err(error) => {
            let place = error.field().unwrap_or_else(|| "file".to_owned());
            report.record_at("file", Some((words(&error), place)));
            return judged;
        }
    };
    report.record("file", None);
    let collective = plan.schedule.collective;
    let root = collective.root().map(Rank::number);
    report.collective = Some(collective.kind().name());
    report.root = root;
    report.ranks = Some(plan.topology.rank_count());
    judged.not_repeated.extend(proof_by_search(&plan.schedule.algorithm));
    let achieved = achieved(&plan, report);
    let bound = bound(&plan, report);
    if let (Some(achieved), Some(bound)) = (&achieved, &bound) {
        report.optimality = achieved.ratio_to(bound).map(|ratio| ratio.to_string());
        let above = achieved > bound;
        let words = || format!("the schedule's {achieved} bytes/s are above the proven bound of {bound}: one is wrong");
        report.record("certificate", above.then(words));
        reachable(&plan, achieved, report);
    }
    report.algbw = achieved;
    if let Some(topology) = expected.topology {
        let (wanted, found) = (content_hash(topology), content_hash(&plan.topology));
        let words = || format!("the plan is for the topology with hash {found}, not for {wanted}");
        report.record("topology", (wanted != found).then(words));
    }
    report.record_collective(expected, collective.kind(), root);
    judged
}

/// What a planner may have proven of a schedule of this algorithm by a search, which no file says anything of.
fn proof_by_search(algorithm: &str) -> Option<String> {
    let algorithm = canopy_baselines::algorithm(algorithm).ok()?;
    algorithm.claim.map(|claim| format!("{claim} of {algorithm}"))
}

/// algbw of the schedule by its transfers; `None` if it is not a right schedule at all.
fn achieved(plan: &PlanFile, report: &mut Verdict) -> Option<Rate> {
    match judge_until(&plan.topology, &plan.schedule, &|| false) {
        Ok(verdict) => {
            for check in verdict.checks {
                report.record(check, None);
            }
            let (stated, found) = (&plan.achieved, verdict.algbw);
            let words = || format!("the file states {stated} bytes/s, but the schedule reaches {found}");
            report.record("load", (*stated != found).then(words));
            // Files of earlier programs say nothing of it.
            let is_wrong = plan.in_network.is_some() && plan.in_network != verdict.in_network;
            let words = || "the file states other savings by switches than the schedule allows".to_owned();
            report.record("load", is_wrong.then(words));
            Some(found)
        }
        Err(error) => {
            report.record(error.check(), Some(words(&error)));
            None
        }
    }
}

/// Checks that what the file calls reachable is: the schedule reaches it, or the search for bounds finds it again, as a
/// certificate of the upper bound says nothing of it.
fn reachable(plan: &PlanFile, achieved: &Rate, report: &mut Verdict) {
    let stated = &plan.bound.lower;
    if stated <= achieved {
        return;
    }
    let deadline = Deadline::after(Some(LOWER_SEARCH_MAX));
    let (collective, shares) = (plan.schedule.collective, &plan.schedule.shares);
    let objection = match canopy_synth::bound(&plan.topology, collective, shares, &|| deadline.is_past()) {
        Ok(found) if *stated <= found.lower => None,
        Ok(found) => {
            let known = if found.lower > *achieved { &found.lower } else { achieved };
            Some(format!("the file calls {stated} bytes/s reachable, but only {known} are known to be"))
        }
        Err(BoundError::Stopped) => {
            let message = format!("no time was left to see whether {stated} bytes/s are reachable, as the file says");
            return report.warn("certificate", message);
        }
        Err(error) => {
            Some(format!("the file calls {stated} bytes/s reachable, which cannot be shown: {}", words(&error)))
        }
    };
    report.record("certificate", objection);
}

/// Bound by the certificate alone; `None` if it proves nothing.
fn bound(plan: &PlanFile, report: &mut Verdict) -> Option<Rate> {
    match certified_bound(&plan.topology, plan.schedule.collective, &plan.schedule.shares, &plan.bound.certificate) {
        Ok(proven) => {
            let (lower, upper) = (&plan.bound.lower, &plan.bound.upper);
            let wrong = if *upper != proven {
                Some(format!("the file states a bound of {upper} bytes/s, but its certificate proves {proven}"))
            } else if lower > upper {
                Some(format!("the file calls {lower} bytes/s reachable, above its own bound of {upper}"))
            } else {
                None
            };
            report.record("certificate", wrong);
            Some(proven)
        }
        Err(error) => {
            report.record("certificate", Some(words(&error)));
            None
        }
    }
}
