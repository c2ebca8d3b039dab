//! What somebody says about one element at one time.

use serde::{Deserialize, Serialize};

use crate::remaining::Remaining;
use crate::target::{Target, TargetError};
use crate::text::shown;

/// Longest name of a source in bytes.
const SOURCE_BYTES_MAX: usize = 64;
/// Longest id of an event in bytes.
const ID_BYTES_MAX: usize = 128;

/// How bad it is, in the words of who says it. It decides nothing: what is left does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Severity {
    /// It works, but not as it should.
    Degraded,
    /// It does not work.
    Fatal,
}

/// What a source says about an element. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Who says it: 1 to 64 bytes without control characters.
    pub source: String,
    /// Which of its events this is, so that one that comes twice counts once: 1 to 128 bytes without control characters.
    pub event_id: String,
    /// What it is about.
    pub target: Target,
    /// What is left of it. Of no account where it is `cleared`.
    pub remaining: Remaining,
    /// How bad that is.
    pub severity: Severity,
    /// When it was so.
    pub observed_ms: u64,
    /// From when on it no longer counts; none: it counts until it is cleared.
    pub expires_ms: Option<u64>,
    /// The source has nothing to say against the element any more.
    pub cleared: bool,
}

/// Why an event cannot be entered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum EventError {
    #[error("{field} `{found}` is not usable; give 1 to {limit} bytes without control characters")]
    Text { field: &'static str, found: String, limit: usize },
    #[error("target: {0}")]
    Target(#[from] TargetError),
}

impl Event {
    /// The event with its target in the form of [`Target::checked`].
    ///
    /// # Errors
    /// A source, id or target that cannot be one.
    pub fn checked(mut self) -> Result<Self, EventError> {
        for (field, text, limit) in
            [("source", &self.source, SOURCE_BYTES_MAX), ("event_id", &self.event_id, ID_BYTES_MAX)]
        {
            if !(1..=limit).contains(&text.len()) || text.contains(char::is_control) {
                return Err(EventError::Text { field, found: shown(text), limit });
            }
        }
        self.target = self.target.checked()?;
        Ok(self)
    }
}
