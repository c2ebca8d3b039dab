//! Why nothing is found, or not all of it, and what to do.

use canopy_calibrate::{Fit, FitError, Parameter, RATE_MAX, Undetermined, Why};
use canopy_client::ErrorClass;

use super::misfits::misfits;
use super::not_timed::NotTimed;
use super::planned::Care;
use super::runs::Runs;
use crate::clock::Deadline;
use crate::exit::{Failure, words};
use crate::sizes::in_words;

/// A run shows that a rate is too high if it is faster by this part than it would be at the rate as described.
const FASTER_LEAST: f64 = 0.02;

/// A rate so far above the description that no spread of times explains it.
const FAR_ABOVE: f64 = 1.5;

/// No fit at all.
pub(super) fn not_fitted(error: FitError<NotTimed>) -> Failure {
    let said = words(&error);
    match error {
        FitError::Predict(NotTimed::Late) => {
            Failure::new(ErrorClass::Deadline, "the deadline came before all runs were simulated".to_owned())
                .help("raise `--deadline`, or leave out large messages")
        }
        FitError::Predict(NotTimed::Wrong(what)) => Failure::input(what),
        FitError::TooFew { .. } => Failure::input(said).help("run more sizes, such as 1 KiB to 1 GiB"),
    }
}

/// Whether runs show a rate above that of the description, also where they do not say how much above.
fn is_impossible(fit: &Fit, rate: Parameter) -> bool {
    let value = fit.parameters.get(rate);
    let open = fit.open.iter().find(|open| open.parameter == rate);
    match open.map(|open| open.why) {
        None => value > RATE_MAX,
        Some(Why::Spread(_)) => value > FAR_ABOVE,
        Some(Why::NoEffect | Why::Like(_)) => false,
    }
}

/// Refuses rates above those of the description.
pub(super) fn impossible(fit: &Fit, runs: &Runs, deadline: Deadline) -> Result<(), Failure> {
    let rates = [Parameter::InsideRate, Parameter::AcrossRate];
    let Some(rate) = rates.into_iter().find(|&rate| is_impossible(fit, rate)) else { return Ok(()) };
    let slower = fit.parameters.with(rate, 1.0);
    let times = runs
        .times(runs.taken(), &slower, Care::Rough, deadline)
        .map_err(|error| not_fitted(FitError::Predict(error)))?;
    let links = if rate == Parameter::InsideRate { "inside boxes" } else { "between boxes" };
    let mut failure = Failure::input(format!(
        "by these runs links {links} are {:.2} times as fast as described, and no link is: nothing is written",
        fit.parameters.get(rate)
    ));
    let mut place = 0;
    for (timed, reading) in runs.each() {
        let own = times.get(place..place + timed.points.len()).unwrap_or_default();
        place += timed.points.len();
        let faster = timed.points.iter().zip(own).filter(|(point, time)| point.micros * (1.0 + FASTER_LEAST) < **time);
        let largest = faster.clone().max_by_key(|(point, _)| point.bytes);
        if let Some((point, time)) = largest {
            failure = failure.note(format!(
                "{}: {} of {} times are too fast for {} by {} on {}; {} took {:.1} µs, and {:.1} at the rates as described",
                timed.file, faster.count(), timed.points.len(), timed.kind, timed.taken_for(reading), timed.network,
                in_words(point.bytes), point.micros, time
            ));
        }
    }
    Err(failure.help(
        "check collective, algorithm (`FILE=COLLECTIVE/nccl` if NCCL ran) and network (`FILE@T`) of these runs; if links are \
         faster, state their rate in the network",
    ))
}

/// Runs that determine nothing.
pub(super) fn undetermined(fit: &Fit, runs: &Runs) -> Failure {
    let names: Vec<&str> = fit.open.iter().map(|one| one.parameter.name()).collect();
    let first = names.first().copied().unwrap_or_default();
    let failure = Failure::input(format!("the runs do not determine {}", names.join(", ")));
    let failure = fit
        .open
        .iter()
        .fold(failure, |failure, one| failure.note(format!("{}: {}", one.parameter.name(), reason(one))));
    let failure = misfits(fit, runs).iter().take(3).fold(failure, |failure, misfit| failure.note(misfit.line()));
    failure.help(format!("add runs that differ in it, or take it as described: `--keep {first}`"))
}

/// Why a parameter is open, and which runs would tell.
pub(super) fn reason(open: &Undetermined) -> String {
    let runs = match open.parameter {
        Parameter::Message => "small messages",
        Parameter::AcrossLatency => "small messages across boxes and within one",
        Parameter::InsideRate => "large messages within one box (`FILE@T` names its network)",
        Parameter::AcrossRate => "large messages across boxes",
        Parameter::Launch => "small messages of several collectives",
    };
    match open.why {
        Why::NoEffect => format!("no time depends on it; {runs} would"),
        Why::Like(other) => format!("it changes all times as {} does; {runs} tell them apart", other.name()),
        Why::Spread(error) if error.is_finite() && error < 10.0 => {
            format!("times spread so much that it may be off by {:.0} %; more runs of {runs} tell", 200.0 * error)
        }
        Why::Spread(_) => format!("next to no time depends on it; {runs} would"),
    }
}
