//! Synthesizers: a row of facts with the function that plans, and the types of its requests and answers.
//!
//! Each row stands in the module that plans by it, and all of them in the list of `algorithms`.

mod outcome;
mod request;
mod row;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use canopy_schedule::{AllreduceForm, CollectiveKind};

use crate::limits::{LimitsError, TreeLimits};
use crate::sum_options::{RootPolicy, SumOptions, SumOptionsError};

pub use outcome::{ProvenTime, Synthesized, Task};
pub use request::{Composition, SynthesisRequest};
pub use row::{
    ALL_COLLECTIVES, ConstructionUse, HeededLimits, Kept, Memory, Networks, Paths, Rival, SPREADING, Scale, Solver,
    Synthesizer,
};

/// An algorithm: a handle on its row, whose fields it has.
#[derive(Clone, Copy)]
pub struct Algorithm(&'static Synthesizer);

impl Algorithm {
    /// The algorithm of a row. Names tell algorithms apart.
    pub const fn of(row: &'static Synthesizer) -> Self {
        Self(row)
    }

    /// The name used everywhere in canopy's text.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// The algorithm that plans a collective; for `auto`, the one that it tries first.
    #[must_use]
    pub fn resolved(self, kind: CollectiveKind) -> Self {
        self.stands_for.map_or(self, |taken| taken(kind))
    }

    /// Refuses a seed if the algorithm makes no random choices.
    ///
    /// # Errors
    /// [`LimitsError::NoSeed`].
    pub const fn require_seed(self, seed: u64) -> Result<(), LimitsError> {
        if seed == 0 || self.0.has_seed { Ok(()) } else { Err(LimitsError::NoSeed { algorithm: self.0.name }) }
    }
}

impl Deref for Algorithm {
    type Target = Synthesizer;

    fn deref(&self) -> &Synthesizer {
        self.0
    }
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Algorithm {}

impl Hash for Algorithm {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl TreeLimits {
    /// Refuses limits that contradict each other, and limits of algorithms without trees.
    ///
    /// # Errors
    /// [`LimitsError`], which names the limit as requests do.
    pub fn require_applicable(&self, algorithm: Algorithm, kind: CollectiveKind) -> Result<(), LimitsError> {
        let algorithm = algorithm.resolved(kind);
        let of_trees = algorithm.limits == HeededLimits::Trees;
        let has_choice = algorithm.limits == HeededLimits::Chunks;
        let of_steps = has_choice || algorithm.limits == HeededLimits::StatedChunks;
        let of_paths = algorithm.limits == HeededLimits::Paths && kind == CollectiveKind::AllToAll;
        let name = algorithm.name();
        if self.chunks.is_some() && !of_steps && !of_paths {
            return Err(LimitsError::NoSteps { algorithm: name, collective: kind });
        }
        let stated = [
            ("trees_per_root", self.trees_per_root.is_some(), of_trees),
            ("max_chunks", self.max_chunks.is_some(), of_trees || has_choice || of_paths),
            ("max_depth", self.max_depth.is_some(), of_trees),
            ("tolerance", self.tolerance.is_some(), of_trees || of_paths),
        ];
        if let Some((limit, ..)) = stated.into_iter().find(|&(_, is_stated, is_heeded)| is_stated && !is_heeded) {
            return Err(LimitsError::NotApplicable { algorithm: name, collective: kind, limit });
        }
        match (self.trees_per_root, self.chunks, self.max_chunks) {
            (Some(trees_per_root), _, Some(max_chunks)) => {
                Err(LimitsError::Contradiction { trees_per_root: trees_per_root.get(), max_chunks: max_chunks.get() })
            }
            (_, Some(chunks), Some(max_chunks)) => {
                Err(LimitsError::TwiceChunks { chunks: chunks.get(), max_chunks: max_chunks.get() })
            }
            _ => Ok(()),
        }
    }
}

impl SumOptions {
    /// Refuses options that contradict each other or the limits, and options of algorithms without trees of sums.
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
            Some(option) if algorithm.limits != HeededLimits::Trees || kind != CollectiveKind::Allreduce => {
                Err(SumOptionsError::NotApplicable { algorithm: algorithm.name(), collective: kind, option })
            }
            _ if self.form == Some(AllreduceForm::Trees) && limits.max_depth.is_some() => {
                Err(SumOptionsError::NotByDepth)
            }
            _ if spread && self.form == Some(AllreduceForm::TwoPhases) => Err(SumOptionsError::NothingToSpread),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
