//! `canopy faults feed`: passes on to a server what monitors and schedulers say.
//!
//! Messages are read as they come, and reported in batches: one is sent as soon as there is anything to send, with all that came while
//! the one before was on its way.

mod lines;
mod mapping;
#[cfg(feature = "tools")]
mod sentinel;

use std::path::PathBuf;
use std::time::Duration;

use canopy_faults::feeds::{Aliases, FeedOptions, Item};
use canopy_faults::{Event, Remaining};
use canopy_proto::v1::ReportOutcome;
use tokio::sync::mpsc;

use self::lines::{LineFormat, Reader};
use self::mapping::{Fed, Mapping};
use super::network::Network;
use crate::args;
use crate::commands::operate::CommonArgs;
use crate::exit::Failure;
use crate::input;
use crate::messages::say;
use crate::output::print_json;
use crate::protocol_words::word;
use crate::stdout::print;

/// Most events of one report.
const BATCH_MAX: usize = 1_000;
/// Most things said that wait for their report; who says more waits.
const WAITING_MAX: usize = 4_096;
/// Largest file of aliases in bytes.
const ALIASES_BYTES_MAX: usize = 64 << 20;
/// Most minutes that a local time may be ahead of UTC or behind it.
const UTC_OFFSET_MAX: i32 = 14 * 60;

/// Report the faults that monitors and schedulers send, until the input ends
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Formats:
  json        lines such as {\"source\": \"ufm\", \"event_id\": \"7\", \"fault\": \"link:b0g3>ib*1/2\"}
  nccl-ras    JSON of ncclras, states and monitor mode
  slurm       lines of sinfo -h -o \"%N %T\" or of scontrol show node -o, or their JSON
  nvsentinel  gRPC of health monitors, with --listen

Examples:
  ncclras -m -f json | canopy faults feed cluster.yaml --format nccl-ras --aliases names.txt
  while sleep 15; do sinfo -h -o '%N %T'; done | canopy faults feed topologies/0123abcd --format slurm
  canopy faults feed cluster.yaml --format nvsentinel --listen unix:/var/run/nvsentinel.sock
  canopy faults feed cluster.yaml --format json --dry-run events.jsonl")]
pub(crate) struct FeedArgs {
    /// Generator expression, file, or id of a stored topology
    #[arg(value_name = "T")]
    topology: String,
    /// Format of the input
    #[arg(long, value_name = "FORMAT")]
    format: Format,
    /// File to read [default: standard input]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Address at which monitors of nvsentinel are listened to: host:port or unix:/path
    #[arg(long, value_name = "ADDR", conflicts_with = "file")]
    listen: Option<String>,
    /// Names that the topology does not have, and what they mean: lines such as `10.0.0.7 host:node7` or `node7/mlx5_3 nic:node7:3`
    #[arg(long, value_name = "FILE")]
    aliases: Option<PathBuf>,
    /// Fraction that remains of an element that works but is not healthy, where the feed does not say; without it, such
    /// events are ignored
    #[arg(long, value_name = "FRACTION")]
    degraded: Option<Remaining>,
    /// How long an event is believed that does not say it itself [default: until it is cleared]
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    expires: Option<Duration>,
    /// Minutes that the clocks of messages without a zone are ahead of UTC
    #[arg(long, value_name = "MINUTES", default_value_t = 0, allow_hyphen_values = true,
          value_parser = clap::value_parser!(i32).range(-i64::from(UTC_OFFSET_MAX)..=i64::from(UTC_OFFSET_MAX)))]
    utc_offset: i32,
    /// Print the reports without sending them
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    common: CommonArgs,
}

/// How a feed is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Json,
    NcclRas,
    Slurm,
    Nvsentinel,
}

/// Where they say it.
enum From {
    Lines(LineFormat),
    /// At this address.
    #[cfg(feature = "tools")]
    Monitors(String),
}

impl FeedArgs {
    fn options(&self) -> Result<FeedOptions, Failure> {
        let aliases = match &self.aliases {
            None => Aliases::default(),
            Some(path) => {
                let refused = |error| Failure::input(format!("{}: {error}", path.display()));
                Aliases::read(&input::text(path, ALIASES_BYTES_MAX)?).map_err(refused)?
            }
        };
        let expires_after_ms = self.expires.map(|expires| u64::try_from(expires.as_millis()).unwrap_or(u64::MAX));
        Ok(FeedOptions { aliases, degraded: self.degraded, expires_after_ms, utc_offset_minutes: self.utc_offset })
    }
}

/// What comes in: the things that a message says one by one, so that what waits is bounded, and where it ends.
#[derive(Debug)]
enum Received {
    Item(Item),
    /// A message could not be read.
    Unreadable(String),
    /// All of a message has come.
    End,
}

/// Reads to the end, and says what became of it all.
pub(crate) async fn run(args: FeedArgs) -> Result<(), Failure> {
    let from = match (args.format, &args.listen) {
        (Format::Json, None) => From::Lines(LineFormat::Json),
        (Format::NcclRas, None) => From::Lines(LineFormat::NcclRas),
        (Format::Slurm, None) => From::Lines(LineFormat::Slurm),
        #[cfg(feature = "tools")]
        (Format::Nvsentinel, Some(address)) => From::Monitors(address.clone()),
        #[cfg(not(feature = "tools"))]
        (Format::Nvsentinel, Some(_)) => return Err(crate::handover::part("faults feed --format nvsentinel")),
        _ => {
            let words = "--format nvsentinel and --listen ADDR go together: monitors of NVSentinel send over gRPC";
            return Err(Failure::input(words).help("give both, or another format and a file or standard input"));
        }
    };
    let mut options = args.options()?;
    let network = Network::read(&args.topology, &args.common, !args.dry_run).await?;
    if !args.dry_run {
        args.common.server.require_server().await?;
    }
    options.aliases = options.aliases.with_labels(&network.topology);
    let (sender, mut waiting) = mpsc::channel::<Received>(WAITING_MAX);
    let repeats_states = matches!(args.format, Format::Slurm | Format::NcclRas);
    let mut mapping = Mapping::new(&network.topology, repeats_states && options.expires_after_ms.is_none());
    let outcome = match from {
        #[cfg(feature = "tools")]
        From::Monitors(address) => tokio::select! {
            served = sentinel::serve(&address, options, sender) => served,
            passed = pass_on(&args, &network, &mut waiting, &mut mapping) => passed,
        },
        From::Lines(format) => {
            let reader = Reader::open(args.file.as_deref(), format, options)?;
            let reading = tokio::task::spawn_blocking(move || reader.run(&sender));
            match pass_on(&args, &network, &mut waiting, &mut mapping).await {
                // Nobody takes what is still read: the thread ends with the process.
                Err(failure) => Err(failure),
                Ok(()) => reading.await.map_err(|error| Failure::fault(format!("reading ended early: {error}")))?,
            }
        }
    };
    let tally = mapping.into_tally();
    match (&outcome, args.common.json) {
        (Ok(()), true) => print_json("faults feed", &Fed::of(&tally, args.dry_run))?,
        (Err(_), _) if tally.is_empty() => {}
        _ => say(&tally.sentence()),
    }
    outcome
}

/// Reports what comes, batch by batch, until nothing does.
async fn pass_on(
    args: &FeedArgs,
    network: &Network,
    waiting: &mut mpsc::Receiver<Received>,
    mapping: &mut Mapping<'_>,
) -> Result<(), Failure> {
    while let Some(first) = waiting.recv().await {
        let mut events: Vec<Event> = Vec::new();
        let mut next = Some(first);
        while let Some(received) = next {
            mapping.take(received, &mut events);
            next = (events.len() < BATCH_MAX).then(|| waiting.try_recv().ok()).flatten();
        }
        if args.dry_run {
            events.iter().try_for_each(|event| print(&mapping::line(event)))?;
            continue;
        }
        // An all clear of a large machine may be more than a batch.
        for batch in events.chunks(BATCH_MAX) {
            report(args, network, batch, mapping).await?;
        }
    }
    Ok(())
}

/// Reports a batch, and counts what became of it.
async fn report(args: &FeedArgs, network: &Network, batch: &[Event], mapping: &mut Mapping<'_>) -> Result<(), Failure> {
    let reported = network.report(batch, &args.common).await;
    let reply = reported.map_err(|failure| failure.note(format!("events not reported, at least: {}", batch.len())))?;
    for (event, reported) in batch.iter().zip(&reply.outcomes) {
        mapping.tally().reported(word(reported.outcome().as_str_name(), "REPORT_OUTCOME"));
        if reported.outcome() == ReportOutcome::Refused {
            let why = reported.error.as_ref().map(|error| error.message.as_str()).unwrap_or_default();
            say(&format!("refused: {}: {why}", mapping::line(event)));
            mapping.forget(event);
        }
    }
    Ok(())
}
