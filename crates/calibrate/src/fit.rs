//! The parameters with which runs would have taken what they took, and those that the runs do not determine.
//!
//! Times spread in proportion to themselves, so logarithms of times are compared. Each step solves the linear problem at
//! the parameters so far (Gauss–Newton). Runs far off count less, and at last nothing (Huber, Tukey), so a cold first
//! call spoils nothing. How far a parameter may be off follows from how much times change with it: if that is too far, or
//! if another parameter changes all times in the same way, the runs do not determine it.

use crate::parameters::{Parameter, Parameters};
use crate::solve::{inverse, median, product, products, solution, spread};

/// Steps until the end at the latest.
const STEPS_MAX: usize = 25;
/// A step of less than this part ends it.
const STEP_LEAST: f64 = 1e-5;
/// How often a step that leads to nothing better is halved.
const HALVINGS_MAX: u32 = 8;
/// Deviations, in standard deviations, from which on runs count less.
const HUBER: f64 = 1.345;
/// The same from which on they do not count at all.
const TUKEY: f64 = 4.685;
/// Noise that is assumed at least: no clock and no model is better.
const NOISE_LEAST: f64 = 0.005;
/// The same where it is asked how far off parameters may be: a few runs can look better than they are.
const NOISE_USUAL: f64 = 0.02;
/// Standard error of a rate that is determined, as a part of it: twice as much is 5 %.
const RATE_ERROR_MAX: f64 = 0.025;
/// The same of a latency.
const LATENCY_ERROR_MAX: f64 = 0.05;
/// The same of one that is next to nothing: part of all of them together.
const ERROR_OF_SUM_MAX: f64 = 0.02;
/// A parameter has no effect if doubling it changes no time by more than this part.
const EFFECT_LEAST: f64 = 0.01;
/// By how much parameters are changed to see what that does.
const TRIAL: f64 = 0.02;
/// The same for times, at least, in ns.
const TRIAL_NS: f64 = 20.0;
/// The least factor of rates.
const FACTOR_LEAST: f64 = 0.001;

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
    /// Those asked for, in that order.
    pub estimates: Vec<Estimate>,
    /// All values.
    pub parameters: Parameters,
    /// Median difference of a time from the model's, as a part of it: as described, and with what was found.
    pub off_before: f64,
    /// See `off_before`.
    pub off_after: f64,
}

/// A parameter that runs do not determine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undetermined {
    /// Which.
    pub parameter: Parameter,
    /// Another that changes all times in the same way; none if no time depends on it.
    pub as_with: Option<Parameter>,
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
    /// The runs do not determine these.
    #[error("the runs do not determine {}", names(.0))]
    Undetermined(Vec<Undetermined>),
}

fn names(undetermined: &[Undetermined]) -> String {
    undetermined.iter().map(|one| one.parameter.name()).collect::<Vec<_>>().join(", ")
}

/// Parameters with which the model's times are nearest to those observed.
///
/// * **In.** Times in any unit, > 0; what to find; where to start, and what all others are; the times of all runs by the model,
///   in the same unit and order.
/// * **Errors.** Too few runs, runs that leave a parameter open, and errors of the model.
/// * **Cost.** Some 25 · (parameters + 1) calls of the model at most.
pub fn fit<E>(
    observed: &[f64],
    wanted: &[Parameter],
    start: Parameters,
    model: &mut dyn FnMut(&Parameters) -> Result<Vec<f64>, E>,
) -> Result<Fit, FitError<E>> {
    if observed.len() <= wanted.len() {
        return Err(FitError::TooFew { found: observed.len(), parameters: wanted.len() });
    }
    let mut off = |at: &Parameters| -> Result<Vec<f64>, FitError<E>> {
        let times = model(at).map_err(FitError::Predict)?;
        Ok(observed.iter().zip(times).map(|(seen, time)| (seen / time.max(f64::MIN_POSITIVE)).ln()).collect())
    };
    let mut at = start;
    let mut residuals = off(&at)?;
    let middle = |residuals: &[f64]| median(residuals.iter().map(|off| off.exp_m1().abs())).unwrap_or(0.0);
    let off_before = middle(&residuals);
    let mut columns = slopes(wanted, &at, &residuals, &mut off)?;
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
            columns = slopes(wanted, &at, &residuals, &mut off)?;
            if moved < STEP_LEAST {
                break;
            }
        }
    }
    // As many residuals as parameters can be made nothing.
    let freedom = observed.len() as f64 / (observed.len() - wanted.len()) as f64;
    let noise = (spread(residuals.iter().copied(), 0.0) * freedom.sqrt()).max(NOISE_USUAL);
    let errors = errors(&columns, noise);
    let undetermined = undetermined(wanted, &at, &columns, &errors);
    if !undetermined.is_empty() {
        return Err(FitError::Undetermined(undetermined));
    }
    let estimate = |(&parameter, error): (&Parameter, f64)| Estimate {
        parameter,
        value: at.get(parameter),
        error: error * unit(parameter, &at),
    };
    let estimates = wanted.iter().zip(errors).map(estimate).collect();
    Ok(Fit { estimates, parameters: at, off_before, off_after: middle(&residuals) })
}

/// What a parameter is counted in: factors by themselves, latencies by their sum, as one of them may be nothing.
fn unit(parameter: Parameter, at: &Parameters) -> f64 {
    if parameter.is_latency() { (at.message_ns + at.across_ns).max(TRIAL_NS) } else { at.get(parameter) }
}

/// By parameter: how logarithms of times change with it, in its unit.
fn slopes<E>(
    wanted: &[Parameter],
    at: &Parameters,
    residuals: &[f64],
    off: &mut impl FnMut(&Parameters) -> Result<Vec<f64>, FitError<E>>,
) -> Result<Vec<Vec<f64>>, FitError<E>> {
    let slope = |&parameter: &Parameter| {
        let unit = unit(parameter, at);
        let change = (unit * TRIAL).max(if parameter.is_latency() { TRIAL_NS } else { 0.0 });
        let changed = off(&at.with(parameter, at.get(parameter) + change))?;
        Ok(residuals.iter().zip(changed).map(|(before, after)| (before - after) * unit / change).collect())
    };
    wanted.iter().map(slope).collect()
}

/// What runs far off still count.
#[derive(Clone, Copy)]
enum Trust {
    /// The further off, the less (Huber): that leads from anywhere to the right place, or near it.
    Less,
    /// From some distance on nothing (Tukey): there, that takes off what outliers still pull.
    None,
}

impl Trust {
    fn weights(self, residuals: &[f64]) -> Vec<f64> {
        let middle = median(residuals.iter().copied()).unwrap_or(0.0);
        let spread = spread(residuals.iter().copied(), middle).max(NOISE_LEAST);
        let weight = |off: &f64| {
            let deviations = (off - middle).abs() / spread;
            match self {
                Self::Less => (HUBER / deviations.max(f64::MIN_POSITIVE)).min(1.0),
                Self::None => (1.0 - (deviations / TUKEY).powi(2)).max(0.0).powi(2),
            }
        };
        residuals.iter().map(weight).collect()
    }
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

/// By parameter: its standard error in its unit; infinite if no time depends on it, or if others change all times alike.
fn errors(columns: &[Vec<f64>], noise: f64) -> Vec<f64> {
    let counted: Vec<Vec<f64>> = columns.iter().filter(|column| has_effect(column)).cloned().collect();
    let ones = vec![1.0; counted.first().map_or(0, Vec::len)];
    let inverse = inverse(&products(&counted, &ones));
    let mut places = 0_usize..;
    let error = |column: &Vec<f64>| {
        let place = if has_effect(column) { places.next() } else { None };
        let row = place.and_then(|place| inverse.as_ref()?.get(place)?.get(place).copied());
        row.map_or(f64::INFINITY, |variance| noise * variance.abs().sqrt())
    };
    columns.iter().map(error).collect()
}

fn has_effect(column: &[f64]) -> bool {
    column.iter().any(|slope| slope.abs() > EFFECT_LEAST)
}

fn undetermined(wanted: &[Parameter], at: &Parameters, columns: &[Vec<f64>], errors: &[f64]) -> Vec<Undetermined> {
    let ones = vec![1.0; columns.first().map_or(0, Vec::len)];
    let length = |column: &[f64]| product(column, column, &ones).sqrt().max(f64::MIN_POSITIVE);
    let as_with = |number: usize| {
        let column = columns.get(number).filter(|column| has_effect(column))?;
        let likeness = |other: &[f64]| (product(column, other, &ones) / length(column) / length(other)).abs();
        let others = columns.iter().zip(wanted).filter(|&(other, _)| !std::ptr::eq(other, column));
        let nearest = others.max_by(|a, b| likeness(a.0).total_cmp(&likeness(b.0)));
        nearest.map(|(_, &parameter)| parameter)
    };
    let is_open = |&(_, (&parameter, &error)): &(usize, (&Parameter, &f64))| {
        let own = at.get(parameter) / unit(parameter, at);
        let most =
            if parameter.is_latency() { (LATENCY_ERROR_MAX * own).max(ERROR_OF_SUM_MAX) } else { RATE_ERROR_MAX };
        error.is_nan() || error > most
    };
    let open = wanted.iter().zip(errors).enumerate().filter(is_open);
    open.map(|(number, (&parameter, _))| Undetermined { parameter, as_with: as_with(number) }).collect()
}

#[cfg(test)]
mod tests;
