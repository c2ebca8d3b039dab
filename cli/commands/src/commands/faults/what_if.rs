//! `canopy faults what-if`: which single fault costs a collective how much, most harmful first. Without a server, unless one is named.

mod served;

use std::time::Duration;

use canopy_faults::{EquivalentFaults, Loss, Remaining, SINGLE_KINDS, Target};
use canopy_planner::{Left, WhatIf};
use canopy_topology::{FaultKind, Rate, Ratio, did_you_mean};
use serde::Serialize;

use crate::args::{self, CollectiveArgs};
use crate::clock::Deadline;
use crate::commands::bound::no_bound;
use crate::connection::NamedServerArgs;
use crate::exit::Failure;
use crate::input::{self, Source};
use crate::known_faults::FaultArgs;
use crate::output::{AlgbwSummary, TopologySummary, gigabytes_per_sec, print_json};
use crate::progress::ProgressLine;
use crate::running::on_a_thread;
use crate::stdout::print;
use crate::table::Table;

/// Decimal places of ratios and rates in tables.
const PLACES: usize = 4;

/// Rank single faults by the bound that remains, most harmful first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Faults that are alike by symmetry are looked at once. LEFT is the bound of what is left, RATIO compares it with the healthy network; where
ranks are lost, it is the bound of the remaining ranks.

Examples:
  canopy faults what-if dgx-a100:boxes=2 --collective allgather
  canopy faults what-if torus:4x4 --collective all-to-all --kinds links
  canopy faults what-if cluster.yaml --collective allreduce --kinds links-inside,nics --remaining 1/2 --json
  canopy faults what-if cluster.yaml --collective allreduce --server 127.0.0.1:7433    # its workers share the work

With `--server`, or for what a server keeps, the faults that the server knows are applied first.")]
pub(crate) struct WhatIfArgs {
    /// Generator expression, file, or what a server keeps: topologies/… or clusters/…
    #[arg(value_name = "T")]
    topology: String,
    #[command(flatten)]
    collective: CollectiveArgs,
    /// What may fail: links, links-inside or links-outside boxes, nics, gpus, boxes, switches [default: all]
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = kind)]
    kinds: Vec<FaultKind>,
    /// Fraction of each element that remains, such as 1/2
    #[arg(long, value_name = "FRACTION", default_value = "0/1")]
    remaining: Remaining,
    /// Most rows of the table
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
    /// Longest time to look, such as 30s
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    deadline: Option<Duration>,
    /// Print one JSON object as the last line of standard output, with every fault of each group
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    faults: FaultArgs,
    #[command(flatten)]
    server: NamedServerArgs,
}

fn kind(text: &str) -> Result<FaultKind, String> {
    let words = FaultKind::ALL.map(FaultKind::word);
    FaultKind::named(text).ok_or_else(|| did_you_mean(text, words, &format!("use {}", words.join(", "))))
}

/// A group of faults that are alike, and what each of them leaves.
#[derive(Debug)]
struct Weighed {
    /// Of those that a server weighed, the first ones.
    faults: Vec<Loss>,
    alike: usize,
    left: Left,
}

/// All faults, most harmful first, and the network without them.
#[derive(Debug)]
struct Answer {
    topology: TopologySummary,
    /// The bound of the healthy network, or of the network that known faults leave.
    sound: Rate,
    is_healthy: bool,
    weighed: Vec<Weighed>,
}

/// JSON object of the command.
#[derive(Serialize)]
struct Ranked {
    topology: TopologySummary,
    collective: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<u32>,
    remaining: String,
    sound: AlgbwSummary,
    faults: Vec<Row>,
}

/// A group of faults that are alike.
#[derive(Serialize)]
struct Row {
    kind: &'static str,
    /// `bounded`, `disconnected`, `too_few_ranks` or `root_lost`.
    outcome: &'static str,
    #[serde(flatten)]
    bound: Option<AlgbwSummary>,
    /// Of the bound that is left to that of the sound network, exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    components: Option<u32>,
    /// How many there are.
    alike: usize,
    faults: Vec<String>,
}

/// Weighs all single faults, at the server that is named or here, and prints them.
pub(crate) async fn run(args: WhatIfArgs) -> Result<(), Failure> {
    args.collective.kind()?;
    let is_here = matches!(input::source(&args.topology)?, Source::Here(_));
    match args.server.named() {
        Some(server) => printed(&args, served::weighed(&args, &server).await?),
        None if is_here => on_a_thread(move || printed(&args, weighed(&args)?)).await,
        None => printed(&args, served::weighed(&args, &args.server.or_folder()).await?),
    }
}

fn printed(args: &WhatIfArgs, answer: Answer) -> Result<(), Failure> {
    if !args.json {
        return print(&readable(&answer, args.limit));
    }
    let Answer { topology, sound, weighed, .. } = answer;
    let kind = args.collective.kind()?;
    print_json(
        "faults what-if",
        &Ranked {
            topology,
            collective: kind.name(),
            root: kind.has_root().then_some(args.collective.root.unwrap_or(0)),
            remaining: args.remaining.to_string(),
            sound: AlgbwSummary::of(&sound),
            faults: weighed.into_iter().map(|weighed| row(weighed, &sound)).collect(),
        },
    )
}

fn weighed(args: &WhatIfArgs) -> Result<Answer, Failure> {
    let deadline = Deadline::after(args.deadline);
    let topology = input::topology_until(&args.topology, deadline)?;
    let collective = args.collective.on(&topology)?;
    let stop = || deadline.is_past();
    let summary = TopologySummary::of(&topology);
    let what_if = WhatIf::new(topology, collective, &stop).map_err(|error| no_bound(&error))?;
    let sound = what_if.sound(&stop).map_err(|error| no_bound(&error))?;
    let groups = what_if.groups(kinds(args), &stop).map_err(|error| no_bound(&error))?;
    let directory = what_if.directory();
    let progress = ProgressLine::start();
    let total = groups.len();
    let mut weighed = Vec::with_capacity(total);
    for (position, EquivalentFaults { targets, .. }) in (1_usize..).zip(groups) {
        progress.working(format!("fault {position} of {total} that differ"));
        let remaining = args.remaining;
        let faults: Vec<Loss> = targets.into_iter().map(|target| Loss { target, remaining }).collect();
        let first = faults.first().ok_or_else(|| Failure::fault("a group of faults without one"))?;
        let left = what_if.left(&directory, first, &stop).map_err(|error| no_bound(&error))?;
        weighed.push(Weighed { alike: faults.len(), faults, left });
    }
    // Stable: those that cost the same stay in the order of kinds and elements.
    weighed.sort_by_key(|one| one.left.harm());
    Ok(Answer { topology: summary, sound, is_healthy: true, weighed })
}

fn kinds(args: &WhatIfArgs) -> &[FaultKind] {
    if args.kinds.is_empty() { &SINGLE_KINDS } else { &args.kinds }
}

fn row(Weighed { faults, alike, left }: Weighed, sound: &Rate) -> Row {
    let (outcome, bound, ratio, components) = match &left {
        Left::Bound(rate) => {
            let ratio = rate.ratio_to(sound).as_ref().map(ToString::to_string);
            ("bounded", Some(AlgbwSummary::of(rate)), ratio, None)
        }
        Left::Apart(components) => ("disconnected", None, None, Some(*components)),
        Left::TooFewRanks => ("too_few_ranks", None, None, None),
        Left::RootLost => ("root_lost", None, None, None),
    };
    let kind = faults.first().map_or("", |loss| Target::kind(&loss.target));
    Row { kind, outcome, bound, ratio, components, alike, faults: faults.iter().map(Loss::to_string).collect() }
}

fn readable(Answer { sound, is_healthy, weighed, .. }: &Answer, limit: usize) -> String {
    let mut table = Table::new(&["FAULT", "ALIKE#", "LEFT GB/s#", "RATIO#", "OUTCOME"]);
    for Weighed { faults, alike, left } in weighed.iter().take(limit) {
        let number = |value: f64| format!("{value:.PLACES$}");
        let (rate, ratio, outcome) = match left {
            Left::Bound(rate) => {
                let ratio = rate.ratio_to(sound).as_ref().map(Ratio::to_f64);
                (number(gigabytes_per_sec(rate)), ratio.map(number).unwrap_or_default(), String::new())
            }
            Left::Apart(components) => ("-".to_owned(), "-".to_owned(), format!("split in {components}")),
            Left::TooFewRanks => ("-".to_owned(), "-".to_owned(), "fewer than two ranks are left".to_owned()),
            Left::RootLost => ("-".to_owned(), "-".to_owned(), "the root is lost".to_owned()),
        };
        let first = faults.first().map(Loss::to_string).unwrap_or_default();
        table.row([first, alike.to_string(), rate, ratio, outcome]);
    }
    let now = if *is_healthy { "healthy    " } else { "with known faults  " };
    let mut text = format!("{now}{} GB/s\n{}", gigabytes_per_sec(sound), table.text());
    if weighed.len() > limit {
        text += &format!("\n{} more groups of faults harm less; see --limit", weighed.len() - limit);
    }
    text
}
