//! Where in a program something was found.

use std::fmt;

/// The verdict on a program.
pub type Proof = crate::proof::Proof<Place>;

/// One finding.
pub type Problem = crate::proof::Problem<Place>;

/// Collects findings, check by check.
pub(crate) type Report<'s> = crate::proof::Report<'s, Place>;

/// Findings of one check.
pub(crate) type Findings<'s> = crate::proof::Findings<'s, Place>;

/// A place in a program, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The rank.
    pub rank: Option<u32>,
    /// Id of the thread block.
    pub thread_block: Option<u32>,
    /// Position of the step in its block.
    pub step: Option<u32>,
}

impl Place {
    /// The whole file.
    pub const FILE: Self = Self { rank: None, thread_block: None, step: None };

    pub(crate) const fn rank(rank: u32) -> Self {
        Self { rank: Some(rank), thread_block: None, step: None }
    }

    pub(crate) const fn block(rank: u32, thread_block: u32) -> Self {
        Self { rank: Some(rank), thread_block: Some(thread_block), step: None }
    }

    pub(crate) const fn step(rank: u32, thread_block: u32, step: u32) -> Self {
        Self { rank: Some(rank), thread_block: Some(thread_block), step: Some(step) }
    }
}

/// `gpu 3 tb 2 step 5`, as far as known; `file` for the whole.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(rank) = self.rank else { return f.write_str("file") };
        write!(f, "gpu {rank}")?;
        let Some(block) = self.thread_block else { return Ok(()) };
        write!(f, " tb {block}")?;
        self.step.map_or(Ok(()), |step| write!(f, " step {step}"))
    }
}
