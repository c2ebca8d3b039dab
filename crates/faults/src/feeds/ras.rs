//! What NCCL's RAS says in JSON (`ncclras -f json`, `-m`): processes that died, and which GPUs answer.
//!
//! A process that RAS gives up on after a minute of silence is taken for its GPUs; one that answers clears them, so that the
//! next job on a machine ends what the one before it left. Other events of a process are passed over: a peer that does not respond
//! for seconds is no fault yet.
//!
//! * **Source.** NCCL user guide, "RAS", since 2.28.7 (status) and 2.29 (monitor mode). 2.28.9 leaves out the comma before the
//!   `status` of a missing rank; it is read as if it were there.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::event::{Event, Severity};
use crate::feeds::{FeedError, FeedOptions, Item, can_be_host, check_count, cut, from_json};
use crate::remaining::Remaining;
use crate::text::shown;

/// Who says it, in events.
const SOURCE: &str = "nccl-ras";
/// Longest time in an event's id.
const ID_PART_BYTES_MAX: usize = 32;

/// Either form of document: an event, or the state of a job.
#[derive(Debug, Deserialize)]
struct Document {
    timestamp: Option<String>,
    event: Option<String>,
    peer: Option<Peer>,
    communicators: Option<Vec<Communicator>>,
}

#[derive(Debug, Deserialize)]
struct Peer {
    host: Option<String>,
    pid: Option<i64>,
    #[serde(default)]
    cuda_devs: BTreeSet<u32>,
    #[serde(default)]
    nvml_devs: BTreeSet<u32>,
}

#[derive(Debug, Deserialize)]
struct Communicator {
    #[serde(default)]
    ranks: Vec<Rank>,
    #[serde(default)]
    missing_ranks: Vec<Rank>,
}

#[derive(Debug, Deserialize)]
struct Rank {
    host: String,
    cuda_dev: u32,
    nvml_dev: Option<u32>,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
struct Status {
    #[serde(default)]
    considered_dead: bool,
}

/// Reads one document.
///
/// # Errors
/// What is neither an event nor a state, has a time that is none, or names too many devices.
pub fn read_ras(document: &str, options: &FeedOptions, received_ms: u64) -> Result<Vec<Item>, FeedError> {
    let document: Document = from_json(document).or_else(|error| match with_commas(document) {
        Some(mended) => from_json(&mended),
        None => Err(error),
    })?;
    let stamp = document.timestamp.as_deref().filter(|stamp| !stamp.is_empty());
    let observed_ms = options.observed("timestamp", stamp, received_ms)?;
    let said = Said { options, observed_ms };
    match (document.event, document.communicators) {
        (Some(event), _) if event == "PEER_DEAD" => {
            let remedy = "PEER_DEAD needs a peer";
            let peer = document.peer.ok_or(FeedError::Missing { field: "peer", remedy })?;
            let host = peer.host.unwrap_or_default();
            // Numbers that CUDA gives depend on what a process sees; those of NVML do not.
            let devices = if peer.nvml_devs.is_empty() { peer.cuda_devs } else { peer.nvml_devs };
            let process = peer.pid.map_or_else(String::new, |pid| format!("pid {pid} "));
            if devices.is_empty() {
                let device = format!("{process}on {}", shown(&host));
                return Ok(vec![Item::Unmapped {
                    device,
                    remedy: "the event names no GPU; report it by hand".to_owned(),
                }]);
            }
            check_count(devices.len())?;
            Ok(devices.into_iter().map(|device| said.of(&host, device, true)).collect())
        }
        (Some(event), _) => Ok(vec![Item::Passed { what: shown(&event) }]),
        (None, Some(communicators)) => {
            // Once for each GPU, however many communicators it is in; one that is dead for any of them is dead.
            let mut dead: BTreeMap<(String, u32), bool> = BTreeMap::new();
            for communicator in communicators {
                let answering = communicator.ranks.into_iter().map(|rank| (rank, false));
                let missing = communicator.missing_ranks.into_iter().filter(|rank| rank.status.considered_dead);
                for (rank, is_dead) in answering.chain(missing.map(|rank| (rank, true))) {
                    let device = rank.nvml_dev.unwrap_or(rank.cuda_dev);
                    *dead.entry((rank.host, device)).or_default() |= is_dead;
                }
            }
            check_count(dead.len())?;
            Ok(dead.into_iter().map(|((host, device), is_dead)| said.of(&host, device, is_dead)).collect())
        }
        (None, None) => {
            let remedy = "an event needs `event`, and a state needs `communicators`";
            Err(FeedError::Missing { field: "event", remedy })
        }
    }
}

/// The document with a comma wherever a `"status"` follows a number without one, which is no JSON; none: nowhere.
fn with_commas(document: &str) -> Option<String> {
    let mut mended = String::new();
    let mut rest = document;
    while let Some(at) = rest.find("\"status\"") {
        let (before, after) = rest.split_at(at);
        let number = before.trim_end();
        let lacks_one = number.ends_with(|c: char| c.is_ascii_digit());
        mended.push_str(if lacks_one { number } else { before });
        mended.push_str(if lacks_one { ", \"status\"" } else { "\"status\"" });
        rest = &after["\"status\"".len()..];
    }
    mended.push_str(rest);
    (mended != document).then_some(mended)
}

/// What all events of a document have in common.
struct Said<'a> {
    options: &'a FeedOptions,
    observed_ms: u64,
}

impl Said<'_> {
    /// The GPU of this number is dead, or answers.
    fn of(&self, host: &str, device: u32, is_dead: bool) -> Item {
        if !can_be_host(self.options.aliases.machine(host)) {
            let remedy = "its host is not a machine name; give it an alias".to_owned();
            return Item::Unmapped { device: format!("{}:{device}", shown(host)), remedy };
        }
        let state = if is_dead { "dead" } else { "up" };
        Item::Event(Event {
            source: SOURCE.to_owned(),
            event_id: format!("{}:{device} {state} {}", cut(host, ID_PART_BYTES_MAX), self.observed_ms),
            target: self.options.aliases.gpu(host, device),
            remaining: Remaining::GONE,
            severity: Severity::Fatal,
            observed_ms: self.observed_ms,
            expires_ms: self.options.expiry(self.observed_ms),
            cleared: !is_dead,
        })
    }
}
