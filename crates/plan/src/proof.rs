//! What a proof says, whatever its format calls a place in a program.

use std::fmt;

/// Limit on reported problems per check, since one fault often shows in every rank.
const PROBLEMS_PER_CHECK: usize = 64;

/// The verdict on a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof<P> {
    /// Checks that ran, in order, and whether each passed.
    pub checks: Vec<(&'static str, bool)>,
    /// Problems; empty if and only if the program is right.
    pub problems: Vec<Problem<P>>,
    /// Warnings: allowed but unwise.
    pub warnings: Vec<Problem<P>>,
}

impl<P: fmt::Display> Proof<P> {
    /// Whether the program is right.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the first problem and its check as an error if the program is wrong.
    pub(crate) fn require_right(&self) -> Result<(), String> {
        self.problems.first().map_or(Ok(()), |problem| Err(format!("{}: {problem}", problem.check)))
    }

    /// What a test expects of a damaged program: that its first problem is of this check, and that these words are said.
    #[cfg(test)]
    #[track_caller]
    pub(crate) fn assert_refused(&self, check: &str, words: &str) {
        let problem = self.problems.first().unwrap_or_else(|| panic!("accepted, but {words}"));
        let text = self.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert_eq!(problem.check, check, "{text}");
        assert!(text.contains(words), "{text}");
    }

    /// Adds what another proof of the same program objects to, or warns of, with these words before each message.
    pub(crate) fn join(&mut self, other: Self, words: &str)
    where
        P: PartialEq,
    {
        for (check, passed) in other.checks {
            match self.checks.iter_mut().find(|(known, _)| *known == check) {
                Some((_, so_far)) => *so_far &= passed,
                None => self.checks.push((check, passed)),
            }
        }
        let reword = |problem: Problem<P>| Problem { message: format!("{words}{}", problem.message), ..problem };
        self.problems.extend(other.problems.into_iter().map(reword));
        for warning in other.warnings {
            // What holds for both kinds of call is said once.
            if !self.warnings.contains(&warning) {
                self.warnings.push(reword(warning));
            }
        }
    }
}

/// Words of every problem that says no more than that a program is too large, right or wrong as it may be.
pub(crate) const UNFOLLOWED: &str = "than the proof can follow";

/// Polled regularly; true stops the work.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// The caller stopped the work; there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped on request before the check ended")]
pub struct Stopped;

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem<P> {
    /// The check that found it.
    pub check: &'static str,
    /// What is wrong, and what to do about it.
    pub message: String,
    /// Where in the program; the default is the whole program.
    pub place: P,
}

/// `where: message`.
impl<P: fmt::Display> fmt::Display for Problem<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// A step that can never end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked<P> {
    /// The step.
    pub place: P,
    /// What it waits for.
    pub reason: &'static str,
}

/// The first few of them, for a message.
pub(crate) fn first_blocked<P: fmt::Display>(blocked: &[Blocked<P>]) -> String {
    let shown: Vec<String> = blocked.iter().take(8).map(|step| format!("{} {}", step.place, step.reason)).collect();
    shown.join(", ")
}

/// Collects findings, check by check.
pub(crate) struct Report<'s, P> {
    proof: Proof<P>,
    stop: Stop<'s>,
    is_stopped: bool,
}

impl<'s, P: Copy + Default> Report<'s, P> {
    pub(crate) fn new(stop: Stop<'s>) -> Self {
        let proof = Proof { checks: Vec::new(), problems: Vec::new(), warnings: Vec::new() };
        Self { proof, stop, is_stopped: false }
    }

    /// Runs a check and notes whether it passed.
    pub(crate) fn run(&mut self, check: &'static str, body: impl FnOnce(&mut Findings<'s, P>)) -> bool {
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
            findings.problems.push(Problem { check, message, place: P::default() });
        }
        self.proof.checks.push((check, passed));
        self.proof.problems.append(&mut findings.problems);
        self.proof.warnings.append(&mut findings.warnings);
        passed
    }

    /// Adds a warning that no check owns.
    pub(crate) fn warning(&mut self, check: &'static str, message: String) {
        self.proof.warnings.push(Problem { check, message, place: P::default() });
    }

    pub(crate) fn finish(self) -> Result<Proof<P>, Stopped> {
        if self.is_stopped { Err(Stopped) } else { Ok(self.proof) }
    }
}

/// Findings of one check.
pub(crate) struct Findings<'s, P> {
    check: &'static str,
    problems: Vec<Problem<P>>,
    warnings: Vec<Problem<P>>,
    unreported: u64,
    stop: Stop<'s>,
    asks: u64,
    is_stopped: bool,
}

/// Units of work between two looks at the stop request: some microseconds each, so well below 50 ms together.
const WORK_PER_LOOK: u64 = 1 << 12;

impl<P: Copy> Findings<'_, P> {
    /// Whether to give up, asked after so many units of work. What was found so far is then of no account.
    pub(crate) fn must_stop(&mut self, work: u64) -> bool {
        self.asks += work;
        if self.asks >= WORK_PER_LOOK {
            self.asks = 0;
            self.is_stopped |= (self.stop)();
        }
        self.is_stopped
    }

    pub(crate) fn problem(&mut self, place: P, message: impl Into<String>) {
        if self.is_full() {
            self.unreported += 1;
        } else {
            self.problems.push(Problem { check: self.check, message: message.into(), place });
        }
    }

    /// Each is said once, however often a check comes to it.
    pub(crate) fn warning(&mut self, place: P, message: impl Into<String>)
    where
        P: PartialEq,
    {
        let warning = Problem { check: self.check, message: message.into(), place };
        if self.warnings.len() < PROBLEMS_PER_CHECK && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
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
