//! Reports of sources about one element at one time.

use canopy_topology::is_invisible;
use serde::{Deserialize, Serialize};

use crate::remaining::Remaining;
use crate::target::{Target, TargetError};
use crate::text::shown;

/// Longest name of a source in bytes. Servers put the name of a tenant before it.
const SOURCE_BYTES_MAX: usize = 160;
/// Longest id of an event in bytes.
const ID_BYTES_MAX: usize = 128;

/// Severity in the source's words. It decides nothing; the remaining capacity does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Severity {
    /// The element works, but not as it should.
    Degraded,
    /// The element does not work.
    Fatal,
}

/// A source's report about an element. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Name of the source: 1 to 64 bytes without control characters.
    pub source: String,
    /// Id of the event, so that a duplicate counts once: 1 to 128 bytes without control characters.
    pub event_id: String,
    /// The element.
    pub target: Target,
    /// The remaining capacity; ignored if `cleared`.
    pub remaining: Remaining,
    /// Severity.
    pub severity: Severity,
    /// Time of the observation.
    pub observed_ms: u64,
    /// Time at which it stops counting; `None` if it counts until it is cleared.
    pub expires_ms: Option<u64>,
    /// Whether the source takes back its reports about the element.
    pub cleared: bool,
}

/// Errors of entering an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum EventError {
    #[error("{field} cannot be `{found}`; give 1 to {limit} bytes without characters that are not shown")]
    Text { field: &'static str, found: String, limit: usize },
    #[error("target: {0}")]
    Target(#[from] TargetError),
}

impl Event {
    /// The event with its target in the form of [`Target::checked`].
    ///
    /// # Errors
    /// A malformed source, id or target.
    pub fn checked(mut self) -> Result<Self, EventError> {
        for (field, text, limit) in
            [("source", &self.source, SOURCE_BYTES_MAX), ("event_id", &self.event_id, ID_BYTES_MAX)]
        {
            if !(1..=limit).contains(&text.len()) || text.contains(is_invisible) {
                return Err(EventError::Text { field, found: shown(text), limit });
            }
        }
        self.target = self.target.checked()?;
        Ok(self)
    }
}
