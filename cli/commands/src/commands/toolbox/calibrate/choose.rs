//! What runs are taken for, where that is not stated: what fits their times.

use canopy_calibrate::{Fit, FitError, Parameter, Parameters, RATE_MAX, approach, fit};

use super::not_timed::NotTimed;
use super::planned::Care;
use super::runs::Runs;
use crate::clock::Deadline;
use crate::progress::ProgressLine;

/// A mean difference below which nothing better is looked for.
const OFF_GOOD: f64 = 0.03;
/// The same below which none is better than another.
const OFF_LEAST: f64 = 0.01;
/// Another reading counts if its differences are less than this part of those of the first.
const BETTER: f64 = 0.6;
/// Rates below this part of what is described are rare, so another reading may be meant.
const RATE_USUAL: f64 = 0.7;
/// How much that counts, by the logarithm of the rate.
const RARE: f64 = 2.5;
/// The same of rates above what links can have.
const IMPOSSIBLE: f64 = 30.0;
/// How much more likely times must be, by the logarithm, with something that each call takes once.
const LIKELIER: f64 = 4.0;
/// Most runs that are tried one by one.
const SINGLE_MAX: usize = 6;

/// Whether what each call takes once is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Launch {
    /// Only in runs of libraries, and only if times are much likelier with it.
    IfLikelier,
    /// In all runs; if they do not determine it, it is open, and the others are found without it.
    Asked,
}

/// Fits parameters to runs, and takes the runs for what fits best.
pub(super) fn fitted(
    runs: &mut Runs,
    wanted: &[Parameter],
    described: Parameters,
    (launch, deadline): (Launch, Deadline),
) -> Result<Fit, FitError<NotTimed>> {
    let observed = runs.observed();
    let line = ProgressLine::start();
    let mut rounds = 0;
    let mut times = |runs: &Runs, taken: &[usize], at: &Parameters, care| {
        rounds += 1;
        line.working(format!("computing {} times, round {rounds}", observed.len()));
        runs.times(taken, at, care, deadline)
    };
    let mut start = described;
    if runs.are_rough() {
        let mut model = |at: &Parameters| times(runs, runs.taken(), at, Care::Rough);
        start = approach(&observed, wanted, described, &mut model)?;
    }
    let mut fit_as = |runs: &Runs, taken: &[usize], wanted: &[Parameter]| {
        // Times that are computed roughly are off by as much near the start.
        let [exact, rough] = [Care::Exact, Care::Rough].map(|care| times(runs, taken, &start, care));
        let off = exact.map_err(FitError::Predict)?.into_iter().zip(rough.map_err(FitError::Predict)?);
        let off: Vec<f64> = off.map(|(exact, rough)| exact / rough).collect();
        let mut model = |at: &Parameters| {
            let rough = times(runs, taken, at, Care::Rough)?;
            Ok(rough.iter().zip(&off).map(|(time, off)| time * off).collect())
        };
        fit(&observed, wanted, described, start, &mut model)
    };
    let mut taken = runs.taken().to_vec();
    let mut best = fit_as(runs, &taken, wanted)?;
    for tried in others(&runs.choices()) {
        if best.off() <= OFF_GOOD && oddness(&best, wanted) <= 0.0 {
            break;
        }
        let found = fit_as(runs, &tried, wanted)?;
        if score(&found, wanted) < score(&best, wanted) * BETTER {
            (best, taken) = (found, tried);
        }
    }
    let more: Vec<Parameter> = wanted.iter().copied().chain([Parameter::Launch]).collect();
    if launch == Launch::Asked {
        best = asked(best, fit_as(runs, &taken, &more)?);
    } else if runs.has_calls() {
        let found = fit_as(runs, &taken, &more).ok();
        let is_likelier = |found: &Fit| {
            let states = |fit: &Fit| fit.estimates.iter().filter(|one| one.parameter != Parameter::Launch).count();
            let likelier = observed.len() as f64 * (best.noise / found.noise).ln();
            likelier > LIKELIER && states(found) >= states(&best) && found.parameters.launch_ns > 0.0
        };
        best = found.filter(is_likelier).unwrap_or(best);
    }
    drop(line);
    runs.take(taken);
    Ok(best)
}

/// The fit with what each call takes once if the runs determine it, else the one without, where it is open.
fn asked(without: Fit, with: Fit) -> Fit {
    match with.open.iter().find(|open| open.parameter == Parameter::Launch) {
        None => with,
        Some(&open) => Fit { open: without.open.iter().copied().chain([open]).collect(), ..without },
    }
}

/// Other readings of all runs: each second one, and that of each run alone.
fn others(choices: &[usize]) -> Vec<Vec<usize>> {
    let second = |is_tried: &dyn Fn(usize) -> bool| -> Vec<usize> {
        choices.iter().enumerate().map(|(run, &count)| usize::from(count > 1 && is_tried(run))).collect()
    };
    let open: Vec<usize> = (0..choices.len()).filter(|&run| choices[run] > 1).collect();
    let all = (!open.is_empty()).then(|| second(&|_| true));
    let single =
        open.iter().filter(|_| (2..=SINGLE_MAX).contains(&open.len())).map(|&run| second(&|other| other == run));
    all.into_iter().chain(single).collect()
}

/// How far times are off; more with rates that are rare, much more with rates that no link has.
fn score(fit: &Fit, wanted: &[Parameter]) -> f64 {
    fit.off().max(OFF_LEAST) * (1.0 + oddness(fit, wanted))
}

fn oddness(fit: &Fit, wanted: &[Parameter]) -> f64 {
    let rates = wanted.iter().filter(|one| !one.is_latency()).map(|&one| fit.parameters.get(one));
    let odd = |rate: f64| RARE * (RATE_USUAL / rate).ln().max(0.0) + IMPOSSIBLE * (rate / RATE_MAX).ln().max(0.0);
    rates.map(odd).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_second_readings_are_tried_and_each_alone() {
        assert_eq!(others(&[1, 1]), Vec::<Vec<usize>>::new());
        assert_eq!(others(&[2, 1]), [[1, 0]]);
        assert_eq!(others(&[2, 1, 2]), [[1, 0, 1], [1, 0, 0], [0, 0, 1]]);
        assert_eq!(others(&[2; 9]).len(), 1);
    }
}
