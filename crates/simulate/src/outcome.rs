//! What a simulation found.

use canopy_schedule::RouteIndex;
use canopy_topology::{LinkIndex, Rank};

/// Times of one run, in picoseconds from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When the last message arrived.
    pub time_ps: u64,
    /// When each rank was done: its last message had arrived or had been sent. By rank; 0 for one that takes no part.
    pub ranks_ps: Vec<u64>,
    /// What each link did, by link.
    pub links: Vec<LinkUse>,
    /// Messages sent.
    pub message_count: u64,
    /// Events, in the sense of [`work_max`](crate::SimulateOptions::work_max) without the computing of shares.
    pub event_count: u64,
    /// The chain of messages that made the run as long as it was, first to last: each started when the one before let it.
    pub critical_path: Vec<Leg>,
}

/// What a link did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkUse {
    /// Time during which a message was on it.
    pub busy_ps: u64,
    /// Bytes it carried.
    pub bytes: u64,
}

/// A message of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// Its transfer, by its position in the graph.
    pub transfer: u32,
    /// The sending rank.
    pub from: Rank,
    /// The receiving rank.
    pub to: Rank,
    /// Which piece of the transfer, from 0.
    pub piece: u32,
    /// Its bytes.
    pub bytes: u64,
    /// When nothing kept it any longer: then it took α, unless that had passed while it waited for its turn.
    pub start_ps: u64,
    /// When its last byte had left the sender.
    pub left_ps: u64,
    /// When its last byte arrived.
    pub end_ps: u64,
    /// What it had waited for.
    pub start: Start,
    /// The link that set its rate when it ended: the fullest of its route (fair), or that where it waited or was sent
    /// longest (FIFO).
    pub link: LinkIndex,
}

/// When a message was on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its transfer, by its position in the graph.
    pub transfer: u32,
    /// The route it took.
    pub route: RouteIndex,
    /// When its first byte could leave: α was over, and it was its turn. Shared links have it from then on until it has left.
    pub launched_ps: u64,
    /// When its last byte had left the sender.
    pub left_ps: u64,
}

/// What let a message start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Nothing: it could start at once.
    AtOnce,
    /// The arrival of the message before it on the path, which brought data or made room for it.
    Data,
    /// The message before it on the path had left: both are pieces of one transfer.
    Piece,
    /// The message before it on the path was the last of its step.
    Step,
    /// The message before it on the path had left, the last of an earlier step on its route.
    Turn,
}

impl Start {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtOnce => "at-once",
            Self::Data => "data",
            Self::Piece => "piece",
            Self::Step => "step",
            Self::Turn => "turn",
        }
    }
}
