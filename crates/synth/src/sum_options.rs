//! What may be asked of the sums of an allreduce: the form, and where they are made.

use std::fmt;

use canopy_schedule::{AllreduceForm, CollectiveKind};

use crate::algorithm::{Algorithm, TreeLimits};

/// Which ranks of an allreduce made of trees add up how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RootPolicy {
    /// Each tree is rooted at its own centre, which keeps it as low as it can be.
    #[default]
    Centre,
    /// All ranks add up equal parts.
    Spread,
}

impl RootPolicy {
    /// Both, in the order messages list them.
    pub const ALL: [Self; 2] = [Self::Centre, Self::Spread];

    /// The name used everywhere in canopy's text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Centre => "centre",
            Self::Spread => "spread",
        }
    }
}

impl fmt::Display for RootPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is asked of the sums of an allreduce. Only [`Algorithm::Forest`] heeds it; the others refuse whatever is stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SumOptions {
    /// The form; none: the faster one, two phases where both are alike.
    pub form: Option<AllreduceForm>,
    /// Where trees have their roots. Shares of different sizes say so themselves, and two phases have them at all ranks.
    pub roots: RootPolicy,
}

impl SumOptions {
    /// The planner's choice.
    pub const AUTO: Self = Self { form: None, roots: RootPolicy::Centre };

    /// Refuses options that contradict each other or the limits, and any where there will be no sums of trees.
    ///
    /// # Errors
    /// [`SumOptionsError`], which names the option as requests do.
    pub fn require_applicable(
        &self,
        algorithm: Algorithm,
        kind: CollectiveKind,
        limits: TreeLimits,
    ) -> Result<(), SumOptionsError> {
        let algorithm = algorithm.resolved(kind);
        let spread = self.roots == RootPolicy::Spread;
        let stated = [("form", self.form.is_some()), ("root_policy", spread)];
        let stated = stated.into_iter().find(|&(_, is_stated)| is_stated).map(|(option, _)| option);
        match stated {
            Some(option) if algorithm != Algorithm::Forest || kind != CollectiveKind::Allreduce => {
                Err(SumOptionsError::NotApplicable { algorithm, collective: kind, option })
            }
            _ if self.form == Some(AllreduceForm::Trees) && limits.max_depth.is_some() => {
                Err(SumOptionsError::NotByDepth)
            }
            _ if spread && self.form == Some(AllreduceForm::TwoPhases) => Err(SumOptionsError::NothingToSpread),
            _ => Ok(()),
        }
    }
}

/// Why options of sums are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SumOptionsError {
    #[error(
        "{option} is about the trees of an allreduce, and {collective} by {algorithm} has none; leave it out, or plan \
         allreduce by forest"
    )]
    NotApplicable { algorithm: Algorithm, collective: CollectiveKind, option: &'static str },
    #[error("form trees cannot be limited by max_depth, which is for two phases; leave out one of them")]
    NotByDepth,
    #[error("form two-phase has its roots at all ranks, and root_policy spread would put them there; leave one out")]
    NothingToSpread,
}

impl SumOptionsError {
    /// The option at fault, as requests name it.
    pub const fn option(&self) -> &'static str {
        match self {
            Self::NotApplicable { option, .. } => option,
            Self::NotByDepth => "form",
            Self::NothingToSpread => "root_policy",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::{NonZeroU32, NonZeroU64};

    use super::*;

    #[test]
    fn options_are_for_trees_of_an_allreduce() {
        use AllreduceForm::{Trees, TwoPhases};
        let flat = TreeLimits { max_depth: NonZeroU32::new(3), ..TreeLimits::NONE };
        let asked = |form, roots| SumOptions { form, roots };
        let check = |options: SumOptions, algorithm, kind, limits| {
            options.require_applicable(algorithm, kind, limits).map_err(|error| error.option())
        };
        let allreduce = CollectiveKind::Allreduce;
        for kind in CollectiveKind::ALL {
            for algorithm in Algorithm::ALL {
                assert_eq!(check(SumOptions::AUTO, algorithm, kind, TreeLimits::NONE), Ok(()));
            }
        }
        for form in [Trees, TwoPhases] {
            let options = asked(Some(form), RootPolicy::Centre);
            assert_eq!(check(options, Algorithm::Auto, allreduce, TreeLimits::NONE), Ok(()));
            assert_eq!(check(options, Algorithm::Ring, allreduce, TreeLimits::NONE), Err("form"));
            assert_eq!(check(options, Algorithm::Forest, CollectiveKind::Allgather, TreeLimits::NONE), Err("form"));
        }
        let spread = asked(None, RootPolicy::Spread);
        assert_eq!(check(spread, Algorithm::Auto, allreduce, TreeLimits::NONE), Ok(()));
        assert_eq!(check(spread, Algorithm::Auto, CollectiveKind::Reduce, TreeLimits::NONE), Err("root_policy"));
        // Two phases have their roots everywhere, so limits and spread roots agree.
        assert_eq!(check(spread, Algorithm::Auto, allreduce, flat), Ok(()));
        let both = |form| asked(Some(form), RootPolicy::Spread);
        assert_eq!(check(both(TwoPhases), Algorithm::Auto, allreduce, TreeLimits::NONE), Err("root_policy"));
        assert_eq!(check(both(Trees), Algorithm::Auto, allreduce, TreeLimits::NONE), Ok(()));
        assert_eq!(check(asked(Some(Trees), RootPolicy::Centre), Algorithm::Auto, allreduce, flat), Err("form"));
        let few = TreeLimits { max_chunks: NonZeroU64::new(3), ..TreeLimits::NONE };
        assert_eq!(check(asked(Some(Trees), RootPolicy::Centre), Algorithm::Auto, allreduce, few), Ok(()));
        assert_eq!(check(asked(Some(TwoPhases), RootPolicy::Centre), Algorithm::Auto, allreduce, flat), Ok(()));
    }
}
