//! `canopy simulate T --workload FILE`: how long an iteration of training or of an application takes with the plans of
//! each algorithm, how much of its communication is exposed, and what runs when.
//!
//! Each collective of the file is planned by each algorithm and simulated at its size; these times and those of the
//! computations make the time line (`canopy_simulate::timeline`). An algorithm without a plan for one of the collectives takes
//! that of `auto` there, and the report says so.

mod document;
mod plans;
mod report;
mod trace;

use std::collections::BTreeMap;
use std::path::Path;

use canopy_planner::Bounds;
use canopy_schedule::{Collective, CollectiveKind, Shares};
use canopy_simulate::least_time_ps;
use canopy_simulate::timeline::{Call, Program, Timeline, Work, run as run_program};
use canopy_topology::{Rank, Rate, Topology};
use serde::{Deserialize, Serialize};

use super::{Absent, SimulateArgs};
use crate::clock::Deadline;
use crate::exit::{Failure, words};
use crate::input;
use crate::progress::ProgressLine;
use crate::sizes::in_words;
use plans::{Planned, Source};

/// Most different collectives, each with its size: every one is simulated with the plan of every algorithm.
const CALLS_MAX: usize = 1_000;
/// The row of what each call takes with the fastest of the plans.
const FASTEST_OF_EACH: &str = "fastest of each";
/// The row of what each call takes at least.
const BOUND: &str = "bound";

/// Samples of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Epoch {
    /// Samples of the data set.
    samples: u64,
    /// Samples of each rank in an iteration.
    batch: u64,
}

impl Epoch {
    /// Iterations of an epoch on `ranks` ranks.
    const fn iterations(self, ranks: u32) -> u64 {
        self.samples.div_ceil(self.batch.saturating_mul(ranks as u64))
    }
}

/// How a file counts allgathers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gathers {
    /// All shares together.
    Whole,
    /// The share of a rank.
    Shares,
}

/// One way to run a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Variant {
    /// Size of a bucket of gradients in bytes; `None` if gradients do not wait.
    bucket_bytes: Option<u64>,
    program: Program,
}

/// A workload as its file states it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stated {
    name: String,
    /// The fastest is taken. All have collectives of the same kinds.
    variants: Vec<Variant>,
    epoch: Option<Epoch>,
    gathers: Gathers,
}

impl Stated {
    /// Reads a trace or a description.
    fn read(path: &Path) -> Result<Self, Failure> {
        if trace::is_meant(path) { trace::read(path) } else { document::read(path) }
    }

    /// The same; without a name, with that of its file.
    fn named(mut self, path: &Path) -> Self {
        if self.name.is_empty() {
            self.name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        }
        self
    }

    /// The kinds of its collectives, with their roots.
    fn collectives(&self) -> Vec<(CollectiveKind, Option<u32>)> {
        let calls = self.variants.iter().flat_map(|variant| variant.program.calls());
        let mut kinds: Vec<(CollectiveKind, Option<u32>)> = calls.map(|call| (call.kind, call.root)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// The same workload for a number of ranks: every call has the size that simulations count.
    ///
    /// # Errors
    /// More different calls than are simulated, and sizes over 64 bits.
    fn on(mut self, ranks: u32) -> Result<Self, Failure> {
        if self.gathers == Gathers::Shares {
            for variant in &mut self.variants {
                variant.program = whole(&variant.program, ranks)?;
            }
            self.gathers = Gathers::Whole;
        }
        let count = self.calls().len();
        if count > CALLS_MAX {
            let message =
                format!("the workload has {count} collectives of different sizes, over the limit of {CALLS_MAX}");
            return Err(Failure::input(message).help("round sizes, so that more of them are equal"));
        }
        Ok(self)
    }

    /// All different calls.
    fn calls(&self) -> Vec<Call> {
        let mut calls: Vec<Call> = self.variants.iter().flat_map(|variant| variant.program.calls()).collect();
        calls.sort_unstable();
        calls.dedup();
        calls
    }
}

/// A program whose allgathers count all shares.
fn whole(program: &Program, ranks: u32) -> Result<Program, Failure> {
    let mut operations = program.operations().to_vec();
    for operation in &mut operations {
        if let Work::Collective(call) = &mut operation.work
            && call.kind == CollectiveKind::Allgather
        {
            let size = call.size_bytes.checked_mul(ranks.into());
            call.size_bytes = size
                .ok_or_else(|| Failure::input(format!("an allgather of {} B a rank is too large", call.size_bytes)))?;
        }
    }
    Program::new(operations, program.order(), program.overlap()).map_err(|error| Failure::fault(words(&error)))
}

/// The workload with the plans of one algorithm.
struct Entrant {
    name: &'static str,
    /// Collectives that it has no plan for, which take that of `auto`.
    by_auto: Vec<CollectiveKind>,
    times_ps: BTreeMap<Call, u64>,
    bucket_bytes: Option<u64>,
    program: Program,
    timeline: Timeline,
}

/// What came of all algorithms.
struct Found {
    topology: Topology,
    workload: Stated,
    entrants: Vec<Entrant>,
    absent: Vec<Absent>,
}

/// Plans, simulates and prints.
///
/// # Errors
/// A file that is no workload, no algorithm with a plan, and collectives that cannot be simulated.
pub(super) async fn run(args: SimulateArgs, path: &Path) -> Result<(), Failure> {
    let stated = Stated::read(path)?;
    let sources = if args.bound { Vec::new() } else { plans::sources(&args, &stated.collectives()).await? };
    crate::running::on_a_thread(move || {
        let line = ProgressLine::start();
        let found = if args.bound { bounded(&args, stated)? } else { raced(&args, stated, sources, &line)? };
        drop(line);
        report::print(&args, &found)
    })
    .await
}

/// Every algorithm's iteration, then that of the fastest plan for each call, and the bound.
fn raced(args: &SimulateArgs, stated: Stated, sources: Vec<Source>, line: &ProgressLine) -> Result<Found, Failure> {
    let mut planned = Planned::judged(args, sources, line)?;
    let topology = planned.topology().cloned().ok_or_else(|| Failure::fault("no plan names its network"))?;
    let workload = stated.on(topology.rank_count())?;
    let calls = workload.calls();
    let mut entrants: Vec<Entrant> = Vec::new();
    let mut least: BTreeMap<Call, u64> = BTreeMap::new();
    let mut failed = None;
    for number in planned.candidates() {
        let name = planned.name(number);
        match planned.times(args, number, &calls, line) {
            Ok(times_ps) => {
                for (&call, &time) in &times_ps {
                    least.entry(call).and_modify(|least| *least = time.min(*least)).or_insert(time);
                }
                entrants.push(Entrant { by_auto: planned.by_auto(number), ..entrant(name, &workload, times_ps)? });
            }
            Err(failure) => {
                planned.absent.push(Absent { name, reason: failure.sentence() });
                failed.get_or_insert(failure);
            }
        }
    }
    if let (Some(failure), true) = (failed, entrants.is_empty()) {
        return Err(failure);
    }
    if entrants.len() > 1 {
        entrants.push(entrant(FASTEST_OF_EACH, &workload, least)?);
    }
    if let Some(times_ps) = at_the_bound(&calls, |kind, root| planned.bound(kind, root)) {
        entrants.push(entrant(BOUND, &workload, times_ps)?);
    }
    Ok(Found { topology, workload, entrants, absent: planned.absent })
}

/// The iteration with every collective at its bound, without plans.
fn bounded(args: &SimulateArgs, stated: Stated) -> Result<Found, Failure> {
    let text = args.plan.to_str().ok_or_else(|| Failure::input("the network is no text"))?;
    let deadline = Deadline::after(args.deadline);
    let topology = input::large_topology_until(text, deadline)?;
    let mut bounds: BTreeMap<(CollectiveKind, Option<u32>), Rate> = BTreeMap::new();
    for (kind, root) in stated.collectives() {
        let collective = Collective::new(kind, root.map(Rank::new), topology.rank_count());
        let collective = collective.map_err(|error| Failure::input(words(&error)))?;
        let found = Bounds::of(&topology, collective, &Shares::Equal, &input::limits()?, &|| deadline.is_past());
        let found = found.map_err(|error| crate::commands::bound::no_bound(&error))?;
        bounds.insert((kind, root), found.found.upper);
    }
    let workload = stated.on(topology.rank_count())?;
    let times_ps = at_the_bound(&workload.calls(), |kind, root| bounds.get(&(kind, root)).cloned());
    let times_ps = times_ps.ok_or_else(|| Failure::input("a collective takes over 200 days; use smaller sizes"))?;
    let entrants = vec![entrant(BOUND, &workload, times_ps)?];
    Ok(Found { topology, workload, entrants, absent: Vec::new() })
}

/// The least time of each call by a proven bound; `None` where one is missing or does not fit.
fn at_the_bound(
    calls: &[Call],
    bound: impl Fn(CollectiveKind, Option<u32>) -> Option<Rate>,
) -> Option<BTreeMap<Call, u64>> {
    let least = |call: &Call| Some((*call, least_time_ps(call.size_bytes, &bound(call.kind, call.root)?)?));
    calls.iter().map(least).collect()
}

/// The fastest variant of a workload with these times; of equals the first.
fn entrant(name: &'static str, workload: &Stated, times_ps: BTreeMap<Call, u64>) -> Result<Entrant, Failure> {
    let mut best: Option<(&Variant, Timeline)> = None;
    for variant in &workload.variants {
        let timeline = run_program(&variant.program, &times_ps).map_err(|error| Failure::input(words(&error)))?;
        if best.as_ref().is_none_or(|(_, best)| timeline.time_ps < best.time_ps) {
            best = Some((variant, timeline));
        }
    }
    let (variant, timeline) = best.ok_or_else(|| Failure::fault("the workload has no program"))?;
    let (bucket_bytes, program) = (variant.bucket_bytes, variant.program.clone());
    Ok(Entrant { name, by_auto: Vec::new(), times_ps, bucket_bytes, program, timeline })
}

/// A call, for people.
fn in_call(call: Call) -> String {
    format!("{} of {}", call.kind, in_words(call.size_bytes))
}
