//! States of Slurm's nodes: a line of `sinfo -h -o "%N %T"` or of `scontrol show node -o`, or what they print with `--json`.
//!
//! * **Source.** `sinfo(1)` and `scontrol(1)`, "NODE STATE CODES". A state is one word or several joined by `+`; marks behind it say
//!   what happens to the node, of which `*` (it does not respond) is a fault by itself. Since 23.02 JSON has a list of words,
//!   before it had one word and a list of flags.

use canopy_topology::expand_hosts;
use serde::Deserialize;

use crate::event::{Event, Severity};
use crate::feeds::{FeedError, FeedOptions, Item, MESSAGE_BYTES_MAX, can_be_host, check_count, cut, from_json};
use crate::remaining::Remaining;
use crate::target::Target;
use crate::text::shown;

/// Who says it, in events.
const SOURCE: &str = "slurm";
/// Longest name and longest state in an event's id.
const ID_PART_BYTES_MAX: usize = 48;

/// States, also in their short forms, of a node that jobs must not count on.
const BROKEN: [&str; 13] = [
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
    "INVALID_REG",
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

/// What `scontrol show nodes --json` (and `sinfo --json` before 23.02) or `sinfo --json` print, as far as it is read.
#[derive(Debug, Deserialize)]
struct Document {
    nodes: Option<Vec<Node>>,
    sinfo: Option<Vec<Row>>,
}

#[derive(Debug, Deserialize)]
struct Node {
    name: String,
    state: Words,
    #[serde(default)]
    state_flags: Words,
}

/// Nodes that are in one state.
#[derive(Debug, Deserialize)]
struct Row {
    node: RowState,
    nodes: RowNodes,
}

#[derive(Debug, Deserialize)]
struct RowState {
    state: Words,
}

#[derive(Debug, Deserialize)]
struct RowNodes {
    nodes: Words,
}

/// One word, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum Words {
    One(String),
    Several(Vec<String>),
}

impl Default for Words {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Words {
    fn iter(&self) -> impl Iterator<Item = &str> {
        let words = match self {
            Self::One(word) => std::slice::from_ref(word),
            Self::Several(words) => words.as_slice(),
        };
        words.iter().map(String::as_str)
    }
}

/// Reads one line. It was so when it came. Names may be lists such as `gpu[01-04,7]`.
///
/// # Errors
/// A line that is neither form, lists that are none, and too many nodes.
pub fn read_slurm(line: &str, options: &FeedOptions, received_ms: u64) -> Result<Vec<Item>, FeedError> {
    if line.len() > MESSAGE_BYTES_MAX {
        return Err(FeedError::TooLong { limit: MESSAGE_BYTES_MAX });
    }
    let line = line.trim();
    if line.is_empty() {
        return Ok(Vec::new());
    }
    let (nodes, state) = node_and_state(line).ok_or_else(|| FeedError::Slurm { found: shown(line) })?;
    let said = Said { options, received_ms };
    Ok(said.of(&named(nodes)?, &[state]))
}

/// Reads one document. It was so when it came.
///
/// # Errors
/// What has neither `nodes` nor `sinfo`, nodes without name or state, lists that are none, and too many nodes.
pub fn read_slurm_json(document: &str, options: &FeedOptions, received_ms: u64) -> Result<Vec<Item>, FeedError> {
    let Document { nodes, sinfo } = from_json(document)?;
    let said = Said { options, received_ms };
    let mut items = Vec::new();
    for node in nodes.iter().flatten() {
        let state: Vec<&str> = node.state.iter().chain(node.state_flags.iter()).collect();
        items.append(&mut said.of(std::slice::from_ref(&node.name), &state));
        check_count(items.len())?;
    }
    for row in sinfo.iter().flatten() {
        let state: Vec<&str> = row.node.state.iter().collect();
        for nodes in row.nodes.nodes.iter() {
            items.append(&mut said.of(&named(nodes)?, &state));
            check_count(items.len())?;
        }
    }
    if nodes.is_none() && sinfo.is_none() {
        let remedy = "use scontrol show nodes --json or sinfo --json";
        return Err(FeedError::Missing { field: "nodes", remedy });
    }
    Ok(items)
}

/// The nodes of a name or list.
fn named(text: &str) -> Result<Vec<String>, FeedError> {
    match text.contains(['[', ']', ',']) {
        true => Ok(expand_hosts(text)?),
        false => Ok(vec![text.to_owned()]),
    }
}

/// What all events of a message have in common.
struct Said<'a> {
    options: &'a FeedOptions,
    received_ms: u64,
}

impl Said<'_> {
    /// Nodes are in a state.
    fn of(&self, nodes: &[String], state: &[&str]) -> Vec<Item> {
        let is_broken = is_broken(state);
        let word = cut(&state.join("+"), ID_PART_BYTES_MAX);
        nodes.iter().map(|node| self.one(node, &word, is_broken)).collect()
    }

    fn one(&self, node: &str, word: &str, is_broken: Option<bool>) -> Item {
        let machine = self.options.aliases.machine(node);
        if !can_be_host(machine) {
            let remedy = "this is not a machine name; give it an alias".to_owned();
            return Item::Unmapped { device: shown(node), remedy };
        }
        let Some(is_broken) = is_broken else {
            return Item::Passed { what: format!("{} is {word}", shown(node)) };
        };
        Item::Event(Event {
            source: SOURCE.to_owned(),
            event_id: format!("{} {word} {}", cut(node, ID_PART_BYTES_MAX), self.received_ms),
            target: Target::Host { name: machine.to_owned() },
            remaining: Remaining::GONE,
            severity: Severity::Fatal,
            observed_ms: self.received_ms,
            expires_ms: self.options.expiry(self.received_ms),
            cleared: !is_broken,
        })
    }
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

/// Whether a state of several words is that of a broken node, or none: it says neither.
fn is_broken(state: &[&str]) -> Option<bool> {
    let (mut is_working, mut is_broken) = (false, false);
    for word in state.iter().flat_map(|words| words.split('+')) {
        let bare = word.trim_matches(MARKS).to_ascii_uppercase();
        is_broken |= word.contains('*') || BROKEN.contains(&bare.as_str());
        is_working |= WORKING.contains(&bare.as_str());
    }
    (is_broken || is_working).then_some(is_broken)
}
