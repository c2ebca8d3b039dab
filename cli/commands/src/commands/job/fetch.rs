//! `canopy job fetch`: brings the plans of a job into its folder.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use canopy_bundle::Runtime;
use canopy_client::{Client, ClientError, ErrorClass, FileName, PartialFile, PlanReceiver, Retries, RetryPolicy};
use canopy_plan::Format;
use canopy_proto::Exact as _;
use canopy_proto::v1::{self, PlanRequest, PlanResponse, Priority};
use canopy_schedule::CollectiveKind;
use clap::ValueEnum;
use tempfile::NamedTempFile;
use tokio::task::JoinSet;

use crate::args::{self, RankList};
use crate::clock::{self, Deadline};
use crate::commands::plan::loader;
use crate::connection::{Connections, ServerArgs};
use crate::exit::Failure;
use crate::messages::say;
use crate::output::listable;
use crate::request;
use crate::stored_plan::file_name;

use super::Manners;
use super::bundle::{self, Manifest, MissingEntry, PlanEntry};
use super::handover::{self, Brought};
use super::lease;
use super::reach::ReachArgs;
use super::wanted::{Wanted, WantedArgs};
use crate::table::count;

/// Part of the deadline that is kept for writing the manifest and ending in order.
const RESERVE_SHARE: u32 = 10;
/// The most of it that is kept.
const RESERVE_MAX: Duration = Duration::from_millis(500);

/// Bring the plans of a job into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy job fetch dgx-a100:boxes=2 --collective allgather,allreduce --job \"$SLURM_JOB_ID\" \\
      --nodes \"$SLURM_JOB_NODELIST\" --out /run/canopy/$SLURM_JOB_ID --deadline 5s --on-miss fallback

  canopy job fetch dgx-a100:boxes=2 -c allreduce --job 17 --profile mscclpp-0.10 --out /run/canopy/17

Writes the files, then manifest.json and env; `canopy job env` reads the one, a shell the other. Before that, each file is read
as its runtime reads it and asked for calls: those it is meant for, other sizes, another in-place state, another number of
ranks. For mscclpp-0.9 and later there is loader.py, which picks and registers the plans by the manifest.
All nodes of a job must end with the same plans: run `canopy job prefetch` first, or fetch once into a shared folder.
With --ranks a file holds the part of these ranks, which is all that they read, and stubs of the others; a folder is then for
those ranks only.
Ends with status 0 whatever happens, unless --strict is given.")]
pub(crate) struct FetchArgs {
    #[command(flatten)]
    wanted: WantedArgs,
    /// Folder of the job; made if need be
    #[arg(long, value_name = "DIR", env = "CANOPY_JOB_DIR", hide_env_values = true)]
    out: PathBuf,
    /// Longest time in all, such as 5s
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = args::duration)]
    deadline: Duration,
    #[command(flatten)]
    reach: ReachArgs,
    /// Ranks of this node, such as 8-15 or 0,4: fetch their part of the files only [default: all ranks]
    #[arg(long, visible_alias = "rank", value_name = "RANKS", value_parser = args::rank_set)]
    ranks: Option<RankList>,
    /// What a plan that does not come in time, or that cannot be, means [default: fallback, with --strict fail]
    #[arg(long, value_name = "WHAT", value_enum)]
    on_miss: Option<OnMiss>,
    /// Hold a lease on the plans for so long, such as 2h: if a fault hits one of them, the server makes others. Nodes
    /// of a job that fetch the same plans share one lease
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    lease: Option<Duration>,
    /// Report failures by the exit status
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    server: ServerArgs,
}

impl FetchArgs {
    fn on_miss(&self) -> OnMiss {
        self.on_miss.unwrap_or(if self.strict { OnMiss::Fail } else { OnMiss::Fallback })
    }
}

/// What a missing plan means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnMiss {
    /// A checked plan of algorithm `direct` instead; without any, the job goes on with its runtime's own algorithms
    Fallback,
    /// A failure: no plan at all is left in the folder
    Fail,
}

/// Fetches within the deadline.
pub(crate) fn run(args: FetchArgs) -> Result<(), Failure> {
    let manners = Manners { strict: args.strict, deadline: args.deadline };
    let reserve = (args.deadline / RESERVE_SHARE).min(RESERVE_MAX);
    let end = Deadline::after(Some(args.deadline.saturating_sub(reserve)));
    super::guarded(manners, move || crate::running::interruptible(fetch(args, end)))
}

/// The server does not say enough of a plan.
const INCOMPLETE: ClientError = ClientError::Protocol { what: "the answer is missing part of the plan's description" };

/// What came of one request.
type Outcome = Result<Brought, Failure>;

async fn fetch(args: FetchArgs, end: Deadline) -> Result<(), Failure> {
    let folder = listable(&args.out)?;
    let wanted = wanted(&args, &folder)?;
    // A program with a server in it begins anew, so nothing is written before.
    if !Connections::new(&args.server)?.have_server().await && crate::handover::is_possible() {
        return Err(Failure::NoServer);
    }
    bundle::create_folder(&folder)?;
    let mut outcomes: Vec<Option<Outcome>> = wanted.requests.iter().map(|_| None).collect();
    let asked = ask(&args, &wanted, &folder, end, &mut outcomes);
    let all = match end.remaining() {
        Some(left) => tokio::time::timeout(left, asked).await.unwrap_or_else(|_| Err(late())),
        None => asked.await,
    };
    let unanswered = all.err().unwrap_or_else(late);
    let outcomes = outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err(unanswered.clone())));
    let mut came = Came::judged(&wanted, outcomes);
    let worst = came.worst(args.on_miss());
    if args.on_miss() == OnMiss::Fail && worst.is_some() {
        came.brought.clear();
    }
    let mut manifest = Manifest::new(&args.wanted.job, wanted.nodes.clone(), wanted.runtime.name());
    manifest.missing = came.missing;
    // Whatever came of it, an earlier manifest of the folder holds no more.
    manifest.files = handover::named(&folder, came.brought).inspect_err(|_| bundle::withdraw(&folder))?;
    handover::announce(&folder, wanted.runtime, &manifest)?;
    say_what_came(&wanted, &manifest, &folder);
    if let Some(ttl) = args.lease {
        // Those that stand in are not what was asked for, and nobody waits for what does not come.
        let is_there = |kind: &CollectiveKind| {
            let mut entries = manifest.files.iter();
            entries.any(|entry| entry.collective == kind.name() && entry.fallback.is_none())
        };
        let held =
            wanted.requests.iter().filter(|(kind, _)| is_there(kind)).filter_map(|(_, request)| request.spec.clone());
        lease::hold(&args.server, &args.wanted.job, ttl, held.collect(), end).await?;
    }
    worst.map_or(Ok(()), Err)
}

/// What is to be fetched, where the arguments go together.
fn wanted(args: &FetchArgs, folder: &Path) -> Result<Wanted, Failure> {
    let mut wanted = args.wanted.resolve(Priority::JobStart, args.server.names_one()).inspect_err(|_| {
        // What an earlier call left may be for other nodes.
        bundle::withdraw(folder);
    })?;
    if args.lease.is_some() && args.wanted.faults.ignores() {
        return Err(Failure::input("a lease is planned around faults, and --faults ignore is given")
            .help("leave out --lease, or --faults ignore"));
    }
    if args.on_miss() == OnMiss::Fallback {
        wanted.requests.iter_mut().for_each(|(_, request)| request.on_miss = v1::OnMiss::Fallback.into());
    }
    Ok(wanted)
}

/// What came of all requests.
#[derive(Default)]
struct Came {
    brought: Vec<Brought>,
    missing: Vec<MissingEntry>,
    /// Why each of `missing` is not there.
    failures: Vec<Failure>,
}

impl Came {
    /// Plans that its runtime would use for the calls they are meant for, and for no others; `outcomes` are those of the requests.
    fn judged(wanted: &Wanted, outcomes: impl Iterator<Item = Outcome>) -> Self {
        let (mut came, mut kinds) = (Self::default(), Vec::new());
        for ((kind, request), outcome) in wanted.requests.iter().zip(outcomes) {
            let in_place = request.spec.as_ref().and_then(|spec| spec.in_place);
            let judged = outcome.and_then(|found| handover::judged(wanted, *kind, in_place, &found).map(|()| found));
            match judged {
                Ok(found) => {
                    came.brought.push(found);
                    kinds.push(*kind);
                }
                Err(failure) => came.miss(*kind, failure),
            }
        }
        if let Err(failure) = handover::all_judged(wanted.runtime, &came.brought, &kinds) {
            came.brought.clear();
            kinds.into_iter().for_each(|kind| came.miss(kind, failure.clone()));
        }
        came
    }

    fn miss(&mut self, kind: CollectiveKind, failure: Failure) {
        self.missing.push(MissingEntry { collective: kind.name().to_owned(), reason: failure.sentence() });
        self.failures.push(failure);
    }

    /// What the command fails with: wrong requests and faults are failures in any case.
    fn worst(&mut self, on_miss: OnMiss) -> Option<Failure> {
        let is_miss = |failure: &Failure| {
            matches!(failure.class(), Some(ErrorClass::Deadline | ErrorClass::Busy | ErrorClass::Infeasible))
        };
        let mut failures = std::mem::take(&mut self.failures).into_iter();
        match on_miss {
            OnMiss::Fail => failures.next(),
            OnMiss::Fallback => failures.find(|failure| !is_miss(failure)),
        }
    }
}

fn say_what_came(wanted: &Wanted, manifest: &Manifest, folder: &Path) {
    let (there, all) = (manifest.files.len(), wanted.requests.len());
    say(&format!("{there} of {} for job {} in {}", count(all, "plan"), manifest.job, folder.display()));
    for entry in &manifest.files {
        if let Some(asked) = wanted.size_bytes_max.filter(|&asked| entry.size_bytes_max < asked) {
            let (kind, most) = (&entry.collective, entry.size_bytes_max);
            say(&format!("{kind}: {asked} bytes are asked for; the file is used for messages of at most {most}"));
        }
        if let Some(why) = &entry.fallback {
            say(&format!("provisional plan: {}: {why}", entry.collective));
        }
    }
    for missing in &manifest.missing {
        say(&format!("without a plan: {}: {}", missing.collective, missing.reason));
    }
}

/// Asks for all plans at once, at another server where the first one ended.
async fn ask(
    args: &FetchArgs,
    wanted: &Wanted,
    folder: &Path,
    end: Deadline,
    outcomes: &mut [Option<Outcome>],
) -> Result<(), Failure> {
    let mut connections = Connections::new(&args.server)?;
    loop {
        let connection = connections.open_patiently(&mut args.reach.retries(), args.reach.end(end)).await?;
        let mut calls = JoinSet::new();
        for (position, (kind, request)) in wanted.requests.iter().enumerate() {
            if outcomes[position].is_none() {
                let (client, folder) = (connection.shared().clone(), folder.to_owned());
                let what = Item {
                    kind: *kind,
                    request: request.clone(),
                    position,
                    runtime: wanted.runtime,
                    format: wanted.format,
                };
                let call = bring(client, what, folder, args.ranks.clone(), end);
                calls.spawn(async move { (position, call.await) });
            }
        }
        let mut again = false;
        while let Some(joined) = calls.join_next().await {
            let (position, outcome) = joined.map_err(|error| Failure::fault(error.to_string()))?;
            outcomes[position] = match outcome {
                Ok(outcome) => Some(outcome),
                Err(error) if connections.may_try_another(&connection, &error) => {
                    again = true;
                    None
                }
                Err(error) => Some(Err(request::in_users_words(error, &wanted.topology).into())),
            };
        }
        if !again {
            connection.close().await;
            return Ok(());
        }
    }
}

fn late() -> Failure {
    Failure::new(ErrorClass::Deadline, "no plan came within the deadline")
}

/// One of the plans of a job.
struct Item {
    kind: CollectiveKind,
    request: PlanRequest,
    /// Among the plans of the job.
    position: usize,
    runtime: Runtime,
    format: Format,
}

/// Brings one plan and reads its file as the runtime does.
async fn bring(
    client: Client,
    item: Item,
    folder: PathBuf,
    ranks: Option<RankList>,
    end: Deadline,
) -> Result<Outcome, ClientError> {
    let (reply, file) = match &ranks {
        None => whole(client, item.request.clone(), &folder, end).await?,
        Some(ranks) => slice(&client, item.request.clone(), &folder, ranks, end).await?,
    };
    let entry = PlanEntry { slice: ranks.map(RankList::into_ranks), ..entry(&item, &reply)? };
    let read = tokio::task::spawn_blocking(move || {
        let facts = handover::facts(item.runtime, item.kind, &entry, file.path())?;
        Ok(Brought { entry, facts, file })
    });
    Ok(read.await.unwrap_or_else(|error| Err(Failure::fault(error.to_string()))))
}

/// A plan and its whole file.
async fn whole(
    mut client: Client,
    request: PlanRequest,
    folder: &Path,
    end: Deadline,
) -> Result<(PlanResponse, NamedTempFile), ClientError> {
    let mut retries = Retries::new(RetryPolicy::STANDARD, clock::jitter());
    loop {
        let mut incoming = Incoming { file: new_file(folder)?, begun: None };
        let error = match client.plan(request.clone(), end.remaining(), &mut incoming).await {
            Ok(reply) => return Ok((reply, incoming.file)),
            Err(error) => error,
        };
        match retries.pause_after(&error, end.remaining()) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return Err(error),
        }
        // What is there of the file is not sent again, if the server still has it; else all begins anew.
        if let Some(whole) = incoming.complete(&client, end).await? {
            return Ok(whole);
        }
    }
}

/// A plan, described with the part of its file that these ranks read, and that part.
async fn slice(
    client: &Client,
    request: PlanRequest,
    folder: &Path,
    ranks: &RankList,
    end: Deadline,
) -> Result<(PlanResponse, NamedTempFile), ClientError> {
    let mut retries = Retries::new(RetryPolicy::STANDARD, clock::jitter());
    let mut reply = loop {
        let error = match client.plan_metadata(request.clone(), end.remaining()).await {
            Ok(reply) => break reply,
            Err(error) => error,
        };
        match retries.pause_after(&error, end.remaining()) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return Err(error),
        }
    };
    let plan = reply.plan.as_mut().ok_or(INCOMPLETE)?;
    let [artifact] = plan.artifacts.as_mut_slice() else {
        return Err(ClientError::Protocol { what: "one file was asked for, the server announces another number" });
    };
    let name = FileName {
        ranks: ranks.ranks().to_vec(),
        // The ranks of this node, on its devices and no others.
        placement: request.spec.as_ref().and_then(|spec| spec.placement.clone()),
        ..file_name(&plan.name, artifact)
    };
    let mut file = new_file(folder)?;
    let mut write = |data: &[u8]| file.write_all(data);
    *artifact = client.download(&name, end.remaining(), &mut retries, &mut write).await?;
    Ok((reply, file))
}

fn new_file(folder: &Path) -> Result<NamedTempFile, ClientError> {
    bundle::temporary(folder).map_err(|failure| ClientError::Write(std::io::Error::other(failure.sentence())))
}

/// What the manifest says of a plan; its path is the name of its file yet.
fn entry(item: &Item, reply: &PlanResponse) -> Result<PlanEntry, ClientError> {
    let plan = reply.plan.as_ref().ok_or(INCOMPLETE)?;
    let [artifact] = plan.artifacts.as_slice() else { return Err(INCOMPLETE) };
    let valid = plan.valid_for.as_ref().ok_or(INCOMPLETE)?;
    let quality = plan.quality.as_ref().ok_or(INCOMPLETE)?;
    let ending = item.format.ending();
    let digest = artifact.sha256.to_ascii_lowercase();
    Ok(PlanEntry {
        collective: item.kind.name().to_owned(),
        root: plan.collective.as_ref().and_then(|collective| collective.root),
        plan: plan.name.clone(),
        format: item.format.name().to_owned(),
        path: bundle::plan_file_name(item.position, item.kind.name(), &digest, ending).ok_or(INCOMPLETE)?,
        bytes: artifact.size_bytes,
        sha256: artifact.sha256.clone(),
        optimality: quality.optimality.exact().to_owned(),
        ranks: valid.ranks,
        ranks_per_node: plan.rank_map.as_ref().and_then(loader::ranks_per_node),
        size_bytes_min: valid.size_bytes_min,
        size_bytes_max: valid.size_bytes_max,
        alignment_elements: valid.alignment_elements,
        in_place: valid.in_place,
        fallback: reply.fallback.as_ref().map(|fallback| fallback.text.clone()),
        slice: None,
    })
}

/// Takes the one file of a plan.
struct Incoming {
    file: NamedTempFile,
    /// The plan, and what there is of its file.
    begun: Option<(PlanResponse, PartialFile)>,
}

impl Incoming {
    /// Fetches the rest of a file that broke off. None: nothing had come, or the server has not got it any more.
    async fn complete(
        self,
        client: &Client,
        end: Deadline,
    ) -> Result<Option<(PlanResponse, NamedTempFile)>, ClientError> {
        let Self { mut file, begun: Some((reply, there)) } = self else { return Ok(None) };
        let plan = reply.plan.as_ref().filter(|_| there.offset() > 0);
        let Some((plan, artifact)) = plan.and_then(|plan| Some((plan, plan.artifacts.first()?))) else {
            return Ok(None);
        };
        let name = file_name(&plan.name, artifact);
        let mut retries = Retries::new(RetryPolicy::STANDARD, clock::jitter());
        let mut write = |data: &[u8]| file.write_all(data);
        match client.resume_download(&name, there, end.remaining(), &mut retries, &mut write).await {
            Ok(_) => Ok(Some((reply, file))),
            // Not there any more, or never stored; or another file: the plan itself is asked for again.
            Err(ClientError::Refused(refusal)) if !refusal.may_be_retried => Ok(None),
            Err(ClientError::Content(_) | ClientError::Protocol { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl PlanReceiver for Incoming {
    fn plan(&mut self, reply: &PlanResponse) -> std::io::Result<()> {
        let artifacts = reply.plan.as_ref().map(|plan| plan.artifacts.as_slice()).unwrap_or_default();
        let [artifact] = artifacts else {
            return Err(std::io::Error::other("one file was asked for, the server announces another number"));
        };
        self.begun = Some((reply.clone(), PartialFile::new(artifact.clone())));
        Ok(())
    }

    fn content(&mut self, _: usize, data: &[u8]) -> std::io::Result<()> {
        self.file.write_all(data)?;
        self.begun.iter_mut().for_each(|(_, there)| there.add(data));
        Ok(())
    }
}
