//! `canopy tools run`: executes a plan for real, one process per rank, over TCP on this machine or among several hosts.
//!
//! Every rank reads the plan as an interpreter in a library of collectives would, moves real bytes, and compares its
//! output with what the collective promises, byte by byte. On one machine, what is measured is its loopback, not a network.

mod control;
mod data;
pub(crate) mod host;
mod hosts;
mod launch;
pub(crate) mod rank;
mod ranks;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use canopy_client::ErrorClass;
use canopy_plan::oneccl::{self, LowerOptions, Program, RankRun, lower, parse_until, prove, write};
use canopy_plan::read_plan;
use canopy_schedule::{CollectiveKind, check, compile};
use canopy_simulate::{algbw, busbw};
use serde::Serialize;

use crate::args;
use crate::connection::ServerArgs;
use crate::exit::{Failure, words};
use crate::input;
use crate::output::{gigabytes_per_sec, print_json};
use crate::running::on_a_thread;
use crate::stdout::print;
use crate::stored_plan::{Wanted, plan_bytes};
use crate::table::count;
use control::{Done, Job};
use data::ElementType;
use hosts::{HostList, Hosts, Launcher, Placed};

/// Most processes that are started on a machine.
const RANKS_MAX: u32 = 64;
/// Most connections that a rank may be asked to take before it looks: what the system keeps for it.
const CONNECTIONS_MAX: u32 = 512;
/// Longest pause of a rank before a step.
const DELAY_MAX: Duration = Duration::from_secs(60);
/// Most memory of the buffers of all ranks on a machine.
const MEMORY_BYTES_MAX: u128 = 16 << 30;

/// Execute a plan: one process per rank, real bytes over TCP on this machine or several, every output byte checked
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A plan in canopy's JSON is made a oneCCL plan first. Without --hosts, times are those of this machine's loopback and its
cores, which all ranks share: they say that a plan works, not how fast a network runs it; see `canopy simulate` for that.

With --hosts, a helper is started on each host by ssh, srun, mpirun or another command, and ends with this one. Hosts need
the same canopy, and TCP connections among each other at any port; what goes over them is not encrypted.

Examples:
  canopy plan ring:8 --collective allreduce --format oneccl-xml -o plan.xml
  canopy tools run plan.xml
  canopy tools run plan.json --size 64MiB --type float64 --seed 7 --json
  canopy tools run plan.xml --delays 20ms
  canopy tools run plan.xml --hosts gpu[01-04]:8
  canopy tools run plan.xml --hosts gpu01=10.0.0.1,gpu02=10.0.0.2 --program /opt/canopy/bin/canopy
  canopy tools run plan.xml --hosts \"$SLURM_JOB_NODELIST\" --launcher srun

Exit status: 0 when every output is right, 2 when the plan or an output is wrong, 4 when a rank dies, 5 at the deadline.")]
pub(crate) struct RunArgs {
    /// A oneCCL plan, or a plan in canopy's JSON
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Where ranks run: `local`, processes on this machine
    #[arg(long, value_name = "WHERE", default_value = "local")]
    ranks: Place,
    /// Hosts of the ranks, in their order, with the number of ranks of each and the address where others reach it, such as gpu[01-04]:8 or a=10.0.0.1:4,b=10.0.0.2:4
    #[arg(long, value_name = "HOST[=ADDRESS][:RANKS],...", value_parser = HostList::read, conflicts_with = "ranks")]
    hosts: Option<HostList>,
    /// What starts a program on a host: ssh, srun, mpirun, or a command in which {host} is the host
    #[arg(
        long,
        value_name = "COMMAND",
        default_value = "ssh",
        value_parser = Launcher::read,
        requires = "hosts",
        conflicts_with = "ranks"
    )]
    launcher: Launcher,
    /// canopy on the hosts [default: the path of this one]
    #[arg(long, value_name = "PATH", value_parser = program_path, requires = "hosts", conflicts_with = "ranks")]
    program: Option<String>,
    /// Bytes of the vector of all ranks, or of the message; of all-to-all, what one rank has for all
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = args::size_bytes)]
    size: u64,
    /// Type of the elements
    #[arg(long = "type", value_name = "TYPE", value_enum, default_value = "float32")]
    element: ElementType,
    /// Seed of the data and of the pauses
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Longest pause of a rank before each step, drawn by chance, up to 60s
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = pause)]
    delays: Duration,
    /// Longest time for all of it
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = args::duration)]
    deadline: Duration,
    #[command(flatten)]
    server: ServerArgs,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
}

/// Where ranks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Place {
    Local,
}

/// JSON object of the command.
#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    collective: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<u32>,
    ranks: u32,
    /// How many, where ranks are on several.
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<usize>,
    instances: u32,
    #[serde(rename = "type")]
    element: String,
    size_bytes: u64,
    time_us: f64,
    #[serde(rename = "algbw_GBps")]
    algbw_gbps: Option<f64>,
    #[serde(rename = "busbw_GBps")]
    busbw_gbps: Option<f64>,
    messages: u64,
    bytes_sent: u64,
    wrong: Vec<Wrong>,
}

/// An output that is not what the collective promises.
#[derive(Debug, Serialize)]
struct Wrong {
    rank: u32,
    element: u64,
}

/// Reads the longest pause before a step.
fn pause(text: &str) -> Result<Duration, String> {
    let read = args::duration_or_zero(text)?;
    if read > DELAY_MAX { Err(format!("`{text}` is longer than a pause may be; write at most 60s")) } else { Ok(read) }
}

/// Reads the path of canopy on hosts: nothing that a shell there would take for something else.
fn program_path(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@:".contains(&byte);
    if text.is_empty() || text.starts_with('-') || !text.bytes().all(is_plain) {
        return Err(format!("`{text}` is not a plain path; use letters, digits and /._-+@: only"));
    }
    Ok(text.to_owned())
}

/// The hosts with their ranks, where hosts are given.
fn hosts(program: &Program, args: &RunArgs) -> Result<Option<Hosts>, Failure> {
    let Some(list) = &args.hosts else { return Ok(None) };
    let placed = list.place(program.rank_count)?;
    let path = args.program.clone().map_or_else(own_path, Ok)?;
    Ok(Some(Hosts::new(placed, args.launcher.clone(), path)))
}

/// Where this program is, which is where hosts have it if nothing else is said.
fn own_path() -> Result<String, Failure> {
    let cannot = |why: String| Failure::input(format!("cannot name canopy on the hosts: {why}")).help("give --program");
    let path = std::env::current_exe().map_err(|error| cannot(error.to_string()))?;
    program_path(&path.to_string_lossy()).map_err(cannot)
}

/// Runs the plan and says what came of it.
pub(crate) async fn run(args: RunArgs) -> Result<(), Failure> {
    let Place::Local = args.ranks;
    let name = args.plan.display().to_string();
    let path = args.plan.clone();
    let bytes = plan_bytes(&path, &args.server, None, Wanted::Any).await?;
    let program = on_a_thread(move || program(&path, &bytes)).await?;
    let elements = elements(&program, args.size, args.element)?;
    let hosts = hosts(&program, &args)?;
    check_size(&program, elements, &args, hosts.as_ref().map(Hosts::placed))?;
    let job = Job {
        plan: write(&program),
        elements,
        element: args.element,
        seed: args.seed,
        delay_max: args.delays,
        places: Vec::new(),
    };
    let ranks = launch::run(&program, job, hosts, args.deadline).await?;
    let report = report(&program, &args, &ranks);
    let ok = report.ok;
    if args.json {
        print_json("run", &report)?;
    } else {
        print(&readable(&report))?;
    }
    if ok { Ok(()) } else { Err(Failure::input(format!("{name} gives wrong outputs on {} ranks", report.wrong.len()))) }
}

/// The plan of a file as a proven program.
fn program(path: &std::path::Path, bytes: &[u8]) -> Result<Program, Failure> {
    let name = path.display();
    let program = match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => lowered(bytes, path)?,
        _ => {
            let text = std::str::from_utf8(bytes).ok().filter(|text| oneccl::is_plan(text)).ok_or_else(|| {
                Failure::input(format!("{name} is neither a oneCCL plan nor a plan in canopy's JSON"))
                    .help("make one with `canopy plan T --collective C --format oneccl-xml -o plan.xml`")
            })?;
            let parsed = parse_until(text, oneccl::OWN_BYTES_MAX, &|| false);
            parsed.map_err(|error| Failure::input(format!("{name}: {}", words(&error))))?
        }
    };
    match prove(&program).problems.first() {
        None => Ok(program),
        Some(problem) => Err(Failure::input(format!("{name} is not right: {}, {problem}", problem.check))
            .help(format!("list everything that is wrong with `canopy verify {name}`"))),
    }
}

/// A plan in canopy's JSON, judged and lowered.
fn lowered(bytes: &[u8], path: &std::path::Path) -> Result<Program, Failure> {
    let name = path.display();
    let wrong = |error: &dyn std::error::Error| {
        Failure::input(format!("{name} is not right: {}", words(error)))
            .help(format!("list everything that is wrong with `canopy verify {name}`"))
    };
    let limits = input::plan_limits()?;
    let plan = read_plan(bytes, &limits).map_err(|error| wrong(&error))?;
    let graph = compile(&plan.topology, &plan.schedule).map_err(|error| wrong(&error))?;
    check(&plan.topology, &graph).map_err(|error| wrong(&error))?;
    let options = LowerOptions { name: "run".to_owned(), in_place: false, bytes_max: None, instances: 1 };
    let lowered = oneccl::require_own_routes(&plan.topology, &graph).and_then(|()| lower(&graph, &options, &|| false));
    lowered.map_err(|error| Failure::new(ErrorClass::Infeasible, format!("{name} cannot be run: {}", words(&error))))
}

/// Elements of each share, or of the message where there are no shares.
fn elements(program: &Program, size_bytes: u64, element: ElementType) -> Result<u64, Failure> {
    let shares = match program.collective.kind() {
        CollectiveKind::Allreduce | CollectiveKind::Broadcast | CollectiveKind::Reduce => 1,
        _ => u64::from(program.rank_count),
    };
    let unit = shares * element.bytes() as u64;
    if size_bytes.is_multiple_of(unit) {
        return Ok(size_bytes / unit);
    }
    let (below, above) = (size_bytes / unit * unit, size_bytes.div_ceil(unit).saturating_mul(unit));
    let near = if below > 0 { format!("{below} or {above}") } else { above.to_string() };
    Err(Failure::input(format!(
        "{size_bytes} bytes are not a whole number of {} in each share",
        args::name_of(&element)
    ))
    .help(format!("give a multiple of {unit} bytes, such as {near}")))
}

/// Refuses what is more than a machine is to be asked for, and sizes the plan is not for.
fn check_size(program: &Program, elements: u64, args: &RunArgs, placed: Option<&[Placed]>) -> Result<(), Failure> {
    let instances = program.instances;
    let here: Vec<u32> = (0..program.rank_count).collect();
    let machines = placed.map_or(vec![&here], |placed| placed.iter().map(|host| &host.ranks).collect());
    let most = machines.iter().map(|ranks| u32::try_from(ranks.len()).unwrap_or(u32::MAX)).max().unwrap_or(0);
    if most > RANKS_MAX || most.saturating_mul(instances) > CONNECTIONS_MAX {
        let text = format!("{most} ranks of {instances} instances are more than one machine is asked to run");
        return Err(Failure::input(text).help(format!(
            "run at most {RANKS_MAX} ranks, and {CONNECTIONS_MAX} instances in all, on a machine: more of them with --hosts"
        )));
    }
    if args.size < program.bytes_min || program.bytes_max.is_some_and(|most| args.size > most) {
        let most = program.bytes_max.map_or("any size".to_owned(), |most| format!("{most} bytes"));
        let text =
            format!("the plan is for messages of {} bytes up to {most}, not for {}", program.bytes_min, args.size);
        return Err(Failure::input(text).help("choose another --size, or plan for it with `canopy plan --size`"));
    }
    for ranks in machines {
        let mut bytes = 0_u128;
        for &rank in ranks {
            let run = RankRun::new(program, rank, elements, 0)
                .map_err(|error| Failure::input(words(&error)).help("lower --size"))?;
            bytes += run.memory_elements() as u128 * args.element.bytes() as u128;
        }
        if bytes > MEMORY_BYTES_MAX {
            let text = format!(
                "the buffers of all ranks of a machine need {bytes} bytes, over the limit of {MEMORY_BYTES_MAX}"
            );
            return Err(Failure::input(text).help("lower --size"));
        }
    }
    Ok(())
}

fn report(program: &Program, args: &RunArgs, ranks: &[Done]) -> Report {
    let nanos = ranks.iter().map(|done| done.nanos).max().unwrap_or(0);
    let kind = program.collective.kind();
    let rate = algbw(args.size, nanos.saturating_mul(1000));
    let busbw = rate.as_ref().and_then(|rate| busbw(kind, program.rank_count, rate));
    let wrong = (0..).zip(ranks).filter_map(|(rank, done)| Some(Wrong { rank, element: done.first_wrong? }));
    let wrong: Vec<Wrong> = wrong.collect();
    Report {
        ok: wrong.is_empty(),
        collective: kind.name(),
        root: program.collective.root().map(canopy_topology::Rank::number),
        ranks: program.rank_count,
        hosts: args.hosts.as_ref().map(HostList::len),
        instances: program.instances,
        element: args::name_of(&args.element),
        size_bytes: args.size,
        time_us: Duration::from_nanos(nanos).as_secs_f64() * 1e6,
        algbw_gbps: rate.as_ref().map(gigabytes_per_sec),
        busbw_gbps: busbw.as_ref().map(gigabytes_per_sec),
        messages: ranks.iter().map(|done| done.messages).sum(),
        bytes_sent: ranks.iter().map(|done| done.bytes).sum(),
        wrong,
    }
}

fn readable(report: &Report) -> String {
    let Report { collective, ranks, element, size_bytes, messages, bytes_sent, .. } = report;
    let place = match report.hosts {
        Some(count) => format!("{count} hosts"),
        None => "this machine".to_owned(),
    };
    let mut lines = vec![format!("{collective} on {ranks} ranks of {place}, {size_bytes} bytes of {element}")];
    let rate = |rate: Option<f64>| rate.map_or("unknown".to_owned(), |rate| format!("{rate} GB/s"));
    lines.push(format!("time       {:.1} us", report.time_us));
    lines.push(format!("algbw      {}", rate(report.algbw_gbps)));
    lines.push(format!("busbw      {}", rate(report.busbw_gbps)));
    lines.push(format!("sent       {bytes_sent} bytes in {}", count(*messages, "message")));
    for Wrong { rank, element } in &report.wrong {
        lines.push(format!("problem    rank {rank}: element {element} of its output is wrong"));
    }
    if report.wrong.is_empty() {
        lines.push("checked    every byte of every output is right".to_owned());
    }
    lines.join("\n")
}
