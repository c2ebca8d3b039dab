//! `canopy job leases watch`: what becomes of leases, as it happens, and their new plans as files.

mod files;

use std::path::PathBuf;
use std::time::Duration;

use canopy_proto::Exact as _;
use canopy_proto::v1::replan_event::Event;
use canopy_proto::v1::{PlanSuperseded, ReplanEvent, WatchLeasesRequest};
use serde::Serialize;

use crate::clock::Deadline;
use crate::commands::operate::full_name;
use crate::connection::{CallError, ServerArgs, Session};
use crate::exit::Failure;
use crate::messages::say;
use crate::output::{FileSummary, percent_in_words, print_json};
use crate::protocol_words::word;
use crate::stdout::print;
use files::Folder;

/// Longest time that a server says nothing to who watches, with something to spare.
const SILENCE_MAX: Duration = Duration::from_secs(90);

/// Arguments of `watch`.
#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// Only this lease, such as leases/0000019abc012345
    #[arg(long, value_name = "LEASE")]
    lease: Option<String>,
    /// Only leases of this job
    #[arg(long, value_name = "J")]
    job: Option<String>,
    /// Begin after the event with this token, as an earlier watch showed it, or with all that are kept: `start` [default: from
    /// now on]
    #[arg(long, value_name = "TOKEN", default_value = "", hide_default_value = true)]
    resume: String,
    /// End after this many events
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,
    /// Write each new plan into this folder, which is created if it does not exist: JOB-LEASE-ITEM.json for canopy's
    /// JSON, and JOB-LEASE-ITEM.PROFILE.xml or .json for each file of a runtime. A file is replaced as a whole, before
    /// its event is printed
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
    /// End with what is there: `canopy job leases events`.
    #[arg(skip)]
    is_past: bool,
}

/// Arguments of `events`.
#[derive(Debug, clap::Args)]
pub(crate) struct EventsArgs {
    /// Only this lease, such as leases/0000019abc012345
    #[arg(long, value_name = "LEASE")]
    lease: Option<String>,
    /// Only leases of this job
    #[arg(long, value_name = "J")]
    job: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

impl From<EventsArgs> for WatchArgs {
    fn from(EventsArgs { lease, job, json, server }: EventsArgs) -> Self {
        Self { lease, job, resume: START.to_owned(), count: None, out: None, json, server, is_past: true }
    }
}

/// In place of a token: all events that are kept.
const START: &str = "start";

/// JSON object of one event.
#[derive(Default, Serialize)]
struct Line {
    resume_token: String,
    time: Option<String>,
    lease: String,
    job: String,
    item: u32,
    event: &'static str,
    old_plan: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_plan: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    optimality: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elapsed_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#final: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    survivors: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Of the new plan, as written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileSummary>,
}

/// Follows events; where the server ends or the connection breaks, goes on after the last one that was seen.
pub(super) async fn run(args: &WatchArgs) -> Result<(), Failure> {
    let folder = args.out.as_deref().map(Folder::open).transpose()?;
    let request = WatchLeasesRequest {
        resume_token: args.resume.clone(),
        lease: args.lease.as_deref().map(|name| full_name("leases/", name)).unwrap_or_default(),
        job: args.job.clone().unwrap_or_default(),
    };
    let mut watch = Watch { args, folder, request, seen: 0, is_told: false };
    args.server.require_server().await?;
    let mut session = Session::open(&args.server).await?;
    loop {
        let error = match watch.follow(&mut session).await {
            Ok(()) => return Ok(()),
            Err(CallError::Here(failure)) => return Err(failure),
            Err(CallError::Server(error)) => error,
        };
        if let Some(pause) = session.pause_after(error, Deadline::after(None))? {
            say("connection lost; the watch resumes after the last event");
            tokio::time::sleep(pause).await;
        }
        session.reconnect().await?;
    }
}

/// How far a watch has come.
struct Watch<'a> {
    args: &'a WatchArgs,
    folder: Option<Folder>,
    /// Asks for what comes after the last event that was seen.
    request: WatchLeasesRequest,
    seen: u64,
    is_told: bool,
}

impl Watch<'_> {
    /// Shows events until there were as many as are wanted.
    async fn follow(&mut self, session: &mut Session) -> Result<(), CallError> {
        let client = session.connection().shared().clone();
        let mut events = client.watch_leases(self.request.clone(), SILENCE_MAX).await?;
        if !std::mem::replace(&mut self.is_told, true) && !self.args.is_past {
            say("watching leases");
        }
        loop {
            let event = events.next().await?;
            let token = event.resume_token.clone();
            let is_idle = matches!(event.event, Some(Event::Idle(_)));
            let mut line = line(event);
            if let (Some(line), Some(folder)) = (&mut line, &self.folder) {
                // Where it fails, the event comes again when the watch goes on after the one before it.
                folder.keep(line, &client).await.map_err(|error| match error {
                    CallError::Here(failure) => CallError::Here(beginning_after(failure, &self.request)),
                    error @ CallError::Server(_) => error,
                })?;
            }
            session.forget_failures();
            self.request.resume_token = token;
            // Nothing was to be said: all that there is was.
            if self.args.is_past && is_idle {
                return Ok(());
            }
            if let Some(line) = line {
                show(self.args, line).map_err(CallError::Here)?;
                self.seen += 1;
                if self.args.count.is_some_and(|count| self.seen >= count) {
                    return Ok(());
                }
            }
        }
    }
}

/// Says where a watch goes on that ended with a failure.
fn beginning_after(failure: Failure, request: &WatchLeasesRequest) -> Failure {
    match request.resume_token.as_str() {
        "" => failure,
        token => failure.help(format!("continue with `--resume {token}`")),
    }
}

fn show(args: &WatchArgs, line: Line) -> Result<(), Failure> {
    if args.json {
        return print_json(if args.is_past { "leases events" } else { "leases watch" }, &line);
    }
    if line.event == "expired" {
        let (time, lease, job) = (line.time.unwrap_or_default(), line.lease, line.job);
        return print(&format!("{time}  job {job}  {lease}: the lease expired without renewal"));
    }
    let what = match (&line.new_plan, &line.error) {
        (Some(plan), _) => format!(
            "{plan} ({}, {} of optimal, after {} ms{})",
            line.stage.unwrap_or_default(),
            percent_in_words(&line.optimality.unwrap_or_default()),
            line.elapsed_ms.unwrap_or_default(),
            if line.r#final == Some(true) { "" } else { ", a better one may follow" }
        ),
        (None, error) => format!("no plan: {}", error.as_deref().unwrap_or_default()),
    };
    let paths: Vec<&str> = line.files.iter().map(|file| file.path.as_str()).collect();
    let files = if paths.is_empty() { String::new() } else { format!(", to {}", paths.join(" ")) };
    print(&format!("{}  job {}  {}: {what}{files}", line.time.unwrap_or_default(), line.job, line.old_plan))
}

fn line(event: ReplanEvent) -> Option<Line> {
    let bare = Line {
        resume_token: event.resume_token,
        time: event.event_time.map(|time| time.to_string()),
        lease: event.lease,
        job: event.job,
        item: event.item,
        ..Line::default()
    };
    match event.event? {
        Event::Superseded(superseded) => {
            let stage = Some(word(superseded.stage().as_str_name(), "REPLAN_STAGE"));
            let PlanSuperseded { old_plan, new_plan, optimality, survivors, elapsed, is_final, .. } = superseded;
            Some(Line {
                event: "superseded",
                old_plan,
                new_plan: Some(new_plan),
                stage,
                optimality: Some(optimality.exact().to_owned()),
                elapsed_ms: elapsed
                    .map(|it| it.seconds.saturating_mul(1000).saturating_add(i64::from(it.nanos) / 1_000_000)),
                r#final: Some(is_final),
                survivors,
                ..bare
            })
        }
        Event::Lost(lost) => {
            let error = lost.error.map(|error| format!("{}: {}", canopy_wire::reason_of(&error), error.message));
            Some(Line { event: "lost", old_plan: lost.old_plan, error, ..bare })
        }
        Event::Expired(_) => Some(Line { event: "expired", ..bare }),
        Event::Idle(_) | Event::Started(_) => None,
    }
}
