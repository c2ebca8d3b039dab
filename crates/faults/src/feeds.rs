//! Messages of monitors and schedulers as events of the log: one reader per format.
//!
//! A reader turns one message into an [`Item`] per statement: an event, or the reason why it is not one. Nothing is
//! dropped silently, and an unreadable message is an error of that message alone. The elements behind names are
//! resolved by [`Directory`](crate::Directory); [`Aliases`] say what other names mean.
//!
//! Messages come from outside: each has at most [`MESSAGE_BYTES_MAX`] and makes at most [`ITEMS_MAX`] statements of
//! some hundred bytes.

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
use canopy_topology::is_invisible;

use crate::event::Event;
use crate::remaining::Remaining;
use crate::target::{Target, TargetError};

/// Longest message accepted: the state of some ten thousand ranks or nodes.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Most statements in one message.
pub const ITEMS_MAX: usize = 65_536;

/// Options of reading a feed.
#[derive(Clone, Debug)]
pub struct FeedOptions {
    /// Targets of names that the network does not have.
    pub aliases: Aliases,
    /// Remaining fraction of a degraded element if the message does not state it; `None` skips such messages.
    pub degraded: Option<Remaining>,
    /// Lifetime of an event in milliseconds if the message does not state it.
    pub expires_after_ms: Option<u64>,
    /// Offset from UTC of messages without a time zone, in minutes.
    pub utc_offset_minutes: i32,
}

/// One statement of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An event of an element.
    Event(Event),
    /// A source clears all its reports about a machine, the event's target, and about anything in it.
    AllClear(Event),
    /// The name of a device means no element.
    Unmapped {
        /// The name.
        device: String,
        /// What would give it a meaning.
        remedy: String,
    },
    /// The statement is not about faults.
    Passed {
        /// What it says, shortened.
        what: String,
    },
}

/// Errors of reading a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum FeedError {
    #[error("the message has more than {limit} bytes; split it")]
    TooLong { limit: usize },
    #[error("the message has more than {limit} statements; split it")]
    TooMany { limit: usize },
    #[error("the document ends before its braces close; send the whole document")]
    Unfinished,
    #[error("the JSON does not match: {problem}")]
    Json { problem: String },
    #[error("`{found}` is neither `NODE STATE` nor `NodeName=NODE … State=STATE`; use `sinfo -h -o \"%N %T\"`")]
    Slurm { found: String },
    #[error(transparent)]
    Hosts(#[from] canopy_topology::HostsError),
    #[error("{field} `{found}`: {problem}")]
    Time { field: &'static str, found: String, problem: TimeError },
    #[error("expires_after_s is 0, so the report would never count; give at least 1 second, or leave it out")]
    Lifetime,
    #[error("fault: {0}")]
    Fault(#[from] TargetError),
    #[error("{field} is missing; {remedy}")]
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
    text.get(..end).unwrap_or_default().chars().filter(|&c| !is_invisible(c)).collect()
}

/// Whether a name can be one of a machine: others mean nothing to anybody.
fn can_be_host(name: &str) -> bool {
    Target::Host { name: name.to_owned() }.checked().is_ok()
}

#[cfg(test)]
mod tests;
