//! How long random clusters without names take to plan, and whether every plan is optimal.
//!
//! `cargo run --release -p canopy-benches --bin clusters -- [--count 100] [--first 0] [--limit 60] [--folder DIR] [--all]`
//!
//! A cluster is a function of its seed (`benches/src/clusters.rs`). Time is that of the processors for all of a request: the
//! network is read from the text of a file, planned for by a planner that knows nothing, and the plan is checked and written.
//! A plan counts as optimal if the checker's rate equals the proven bound. Listed are the slowest, and all that are not optimal.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use canopy_benches::{Cluster, cluster, print_table, processor_time, timed_on_processors};
use canopy_import::FileKind;
use canopy_planner::{Context, PlanError, Planner, Request, SchedulesInMemory, TopologyInput};
use canopy_schedule::CollectiveKind;
use canopy_topology::{DocumentFormat, TopologyLimits, to_json};
use clap::Parser;

/// Processor time that a plan should take at most.
const GOAL: Duration = Duration::from_secs(3);
/// Processor time that no plan should take.
const CEILING: Duration = Duration::from_secs(15);
/// Rows of the table.
const SLOWEST: usize = 10;
/// Schedules that a planner may keep, as an embedded server does.
const SCHEDULES_BYTES: u64 = 64 << 20;

/// Plans random clusters and lists the slowest, and those whose plans are not optimal
#[derive(Parser)]
struct Args {
    /// Number of clusters
    #[arg(long, default_value_t = 100)]
    count: u64,
    /// Seed of the first; the others follow
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Processor time after which a plan is given up, in seconds
    #[arg(long, default_value_t = 60)]
    limit: u64,
    /// Folder for the networks, as files SEED.json for `canopy plan`
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Lists all of them
    #[arg(long)]
    all: bool,
}

/// What came of a cluster.
struct Outcome {
    seed: u64,
    cluster: Cluster,
    time: Duration,
    result: Result<String, PlanError>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    if let Some(folder) = &args.folder {
        fs::create_dir_all(folder)?;
    }
    let mut outcomes = Vec::new();
    for seed in args.first..args.first.saturating_add(args.count) {
        let cluster = cluster(seed)?;
        let text = to_json(&cluster.topology);
        if let Some(folder) = &args.folder {
            fs::write(folder.join(format!("{seed}.json")), &text)?;
        }
        let limit = Duration::from_secs(args.limit);
        let (result, time) = timed_on_processors(|| planned(text, limit));
        outcomes.push(Outcome { seed, cluster, time, result });
    }
    outcomes.sort_by_key(|outcome| std::cmp::Reverse(outcome.time));
    report(&outcomes, if args.all { outcomes.len() } else { SLOWEST });
    let failed = outcomes.iter().filter(|outcome| outcome.result.is_err() && !outcome.is_given_up()).count();
    if failed == 0 { Ok(()) } else { Err(format!("{failed} clusters have no plan").into()) }
}

impl Outcome {
    fn is_given_up(&self) -> bool {
        self.result.as_ref().is_err_and(PlanError::is_cancellation)
    }

    fn is_optimal(&self) -> bool {
        self.result.as_ref().is_ok_and(|ratio| ratio == "1/1")
    }
}

/// Plans as for the first request of all; the share of the bound that is reached.
fn planned(text: String, limit: Duration) -> Result<String, PlanError> {
    let started = processor_time();
    let stop = || processor_time().saturating_sub(started) > limit;
    let schedules = SchedulesInMemory::new(SCHEDULES_BYTES);
    let topology = TopologyInput::Document { kind: Some(FileKind::Own(DocumentFormat::Json)), content: text.into() };
    let request = Request::of(topology, CollectiveKind::Allgather);
    let context = Context { stop: &stop, ..Context::new(&schedules) };
    let plan = Planner::new(TopologyLimits::STANDARD).plan(&request, context)?;
    let is_reached = *plan.achieved() == plan.bound().upper && *plan.achieved() == plan.verdict.algbw;
    assert_eq!(is_reached, plan.optimality.to_string() == "1/1", "the planner and the bound disagree");
    Ok(plan.optimality.to_string())
}

#[expect(clippy::print_stdout, reason = "the figures are the result")]
fn report(outcomes: &[Outcome], rows: usize) {
    let count = outcomes.len();
    let within = outcomes.iter().filter(|outcome| outcome.result.is_ok() && outcome.time <= GOAL).count();
    let beyond = outcomes.iter().filter(|outcome| outcome.time > CEILING).count();
    let optimal = outcomes.iter().filter(|outcome| outcome.is_optimal()).count();
    let given_up = outcomes.iter().filter(|outcome| outcome.is_given_up()).count();
    let sum: Duration = outcomes.iter().map(|outcome| outcome.time).sum();
    println!(
        "{count} clusters: {optimal} optimal, {within} within {} s ({:.1} %), {beyond} beyond {} s, \
         {given_up} given up; {:.1} s in all\n",
        GOAL.as_secs(),
        100.0 * within as f64 / count.max(1) as f64,
        CEILING.as_secs(),
        sum.as_secs_f64()
    );
    let row = |outcome: &Outcome| {
        let topology = &outcome.cluster.topology;
        [
            outcome.seed.to_string(),
            outcome.cluster.to_string(),
            topology.rank_count().to_string(),
            topology.links().len().to_string(),
            format!("{:.2} s", outcome.time.as_secs_f64()),
            outcome.result.as_ref().map_or_else(ToString::to_string, Clone::clone),
        ]
    };
    let is_listed = |(position, outcome): &(usize, &Outcome)| *position < rows || !outcome.is_optimal();
    let rows: Vec<_> = outcomes.iter().enumerate().filter(is_listed).map(|(_, outcome)| row(outcome)).collect();
    print_table(["seed", "cluster", "ranks", "links", "processor", "of the bound"], &rows);
}
