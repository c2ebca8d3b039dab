//! `canopy explain`: what bounds a plan and what binds it, in words and names, and whether it is worth it beside textbook
//! plans on the same network.

mod by_class;
mod compare;
mod names;
mod report;
mod summary;
mod text;
mod why;

use std::path::PathBuf;
use std::time::Duration;

use canopy_stock::nccl::Version;

use crate::args::{self, CollectiveArgs};
use crate::around::AroundArgs;
use crate::clock::Deadline;
use crate::connection::ServerArgs;
use crate::destination;
use crate::exit::Failure;
use crate::material::Subject;
use crate::output::{FileSummary, print_json};
use crate::stdout::print;
use crate::stock::{Library, Model};
use crate::stored_plan::{Wanted, stored_plan};

use super::simulate::MessageArgs;
use crate::running::on_a_thread;
use crate::sizes::Sizes;
use compare::{Clock, compare};

/// Explain the bound and bottleneck of a plan, and compare it with ring, direct and others
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Rates are those of large messages, exact, by the checker. Where a network has boxes, times are those of NCCL or RCCL by its
own formulas, and of plans by their rates with its latencies; else, or with --alpha or --piece, they are simulated, as by
`canopy simulate`. The verdict is against the best of all that are compared. Plans by a rule for more ranks than trees
can be written for are explained by classes of boxes and links, without a comparison.

Examples:
  canopy explain plan.json
  canopy explain dgx-a100:boxes=2 --collective allgather
  canopy explain plans/0123abcd --server unix:/run/canopy/canopyd.sock
  canopy explain plan.json --sizes 64KiB..64MiB --alpha 2us --json
  canopy explain dgx-a100:boxes=2 --collective allreduce --report report.html

Exit status: 0 when it was explained, 2 when the plan cannot be read or is wrong.")]
pub(crate) struct ExplainArgs {
    /// A plan in canopy's JSON, or one of a server such as plans/0123abcd, or, with --collective, a network to plan for: generator expression or file
    #[arg(value_name = "PLAN|T")]
    subject: String,
    #[command(flatten)]
    collective: CollectiveArgs,
    /// One size, such as 64MiB: the vector of all ranks, or the message; of all-to-all, what one rank has for all
    #[arg(long, value_name = "SIZE", value_parser = args::size_bytes, conflicts_with = "sizes")]
    size: Option<u64>,
    /// Sizes from the first to the last, each four times the one before, or a list such as 1MiB,64MiB
    #[arg(long, value_name = "FROM..TO", default_value = "1KiB..256MiB")]
    sizes: Sizes,
    #[command(flatten)]
    messages: MessageArgs,
    /// Most work for a time: events, and looks at links while rates are computed
    #[arg(long, value_name = "N", default_value_t = 20_000_000)]
    work_max: u64,
    /// Release of NCCL or RCCL to compare with: 2.18 to 2.31, or rccl-2.21 [default: 2.30; on machines of AMD rccl-2.21]
    #[arg(long, value_name = "VERSION", value_parser = str::parse::<Version>)]
    nccl: Option<Version>,
    /// Switches of the network add up for NCCL, as with SHARP's plugin and NCCL_COLLNET_ENABLE=1
    #[arg(long)]
    collnet: bool,
    #[command(flatten)]
    around: AroundArgs,
    /// Longest time to make a plan where a network is given, and others to compare with, such as 30s
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    deadline: Option<Duration>,
    /// Write it all as one HTML file, with the network, its trees, a run and the times drawn
    #[arg(long, value_name = "FILE", value_parser = destination::file_only)]
    report: Option<PathBuf>,
    /// Date to print in the report, such as 2026-01-31; without one, the report has no date and is reproducible
    #[arg(long, value_name = "DATE", requires = "report", value_parser = report::date)]
    date: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
}

impl ExplainArgs {
    /// What is compared with.
    const fn library(&self) -> Library {
        Library { version: self.nccl, has_collnet: self.collnet }
    }
}

/// Fetches the plan where a server has it, and goes on with it.
pub(crate) async fn run(args: ExplainArgs) -> Result<(), Failure> {
    args.around.apply();
    let fetched = stored_plan(&args.subject, &args.server, args.deadline, Wanted::Json).await?;
    on_a_thread(move || explain(&args, fetched)).await
}

/// Judges the plan, compares it and says what came of it.
fn explain(args: &ExplainArgs, fetched: Option<Vec<u8>>) -> Result<(), Failure> {
    let deadline = Deadline::after(args.deadline);
    let plan = match Subject::of(&args.subject, fetched, &args.collective, deadline)? {
        Subject::Plan(plan) => plan,
        Subject::Rule(rule) => return by_class::explain(args, &rule),
        Subject::Network(_) => return Err(args.collective.kind().err().unwrap_or_else(no_plan)),
    };
    let sizes = args.size.map_or_else(|| args.sizes.list().to_vec(), |size| vec![size]);
    let stop = || deadline.is_past();
    let nvls = plan.bound_with_nvls(&stop).map_err(|error| super::bound::no_bound(&error))?;
    let model = Model::of(args.library(), &plan, nvls.as_ref().map(|bound| &bound.upper), &stop);
    let clock = if model.is_ok() && !args.messages.is_stated() { Clock::Library } else { Clock::Simulated };
    let beside = (clock, model.as_ref().ok());
    let compared = compare(&plan, sizes, beside, args.messages.options(args.work_max), &stop)?;
    let model = model.as_ref().map_err(|reason| (args.library(), reason.as_str()));
    let mut explained = summary::Explained::of(args, &plan, &compared, (model, nvls.as_ref()));
    if let Some(path) = &args.report {
        let report = report::html(args, &plan, &compared, &explained)?;
        explained.files.push(FileSummary::written("html", path, report.as_bytes())?);
    }
    if args.json {
        print_json("explain", &explained)
    } else {
        print(&text::readable(args, &plan, &compared, &explained))
    }
}

fn no_plan() -> Failure {
    Failure::input("`explain` needs a plan").help("give a plan in canopy's JSON, or a network and --collective")
}
