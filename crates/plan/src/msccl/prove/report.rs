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

    /// Adds what another proof of the same program objects to, or warns of, with these words before each message.
    pub(super) fn join(&mut self, other: Self, words: &str) {
        for (check, passed) in other.checks {
            match self.checks.iter_mut().find(|(known, _)| *known == check) {
                Some((_, so_far)) => *so_far &= passed,
                None => self.checks.push((check, passed)),
            }
        }
        let reword = |problem: Problem| Problem { message: format!("{words}{}", problem.message), ..problem };
        self.problems.extend(other.problems.into_iter().map(reword));
        for warning in other.warnings {
            // What holds for both kinds of call is said once.
            if !self.warnings.contains(&warning) {
                self.warnings.push(reword(warning));
            }
        }
    }
}

/// Work was given up because the caller asked for that; nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped on request before it was decided")]
pub struct Stopped;

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
pub(crate) struct Report<'s> {
    proof: Proof,
    stop: &'s (dyn Fn() -> bool + Sync),
    is_stopped: bool,
}

impl<'s> Report<'s> {
    pub(crate) fn new(stop: &'s (dyn Fn() -> bool + Sync)) -> Self {
        Self { proof: Proof::default(), stop, is_stopped: false }
    }

    /// Runs a check and notes whether it passed.
    pub(crate) fn run(&mut self, check: &'static str, body: impl FnOnce(&mut Findings)) -> bool {
        let mut findings = Findings {
            check,
            problems: Vec::new(),
            warnings: Vec::new(),
            unreported: 0,
            stop: self.stop,
            asks: 0,
            is_stopped: self.is_stopped || (self.stop)(),
        };
        if !findings.is_stopped {
            body(&mut findings);
        }
        if findings.is_stopped {
            self.is_stopped = true;
            return false;
        }
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

    /// Adds a warning that no check owns.
    pub(crate) fn warning(&mut self, check: &'static str, message: String) {
        self.proof.warnings.push(Problem { check, message, where_: Place::FILE });
    }

    pub(crate) fn finish(self) -> Result<Proof, Stopped> {
        if self.is_stopped { Err(Stopped) } else { Ok(self.proof) }
    }
}

/// Findings of one check.
pub(crate) struct Findings<'s> {
    check: &'static str,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
    unreported: u64,
    stop: &'s (dyn Fn() -> bool + Sync),
    asks: u64,
    is_stopped: bool,
}

/// Units of work between two looks at the stop request: some microseconds each, so well below 50 ms together.
const WORK_PER_LOOK: u64 = 1 << 12;

impl Findings<'_> {
    /// Whether to give up, asked after so many units of work. What was found so far is then of no account.
    pub(crate) fn must_stop(&mut self, work: u64) -> bool {
        self.asks += work;
        if self.asks >= WORK_PER_LOOK {
            self.asks = 0;
            self.is_stopped |= (self.stop)();
        }
        self.is_stopped
    }

    pub(crate) fn problem(&mut self, place: Place, message: impl Into<String>) {
        if self.is_full() {
            self.unreported += 1;
        } else {
            self.problems.push(Problem { check: self.check, message: message.into(), where_: place });
        }
    }

    pub(crate) fn warning(&mut self, place: Place, message: impl Into<String>) {
        if self.warnings.len() < PROBLEMS_PER_CHECK {
            self.warnings.push(Problem { check: self.check, message: message.into(), where_: place });
        }
    }

    /// Whether there is any problem so far.
    pub(crate) const fn has_problem(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Whether further problems are only counted: costly checks may stop.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() >= PROBLEMS_PER_CHECK
    }
}
