//! `canopy server plans`: lists, shows, compares, pins, evicts, exports and imports cached plans.

use canopy_client::RequestId;
use canopy_proto::Exact as _;
use canopy_proto::v1::{
    EvictPlansRequest, EvictPlansResponse, ForgetRefusalsRequest, ListPlansRequest, PinPlanRequest, PlanSummary,
    UnpinPlanRequest,
};
use clap::Subcommand;
use serde::Serialize;

use crate::exit::Failure;
use crate::output::{bytes_in_words, print_json, print_member, rounded_percent};
use crate::request::collective_name;
use crate::runtime::format_name;
use crate::stdout::print;
use crate::stored_plan::plan_ids;
use crate::table::{count, shortened};

use super::{CommonArgs, Entry, ListArgs, Page, age_in_words, archive, ask, diff, get, list, short_id, show, table};

/// Cached plans: list, show, get, diff, pin, unpin, evict, export, import
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  canopy server plans list --filter 'collective=allgather AND (ranks>=64 OR pinned=true)' --sort -hits --limit 20
  canopy server plans show plans/0123abcd --explain
  canopy server plans get plans/0123abcd --format msccl-xml -o plan.xml
  canopy server plans pin plans/0123abcd
  canopy server plans evict --filter 'hits=0' --dry-run
  canopy server plans export --all -o plans.canopy
  canopy server plans import plans.canopy

The first digits of an id are enough, four at least, where no other plan has the same.")]
pub(crate) enum PlansCommand {
    /// List cached plans
    #[command(after_help = "\
Fields: id, collective, algorithm, topology, network, without, ranks, optimality, size_bytes, hits, pinned, tenant, created,
last_used. Sorted by id unless --sort says otherwise, such as -hits,ranks.")]
    List(ListArgs),
    /// Describe a cached plan
    Show(show::ShowArgs),
    /// Write a file of a cached plan, converted from canopy's JSON where the server has no file of that format and
    /// profile
    Get(get::GetArgs),
    /// Show the differences between two cached plans
    Diff(diff::DiffArgs),
    /// Keep plans from being evicted
    Pin(NamesArgs),
    /// Let plans be evicted again
    Unpin(NamesArgs),
    /// Remove plans from the cache; pinned ones stay
    Evict(EvictArgs),
    /// Forget which requests have no plan, so that canopy tries them again
    ForgetRefusals(CommonArgs),
    /// Write plans with their pins, and all stored topologies, into a file
    Export(archive::ExportArgs),
    /// Store the contents of an exported file; a damaged file changes nothing
    Import(archive::ImportArgs),
}

/// Arguments of `pin` and `unpin`.
#[derive(Debug, clap::Args)]
pub(crate) struct NamesArgs {
    /// Plans, such as plans/0123abcd
    #[arg(value_name = "PLAN", required = true)]
    plans: Vec<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Arguments of `evict`.
#[derive(Debug, clap::Args)]
pub(crate) struct EvictArgs {
    /// Plans, such as plans/0123abcd
    #[arg(value_name = "PLAN", required_unless_present = "filter", conflicts_with = "filter")]
    plans: Vec<String>,
    /// Evict all plans that match, as for `list`
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    common: CommonArgs,
}

/// Most characters of a network's name in a table.
const NETWORK_CHARACTERS_MAX: usize = 24;

/// A plan of a list.
#[derive(Serialize)]
struct Row {
    plan: String,
    content_key: String,
    collective: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<u32>,
    algorithm: String,
    topology_hash: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    network: String,
    /// Faults of the network that the plan goes around.
    #[serde(skip_serializing_if = "String::is_empty")]
    without: String,
    formats: Vec<&'static str>,
    ranks: u32,
    optimality: String,
    bytes: u64,
    created: Option<String>,
    #[serde(skip)]
    age_seconds: Option<u64>,
    last_used: Option<String>,
    hits: u64,
    pinned: bool,
    /// The plan that it stood in for, and which is there by now.
    #[serde(skip_serializing_if = "String::is_empty")]
    superseded_by: String,
    /// Whose plan it is alone.
    #[serde(skip_serializing_if = "String::is_empty")]
    tenant: String,
}

/// JSON object of `evict`.
#[derive(Serialize)]
struct Evicted {
    dry_run: bool,
    evicted: u64,
    freed_bytes: u64,
    pinned: u64,
}

impl Row {
    fn of(plan: PlanSummary) -> Self {
        let kind = plan.collective.as_ref().map_or_else(Default::default, |collective| collective.kind());
        Self {
            collective: collective_name(kind).unwrap_or("unknown"),
            root: plan.collective.as_ref().and_then(|collective| collective.root),
            created: plan.create_time.map(|time| time.to_string()),
            age_seconds: plan.age.map(|age| age.seconds.unsigned_abs()),
            last_used: plan.last_use_time.map(|time| time.to_string()),
            formats: plan.formats().map(format_name).collect(),
            network: plan.network,
            without: plan.without,
            plan: plan.name,
            content_key: plan.content_key,
            algorithm: plan.algorithm,
            topology_hash: plan.topology_hash,
            ranks: plan.ranks,
            optimality: plan.optimality.exact().to_owned(),
            bytes: plan.size_bytes,
            hits: plan.hits,
            pinned: plan.pinned,
            superseded_by: plan.superseded_by,
            tenant: plan.tenant,
        }
    }
}

/// Does what is asked and prints what came of it.
pub(crate) async fn run(command: PlansCommand) -> Result<(), Failure> {
    match command {
        PlansCommand::List(args) => list_plans(&args).await,
        PlansCommand::Show(args) => show::run(&args).await,
        PlansCommand::Get(args) => get::run(args).await,
        PlansCommand::Diff(args) => diff::run(&args).await,
        PlansCommand::Pin(args) => pin(&args, true).await,
        PlansCommand::Unpin(args) => pin(&args, false).await,
        PlansCommand::Evict(args) => evict(&args).await,
        PlansCommand::ForgetRefusals(args) => forget_refusals(&args).await,
        PlansCommand::Export(args) => archive::export(&args).await,
        PlansCommand::Import(args) => archive::import(&args).await,
    }
}

async fn list_plans(args: &ListArgs) -> Result<(), Failure> {
    let listed = list("plans list", args, async |client, page, left| {
        let Page { filter, page_size, page_token, order_by } = page;
        let page = client.list_plans(ListPlansRequest { page_size, page_token, filter, order_by }, left).await?;
        Ok((page.plans.into_iter().map(Row::of).collect(), page.next_page_token, page.total_size))
    });
    listed.await
}

impl Entry for Row {
    const NAME: &'static str = "plans";
    const HEADING: &'static [&'static str] =
        &["PLAN", "NETWORK", "WITHOUT", "COLLECTIVE", "RANKS#", "FORMATS", "OPTIMAL#", "HITS#", "PINNED", "AGE#"];

    fn cells(self) -> Vec<String> {
        let collective = self.root.map_or(self.collective.to_owned(), |root| format!("{} {root}", self.collective));
        vec![
            short_id(&self.plan).to_owned(),
            shortened(&self.network, NETWORK_CHARACTERS_MAX),
            shortened(&self.without, NETWORK_CHARACTERS_MAX),
            collective,
            self.ranks.to_string(),
            self.formats.join(","),
            rounded_percent(&self.optimality),
            self.hits.to_string(),
            if self.pinned { "yes" } else { "no" }.to_owned(),
            self.age_seconds.map(age_in_words).unwrap_or_default(),
        ]
    }
}

async fn pin(args: &NamesArgs, keep: bool) -> Result<(), Failure> {
    let names = plan_ids(&args.plans, &args.common.server, Some(args.common.deadline)).await?;
    let ids: Vec<String> = names.iter().map(|_| RequestId::random().to_string()).collect();
    let plans = ask(&args.common, async |client, left| {
        let mut plans = Vec::new();
        for (name, request_id) in names.iter().zip(&ids) {
            let (name, request_id) = (name.clone(), request_id.clone());
            plans.push(if keep {
                client.pin_plan(PinPlanRequest { name, request_id }, left).await?
            } else {
                client.unpin_plan(UnpinPlanRequest { name, request_id }, left).await?
            });
        }
        Ok(plans)
    })
    .await?;
    let rows: Vec<Row> = plans.into_iter().map(Row::of).collect();
    if args.common.json {
        let command = if keep { "plans pin" } else { "plans unpin" };
        return print_member(command, Row::NAME, rows);
    }
    print(&table(rows))
}

async fn evict(args: &EvictArgs) -> Result<(), Failure> {
    let request = EvictPlansRequest {
        names: plan_ids(&args.plans, &args.common.server, Some(args.common.deadline)).await?,
        filter: args.filter.clone().unwrap_or_default(),
        validate_only: args.dry_run,
        request_id: RequestId::random().to_string(),
    };
    let EvictPlansResponse { evicted, freed_bytes, pinned } =
        ask(&args.common, async |client, left| client.evict_plans(request.clone(), left).await).await?;
    if args.common.json {
        let dry_run = args.dry_run;
        return print_json("plans evict", &Evicted { dry_run, evicted, freed_bytes, pinned });
    }
    let verb = if args.dry_run { "would be evicted" } else { "evicted" };
    let plans = |number| count(number, "plan");
    let freed = bytes_in_words(freed_bytes);
    print(&format!("{} {verb}, {freed}; {} pinned and kept", plans(evicted), plans(pinned)))
}

async fn forget_refusals(args: &CommonArgs) -> Result<(), Failure> {
    let request = ForgetRefusalsRequest { request_id: RequestId::random().to_string() };
    let reply = ask(args, async |client, left| client.forget_refusals(request.clone(), left).await).await?;
    let forgotten = reply.forgotten;
    if args.json {
        return print_member("plans forget-refusals", "forgotten", forgotten);
    }
    print(&format!("{} forgotten", count(forgotten, "refusal")))
}
