//! The search for a number of trees whose files fit.

use std::mem;
use std::num::NonZeroU64;

use canopy_plan::WithFewer;
use canopy_schedule::FormReason;
use canopy_synth::TreeLimits;
use canopy_topology::Rate;

use super::trees::Trees;
use super::{TRANSFERS_FEW, limit, over_limit};
use crate::error::PlanError;
use crate::planned::Files;
use crate::search::{Attempt, Search};

/// Most plans made to find a better one, once one fits. To find that, as many as halve the number of trees to one.
const IMPROVEMENTS_MAX: u32 = 4;

/// A search for a number of trees.
pub(super) struct Fewer<'a, 's> {
    pub(super) search: &'a mut Search<'s>,
    pub(super) limits: TreeLimits,
    /// The least number that was found not to fit.
    pub(super) too_many: u64,
    /// Why it does not.
    pub(super) failure: PlanError,
    /// A rate that is good enough not to make more large files.
    pub(super) enough: &'a Rate,
    /// Whether one tree of each root is tried before more: files are large, and most of what comes before would be for
    /// nothing.
    pub(super) few_first: bool,
    /// Where the trees are those of all roots together: how many are tried first, as none were before.
    pub(super) first_of_all: Option<u64>,
}

/// A plan that was tried.
enum Tried {
    Fits(Box<(Attempt, Files)>),
    TooLarge,
    /// It is no better than one that fits, whether it does or not.
    NoBetter,
}

/// What the runtime allows and what is needed of it, where that grows with the number of trees.
fn shortage(failure: &PlanError) -> Option<(u64, u64)> {
    let limit = limit(failure).filter(|limit| limit.with_fewer == WithFewer::InProportion)?;
    Some((limit.limit, limit.need))
}

impl Fewer<'_, '_> {
    /// The best plan with at most so many trees, with its files if they fit and it is faster than this.
    fn attempt(&mut self, trees_max: u64, than: Option<&Rate>) -> Result<Tried, PlanError> {
        let mut attempt = self.search.attempt(TreeLimits { max_chunks: NonZeroU64::new(trees_max), ..self.limits })?;
        if than.is_some_and(|than| attempt.verdict.algbw <= *than) {
            return Ok(Tried::NoBetter);
        }
        if let Some(form) = attempt.plan.form.as_mut().filter(|_| self.first_of_all.is_some()) {
            form.reason = FormReason::Limited;
        }
        match self.search.files(&attempt) {
            Ok(files) => Ok(Tried::Fits(Box::new((attempt, files)))),
            Err(failure) if over_limit(&failure).is_some() => {
                let trees = Trees::of(&attempt, &self.search.case.prepared.shares).map(|trees| trees.count);
                self.too_many = trees.unwrap_or(trees_max).min(trees_max).min(self.too_many);
                self.failure = failure;
                Ok(Tried::TooLarge)
            }
            Err(failure) => Err(failure),
        }
    }

    /// The best plan found that fits.
    pub(super) fn best(&mut self) -> Result<(Attempt, Files), PlanError> {
        let (mut attempt, mut files, fits) = self.halve()?;
        self.improve(&mut attempt, &mut files, fits)?;
        Ok((attempt, files))
    }

    /// A plan that fits, with at most half as many trees as the fewest that do not, and the limit that it was made
    /// within.
    fn halve(&mut self) -> Result<(Attempt, Files, u64), PlanError> {
        if self.few_first
            && self.too_many > 1
            && let Tried::Fits(made) = self.attempt(1, Some(self.enough))?
        {
            let (attempt, files) = *made;
            return Ok((attempt, files, 1));
        }
        let mut next = self.first_of_all.unwrap_or_else(|| self.fewer());
        while self.too_many > 1 {
            if let Tried::Fits(made) = self.attempt(next, None)? {
                let (attempt, files) = *made;
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

    /// Whether a better plan is not worth the time that large files take.
    fn is_enough(&self, best: &Attempt) -> bool {
        let is_large = self.few_first || self.first_of_all.is_some() || best.transfers() > TRANSFERS_FEW;
        is_large && best.verdict.algbw >= *self.enough
    }

    /// Replaces a plan that fits by better ones with more trees.
    fn improve(&mut self, best: &mut Attempt, files: &mut Files, mut fits: u64) -> Result<(), PlanError> {
        for _ in 0..IMPROVEMENTS_MAX {
            let middle = fits.midpoint(self.too_many);
            if middle <= fits || self.is_enough(best) {
                break;
            }
            match self.attempt(middle, Some(&best.verdict.algbw))? {
                Tried::Fits(better) => {
                    (*best, *files) = *better;
                    fits = middle;
                }
                Tried::NoBetter => fits = middle,
                Tried::TooLarge => {}
            }
        }
        Ok(())
    }
}
