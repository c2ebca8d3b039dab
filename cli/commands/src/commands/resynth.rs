//! `canopy faults resynth`: a plan for what faults leave of a network, each better one as it comes, and whether it is worth a restart.

mod restart;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use canopy_client::{ClientError, PlanReceiver};
use canopy_faults::Loss;
use canopy_plan::Format;
use canopy_proto::Exact as _;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    self, GetPlanSummaryRequest, ListLeasesRequest, OnMiss, PlanRequest, PlanResponse, PlanSpec, Punctured,
    TopologySource,
};
use canopy_schedule::CollectiveKind;
use canopy_synth::Algorithm;
use canopy_topology::Rate;
use canopy_wire::{collective_of_wire, format_on_the_wire, loss_on_the_wire};
use serde::Serialize;

use self::restart::Restart;
use crate::args::{self, CollectiveArgs};
use crate::clock;
use crate::connection::{Connection, ServerArgs, ask};
use crate::destination;
use crate::exit::Failure;
use crate::input::PLAN_BYTES_MAX;
use crate::known_faults::{say_warning, worth_saying};
use crate::messages::say;
use crate::output::{gigabytes_per_sec, percent_in_words, print_json};
use crate::request;
use crate::runtime::{RuntimeProfile, format_of, optional_format_help, profile_name};
use crate::whole_file::write_file;

/// Plan for what faults leave of a network, and say whether the plan is worth a restart
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each checked plan is named as it comes, where it is better than those before: direct, repaired from the plan of the healthy network,
near the optimum, and at last the one that was asked for. Then the plan of the healthy network, as far as it still runs, the new one and a ring are
compared on what is left.

Faults: link:A=B or one way link:A>B, nic:GPU, gpu:GPU, host:NAME, node:ID, switch:ID, feature:SWITCH:multicast or plane:NAME; with
*N/D behind it, that part is left.

Examples:
  canopy faults resynth dgx-a100:boxes=2 --fault nic:b0g3 --collective allreduce
  canopy faults resynth torus:4x4 --fault link:00=01 --fault gpu:22 --collective all-to-all -o plan.json
  canopy faults resynth cluster.yaml --fault 'link:b0g3>ib*1/2' -c allgather --format msccl-xml -o plan.xml --json
  canopy faults resynth --job 17 --fault gpu:gpu01:3 --server planner.example:7423")]
pub(crate) struct ResynthArgs {
    /// Generator expression or file of the healthy network
    #[arg(value_name = "T", required_unless_present = "job", conflicts_with = "job")]
    topology: Option<String>,
    /// In place of T and --collective: the network and the first plan that the lease of this job is on
    #[arg(long, value_name = "J")]
    job: Option<String>,
    /// Broken or slow element; may be given several times
    #[arg(long, value_name = "FAULT", required = true)]
    fault: Vec<Loss>,
    #[command(flatten)]
    collective: CollectiveArgs,
    /// How to find the plans: auto, or another algorithm as for `canopy plan`
    #[arg(long, value_name = "A", default_value = "auto", value_parser = canopy_baselines::algorithm)]
    algorithm: Algorithm,
    /// Message whose times are compared, such as 64MiB
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = args::size_bytes)]
    size: u64,
    #[arg(long, short, value_name = "FORMAT", requires = "output", help = optional_format_help())]
    format: Option<Format>,
    /// Runtime the file is for, for formats of runtimes
    #[arg(long, value_name = "P", requires = "output")]
    profile: Option<RuntimeProfile>,
    /// File to write the last plan to; none is written if not given
    #[arg(long, short, value_name = "FILE", value_parser = destination::file_only)]
    output: Option<PathBuf>,
    /// Longest time until the last plan is there, such as 2s: then the best so far is the last [default: the server's, 30s]
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    deadline: Option<Duration>,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// JSON object of the command.
#[derive(Debug, Serialize)]
struct Resynthesised {
    faults: Vec<String>,
    /// Ranks that are left, by their numbers in the sound network.
    survivors: Vec<u32>,
    collective: &'static str,
    /// Plans in the order in which they came; the last is the one that was written.
    plans: Vec<Came>,
    restart: Restart,
}

/// A plan that came.
#[derive(Clone, Debug, Serialize)]
struct Came {
    stage: &'static str,
    /// Since it was asked for.
    after_ms: f64,
    plan: String,
    algorithm: String,
    algbw: String,
    #[serde(rename = "algbw_GBps")]
    algbw_gigabytes: f64,
    bound: String,
    optimality: String,
}

impl Came {
    fn of(reply: &PlanResponse, is_last: bool, started: Instant) -> Option<Self> {
        let plan = reply.plan.as_ref()?;
        let quality = plan.quality.as_ref()?;
        let rate: Rate = quality.achieved.read()?;
        let is_repaired = plan.provenance.as_ref().is_some_and(|provenance| !provenance.repaired_from.is_empty());
        let stage = match plan.algorithm.as_str() {
            _ if is_repaired => "repaired",
            "direct" => "direct",
            _ if reply.cache() == v1::CacheOutcome::Hit => "precomputed",
            _ if quality.optimality.exact() == "1/1" => "optimum",
            _ if is_last && reply.fallback.is_none() => "final",
            _ => "near",
        };
        Some(Self {
            stage,
            after_ms: started.elapsed().as_secs_f64() * 1e3,
            plan: plan.name.clone(),
            algorithm: plan.algorithm.clone(),
            algbw: quality.achieved.exact().to_owned(),
            algbw_gigabytes: gigabytes_per_sec(&rate),
            bound: quality.bound.exact().to_owned(),
            optimality: quality.optimality.exact().to_owned(),
        })
    }

    fn readable(&self) -> String {
        format!(
            "{:>9.1} ms  {:<14}  {} GB/s, {} of the bound  {} ({})",
            self.after_ms,
            self.stage,
            self.algbw_gigabytes,
            percent_in_words(&self.optimality),
            self.plan,
            self.algorithm
        )
    }
}

/// Plans, writes the file, compares.
pub(crate) async fn run(args: ResynthArgs) -> Result<(), Failure> {
    let (network, kind) = match (&args.job, &args.topology) {
        (Some(job), _) => {
            let (network, of_lease) = leased(job, &args.server).await?;
            (network, if args.collective.collective.is_some() { args.collective.kind()? } else { of_lease })
        }
        (None, network) => (network.clone().unwrap_or_default(), args.collective.kind()?),
    };
    let format = format_of(args.format, args.profile, args.output.as_deref());
    let profile = profile_name(format, args.profile, None)?;
    let base = request::topology(&network)?;
    let mut outputs = vec![request::json_output()];
    if format != Format::Json {
        outputs.push(v1::OutputSpec {
            format: format_on_the_wire(format).into(),
            profile: Some(profile),
            ..v1::OutputSpec::default()
        });
    }
    let sound = PlanSpec {
        algorithm: Some(args.algorithm.name().to_owned()),
        // Nothing counts but what is named here.
        fault_policy: v1::FaultPolicy::Ignore.into(),
        ..request::plan(base.clone(), request::collective_spec(kind, args.collective.root), outputs)
    };
    let faults = args.fault.iter().map(loss_on_the_wire).collect();
    let punctured = Punctured { base: Some(Box::new(base)), faults };
    let left = PlanSpec {
        topology: Some(TopologySource { source: Some(Source::Punctured(Box::new(punctured))) }),
        ..sound.clone()
    };
    let ring = PlanSpec {
        algorithm: Some(Algorithm::Ring.name().to_owned()),
        outputs: vec![request::json_output()],
        ..left.clone()
    };
    let answer = ask(&args.server, None, async |connection, _| {
        let (_, old) = receive(connection, sound.clone().into_plan(), None, None).await?;
        let (plans, new) = receive(connection, best_so_far(&left), args.deadline, Some(clock::now())).await?;
        // Where there is none, there is nothing to compare with.
        let ring = receive(connection, ring.clone().into_plan(), None, None).await.ok().map(|(_, ring)| ring);
        Ok((plans, old, new, ring))
    });
    let (plans, old, new, ring) = answer.await?;
    if let Some(path) = &args.output {
        write_file(path, new.files.last().map_or(&[], Vec::as_slice))?;
    }
    let rate = |received: &Received| received.reply.plan.as_ref()?.quality.as_ref()?.achieved.read::<Rate>();
    let [old, left] = [&old, &new].map(|received| restart::read(received.files.first().map_or(&[], Vec::as_slice)));
    let restart = Restart::of(&old?, &left?.topology, rate(&new), ring.as_ref().and_then(rate), args.size)?;
    let survivors = new.reply.puncture.as_ref().map(|puncture| puncture.survivors.clone()).unwrap_or_default();
    worth_saying(&new.reply.warnings, format != Format::Json).for_each(say_warning);
    restart.readable(args.size).iter().for_each(|line| say(line));
    if args.json {
        let faults = args.fault.iter().map(ToString::to_string).collect();
        let collective = kind.name();
        return print_json("resynth", &Resynthesised { faults, survivors, collective, plans, restart });
    }
    Ok(())
}

/// The request for the best plan that comes in time.
fn best_so_far(spec: &PlanSpec) -> PlanRequest {
    PlanRequest { on_miss: OnMiss::BestSoFar.into(), ..spec.clone().into_plan() }
}

/// The network that the lease of a job is on, and the collective of its first plan.
///
/// # Errors
/// There is no server, or the job holds no lease.
async fn leased(job: &str, server: &ServerArgs) -> Result<(String, CollectiveKind), Failure> {
    server.require_server().await?;
    let none = || {
        Failure::input(format!("job `{job}` holds no lease"))
            .help("`canopy job leases list` shows those that there are")
    };
    let found = ask(server, None, async |connection, left| {
        let request = ListLeasesRequest { filter: format!("job={job}"), ..ListLeasesRequest::default() };
        let page = connection.shared().list_leases(request, left).await?;
        let Some(lease) = page.leases.into_iter().next() else { return Ok(None) };
        let name = lease.plans.first().map(|plan| plan.original.clone()).unwrap_or_default();
        let summary = connection.shared().get_plan_summary(GetPlanSummaryRequest { name }, left).await?;
        Ok(Some((lease.topology, summary.collective.unwrap_or_default().kind)))
    });
    let (network, kind) = found.await?.ok_or_else(none)?;
    Ok((network, collective_of_wire(kind).ok_or_else(none)?))
}

/// A plan with its files.
#[derive(Debug, Default)]
struct Received {
    reply: PlanResponse,
    files: Vec<Vec<u8>>,
}

/// Asks for a plan, and names those that come where a moment is given to count from.
async fn receive(
    connection: &Connection,
    request: PlanRequest,
    deadline: Option<Duration>,
    named_from: Option<Instant>,
) -> Result<(Vec<Came>, Received), ClientError> {
    let mut follower = Follower { named_from, plans: Vec::new(), received: Received::default() };
    connection.shared().clone().plan(request, deadline, &mut follower).await?;
    Ok((follower.plans, follower.received))
}

/// Names plans as they come, and keeps the files of the last.
struct Follower {
    named_from: Option<Instant>,
    plans: Vec<Came>,
    received: Received,
}

impl Follower {
    fn name(&mut self, reply: &PlanResponse, is_last: bool) {
        let Some(came) = self.named_from.and_then(|started| Came::of(reply, is_last, started)) else { return };
        if self.plans.last().is_none_or(|last| last.plan != came.plan) {
            say(&came.readable());
            self.plans.push(came);
        }
    }
}

impl PlanReceiver for Follower {
    fn candidate(&mut self, candidate: &PlanResponse) {
        self.name(candidate, false);
    }

    fn plan(&mut self, reply: &PlanResponse) -> io::Result<()> {
        self.name(reply, true);
        self.received = Received {
            reply: reply.clone(),
            files: vec![Vec::new(); reply.plan.as_ref().map_or(0, |plan| plan.artifacts.len())],
        };
        Ok(())
    }

    fn content(&mut self, file: usize, data: &[u8]) -> io::Result<()> {
        let too_large = || io::Error::other("the server sends more than the files that were asked for");
        let file = self.received.files.get_mut(file).filter(|file| file.len() + data.len() <= PLAN_BYTES_MAX);
        file.ok_or_else(too_large)?.extend_from_slice(data);
        Ok(())
    }
}
