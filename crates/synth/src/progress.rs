//! Progress reports of a synthesis.

/// Stages of a synthesis, in the order they run. Allreduce on a network without mirror symmetry runs them twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The optimal rate, as a quotient of a cut.
    Optimum,
    /// Switches replaced by links between their neighbours; counted in switches, or in pieces of a network that is taken
    /// apart.
    Switches,
    /// Spanning trees packed; counted in trees, multiplicities included, or in pieces.
    Trees,
    /// Trees laid on physical routes; counted in batches of equal trees, or in roots.
    Routes,
}

impl Stage {
    /// The word used everywhere in canopy's text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Optimum => "optimum",
            Self::Switches => "switches",
            Self::Trees => "trees",
            Self::Routes => "routes",
        }
    }
}

/// Receives reports while a synthesis runs. It is called often, from the thread that plans, so return quickly.
pub trait Progress: Sync {
    /// `done` of `total` units of this stage are finished. Within a stage `done` never shrinks.
    fn report(&self, stage: Stage, done: u64, total: u64);
}

/// Ignores all reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Silent;

impl Progress for Silent {
    fn report(&self, _: Stage, _: u64, _: u64) {}
}
