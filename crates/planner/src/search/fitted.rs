//! Fewer trees or chunks than the optimal plan has, where a runtime has no room for all of them.
//!
//! Runtimes count chunks, steps and blocks in small tables, and the optimal number of trees per root knows nothing of them.
//! Who states the number has it; else the plan is the best one found that fits, and says what that costs. Where not even one
//! tree per root fits, an allreduce has fewer trees than ranks: sums that go up and down the same ones, with roots at some.

use std::mem;
use std::num::NonZeroU64;

use canopy_plan::{Limit, Needs, WithFewer};
use canopy_schedule::{AllreduceForm, CollectiveKind, FormReason, Shape, Shares};
use canopy_synth::{Algorithm, HeededLimits, REPAIR, SumOptions, SynthesisError, TreeLimits};
use canopy_topology::Rate;

use super::{Attempt, Case, Record, Search, Source};
use crate::error::PlanError;
use crate::planned::{Files, Warning};
use crate::request::Request;

/// Most plans made to find a better one, once one fits. To find that, as many as halve the number of trees to one.
const IMPROVEMENTS_MAX: u32 = 4;

/// Most chunks of a block in an all-to-all that a runtime is to run, unless the order says otherwise.
const RUNTIME_CHUNKS_MAX: u64 = 64;

/// A plan whose files all fit.
pub(crate) struct Fitted {
    pub(crate) attempt: Attempt,
    pub(crate) files: Files,
    /// What it cost to make them fit.
    pub(crate) warning: Option<Warning>,
}

/// The plan that was asked for, or, where a file would exceed its runtime's limits, the best one found with fewer trees.
///
/// Limits on the number of trees are halved, or lowered by what the runtime lacks where that is more, until the files fit;
/// then what lies between the last two is bisected, as far as [`IMPROVEMENTS_MAX`] goes. Within each limit the number of
/// trees is the best one. A number that was stated is never changed.
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

/// The same as [`that_fit`] where the first plan is there.
///
/// # Errors
/// The same.
pub(super) fn fitted(search: &mut Search<'_>, first: Attempt) -> Result<Fitted, PlanError> {
    let case = search.case;
    let limits = limits_by(case.request, case.algorithm);
    let failure = match search.files(&first) {
        Ok(files) => return Ok(Fitted { attempt: first, files, warning: None }),
        Err(failure) => failure,
    };
    let is_stated = limits.trees_per_root.is_some() || limits.chunks.is_some();
    let asked = &case.prepared.shares;
    let trees = Trees::of(&first, asked).filter(|_| !is_stated);
    let (Some(trees), Some(reason)) = (trees, over_limit(&failure)) else { return Err(failure) };
    let wanted = first.verdict.algbw.clone();
    drop(first);

    let found = Fewer { search: &mut *search, limits, too_many: trees.count, failure, is_of_all: false }.best();
    let (attempt, files) = match found {
        Err(failure) if over_limit(&failure).is_some() && may_root_anywhere(&case, trees) => {
            of_all(search, limits, failure)?
        }
        found => found?,
    };
    let warning = warning(&attempt, asked, trees, &wanted, &reason);
    Ok(Fitted { attempt, files, warning })
}

/// Whether an allreduce that has no room for a tree of each rank may have fewer, rooted at some.
fn may_root_anywhere(case: &Case<'_>, trees: Trees) -> bool {
    let is_forest = case.algorithm.resolved(case.request.kind) == Algorithm::Forest;
    case.request.kind == CollectiveKind::Allreduce
        && is_forest
        && trees.counted == Counted::PerRoot
        && case.sums == SumOptions::AUTO
        && case.prepared.shares == Shares::Equal
        && matches!(case.source, Source::Kept { .. } | Source::Searched)
}

/// The best plan found whose sums go up and down the same trees, of which there are at most as many as ranks in all.
///
/// # Errors
/// What even the fewest of these lack, or what was wrong before where the network has none; as [`that_fit`] otherwise.
fn of_all(search: &mut Search<'_>, limits: TreeLimits, before: PlanError) -> Result<(Attempt, Files), PlanError> {
    let sums = SumOptions { form: Some(AllreduceForm::Trees), ..SumOptions::AUTO };
    let mut other = Search {
        case: Case { sums, ..search.case },
        known: None,
        bound: search.bound.clone(),
        certificate: search.certificate.clone(),
        flow: None,
        record: mem::replace(&mut search.record, Record::new()),
    };
    let too_many = u64::from(search.case.prepared.topology.rank_count()).saturating_add(1);
    let mut fewer = Fewer { search: &mut other, limits, too_many, failure: PlanError::Stopped, is_of_all: true };
    let found = fewer.best();
    (search.record, search.bound) = (other.record, other.bound);
    match found {
        Err(PlanError::Synthesis(SynthesisError::NoTrees)) => Err(before),
        found => found,
    }
}

/// The limits that a plan is made within at first: those of the request, and for an all-to-all by flow that a runtime is to run
/// no more chunks than it can be expected to have room for. A plan of canopy's own may have any number of them.
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

/// How many trees or chunks a plan has whose files get smaller with them.
#[derive(Clone, Copy)]
struct Trees {
    count: u64,
    counted: Counted,
}

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// Trees of each root.
    PerRoot,
    /// Trees of all roots together: the planner has chosen how much each rank adds up, and so how many are rooted there.
    OfAll,
    /// Chunks of each share, in steps, or of each block, on paths.
    Chunks,
}

impl Trees {
    fn of(attempt: &Attempt, asked: &Shares) -> Option<Self> {
        let (schedule, ranks) = (&attempt.plan.schedule, attempt.plan.topology.rank_count());
        let of_a_unit = schedule.shape.chunks_per_share();
        let is_by_flow = schedule.algorithm == Algorithm::Flow.name();
        match &schedule.shape {
            Shape::Forest(_) if schedule.shares == *asked => Some(Self { count: of_a_unit, counted: Counted::PerRoot }),
            Shape::Forest(_) => {
                let of_all = schedule.shares.weight_total(ranks).saturating_mul(of_a_unit.into());
                Some(Self { count: u64::try_from(of_all).ok()?, counted: Counted::OfAll })
            }
            // Other schedules in steps have the chunks they have.
            Shape::Steps(_)
                if schedule.algorithm == REPAIR
                    || canopy_baselines::algorithm(&schedule.algorithm)
                        .is_ok_and(|algorithm| algorithm.limits == HeededLimits::Chunks) =>
            {
                Some(Self { count: of_a_unit, counted: Counted::Chunks })
            }
            Shape::Flow(_) if schedule.collective.kind() == CollectiveKind::AllToAll && is_by_flow => {
                Some(Self { count: of_a_unit, counted: Counted::Chunks })
            }
            Shape::Steps(_) | Shape::Flow(_) => None,
        }
    }

    const fn of_what(self) -> &'static str {
        match self.counted {
            Counted::PerRoot => "trees per root",
            Counted::OfAll => "trees in all",
            Counted::Chunks => "chunks per share",
        }
    }
}

/// The limit that a file exceeds, in words; none where that is not what is wrong.
pub(super) fn over_limit(failure: &PlanError) -> Option<String> {
    limit(failure).map(Limit::in_words)
}

fn limit(failure: &PlanError) -> Option<&Limit> {
    match failure {
        PlanError::File { error, .. } => error.limit_by_trees(),
        _ => None,
    }
}

/// What the runtime allows and what is needed of it, where that grows with the number of trees.
fn shortage(failure: &PlanError) -> Option<(u64, u64)> {
    let limit = limit(failure).filter(|limit| limit.with_fewer == WithFewer::InProportion)?;
    Some((limit.limit, limit.need))
}

/// A search for a number of trees.
struct Fewer<'a, 's> {
    search: &'a mut Search<'s>,
    limits: TreeLimits,
    /// The least number that was found not to fit.
    too_many: u64,
    /// Why it does not.
    failure: PlanError,
    /// Whether the trees are those of all roots together because there is no room for one of each.
    is_of_all: bool,
}

impl Fewer<'_, '_> {
    /// The best plan with at most so many trees, with its files if they fit.
    fn attempt(&mut self, trees_max: u64) -> Result<(Attempt, Option<Files>), PlanError> {
        let mut attempt = self.search.attempt(TreeLimits { max_chunks: NonZeroU64::new(trees_max), ..self.limits })?;
        if let Some(form) = attempt.plan.form.as_mut().filter(|_| self.is_of_all) {
            form.reason = FormReason::Limited;
        }
        match self.search.files(&attempt) {
            Ok(files) => Ok((attempt, Some(files))),
            Err(failure) if over_limit(&failure).is_some() => {
                let trees = Trees::of(&attempt, &self.search.case.prepared.shares).map(|trees| trees.count);
                self.too_many = trees.unwrap_or(trees_max).min(trees_max).min(self.too_many);
                self.failure = failure;
                Ok((attempt, None))
            }
            Err(failure) => Err(failure),
        }
    }

    /// The best plan found that fits.
    fn best(&mut self) -> Result<(Attempt, Files), PlanError> {
        let (mut attempt, mut files, fits) = self.halve()?;
        self.improve(&mut attempt, &mut files, fits)?;
        Ok((attempt, files))
    }

    /// A plan that fits, with at most half as many trees as the fewest that do not, and the limit that it was made within.
    fn halve(&mut self) -> Result<(Attempt, Files, u64), PlanError> {
        // Trees of all roots together begin at the limit itself: none were tried.
        let mut next = if self.is_of_all { self.too_many - 1 } else { self.fewer() };
        while self.too_many > 1 {
            if let (attempt, Some(files)) = self.attempt(next)? {
                return Ok((attempt, files, next));
            }
            next = self.fewer();
        }
        // Replaced by what no caller sees: the search ends here.
        Err(mem::replace(&mut self.failure, PlanError::Stopped))
    }

    /// Half of what does not fit, or as much less as the runtime lacks: what is needed of it grows with the trees.
    fn fewer(&self) -> u64 {
        let half = self.too_many / 2;
        let part = shortage(&self.failure).map_or(half, |(limit, need)| {
            let fitting = u128::from(self.too_many) * u128::from(limit) / u128::from(need.max(1));
            u64::try_from(fitting).unwrap_or(half)
        });
        part.clamp(half.min(1), half.max(1))
    }

    /// Replaces a plan that fits by better ones with more trees.
    fn improve(&mut self, best: &mut Attempt, files: &mut Files, mut fits: u64) -> Result<(), PlanError> {
        for _ in 0..IMPROVEMENTS_MAX {
            let middle = fits.midpoint(self.too_many);
            if middle <= fits {
                break;
            }
            let (attempt, fitting) = self.attempt(middle)?;
            match fitting {
                Some(better) if attempt.verdict.algbw > best.verdict.algbw => {
                    (*best, *files) = (attempt, better);
                    fits = middle;
                }
                Some(_) => fits = middle,
                None => {}
            }
        }
        Ok(())
    }
}

fn warning(attempt: &Attempt, asked: &Shares, wanted_trees: Trees, wanted: &Rate, reason: &str) -> Option<Warning> {
    let achieved = &attempt.verdict.algbw;
    let (trees, ratio) = (Trees::of(attempt, asked)?, achieved.ratio_to(wanted)?);
    let other =
        if trees.counted == wanted_trees.counted { "" } else { wanted_trees.of_what().trim_start_matches("trees") };
    let text = format!(
        "{reason}: planned with {} {} instead of {}{other}, at {ratio} of their rate; set {} to choose the number",
        trees.count,
        trees.of_what(),
        wanted_trees.count,
        if trees.counted == Counted::Chunks { "chunks" } else { "trees_per_root" },
    );
    Some(Warning::new("FEWER_TREES", text))
}
