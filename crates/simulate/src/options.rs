//! The options of a simulation, and the reasons why it fails.

use canopy_schedule::SharesError;
use canopy_topology::{Capacity, Latency};

/// Whether the caller wants the work to end. It is asked every few thousand events.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// The size, the cost of messages, and the three choices of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulateOptions<'a> {
    /// *Size* of the collective, in bytes, as rates are stated: the full vector of all shares; the message for broadcast
    /// and reduce; the mean over ranks of one's blocks for all-to-all. Chunks are whole bytes: chunk `c` of `V` begins at `⌊c·size/V⌋`.
    pub size_bytes: u64,
    /// α: time that every message takes before its first byte is sent. It keeps its transfer busy, but no link.
    pub alpha: Latency,
    /// ε: time that the call takes once, before its first message.
    pub launch: Latency,
    /// 1/γ: rate at which a rank adds what it receives to what it has, one message after the other. What waits for a
    /// message waits for its sum. `None`: sums take no time.
    pub reduce_rate: Option<Capacity>,
    /// How transfers are cut into pieces.
    pub pieces: Pieces,
    /// How messages share a link.
    pub sharing: Sharing,
    /// What a transfer waits for.
    pub sync: Sync<'a>,
    /// Limit on work: each event and each look at a link while shares are computed counts one. 10⁸ take about ten
    /// seconds.
    pub work_max: u64,
}

/// Default α in nanoseconds.
pub const ALPHA_NS_USUAL: u64 = 1_000;
/// Default size of the largest piece.
pub const PIECE_BYTES_USUAL: u64 = 512 << 10;

impl SimulateOptions<'_> {
    /// The defaults: fair links, no barriers, [`ALPHA_NS_USUAL`] and [`PIECE_BYTES_USUAL`]; calls and sums take no time of
    /// their own.
    pub const fn usual(size_bytes: u64, work_max: u64) -> Self {
        Self {
            size_bytes,
            alpha: Latency::from_nanos(ALPHA_NS_USUAL),
            launch: Latency::from_nanos(0),
            reduce_rate: None,
            pieces: Pieces::AtMost { bytes: PIECE_BYTES_USUAL },
            sharing: Sharing::Fair,
            sync: Sync::Deps,
            work_max,
        }
    }
}

/// How a transfer is cut into messages.
///
/// Each piece is the same part of every chunk, so what one transfer waits for can be told piece by piece, however the
/// chunks of the others are batched. Pieces are numbered from 0, and no byte is lost: of `b` bytes, the first `i` of `P`
/// pieces have `⌊i·b/P⌋`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pieces {
    /// Each transfer is one message.
    Whole,
    /// The fewest pieces of at most this many bytes each, at least one. Zero counts as one.
    AtMost {
        /// Size of the largest piece.
        bytes: u64,
    },
    /// Every transfer has this many pieces, however small. Zero counts as one.
    Count(u32),
}

/// How messages share a link that several need at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// All at once: rates are max-min fair among the messages in flight, and a message of `m` chunks counts `m`, since
    /// it stands for `m` trees.
    Fair,
    /// FIFO: one after the other, in the order in which their first bytes arrive at the link.
    Fifo,
}

/// What a transfer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync<'a> {
    /// The transfers whose data it needs, and no others; but what takes the same route goes in the order of steps, if there are
    /// steps: its first byte is sent when everything of earlier steps on its route has left. So where every route is one link of
    /// its own, transfers are whole and there are no latencies, nothing takes longer than with barriers: by the time of a barrier,
    /// all before it has arrived, and nothing after it is on any link.
    Deps,
    /// Those, and all transfers of smaller step numbers: one number per transfer, as [`step_numbers`](crate::step_numbers)
    /// gives them.
    Steps(&'a [u32]),
}

/// Why a simulation has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SimulateError {
    #[error("the graph has no chunks")]
    Shares(#[from] SharesError),
    #[error("transfer {transfer} {what}; check the graph first")]
    Malformed { transfer: u32, what: &'static str },
    #[error("{found} step numbers for {expected} transfers; give one for each")]
    StepCount { found: usize, expected: usize },
    #[error(
        "transfer {transfer} is in step {step}, but waits for one in step {later}; number steps along the dependencies"
    )]
    StepOrder { transfer: u32, step: u32, later: u32 },
    #[error("size_bytes {size_bytes} puts more than {limit} bytes on the network; use a smaller size")]
    SizeTooLarge { size_bytes: u64, limit: u64 },
    #[error(
        "{messages} messages take more than {limit} units of work; use larger pieces, a smaller size or FIFO links, or \
         raise work_max"
    )]
    TooLarge { messages: u64, limit: u64 },
    #[error("the simulation takes longer than 2^63 picoseconds; use a smaller size or a smaller alpha")]
    TooLong,
    #[error("the rule of the plan {what}")]
    Rule { what: &'static str },
    #[error("stopped before the simulation ended")]
    Stopped,
}
