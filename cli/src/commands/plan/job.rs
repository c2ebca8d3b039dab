//! `canopy plan-job`: the groups of a training job on one network: how fast they can be together, and a plan for each.

mod description;
mod manifest;
mod report;

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use canopy_client::ErrorClass;
use canopy_job::{Comparison, Job, JobRates, Patience, RatesError, ShareError, comparison, job_rates};
use canopy_proto::v1::{self, PlanRequest};
use canopy_schedule::Collective;
use canopy_topology::{Rank, Topology, to_yaml};

use super::file::FileArgs;
use super::folder::{Fetch, NewFolder};
use crate::args;
use crate::clock::Deadline;
use crate::commands::on_a_thread;
use crate::connection::{Connection, ServerArgs, Session};
use crate::exit::Failure;
use crate::input;
use crate::messages::say;
use crate::output::{self, FileSummary, print_json};
use crate::progress::ProgressLine;
use crate::request;
use crate::stdout::print;

use description::Description;
use manifest::{Manifest, PlannedGroup, Printed};

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

Prints how long all groups take together, each for its size, with the proof that nothing is faster, and what rings, one
class after another, and plans made alone take. With `-o DIR`, each group has a plan in its share of the links.

Examples:
  canopy plan-job job.yaml
  canopy plan-job job.yaml --format msccl-xml -o plans
  canopy plan-job job.yaml --topology 'rail:boxes=4,gpus=8,nv=300GB/s,nic=25GB/s,faults=nics:1'

Faults that a server knows are not applied: state them in the network.")]
pub(crate) struct PlanJobArgs {
    /// Description of the job
    #[arg(value_name = "JOB")]
    job: PathBuf,
    /// Network in place of the one that JOB names: generator expression or file
    #[arg(long, value_name = "T")]
    topology: Option<String>,
    #[command(flatten, next_help_heading = "Files")]
    file: FileArgs,
    /// Longest time, such as 30s
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    deadline: Option<Duration>,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// What was found of a job.
struct Found {
    topology: Topology,
    job: Job,
    rates: JobRates,
    others: Comparison,
}

/// Computes the joint rate and, where a folder is named, has the plans made.
pub(crate) async fn run(args: PlanJobArgs) -> Result<(), Failure> {
    let folder = args.file.file().map(NewFolder::prepare).transpose()?;
    let description = Description::read(&args.job)?;
    let (network, end) = (args.topology.clone(), Deadline::after(args.deadline));
    let found = on_a_thread(move || solved(&description, network.as_deref(), end)).await?;
    let mut manifest = Manifest::of(&found.topology, &found.job, &found.rates, &found.others);
    if let Some(folder) = folder {
        let target = folder.target().to_owned();
        planned(&args, &found, folder, &mut manifest, end).await?;
        say(&format!("{} plans to {}", manifest.groups.len(), target.display()));
    }
    if args.json {
        return print_json("plan-job", &Printed { job: &manifest });
    }
    print(&report::readable(&manifest))
}

fn solved(description: &Description, network: Option<&str>, end: Deadline) -> Result<Found, Failure> {
    let text = network.map_or_else(|| description.network(), str::to_owned);
    let topology = input::topology_until(&text, end)?;
    let job = description.job()?;
    let progress = ProgressLine::start();
    progress.working("looking for the joint optimum".to_owned());
    // A third of the time is for the search, a third for what it compares with; the rest is for the plans.
    let third = end.remaining().map(|left| left / 3);
    let (first, second) = (Deadline::after(third), Deadline::after(third.map(|third| third * 2)));
    let stop = || end.is_past();
    let patience = Patience { enough: &|| first.is_past(), stop: &stop };
    let rates = job_rates(&topology, &job, description.transit(), patience).map_err(refused)?;
    let patience = Patience { enough: &|| second.is_past(), stop: &stop };
    let others = comparison(&topology, &job, description.transit(), patience).map_err(refused)?;
    drop(progress);
    Ok(Found { topology, job, rates, others })
}

fn refused(error: RatesError) -> Failure {
    match error {
        RatesError::NoWay { .. } => Failure::new(ErrorClass::Infeasible, error.to_string()),
        RatesError::Stopped => Failure::new(ErrorClass::Deadline, "the deadline passed before a joint rate was found")
            .help("allow more time by --deadline"),
        RatesError::Broken { .. } => Failure::fault(error.to_string()),
        RatesError::Ranks { .. } | RatesError::Switch { .. } | RatesError::Groups(_) => {
            Failure::input(error.to_string())
        }
    }
}

/// Has a plan made for each group in its shares, and writes all of them.
async fn planned(
    args: &PlanJobArgs,
    found: &Found,
    folder: NewFolder,
    manifest: &mut Manifest,
    end: Deadline,
) -> Result<(), Failure> {
    let output = args.file.spec()?;
    let mut session = Session::open(&args.server).await?;
    let outcome = write(&mut session, &output, found, &folder, end).await;
    session.close().await;
    manifest.groups = outcome?;
    folder.write_json(output::MANIFEST, manifest)?;
    folder.commit()
}

async fn write(
    session: &mut Session,
    output: &v1::OutputSpec,
    found: &Found,
    folder: &NewFolder,
    end: Deadline,
) -> Result<Vec<PlannedGroup>, Failure> {
    let mut groups = Vec::with_capacity(found.job.groups.len());
    for (number, group) in found.job.groups.iter().enumerate() {
        let share = found.rates.share_of(&found.topology, &found.job, number);
        let share = share.map_err(|error: ShareError| Failure::fault(error.to_string()))?;
        let request = asked(to_yaml(&share.topology), group.collective, group.size_bytes, output)?;
        let calls =
            async |connection: &Connection, left| Ok(connection.shared().plan_metadata(request.clone(), left).await?);
        let reply = session.ask(end, calls).await;
        let reply = reply.map_err(|error| error.told(|error| request::in_users_words(error, &group.name)))?;
        let plan = reply.plan.ok_or_else(|| request::missing("the plan"))?;
        let mut planned = PlannedGroup::of(group, &plan)?;
        let mut fetch = Fetch::new(session.connection(), folder);
        for artifact in &plan.artifacts {
            let path = format!("{}.{}", group.name, super::joint::ending(artifact.format()));
            fetch.file(&path, &plan.id, artifact).await?;
            planned.files.push(FileSummary::of_artifact(artifact, Path::new(&path)));
        }
        groups.push(planned);
    }
    Ok(groups)
}

/// The request for a group alone, on the network of its shares.
fn asked(
    network: String,
    collective: Collective,
    size_bytes: NonZeroU64,
    output: &v1::OutputSpec,
) -> Result<PlanRequest, Failure> {
    let document = v1::TopologyDocument { content: network.into(), ..v1::TopologyDocument::default() };
    let source = v1::TopologySource { source: Some(v1::topology_source::Source::Document(document)) };
    let root = collective.root().map(Rank::number);
    let spec = request::collective_spec(collective.kind(), root);
    let size_bytes_max = Some(size_bytes.get().max(1 << 30));
    Ok(PlanRequest { size_bytes_max, ..request::plan(source, spec, vec![output.clone()]) })
}
