//! Fewer trees or chunks than the optimal plan has, where a runtime has no room for all of them.
//!
//! Runtimes count chunks, steps and blocks in small tables, and the optimal number of trees per root knows nothing of
//! them. Who states the number has it; else the plan is the best one found that fits, and says what that costs. An
//! allreduce may have fewer trees than ranks: sums that go up and down the same ones, with roots at some.
//!
//! | module | what it does |
//! |---|---|
//! | `trees` | what a plan has many of |
//! | `fewer` | looks for the number of them that fits |

mod fewer;
mod trees;

use std::mem;
use std::num::NonZeroU64;

use canopy_plan::{Limit, Needs, TargetReason};
use canopy_schedule::{AllreduceForm, CollectiveKind, Shares};
use canopy_synth::{Algorithm, SumOptions, SynthesisError, TreeLimits};
use canopy_topology::Rate;

use self::fewer::Fewer;
use self::trees::{Counted, Trees};
use super::{Attempt, Case, Record, Search, Source};
use crate::error::PlanError;
use crate::planned::{Files, Warning};
use crate::request::Request;

/// Most chunks of a block in an all-to-all that a runtime is to run, unless the order says otherwise.
const RUNTIME_CHUNKS_MAX: u64 = 64;

/// A plan this near to a rate, as a fraction, is good enough not to look for a better one where files are large.
const NEAR: (u32, u32) = (99, 100);

/// The same where several plans of large files would have to be made to find it.
const VERY_NEAR: (u32, u32) = (999, 1000);

/// Most transfers of a plan whose files are made without looking for a smaller one first: with more, they take half a
/// minute and some hundred megabytes.
const TRANSFERS_USUAL: u64 = 1 << 19;

/// Transfers of the largest plan that is tried first where there are fewer trees than ranks; files of more are large.
const TRANSFERS_FEW: u64 = 1 << 16;

/// A plan whose files all fit.
pub(crate) struct Fitted {
    pub(crate) attempt: Attempt,
    pub(crate) files: Files,
    /// What it cost to make them fit.
    pub(crate) warning: Option<Warning>,
    /// What it was not compared with.
    pub(crate) note: Option<Warning>,
}

/// The plan that was asked for, or, where a file would exceed its runtime's limits, the best one found with fewer
/// trees.
///
/// Limits on the number of trees are halved, or lowered by what the runtime lacks where that is more, until the files
/// fit; then what lies between the last two is bisected, for a few plans. Where files are large, one tree of each root
/// comes before all others, and stays if it is near enough. Within each limit the number of trees is the
/// best one. A number that was stated is never changed.
///
/// * **Errors.** Why there is no plan; where not even the fewest trees tried fit, what is missing for those.
pub(crate) fn that_fit(search: &mut Search<'_>) -> Result<Fitted, PlanError> {
    let first = first(search)?;
    fitted(search, first)
}

/// The plan within the limits of the request, whether or not its files fit.
///
/// # Errors
/// Why there is no plan.
pub(super) fn first(search: &mut Search<'_>) -> Result<Attempt, PlanError> {
    search.attempt(limits_by(search.case.request, search.case.algorithm))
}

/// What is looked for.
struct Goal {
    limits: TreeLimits,
    /// What the plan without a file has.
    trees: Trees,
    /// Its rate.
    wanted: Rate,
    /// The rate of a plan that is near enough.
    enough: Rate,
    /// Whether the files of the plan are made from more than a few transfers.
    is_large: bool,
}

/// A plan with its files.
type Made = Box<(Attempt, Files)>;

/// The same as [`that_fit`] where the first plan is there.
///
/// # Errors
/// The same.
pub(super) fn fitted(search: &mut Search<'_>, first: Attempt) -> Result<Fitted, PlanError> {
    let case = search.case;
    let limits = limits_by(case.request, case.algorithm);
    let is_stated = limits.trees_per_root.is_some() || limits.chunks.is_some();
    let trees = Trees::of(&first, &case.prepared.shares).filter(|_| !is_stated);
    let goal = trees.map(|trees| {
        let wanted = first.verdict.algbw.clone();
        Goal { limits, trees, enough: near(&wanted, NEAR), wanted, is_large: first.transfers() > TRANSFERS_FEW }
    });
    let mut of_all = None;
    if let (Some(goal), Some(transfers)) = (&goal, many_transfers(&case, &first)) {
        let words = format!(
            "files of more than {TRANSFERS_USUAL} transfers take long to check, and the best plan has {transfers}"
        );
        match economical(search, goal, transfers)? {
            Economical::Found(made) => return Ok(goal.fitted(&case, made, &words)),
            Economical::None(tried) => of_all = tried,
        }
    }
    let failure = match search.files(&first) {
        Ok(files) => {
            note_bug(search, of_all);
            return Ok(Fitted { attempt: first, files, warning: None, note: None });
        }
        Err(failure) => failure,
    };
    drop(first);
    let (Some(goal), Some(words)) = (goal, over_limit(&failure)) else {
        note_bug(search, of_all);
        return Err(failure);
    };
    let made = with_fewer(search, &goal, failure, of_all)?;
    Ok(goal.fitted(&case, made, &words))
}

/// Notes that a plan is not used because of a bug.
fn note_bug(search: &mut Search<'_>, unused: Option<Result<Made, PlanError>>) {
    if let Some(Err(failure)) = unused {
        let Case { request, algorithm, context, .. } = search.case;
        search.record.rejections.note_bug(algorithm.resolved(request.kind), &failure, context.watch);
    }
}

/// How many transfers the files of a plan are made from, if they are many.
fn many_transfers(case: &Case<'_>, first: &Attempt) -> Option<u64> {
    let is_run = case.request.outputs.iter().any(|output| output.needs() == Needs::Transfers);
    let transfers = first.transfers();
    (is_run && transfers > TRANSFERS_USUAL && may_search_more(case)).then_some(transfers)
}

/// What came of looking for a smaller plan.
enum Economical {
    /// It is near enough.
    Found(Made),
    /// There is none that is; what came of trees of all roots together, if they were tried.
    None(Option<Result<Made, PlanError>>),
}

/// A plan of fewer trees whose files are made in a second or so.
fn economical(search: &mut Search<'_>, goal: &Goal, transfers: u64) -> Result<Economical, PlanError> {
    if may_root_anywhere(&search.case, goal.trees) {
        return Ok(match of_all(search, goal) {
            Ok(made) if made.0.verdict.algbw >= goal.enough => Economical::Found(made),
            tried => Economical::None(Some(tried)),
        });
    }
    let count = u128::from(goal.trees.count) * u128::from(TRANSFERS_USUAL) / u128::from(transfers.max(1));
    let Some(count) = u64::try_from(count).ok().and_then(NonZeroU64::new) else { return Ok(Economical::None(None)) };
    let attempt = search.attempt(TreeLimits { max_chunks: Some(count), ..goal.limits })?;
    if attempt.verdict.algbw < goal.enough {
        return Ok(Economical::None(None));
    }
    match search.files(&attempt) {
        Ok(files) => Ok(Economical::Found(Box::new((attempt, files)))),
        Err(failure) if over_limit(&failure).is_some() => Ok(Economical::None(None)),
        Err(failure) => Err(failure),
    }
}

/// The best plan found of fewer trees.
///
/// Where sums may go up and down the same trees, rooted at some ranks, those are tried before fewer trees of each rank:
/// all that runtimes count grows with the trees of all ranks. Others are tried only if these are not near the rate.
fn with_fewer(
    search: &mut Search<'_>,
    goal: &Goal,
    failure: PlanError,
    tried: Option<Result<Made, PlanError>>,
) -> Result<Made, PlanError> {
    let of_each = |search: &mut Search<'_>| {
        let (limits, too_many) = (goal.limits, goal.trees.count);
        let enough = near(&goal.wanted, VERY_NEAR);
        Fewer {
            search,
            limits,
            too_many,
            failure,
            enough: &enough,
            few_first: goal.is_large && goal.trees.counted == Counted::PerRoot,
            first_of_all: None,
        }
        .best()
        .map(Box::new)
    };
    if !may_root_anywhere(&search.case, goal.trees) {
        return of_each(search);
    }
    let of_all = match tried.unwrap_or_else(|| of_all(search, goal)) {
        Ok(made) if made.0.verdict.algbw >= goal.enough => return Ok(made),
        Err(failure) if !is_ordinary(&failure) => return Err(failure),
        of_all => of_all,
    };
    match (of_all, of_each(search)) {
        (_, Err(failure)) if !is_ordinary(&failure) => Err(failure),
        (Ok(of_all), Ok(of_each)) if of_each.0.verdict.algbw <= of_all.0.verdict.algbw => Ok(of_all),
        (_, Ok(of_each)) => Ok(of_each),
        (Ok(of_all), Err(_)) => Ok(of_all),
        // What is missing for the fewest of all.
        (Err(of_all), Err(_)) if over_limit(&of_all).is_some() => Err(of_all),
        (Err(_), Err(of_each)) => Err(of_each),
    }
}

/// Whether it says that there is no such plan, or that it does not fit.
fn is_ordinary(failure: &PlanError) -> bool {
    failure.fault().is_none()
        && matches!(failure, PlanError::Synthesis(_) | PlanError::File { .. })
        && !failure.is_cancellation()
}

/// Whether plans other than the first can be made.
const fn may_search_more(case: &Case<'_>) -> bool {
    matches!(case.source, Source::Kept { .. } | Source::Searched)
}

/// Whether an allreduce with a tree of each rank may have fewer, rooted at some.
fn may_root_anywhere(case: &Case<'_>, trees: Trees) -> bool {
    let is_forest = case.algorithm.resolved(case.request.kind) == Algorithm::Forest;
    case.request.kind == CollectiveKind::Allreduce
        && is_forest
        && trees.counted == Counted::PerRoot
        && case.sums == SumOptions::AUTO
        && case.prepared.shares == Shares::Equal
        && may_search_more(case)
}

/// The best plan found whose sums go up and down the same trees, of which there are at most as many as ranks in all.
///
/// # Errors
/// What even the fewest of these lack, or that the network has none; as [`that_fit`] otherwise.
fn of_all(search: &mut Search<'_>, goal: &Goal) -> Result<Made, PlanError> {
    let sums = SumOptions { form: Some(AllreduceForm::Trees), ..SumOptions::AUTO };
    let mut other = Search {
        case: Case { sums, ..search.case },
        known: None,
        bound: search.bound.clone(),
        certificate: search.certificate.clone(),
        found: None,
        record: mem::replace(&mut search.record, Record::new()),
    };
    let ranks = u64::from(search.case.prepared.topology.rank_count());
    let first = (TRANSFERS_FEW / (2 * ranks.saturating_sub(1)).max(1)).clamp(1, ranks.max(1));
    let failure = PlanError::Synthesis(SynthesisError::NoTrees);
    let (limits, too_many, enough) = (goal.limits, ranks.saturating_add(1), &goal.enough);
    let found =
        Fewer { search: &mut other, limits, too_many, failure, enough, few_first: false, first_of_all: Some(first) }
            .best();
    (search.record, search.bound) = (other.record, other.bound);
    found.map(Box::new)
}

/// The limits that a plan is made within at first: those of the request, and for an all-to-all by flow that a runtime
/// is to run no more chunks than it can be expected to have room for. A plan of canopy's own may have any number of
/// them.
pub(crate) fn first_limits(request: &Request) -> TreeLimits {
    limits_by(request, request.algorithm)
}

/// The same where this algorithm makes the plan.
fn limits_by(request: &Request, algorithm: Algorithm) -> TreeLimits {
    let limits = request.limits;
    let is_flow = request.kind == CollectiveKind::AllToAll && algorithm.resolved(request.kind) == Algorithm::Flow;
    let is_open = limits.chunks.is_none() && limits.max_chunks.is_none();
    // A route says where its chunks begin and how many they are, whatever their number.
    let is_run = request.outputs.iter().any(|output| output.needs() == Needs::Transfers);
    let max_chunks = if is_flow && is_open && is_run { NonZeroU64::new(RUNTIME_CHUNKS_MAX) } else { limits.max_chunks };
    TreeLimits { max_chunks, ..limits }
}

/// A rate that is near enough to another.
fn near(wanted: &Rate, (part, whole): (u32, u32)) -> Rate {
    let (numerator, denominator) = wanted.parts();
    Rate::new(numerator * part, denominator * whole).unwrap_or_else(|| wanted.clone())
}

/// The limit that a file exceeds, in words, where a plan of fewer trees may not; none where that is not what is wrong.
pub(super) fn over_limit(failure: &PlanError) -> Option<String> {
    match failure {
        PlanError::File { error, .. } if error.reason == TargetReason::TooLargeToRun => Some(error.to_string()),
        _ => limit(failure).map(Limit::in_words),
    }
}

fn limit(failure: &PlanError) -> Option<&Limit> {
    match failure {
        PlanError::File { error, .. } => error.limit_by_trees(),
        _ => None,
    }
}

impl Goal {
    /// A plan that was made in place of the one without files.
    fn fitted(&self, case: &Case<'_>, made: Made, reason: &str) -> Fitted {
        let (attempt, files) = *made;
        let warning = self.warning(&attempt, &case.prepared.shares, reason);
        Fitted { attempt, files, warning, note: None }
    }

    fn warning(&self, attempt: &Attempt, asked: &Shares, reason: &str) -> Option<Warning> {
        let achieved = &attempt.verdict.algbw;
        let (trees, ratio) = (Trees::of(attempt, asked)?, achieved.ratio_to(&self.wanted)?);
        let other =
            if trees.counted == self.trees.counted { "" } else { self.trees.of_what().trim_start_matches("trees") };
        let text = format!(
            "{reason}: planned with {} {} instead of {}{other}, at {ratio} of their rate; set {} to choose the number",
            trees.count,
            trees.of_what(),
            self.trees.count,
            if trees.counted == Counted::Chunks { "chunks" } else { "trees_per_root" },
        );
        Some(Warning::new("FEWER_TREES", text))
    }
}
