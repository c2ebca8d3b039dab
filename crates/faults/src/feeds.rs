//! What monitors and schedulers say, as events of the log: one reader for each of their forms.
//!
//! A reader takes one message and gives an [`Item`] for each thing it says: an event, or why it is none. Nothing is dropped without
//! a word, and what cannot be read is an error of that message alone. Which elements of a network the names mean is left to
//! [`Directory`](crate::Directory); [`Aliases`] say what other names mean.
//!
//! Messages come from outside: one has [`MESSAGE_BYTES_MAX`] at most and says at most [`ITEMS_MAX`] things, each of some hundred
//! bytes.

mod aliases;
mod documents;
mod json_lines;
mod labels;
mod ras;
mod sentinel;
mod slurm;
mod time;

pub use self::aliases::{AliasError, Aliases};
pub use self::documents::{Documents, Line};
pub use self::json_lines::read_json_line;
pub use self::ras::read_ras;
pub use self::sentinel::{Entity, HealthEvent, read_health};
pub use self::slurm::{read_slurm, read_slurm_json};
pub use self::time::{TimeError, read_time};
use crate::event::Event;
use crate::remaining::Remaining;
use crate::target::{Target, TargetError};

/// Longest message that is read: the state of some ten thousand ranks or nodes.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Most things that one message says.
pub const ITEMS_MAX: usize = 65_536;

/// How a feed is read.
#[derive(Clone, Debug)]
pub struct FeedOptions {
    /// What names mean that the network does not have.
    pub aliases: Aliases,
    /// What is left of what is not as it should be but works, where the message does not say; none: such messages are
    /// passed over.
    pub degraded: Option<Remaining>,
    /// After how many milliseconds an event no longer counts, where the message does not say.
    pub expires_after_ms: Option<u64>,
    /// How far the local time of messages without a zone is ahead of UTC, in minutes.
    pub utc_offset_minutes: i32,
}

/// One thing that a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Something happened to an element.
    Event(Event),
    /// A source takes back all that it said against a machine, which is the event's target, and against anything in it.
    AllClear(Event),
    /// A device has a name that means no element.
    Unmapped {
        /// The name.
        device: String,
        /// What would give it a meaning.
        remedy: String,
    },
    /// It is not about what works and what does not.
    Passed {
        /// What it says, shortened.
        what: String,
    },
}

/// Why a message could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum FeedError {
    #[error("the message has more than {limit} bytes; split it")]
    TooLong { limit: usize },
    #[error("the message says more than {limit} things; split it")]
    TooMany { limit: usize },
    #[error("the document ends before its braces close; its writer broke off, and what it said is lost")]
    Unfinished,
    #[error("not JSON of this form: {problem}")]
    Json { problem: String },
    #[error("`{found}` is neither `NODE STATE` nor `NodeName=NODE … State=STATE`; use sinfo -h -o \"%N %T\"")]
    Slurm { found: String },
    #[error(transparent)]
    Hosts(#[from] canopy_topology::HostsError),
    #[error("{field} `{found}`: {problem}")]
    Time { field: &'static str, found: String, problem: TimeError },
    #[error("expires_after_s is 0, so it would never count; give whole seconds above it, or leave it out")]
    Lifetime,
    #[error("fault: {0}")]
    Fault(#[from] TargetError),
    #[error("{field}: give it; {remedy}")]
    Missing { field: &'static str, remedy: &'static str },
    #[error(transparent)]
    Event(#[from] crate::event::EventError),
}

impl FeedOptions {
    /// When a message was written that says so in a field; else when it came.
    fn observed(&self, field: &'static str, said: Option<&str>, received_ms: u64) -> Result<u64, FeedError> {
        let Some(text) = said else { return Ok(received_ms) };
        let found = || crate::text::shown(text);
        read_time(text, self.utc_offset_minutes).map_err(|problem| FeedError::Time { field, found: found(), problem })
    }

    /// When an event counts no more that was observed then and does not say itself.
    fn expiry(&self, observed_ms: u64) -> Option<u64> {
        self.expires_after_ms.map(|after| observed_ms.saturating_add(after))
    }
}

/// A JSON document as a type; the problem says where.
fn from_json<'de, T: serde::Deserialize<'de>>(text: &'de str) -> Result<T, FeedError> {
    if text.len() > MESSAGE_BYTES_MAX {
        return Err(FeedError::TooLong { limit: MESSAGE_BYTES_MAX });
    }
    serde_json::from_str(text).map_err(|error| FeedError::Json { problem: crate::text::shown(&error.to_string()) })
}

/// So many things, if one message may say them.
fn check_count(items: usize) -> Result<(), FeedError> {
    if items > ITEMS_MAX { Err(FeedError::TooMany { limit: ITEMS_MAX }) } else { Ok(()) }
}

/// A text cut to so many bytes, at a character.
fn cut(text: &str, bytes_max: usize) -> String {
    let end = (0..=bytes_max.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.get(..end).unwrap_or_default().chars().filter(|c| !c.is_control()).collect()
}

/// Whether a name can be one of a machine: others mean nothing to anybody.
fn can_be_host(name: &str) -> bool {
    Target::Host { name: name.to_owned() }.checked().is_ok()
}

#[cfg(test)]
mod tests;
