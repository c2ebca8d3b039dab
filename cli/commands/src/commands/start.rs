//! `canopy start`: what a job with a stock library can gain on a network: an order of ranks, a tuner table, plans, or nothing.

use std::time::Duration;

use canopy_schedule::CollectiveKind;
use canopy_stock::nccl::{Choice, Seen, Stock, Version};
use canopy_synth::Algorithm;
use canopy_topology::Topology;
use serde::Serialize;

use super::bound;
use super::order_gain::{OrderGain, gain_of};
use super::simulate::stock::{GAIN_LEAST, gain_least};
use crate::args;
use crate::clock::Deadline;
use crate::exit::{Failure, GET_TOOLS};
use crate::handover;
use crate::input;
use crate::material::Material;
use crate::output::{TopologySummary, print_json};
use crate::progress::ProgressLine;
use crate::running::on_a_thread;
use crate::sizes::{Sizes, in_words};
use crate::stdout::print;
use crate::stock::{Library, Model, no_model, stock_of};
use crate::table::{Table, count};

/// Collectives of training, and the programs of nccl-tests that measure them.
const MEASURED: [(CollectiveKind, &str); 3] = [
    (CollectiveKind::Allreduce, "all_reduce_perf"),
    (CollectiveKind::Allgather, "all_gather_perf"),
    (CollectiveKind::ReduceScatter, "reduce_scatter_perf"),
];

/// Find what a job with stock NCCL or RCCL can gain on a network: an order of ranks, a tuner table, plans, or nothing
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is measured: times are those of the library's own formulas, as far as the network carries them, and of plans by their
rates with the library's latencies. What is less than 5 % counts as nothing. With --calibration, the network is the one that was
measured, and a tuner table can correct what the library takes for granted.

Examples:
  canopy start dgx-a100:boxes=2
  canopy start two-boxes.yaml --collective allreduce --sizes 1MiB..1GiB
  canopy start two-boxes.yaml --calibration calibration.yaml")]
pub(crate) struct StartArgs {
    /// Generator expression or file; ranks must name their hosts or boxes
    #[arg(value_name = "T")]
    topology: String,
    /// Collectives of the job, of allreduce, allgather and reduce-scatter [default: all three]
    #[arg(long, short, value_name = "C,...", value_delimiter = ',', value_parser = args::collective_kind)]
    collective: Vec<CollectiveKind>,
    /// Sizes from the first to the last, each four times the one before, or a list such as 1MiB,64MiB
    #[arg(long, value_name = "FROM..TO", default_value = "64KiB..4GiB")]
    sizes: Sizes,
    /// Release of NCCL or RCCL: 2.18 to 2.31, or rccl-2.21 [default: 2.30; on machines of AMD rccl-2.21]
    #[arg(long, value_name = "VERSION", value_parser = str::parse::<Version>)]
    nccl: Option<Version>,
    /// Switches of the network add up for NCCL, as with SHARP's plugin and NCCL_COLLNET_ENABLE=1
    #[arg(long)]
    collnet: bool,
    /// Longest time to look, such as 1m
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = args::duration)]
    deadline: Duration,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
}

/// JSON object of the command.
#[derive(Debug, Serialize)]
struct StartSummary {
    topology: TopologySummary,
    /// `NCCL 2.30`.
    library: String,
    machines: u32,
    gpus: u32,
    /// None on one machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<OrderGain>,
    /// What other choices of the library would bring, by collective; empty where all links run as the library takes them to.
    tuner: Vec<GainSummary>,
    plans: Vec<GainSummary>,
    /// Which of `order`, `tuner` and `plans` are worth it; empty where nothing is to be gained.
    worth_it: Vec<&'static str>,
}

/// What another choice, or a plan, would bring for a collective.
#[derive(Debug, Serialize)]
struct GainSummary {
    collective: &'static str,
    /// The greatest gain, and the size that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<AtSize>,
    /// The smallest and the largest size with a gain.
    #[serde(skip_serializing_if = "Option::is_none")]
    sizes: Option<(u64, u64)>,
    /// Why there is nothing to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Two times of one size.
#[derive(Clone, Debug, Serialize)]
struct AtSize {
    size_bytes: u64,
    /// What the library takes by itself.
    takes: String,
    stock_us: f64,
    new_us: f64,
    times_as_fast: f64,
}

/// Looks, on a thread of its own.
pub(crate) async fn run(args: StartArgs) -> Result<(), Failure> {
    on_a_thread(move || start(&args)).await
}

fn start(args: &StartArgs) -> Result<(), Failure> {
    let deadline = Deadline::after(Some(args.deadline));
    let topology = input::topology_until(&args.topology, deadline)?;
    let library = Library { version: args.nccl, has_collnet: args.collnet };
    let (stock, seen) = stock_of(library, &topology).map_err(|reason| no_model(library, &reason, &topology))?;
    let collectives = collectives(&args.collective)?;
    let line = ProgressLine::start();
    line.working("ordering machines".to_owned());
    let stop = || deadline.is_past();
    let order = if seen.nodes > 1 { gain_of(&topology, &stop)? } else { None };
    let tuner = tuner(args, library, &stock, &collectives)?;
    let plan = |&kind: &CollectiveKind| {
        line.working(format!("planning {kind}"));
        plan_gain(args, library, kind, deadline)
    };
    let plans: Vec<GainSummary> = collectives.iter().map(plan).collect::<Result<_, _>>()?;
    drop(line);
    let is_worth = |gains: &[GainSummary]| gains.iter().any(|gain| gain.sizes.is_some());
    let worth_it = [
        ("order", order.as_ref().is_some_and(|order| order.times_as_fast >= gain_least())),
        ("tuner", is_worth(&tuner)),
        ("plans", is_worth(&plans)),
    ];
    let summary = StartSummary {
        topology: TopologySummary::of(&topology),
        library: library.of(&stock).to_string(),
        machines: seen.nodes,
        gpus: seen.machine.gpus,
        order,
        tuner,
        plans,
        worth_it: worth_it.into_iter().filter(|(_, is_worth)| *is_worth).map(|(name, _)| name).collect(),
    };
    if args.json { print_json("start", &summary) } else { print(&readable(args, &summary, &seen, &topology)) }
}

/// Those asked for, or all that can be measured.
fn collectives(stated: &[CollectiveKind]) -> Result<Vec<CollectiveKind>, Failure> {
    let known = MEASURED.map(|(kind, _)| kind);
    if let Some(other) = stated.iter().find(|kind| !known.contains(kind)) {
        return Err(Failure::input(format!("--collective: {other} is not compared here"))
            .help("use allreduce, allgather or reduce-scatter; `canopy explain` compares the others"));
    }
    Ok(if stated.is_empty() { known.to_vec() } else { stated.to_vec() })
}

/// What the library's own algorithms would bring if they were chosen for the network as it was measured. Without measurements
/// the library chooses by the same rates, and nothing is left to correct.
fn tuner(
    args: &StartArgs,
    library: Library,
    measured: &Stock,
    collectives: &[CollectiveKind],
) -> Result<Vec<GainSummary>, Failure> {
    let Some(described) = input::described(&args.topology)? else { return Ok(Vec::new()) };
    let (blind, _) = stock_of(library, &described).map_err(|reason| no_model(library, &reason, &described))?;
    let gain = |&kind: &CollectiveKind| {
        let choices = blind.choices(kind);
        let times = |bytes: u64| {
            let Choice { algorithm, protocol, .. } =
                choices.iter().find(|choice| (choice.first..=choice.last).contains(&bytes))?;
            let taken = measured.time_ps(kind, *algorithm, *protocol, bytes)?;
            let best = measured.choice(kind, bytes)?.time_ps;
            Some((format!("{} {}", algorithm.name(), protocol.name()), taken, best))
        };
        GainSummary::of(kind, &args.sizes, times)
    };
    Ok(collectives.iter().map(gain).collect())
}

/// What a plan brings by a library that runs it.
fn plan_gain(
    args: &StartArgs,
    library: Library,
    kind: CollectiveKind,
    deadline: Deadline,
) -> Result<GainSummary, Failure> {
    let stop = || deadline.is_past();
    let without =
        |reason: String| GainSummary { collective: kind.name(), best: None, sizes: None, reason: Some(reason) };
    let plan = match Material::planned(&args.topology, kind, None, Algorithm::Auto, deadline) {
        Ok(plan) => plan,
        Err(failure) => return Ok(without(failure.sentence())),
    };
    let nvls = plan.bound_with_nvls(&stop).map_err(|error| bound::no_bound(&error))?;
    let model = match Model::of(library, &plan, nvls.as_ref().map(|bound| &bound.upper), &stop) {
        Ok(model) => model,
        Err(reason) => return Ok(without(reason)),
    };
    let depth = plan.verdict.depth_max;
    let times = |bytes: u64| {
        let taken = model.taken(bytes)?;
        let time_ps = model.plan_time_ps(plan.rate(), depth, bytes)?;
        let takes = format!("{} {}", taken.algorithm.name(), taken.protocol.name());
        Some((takes, u128::from(taken.time_ps), u128::from(time_ps)))
    };
    Ok(GainSummary::of(kind, &args.sizes, times))
}

impl GainSummary {
    /// Gains by size. `times`: of a size in bytes, what the library takes, its time in picoseconds, and the other time; `None`
    /// where formulas give none.
    fn of(kind: CollectiveKind, all: &Sizes, times: impl Fn(u64) -> Option<(String, u128, u128)>) -> Self {
        let (more, less) = (u128::from(GAIN_LEAST.0), u128::from(GAIN_LEAST.1));
        let mut best: Option<(u128, u128, AtSize)> = None;
        let mut sizes: Option<(u64, u64)> = None;
        for &size_bytes in all.list() {
            let Some((takes, stock, new)) = times(size_bytes) else { continue };
            if stock.saturating_mul(less) >= new.saturating_mul(more) {
                sizes = Some((sizes.map_or(size_bytes, |(first, _)| first), size_bytes));
            }
            if best.as_ref().is_none_or(|(old, by, _)| stock.saturating_mul(*by) > old.saturating_mul(new)) {
                let micros = |picoseconds: u128| picoseconds as f64 / 1e6;
                let times_as_fast = stock as f64 / new.max(1) as f64;
                let here = AtSize { size_bytes, takes, stock_us: micros(stock), new_us: micros(new), times_as_fast };
                best = Some((stock, new, here));
            }
        }
        Self { collective: kind.name(), best: best.map(|(.., at)| at), sizes, reason: None }
    }
}

fn readable(args: &StartArgs, summary: &StartSummary, seen: &Seen, topology: &Topology) -> String {
    let StartSummary { library, machines, gpus, order, tuner, plans, worth_it, .. } = summary;
    let name = &args.topology;
    let machines_in_words = count(*machines as usize, "machine");
    let basis = if tuner.is_empty() { "nothing was measured" } else { "at the rates that were measured" };
    let mut lines =
        vec![format!("{name}: {machines_in_words} of {gpus} GPUs, for {library} by its own formulas; {basis}")];
    lines.push(match order {
        Some(order) => format!("order      {}", order.words),
        None if *machines > 1 => "order      not known: the network does not name its machines".to_owned(),
        None => "order      nothing to gain: it is one machine".to_owned(),
    });
    if tuner.is_empty() {
        lines.push(format!(
            "tuner      nothing to gain: at these rates {library} chooses by itself what its formulas prefer; measured \
            rates may differ"
        ));
    } else {
        lines.push("tuner      its own algorithms, chosen for the rates that were measured:".to_owned());
        lines.push(table(tuner, "CHOSEN µs"));
    }
    lines.push("plans      by a library that runs plans:".to_owned());
    lines.push(table(plans, "PLAN µs"));
    lines.push(match worth_it.as_slice() {
        [] => "outcome    nothing to gain by more than 5 %: leave all as it is".to_owned(),
        some => format!("outcome    worth it: {}", some.join(", ")),
    });
    let is_amd = matches!(seen.maker, canopy_stock::nccl::Maker::Amd(_));
    for &way in worth_it {
        lines.push(match way {
            "order" => {
                format!("next       canopy tools order {name} --to openmpi -o hosts    # or slurm, mpich, nodes, configmap")
            }
            "tuner" => {
                let kind = if is_amd { "rccl" } else { "nccl-csv" };
                format!("next       canopy tools advise {name} --to {kind} -o tuner.csv    # with the same --calibration")
            }
            _ => {
                let wanted = plans.iter().filter(|gain| gain.sizes.is_some()).map(|gain| gain.collective);
                let wanted = wanted.collect::<Vec<_>>().join(",");
                let profile = if is_amd { " --profile rccl-msccl" } else { "" };
                let (first, last) = args.sizes.ends();
                let sizes = format!("{}..{}", in_words(first), in_words(last)).replace(' ', "");
                format!(
                    "next       canopy plan bundle {name} -c {wanted} --sizes {sizes} --format msccl-xml{profile} -o plans    # and docs/runtimes.md"
                )
            }
        });
    }
    let ranks = topology.rank_count();
    let first = plans.first().map(|gain| gain.collective);
    let program =
        MEASURED.iter().find(|(kind, _)| first == Some(kind.name())).map_or("all_reduce_perf", |(_, name)| name);
    lines.push(format!(
        "measure    mpirun -np {ranks} {program} -b 1M -e 4G -f 4 > runs.txt    # nccl-tests, before and after"
    ));
    lines.push(format!("calibrate  canopy tools calibrate {name} runs.txt -o calibration.yaml, then canopy start {name} --calibration calibration.yaml"));
    if !handover::has_all() {
        lines.push(format!("needs      canopy-tools for these commands: {GET_TOOLS}"));
    }
    lines.join("\n")
}

fn table(gains: &[GainSummary], new: &str) -> String {
    let mut table =
        Table::new(&["COLLECTIVE", "BEST AT#", "TAKES", "STOCK µs#", &format!("{new}#"), "TIMES AS FAST#", "WORTH IT"]);
    for gain in gains {
        let worth = match (&gain.sizes, &gain.reason) {
            (_, Some(reason)) => reason.clone(),
            (Some((first, last)), None) if first == last => format!("at {}", in_words(*first)),
            (Some((first, last)), None) => format!("{} to {}", in_words(*first), in_words(*last)),
            (None, None) => "no".to_owned(),
        };
        let cells = match &gain.best {
            Some(AtSize { size_bytes, takes, stock_us, new_us, times_as_fast }) => [
                in_words(*size_bytes),
                takes.clone(),
                format!("{stock_us:.1}"),
                format!("{new_us:.1}"),
                format!("{times_as_fast:.2}"),
            ],
            None => ["-"; 5].map(str::to_owned),
        };
        table.row(std::iter::once(gain.collective.to_owned()).chain(cells).chain([worth]));
    }
    table.text()
}
