//! Times of several plans by size, which is the fastest where, and between which sizes another becomes it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use canopy_simulate::{SimulateError, SimulateOptions, bandwidth_limit_ps, simulate};
use canopy_synth::Algorithm;

use super::WORK_MAX;
use super::entrants::Answer;
use crate::commands::simulate::sizes::in_words;
use crate::commands::simulate::{Judged, SimulateArgs, judge_bytes, refused};
use crate::exit::{Failure, words};
use crate::progress::ProgressLine;

/// The sizes on both sides of a crossover differ by this part of the smaller one at most, or by a byte.
const CROSSOVER_PART: u64 = 100;

/// An algorithm with a plan.
pub(super) struct Entrant {
    pub(super) name: &'static str,
    pub(super) judged: Judged,
    steps: Option<Vec<u32>>,
}

/// One without, and why.
pub(super) struct Absent {
    pub(super) name: &'static str,
    pub(super) reason: String,
}

/// All plans, and the sizes at which they are compared.
pub(super) struct Contest<'a> {
    args: &'a SimulateArgs,
    pub(super) sizes: Vec<u64>,
    pub(super) entrants: Vec<Entrant>,
    pub(super) absent: Vec<Absent>,
    /// By entrant and size; none where it takes too much work. Each is found once.
    known: RefCell<BTreeMap<(usize, u64), Option<u64>>>,
}

/// What came of it. Entrants are named by their numbers.
pub(super) struct Found {
    /// By entrant and size, in picoseconds.
    pub(super) times: Vec<Vec<Option<u64>>>,
    /// By entrant, why it has no time from some size on.
    pub(super) untimed: Vec<Option<Untimed>>,
    /// By size; none where that is not known.
    pub(super) fastest: Vec<Option<usize>>,
    /// Rising.
    pub(super) crossovers: Vec<Crossover>,
}

/// From which size on an entrant has no time.
#[derive(Clone)]
pub(super) struct Untimed {
    pub(super) from_bytes: u64,
    pub(super) reason: String,
}

/// Where one overtakes another: at some size above the first and up to the second of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crossover {
    pub(super) low: Side,
    pub(super) high: Side,
    /// The fastest at the smaller size.
    pub(super) before: usize,
    /// The fastest at the larger size.
    pub(super) after: usize,
}

/// A size, and the times there of the one before and the one after, if they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Side {
    pub(super) size_bytes: u64,
    pub(super) before_ps: Option<u64>,
    pub(super) after_ps: Option<u64>,
}

impl<'a> Contest<'a> {
    /// Judges the plans that there are.
    ///
    /// # Errors
    /// There is none, which the first refusal explains; one that is not right.
    pub(super) fn of(args: &'a SimulateArgs, answers: Vec<Answer>, line: &ProgressLine) -> Result<Self, Failure> {
        let (mut entrants, mut absent, mut first) = (Vec::new(), Vec::new(), None);
        for Answer { algorithm, plan } in answers {
            let name = algorithm.name();
            line.working(format!("judging the plan of {name}"));
            match plan {
                Ok(bytes) => {
                    let judged = judge_bytes(&args.plan, &bytes)?;
                    let steps = args.steps_of(&judged);
                    entrants.push(Entrant { name, judged, steps });
                }
                Err(failure) => {
                    absent.push(Absent { name, reason: reason(&failure, algorithm) });
                    first.get_or_insert(failure);
                }
            }
        }
        match first {
            Some(failure) if entrants.is_empty() => Err(failure),
            _ => Ok(Self { args, sizes: args.size_list(), entrants, absent, known: RefCell::default() }),
        }
    }

    /// Simulates all at every size and finds where one overtakes another.
    ///
    /// # Errors
    /// Nothing could be simulated, which the first refusal explains.
    pub(super) fn held(&self, line: &ProgressLine) -> Result<Found, Failure> {
        let (mut times, mut untimed, mut first) = (Vec::new(), Vec::new(), None);
        for number in 0..self.entrants.len() {
            let (own, error) = self.times(number, line);
            untimed.push(
                error.as_ref().map(|(from_bytes, error)| Untimed { from_bytes: *from_bytes, reason: words(error) }),
            );
            times.push(own);
            first = first.or(error);
        }
        match first {
            Some((size_bytes, error)) if times.iter().flatten().all(Option::is_none) => {
                return Err(refused(&error, size_bytes));
            }
            _ => {}
        }
        let fastest: Vec<Option<usize>> =
            (0..self.sizes.len()).map(|position| self.fastest_known(position, &times)).collect();
        let mut crossovers = Vec::new();
        for (sizes, winners) in self.sizes.windows(2).zip(fastest.windows(2)) {
            if let (&[low, high], &[Some(before), Some(after)]) = (sizes, winners) {
                line.working(format!("finding who is fastest between {} and {}", in_words(low), in_words(high)));
                self.between((low, before), (high, after), &mut crossovers);
            }
        }
        Ok(Found { times, untimed, fastest, crossovers })
    }

    /// The times of one entrant, and from which size on it has none, and why.
    fn times(&self, number: usize, line: &ProgressLine) -> (Vec<Option<u64>>, Option<(u64, SimulateError)>) {
        let (mut own, mut error) = (Vec::with_capacity(self.sizes.len()), None);
        let name = self.entrants.get(number).map_or("", |entrant| entrant.name);
        for (done, &size_bytes) in (1..).zip(&self.sizes) {
            line.working(format!("simulating {name}, {done} of {} sizes", self.sizes.len()));
            // A larger size takes no less work than one that took too much.
            if error.is_some() {
                own.push(None);
                continue;
            }
            match self.simulated(number, size_bytes) {
                Ok(time) => own.push(Some(time)),
                Err(refusal) => {
                    own.push(None);
                    error = Some((size_bytes, refusal));
                }
            }
        }
        (own, error)
    }

    /// The fastest of those with a time at a size, the first of equals; none where one without might be faster.
    fn fastest_known(&self, position: usize, times: &[Vec<Option<u64>>]) -> Option<usize> {
        let size_bytes = *self.sizes.get(position)?;
        let at = |own: &Vec<Option<u64>>| own.get(position).copied().flatten();
        let known = times.iter().enumerate().filter_map(|(number, own)| Some((at(own)?, number)));
        let best = known.min()?;
        let is_open = |(number, own): (usize, &Vec<Option<u64>>)| {
            at(own).is_none() && self.least(number, size_bytes).is_none_or(|least| (least, number) < best)
        };
        if times.iter().enumerate().any(is_open) { None } else { Some(best.1) }
    }

    /// Finds all crossovers between two sizes whose fastest are known: halves what lies between them until they are near enough.
    fn between(&self, (low, before): (u64, usize), (high, after): (u64, usize), crossovers: &mut Vec<Crossover>) {
        if before == after {
            return;
        }
        let distance = high.saturating_sub(low);
        if distance <= (low / CROSSOVER_PART).max(1) {
            let side = |size_bytes| Side {
                size_bytes,
                before_ps: self.time(before, size_bytes),
                after_ps: self.time(after, size_bytes),
            };
            crossovers.push(Crossover { low: side(low), high: side(high), before, after });
            return;
        }
        let middle = low + distance / 2;
        let fastest = self.fastest(middle, (before, after));
        self.between((low, before), (middle, fastest), crossovers);
        self.between((middle, fastest), (high, after), crossovers);
    }

    /// The fastest at a size, the first of equals; two that are likely are asked first, and others only if the load of
    /// their busiest link leaves them a chance.
    fn fastest(&self, size_bytes: u64, likely: (usize, usize)) -> usize {
        let others = (0..self.entrants.len()).filter(|&number| number != likely.0 && number != likely.1);
        let mut best: Option<(u64, usize)> = None;
        for number in [likely.0, likely.1].into_iter().chain(others) {
            let is_hopeless =
                |best: (u64, usize)| self.least(number, size_bytes).is_some_and(|least| best < (least, number));
            if best.is_some_and(is_hopeless) {
                continue;
            }
            if let Some(time) = self.time(number, size_bytes)
                && best.is_none_or(|best| (time, number) < best)
            {
                best = Some((time, number));
            }
        }
        best.map_or(likely.1, |(_, number)| number)
    }

    /// What a plan takes at least: α, and then what the busiest link has to carry. None where that cannot be said.
    fn least(&self, number: usize, size_bytes: u64) -> Option<u64> {
        let entrant = self.entrants.get(number)?;
        let options = self.options(entrant, size_bytes);
        let limit = bandwidth_limit_ps(&entrant.judged.plan.topology, &entrant.judged.graph, &options).ok()?;
        limit.checked_add(options.alpha.nanos().checked_mul(1_000)?)
    }

    fn time(&self, number: usize, size_bytes: u64) -> Option<u64> {
        let known = self.known.borrow().get(&(number, size_bytes)).copied();
        known.unwrap_or_else(|| self.simulated(number, size_bytes).ok())
    }

    fn simulated(&self, number: usize, size_bytes: u64) -> Result<u64, SimulateError> {
        let entrant = &self.entrants[number];
        let options = self.options(entrant, size_bytes);
        let found = simulate(&entrant.judged.plan.topology, &entrant.judged.graph, &options, &|| false);
        let found = found.map(|outcome| outcome.time_ps);
        self.known.borrow_mut().insert((number, size_bytes), found.as_ref().ok().copied());
        found
    }

    fn options<'b>(&self, entrant: &'b Entrant, size_bytes: u64) -> SimulateOptions<'b> {
        SimulateOptions { size_bytes, ..self.args.options(entrant.steps.as_deref(), WORK_MAX) }
    }
}

/// Why there is no plan, without the name of what refuses, which stands before it, and without what to do instead.
fn reason(failure: &Failure, algorithm: Algorithm) -> String {
    let sentence = failure.sentence();
    let sentence = sentence.strip_prefix("cannot plan: ").unwrap_or(&sentence);
    let without = sentence.strip_prefix(algorithm.name()).and_then(|rest| rest.strip_prefix(' '));
    let sentence = without.unwrap_or(sentence);
    sentence.split("; ").next().unwrap_or(sentence).to_owned()
}
