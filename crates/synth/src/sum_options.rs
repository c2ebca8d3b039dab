//! What may be asked of the sums of an allreduce: the form, and where they are made.

use std::fmt;

use canopy_schedule::{AllreduceForm, CollectiveKind};

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

/// What is asked of the sums of an allreduce. Only algorithms that pack trees heed it; the others refuse whatever is stated.
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
}

/// Why options of sums are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SumOptionsError {
    #[error(
        "{option} is about the trees of an allreduce, and {collective} by {algorithm} has none; leave it out, or plan \
         allreduce by forest"
    )]
    NotApplicable { algorithm: &'static str, collective: CollectiveKind, option: &'static str },
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
