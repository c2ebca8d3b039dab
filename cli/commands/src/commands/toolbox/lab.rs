//! `canopy tools lab`: the network of a topology with links of limited rate on this machine, and plans run on it for real.
//!
//! What is measured stands beside what is predicted and simulated; the counters of every link stand beside the plan's
//! loads.

mod case;
mod counters;
mod fail;
pub(crate) mod inside;
mod measure;
mod mpi;
mod plot;
mod programs;
mod protocol;
pub(crate) mod rank;
mod report;
mod rivals;
mod session;
mod suite;

use std::path::PathBuf;
use std::time::Duration;

use canopy_faults::Loss;
use canopy_lab::{Network, Scale};
use canopy_synth::Algorithm;

use crate::args::{self, CollectiveArgs};
use crate::clock::Deadline;
use crate::commands::simulate::judge_bytes;
use crate::connection::ServerArgs;
use crate::destination;
use crate::exit::{Failure, words};
use crate::material::Material;
use crate::messages::say;
use crate::running::on_a_thread;
use crate::stored_plan::{Wanted, plan_bytes};
use crate::whole_file::write_file;
use case::{Case, Wishes};
use report::{Entry, Report};
use session::Session;

/// Most runs of a plan.
const RUNS_MAX: i64 = 100;
/// Longest run that is aimed at.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Run plans on an emulated network with real rate limits, and compare with the prediction
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each node is a network namespace on this machine, each link has a rate limit, each rank is a process. It needs no root
where user namespaces are allowed, never touches the machine's own network, and leaves nothing behind. Rates are scaled
down, and printed in GB/s of the topology.

Examples:
  canopy tools lab torus:3x3 -c allgather
  canopy tools lab torus:3x3 -c allreduce --algorithms auto,ring --mpi
  canopy tools lab dgx-a100:boxes=2,gpus=4 -c allgather --fail 'link:b0g3=ib*1/2'
  canopy tools lab torus:3x3 -c allgather --fail link:00=01
  canopy tools lab plan.json --runs 5 --json
  canopy tools lab --suite --mpi --plot lab.svg

Exit status: 0 when every word of every result is right, 2 when an argument or a result is wrong, 3 when this machine
cannot hold a lab, 4 when a lab dies.")]
pub(crate) struct LabArgs {
    /// A plan in canopy's JSON; with --collective, a generator expression or file of the network to plan for
    #[arg(value_name = "PLAN|T", required_unless_present = "suite")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    collective: CollectiveArgs,
    /// Plans to run, by their algorithms, such as auto,ring
    #[arg(
        long,
        visible_alias = "algorithm",
        value_name = "A,B,...",
        value_delimiter = ',',
        default_value = "auto",
        requires = "collective",
        value_parser = canopy_baselines::algorithm,
    )]
    algorithms: Vec<Algorithm>,
    /// Emulated rate of each GB/s, such as 1GBps=2Mbit [default: what this machine carries well]
    #[arg(long, value_name = "1GBps=RATE", value_parser = scale)]
    scale: Option<Scale>,
    /// Size: the vector of all ranks, or the message; of all-to-all, what one rank has for all [default: by --time]
    #[arg(long, value_name = "SIZE", value_parser = args::size_bytes, conflicts_with = "time")]
    size: Option<u64>,
    /// How long a run should take
    #[arg(long, value_name = "TIME", default_value = "2500ms", value_parser = run_time)]
    time: Duration,
    /// Largest piece of a message [default: 1 to 4 frames, the most that costs at most 3 % by simulation]
    #[arg(long, value_name = "SIZE", value_parser = args::size_bytes)]
    piece: Option<u64>,
    /// Runs of each plan, after one that does not count
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=RUNS_MAX))]
    runs: u32,
    /// Do not pace connections by the plan
    #[arg(long)]
    no_pacing: bool,
    /// Take this link down for real after the runs, repair the plan and run again; `link:A=B*1/2` halves it
    #[arg(long, value_name = "LINK", conflicts_with = "suite")]
    fail: Vec<Loss>,
    /// Run Open MPI's algorithms on the same network
    #[arg(long)]
    mpi: bool,
    /// Run the table of the guide: 15 networks and collectives
    #[arg(long, conflicts_with_all = ["plan", "collective", "algorithms", "scale", "size"])]
    suite: bool,
    /// Longest time to plan, such as 30s
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    deadline: Option<Duration>,
    #[command(flatten)]
    server: ServerArgs,
    /// Draw predicted, simulated and measured rates as an SVG file
    #[arg(long, value_name = "FILE", value_parser = destination::file_only)]
    plot: Option<PathBuf>,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
}

/// Reads how long a run should take.
fn run_time(text: &str) -> Result<Duration, String> {
    let read = args::duration(text)?;
    if read > TIME_MAX || read < Duration::from_millis(100) {
        return Err(format!("`{text}` is not between 100ms and {}s", TIME_MAX.as_secs()));
    }
    Ok(read)
}

/// Reads `1GBps=2Mbit`: the emulated rate of each GB/s.
fn scale(text: &str) -> Result<Scale, String> {
    const UNITS: [(&str, u64); 3] = [("kbit", 1_000), ("Mbit", 1_000_000), ("Gbit", 1_000_000_000)];
    let error = || format!("`{text}` is not a scale; write the rate that 1 GB/s becomes, such as 1GBps=2Mbit");
    let rate = text.strip_prefix("1GBps=").or_else(|| text.strip_prefix("1GB/s=")).ok_or_else(error)?;
    let rate = rate.trim_end_matches("/s");
    let (number, unit) =
        UNITS.iter().find_map(|(name, unit)| Some((rate.strip_suffix(name)?, *unit))).ok_or_else(error)?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.len() <= 9 && part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(decimals) {
        return Err(error());
    }
    let value: u64 = format!("{whole}{decimals}").parse().map_err(|_| error())?;
    let bits = value.checked_mul(unit).map(|bits| bits / 10_u64.pow(u32::try_from(decimals.len()).unwrap_or(9)));
    bits.and_then(Scale::from_bits_per_gigabyte).ok_or_else(error)
}

impl LabArgs {
    fn wishes(&self) -> Wishes {
        Wishes {
            scale: self.scale,
            size_bytes: self.size,
            piece_bytes: self.piece,
            run_ms: u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX),
            is_paced: !self.no_pacing,
        }
    }
}

/// Runs what was asked for and prints what was measured.
pub(crate) async fn run(args: LabArgs) -> Result<(), Failure> {
    let mut report = Report::default();
    if args.suite {
        suite::run(&args, &mut report).await?;
    } else {
        one(&args, &mut report).await?;
    }
    if let Some(path) = &args.plot {
        write_file(path, plot::draw(&report).as_bytes())?;
    }
    report.print(args.json)
}

/// The plans of one network.
async fn one(args: &LabArgs, report: &mut Report) -> Result<(), Failure> {
    let path = args.plan.clone().unwrap_or_default();
    let name = path.display().to_string();
    let kind = args.collective.equal_kind()?;
    let plans = match kind {
        None if name.contains(':') && !path.exists() => {
            return Err(Failure::input("a lab needs a collective to plan for a network").help("add `-c allgather`"));
        }
        None => {
            let bytes = plan_bytes(&path, &args.server, None, Wanted::Json).await?;
            let material = on_a_thread(move || judge_bytes(&path, &bytes)).await?;
            vec![("plan".to_owned(), material)]
        }
        Some(kind) => {
            let (root, deadline) = (args.collective.root, args.deadline);
            let (named, algorithms) = (name.clone(), args.algorithms.clone());
            on_a_thread(move || {
                let plan = |algorithm: &Algorithm| {
                    let planned = Material::planned(&named, kind, root, *algorithm, Deadline::after(deadline))?;
                    Ok((algorithm.name().to_owned(), planned))
                };
                algorithms.iter().map(plan).collect::<Result<Vec<_>, Failure>>()
            })
            .await?
        }
    };
    network(args, &name, plans, report).await
}

/// Runs plans of one network, and Open MPI or a fault where these are asked for.
async fn network(
    args: &LabArgs,
    name: &str,
    plans: Vec<(String, Material)>,
    report: &mut Report,
) -> Result<(), Failure> {
    let wishes = args.wishes();
    let losses = args.fail.clone();
    let cases = on_a_thread(move || {
        let scales = plans.iter().map(|(_, material)| case::scale_for(material, &wishes));
        // The smallest serves all.
        let scale = scales.collect::<Result<Vec<_>, _>>()?.into_iter().min();
        let scale = scale.ok_or_else(|| Failure::fault("no plan to run"))?;
        let mut cases: Vec<Case> = Vec::with_capacity(plans.len());
        for (name, material) in plans {
            let route_first = cases.iter().map(|case| case.compiled.routes.len()).sum::<usize>();
            let route_first = u32::try_from(route_first).unwrap_or(u32::MAX);
            cases.push(Case::new(name, material, scale, &wishes, route_first)?);
        }
        Ok(cases)
    })
    .await?;
    let Some(first) = cases.first() else { return Ok(()) };
    let (topology, scale) = (first.material.topology.clone(), first.scale);
    // Before anything starts.
    let refused = |error: canopy_lab::LabError| Failure::input(words(&error));
    Network::new(&topology, scale, false).map_err(refused)?;
    if !losses.is_empty() {
        fail::require(&topology, &losses)?;
    }
    let mut session = Session::start().await?;
    let mut network = Network::new(&topology, scale, session.has_cubic).map_err(refused)?;
    let is_beside = args.mpi && mpi::mpi_name(first.material.schedule.collective.kind()).is_some();
    session.commands(network.setup(is_beside)).await?;
    for case in &cases {
        say(&format!("{name} {}: {}", first.material.schedule.collective.kind(), case.name));
        let measured = measure::measure(&mut session, &network, case, args.runs).await?;
        let entry = Entry::new(name, case, None, measured);
        say(&entry.outcome());
        report.entries.push(entry);
    }
    if is_beside {
        let rivals = rivals::measure(&mut session, first, args.deadline).await;
        report.rivals(rivals);
    }
    if !losses.is_empty() {
        let after = fail::run(&mut session, &mut network, first, &losses, args).await?;
        report
            .entries
            .extend(after.into_iter().map(|(case, said, measured)| Entry::new(name, &case, Some(said), measured)));
    }
    Ok(())
}
