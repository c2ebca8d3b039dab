//! The forms of an allreduce by trees, and the reason for the choice.

use canopy_topology::Rate;

/// Where an allreduce adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AllreduceForm {
    /// A reduce-scatter followed by an allgather: every rank adds up its share.
    TwoPhases,
    /// Sums go up trees and come down on them; roots are anywhere.
    Trees,
}

impl AllreduceForm {
    /// Both, in the order messages list them.
    pub const ALL: [Self; 2] = [Self::TwoPhases, Self::Trees];

    /// The name used everywhere in canopy's text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TwoPhases => "two-phase",
            Self::Trees => "trees",
        }
    }
}

/// What decided the form of an allreduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FormReason {
    /// It was asked for.
    Asked,
    /// Trees are faster than two phases.
    Faster,
    /// Two phases are as fast as any trees, and have flatter ones.
    AsFast,
    /// Limits on trees were stated, which are those of two phases.
    Limited,
    /// There are trees that are faster, but too many of them to be planned.
    TooMany,
    /// No tree can be gone up and down: too few links lead both ways.
    OneWay,
}

impl FormReason {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Asked, Self::Faster, Self::AsFast, Self::Limited, Self::TooMany, Self::OneWay];

    /// The name used in files and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Faster => "faster",
            Self::AsFast => "as-fast",
            Self::Limited => "limited",
            Self::TooMany => "too-many",
            Self::OneWay => "one-way",
        }
    }
}

/// The form of a plan with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormChoice {
    /// What the plan has.
    pub form: AllreduceForm,
    /// Why.
    pub reason: FormReason,
    /// The algbw that two phases reach one after the other, where trees were chosen and it is known.
    pub two_phases: Option<Rate>,
}
