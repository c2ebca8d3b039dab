//! `canopy tools plan-job`: the groups of a training job on one network: how fast they can be together, and a plan for each.

mod description;
mod follow;
mod manifest;
mod report;

use std::path::{Path, PathBuf};
use std::time::Duration;

use canopy_client::{ClientError, PlannedGroups};
use canopy_plan::Format;
use canopy_proto::v1::{GroupsProgress, GroupsStage, OutputFormat, OutputSpec, PlanGroupsRequest};

use super::file::FileArgs;
use super::folder::{Fetch, Files, NewFolder};
use crate::args;
use crate::clock::Deadline;
use crate::connection::{Connection, ServerArgs, Session};
use crate::exit::Failure;
use crate::group_plans::manifest::{Group, Manifest};
use crate::known_faults::{FaultArgs, say_warning, say_warnings, worth_saying};
use crate::messages::say;
use crate::output::{self, FileSummary, print_json};
use crate::progress::ProgressLine;
use crate::request;
use crate::running::on_a_thread;
use crate::stdout::print;
use crate::table::count;

use description::Description;
use manifest::Printed;

/// Plan all groups of a training job together, so that they share the network as well as they can
#[derive(Debug, clap::Args)]
#[command(after_help = "\
JOB is a YAML file:

  topology: rail:boxes=4,gpus=8,nv=300GB/s,nic=25GB/s    # an expression, or a file beside this one
  layout: tp=8 dp=4                                      # dimensions, fastest first; or `megatron: tp=8 pp=8 dp=16 ep=64 etp=1`
  forward: true                                          # whether ranks forward for groups that they are not in [true]
  groups:
    - {name: tp, over: tp, collective: allreduce, size: 64MiB}
    - {name: dp, over: dp, collective: reduce-scatter, size: 1GiB}
    - {name: pp, over: pp, collective: next, size: 8MiB}  # each stage sends to the next one
  ranks: 0-31                                            # where the job is; all ranks of the network without it
  running:                                               # jobs that run there already and keep their plans, in order
    - {job: other.yaml, time: 120ms}                     # and in which time all groups of each end

Prints how long all groups take together, each for its size, with the proof that nothing is faster, and what rings, one
class after another, and plans made alone take. With `-o DIR`, each group has a plan in its share of the links.

Examples:
  canopy tools plan-job job.yaml
  canopy tools plan-job job.yaml --format msccl-xml -o plans
  canopy tools plan-job job.yaml -o plans --follow --server gpu-planner:7447
  canopy tools plan-job job.yaml --topology 'rail:boxes=4,gpus=8,nv=300GB/s,nic=25GB/s,faults=nics:1'")]
pub(crate) struct PlanJobArgs {
    /// Description of the job
    #[arg(value_name = "JOB")]
    job: PathBuf,
    /// Network in place of the one that JOB names
    #[arg(long, value_name = "T")]
    topology: Option<String>,
    /// Give what the slowest groups leave to those that can be faster, level by level
    #[arg(long)]
    levels: bool,
    /// Look at other orders of the dimensions, too, and take the best: which ranks should form which group
    #[arg(long)]
    best_order: bool,
    /// Most chunks per share, for groups whose plans are trees; groups may take longer then
    #[arg(long, value_name = "K")]
    max_chunks: Option<u64>,
    /// Greatest depth of a tree in hops between ranks; groups may take longer then
    #[arg(long, value_name = "D")]
    max_depth: Option<u32>,
    #[command(flatten)]
    faults: FaultArgs,
    #[command(flatten, next_help_heading = "Files")]
    file: FileArgs,
    /// Go on: plan all groups again whenever faults change the network, and replace the folder; each time has the server's
    /// own deadline
    #[arg(long, conflicts_with = "deadline")]
    follow: bool,
    /// With --follow, end after this many times
    #[arg(long, value_name = "COUNT", requires = "follow", conflicts_with = "deadline")]
    rounds: Option<u64>,
    /// Longest time, such as 30s; a third of it is for the search for the joint optimum
    #[arg(long, value_name = "TIME", value_parser = args::duration, default_value = "10m")]
    deadline: Duration,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Has the joint rate computed and, where a folder is named, the plans made.
pub(crate) async fn run(args: PlanJobArgs) -> Result<(), Failure> {
    let folder = args.file.file().map(NewFolder::prepare).transpose()?;
    let description = Description::read(&args.job)?;
    let mut request = description.request(args.topology.as_deref())?;
    request.fault_policy = args.faults.policy().into();
    (request.levels, request.best_order) = (args.levels, args.best_order);
    (request.max_chunks, request.max_depth) = (args.max_chunks, args.max_depth);
    if folder.is_some() {
        request.outputs = outputs(&args.file)?;
    }
    if args.follow {
        // Each round prepares its own.
        drop(folder);
        return follow::run(&args, request).await;
    }
    let end = Deadline::after(Some(args.deadline));
    let mut session = Session::open(&args.server).await?;
    let outcome = made(&args, &mut session, (request, end), folder).await;
    session.close().await;
    let manifest = outcome?;
    if args.json { print_json("plan-job", &Printed { job: &manifest }) } else { print(&report::readable(&manifest)) }
}

/// The files of each plan: canopy's own, which says what all take together, and that of a runtime.
fn outputs(file: &FileArgs) -> Result<Vec<OutputSpec>, Failure> {
    let own = OutputSpec { format: OutputFormat::Json.into(), ..OutputSpec::default() };
    let asked = file.spec()?;
    Ok(if file.format() == Format::Json { vec![asked] } else { vec![own, asked] })
}

/// Asks the server, and writes what it has made.
async fn made(
    args: &PlanJobArgs,
    session: &mut Session,
    (request, end): (PlanGroupsRequest, Deadline),
    folder: Option<NewFolder>,
) -> Result<Manifest, Failure> {
    let line = ProgressLine::start();
    let calls = async |connection: &Connection, left| {
        let said = |done: &GroupsProgress| line.working(in_words(done));
        Ok(connection.shared().plan_groups(request.clone(), left, said).await?)
    };
    let planned = session.ask(end, calls).await.map_err(|error| error.told(|error| in_users_words(error, args)));
    drop(line);
    kept(args, session.connection(), (&planned?, !request.members_only), folder).await
}

/// What was planned, for people and programs; written where a folder is given. `forward`: whether ranks forward for
/// groups that they are not in.
async fn kept(
    args: &PlanJobArgs,
    connection: &Connection,
    (planned, forward): (&PlannedGroups, bool),
    folder: Option<NewFolder>,
) -> Result<Manifest, Failure> {
    say_warnings(&planned.rates.warnings, "plans");
    let mut manifest = Manifest::of(planned, forward);
    if let Some(folder) = folder {
        let is_for_runtime = args.file.format() != Format::Json;
        let warnings = planned.plans.iter().flat_map(|plan| worth_saying(&plan.warnings, is_for_runtime));
        let mut said = Vec::new();
        // What all of them warn of is said once.
        for warning in warnings {
            if !said.contains(&warning) {
                say_warning(warning);
                said.push(warning);
            }
        }
        manifest.groups = write(connection, planned, &folder).await?;
        let target = folder.target().to_owned();
        folder.write(output::GROUPS_NETWORK, &planned.network)?;
        let measured = on_a_thread(move || manifest.measured(folder.path()).map(|manifest| (manifest, folder)));
        let folder;
        (manifest, folder) = measured.await?;
        // Last, so that what has a manifest is whole.
        folder.write_json(output::MANIFEST, &manifest)?;
        folder.commit()?;
        say(&format!("{} to {}", count(manifest.groups.len(), "plan"), target.display()));
    }
    Ok(manifest)
}

/// What the server does.
fn in_words(progress: &GroupsProgress) -> String {
    match progress.stage() {
        GroupsStage::Compare => "computing what rings, phases and plans made alone take".to_owned(),
        GroupsStage::Plan => format!("{} of {} groups have a plan", progress.done, progress.total),
        GroupsStage::Solve | GroupsStage::Unspecified => "looking for the joint optimum".to_owned(),
    }
}

/// What the server refused, in the words of the description.
fn in_users_words(error: ClientError, args: &PlanJobArgs) -> ClientError {
    let network = args.topology.clone().unwrap_or_else(|| args.job.display().to_string());
    let of_job = |field: &str| {
        let is_ours = ["layout", "groups", "ranks", "running"].iter().any(|name| field.starts_with(name));
        is_ours.then(|| format!("{}: {field}", args.job.display()))
    };
    request::in_users_words(request::renamed(error, of_job), &network)
}

/// Writes the files of all plans.
async fn write(connection: &Connection, planned: &PlannedGroups, folder: &NewFolder) -> Result<Vec<Group>, Failure> {
    let mut fetch = Fetch::new(Files::Server(connection), folder);
    let mut groups = Vec::with_capacity(planned.plans.len());
    for group in &planned.plans {
        let plan = group.plan.as_ref().ok_or_else(|| request::missing("a plan"))?;
        let mut described = Group::of(group, plan)?;
        for artifact in &plan.artifacts {
            let path = format!("{}.{}", group.name, super::joint::ending(artifact.format()));
            fetch.file(&path, &plan.name, artifact).await?;
            described.files.push(FileSummary::of_artifact(artifact, Path::new(&path)));
        }
        groups.push(described);
    }
    Ok(groups)
}
