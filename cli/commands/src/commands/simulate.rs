//! `canopy simulate`: how long a plan takes for messages of given sizes, on the network it was made for or on another.
//!
//! The plan is judged first, as `canopy verify` would; then every size is run by itself, one after the other.

mod by_class;
mod fresh;
mod plot;
pub(super) mod published;
pub(super) mod race;
pub(super) mod report;
pub(super) mod stock;
mod sweep;
mod together;
mod workload;

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use canopy_schedule::{Bound, LinkLoads, certified_bound, check};
use canopy_simulate::{
    ALPHA_NS_USUAL, Outcome, Pieces, Reached, Sharing, SimulateError, SimulateOptions, Sync, elsewhere, simulate,
    step_numbers,
};
use canopy_stock::nccl::Version;
use canopy_synth::Algorithm;
use canopy_topology::{Capacity, Latency};
use clap::{ArgGroup, ValueEnum};
use published::{Baseline, BaselineTime};
use serde::Serialize;

use crate::args::{self, CollectiveArgs};
use crate::around::{self, AroundArgs};
use crate::calibration;
use crate::connection::ServerArgs;
use crate::destination;
use crate::exit::{Failure, words};
use crate::group_plans::Folder;
use crate::input;
use crate::material::{Judged, Material};
use crate::progress::ProgressLine;
use crate::sizes::{Sizes, in_words};
use crate::stock::Library;
use crate::stored_plan::{Wanted, plan_bytes};

/// Most work for a size of one plan.
const WORK_MAX: u64 = 2_000_000_000;

/// Options of one plan: sweeps refuse them.
const OF_ONE: [&str; 6] = ["algorithm", "topology", "links", "critical_path", "published", "chunks"];

/// How long a plan takes for given message sizes: time, algbw, busbw and part of the bound
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A transfer takes alpha, its bytes over its links, and their latencies. Ranks store and forward piece by piece, switches cut
through. Same plan, same options, same picoseconds. Of a plan by a rule for more ranks than trees can be written for, a box
of each class is simulated, or one rank of a torus.

Examples:
  canopy plan dgx-a100:boxes=2 --collective allgather -o plan.json
  canopy simulate plan.json
  canopy simulate torus:4x4 --collective allreduce
  canopy simulate kautz:d=3,n=2 --collective allreduce --sweep --plot sweep.svg
  canopy simulate dfc2:4x4 --collective all-to-all --sweep --algorithms dfc2,dfc2-do,flow,bruck --sizes 1KiB..64MiB
  canopy simulate plan.json --sizes 1KiB..64MiB --alpha 2us --sync steps
  canopy simulate mesh:10x10 -c allreduce --algorithm tacos --published direct,ring --sharing fifo --piece whole
  canopy simulate plan.json --plot sweep.svg
  canopy simulate plan.json --topology 'dgx-a100:boxes=2,degrade=b0g3>ib*1/2'
  canopy simulate plan.json --size 256MiB --links --critical-path --json
  canopy simulate job-plans/ --piece 4MiB
  canopy simulate dgx-a100:boxes=2 --workload examples/workloads/ddp.yaml --algorithms forest,ring

Exit status: 0 when it was simulated, 2 when the plan cannot be read, is wrong, or takes more work than is allowed.")]
#[command(
    group = ArgGroup::new("planned").args(["collective", "workload"]).multiple(true),
    group = ArgGroup::new("compared").args(["sweep", "workload"]).multiple(true),
)]
pub(crate) struct SimulateArgs {
    /// A plan in canopy's JSON, one of a server such as plans/0123abcd, or the folder of `canopy tools plan-job`, whose plans run at once; with --collective or --workload, a generator expression or file of the network to plan for
    #[arg(value_name = "PLAN|T")]
    plan: PathBuf,
    #[command(flatten)]
    collective: CollectiveArgs,
    // The names, as the table of algorithms lists them.
    #[arg(
        long,
        value_name = "A",
        default_value = "auto",
        requires = "planned",
        value_parser = canopy_baselines::algorithm,
        help = format!("How to find the plan: {}", canopy_baselines::algorithm_names()),
    )]
    algorithm: Algorithm,
    /// Compare algorithms: which is fastest for which sizes, and where one overtakes another
    #[arg(long, requires = "collective", conflicts_with_all = OF_ONE)]
    sweep: bool,
    /// Which to compare, such as kautz,forest,ring [default: with --sweep all for the collective that need no long search]
    #[arg(
        long,
        value_name = "A,B,...",
        value_delimiter = ',',
        requires = "compared",
        conflicts_with = "algorithm",
        value_parser = canopy_baselines::algorithm,
    )]
    algorithms: Vec<Algorithm>,
    /// Release of NCCL or RCCL to compare with: 2.18 to 2.31, or rccl-2.21 [default: 2.30; on machines of AMD rccl-2.21]
    #[arg(long, value_name = "VERSION", requires = "sweep", conflicts_with_all = OF_ONE, value_parser = str::parse::<Version>)]
    nccl: Option<Version>,
    /// Switches of the network add up for NCCL, as with SHARP's plugin and NCCL_COLLNET_ENABLE=1
    #[arg(long, requires = "sweep", conflicts_with_all = OF_ONE)]
    collnet: bool,
    /// Beside the plan, the baselines that TACOS is published with, with all their messages: hop by hop, in turn on each link, even where a rank has the chunk already. Their plans, direct-xy and ring-xy, leave such messages out
    #[arg(
        long,
        value_enum,
        value_name = "B,...",
        value_delimiter = ',',
        requires = "collective",
        conflicts_with = "topology"
    )]
    published: Vec<Baseline>,
    /// Chunks of a share, in a plan in steps and in --published [default: the planner's choice, 1]
    #[arg(long, value_name = "C", requires = "collective")]
    chunks: Option<NonZeroU64>,
    /// Simulate an iteration of training or of an application: computations and collectives on a time line, from a file in YAML or a rank's Chakra trace (.et)
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "collective", "root", "sweep", "topology", "size", "sizes", "links", "critical_path", "plot", "nccl", "collnet",
            "published", "chunks",
        ],
    )]
    workload: Option<PathBuf>,
    /// Make no plans for the workload: each collective takes what no plan can beat
    #[arg(long, requires = "workload", conflicts_with_all = ["algorithm", "algorithms"])]
    bound: bool,
    #[command(flatten)]
    around: AroundArgs,
    /// Longest time until the plan is there, such as 30s; of several until each is [default: the server's, 30s]
    #[arg(long, value_name = "TIME", value_parser = args::duration, requires = "planned")]
    deadline: Option<Duration>,
    #[command(flatten)]
    server: ServerArgs,
    /// Run it on this network instead: one with the plan's nodes and links, of any rates and latencies
    #[arg(long, value_name = "T")]
    topology: Option<String>,
    /// One size, such as 64MiB: the vector of all ranks, or the message; of all-to-all, what one rank has for all
    #[arg(long, value_name = "SIZE", value_parser = args::size_bytes, conflicts_with = "sizes")]
    size: Option<u64>,
    /// Sizes from the first to the last, each four times the one before, or a list such as 1MiB,64MiB
    #[arg(long, value_name = "FROM..TO", default_value = "1KiB..1GiB")]
    sizes: Sizes,
    #[command(flatten)]
    messages: MessageArgs,
    /// What a transfer waits for: the data it needs and its turn on its route, or the end of the step before
    #[arg(long, value_enum, default_value = "deps")]
    sync: SyncName,
    /// Who may use a link that several messages need: all at equal rates per chunk, or one after the other
    #[arg(long, value_enum, default_value = "fair")]
    sharing: SharingName,
    /// Most work for a size: events, and looks at links while rates are computed [default: 2000000000, with --sweep 20000000]
    #[arg(long, value_name = "N")]
    work_max: Option<u64>,
    /// List the busiest links, for the largest size
    #[arg(long)]
    links: bool,
    /// List the messages that made it take as long as it does, for the largest size
    #[arg(long)]
    critical_path: bool,
    /// Draw time, busbw and the bound over the sizes, or with --sweep the times of all algorithms, as an SVG file
    #[arg(long, value_name = "FILE", value_parser = destination::file_only)]
    plot: Option<PathBuf>,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
}

/// Largest message, unless stated.
const PIECE_BYTES_USUAL: u64 = 512 << 10;

/// How messages are sent.
#[derive(Debug, clap::Args)]
pub(super) struct MessageArgs {
    /// What each message takes before its first byte is sent; 0 for nothing [default: that of --calibration, else 1us]
    #[arg(long, value_name = "TIME", value_parser = args::duration_or_zero)]
    alpha: Option<Duration>,
    /// What each call takes once, before its first message (epsilon), such as 20us [default: nothing]
    #[arg(long, value_name = "TIME", value_parser = args::duration_or_zero)]
    launch: Option<Duration>,
    /// Rate at which a rank adds up what it receives (1/gamma), such as 400GB/s [default: sums take no time]
    #[arg(long, value_name = "RATE", value_parser = Capacity::from_str)]
    reduce_rate: Option<Capacity>,
    /// Largest message: transfers are cut into as few as possible. `whole` cuts none
    #[arg(long, value_name = "SIZE", default_value = "512KiB", value_parser = piece)]
    pub(super) piece: Piece,
}

impl MessageArgs {
    /// What is simulated with them, but for the size: fair links, and no barriers.
    pub(super) fn options(&self, work_max: u64) -> SimulateOptions<'static> {
        let alpha = Latency::from_nanos(self.alpha_ns());
        let (launch, reduce_rate) = (Latency::from_nanos(self.launch_ns()), self.reduce_rate);
        SimulateOptions {
            alpha,
            launch,
            reduce_rate,
            pieces: self.piece.pieces(),
            ..SimulateOptions::usual(0, work_max)
        }
    }

    /// Whether the user or a calibration says how messages are sent.
    pub(super) fn is_stated(&self) -> bool {
        let is_usual = self.piece.0 == Some(PIECE_BYTES_USUAL);
        let has_costs = self.launch.is_some() || self.reduce_rate.is_some();
        self.alpha.is_some() || calibration::message_ns().is_some() || has_costs || !is_usual
    }

    /// What each call takes once, in nanoseconds.
    fn launch_ns(&self) -> u64 {
        self.launch.map_or(0, nanos)
    }

    /// What each message takes, in nanoseconds.
    pub(super) fn alpha_ns(&self) -> u64 {
        self.alpha.map(nanos).or_else(calibration::message_ns).unwrap_or(ALPHA_NS_USUAL)
    }

    /// The same for people.
    pub(super) fn alpha(&self) -> Duration {
        Duration::from_nanos(self.alpha_ns())
    }
}

/// Whole nanoseconds of a duration, the most that fit.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Names of [`Sync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum SyncName {
    Deps,
    Steps,
}

/// Names of [`Sharing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum SharingName {
    Fair,
    Fifo,
}

/// Largest message; none for whole transfers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece(pub(super) Option<u64>);

impl Piece {
    /// The choice of the model it stands for.
    pub(super) fn pieces(self) -> Pieces {
        self.0.map_or(Pieces::Whole, |bytes| Pieces::AtMost { bytes })
    }

    /// For people.
    pub(super) fn in_words(self) -> String {
        self.0.map_or("whole transfers".to_owned(), |bytes| format!("pieces of at most {}", in_words(bytes)))
    }
}

/// Reads the size of pieces.
pub(super) fn piece(text: &str) -> Result<Piece, String> {
    if text == "whole" { Ok(Piece(None)) } else { args::size_bytes(text).map(Some).map(Piece) }
}

/// A plan that takes no part in a comparison, and why.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Absent {
    pub(super) name: &'static str,
    pub(super) reason: String,
}

/// One size, how long it took, and what links and messages did meanwhile.
struct Run {
    reached: Reached,
    outcome: Outcome,
}

impl SimulateArgs {
    /// What is compared with.
    const fn library(&self) -> Library {
        Library { version: self.nccl, has_collnet: self.collnet }
    }

    /// All sizes that are simulated, rising.
    fn size_list(&self) -> Vec<u64> {
        self.size.map_or_else(|| self.sizes.list().to_vec(), |size| vec![size])
    }

    /// What is simulated, but for the size; `steps` of each transfer, where they have barriers.
    fn options<'a>(&self, steps: Option<&'a [u32]>, work_max: u64) -> SimulateOptions<'a> {
        SimulateOptions {
            sharing: match self.sharing {
                SharingName::Fair => Sharing::Fair,
                SharingName::Fifo => Sharing::Fifo,
            },
            sync: steps.map_or(Sync::Deps, Sync::Steps),
            ..self.messages.options(self.work_max.unwrap_or(work_max))
        }
    }

    /// The steps of a plan's transfers, where there are barriers after them.
    fn steps_of(&self, judged: &Material) -> Option<Vec<u32>> {
        match self.sync {
            SyncName::Deps => None,
            SyncName::Steps => Some(step_numbers(&judged.schedule, &judged.graph)),
        }
    }
}

/// Has the plan made if need be, judges it, simulates each size and prints what was found.
pub(crate) async fn run(args: SimulateArgs) -> Result<(), Failure> {
    args.around.apply();
    if !args.published.is_empty() {
        around::none_of_published()?;
    }
    if let Some(path) = args.workload.clone() {
        return workload::run(args, &path).await;
    }
    let made = match args.collective.equal_kind()? {
        Some(kind) if args.sweep => return sweep::run(args, kind).await,
        Some(kind) => Some(fresh::plan(&args, kind).await?),
        None if args.collective.root.is_some() => {
            return Err(Failure::input("`--root` needs a collective to plan for").help("add `--collective C`"));
        }
        None => None,
    };
    if made.is_none() {
        around::none_of_plan(&args.plan.display().to_string())?;
    }
    if made.is_none()
        && let Some(folder) = Folder::open(&args.plan)?
    {
        return crate::running::on_a_thread(move || together::run(&args, &folder)).await;
    }
    let bytes = match made {
        Some(bytes) => bytes,
        None if args.plan.to_str().is_some_and(|text| text.contains(':')) && !args.plan.exists() => {
            return Err(Failure::input("`simulate` needs a collective to plan for a network")
                .help("add `--collective C`, such as `-c allgather`"));
        }
        None => plan_bytes(&args.plan, &args.server, None, Wanted::Json).await?,
    };
    crate::running::on_a_thread(move || match judge_any(&args.plan, &bytes)? {
        Judged::Listed(plan) => simulated(&args, &plan),
        Judged::Rule(rule) => by_class::run(&args, &rule),
    })
    .await
}

/// Simulates each size and prints what was found.
fn simulated(args: &SimulateArgs, plan: &Material) -> Result<(), Failure> {
    let moved = args.topology.as_deref().map(|text| moved(args, plan, text)).transpose()?;
    let judged = moved.as_ref().unwrap_or(plan);
    let steps = args.steps_of(judged);
    let (sizes, options) = (args.size_list(), args.options(steps.as_deref(), WORK_MAX));
    let line = ProgressLine::start();
    let mut runs = Vec::with_capacity(sizes.len());
    for (number, &size_bytes) in (1..).zip(&sizes) {
        line.working(format!("simulating {}, {number} of {}", in_words(size_bytes), sizes.len()));
        let options = SimulateOptions { size_bytes, ..options };
        let outcome = simulate(&judged.topology, &judged.graph, &options, &|| false)
            .map_err(|error| refused(&error, size_bytes))?;
        let (ran, kind) = ((&judged.topology, &judged.graph), judged.schedule.collective.kind());
        let reached = Reached::of(ran, kind, &judged.bound.upper, &options, &outcome)
            .map_err(|error| refused(&error, size_bytes))?;
        let reached = reached.ok_or_else(no_time)?;
        runs.push(Run { reached, outcome });
    }
    drop(line);
    let planned: Vec<(u64, u64)> = runs.iter().map(|run| (run.reached.size_bytes, run.reached.time_ps)).collect();
    let published = published::times(args, judged, &planned)?;
    report::print(args, judged, (moved.is_some().then_some(&plan.topology), published), &runs)
}

fn no_time() -> Failure {
    Failure::input("the smallest size takes no time at all; give a larger one, or an alpha above 0")
}

/// Reads a plan in canopy's JSON, and judges it; one that is not listed is refused.
pub(super) fn judge_bytes(path: &Path, bytes: &[u8]) -> Result<Material, Failure> {
    require_json(path, bytes)?;
    Material::of_file(&path.display().to_string(), bytes)
}

/// The same of plans that are not listed as well.
pub(super) fn judge_any(path: &Path, bytes: &[u8]) -> Result<Judged, Failure> {
    require_json(path, bytes)?;
    Judged::of_file(&path.display().to_string(), bytes)
}

fn require_json(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{') {
        return Ok(());
    }
    Err(Failure::input(format!("{} is not a plan in canopy's JSON", path.display()))
        .help("make one with `canopy plan T --collective C -o plan.json`"))
}

/// The plan on another network, with its rate and the bound there.
fn moved(args: &SimulateArgs, judged: &Material, text: &str) -> Result<Material, Failure> {
    let actual = input::topology(text)?;
    let name = args.plan.display();
    let refuse =
        |error: &dyn std::error::Error| Failure::input(format!("{name} cannot run on {text}: {}", words(error)));
    let graph = elsewhere(&judged.graph, &judged.topology, &actual).map_err(|error| {
        refuse(&error)
            .help(format!("see what a plan made for it takes: `canopy plan {text} --collective C -o new.json`"))
    })?;
    let (verdict, schedule) = (check(&actual, &graph).map_err(|error| refuse(&error))?, judged.schedule.clone());
    let (collective, shares) = (schedule.collective, &schedule.shares);
    let bound = canopy_synth::bound(&actual, collective, shares, &|| false).map_err(|error| refuse(&error))?;
    let proven = certified_bound(&actual, collective, shares, &bound.certificate);
    let upper = proven.map_err(|error| Failure::fault(words(&error)))?;
    let loads = LinkLoads::of(&actual, &graph).map_err(|error| refuse(&error))?;
    Ok(Material { topology: actual, schedule, bound: Bound { upper, ..bound }, graph, verdict, loads })
}

/// Which option helps, in the words of the command line.
fn refused(error: &SimulateError, size_bytes: u64) -> Failure {
    let failure = Failure::input(format!("cannot simulate {}: {}", in_words(size_bytes), words(error)));
    match error {
        SimulateError::TooLarge { .. } => {
            failure.help("raise --piece or --work-max, lower --size or --sizes, or take --sharing fifo")
        }
        SimulateError::SizeTooLarge { .. } | SimulateError::TooLong => failure.help("lower --size, --sizes or --alpha"),
        _ => failure,
    }
}
