//! An MSCCL file in memory: exactly what the text says, nothing derived.
//!
//! A program may be nonsense; only [`prove`](super::prove) says whether it is right.

use std::fmt;

use canopy_schedule::CollectiveKind;

/// One algorithm for one collective on one number of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Label; empty where the file has none, which some runtimes do not mind.
    pub name: String,
    /// Wire protocol.
    pub protocol: Protocol,
    /// `nchannels`.
    pub channel_count: u32,
    /// `nchunksperloop`: chunks of the whole message.
    pub chunk_count: u32,
    /// `ngpus`.
    pub rank_count: u32,
    /// `coll`.
    pub purpose: Purpose,
    /// `inplace`: input and output share memory.
    pub in_place: bool,
    /// `outofplace`, where the file says it.
    pub out_of_place: Option<bool>,
    /// `minBytes`, where the file says it.
    pub bytes_min: Option<u64>,
    /// `maxBytes` as written, where the file says it; whether it is inclusive is the profile's business.
    pub bytes_max: Option<u64>,
    /// `nthreads`, where the file says it.
    pub thread_count: Option<u32>,
    /// What each rank does, in file order.
    pub ranks: Vec<RankProgram>,
}

/// What a file is for (`coll`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// A collective, which promises what every rank ends with.
    Collective(CollectiveKind),
    /// A word of the runtime that promises nothing a file could be judged by, such as `custom`.
    Unjudged(&'static str),
}

impl Purpose {
    /// The collective, where there is one.
    pub const fn collective(self) -> Option<CollectiveKind> {
        match self {
            Self::Collective(kind) => Some(kind),
            Self::Unjudged(_) => None,
        }
    }

    /// canopy's name of the collective, or the runtime's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Collective(kind) => kind.name(),
            Self::Unjudged(word) => word,
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What one rank does (`<gpu>`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankProgram {
    /// The rank.
    pub rank: u32,
    /// `i_chunks`; 0 where the input buffer is not addressed.
    pub input_chunks: u32,
    /// `o_chunks`; 0 where the output buffer is not addressed.
    pub output_chunks: u32,
    /// `s_chunks`.
    pub scratch_chunks: u32,
    /// Its thread blocks, in file order.
    pub thread_blocks: Vec<ThreadBlock>,
}

impl RankProgram {
    /// Chunks of a buffer.
    pub(crate) const fn chunks_of(&self, buffer: Buffer) -> u32 {
        match buffer {
            Buffer::Input => self.input_chunks,
            Buffer::Output => self.output_chunks,
            Buffer::Scratch => self.scratch_chunks,
        }
    }
}

/// Steps that run strictly one after the other (`<tb>`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadBlock {
    /// Its id within the rank.
    pub id: u32,
    /// The only rank it may send to.
    pub send: Option<u32>,
    /// The only rank it may receive from.
    pub receive: Option<u32>,
    /// Channel of both connections.
    pub channel: u32,
    /// Its steps.
    pub steps: Vec<Step>,
}

/// One operation on a range of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// `s` as written.
    pub index: u32,
    /// What is done.
    pub operation: Operation,
    /// Where it reads; also given where the operation reads nothing.
    pub source: Chunks,
    /// Where it writes; also given where the operation writes nothing.
    pub destination: Chunks,
    /// Contiguous chunks moved.
    pub chunk_count: u32,
    /// Block of the same rank that must have finished `wait_step` (`depid`).
    pub wait_block: Option<u32>,
    /// Step of `wait_block` (`deps`).
    pub wait_step: Option<u32>,
    /// Whether its completion is published (`hasdep`).
    pub is_awaited: bool,
}

/// Start of a range of chunks in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// The buffer.
    pub buffer: Buffer,
    /// First chunk; `None` is written `-1` and means unused.
    pub offset: Option<u32>,
}

/// A rank's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Buffer {
    /// The caller's send buffer.
    Input,
    /// The caller's receive buffer.
    Output,
    /// Memory the runtime allocates.
    Scratch,
}

impl Buffer {
    /// All buffers.
    const ALL: [Self; 3] = [Self::Input, Self::Output, Self::Scratch];

    /// The buffer of a letter in files, if it is one.
    pub(crate) fn read(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|buffer| buffer.letter() == letter)
    }

    /// The letter in files.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Input => "i",
            Self::Output => "o",
            Self::Scratch => "s",
        }
    }
}

/// NCCL wire protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Large transfers, fences between them.
    Simple,
    /// Flag beside every word.
    Ll,
    /// Flag beside every 120 bytes.
    Ll128,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 3] = [Self::Simple, Self::Ll, Self::Ll128];

    /// The word in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simple => "Simple",
            Self::Ll => "LL",
            Self::Ll128 => "LL128",
        }
    }
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Sends the source.
    Send,
    /// Receives into the destination.
    Receive,
    /// Receives, stores in the destination and forwards.
    ReceiveCopySend,
    /// Receives, reduces with the source and forwards; stores nothing.
    ReceiveReduceSend,
    /// Receives, reduces with the source and stores in the destination.
    ReceiveReduceCopy,
    /// Receives, reduces with the source, stores in the destination and forwards.
    ReceiveReduceCopySend,
    /// Copies the source to the destination.
    Copy,
    /// Reduces the source into the destination.
    Reduce,
    /// Only waits.
    Nop,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 9] = [
        Self::Send,
        Self::Receive,
        Self::ReceiveCopySend,
        Self::ReceiveReduceSend,
        Self::ReceiveReduceCopy,
        Self::ReceiveReduceCopySend,
        Self::Copy,
        Self::Reduce,
        Self::Nop,
    ];

    /// The word in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "s",
            Self::Receive => "r",
            Self::ReceiveCopySend => "rcs",
            Self::ReceiveReduceSend => "rrs",
            Self::ReceiveReduceCopy => "rrc",
            Self::ReceiveReduceCopySend => "rrcs",
            Self::Copy => "cpy",
            Self::Reduce => "re",
            Self::Nop => "nop",
        }
    }

    /// Whether it takes data from the block's receive peer.
    pub const fn receives(self) -> bool {
        matches!(
            self,
            Self::Receive
                | Self::ReceiveCopySend
                | Self::ReceiveReduceSend
                | Self::ReceiveReduceCopy
                | Self::ReceiveReduceCopySend
        )
    }

    /// Whether it gives data to the block's send peer.
    pub const fn sends(self) -> bool {
        matches!(self, Self::Send | Self::ReceiveCopySend | Self::ReceiveReduceSend | Self::ReceiveReduceCopySend)
    }

    /// Whether it reads its source.
    pub const fn reads_source(self) -> bool {
        matches!(
            self,
            Self::Send
                | Self::ReceiveReduceSend
                | Self::ReceiveReduceCopy
                | Self::ReceiveReduceCopySend
                | Self::Copy
                | Self::Reduce
        )
    }

    /// Whether it writes its destination.
    pub const fn writes_destination(self) -> bool {
        !matches!(self, Self::Send | Self::ReceiveReduceSend | Self::Nop)
    }

    /// Whether what it stores or forwards is a sum.
    pub const fn reduces(self) -> bool {
        matches!(self, Self::ReceiveReduceSend | Self::ReceiveReduceCopy | Self::ReceiveReduceCopySend | Self::Reduce)
    }
}

/// Where a rank's buffers lie in one array of chunks, so that in-place programs share cells as the caller's do.
///
/// Out of place the three buffers are disjoint. In place allreduce, all-to-all, broadcast and reduce have one buffer
/// for both; allgather's and gather's `i[k]` is `o[r·s + k]` with shares of `s` chunks; reduce-scatter's and scatter's
/// `o[k]` is `i[r·s + k]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    input_base: u64,
    output_base: u64,
    scratch_base: u64,
    cell_count: u64,
}

impl Memory {
    /// Lays out the buffers of one rank.
    pub(crate) fn new(program: &Program, rank: &RankProgram) -> Self {
        use CollectiveKind::{Allgather, Gather, ReduceScatter, Scatter};
        let own = u64::from(rank.rank) * u64::from(share_chunks(program));
        let (input, output) = expected_chunks(program, rank);
        let (input, output) = (u64::from(input), u64::from(output));
        let (input_base, output_base, shared) = match program.purpose.collective() {
            _ if !program.in_place => (0, input, input + output),
            Some(Allgather | Gather) => (own, 0, output),
            Some(ReduceScatter | Scatter) => (0, own, input),
            _ => (0, 0, input.max(output)),
        };
        let scratch = u64::from(rank.scratch_chunks);
        Self { input_base, output_base, scratch_base: shared, cell_count: shared + scratch }
    }

    /// Cells in all.
    pub(crate) const fn cell_count(&self) -> u64 {
        self.cell_count
    }

    /// Cell of a chunk of a buffer.
    pub(crate) const fn cell(&self, buffer: Buffer, offset: u64) -> u64 {
        offset
            + match buffer {
                Buffer::Input => self.input_base,
                Buffer::Output => self.output_base,
                Buffer::Scratch => self.scratch_base,
            }
    }
}

/// Chunks of one rank's share, in all-to-all of one block; of the whole message where the collective knows no shares.
///
/// The runtimes multiply the count of a call by the number of ranks for allgather, reduce-scatter and all-to-all only,
/// so `nchunksperloop` of a gather or scatter counts the chunks of one share.
pub(crate) fn share_chunks(program: &Program) -> u32 {
    match program.purpose.collective() {
        Some(CollectiveKind::Allgather | CollectiveKind::ReduceScatter | CollectiveKind::AllToAll) => {
            program.chunk_count / program.rank_count.max(1)
        }
        _ => program.chunk_count,
    }
}

/// Chunks of a rank's input and output buffers that the collective implies; what the file states where its word
/// implies nothing.
pub(crate) fn expected_chunks(program: &Program, rank: &RankProgram) -> (u32, u32) {
    let (chunks, share) = (program.chunk_count, share_chunks(program));
    let gathered = chunks.saturating_mul(program.rank_count);
    match program.purpose {
        Purpose::Collective(CollectiveKind::Allgather) => (share, chunks),
        Purpose::Collective(CollectiveKind::ReduceScatter) => (chunks, share),
        Purpose::Collective(CollectiveKind::Gather) => (share, gathered),
        Purpose::Collective(CollectiveKind::Scatter) => (gathered, share),
        Purpose::Collective(_) => (chunks, chunks),
        Purpose::Unjudged(_) => (rank.input_chunks, rank.output_chunks),
    }
}

/// Whether a rank's caller gives it a buffer at all: gather and reduce fill the output of their root only, scatter reads
/// the input of its root only, and elsewhere callers may pass nothing. The root is rank 0, as a file names none.
pub(crate) fn has_buffer(program: &Program, rank: u32, buffer: Buffer) -> bool {
    match (program.purpose.collective(), buffer) {
        (Some(CollectiveKind::Gather), Buffer::Output) | (Some(CollectiveKind::Scatter), Buffer::Input) => rank == 0,
        // In place the one buffer has both names.
        (Some(CollectiveKind::Reduce), Buffer::Output) => rank == 0 || program.in_place,
        _ => true,
    }
}
