//! `canopy bound`: the best algbw any schedule can reach, with the proof.

mod served;

use std::time::Duration;

use canopy_canonical::{Budget, WORK_STANDARD};
use canopy_client::ErrorClass;
use canopy_planner::{Bounds, PlanError};
use canopy_schedule::{Bound, Collective, CollectiveKind, Shares};
use canopy_synth::{BoundError, PlainBounds};
use canopy_topology::{Rate, Topology};
use serde::Serialize;

use crate::args::{self, CollectiveArgs, PartArgs};
use crate::around::AroundArgs;
use crate::certificate::CertificateSummary;
use crate::clock::Deadline;
use crate::connection::NamedServerArgs;
use crate::exit::{Failure, words};
use crate::explain::{Explanation, explain};
use crate::family::FamilySummary;
use crate::input;
use crate::known_faults::FaultArgs;
use crate::nvls::{IF_FORWARDING, bound_in_words};
use crate::output::{AlgbwSummary, TopologySummary, gigabytes_per_sec, print_json, shares_in_words};
use crate::running::on_a_thread;
use crate::stdout::print;
use crate::table::count;

/// Best rate that any schedule can reach, and the bottleneck that proves it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy bound ring:8 --collective allgather
  canopy bound dgx-a100:boxes=2 --collective allreduce --json
  canopy bound dgx-a100:boxes=2 --collective allgather --shares 2x8,1x8
  canopy bound dgx-a100:boxes=4,degrade=b2g3-ib*1/2 --collective allreduce --explain
  canopy bound cluster.yaml --collective allreduce --ranks 0-7,16-23
  canopy bound cluster.yaml --collective broadcast --root 3 --deadline 30s
  canopy bound dgx-h100:boxes=4 --collective allreduce --server 127.0.0.1:7433

With `--server`, the bound takes the faults that the server knows into account.")]
pub(crate) struct BoundArgs {
    /// Generator expression or file
    #[arg(value_name = "T")]
    topology: String,
    #[command(flatten)]
    collective: CollectiveArgs,
    #[command(flatten)]
    part: PartArgs,
    /// Longest time to look for it, such as 30s
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    deadline: Option<Duration>,
    /// Say of an allreduce which parts of the network limit it, what two phases would reach, and what repairs would bring;
    /// and which family the network is of
    #[arg(long)]
    explain: bool,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    around: AroundArgs,
    #[command(flatten)]
    faults: FaultArgs,
    #[command(flatten)]
    server: NamedServerArgs,
}

/// JSON object of the command.
#[derive(Serialize)]
struct Bounded {
    topology: TopologySummary,
    collective: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<u32>,
    /// In lowest terms, those of blocks row by row; not there where all are of one size.
    #[serde(skip_serializing_if = "Option::is_none")]
    shares: Option<Vec<u64>>,
    /// Known faults that it takes into account.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<String>,
    bound: BoundSummary,
    /// If switches only forwarded, where some do more.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_in_network: Option<AlgbwSummary>,
    /// If NVSwitches multicast and add up for a runtime, where the network does not count on it and that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    with_in_network: Option<AlgbwSummary>,
    certificate: CertificateSummary,
    /// Of an all-to-all of equal blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    plain_bounds: Option<PlainBoundsSummary>,
    /// With the explanation.
    #[serde(skip_serializing_if = "Option::is_none")]
    family: Option<FamilySummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation>,
}

/// Fractions in bytes/s. Where the bound is not known to be reachable, `lower` and `upper` bracket the optimum.
#[derive(Serialize)]
struct BoundSummary {
    #[serde(flatten)]
    rate: AlgbwSummary,
    tight: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper: Option<String>,
}

impl BoundSummary {
    fn new(upper: &Rate, lower: &Rate) -> Self {
        let tight = upper == lower;
        let when_open = |rate: &Rate| (!tight).then(|| rate.to_string());
        Self { rate: AlgbwSummary::of(upper), tight, lower: when_open(lower), upper: when_open(upper) }
    }

    /// Whether it can be reached, for people.
    fn tightness(&self) -> String {
        let lower = self.lower.as_ref().map(|lower| lower.parse::<Rate>().unwrap_or_else(|_| Rate::zero()));
        match lower {
            None => "tight      yes: a schedule reaches it".to_owned(),
            Some(rate) if rate.is_zero() => "tight      not known".to_owned(),
            Some(rate) => {
                let gigabytes = gigabytes_per_sec(&rate);
                format!("tight      not known: at least {gigabytes} GB/s can be reached")
            }
        }
    }
}

/// Bounds by counting alone, to compare with.
#[derive(Serialize)]
struct PlainBoundsSummary {
    distances: String,
    #[serde(rename = "distances_GBps")]
    distances_gigabytes: f64,
    /// Where all ranks have as many ports of one rate.
    #[serde(flatten)]
    by_degree: Option<DegreeBoundSummary>,
}

#[derive(Serialize)]
struct DegreeBoundSummary {
    degree: u32,
    full_tree: String,
    #[serde(rename = "full_tree_GBps")]
    full_tree_gigabytes: f64,
}

impl PlainBoundsSummary {
    fn of(bounds: &PlainBounds) -> Self {
        let by_degree = bounds.degree.as_ref().map(|(degree, rate)| DegreeBoundSummary {
            degree: *degree,
            full_tree: rate.to_string(),
            full_tree_gigabytes: gigabytes_per_sec(rate),
        });
        let distances = &bounds.distances;
        Self { distances: distances.to_string(), distances_gigabytes: gigabytes_per_sec(distances), by_degree }
    }

    fn lines(&self) -> Vec<String> {
        let Self { distances_gigabytes, by_degree, .. } = self;
        let mut lines = vec![format!(
            "distances  at most {distances_gigabytes} GB/s: all links together, each pair on a shortest path"
        )];
        lines.extend(by_degree.as_ref().map(|DegreeBoundSummary { degree, full_tree_gigabytes, .. }| {
            format!(
                "full trees at most {full_tree_gigabytes} GB/s: any network of this many ranks with {degree} ports each"
            )
        }));
        lines
    }
}

/// Asks the server that is named, or finds the bound here, and prints it with its certificate.
pub(crate) async fn run(args: BoundArgs) -> Result<(), Failure> {
    args.around.apply();
    match args.server.named() {
        Some(server) => served::run(&args, &server).await,
        None => on_a_thread(move || run_here(&args)).await,
    }
}

/// Finds the bound, and adds its certificate up again.
fn run_here(args: &BoundArgs) -> Result<(), Failure> {
    if args.explain && args.collective.kind()? != CollectiveKind::Allreduce {
        return Err(Failure::input("`--explain` works for allreduce only")
            .help("remove `--explain`; the certificate names the bottleneck"));
    }
    args.collective.kind()?;
    let deadline = Deadline::after(args.deadline);
    let topology = args.part.on(input::large_topology_until(&args.topology, deadline)?)?;
    let collective = args.collective.on(&topology)?;
    let shares = args.part.shares(&args.collective, &topology)?;
    let stop = || deadline.is_past();
    let bounds = Bounds::of(&topology, collective, &shares, &input::limits()?, &stop);
    let bounds = bounds.map_err(|error| no_bound(&error))?;
    let mut object = object(&topology, collective, shares, &bounds);
    if args.explain {
        // Nodes outside a group are not broken.
        let expression = args.part.ranks.is_none().then_some(args.topology.as_str());
        let family = FamilySummary::of(&topology, Budget { work_max: WORK_STANDARD, stop: &stop });
        object.family = Some(family.map_err(|_| failure(&BoundError::Stopped))?);
        let explained = explain(expression, &topology, &bounds.found, &stop);
        object.explanation = Some(explained.map_err(|error| failure(&error))?);
    }
    let explained = object.explanation.iter().flat_map(|explained| explained.readable(&bounds.found)).collect();
    if args.json { print_json("bound", &object) } else { print(&readable(args, &object, explained)) }
}

/// The exit status of each way to have no bound.
pub(super) fn failure(error: &BoundError) -> Failure {
    let class = match error {
        BoundError::Disconnected { .. } | BoundError::TooLarge => ErrorClass::Infeasible,
        BoundError::Shares(_) | BoundError::NothingToMove { .. } => ErrorClass::Input,
        BoundError::Stopped => ErrorClass::Deadline,
        BoundError::Broken { .. } => ErrorClass::Fault,
    };
    match error {
        BoundError::Stopped => {
            Failure::new(class, "deadline exceeded before the bound was found").help("raise `--deadline`")
        }
        _ => Failure::new(class, words(error)),
    }
}

/// The same of a search that ends with the proof.
pub(super) fn no_bound(error: &PlanError) -> Failure {
    match error {
        PlanError::Bound(error) => failure(error),
        PlanError::Apart { failure, .. } => no_bound(failure),
        PlanError::Stopped => failure(&BoundError::Stopped),
        error => Failure::fault(words(error)),
    }
}

fn object(topology: &Topology, collective: Collective, shares: Shares, bounds: &Bounds) -> Bounded {
    let rate = |bound: &Option<Bound>| bound.as_ref().map(|bound| AlgbwSummary::of(&bound.upper));
    let found = &bounds.found;
    Bounded {
        topology: TopologySummary::of(topology),
        collective: collective.kind().name(),
        root: collective.root().map(canopy_topology::Rank::number),
        shares: (shares != Shares::Equal).then(|| shares.weights().to_vec()),
        faults: Vec::new(),
        bound: BoundSummary::new(&found.upper, &found.lower),
        without_in_network: rate(&bounds.without_switches),
        with_in_network: rate(&bounds.with_nvls),
        certificate: CertificateSummary::of(topology, collective, &shares, &found.certificate),
        plain_bounds: bounds.plain.as_ref().map(PlainBoundsSummary::of),
        family: None,
        explanation: None,
    }
}

fn readable(args: &BoundArgs, object: &Bounded, explained: Vec<String>) -> String {
    let TopologySummary { ranks, nodes, links, .. } = &object.topology;
    let root = object.root.map(|root| format!(" from rank {root}")).unwrap_or_default();
    let root = if matches!(object.collective, "reduce" | "gather") { root.replace("from", "to") } else { root };
    let mut lines = vec![format!(
        "{}{root} on {}: {ranks} ranks, {nodes} nodes, {}",
        object.collective,
        args.topology,
        count(*links, "link")
    )];
    lines.extend(
        object.shares.as_deref().map(|weights| format!("shares     {}", shares_in_words(weights, *ranks as usize))),
    );
    let AlgbwSummary { gigabytes, .. } = &object.bound.rate;
    match &object.without_in_network {
        None if object.with_in_network.is_some() => {
            lines.push(format!("bound      {gigabytes} GB/s{IF_FORWARDING}"));
        }
        None => lines.push(format!("bound      {gigabytes} GB/s")),
        Some(AlgbwSummary { gigabytes: without, .. }) => {
            lines.push(format!("bound      {gigabytes} GB/s with switches that replicate and add"));
            lines.push(format!("without    {without} GB/s if they only forward"));
        }
    }
    lines.extend(object.with_in_network.as_ref().map(|with| format!("with NVLS  {}", bound_in_words(with))));
    lines.push(object.bound.tightness());
    lines.push(object.certificate.readable());
    lines.extend(object.plain_bounds.iter().flat_map(PlainBoundsSummary::lines));
    lines.extend(object.family.as_ref().map(FamilySummary::line));
    lines.extend(explained);
    lines.join("\n")
}
