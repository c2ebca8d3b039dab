//! States of Slurm's nodes: a line of `sinfo -h -N -o "%N %T"` or of `scontrol show node -o`.
//!
//! * **Source.** `sinfo(1)` and `scontrol(1)`, "NODE STATE CODES". A state is one word or several joined by `+`; marks behind it say
//!   what happens to the node, of which `*` (it does not respond) is a fault by itself.

use crate::event::{Event, Severity};
use crate::feeds::{FeedError, FeedOptions, Item, MESSAGE_BYTES_MAX, can_be_host, cut};
use crate::remaining::Remaining;
use crate::target::{Target, shown};

/// Who says it, in events.
const SOURCE: &str = "slurm";
/// Longest name and longest state in an event's id.
const ID_PART_BYTES_MAX: usize = 48;

/// States, also in their short forms, of a node that jobs must not count on.
const BROKEN: [&str; 12] = [
    "DOWN",
    "DRAIN",
    "DRAINED",
    "DRAINING",
    "DRNG",
    "FAIL",
    "FAILG",
    "FAILING",
    "ERROR",
    "NOT_RESPONDING",
    "NO_RESPOND",
    "INVAL",
];
/// States of a node that works.
const WORKING: [&str; 14] = [
    "IDLE",
    "ALLOC",
    "ALLOCATED",
    "MIX",
    "MIXED",
    "COMP",
    "COMPLETING",
    "RESV",
    "RESERVED",
    "PLND",
    "PLANNED",
    "BLOCK",
    "BLOCKED",
    "CG",
];
/// Marks behind a state; `*` means that the node does not respond.
const MARKS: [char; 10] = ['*', '~', '#', '!', '%', '$', '@', '^', '-', '+'];

/// Reads one line. It was so when it came.
///
/// # Errors
/// A line that is neither form.
pub fn read_slurm(line: &str, options: &FeedOptions, received_ms: u64) -> Result<Vec<Item>, FeedError> {
    if line.len() > MESSAGE_BYTES_MAX {
        return Err(FeedError::TooLong { limit: MESSAGE_BYTES_MAX });
    }
    let line = line.trim();
    if line.is_empty() {
        return Ok(Vec::new());
    }
    let (node, state) = node_and_state(line).ok_or_else(|| FeedError::Slurm { found: shown(line) })?;
    let machine = options.aliases.machine(node);
    if machine.contains('[') || !can_be_host(machine) {
        let remedy = "it names no single node; use sinfo -N, which has a line for each";
        return Ok(vec![Item::Unmapped { device: shown(node), remedy }]);
    }
    let Some(is_broken) = is_broken(state) else {
        return Ok(vec![Item::Passed { what: format!("{} is {}", shown(node), shown(state)) }]);
    };
    let (name, word) = (cut(node, ID_PART_BYTES_MAX), cut(state, ID_PART_BYTES_MAX));
    Ok(vec![Item::Event(Event {
        source: SOURCE.to_owned(),
        event_id: format!("{name} {word} {received_ms}"),
        target: Target::Host { name: machine.to_owned() },
        remaining: Remaining::GONE,
        severity: Severity::Fatal,
        observed_ms: received_ms,
        expires_ms: options.expiry(received_ms),
        cleared: !is_broken,
    })])
}

/// The two words of a line of `sinfo`, or the two fields of one of `scontrol`.
fn node_and_state(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    if line.starts_with("NodeName=") {
        let node = words.next()?.strip_prefix("NodeName=")?;
        return Some((node, words.find_map(|word| word.strip_prefix("State="))?));
    }
    let (node, state) = (words.next()?, words.next()?);
    words.next().is_none().then_some((node, state))
}

/// Whether a state is that of a broken node, or none: it says neither.
fn is_broken(state: &str) -> Option<bool> {
    let (mut is_working, mut is_broken) = (false, state.contains('*'));
    for word in state.split('+') {
        let word = word.trim_matches(MARKS).to_ascii_uppercase();
        is_broken |= BROKEN.contains(&word.as_str());
        is_working |= WORKING.contains(&word.as_str());
    }
    (is_broken || is_working).then_some(is_broken)
}
