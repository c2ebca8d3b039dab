//! The head of a log that is copied into another store.

use canopy_planner::PlanKey;

use super::{EARLIER_MAX, Earlier, EventLog, HEAD, Head};
use crate::store::{decode_message, encode_message};

impl EventLog {
    /// Under which key the head of a log is, beside the events.
    pub(crate) const HEAD: PlanKey = HEAD;

    /// The head of a copy of the log that has this one, see [`EventLog::part_ways`].
    pub(crate) fn head_of_copy(head: Option<&[u8]>, now_ms: u64) -> Vec<u8> {
        encode_message(&read(head).parted(now_ms))
    }

    /// Whether the log of one head is a copy of all that there is in the log of the other, or goes on from there.
    pub(crate) fn is_copy_of(copy: &[u8], original: Option<&[u8]>) -> bool {
        let Head { epoch, last, .. } = read(original);
        read(Some(copy)).earlier.iter().any(|earlier| (earlier.epoch, earlier.until) == (epoch, last))
    }

    /// Whether the log of a head has never had an event.
    pub(crate) fn is_unused(head: &[u8]) -> bool {
        let Head { last, earlier, .. } = read(Some(head));
        last == 0 && earlier.is_empty()
    }
}

impl Head {
    /// The same for a log that goes on under another name.
    pub(super) fn parted(mut self, now_ms: u64) -> Self {
        self.earlier.push(Earlier { epoch: self.epoch, until: self.last });
        let too_many = self.earlier.len().saturating_sub(EARLIER_MAX);
        self.earlier.drain(..too_many);
        self.epoch = now_ms.max(self.epoch.saturating_add(1));
        self
    }
}

/// A head; where it cannot be read, the log is a new one.
fn read(head: Option<&[u8]>) -> Head {
    head.and_then(|head| decode_message(head).ok()).unwrap_or_default()
}
