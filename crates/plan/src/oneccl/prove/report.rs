//! What a proof says.

use std::fmt;

/// Most problems reported per check; one fault often shows in every rank.
const PROBLEMS_PER_CHECK: usize = 64;

/// Units of work between two looks at the stop request.
const WORK_PER_LOOK: u64 = 1 << 12;

/// The verdict on a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Checks that ran, in order, and whether each passed.
    pub checks: Vec<(&'static str, bool)>,
    /// What is wrong; empty exactly when the program is right.
    pub problems: Vec<Problem>,
}

impl Proof {
    /// Whether the program is right.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
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
    pub place: Place,
}

/// `where: message`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// A place in a program, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The rank.
    pub rank: Option<u32>,
    /// Position of the step in the rank.
    pub step: Option<u32>,
}

impl Place {
    /// The whole file.
    pub const FILE: Self = Self { rank: None, step: None };

    pub(crate) const fn rank(rank: u32) -> Self {
        Self { rank: Some(rank), step: None }
    }

    pub(crate) const fn step(rank: u32, step: u32) -> Self {
        Self { rank: Some(rank), step: Some(step) }
    }
}

/// `rank 3 step 5`, as far as known; `file` for the whole.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(rank) = self.rank else { return f.write_str("file") };
        write!(f, "rank {rank}")?;
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
    pub(crate) fn run(&mut self, check: &'static str, body: impl FnOnce(&mut Findings<'s>)) -> bool {
        let mut findings = Findings {
            check,
            problems: Vec::new(),
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
            findings.problems.push(Problem { check, message, place: Place::FILE });
        }
        self.proof.checks.push((check, passed));
        self.proof.problems.append(&mut findings.problems);
        passed
    }

    pub(crate) fn finish(self) -> Result<Proof, Stopped> {
        if self.is_stopped { Err(Stopped) } else { Ok(self.proof) }
    }
}

/// Findings of one check.
pub(crate) struct Findings<'s> {
    check: &'static str,
    problems: Vec<Problem>,
    unreported: u64,
    stop: &'s (dyn Fn() -> bool + Sync),
    asks: u64,
    is_stopped: bool,
}

impl Findings<'_> {
    /// The program of each rank, in the order of ranks; a rank that lacks one, or has two, is a problem.
    pub(crate) fn by_rank<'p, R>(&mut self, rank_count: u32, programs: &'p [R], rank_of: fn(&R) -> u32) -> Vec<&'p R> {
        let count = rank_count as usize;
        if programs.len() != count {
            self.problem(Place::FILE, format!("nranks is {count} but there are {} <rank>", programs.len()));
            return Vec::new();
        }
        let mut ranks: Vec<Option<&R>> = vec![None; count];
        for program in programs {
            let rank = rank_of(program);
            match ranks.get_mut(rank as usize) {
                None => self.problem(Place::rank(rank), format!("is not one of the ranks 0 to {}", count - 1)),
                Some(Some(_)) => self.problem(Place::rank(rank), "stands twice; each rank needs exactly one <rank>"),
                Some(place) => *place = Some(program),
            }
        }
        ranks.into_iter().flatten().collect()
    }

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
            self.problems.push(Problem { check: self.check, message: message.into(), place });
        }
    }

    /// Whether further problems are only counted: costly checks may stop.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() >= PROBLEMS_PER_CHECK
    }

    /// Whether nothing was found so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }
}
