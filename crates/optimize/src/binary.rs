//! Feasibility of 0/1 programs in which each row limits how many of its literals hold.
//!
//! Rows of this kind say all that schedules in time need: of what a link may carry at a moment, one at most; what is sent, its
//! sender has; what a node has, it had before or is brought. Two means decide, and neither trusts a float: prices of the
//! linear relaxation (`relaxation`), re-added in integers, prove that there is no choice where something is too scarce; a search that
//! learns from conflicts (`search`) finds a choice or goes through all of them.

mod relaxation;
mod search;
#[cfg(test)]
mod tests;

use crate::stop::{Stop, Stopped};

pub use relaxation::Relaxed;

/// Conflicts of the search before the relaxation is tried: enough to find what is plainly there.
const FIRST_CONFLICTS: u32 = 1 << 10;

/// A variable that is to be 1, or one that is to be 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Literal(u32);

impl Literal {
    /// The variable is 1.
    pub const fn is_one(variable: u32) -> Self {
        Self(variable << 1)
    }

    /// The variable is 0.
    pub const fn is_zero(variable: u32) -> Self {
        Self(variable << 1 | 1)
    }

    pub(crate) const fn variable(self) -> u32 {
        self.0 >> 1
    }

    pub(crate) const fn is_negated(self) -> bool {
        self.0 & 1 == 1
    }

    const fn negated(self) -> Self {
        Self(self.0 ^ 1)
    }

    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Of these literals, no more than so many hold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AtMost {
    literals: Vec<Literal>,
    most: u32,
}

/// Variables of 0 or 1, rows that hold them down, and which of them are to be 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BinaryProgram {
    variable_count: u32,
    rows: Vec<AtMost>,
    /// Variables, each with how much it is worth to the relaxation.
    wanted: Vec<(u32, u32)>,
}

/// How far a decision is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinaryEffort {
    /// Most variables for which the relaxation is solved.
    pub relaxed_variables_max: u32,
    /// Most conflicts of the search.
    pub conflicts_max: u32,
}

/// What is known of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// By variable, whether it is 1: every row holds, and what is wanted is 1.
    Feasible(Vec<bool>),
    /// There is no such choice: proven in integers.
    Infeasible,
    /// The effort did not suffice.
    Undecided,
}

impl BinaryProgram {
    /// Most variables: as many as have literals of 32 bits.
    const VARIABLES_MAX: u32 = 1 << 31;

    /// One more variable; they are numbered from 0.
    ///
    /// # Panics
    /// With 2³¹ of them.
    pub fn variable(&mut self) -> u32 {
        assert!(self.variable_count < Self::VARIABLES_MAX, "callers limit their variables");
        self.variable_count += 1;
        self.variable_count - 1
    }

    /// How many variables there are.
    pub const fn variable_count(&self) -> u32 {
        self.variable_count
    }

    /// Of these literals, of different variables that there are, no more than `most` are to hold.
    ///
    /// # Panics
    /// Where there is no such variable.
    pub fn at_most(&mut self, most: u32, literals: Vec<Literal>) {
        assert!(literals.iter().all(|literal| literal.variable() < self.variable_count), "variables come first");
        if literals.len() > most as usize {
            self.rows.push(AtMost { literals, most });
        }
    }

    /// Where the first literal holds, one of the others is to hold.
    pub fn implies(&mut self, first: Literal, others: impl Iterator<Item = Literal>) {
        let literals: Vec<Literal> = std::iter::once(first).chain(others.map(Literal::negated)).collect();
        self.at_most(u32::try_from(literals.len() - 1).expect("fewer literals than variables"), literals);
    }

    /// A variable is to be 1; the relaxation, which may not have all of them, goes by what each is worth.
    ///
    /// # Panics
    /// Where there is no such variable.
    pub fn want(&mut self, variable: u32, worth: u32) {
        assert!(variable < self.variable_count, "variables come first");
        self.wanted.push((variable, worth));
    }

    /// Whether there is a choice: by a short search, by the relaxation where it is not too large, then by a long search.
    ///
    /// * **Out.** The same for the same effort: it is counted in conflicts, not in time.
    /// * **Errors.** Stopped: asked at each iteration of the relaxation, and at every conflict.
    /// * **Cost.** Of the relaxation, some 10 to 40 factorisations of a sparse matrix of variables and rows; of the search,
    ///   O(length of all rows) for each conflict at most, and as much memory.
    pub fn decide(&self, effort: BinaryEffort, stop: &dyn Stop) -> Result<Decision, Stopped> {
        let mut search = search::Search::new(self);
        let first = search.run(effort.conflicts_max.min(FIRST_CONFLICTS), stop)?;
        if first != Decision::Undecided {
            return Ok(first);
        }
        if self.variable_count <= effort.relaxed_variables_max
            && self.relaxed(stop)?.is_some_and(|relaxed| relaxed.is_short_of(self))
        {
            return Ok(Decision::Infeasible);
        }
        search.run(effort.conflicts_max, stop)
    }

    /// The linear relaxation: as much of what is wanted as there can be; none where the solver finds nothing.
    ///
    /// # Errors
    /// Stopped. Cost as of [`Self::decide`].
    pub fn relaxed(&self, stop: &dyn Stop) -> Result<Option<Relaxed>, Stopped> {
        relaxation::relaxed(self, stop)
    }

    /// Whether a choice keeps to every row and has all that is wanted.
    fn allows(&self, choice: &[bool]) -> bool {
        let holds = |literal: &&Literal| choice[literal.variable() as usize] != literal.is_negated();
        let keeps = |row: &AtMost| row.literals.iter().filter(holds).count() <= row.most as usize;
        self.wanted.iter().all(|&(variable, _)| choice[variable as usize]) && self.rows.iter().all(keeps)
    }
}
