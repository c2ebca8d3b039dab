//! `canopy server quota`: who one is to a server, and how much one may use of it.

use canopy_proto::v1::{GetQuotaRequest, QuotaStatus, QuotaUse};
use serde::Serialize;

use crate::exit::Failure;
use crate::output::print_json;
use crate::stdout::print;

use super::{CommonArgs, Entry, ask, table};

/// Show who you are to the server, your quotas and their use
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy server quota
  canopy server quota --server https://planner.example:7423 --token-file kueue.token --json")]
pub(crate) struct QuotaArgs {
    #[command(flatten)]
    common: CommonArgs,
}

/// JSON object of the command.
#[derive(Serialize)]
struct Quotas {
    identity: String,
    tenant: String,
    weight: u64,
    quotas: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    quota: String,
    of: &'static str,
    limit: u64,
    used: u64,
}

impl Row {
    fn of(of: &'static str, QuotaUse { quota, limit, used }: QuotaUse) -> Self {
        Self { quota, of, limit, used }
    }
}

impl Entry for Row {
    const NAME: &'static str = "quotas";
    const HEADING: &'static [&'static str] = &["QUOTA", "OF", "USED#", "LIMIT#"];

    fn cells(self) -> Vec<String> {
        vec![self.quota, self.of.to_owned(), self.used.to_string(), self.limit.to_string()]
    }
}

/// Asks and prints.
pub(crate) async fn run(args: QuotaArgs) -> Result<(), Failure> {
    args.common.server.require_server().await?;
    let status = ask(&args.common, async |client, left| client.get_quota(GetQuotaRequest {}, left).await).await?;
    let QuotaStatus { identity, tenant, weight, of_tenant, of_identity } = status;
    let of_tenant = of_tenant.into_iter().map(|row| Row::of("tenant", row));
    let quotas = of_tenant.chain(of_identity.into_iter().map(|row| Row::of("caller", row))).collect();
    let quotas = Quotas { identity, tenant, weight, quotas };
    if args.common.json { print_json("quota", &quotas) } else { print(&readable(quotas)) }
}

fn readable(quotas: Quotas) -> String {
    let Quotas { identity, tenant, weight, quotas } = quotas;
    let tenant = if tenant.is_empty() { "no tenant".to_owned() } else { format!("tenant {tenant}") };
    let who = format!("you are {identity}, for {tenant} with weight {weight}");
    if quotas.is_empty() { format!("{who}; no quota limits you") } else { format!("{who}\n{}", table(quotas)) }
}
