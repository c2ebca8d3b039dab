//! `canopy calibrate`: what measured runs say of a network.

mod pairs;
mod report;
mod runs;

use std::path::PathBuf;
use std::time::Duration;

use canopy_calibrate::{
    FitError, Measured, Overlay, Parameter, Parameters, RUNS_BYTES_MAX, Undetermined, fit, read_runs,
};
use canopy_client::ErrorClass;
use canopy_schedule::CollectiveKind;
use canopy_simulate::ALPHA_NS_USUAL;

use self::report::{CalibrateSummary, Found};
use self::runs::{NotTimed, Runs};
use crate::args;
use crate::clock::Deadline;
use crate::commands::on_a_thread;
use crate::destination::{self, Destination};
use crate::exit::{Failure, words};
use crate::input;
use crate::output::{FileSummary, TopologySummary, print_json};
use crate::progress::ProgressLine;
use crate::stdout::print;
use crate::whole_file::write_file;

/// Find latencies, rates and slow links of a network from measured runs, for --calibration of every command
#[derive(Debug, clap::Args)]
#[command(after_help = "\
RUN is FILE, FILE=COLLECTIVE or FILE=COLLECTIVE/ALGORITHM, with @T behind it if it ran on another network than T, such as one machine of it.
A file is what nccl-tests, OSU's benchmarks, NCCL's Inspector or `canopy simulate --json` print, or a table with a heading:
`bytes,microseconds`, `collective,algorithm,bytes,microseconds`, or for single links `from,to,bytes,microseconds`.
Runs of NCCL are taken for its rings: run them with NCCL_ALGO=Ring NCCL_PROTO=Simple.

Examples:
  canopy calibrate dgx-h100:boxes=4 gather.txt=allgather one.txt=allgather@dgx-h100 -o calibration.yaml
  canopy calibrate dgx-h100:boxes=4 osu.txt=allreduce/ring --keep inside-rate -o calibration.yaml
  canopy calibrate job.yaml pairs.csv -o calibration.yaml
  canopy plan dgx-h100:boxes=4 --collective allgather --calibration calibration.yaml -o plan.json

Exit status: 0 when all was found, 2 when runs cannot be read, or leave something open.")]
pub(crate) struct CalibrateArgs {
    /// Generator expression or file of the network as it is described
    #[arg(value_name = "T")]
    topology: String,
    /// Measured runs
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// Collective of runs that do not state theirs
    #[arg(long, short, value_name = "C")]
    collective: Option<CollectiveKind>,
    /// Take these as described: message, across-latency, inside-rate, across-rate
    #[arg(long, value_name = "P,...", value_delimiter = ',', value_parser = parameter)]
    keep: Vec<Parameter>,
    /// File to write, or `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<Destination>,
    /// Longest time for all of it
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = args::duration)]
    deadline: Duration,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
}

fn parameter(name: &str) -> Result<Parameter, String> {
    let known = || Parameter::ALL.iter().map(|parameter| parameter.name());
    Parameter::ALL
        .into_iter()
        .find(|parameter| parameter.name() == name)
        .ok_or_else(|| format!("unknown parameter `{name}`; use {}", known().collect::<Vec<_>>().join(", ")))
}

/// Calibrates, on a thread of its own.
pub(crate) async fn run(args: CalibrateArgs) -> Result<(), Failure> {
    on_a_thread(move || calibrated(&args)).await
}

fn calibrated(args: &CalibrateArgs) -> Result<(), Failure> {
    let deadline = Deadline::after(Some(args.deadline));
    let topology = input::topology_until(&args.topology, deadline)?;
    let mut runs = Runs::default();
    let mut pairs = Vec::new();
    for text in &args.runs {
        let spec = runs::Spec::of(text)?;
        let refused = |error: &dyn std::error::Error| Failure::input(format!("{}: {}", spec.file, words(error)));
        match read_runs(&input::text(&PathBuf::from(&spec.file), RUNS_BYTES_MAX)?).map_err(|error| refused(&error))? {
            Measured::Pairs(found) => pairs.extend(found),
            Measured::Runs(found) => {
                for run in found {
                    runs.add(&spec, run, args.collective, &args.topology, deadline)?;
                }
            }
        }
    }
    let described = Parameters::described(ALPHA_NS_USUAL as f64);
    let fitted = if runs.is_empty() { None } else { Some(fitted(args, &runs, described, deadline)?) };
    let slow = pairs::slow(&topology, &pairs)?;
    let parameters = fitted.as_ref().map_or(described, |fitted| fitted.parameters);
    // Of links that may each be the slow one none is trusted.
    let rates = slow.iter().flat_map(|link| {
        let ends = std::iter::once((link.from.clone(), link.to.clone())).chain(link.or_else.iter().cloned());
        ends.map(|ends| (ends, link.reached))
    });
    let overlay = Overlay::new(parameters, rates.collect());
    let mut files = Vec::new();
    let text = overlay.to_yaml();
    if let Some(output) = &args.output {
        match destination::beside_json(Some(output), args.json, "the calibration")? {
            Some(path) => {
                write_file(path, text.as_bytes())?;
                files.push(FileSummary::written("calibration", path, text.as_bytes())?);
            }
            None => return print(text.trim_end()),
        }
    }
    let found = Found { fit: fitted, slow, times: runs.observed().len(), messages: pairs.len() };
    let summary = CalibrateSummary::of(TopologySummary::of(&topology), &found, files);
    if args.json { print_json("calibrate", &summary) } else { print(&summary.readable(&args.topology)) }
}

/// Finds all parameters that the networks of the runs have, but for those that are kept.
fn fitted(
    args: &CalibrateArgs,
    runs: &Runs,
    described: Parameters,
    deadline: Deadline,
) -> Result<canopy_calibrate::Fit, Failure> {
    let wanted: Vec<Parameter> = runs.parameters().into_iter().filter(|one| !args.keep.contains(one)).collect();
    let (observed, line) = (runs.observed(), ProgressLine::start());
    let mut rounds = 0;
    let mut model = |at: &Parameters| {
        rounds += 1;
        line.working(format!("simulating {} times, round {rounds}", observed.len()));
        runs.times(at, deadline)
    };
    let found = fit(&observed, &wanted, described, &mut model);
    drop(line);
    found.map_err(refused)
}

/// Why nothing was found, and what to do.
fn refused(error: FitError<NotTimed>) -> Failure {
    let said = words(&error);
    match error {
        FitError::Predict(NotTimed::Late) => {
            Failure::new(ErrorClass::Deadline, "the deadline came before all runs were simulated".to_owned())
                .help("raise `--deadline`, or leave out large messages")
        }
        FitError::Predict(NotTimed::Wrong(what)) => Failure::input(what),
        FitError::TooFew { .. } => Failure::input(said).help("run more sizes, such as 1 KiB to 1 GiB"),
        FitError::Undetermined(open) => {
            let first = open.first().map_or("", |one| one.parameter.name());
            let help = format!("add runs that differ in it, or take it as described: `--keep {first}`");
            open.iter().fold(Failure::input(said), |failure, one| failure.note(reason(one))).help(help)
        }
    }
}

/// Why a parameter is open, and which runs would tell.
fn reason(open: &Undetermined) -> String {
    let name = open.parameter.name();
    let runs = match open.parameter {
        Parameter::Message => "small messages",
        Parameter::AcrossLatency => "small messages across boxes and within one",
        Parameter::InsideRate => "large messages within one box (`FILE@T` names its network)",
        Parameter::AcrossRate => "large messages across boxes",
    };
    match open.as_with {
        None => format!("{name}: no time depends on it; {runs} would"),
        Some(other) => format!("{name}: it changes all times as {} does; {runs} tell them apart", other.name()),
    }
}
