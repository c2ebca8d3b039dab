//! The parameters with which runs would have taken what they took, and those that the runs do not determine.
//!
//! Times spread in proportion to themselves, so logarithms of times are compared. Each step solves the linear problem at
//! the parameters so far (Gauss–Newton). Runs far off count less, and at last nothing (Huber, Tukey), so a cold first
//! call spoils nothing. Where a link that binds no run hides what another would do, a search from other rates finds it.
//! At last times are computed at many places around, as those of simulations jump (`surface`).
//!
//! How far a parameter may be off follows from how much times change with it, and from how far they are from the model:
//! noise, and what the model does not know. If that is too far, or if another parameter changes all times in the same way,
//! the runs do not determine it; the others are found all the same.

mod errors;
mod surface;
mod trust;

use crate::parameters::{Parameter, Parameters};
use crate::solve::{median, product, products, solution, spread};
use surface::{Settled, Surface};
use trust::{TUKEY, Trust};

/// Steps until the end at the latest.
const STEPS_MAX: usize = 25;
/// A step of less than this part ends it: surfaces lead on.
const STEP_LEAST: f64 = 1e-3;
/// How often a step that leads to nothing better is halved.
const HALVINGS_MAX: u32 = 5;
/// Noise that is assumed at least: no clock and no model is better.
const NOISE_LEAST: f64 = 0.005;
/// Less than this part off is no misfit, however little the other times spread.
const MISFIT_LEAST: f64 = 0.1;
/// Standard error of a parameter that is determined, as a part of it: twice as much is 5 %.
const ERROR_MAX: f64 = 0.025;
/// The same of a latency that is next to nothing: part of all of them together.
const ERROR_OF_SUM_MAX: f64 = 0.02;
/// A parameter has no effect if doubling it changes no time by more than this part.
const EFFECT_LEAST: f64 = 0.01;
/// By how much parameters are changed to see what that does.
const TRIAL: f64 = 0.02;
/// The same for times, at least, in ns.
const TRIAL_NS: f64 = 20.0;
/// How far around a place times are computed in the end, in units of parameters, and at first.
const RADIUS: f64 = 0.08;
/// See `RADIUS`.
const RADIUS_FIRST: f64 = 0.12;
/// How often times are computed around another place at most.
const SURFACES_MAX: usize = 5;
/// By what stated errors grow where times jump: large jumps are rare, so few of those around a place are, and estimates
/// spread that much more than the squares of seen jumps say.
const JUMP_TAILS: f64 = 1.5;
/// The least factor of rates.
const FACTOR_LEAST: f64 = 0.001;
/// Rates from which the search begins again where a fit is not good.
const RATES_TRIED: [f64; 4] = [1.0, 0.8, 0.6, 0.4];
/// A mean difference, as a part of the time, with which a fit is good.
const OFF_GOOD: f64 = 0.03;
/// Columns that are as alike as this change times in the same way.
const ALIKE: f64 = 0.95;

/// A parameter as found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Which.
    pub parameter: Parameter,
    /// Its value.
    pub value: f64,
    /// Its standard error, in the unit of the value.
    pub error: f64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Those that the runs determine, in the order in which they were asked for.
    pub estimates: Vec<Estimate>,
    /// The others.
    pub open: Vec<Undetermined>,
    /// All values with which times were compared, those that are not determined too.
    pub parameters: Parameters,
    /// By time: the logarithm of what was measured beside the model's time.
    pub residuals: Vec<f64>,
    /// Places of the times that do not fit, the worst first.
    pub misfits: Vec<usize>,
    /// Median difference of a time from the model's, as a part of it: as described, and with what was found.
    pub off_before: f64,
    /// See `off_before`.
    pub off_after: f64,
    /// Standard deviation of times around the model, with that of times that do not fit.
    pub noise: f64,
}

/// A parameter that runs do not determine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Undetermined {
    /// Which.
    pub parameter: Parameter,
    /// Why.
    pub why: Why,
}

/// Why runs do not determine a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// No time depends on it.
    NoEffect,
    /// Another changes all times in the same way.
    Like(Parameter),
    /// Its standard error is this part of it, which is too much.
    Spread(f64),
}

/// Why nothing was found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError<E> {
    /// A time could not be computed.
    #[error("a run could not be simulated")]
    Predict(E),
    /// There are fewer runs than parameters, and one more.
    #[error("{found} times are too few for {parameters} parameters")]
    TooFew {
        /// How many there are.
        found: usize,
        /// What they are to determine.
        parameters: usize,
    },
}

/// What is asked of times.
struct Problem<'a> {
    wanted: &'a [Parameter],
}

/// A place to which the search came.
struct Place {
    at: Parameters,
    residuals: Vec<f64>,
}

impl Fit {
    /// Mean difference of a time from the model's, few far ones cut: what readings of the same runs are compared by.
    pub fn off(&self) -> f64 {
        mean_off(&self.residuals)
    }
}

/// A place near the parameters that [`fit`] finds, for models that are less exact far from it.
///
/// # Errors
/// See [`fit`].
pub fn approach<E>(
    observed: &[f64],
    wanted: &[Parameter],
    start: Parameters,
    model: &mut dyn FnMut(&Parameters) -> Result<Vec<f64>, E>,
) -> Result<Parameters, FitError<E>> {
    Ok(Problem::of(observed, wanted)?.nearest(start, &mut compared(observed, model))?.at)
}

/// Parameters with which the model's times are nearest to those observed.
///
/// * **In.** Times in any unit, > 0; what to find; what all parameters are described as, and where to start; the times of all
///   runs by the model, in the same unit and order.
/// * **Out.** What the runs determine, with errors, and what they leave open, with the reason.
/// * **Errors.** Too few runs, and errors of the model.
/// * **Cost.** Some 100 calls of the model for four parameters, some 300 where it jumps or fits badly.
pub fn fit<E>(
    observed: &[f64],
    wanted: &[Parameter],
    described: Parameters,
    start: Parameters,
    model: &mut dyn FnMut(&Parameters) -> Result<Vec<f64>, E>,
) -> Result<Fit, FitError<E>> {
    let problem = Problem::of(observed, wanted)?;
    let mut off = compared(observed, model);
    let off_before = middle(&off(&described)?);
    let place = problem.nearest(start, &mut off)?;
    problem.judged(place, off_before, &mut off)
}

/// By parameters: the logarithms of times observed beside those of the model.
fn compared<'a, E>(
    observed: &'a [f64],
    model: &'a mut dyn FnMut(&Parameters) -> Result<Vec<f64>, E>,
) -> impl FnMut(&Parameters) -> Result<Vec<f64>, FitError<E>> + 'a {
    |at: &Parameters| {
        let times = model(at).map_err(FitError::Predict)?;
        Ok(observed.iter().zip(times).map(|(seen, time)| (seen / time.max(f64::MIN_POSITIVE)).ln()).collect())
    }
}

impl<'a> Problem<'a> {
    const fn of<E>(observed: &[f64], wanted: &'a [Parameter]) -> Result<Self, FitError<E>> {
        if observed.len() <= wanted.len() {
            return Err(FitError::TooFew { found: observed.len(), parameters: wanted.len() });
        }
        Ok(Self { wanted })
    }

    /// The nearest place from here, or from other rates.
    fn nearest<E>(
        &self,
        start: Parameters,
        off: &mut impl FnMut(&Parameters) -> Result<Vec<f64>, FitError<E>>,
    ) -> Result<Place, FitError<E>> {
        let mut best = self.search(start, off)?;
        if !is_good(&best.residuals) {
            for again in self.other_starts(start, &best, off)? {
                let found = self.search(again, off)?;
                if mean_off(&found.residuals) < mean_off(&best.residuals) * 0.98 {
                    best = found;
                }
            }
        }
        Ok(best)
    }

    fn search<E>(
        &self,
        start: Parameters,
        off: &mut impl FnMut(&Parameters) -> Result<Vec<f64>, FitError<E>>,
    ) -> Result<Place, FitError<E>> {
        let wanted = self.wanted;
        let mut at = start;
        let mut residuals = off(&at)?;
        let mut columns = slopes(wanted, &at, &residuals, 1.0, off)?;
        for trust in [Trust::Less, Trust::None] {
            for _ in 0..STEPS_MAX {
                let weights = trust.weights(&residuals);
                let Some(step) = free_step(wanted, &at, &columns, &residuals, &weights) else { break };
                let mut better = None;
                for halvings in 0..HALVINGS_MAX {
                    let shorter: Vec<f64> = step.iter().map(|step| step / f64::from(1_u32 << halvings)).collect();
                    let (next, moved) = stepped(wanted, &at, &shorter);
                    let found = off(&next)?;
                    if loss(&found, &weights) < loss(&residuals, &weights) {
                        better = Some((next, found, moved));
                        break;
                    }
                }
                let Some((next, found, moved)) = better else { break };
                (at, residuals) = (next, found);
                columns = slopes(wanted, &at, &residuals, 1.0, off)?;
                if moved < STEP_LEAST {
                    break;
                }
            }
        }
        Ok(Place { at, residuals })
    }

    /// The two best of some rates to begin with, at the latencies found so far.
    fn other_starts<E>(
        &self,
        start: Parameters,
        found: &Place,
        off: &mut impl FnMut(&Parameters) -> Result<Vec<f64>, FitError<E>>,
    ) -> Result<Vec<Parameters>, FitError<E>> {
        let rates: Vec<Parameter> = self.wanted.iter().copied().filter(|one| !one.is_latency()).collect();
        let mut tried = vec![Parameters { inside: start.inside, across: start.across, ..found.at }];
        for &rate in &rates {
            let with = |at: &Parameters| RATES_TRIED.map(|value| at.with(rate, value));
            tried = tried.iter().flat_map(with).collect();
        }
        let mut scored = Vec::with_capacity(tried.len());
        for at in tried {
            scored.push((mean_off(&off(&at)?), at));
        }
        scored.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(scored.into_iter().take(2).map(|(_, at)| at).collect())
    }

    fn judged<E>(
        &self,
        place: Place,
        off_before: f64,
        off: &mut impl FnMut(&Parameters) -> Result<Vec<f64>, FitError<E>>,
    ) -> Result<Fit, FitError<E>> {
        let mut at = place.at;
        let mut surface = Surface::around(self.wanted, &at, RADIUS_FIRST, off)?;
        let mut settled = surface.settled(self.wanted, &at);
        for _ in 0..SURFACES_MAX {
            at = self.moved(&at, &settled.steps);
            let is_there = self.is_near(&settled);
            surface = Surface::around(self.wanted, &at, RADIUS, off)?;
            settled = surface.settled(self.wanted, &at);
            if is_there && self.is_near(&settled) {
                break;
            }
        }
        let at = self.moved(&at, &settled.steps);
        let hidden = self.hidden(&at, &surface, &settled, off)?;
        let Settled { errors, residuals, noise, .. } = settled;
        let tails = if surface.jumps.is_empty() { 1.0 } else { JUMP_TAILS };
        let weakest = surface.weakest;
        let mut estimates = Vec::new();
        let mut open = Vec::new();
        for (number, (&parameter, &error)) in self.wanted.iter().zip(&errors).enumerate() {
            let value = at.get(parameter);
            let unit = unit(parameter, &at);
            let own = value / unit;
            let most = if parameter.is_latency() { (ERROR_MAX * own).max(ERROR_OF_SUM_MAX) } else { ERROR_MAX };
            if let Some(&(_, other)) = hidden.iter().find(|(rate, _)| *rate == parameter) {
                open.push(Undetermined { parameter, why: Why::Like(other) });
            } else if error <= most {
                estimates.push(Estimate { parameter, value, error: tails * error * unit });
            } else {
                open.push(Undetermined {
                    parameter,
                    why: self.why(number, &weakest, error / own.max(ERROR_OF_SUM_MAX)),
                });
            }
        }
        let off_after = middle(&residuals);
        let misfits = misfits(&residuals);
        Ok(Fit { estimates, open, parameters: at, residuals, misfits, off_before, off_after, noise })
    }

    /// Rates that are not determined by times of their own, where the times that both rates change leave the other open: links
    /// of one kind hide what others would do, and other values of both may fit as well. Each with the other.
    fn hidden<E>(
        &self,
        at: &Parameters,
        surface: &Surface,
        settled: &Settled,
        off: &mut impl FnMut(&Parameters) -> Result<Vec<f64>, FitError<E>>,
    ) -> Result<Vec<(Parameter, Parameter)>, FitError<E>> {
        let mut hidden = Vec::new();
        let rates = [Parameter::InsideRate, Parameter::AcrossRate];
        for (rate, other) in [(rates[0], rates[1]), (rates[1], rates[0])] {
            let places = [rate, other].map(|one| self.wanted.iter().position(|wanted| *wanted == one));
            let [Some(rate_at), Some(other_at)] = places else { continue };
            let is_open = settled.errors[other_at] > ERROR_MAX && has_effect(&surface.weakest[other_at]);
            if !is_open || settled.errors[rate_at] > ERROR_MAX {
                continue;
            }
            let [here, there] = [*at, at.with(other, at.get(other) / 2.0)].map(|at| off(&at));
            let own: Vec<f64> = here?.iter().zip(there?).map(|(here, there)| (here - there).abs()).collect();
            let own: Vec<f64> = own.into_iter().map(|change| f64::from(u8::from(change < EFFECT_LEAST))).collect();
            if surface.errors(&own, settled)[rate_at] > ERROR_MAX {
                hidden.push((rate, other));
            }
        }
        Ok(hidden)
    }

    /// The parameters after steps, none of more than a few radii.
    fn moved(&self, at: &Parameters, steps: &[f64]) -> Parameters {
        let mut next = *at;
        for (&parameter, step) in self.wanted.iter().zip(steps) {
            let least = if parameter.is_latency() { 0.0 } else { FACTOR_LEAST };
            let step = step.clamp(-2.0 * RADIUS_FIRST, 2.0 * RADIUS_FIRST);
            next = next.with(parameter, (at.get(parameter) + step * unit(parameter, at)).max(least));
        }
        next
    }

    /// Whether the parameters that may be determined are well within the surface.
    fn is_near(&self, settled: &Settled) -> bool {
        settled
            .steps
            .iter()
            .zip(&settled.errors)
            .all(|(step, error)| step.abs() < RADIUS / 2.0 || *error > 2.0 * ERROR_MAX)
    }

    fn why(&self, number: usize, columns: &[Vec<f64>], error: f64) -> Why {
        let Some(column) = columns.get(number).filter(|column| has_effect(column)) else { return Why::NoEffect };
        let ones = vec![1.0; column.len()];
        let length = |column: &[f64]| product(column, column, &ones).sqrt().max(f64::MIN_POSITIVE);
        let likeness = |other: &[f64]| (product(column, other, &ones) / length(column) / length(other)).abs();
        let others = columns.iter().zip(self.wanted).enumerate().filter(|(other, _)| *other != number);
        let nearest = others.map(|(_, (other, &parameter))| (likeness(other), parameter));
        let nearest = nearest.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(likeness, _)| *likeness > ALIKE);
        nearest.map_or(Why::Spread(error), |(_, parameter)| Why::Like(parameter))
    }
}

/// Places of times that are far off, the worst first.
fn misfits(residuals: &[f64]) -> Vec<usize> {
    let least = (TUKEY * spread(residuals.iter().copied(), 0.0)).max(MISFIT_LEAST);
    let mut places: Vec<usize> = (0..residuals.len()).filter(|&place| residuals[place].abs() > least).collect();
    places.sort_by(|&a, &b| residuals[b].abs().total_cmp(&residuals[a].abs()));
    places
}

fn middle(residuals: &[f64]) -> f64 {
    median(residuals.iter().map(|off| off.exp_m1().abs())).unwrap_or(0.0)
}

/// The mean difference, those of more than a factor of e counted as that.
fn mean_off(residuals: &[f64]) -> f64 {
    residuals.iter().map(|off| off.abs().min(1.0)).sum::<f64>() / residuals.len().max(1) as f64
}

/// Whether no other start is worth a try.
fn is_good(residuals: &[f64]) -> bool {
    mean_off(residuals) <= OFF_GOOD && misfits(residuals).is_empty()
}

/// What a parameter is counted in: factors by themselves, latencies by their sum, as one of them may be nothing.
fn unit(parameter: Parameter, at: &Parameters) -> f64 {
    match parameter {
        Parameter::Launch => at.launch_ns.max(at.message_ns).max(TRIAL_NS),
        Parameter::Message | Parameter::AcrossLatency => (at.message_ns + at.across_ns).max(TRIAL_NS),
        Parameter::InsideRate | Parameter::AcrossRate => at.get(parameter),
    }
}

/// By parameter: how logarithms of times change with it, in its unit, if it grows (1) or shrinks (-1). Latencies grow always.
fn slopes<E>(
    wanted: &[Parameter],
    at: &Parameters,
    residuals: &[f64],
    side: f64,
    off: &mut impl FnMut(&Parameters) -> Result<Vec<f64>, FitError<E>>,
) -> Result<Vec<Vec<f64>>, FitError<E>> {
    let slope = |&parameter: &Parameter| {
        let unit = unit(parameter, at);
        let change = if parameter.is_latency() { (unit * TRIAL).max(TRIAL_NS) } else { side * unit * TRIAL };
        let changed = off(&at.with(parameter, at.get(parameter) + change))?;
        Ok(residuals.iter().zip(changed).map(|(before, after)| (before - after) * unit / change).collect())
    };
    wanted.iter().map(slope).collect()
}

fn loss(residuals: &[f64], weights: &[f64]) -> f64 {
    residuals.iter().zip(weights).map(|(off, weight)| weight * off * off).sum()
}

/// What the linear problem says, in units of the parameters; `None` if it has no single answer.
fn step(columns: &[Vec<f64>], residuals: &[f64], weights: &[f64]) -> Option<Vec<f64>> {
    let mut matrix = products(columns, weights);
    // So little that it changes no answer, and a matrix that has none gets one.
    for (number, row) in matrix.iter_mut().enumerate() {
        row[number] = row[number] * (1.0 + 1e-9) + 1e-9;
    }
    let side: Vec<f64> = columns.iter().map(|column| product(column, residuals, weights)).collect();
    solution(&matrix, &side)
}

/// The same without latencies that are nothing and would fall below.
fn free_step(
    wanted: &[Parameter],
    at: &Parameters,
    columns: &[Vec<f64>],
    residuals: &[f64],
    weights: &[f64],
) -> Option<Vec<f64>> {
    let mut is_free = vec![true; wanted.len()];
    loop {
        let free: Vec<Vec<f64>> =
            columns.iter().zip(&is_free).filter(|(_, is)| **is).map(|(column, _)| column.clone()).collect();
        let mut found = step(&free, residuals, weights)?.into_iter();
        let steps: Vec<f64> = is_free.iter().map(|&is| if is { found.next().unwrap_or(0.0) } else { 0.0 }).collect();
        let is_held = |&number: &usize| {
            is_free[number] && wanted[number].is_latency() && at.get(wanted[number]) <= 0.0 && steps[number] < 0.0
        };
        match (0..wanted.len()).find(is_held) {
            Some(number) => is_free[number] = false,
            None => return Some(steps),
        }
    }
}

/// The parameters after a step, shortened so that none is more than halved or doubled, and by how much the largest moved.
fn stepped(wanted: &[Parameter], at: &Parameters, step: &[f64]) -> (Parameters, f64) {
    let shorter = step.iter().map(|&step| if step < 0.0 { -0.5 / step } else { 1.0 / step.max(f64::MIN_POSITIVE) });
    let part = shorter.fold(1.0, f64::min);
    let (mut next, mut most) = (*at, 0.0_f64);
    for (&parameter, &step) in wanted.iter().zip(step) {
        let moved = step * part * unit(parameter, at);
        let least = if parameter.is_latency() { 0.0 } else { FACTOR_LEAST };
        next = next.with(parameter, (at.get(parameter) + moved).max(least));
        most = most.max(step.abs());
    }
    (next, most)
}

fn has_effect(column: &[f64]) -> bool {
    column.iter().any(|slope| slope.abs() > EFFECT_LEAST)
}

#[cfg(test)]
mod tests;
