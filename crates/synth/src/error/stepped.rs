//! Errors of schedules in steps.

use canopy_optimize::Stopped;
use canopy_schedule::CollectiveKind;

use super::listed;

/// Each variant says what is wrong and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SteppedError {
    #[error("{name} does not plan {collective}; it plans {}", listed(supported))]
    Unsupported { name: &'static str, collective: CollectiveKind, supported: &'static [CollectiveKind] },
    #[error(
        "{name} needs a path from rank {from_rank} ({from}) to rank {to_rank} ({to}), and none exists; add links that \
         connect them"
    )]
    Unreachable { name: &'static str, from: String, from_rank: u32, to: String, to_rank: u32 },
    #[error("{name} needs more than {limit} sends; plan for fewer ranks")]
    TooManySends { name: &'static str, limit: u64 },
    #[error("{name} needs a power of two of ranks, and there are {ranks}; use recursive-doubling, binomial or ring")]
    NoPowerOfTwo { name: &'static str, ranks: u32 },
    #[error("{name} plans {collective} with equal shares; give such a schedule and a weight for each rank")]
    NotWeighed { name: String, collective: CollectiveKind },
    #[error("stopped before the schedule was complete")]
    Stopped,
}

impl From<Stopped> for SteppedError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}
