//! What the command and its ranks say to each other: one JSON object on a line, over a connection for each rank, or
//! through the helper of each host.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::data::ElementType;

/// What a rank says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromRank {
    /// The first line: who it is, by the word the command gave it, and the port at which others reach it.
    Hello { token: String, rank: u32, port: u16 },
    /// It is connected to all ranks it deals with, and its buffers are filled.
    Ready,
    /// An instance waits for all ranks.
    Barrier { instance: u32 },
    /// It is through.
    Done(Done),
    /// It gives up.
    Failed { message: String },
}

/// What a rank did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Done {
    /// From the start to the end of its last step.
    pub(super) nanos: u64,
    /// Messages it sent.
    pub(super) messages: u64,
    /// Bytes of data it sent.
    pub(super) bytes: u64,
    /// The first element of its output that is wrong.
    pub(super) first_wrong: Option<u64>,
}

/// What a rank is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToRank {
    /// What to do.
    Job(Job),
    /// All are ready.
    Start,
    /// All ranks are at the barrier that an instance waits at.
    Go { instance: u32 },
    /// Nobody needs it any more.
    End,
}

/// What all ranks need to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Job {
    /// The plan, as oneCCL XML.
    pub(super) plan: String,
    /// Per share, or of the message where there are none.
    pub(super) elements: u64,
    pub(super) element: ElementType,
    pub(super) seed: u64,
    /// Longest pause before each step, drawn by chance.
    pub(super) delay_max: Duration,
    /// Where each rank is reached: a host's name or address, and a port.
    pub(super) places: Vec<(String, u16)>,
}

/// What a host's helper is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToHost {
    /// To start these ranks, which know each other by the word.
    Start { token: String, ranks: Vec<u32> },
    /// To tell them all something.
    Tell(Box<ToRank>),
}

/// What a host's helper says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromHost {
    /// The first line: which version it is.
    Hello { version: String },
    /// All its ranks run and are reached at these ports.
    Started { ports: Vec<(u32, u16)> },
    /// What a rank said.
    Said { rank: u32, said: FromRank },
    /// A rank, or the helper, gives up; whether the reason lies on this host.
    Failed { message: String, is_cause: bool },
}
