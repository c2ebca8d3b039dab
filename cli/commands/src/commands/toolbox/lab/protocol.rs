//! What the command, its helper inside the lab and the ranks say to each other: one JSON object on a line, over pipes.

use canopy_lab::{Command, RankProgram};
use serde::{Deserialize, Serialize};

use super::mpi::{MpiJob, MpiTime};

/// What the command asks of its helper in the lab.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Run these, one after the other.
    Commands(Vec<Command>),
    /// Start a process for each rank, in the namespace of its number, and connect them; those before end.
    Ranks(Vec<RankProgram>),
    /// Let all ranks do their program once.
    Run,
    /// Bytes that left through each device of the first nodes so far.
    Counters { node_count: usize },
    /// Let an MPI program do a collective.
    Mpi(Box<MpiJob>),
}

/// What the helper answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The namespaces are there.
    Inside {
        has_cubic: bool,
    },
    Done,
    Ran(Ran),
    Counters(Vec<Counter>),
    Mpi(Vec<MpiTime>),
    Failed {
        message: String,
        help: Option<String>,
    },
}

/// One run of all ranks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Ran {
    /// From the common start to the last byte that came.
    pub(super) nanos: u64,
    /// Words of all results that are wrong.
    pub(super) wrong_words: u64,
    /// Processor time of all ranks.
    pub(super) processor_ns: u64,
}

/// What left through a device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Counter {
    pub(super) node: usize,
    /// Such as `v3`.
    pub(super) device: String,
    pub(super) bytes: u64,
    pub(super) drops: u64,
}

/// Orders to a rank.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToRank {
    Program(Box<RankProgram>),
    /// All ranks listen.
    Connect,
    /// Fill the memory.
    Prepare,
    /// Begin at this time of the machine's steady clock.
    Go {
        at_ns: u64,
    },
}

/// What a rank says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromRank {
    Listening,
    Connected,
    Prepared,
    Ran {
        /// When the last byte came, by the machine's steady clock.
        end_ns: u64,
        wrong_words: u64,
        processor_ns: u64,
    },
    Failed {
        message: String,
    },
}
