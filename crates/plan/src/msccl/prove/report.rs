//! What a proof says.

use std::fmt;

/// Most problems reported per check; one fault often shows in every rank.
const PROBLEMS_PER_CHECK: usize = 64;

/// The verdict on a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Checks that ran, in order, and whether each passed.
    pub checks: Vec<(&'static str, bool)>,
    /// What is wrong; empty exactly when the program is right.
    pub problems: Vec<Problem>,
    /// What is allowed but unwise.
    pub warnings: Vec<Problem>,
}

impl Proof {
    /// Whether the program is right.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }

    /// Adds what another proof of the same program objects to, with these words before each message.
    pub(super) fn join(&mut self, other: Self, words: &str) {
        for (check, passed) in other.checks {
            match self.checks.iter_mut().find(|(known, _)| *known == check) {
                Some((_, so_far)) => *so_far &= passed,
                None => self.checks.push((check, passed)),
            }
        }
        let reword = |problem: Problem| Problem { message: format!("{words}{}", problem.message), ..problem };
        self.problems.extend(other.problems.into_iter().map(reword));
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The check that found it.
    pub check: &'static str,
    /// What was found, and what would be right.
    pub message: String,
    /// Where in the program.
    pub where_: Place,
}

/// `where: message`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.where_, self.message)
    }
}

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

/// Collects findings, check by check.
#[derive(Default)]
pub(super) struct Report {
    proof: Proof,
}

impl Report {
    /// Runs a check and notes whether it passed.
    pub(super) fn run(&mut self, check: &'static str, body: impl FnOnce(&mut Findings)) -> bool {
        let mut findings = Findings { check, problems: Vec::new(), warnings: Vec::new(), unreported: 0 };
        body(&mut findings);
        let passed = findings.problems.is_empty();
        if findings.unreported > 0 {
            let message = format!("{} more problems of this kind", findings.unreported);
            findings.problems.push(Problem { check, message, where_: Place::FILE });
        }
        self.proof.checks.push((check, passed));
        self.proof.problems.append(&mut findings.problems);
        self.proof.warnings.append(&mut findings.warnings);
        passed
    }

    pub(super) fn finish(self) -> Proof {
        self.proof
    }
}

/// Findings of one check.
pub(super) struct Findings {
    check: &'static str,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
    unreported: u64,
}

impl Findings {
    pub(super) fn problem(&mut self, place: Place, message: impl Into<String>) {
        if self.is_full() {
            self.unreported += 1;
        } else {
            self.problems.push(Problem { check: self.check, message: message.into(), where_: place });
        }
    }

    pub(super) fn warning(&mut self, place: Place, message: impl Into<String>) {
        if self.warnings.len() < PROBLEMS_PER_CHECK {
            self.warnings.push(Problem { check: self.check, message: message.into(), where_: place });
        }
    }

    /// Whether further problems are only counted: costly checks may stop.
    pub(super) fn is_full(&self) -> bool {
        self.problems.len() >= PROBLEMS_PER_CHECK
    }
}
