//! Why a call runs in the MPI library itself, without a plan.

/// A reason, the same on all ranks of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// The environment names no folder.
    NoFolder,
    /// The folder cannot be used.
    BadFolder,
    /// Ranks have different plans.
    Disagreement,
    /// The communicator has one rank.
    OneRank,
    /// The communicator joins two groups.
    InterCommunicator,
    /// The call returns before it is complete.
    Nonblocking,
    /// No plan has this collective for this number of ranks.
    NoPlan,
    /// All plans for this number of ranks are for other machines.
    OtherMachines,
    /// The plans of this collective have other roots.
    OtherRoot,
    /// The plans of this collective are for other sizes.
    OtherSize,
    /// The operator is user-defined, `MPI_MINLOC` or `MPI_MAXLOC`.
    Operator,
    /// The operator is not defined on the type, or the type is not one of C's.
    Type,
    /// Memory of a rank would be many times the message.
    Memory,
    /// The MPI library is to say what is wrong with the arguments.
    Arguments,
}

impl Reason {
    /// The key in reports.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::NoFolder => "no-folder",
            Self::BadFolder => "bad-folder",
            Self::Disagreement => "ranks-disagree",
            Self::OneRank => "one-rank",
            Self::InterCommunicator => "inter-communicator",
            Self::Nonblocking => "nonblocking",
            Self::NoPlan => "no-plan",
            Self::OtherMachines => "other-machines",
            Self::OtherRoot => "other-root",
            Self::OtherSize => "other-size",
            Self::Operator => "operator",
            Self::Type => "type",
            Self::Memory => "memory",
            Self::Arguments => "arguments",
        }
    }

    /// What a person reads.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::NoFolder => "CANOPY_PLAN_DIR is not set",
            Self::BadFolder => "the folder of plans cannot be used",
            Self::Disagreement => "ranks have different plans",
            Self::OneRank => "the communicator has one rank",
            Self::InterCommunicator => "the communicator joins two groups",
            Self::Nonblocking => "the call is nonblocking",
            Self::NoPlan => "no plan for this collective and number of ranks",
            Self::OtherMachines => "the plans are for other machines",
            Self::OtherRoot => "no plan for this root",
            Self::OtherSize => "no plan for this size",
            Self::Operator => "the operator is user-defined, MINLOC or MAXLOC",
            Self::Type => "the operator is not defined on this type, or the type is not of C",
            Self::Memory => "the plan needs too much scratch memory",
            Self::Arguments => "arguments that MPI refuses",
        }
    }
}
