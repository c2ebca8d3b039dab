//! Options of the sums of an allreduce: their form and roots.

use std::fmt;

use canopy_schedule::{AllreduceForm, CollectiveKind};

/// Where the trees of an allreduce have their roots.
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

/// Options of the sums of an allreduce. Only algorithms that pack trees support them; others refuse any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SumOptions {
    /// The form; `None` takes the faster one, and two phases if both are equally fast.
    pub form: Option<AllreduceForm>,
    /// Policy for roots. Shares of different sizes fix the roots, and two phases have roots at all ranks.
    pub roots: RootPolicy,
    /// Whether trees may go through switches that replicate and add up as if these were ranks, where that is faster:
    /// for plans that a runtime carries out with such switches.
    pub in_network: bool,
}

impl SumOptions {
    /// The planner's choice.
    pub const AUTO: Self = Self { form: None, roots: RootPolicy::Centre, in_network: false };
}

/// Errors of options of sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SumOptionsError {
    #[error(
        "`{option}` applies to the trees of an allreduce, and {algorithm} builds none for {collective}; leave it out, \
         or plan allreduce with forest"
    )]
    NotApplicable { algorithm: &'static str, collective: CollectiveKind, option: &'static str },
    #[error("form `trees` and `max_depth`, which limits the form `two-phase`, cannot be combined; set one")]
    NotByDepth,
    #[error("form `two-phase` already has roots at all ranks, so `root_policy` `spread` has no effect; set one")]
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
