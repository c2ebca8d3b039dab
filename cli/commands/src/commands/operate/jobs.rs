//! `canopy server jobs`: lists, follows and ends the jobs that make plans.

use std::time::Duration;

use canopy_client::{Client, ClientError, ErrorClass, RequestId};
use canopy_proto::v1::operation::Result as Ended;
use canopy_proto::v1::{CancelOperationRequest, ListOperationsRequest, Operation, WaitOperationRequest};
use clap::Subcommand;
use serde::Serialize;

use crate::connection;
use crate::exit::Failure;
use crate::messages::say;
use crate::output::{print_json, print_member};
use crate::protocol_words::word;
use crate::request::collective_name;
use crate::stdout::print;

use super::{CommonArgs, Entry, age_in_words, ask, full_name, pages, seconds_since, short_id, table};

/// Longest wait of one question while a job is followed: so often its progress is shown.
const WATCH_PAUSE_SECONDS: i64 = 1;
/// What the answer to such a question may take on top.
const WATCH_GRACE: Duration = Duration::from_secs(10);

/// Jobs that make plans: list, watch, cancel
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  canopy server jobs list --filter 'state=running'
  canopy server jobs watch operations/0123abcd
  canopy server jobs cancel operations/0123abcd")]
pub(crate) enum JobsCommand {
    /// List jobs, newest first
    List(ListArgs),
    /// Follow a job to its end; progress is on standard error
    Watch(WatchArgs),
    /// Cancel a job; its waiting callers get an error
    Cancel(CancelArgs),
}

/// Arguments of `list`.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// `field op value` with AND, OR, NOT and parentheses, over name, state, priority, detached, done, collective and created
    #[arg(long, value_name = "FILTER", default_value = "", hide_default_value = true)]
    filter: String,
    /// Most jobs to list
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    common: CommonArgs,
}

/// Arguments of `watch`.
#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// Job, such as operations/0123abcd
    #[arg(value_name = "OP")]
    operation: String,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: connection::ServerArgs,
}

/// Arguments of `cancel`.
#[derive(Debug, clap::Args)]
pub(crate) struct CancelArgs {
    /// Job, such as operations/0123abcd
    #[arg(value_name = "OP")]
    operation: String,
    #[command(flatten)]
    common: CommonArgs,
}

/// A job.
#[derive(Clone, PartialEq, Serialize)]
pub(super) struct Row {
    operation: String,
    state: String,
    done: bool,
    priority: String,
    detached: bool,
    waiters: u32,
    collective: Option<&'static str>,
    stage: String,
    stage_done: u64,
    stage_total: u64,
    created: Option<String>,
    #[serde(skip)]
    age_seconds: Option<u64>,
    ended: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Row {
    pub(super) fn of(operation: Operation) -> Self {
        let metadata = operation.metadata.unwrap_or_default();
        let progress = metadata.progress.clone().unwrap_or_default();
        let (mut plan, mut reason, mut message) = (None, None, None);
        match operation.result {
            Some(Ended::Response(reply)) => plan = reply.plan.map(|plan| plan.name),
            Some(Ended::Error(error)) => {
                (reason, message) = (Some(canopy_wire::reason_of(&error)), Some(error.message))
            }
            None => {}
        }
        Self {
            operation: operation.name,
            state: word(metadata.state().as_str_name(), "OPERATION_STATE"),
            done: operation.done,
            priority: word(metadata.priority().as_str_name(), "PRIORITY"),
            detached: metadata.detached,
            waiters: metadata.waiters,
            collective: metadata.collective.as_ref().and_then(|collective| collective_name(collective.kind())),
            stage: progress.stage,
            stage_done: progress.done,
            stage_total: progress.total,
            age_seconds: metadata.create_time.as_ref().map(|time| seconds_since(time.seconds)),
            created: metadata.create_time.map(|time| time.to_string()),
            ended: metadata.end_time.map(|time| time.to_string()),
            plan,
            reason,
            message,
        }
    }

    /// Where the job stands, such as `trees 3/8`.
    fn stage(&self) -> String {
        match (self.stage.is_empty(), self.stage_total) {
            (true, _) => String::new(),
            (false, 0) => self.stage.clone(),
            (false, total) => format!("{} {}/{total}", self.stage, self.stage_done),
        }
    }
}

/// Does what is asked and prints what came of it.
pub(crate) async fn run(command: JobsCommand) -> Result<(), Failure> {
    match command {
        JobsCommand::List(args) => list(&args).await,
        JobsCommand::Watch(args) => watch(&args).await,
        JobsCommand::Cancel(args) => cancel(&args).await,
    }
}

async fn list(args: &ListArgs) -> Result<(), Failure> {
    args.common.server.require_server().await?;
    let (operations, ()) = ask(&args.common, async |client, left| {
        pages(args.limit, async |page_size, page_token| {
            let request =
                ListOperationsRequest { page_size, page_token, filter: args.filter.clone(), order_by: String::new() };
            let page = client.list_operations(request, left).await?;
            Ok((page.operations, page.next_page_token, ()))
        })
        .await
    })
    .await?;
    let jobs: Vec<Row> = operations.into_iter().map(Row::of).collect();
    if args.common.json {
        return print_member("jobs list", Row::NAME, jobs);
    }
    print(&table(jobs))
}

impl Entry for Row {
    const NAME: &'static str = "jobs";
    const HEADING: &'static [&'static str] = &["JOB", "STATE", "PRIORITY", "COLLECTIVE", "AGE#", "OUTCOME"];

    fn cells(self) -> Vec<String> {
        let stage = self.stage();
        let plan = self.plan.map(|plan| short_id(&plan).to_owned());
        let name = self.operation.strip_prefix("operations/").unwrap_or(&self.operation);
        // Plans that stand in for others are given up once those are there, which is no failure.
        let reason =
            self.reason.map(|reason| if reason == "JOB_STOPPED" { "not needed any more".to_owned() } else { reason });
        vec![
            name.to_owned(),
            self.state,
            self.priority,
            self.collective.unwrap_or_default().to_owned(),
            self.age_seconds.map(age_in_words).unwrap_or_default(),
            plan.or(reason).unwrap_or(stage),
        ]
    }
}

async fn watch(args: &WatchArgs) -> Result<(), Failure> {
    args.server.require_server().await?;
    let name = full_name("operations/", &args.operation);
    let operation =
        connection::ask(&args.server, None, async |connection, _| follow(connection.shared(), &name).await).await?;
    let job = Row::of(operation);
    let failure = match (&job.plan, &job.message) {
        (None, message) => {
            let class = if job.state == "cancelled" { ErrorClass::Busy } else { ErrorClass::Infeasible };
            let message = message.clone().unwrap_or_else(|| "it ended without a plan".to_owned());
            Some(Failure::new(class, format!("{}: {message}", job.operation)))
        }
        (Some(_), _) => None,
    };
    tell("jobs watch", job, args.json)?;
    failure.map_or(Ok(()), Err)
}

/// Waits for the end of a job and tells each change on the way.
async fn follow(client: &Client, name: &str) -> Result<Operation, ClientError> {
    let mut told = String::new();
    loop {
        let timeout = prost_types::Duration { seconds: WATCH_PAUSE_SECONDS, nanos: 0 };
        let request = WaitOperationRequest { name: name.to_owned(), timeout: Some(timeout) };
        let limit = Duration::from_secs(WATCH_PAUSE_SECONDS.unsigned_abs()) + WATCH_GRACE;
        let operation = client.wait_operation(request, Some(limit)).await?;
        if operation.done {
            return Ok(operation);
        }
        let row = Row::of(operation);
        let line = format!("{} {}", row.state, row.stage());
        if line != told {
            say(line.trim_end());
            told = line;
        }
    }
}

async fn cancel(args: &CancelArgs) -> Result<(), Failure> {
    args.common.server.require_server().await?;
    let name = full_name("operations/", &args.operation);
    let request = CancelOperationRequest { name, request_id: RequestId::random().to_string() };
    let operation =
        ask(&args.common, async |client, left| client.cancel_operation(request.clone(), left).await).await?;
    tell("jobs cancel", Row::of(operation), args.common.json)
}

fn tell(command: &'static str, job: Row, json: bool) -> Result<(), Failure> {
    if json { print_json(command, &job) } else { print(&table(vec![job])) }
}
