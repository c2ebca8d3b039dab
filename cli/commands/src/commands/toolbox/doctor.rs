//! `canopy tools doctor`: what the log of a job says about it, which rule makes a runtime ignore a plan, and what to do about it.
//!
//! Reads the log of a job, its environment, the plan files and, where one is named, the server; changes nothing. The
//! rules are those of `canopy-bundle`, by which folders are made.

mod calls;
mod check;
mod environment;
mod files;
mod job;
mod log;
mod plans;
mod runtime;
mod server;
mod tuner;
mod variables;

use std::path::PathBuf;

use canopy_bundle::Runtime;
use canopy_plan::read_plan;
use canopy_topology::Topology;
use serde::Serialize;

use crate::args::{self, CollectiveName, MemoryArgs};
use crate::connection::NamedServerArgs;
use crate::exit::Failure;
use crate::input;
use crate::output::{TopologySummary, print_json};
use crate::running::on_a_thread;
use crate::stdout::print;
use crate::table::count;

use calls::Asked;
use check::{Check, Checks, shown};
use environment::Environment;
use log::Log;
use plans::Plans;

/// Find out what slows a job with NCCL or RCCL, or why its runtime ignores a plan, and what to do
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy tools doctor nccl.log
  canopy tools doctor nccl.log --env job.env --plans /run/canopy/17
  canopy tools doctor --plans plans/ --profile msccl-executor -c allreduce --size 64MiB
  canopy tools doctor nccl.log --topology dump.xml --server 127.0.0.1:7423
  canopy tools doctor --env /proc/4711/environ --json

Write the log with NCCL_DEBUG=INFO; NCCL_DEBUG_SUBSYS=INIT,ENV,COLL,TUNING adds each call.

Without a word of plans, it says what the log shows of the job. Exit status: 0 if no check found a problem, 2 if one did or a
file cannot be read.")]
pub(crate) struct DoctorArgs {
    /// Log of the job, written with NCCL_DEBUG=INFO
    #[arg(value_name = "LOG")]
    file: Option<PathBuf>,
    /// The same
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    log: Option<PathBuf>,
    /// Environment of the job: NAME=VALUE lines, or /proc/PID/environ [default: that of this command]
    #[arg(long, value_name = "FILE")]
    env: Option<PathBuf>,
    /// Plan file, folder of plans, or folder of `canopy job fetch` or `canopy plan bundle` [default: what the environment
    /// names]
    #[arg(long, value_name = "PATH")]
    plans: Option<PathBuf>,
    /// Runtime that the plans are for [default: as the manifest, the environment or the files say]
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Runtime>,
    /// A collective that should run a plan [default: the calls in the log]
    #[arg(long, short, value_name = "C", value_parser = args::collective_name, requires = "size")]
    collective: Option<CollectiveName>,
    /// Size of its whole message, such as 64MiB
    #[arg(long, value_name = "SIZE", value_parser = args::size_bytes, requires = "collective")]
    size: Option<u64>,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Network of the job: generator expression or file, such as the dump of NCCL_TOPO_DUMP_FILE
    #[arg(long, value_name = "T")]
    topology: Option<String>,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: NamedServerArgs,
}

/// JSON object of the command.
#[derive(Serialize)]
struct Report<'c> {
    ok: bool,
    /// The runtime whose rules were applied.
    runtime: Option<&'static str>,
    checks: &'c [Check],
}

/// What is known when the files have been read.
struct Findings {
    checks: Checks,
    runtime: Option<Runtime>,
    topology: Option<(String, Topology)>,
    /// Networks of plans in canopy's own format.
    networks: Vec<(String, TopologySummary)>,
    plan_ids: Vec<String>,
    job: Option<String>,
}

/// Makes all checks and prints what came of them.
pub(crate) async fn run(args: DoctorArgs) -> Result<(), Failure> {
    let (json, server) = (args.json, args.server.named());
    let mut findings = on_a_thread(move || examine(&args)).await?;
    if let Some(server) = server {
        let networks = server::check(&mut findings.checks, &server, &findings.plan_ids, findings.job.as_deref()).await;
        findings.networks.extend(networks);
    }
    let Findings { mut checks, runtime, topology, networks, .. } = findings;
    if let Some((name, topology)) = topology {
        // Finding the hash of a large network takes a while.
        checks = on_a_thread(move || {
            server::network(&mut checks, &name, &topology, &networks);
            Ok(checks)
        })
        .await?;
    }
    let problems = checks.problems();
    if json {
        let runtime = runtime.map(Runtime::name);
        print_json("doctor", &Report { ok: problems == 0, runtime, checks: checks.list() })?;
    } else {
        print(&checks.text())?;
    }
    match problems {
        0 => Ok(()),
        _ if runtime.is_some() => {
            Err(Failure::input(format!("plans are not used, or not as meant: {}", count(problems, "problem"))))
        }
        _ => Err(Failure::input(count(problems, "problem"))),
    }
}

/// All that needs no server.
fn examine(args: &DoctorArgs) -> Result<Findings, Failure> {
    let log = args.file.as_deref().or(args.log.as_deref()).map(Log::read).transpose()?;
    let log = log.as_ref();
    let environment = match &args.env {
        Some(path) => Environment::of_file(path)?,
        None => Environment::of_process(),
    };
    let environment = match log {
        Some(log) => environment.with(&log.variables),
        None => environment,
    };
    let at = |path: &PathBuf| Plans::at(path).map_err(|error| input::cannot_read(path, &error));
    let named = args.plans.as_ref().map(at).transpose()?;
    let led_to = if named.is_none() { variables::plans(&environment) } else { None };
    let plans = named.as_ref().or(led_to.as_ref());
    let running = log.and_then(runtime::running);
    let is_about_plans =
        plans.is_some() || args.profile.is_some() || args.collective.is_some() || runtime::names_plans(&environment);
    let planned = args.profile.or_else(|| runtime::planned(&environment, plans, running.as_ref()));
    let planned = planned.filter(|_| is_about_plans);

    let mut checks = Checks::default();
    runtime::check(&mut checks, is_about_plans.then_some(planned), log, running.as_ref());
    if let Some(log) = log {
        log.warnings.iter().take(8).for_each(|warning| warned(&mut checks, warning, planned));
        if log.is_cut {
            checks.unknown(
                "log",
                "only the first 64 MiB of the log were read",
                "give the part with the start of the job",
            );
        }
    }
    match planned {
        Some(Runtime::Nccl) => tuner::check(&mut checks, &environment, log),
        Some(runtime) => {
            variables::check(&mut checks, runtime, &environment, log, named.as_ref());
            selection(&mut checks, args, runtime, &environment, log, plans)?;
        }
        None => job::report(&mut checks, &environment, log, running.as_ref()),
    }
    let topology = match (&args.topology, dump(&environment)) {
        (Some(name), _) => Some((name.clone(), input::topology(name)?)),
        (None, Some(path)) => match input::topology(&path) {
            Ok(topology) => Some((path, topology)),
            Err(failure) => {
                let what = format!("the dump cannot be read: {}", shown(&failure.sentence()));
                checks.unknown("network", what, "name the network of the job with `--topology`");
                None
            }
        },
        (None, None) => None,
    };
    let networks = match (&topology, plans) {
        (Some(_), Some(plans)) => networks(plans)?,
        // Nothing is there to compare them with.
        _ => Vec::new(),
    };
    let manifest = plans.and_then(|plans| plans.manifest.as_ref());
    Ok(Findings {
        checks,
        runtime: planned,
        topology,
        networks,
        plan_ids: manifest.map(plans::Manifest::plan_ids).unwrap_or_default(),
        job: manifest.and_then(|manifest| manifest.job.clone()),
    })
}

/// What the runtime makes of the files and of the calls.
fn selection(
    checks: &mut Checks,
    args: &DoctorArgs,
    runtime: Runtime,
    environment: &Environment,
    log: Option<&Log>,
    plans: Option<&Plans>,
) -> Result<(), Failure> {
    let Some((plans, rules)) = plans.zip(runtime.rules()) else {
        checks.unknown("files", "no plans were looked at", "name them with `--plans`");
        return Ok(());
    };
    let (folder, files) = files::read(checks, runtime, &rules, plans);
    files::compare(checks, runtime, &rules, &files, environment, log);
    let asked = match (args.collective, args.size) {
        (Some(name), Some(bytes)) => {
            Some(Asked { collective: name.equal_kind()?, bytes, in_place: args.memory.in_place() })
        }
        _ => None,
    };
    calls::check(checks, runtime, &folder, &calls::of(asked, log, &folder));
    Ok(())
}

/// The dump that the job wrote, where it is here.
fn dump(environment: &Environment) -> Option<String> {
    let path = environment.get("NCCL_TOPO_DUMP_FILE")?;
    std::fs::metadata(path).is_ok_and(|found| found.is_file()).then(|| path.to_owned())
}

/// The networks of plans in canopy's own format, which alone say it.
fn networks(plans: &Plans) -> Result<Vec<(String, TopologySummary)>, Failure> {
    let mut networks = Vec::new();
    for path in &plans.paths {
        let Ok(bytes) = plans::bytes_of(path) else { continue };
        let Ok(plan) = read_plan(&bytes, &input::plan_limits()?) else { continue };
        networks.push((shown(&path.display().to_string()), TopologySummary::of(&plan.topology)));
    }
    Ok(networks)
}

/// Says what a warning of the runtime means, and what to do about it.
fn warned(checks: &mut Checks, warning: &str, planned: Option<Runtime>) {
    let missing = warning.strip_prefix("Attribute ").and_then(|rest| rest.strip_suffix(" not found"));
    let Some((attribute, element)) = missing.and_then(|rest| rest.split_once(" of node ")) else {
        let help = "look for the plan that it speaks of; `--plans` checks one by the rules of the runtime";
        return checks.problem("log", format!("the runtime warns: {warning}"), help);
    };
    let target = planned.filter(|runtime| runtime.msccl_profile().is_some()).unwrap_or(Runtime::MscclExecutor);
    let what = format!("the runtime warns: {warning}: a file whose <{element}> lacks it is ignored");
    let help = format!("add `{attribute}`, or convert the file with `canopy convert FILE --to {target} -o NEW`");
    checks.problem("log", what, help);
}
