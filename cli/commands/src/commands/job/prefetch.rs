//! `canopy job prefetch`: has the plans of a job made while its nodes get ready.

use std::time::Duration;

use canopy_client::{ErrorClass, RequestId, Retries, RetryPolicy};
use canopy_proto::v1::{PrefetchPlanRequest, Priority};

use crate::args;
use crate::clock::{self, Deadline};
use crate::connection::{Connections, ServerArgs};
use crate::exit::Failure;
use crate::messages::say;
use crate::request;

use super::Manners;
use super::reach::ReachArgs;
use super::wanted::WantedArgs;

/// Have the plans of a job made while its nodes get ready
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  canopy job prefetch dgx-a100:boxes=2 --collective allgather,allreduce --job \"$SLURM_JOB_ID\" \\
      --nodes \"$SLURM_JOB_NODELIST\" --server unix:/run/canopy/canopy.sock --deadline 2s

Answers as soon as the server has taken the requests; `canopy job fetch` with the same arguments finds the plans.
Ends with status 0 whatever happens, unless --strict is given.")]
pub(crate) struct PrefetchArgs {
    #[command(flatten)]
    wanted: WantedArgs,
    /// Longest time in all, such as 2s
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = args::duration)]
    deadline: Duration,
    #[command(flatten)]
    reach: ReachArgs,
    /// Report failures by the exit status
    #[arg(long)]
    strict: bool,
    /// Do not report failures by the exit status: the default
    #[arg(long, conflicts_with = "strict")]
    best_effort: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Hands the requests over within the deadline.
pub(crate) fn run(args: PrefetchArgs) -> Result<(), Failure> {
    let manners = Manners { strict: args.strict && !args.best_effort, deadline: args.deadline };
    let end = Deadline::after(Some(args.deadline));
    super::guarded(manners, move || crate::running::interruptible(prefetch(args, end)))
}

async fn prefetch(args: PrefetchArgs, end: Deadline) -> Result<(), Failure> {
    if !args.server.names_one() {
        return Err(Failure::input("prefetch needs a server that lives on when the command ends")
            .help("add `--server ADDR` or set CANOPY_SERVER"));
    }
    // `detached` goes without saying here.
    let wanted = args.wanted.resolve(Priority::Prefetch, true)?;
    let connections = Connections::new(&args.server)?;
    let connection = connections.open_patiently(&mut args.reach.retries(), args.reach.end(end)).await?;
    let (mut retries, mut failed) = (Retries::new(RetryPolicy::STANDARD, clock::jitter()), None);
    for (kind, request) in &wanted.requests {
        let client = connection.shared();
        // One id for all tries: whatever becomes of an answer, there is one job.
        let request_id = RequestId::random().to_string();
        let request = PrefetchPlanRequest { spec: request.spec.clone(), priority: request.priority, request_id };
        let taken = retries.run(end.remaining(), async |left| client.prefetch_plan(request.clone(), left).await).await;
        match taken {
            Ok(operation) => say(&format!("{}: {}", kind.name(), operation.name)),
            Err(error) => {
                let failure: Failure = request::in_users_words(error, &wanted.topology).into();
                if failure.class() == Some(ErrorClass::Deadline) {
                    return Err(failure);
                }
                say(&format!("{}: {}", kind.name(), failure.sentence()));
                failed = failed.or(Some(failure));
            }
        }
    }
    connection.close().await;
    failed.map_or(Ok(()), Err)
}
