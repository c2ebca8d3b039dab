//! `canopy job leases`: which jobs run on which plans, and what becomes of them.

mod watch;

use std::collections::BTreeSet;
use std::time::Duration;

use canopy_client::RequestId;
use canopy_proto::v1::{GetLeaseRequest, Lease, ListLeasesRequest, ReleaseLeaseRequest, RenewLeaseRequest};
use clap::Subcommand;
use serde::Serialize;

use crate::args;
use crate::commands::operate::{CommonArgs, Entry, ListArgs, Page, ask, full_name, list, pages};
use crate::exit::Failure;
use crate::output::print_member;
use crate::stdout::print;
use crate::table::{count, shortened};

/// Leases of jobs on plans: list, show, watch, events, renew, release
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A job that fetched its plans with `canopy job fetch --lease TIME` holds a lease on them: when a fault hits one of them, the server
plans again and notifies the job's watchers.

Examples:
  canopy job leases list --filter 'replanned=true'
  canopy job leases watch --job 17
  canopy job leases show --job 17
  canopy job leases renew leases/0000019abc012345 --ttl 2h
  canopy job leases release --job 17")]
pub(crate) enum LeasesCommand {
    /// List leases, newest first
    #[command(after_help = "\
Fields: name, job, topology, priority, replanned, created, expires. Newest first unless --sort says otherwise, such as -expires.")]
    List(ListArgs),
    /// Follow changes of leases, one line each
    Watch(watch::WatchArgs),
    /// Show what became of leases so far, oldest first: the last 10,000 changes of a day
    Events(watch::EventsArgs),
    /// Show a lease, or all of a job, with each of its plans
    Show(ShowArgs),
    /// Extend a lease, or all of a job, from now on
    Renew(RenewArgs),
    /// End a lease, or all of a job
    Release(ReleaseArgs),
}

/// Which leases are meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// Lease, such as leases/0000019abc012345
    #[arg(value_name = "LEASE", required_unless_present = "job", conflicts_with = "job")]
    lease: Option<String>,
    /// All leases of this job
    #[arg(long, value_name = "J")]
    job: Option<String>,
}

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    common: CommonArgs,
}

/// Arguments of `renew`.
#[derive(Debug, clap::Args)]
pub(crate) struct RenewArgs {
    #[command(flatten)]
    which: Which,
    /// How long it lasts from now on, such as 2h [default: as before]
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    ttl: Option<Duration>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Arguments of `release`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    common: CommonArgs,
}

/// Most characters of faults in a table.
const FAULTS_CHARACTERS_MAX: usize = 24;

#[derive(Serialize)]
struct Row {
    name: String,
    job: String,
    topology: String,
    plans: Vec<PlanRow>,
    created: Option<String>,
    expires: Option<String>,
}

#[derive(Serialize)]
struct PlanRow {
    original: String,
    /// None: there is no plan for what is left.
    current: Option<String>,
    replanning: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    survivors: Vec<u32>,
    /// Faults that the current plan goes around.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<String>,
}

impl Row {
    fn of(lease: Lease) -> Self {
        let plan = |plan: canopy_proto::v1::LeasedPlan| PlanRow {
            original: plan.original,
            current: Some(plan.current).filter(|current| !current.is_empty()),
            replanning: plan.is_replanning,
            error: plan.error.map(|error| format!("{}: {}", canopy_wire::reason_of(&error), error.message)),
            survivors: plan.survivors,
            faults: plan.faults,
        };
        Self {
            name: lease.name,
            job: lease.job,
            topology: lease.topology,
            plans: lease.plans.into_iter().map(plan).collect(),
            created: lease.create_time.map(|time| time.to_string()),
            expires: lease.expire_time.map(|time| time.to_string()),
        }
    }

    /// Lines for people: the lease, and each of its plans.
    fn readable(&self) -> Vec<String> {
        let expires = self.expires.as_deref().unwrap_or_default();
        let mut lines = vec![format!("{} of job {}, until {expires}, on {}", self.name, self.job, self.topology)];
        for (item, plan) in self.plans.iter().enumerate() {
            let stands = match &plan.current {
                None => format!("lost{}", plan.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default()),
                Some(current) if *current == plan.original => "original".to_owned(),
                Some(current) => format!("replanned: {current}"),
            };
            let around =
                if plan.faults.is_empty() { String::new() } else { format!(", around {}", plan.faults.join(", ")) };
            let left = if plan.survivors.is_empty() {
                String::new()
            } else {
                format!(", {} left", count(plan.survivors.len(), "rank"))
            };
            let goes_on = if plan.replanning { ", and is planned again" } else { "" };
            lines.push(format!("  {item}  {}  {stands}{around}{left}{goes_on}", plan.original));
        }
        lines
    }

    /// How its plans stand, in a word each.
    fn standing(&self) -> String {
        let word = |plan: &PlanRow| match &plan.current {
            None => "lost",
            Some(current) if *current == plan.original => "original",
            Some(_) => "replanned",
        };
        let words: Vec<&str> = self.plans.iter().map(word).collect();
        words.join(",")
    }
}

/// Runs one of them.
pub(crate) async fn run(command: LeasesCommand) -> Result<(), Failure> {
    match command {
        LeasesCommand::List(args) => list_leases(&args).await,
        LeasesCommand::Watch(args) => watch::run(&args).await,
        LeasesCommand::Events(args) => watch::run(&args.into()).await,
        LeasesCommand::Show(args) => show(&args).await,
        LeasesCommand::Renew(args) => renew(&args).await,
        LeasesCommand::Release(args) => release(&args).await,
    }
}

impl Entry for Row {
    const NAME: &'static str = "leases";
    const HEADING: &'static [&'static str] = &["LEASE", "JOB", "PLANS", "AROUND", "EXPIRES", "TOPOLOGY"];

    fn cells(self) -> Vec<String> {
        let standing = self.standing();
        let around: BTreeSet<&str> = self.plans.iter().flat_map(|plan| &plan.faults).map(String::as_str).collect();
        let around = shortened(&Vec::from_iter(around).join(", "), FAULTS_CHARACTERS_MAX);
        vec![self.name, self.job, standing, around, self.expires.unwrap_or_default(), self.topology]
    }
}

async fn list_leases(args: &ListArgs) -> Result<(), Failure> {
    args.common.server.require_server().await?;
    let listed = list("leases list", args, async |client, page, left| {
        let Page { filter, page_size, page_token, order_by } = page;
        let page = client.list_leases(ListLeasesRequest { page_size, page_token, filter, order_by }, left).await?;
        Ok((page.leases.into_iter().map(Row::of).collect(), page.next_page_token, page.total_size))
    });
    listed.await
}

async fn renew(args: &RenewArgs) -> Result<(), Failure> {
    args.common.server.require_server().await?;
    let ttl = args.ttl.map(prost_types::Duration::try_from).transpose();
    let ttl = ttl.map_err(|_| Failure::input("--ttl is too long"))?;
    let mut renewed = Vec::new();
    let names = match &args.which.lease {
        Some(lease) => vec![full_name("leases/", lease)],
        None => args.which.of_job(&args.common).await?.into_iter().map(|lease| lease.name).collect(),
    };
    for name in names {
        let request = RenewLeaseRequest { name, ttl, ..RenewLeaseRequest::default() };
        let lease = ask(&args.common, async |client, left| client.renew_lease(request.clone(), left).await);
        renewed.push(Row::of(lease.await?));
    }
    match renewed.as_slice() {
        [lease] if args.common.json && args.which.lease.is_some() => {
            return print_member("leases renew", "lease", lease);
        }
        all if args.common.json => return print_member("leases renew", "leases", all),
        _ => {}
    }
    let lines =
        renewed.into_iter().map(|lease| format!("{} lasts until {}", lease.name, lease.expires.unwrap_or_default()));
    print(&lines.collect::<Vec<_>>().join("\n"))
}

impl Which {
    /// The leases that are meant.
    ///
    /// # Errors
    /// The lease does not exist, the job holds no lease, or the server did not answer.
    async fn found(&self, common: &CommonArgs) -> Result<Vec<Lease>, Failure> {
        let Some(lease) = &self.lease else { return self.of_job(common).await };
        let request = GetLeaseRequest { name: full_name("leases/", lease) };
        Ok(vec![ask(common, async |client, left| client.get_lease(request.clone(), left).await).await?])
    }

    /// The leases of the job.
    ///
    /// # Errors
    /// The job holds no lease, or the server did not answer.
    async fn of_job(&self, common: &CommonArgs) -> Result<Vec<Lease>, Failure> {
        let job = self.job.as_deref().unwrap_or_default();
        let filter = format!("job={job}");
        let found = ask(common, async |client, left| {
            pages(usize::MAX, async |page_size, page_token| {
                let filter = filter.clone();
                let request = ListLeasesRequest { filter, page_size, page_token, ..ListLeasesRequest::default() };
                let page = client.list_leases(request, left).await?;
                Ok((page.leases, page.next_page_token, ()))
            })
            .await
        });
        let (leases, ()) = found.await?;
        if leases.is_empty() {
            return Err(Failure::input(format!("job `{job}` holds no lease"))
                .help("`canopy job leases list` shows those that there are"));
        }
        Ok(leases)
    }
}

async fn show(args: &ShowArgs) -> Result<(), Failure> {
    args.common.server.require_server().await?;
    let leases: Vec<Row> = args.which.found(&args.common).await?.into_iter().map(Row::of).collect();
    if args.common.json {
        return print_member("leases show", "leases", leases);
    }
    print(&leases.iter().flat_map(Row::readable).collect::<Vec<_>>().join("\n"))
}

async fn release(args: &ReleaseArgs) -> Result<(), Failure> {
    args.common.server.require_server().await?;
    let request = ReleaseLeaseRequest {
        name: args.which.lease.as_deref().map(|name| full_name("leases/", name)).unwrap_or_default(),
        job: args.which.job.clone().unwrap_or_default(),
        request_id: RequestId::random().to_string(),
    };
    let reply = ask(&args.common, async |client, left| client.release_lease(request.clone(), left).await);
    let released = reply.await?.released;
    if args.common.json {
        return print_member("leases release", "released", released);
    }
    print(&format!("leases released: {released}"))
}
