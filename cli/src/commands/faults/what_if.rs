//! `canopy faults what-if`: which single fault costs a collective how much, most harmful first. Without a server.

use std::time::Duration;

use canopy_canonical::{Budget, WORK_STANDARD};
use canopy_families::with_boxes;
use canopy_faults::{Directory, EquivalentFaults, Loss, Remaining, SINGLE_KINDS, Target, singles};
use canopy_optimize::Stop;
use canopy_schedule::{Collective, Shares};
use canopy_synth::{BoundError, bound};
use canopy_topology::{FaultError, FaultKind, Rank, Rate, Ratio, Topology, did_you_mean};
use serde::Serialize;

use crate::args::{self, CollectiveArgs};
use crate::clock::Deadline;
use crate::commands::bound::failure;
use crate::exit::{Failure, words};
use crate::input;
use crate::output::{AlgbwSummary, TopologySummary, gigabytes_per_sec, print_json};
use crate::progress::ProgressLine;
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
  canopy faults what-if cluster.yaml --collective allreduce --kinds links-inside,nics --remaining 1/2 --json")]
pub(crate) struct WhatIfArgs {
    /// Generator expression or file
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
}

fn kind(text: &str) -> Result<FaultKind, String> {
    let words = FaultKind::ALL.map(FaultKind::word);
    FaultKind::named(text).ok_or_else(|| did_you_mean(text, words, &format!("use {}", words.join(", "))))
}

/// What a fault leaves.
#[derive(Debug)]
enum Left {
    /// The ranks that are there can do the collective at this rate at most.
    Bound(Rate),
    /// They fall into so many components.
    Apart(usize),
    /// There are fewer than two.
    TooFewRanks,
    /// The root is not among them.
    RootLost,
}

/// A group of faults and what one of them leaves.
#[derive(Debug)]
struct Weighed {
    alike: EquivalentFaults,
    left: Left,
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
    components: Option<usize>,
    faults: Vec<String>,
}

/// Weighs all single faults and prints them.
pub(crate) fn run(args: &WhatIfArgs) -> Result<(), Failure> {
    args.collective.kind()?;
    let deadline = Deadline::after(args.deadline);
    let topology = input::topology_until(&args.topology, deadline)?;
    let collective = args.collective.on(&topology)?;
    let stop = || deadline.is_past();
    let late = || failure(&BoundError::Stopped);
    let budget = Budget { work_max: WORK_STANDARD, stop: &stop };
    let boxed = with_boxes(&topology, budget).map_err(|_| late())?;
    let network = boxed.as_ref().map_or(&topology, |boxed| &boxed.topology);
    let sound = bound(network, collective, &Shares::Equal, &stop).map_err(|error| failure(&error))?.upper;
    let directory = Directory::new(&topology);
    let kinds = if args.kinds.is_empty() { SINGLE_KINDS.to_vec() } else { args.kinds.clone() };
    let roles: Vec<u32> = topology.ranks().map(|rank| u32::from(collective.root() == Some(rank))).collect();
    let groups = singles(&directory, &kinds, &roles, budget).map_err(|_| late())?;
    let progress = ProgressLine::start();
    let total = groups.len();
    let mut weighed = Vec::with_capacity(total);
    for (position, alike) in (1_usize..).zip(groups) {
        progress.working(format!("fault {position} of {total} that differ"));
        let left = left(&directory, network, collective, &alike, args.remaining, &stop)?;
        weighed.push(Weighed { alike, left });
    }
    drop(progress);
    // Stable: those that cost the same stay in the order of kinds and elements.
    weighed.sort_by_key(|one| harm(&one.left));
    if !args.json {
        return print(&readable(&weighed, &sound, args));
    }
    print_json(
        "faults what-if",
        &Ranked {
            topology: TopologySummary::of(&topology),
            collective: collective.kind().name(),
            root: collective.root().map(Rank::number),
            remaining: args.remaining.to_string(),
            sound: AlgbwSummary::of(&sound),
            faults: weighed.into_iter().map(|weighed| row(weighed, &sound, args.remaining)).collect(),
        },
    )
}

/// What the first of a group of faults leaves.
fn left(
    directory: &Directory<'_>,
    network: &Topology,
    collective: Collective,
    alike: &EquivalentFaults,
    remaining: Remaining,
    stop: &dyn Stop,
) -> Result<Left, Failure> {
    let unexpected = |error: &dyn std::error::Error| Failure::fault(words(error));
    let target = alike.targets.first().cloned().ok_or_else(|| Failure::fault("a group of faults without one"))?;
    let faults = directory.resolve(&[Loss { target, remaining }]).map_err(|error| unexpected(&error))?;
    let puncture = match network.puncture(&faults) {
        Ok(puncture) => puncture,
        Err(FaultError::TooFewRanks { .. }) => return Ok(Left::TooFewRanks),
        Err(error) => return Err(unexpected(&error)),
    };
    let rest = &puncture.topology;
    let root = match collective.root() {
        None => None,
        Some(root) => match puncture.survivors.iter().position(|survivor| *survivor == root) {
            None => return Ok(Left::RootLost),
            Some(position) => u32::try_from(position).ok().map(Rank::new),
        },
    };
    let collective = Collective::new(collective.kind(), root, rest.rank_count()).map_err(|error| unexpected(&error))?;
    match bound(rest, collective, &Shares::Equal, stop) {
        Ok(found) => Ok(Left::Bound(found.upper)),
        Err(BoundError::Disconnected { .. }) => Ok(Left::Apart(rest.components().len())),
        Err(error) => Err(failure(&error)),
    }
}

/// Greater harm first: no plan at all, of more components before fewer, then the lower bound.
fn harm(left: &Left) -> (u8, usize, Rate) {
    match left {
        Left::TooFewRanks => (0, 0, Rate::zero()),
        Left::Apart(components) => (1, usize::MAX - components, Rate::zero()),
        Left::RootLost => (2, 0, Rate::zero()),
        Left::Bound(rate) => (3, 0, rate.clone()),
    }
}

/// One of a group, as it is written on the command line.
fn named(alike: &EquivalentFaults, remaining: Remaining) -> Vec<String> {
    alike.targets.iter().map(|target| Loss { target: target.clone(), remaining }.to_string()).collect()
}

fn row(Weighed { alike, left }: Weighed, sound: &Rate, remaining: Remaining) -> Row {
    let faults = named(&alike, remaining);
    let (outcome, bound, ratio, components) = match &left {
        Left::Bound(rate) => {
            let ratio = rate.ratio_to(sound).as_ref().map(ToString::to_string);
            ("bounded", Some(AlgbwSummary::of(rate)), ratio, None)
        }
        Left::Apart(components) => ("disconnected", None, None, Some(*components)),
        Left::TooFewRanks => ("too_few_ranks", None, None, None),
        Left::RootLost => ("root_lost", None, None, None),
    };
    let kind = alike.targets.first().map_or("", Target::kind);
    Row { kind, outcome, bound, ratio, components, faults }
}

fn readable(weighed: &[Weighed], sound: &Rate, args: &WhatIfArgs) -> String {
    let mut table = Table::new(&["FAULT", "ALIKE#", "LEFT GB/s#", "RATIO#", "OUTCOME"]);
    for Weighed { alike, left } in weighed.iter().take(args.limit) {
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
        let first = named(alike, args.remaining).into_iter().next().unwrap_or_default();
        table.row([first, alike.targets.len().to_string(), rate, ratio, outcome]);
    }
    let mut text = format!("healthy    {} GB/s\n{}", gigabytes_per_sec(sound), table.text());
    if weighed.len() > args.limit {
        text += &format!("\n{} more groups of faults harm less; see --limit", weighed.len() - args.limit);
    }
    text
}
