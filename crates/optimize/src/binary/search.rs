//! A search that learns a clause from every conflict, and so never meets the same one twice.
//!
//! Source: Marques-Silva and Sakallah, *GRASP*, 1996, for learning; Moskewicz et al., *Chaff*, 2001, for watched literals and
//! for deciding what took part in conflicts lately; Luby, Sinclair and Zuckerman, 1993, for when to start again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{AtMost, BinaryProgram, Decision, Literal};
use crate::stop::{Stop, Stopped};

/// Conflicts of the shortest run before starting again.
const RUN: u64 = 64;
/// Decisions between two questions whether to stop, in runs without conflicts.
const ASK_INTERVAL: u32 = 1 << 10;
/// What taking part in a conflict counts at most, before all counts are made smaller.
const COUNT_MAX: u64 = 1 << 48;

/// Why a literal holds.
#[derive(Clone, Copy)]
enum Reason {
    /// It was decided, or is wanted.
    None,
    /// As many of a row hold as may.
    Row(u32),
    /// All others of a learnt clause do not.
    Clause(u32),
}

/// What is not known yet.
const OPEN: i8 = -1;

pub(super) struct Search<'a> {
    program: &'a BinaryProgram,
    /// By literal, the rows that it is in.
    rows_of: Vec<Vec<u32>>,
    /// By row, how many of its literals hold.
    counts: Vec<u32>,
    /// By variable: 0, 1 or [`OPEN`]; the number of decisions before it; its place in the trail; and why.
    values: Vec<i8>,
    levels: Vec<u32>,
    places: Vec<u32>,
    reasons: Vec<Reason>,
    /// Literals that hold, in the order in which they came to, and where each level begins.
    trail: Vec<Literal>,
    level_starts: Vec<usize>,
    /// Literals up to this one were looked up in clauses.
    looked_up: usize,
    /// Rows that may be full.
    full: Vec<u32>,
    clauses: Vec<Vec<Literal>>,
    /// By literal, the clauses to look at when it no longer can hold.
    watches: Vec<Vec<u32>>,
    /// By variable, how much it took part in conflicts; what once more counts; and what to decide next, with outdated entries.
    activity: Vec<u64>,
    bump: u64,
    order: BinaryHeap<(u64, Reverse<u32>)>,
    /// By variable, whether `order` has it as it stands.
    is_queued: Vec<bool>,
    /// By variable, its last value.
    phases: Vec<bool>,
    is_seen: Vec<bool>,
    conflicts: u32,
}

impl<'a> Search<'a> {
    pub(super) fn new(program: &'a BinaryProgram) -> Self {
        let variables = program.variable_count as usize;
        let mut rows_of = vec![Vec::new(); 2 * variables];
        for (number, row) in (0..).zip(&program.rows) {
            row.literals.iter().for_each(|literal| rows_of[literal.index()].push(number));
        }
        Self {
            program,
            rows_of,
            counts: vec![0; program.rows.len()],
            values: vec![OPEN; variables],
            levels: vec![0; variables],
            places: vec![0; variables],
            reasons: vec![Reason::None; variables],
            trail: Vec::with_capacity(variables),
            level_starts: Vec::new(),
            looked_up: 0,
            // Such that none of their literals may hold.
            full: (0..).zip(&program.rows).filter(|(_, row)| row.most == 0).map(|(number, _)| number).collect(),
            clauses: Vec::new(),
            watches: vec![Vec::new(); 2 * variables],
            activity: vec![0; variables],
            bump: 1 << 8,
            order: (0..program.variable_count).map(|variable| (0, Reverse(variable))).collect(),
            is_queued: vec![true; variables],
            phases: vec![true; variables],
            is_seen: vec![false; variables],
            conflicts: 0,
        }
    }

    /// Decides, learns and starts again until there is a choice, there can be none, or so many conflicts are over.
    ///
    /// Conflicts count from the first call on.
    pub(super) fn run(&mut self, conflicts_max: u32, stop: &dyn Stop) -> Result<Decision, Stopped> {
        for &(variable, _) in &self.program.wanted {
            match self.values[variable as usize] {
                OPEN => self.assign(Literal::is_one(variable), Reason::None),
                0 => return Ok(Decision::Infeasible),
                _ => {}
            }
        }
        let (mut runs, mut left, mut decisions) = (1, RUN, 0_u32);
        loop {
            if let Some(conflict) = self.propagate() {
                if self.level_starts.is_empty() {
                    return Ok(Decision::Infeasible);
                }
                if stop.is_requested() {
                    return Err(Stopped);
                }
                if self.conflicts == conflicts_max {
                    self.back_to(0);
                    return Ok(Decision::Undecided);
                }
                self.conflicts += 1;
                left = left.saturating_sub(1);
                self.learn(conflict);
                continue;
            }
            if left == 0 {
                runs += 1;
                left = RUN * luby(runs);
                self.back_to(0);
                continue;
            }
            decisions = decisions.wrapping_add(1);
            if decisions.is_multiple_of(ASK_INTERVAL) && stop.is_requested() {
                return Err(Stopped);
            }
            let Some(variable) = self.next_variable() else {
                let choice: Vec<bool> = self.values.iter().map(|&value| value == 1).collect();
                debug_assert!(self.program.allows(&choice), "what was found breaks a row");
                return Ok(Decision::Feasible(choice));
            };
            self.level_starts.push(self.trail.len());
            let is_one = self.phases[variable as usize];
            let literal = if is_one { Literal::is_one(variable) } else { Literal::is_zero(variable) };
            self.assign(literal, Reason::None);
        }
    }

    fn holds(&self, literal: Literal) -> bool {
        self.values[literal.variable() as usize] == i8::from(!literal.is_negated())
    }

    fn is_open(&self, literal: Literal) -> bool {
        self.values[literal.variable() as usize] == OPEN
    }

    /// The open variable that took part in conflicts most.
    fn next_variable(&mut self) -> Option<u32> {
        while let Some((activity, Reverse(variable))) = self.order.pop() {
            if self.activity[variable as usize] == activity {
                self.is_queued[variable as usize] = false;
                if self.values[variable as usize] == OPEN {
                    return Some(variable);
                }
            }
        }
        None
    }

    fn assign(&mut self, literal: Literal, reason: Reason) {
        let variable = literal.variable() as usize;
        self.values[variable] = i8::from(!literal.is_negated());
        self.levels[variable] = index(self.level_starts.len());
        self.places[variable] = index(self.trail.len());
        self.reasons[variable] = reason;
        self.trail.push(literal);
        for &row in &self.rows_of[literal.index()] {
            self.counts[row as usize] += 1;
            if self.counts[row as usize] >= self.program.rows[row as usize].most {
                self.full.push(row);
            }
        }
    }

    /// Assigns all that follows; what holds and may not, if anything.
    fn propagate(&mut self) -> Option<Vec<Literal>> {
        let program = self.program;
        loop {
            while let Some(number) = self.full.pop() {
                let row = &program.rows[number as usize];
                if self.counts[number as usize] > row.most {
                    return Some(self.conflict_of(row));
                }
                for &literal in &row.literals {
                    if self.is_open(literal) {
                        self.assign(literal.negated(), Reason::Row(number));
                    }
                }
            }
            let &literal = self.trail.get(self.looked_up)?;
            self.looked_up += 1;
            if let Some(conflict) = self.look_up(literal.negated()) {
                return Some(conflict);
            }
        }
    }

    /// The first literals of a row that are one too many.
    fn conflict_of(&self, row: &AtMost) -> Vec<Literal> {
        let mut held: Vec<Literal> = row.literals.iter().copied().filter(|&literal| self.holds(literal)).collect();
        held.sort_unstable_by_key(|literal| self.places[literal.variable() as usize]);
        held.truncate(row.most as usize + 1);
        held
    }

    /// Looks at the clauses that watch a literal which no longer can hold.
    fn look_up(&mut self, gone: Literal) -> Option<Vec<Literal>> {
        let watching = std::mem::take(&mut self.watches[gone.index()]);
        let mut kept = Vec::with_capacity(watching.len());
        let mut conflict = None;
        let mut watching = watching.into_iter();
        for number in watching.by_ref() {
            let mut clause = std::mem::take(&mut self.clauses[number as usize]);
            // The first two are watched.
            if clause[0] == gone {
                clause.swap(0, 1);
            }
            let first = clause[0];
            if self.holds(first) {
                kept.push(number);
            } else if let Some(place) = (2..clause.len()).find(|&place| {
                let literal = clause[place];
                self.is_open(literal) || self.holds(literal)
            }) {
                clause.swap(1, place);
                self.watches[clause[1].index()].push(number);
            } else {
                kept.push(number);
                if self.is_open(first) {
                    self.assign(first, Reason::Clause(number));
                } else {
                    conflict = Some(clause.iter().map(|literal| literal.negated()).collect());
                }
            }
            self.clauses[number as usize] = clause;
            if conflict.is_some() {
                break;
            }
        }
        kept.extend(watching);
        self.watches[gone.index()] = kept;
        conflict
    }

    /// Literals that hold and make another hold.
    fn causes(&self, literal: Literal) -> Vec<Literal> {
        match self.reasons[literal.variable() as usize] {
            Reason::None => Vec::new(),
            Reason::Clause(number) => {
                let others = self.clauses[number as usize].iter().filter(|&&other| other != literal);
                others.map(|other| other.negated()).collect()
            }
            Reason::Row(number) => {
                let place = self.places[literal.variable() as usize];
                let row = &self.program.rows[number as usize];
                let is_before = |other: &Literal| self.places[other.variable() as usize] < place;
                row.literals.iter().copied().filter(|&other| self.holds(other) && is_before(&other)).collect()
            }
        }
    }

    /// Learns which literals cannot hold together, goes back to where one of them follows from the others, and says so.
    fn learn(&mut self, conflict: Vec<Literal>) {
        let mut together: Vec<Literal> = Vec::new();
        let mut seen: Vec<u32> = Vec::new();
        let level = index(self.level_starts.len());
        let mut frontier: BinaryHeap<(u32, Literal)> = BinaryHeap::new();
        let mut causes = conflict;
        // At the last level, causes of causes until there is a single one (the first unique implication point). A conflict may
        // lie wholly below: then this ends at its own last level.
        let level = causes.iter().map(|cause| self.levels[cause.variable() as usize]).max().unwrap_or(level);
        let last = loop {
            for cause in causes {
                let variable = cause.variable() as usize;
                if self.levels[variable] == 0 || std::mem::replace(&mut self.is_seen[variable], true) {
                    continue;
                }
                seen.push(cause.variable());
                if self.levels[variable] == level {
                    frontier.push((self.places[variable], cause));
                } else {
                    together.push(cause);
                }
            }
            let Some((_, latest)) = frontier.pop() else { unreachable!("a conflict has a literal of its last level") };
            if frontier.is_empty() {
                break latest;
            }
            causes = self.causes(latest);
        };
        // Those that follow from others say nothing more.
        let is_implied = |literal: &Literal| {
            let causes = self.causes(*literal);
            !causes.is_empty()
                && causes
                    .iter()
                    .all(|cause| self.is_seen[cause.variable() as usize] || self.levels[cause.variable() as usize] == 0)
        };
        let mut kept: Vec<Literal> = together.iter().copied().filter(|literal| !is_implied(literal)).collect();
        kept.sort_unstable_by_key(|literal| Reverse(self.levels[literal.variable() as usize]));
        for variable in seen {
            self.is_seen[variable as usize] = false;
            self.raise(variable);
        }
        self.bump += self.bump >> 4;
        let back = kept.first().map_or(0, |literal| self.levels[literal.variable() as usize]);
        self.back_to(back);
        let learnt: Vec<Literal> = std::iter::once(last).chain(kept).map(Literal::negated).collect();
        let reason = match learnt.get(1) {
            None => Reason::None,
            Some(second) => {
                let number = index(self.clauses.len());
                self.watches[learnt[0].index()].push(number);
                self.watches[second.index()].push(number);
                self.clauses.push(learnt);
                Reason::Clause(number)
            }
        };
        self.assign(last.negated(), reason);
    }

    /// One more conflict that a variable takes part in.
    fn raise(&mut self, variable: u32) {
        self.activity[variable as usize] += self.bump;
        if self.bump > COUNT_MAX {
            self.activity.iter_mut().for_each(|activity| *activity >>= 32);
            self.bump >>= 32;
            self.order = (0..).zip(&self.activity).map(|(variable, &activity)| (activity, Reverse(variable))).collect();
            self.is_queued.fill(true);
        } else {
            self.order.push((self.activity[variable as usize], Reverse(variable)));
            self.is_queued[variable as usize] = true;
        }
    }

    /// Takes back all after so many decisions.
    fn back_to(&mut self, level: u32) {
        self.full.clear();
        let Some(&start) = self.level_starts.get(level as usize) else { return };
        self.level_starts.truncate(level as usize);
        for literal in self.trail.drain(start..).rev() {
            let variable = literal.variable();
            self.phases[variable as usize] = !literal.is_negated();
            self.values[variable as usize] = OPEN;
            if !std::mem::replace(&mut self.is_queued[variable as usize], true) {
                self.order.push((self.activity[variable as usize], Reverse(variable)));
            }
            for &row in &self.rows_of[literal.index()] {
                self.counts[row as usize] -= 1;
            }
        }
        self.looked_up = self.looked_up.min(start);
    }
}

/// 1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8, …: the sequence by number, from 1.
fn luby(number: u64) -> u64 {
    let mut rest = number;
    loop {
        let size = (rest + 1).next_power_of_two();
        if size == rest + 1 {
            return size / 2;
        }
        rest -= size / 2 - 1;
    }
}

fn index(count: usize) -> u32 {
    u32::try_from(count).expect("fewer than variables and conflicts, which are counted in u32")
}
