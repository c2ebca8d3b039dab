//! `canopy tools calibrate`: what measured runs say of a network.

mod choose;
mod library;
mod misfits;
mod not_timed;
mod pairs;
mod planned;
mod refused;
mod report;
mod runs;
mod spec;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use canopy_calibrate::{
    Fit, Measured, Overlay, Parameter, Parameters, RUNS_BYTES_MAX, ReadRunsError, SlowLink, read_runs,
};
use canopy_import::unwrapped;
use canopy_schedule::CollectiveKind;
use canopy_simulate::ALPHA_NS_USUAL;
use canopy_stock::nccl::Version;

use self::choose::Launch;
use self::report::{CalibrateSummary, Found};
use self::runs::{Context, Runs};
use self::spec::Spec;
use crate::args;
use crate::clock::Deadline;
use crate::destination::{self, Destination};
use crate::exit::{Failure, words};
use crate::input;
use crate::messages;
use crate::output::{FileSummary, TopologySummary, print_json};
use crate::running::on_a_thread;
use crate::stdout::print;
use crate::whole_file::write_file;

/// Find latencies, rates and slow links of a network from measured runs, for --calibration of every command
#[derive(Debug, clap::Args)]
#[command(after_help = "\
RUN is FILE, FILE=COLLECTIVE or FILE=COLLECTIVE/ALGORITHM, with @T behind it if it ran on another network than T, such as one machine of it.
A file is what nccl-tests, OSU's benchmarks, NCCL's Inspector or `canopy simulate --json` print, or a table with a heading:
`bytes,microseconds`, `collective,algorithm,bytes,microseconds`, or for single links `from,to,bytes,microseconds`.
Runs of nccl-tests are taken for what stock NCCL or RCCL does: a ring for each NIC, trees or NVLS, as it chooses by size.
ALGORITHM is one of `canopy algorithms`, or nccl, nccl-ring, nccl-tree, nccl-nvls, nccl-nvlstree or nccl-pat where NCCL ran.

Examples:
  canopy tools calibrate dgx-h100:boxes=4 gather.txt=allgather one.txt=allgather@dgx-h100 -o calibration.yaml
  canopy tools calibrate dgx-a100:boxes=2 reduce.txt=allreduce/nccl-ring -o calibration.yaml
  canopy tools calibrate dgx-h100:boxes=4 osu.txt=allreduce/ring --keep inside-rate -o calibration.yaml
  canopy tools calibrate job.yaml pairs.csv -o calibration.yaml
  canopy plan dgx-h100:boxes=4 --collective allgather --calibration calibration.yaml -o plan.json

What runs do not determine is left as described, with a warning. Nothing is written if they determine nothing, or if a link
would be faster than it is described.

Exit status: 0 when something was found, 2 when runs cannot be read, determine nothing, or contradict the description.")]
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
    /// Find also what each call takes once (epsilon); the runs must differ in steps for the same size, by algorithm or network
    #[arg(long)]
    launch: bool,
    /// Release of NCCL or RCCL that ran: 2.18 to 2.31, or rccl-2.21 [default: 2.30; RCCL for GPUs of AMD]
    #[arg(long, value_name = "VERSION", value_parser = str::parse::<Version>)]
    nccl: Option<Version>,
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

/// Runs as programs print them, and as launchers, terminals and web pages show them.
fn read_pasted(text: &str) -> Result<Measured, ReadRunsError> {
    read_runs(text).or_else(|error| match unwrapped(text, &|text| read_runs(text).is_ok()) {
        Some(text) => read_runs(&text),
        None => Err(error),
    })
}

fn calibrated(args: &CalibrateArgs) -> Result<(), Failure> {
    let deadline = Deadline::after(Some(args.deadline));
    let topology = input::topology_until(&args.topology, deadline)?;
    let context = Context { network: &args.topology, collective: args.collective, version: args.nccl, deadline };
    let mut runs = Runs::default();
    let mut pairs = Vec::new();
    for text in &args.runs {
        let spec = Spec::of(text)?;
        let refused = |error: &dyn std::error::Error| Failure::input(format!("{}: {}", spec.file, words(error)));
        let text = input::text(&PathBuf::from(&spec.file), RUNS_BYTES_MAX)?;
        match read_pasted(&text).map_err(|error| refused(&error))? {
            Measured::Pairs(found) => pairs.extend(found),
            Measured::Runs(found) => {
                for run in found {
                    runs.add(&spec, run, &context)?;
                }
            }
        }
    }
    let fit = if runs.is_empty() { None } else { Some(fitted(args, &mut runs, deadline)?) };
    let slow = pairs::slow(&topology, &pairs)?;
    let text = written(fit.as_ref(), &slow);
    let mut files = Vec::new();
    if let Some(output) = &args.output {
        match destination::beside_json(Some(output), args.json, "the calibration")? {
            Some(path) => {
                write_file(path, text.as_bytes())?;
                files.push(FileSummary::written("calibration", path, text.as_bytes())?);
            }
            None => return print(text.trim_end()),
        }
    }
    let found = Found { fit, slow, runs: &runs, messages: pairs.len(), is_launch_asked: args.launch };
    let summary = CalibrateSummary::of(TopologySummary::of(&topology), &found, files);
    if args.json { print_json("calibrate", &summary) } else { print(&summary.readable(&args.topology)) }
}

/// Finds the parameters that the networks of the runs have, but for those that are kept.
fn fitted(args: &CalibrateArgs, runs: &mut Runs, deadline: Deadline) -> Result<Fit, Failure> {
    let wanted: Vec<Parameter> = runs.parameters().into_iter().filter(|one| !args.keep.contains(one)).collect();
    let described = Parameters::described(ALPHA_NS_USUAL as f64);
    let launch = if args.launch { Launch::Asked } else { Launch::IfLikelier };
    let fit = choose::fitted(runs, &wanted, described, (launch, deadline)).map_err(refused::not_fitted)?;
    refused::impossible(&fit, runs, deadline)?;
    if fit.estimates.iter().all(|one| one.parameter == Parameter::Launch) {
        return Err(refused::undetermined(&fit, runs));
    }
    for open in &fit.open {
        messages::warn(format_args!("{} is left as described: {}", open.parameter.name(), refused::reason(open)));
    }
    Ok(fit)
}

/// The file: what runs determine, and links slower than described. No rate is above what is described: that of a measurement
/// is by its error.
fn written(fit: Option<&Fit>, slow: &[SlowLink]) -> String {
    let mut parameters = Parameters::described(ALPHA_NS_USUAL as f64);
    let mut stated = BTreeSet::new();
    for one in fit.iter().flat_map(|fit| &fit.estimates).filter(|one| one.parameter != Parameter::Launch) {
        let value = if one.parameter.is_latency() { one.value } else { one.value.min(1.0) };
        parameters = parameters.with(one.parameter, value);
        stated.insert(one.parameter);
    }
    // Of links that may each be the slow one none is trusted.
    let rates = slow.iter().flat_map(|link| {
        let ends = std::iter::once((link.from.clone(), link.to.clone())).chain(link.or_else.iter().cloned());
        ends.map(|ends| (ends, link.reached))
    });
    let mut text = Overlay::new(&parameters, stated, rates.collect()).to_yaml();
    for open in fit.iter().flat_map(|fit| &fit.open) {
        text += &format!("# as described: {}; {}\n", open.parameter.name(), refused::reason(open));
    }
    text
}
