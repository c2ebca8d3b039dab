//! An execution plan in memory: exactly what the text says, nothing derived.
//!
//! A plan may be nonsense; only [`prove_execution_plan`](super::prove_execution_plan) says whether it is right.

use crate::msccl::Buffer;

/// One plan for all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionPlan {
    /// Label.
    pub name: String,
    /// What the plan is for, in the runtime's words. Any word is loaded; only some promise a result.
    pub collective: String,
    /// `LL` doubles scratch for packets; every other word means `Simple`.
    pub is_ll: bool,
    /// Input and output share memory.
    pub in_place: bool,
    /// One scratch of 64 MiB is shared by all plans.
    pub reuse_resources: bool,
    /// Launches alternate between two halves of scratch.
    pub double_scratch: bool,
    /// Chunk boundaries are multiples of this many bytes.
    pub alignment_bytes: u64,
    /// Threads of a block.
    pub threads_per_block: u64,
    /// `min_message_size` as written, in bytes.
    pub bytes_min: u64,
    /// `max_message_size` as written, in bytes; whether it is inclusive is the profile's business.
    pub bytes_max: u64,
    /// What each rank does, in file order.
    pub ranks: Vec<ExecutionRank>,
}

/// What one rank does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionRank {
    /// The rank as written; it must be the position in the list.
    pub id: u32,
    /// Chunks of the input buffer.
    pub input_chunks: u32,
    /// Chunks of the output buffer.
    pub output_chunks: u32,
    /// Chunks of scratch.
    pub scratch_chunks: u32,
    /// Its channels: entries of one type are concatenated.
    pub channels: Vec<RankChannels>,
    /// Buffers of other ranks that it reads or writes.
    pub remote_buffers: Vec<RemoteBuffer>,
    /// Initial values of its device semaphores.
    pub semaphores: Vec<u32>,
    /// Its thread blocks, in file order.
    pub blocks: Vec<ExecutionBlock>,
}

impl ExecutionRank {
    /// Its multicast channels, each with the buffer that it is over; entries are concatenated.
    pub(super) fn switch_groups(&self) -> impl Iterator<Item = (Buffer, &SwitchGroup)> {
        let of = |entry| match entry {
            &RankChannels::Switch { buffer, ref groups } => Some(groups.iter().map(move |group| (buffer, group))),
            RankChannels::Peers { .. } => None,
        };
        self.channels.iter().filter_map(of).flatten()
    }
}

/// Channels of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RankChannels {
    /// Channels to single peers.
    Peers {
        /// Memory or port.
        is_port: bool,
        /// The peer of each channel; one that is repeated has several.
        peers: Vec<u32>,
    },
    /// Multicast over one of the buffers.
    Switch {
        /// The buffer that all members map.
        buffer: Buffer,
        /// The channels.
        groups: Vec<SwitchGroup>,
    },
}

/// One multicast channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchGroup {
    /// Chunks of the buffer that are mapped.
    pub size: u32,
    /// Its members.
    pub ranks: Vec<u32>,
}

/// A buffer of another rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteBuffer {
    /// The owner.
    pub rank: u32,
    /// Which of its buffers.
    pub buffer: Buffer,
    /// How it is reached.
    pub access: Vec<ChannelType>,
}

/// How a channel moves data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChannelType {
    /// Loads and stores through memory that is mapped from a peer.
    Memory,
    /// A proxy thread, over a network or a copy engine.
    Port,
    /// Multicast and reduction in a switch.
    Switch,
}

impl ChannelType {
    /// All types.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Port, Self::Switch];

    /// The word in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Port => "port",
            Self::Switch => "switch",
        }
    }
}

/// Operations that run one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionBlock {
    /// Its number as written; it must be the position in the list.
    pub id: u32,
    /// Numbers of the rank's channels, by type: operations name positions in these lists.
    pub channels: Vec<(ChannelType, Vec<u32>)>,
    /// Numbers of the rank's remote buffers, by type of access: operations name positions in these lists.
    pub remote_buffers: Vec<(ChannelType, Vec<u32>)>,
    /// The operations.
    pub operations: Vec<ExecutionOp>,
}

impl ExecutionBlock {
    /// The rank's numbers of the block's channels of a type.
    pub(super) fn channels_of(&self, of: ChannelType) -> impl Iterator<Item = u32> {
        self.channels.iter().filter(move |(kind, _)| *kind == of).flat_map(|(_, ids)| ids.iter().copied())
    }

    /// The rank's numbers of the block's remote buffers of a type of access.
    pub(super) fn remotes_of(&self, of: ChannelType) -> impl Iterator<Item = u32> {
        self.remote_buffers.iter().filter(move |(kind, _)| *kind == of).flat_map(|(_, ids)| ids.iter().copied())
    }
}

/// One operation. Lists that an operation has no use for are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionOp {
    /// What is done.
    pub name: OpName,
    /// What is read.
    pub sources: Vec<ChunkRef>,
    /// What is written.
    pub targets: Vec<ChunkRef>,
    /// Type of the channels; `None` if there are no channels.
    pub channel_type: Option<ChannelType>,
    /// Positions in the block's list of channels of that type.
    pub channels: Vec<u32>,
    /// Position and number of blocks that share the operation, each with a slice of every reference.
    pub slice: Option<(u32, u32)>,
    /// Number of the barrier, and of blocks that meet there.
    pub barrier: Option<(u32, u32)>,
    /// Device semaphores.
    pub semaphores: Vec<u32>,
    /// What is repeated.
    pub pipeline: Option<Pipeline>,
    /// `reduce_op`, which the runtime ignores: everything is summed.
    pub reduce_op: Option<String>,
}

impl ExecutionOp {
    /// An operation without any operands.
    pub const fn new(name: OpName) -> Self {
        Self {
            name,
            sources: Vec::new(),
            targets: Vec::new(),
            channel_type: None,
            channels: Vec::new(),
            slice: None,
            barrier: None,
            semaphores: Vec::new(),
            pipeline: None,
            reduce_op: None,
        }
    }

    /// What it repeats, if that is what it does.
    pub(super) fn repeated(&self) -> Option<&Pipeline> {
        self.pipeline.as_ref().filter(|_| self.name == OpName::Pipeline)
    }
}

/// Operations that are repeated until all of a message has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// Bytes of one iteration.
    pub unit_bytes: u64,
    /// Chunks that pass.
    pub chunk_count: u32,
    /// What is repeated.
    pub operations: Vec<ExecutionOp>,
}

/// A range of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRef {
    /// Whose and which buffer.
    pub place: RefPlace,
    /// First chunk.
    pub index: u32,
    /// Number of chunks.
    pub size: u32,
}

/// Where a range of chunks lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefPlace {
    /// A buffer of the rank itself.
    Local(Buffer),
    /// Position in the block's list of remote buffers, for the operation's type of channel.
    Remote(u32),
    /// Position in the block's list of switch channels.
    Switch(u32),
}

macro_rules! op_names {
    ($($variant:ident $word:literal $doc:literal,)*) => {
        /// What an operation does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum OpName {
            $(#[doc = $doc] $variant,)*
        }

        impl OpName {
            /// All operations.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The word in files.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

op_names! {
    Nop "nop" "Synchronises the threads of the block.",
    Barrier "barrier" "Synchronises blocks of the rank.",
    Signal "signal" "Signals on every channel, after all earlier operations.",
    RelaxedSignal "rlxsignal" "Signals on every channel, without a memory fence.",
    Wait "wait" "Waits for one signal on every channel.",
    RelaxedWait "rlxwait" "Waits for one signal on every channel, without a memory fence.",
    Flush "flush" "Should wait for puts, but does nothing in the current runtimes.",
    Copy "copy" "Copies between buffers of the rank.",
    Put "put" "Writes to other ranks.",
    PutSignal "pws" "Writes and signals.",
    PutSignalFlush "pwsf" "Writes, signals, and waits until the source can be reused.",
    Get "get" "Reads from another rank.",
    Reduce "re" "Sums buffers of the rank.",
    ReduceSend "res" "Sums buffers of the rank and writes the result to other ranks, too.",
    ReadReduce "rre" "Adds what it reads from other ranks.",
    ReadReduceSend "rres" "Adds what it reads from other ranks and writes the result to them.",
    PutPackets "ppkt" "Writes packets.",
    ReadPutPackets "rppkt" "Forwards packets.",
    CopyPackets "cpkt" "Copies into packets of the rank.",
    UnpackPackets "upkt" "Unpacks packets of the rank.",
    ReducePackets "repkt" "Adds packets.",
    ReduceSendPackets "respkt" "Adds packets and writes the result as packets.",
    ReduceCopyPackets "recpkt" "Adds packets and keeps the result as packets, too.",
    ReduceCopySendPackets "recspkt" "Adds packets, keeps the result as packets and writes it as packets.",
    GroupReduceStore "glres" "Sums over a group in the switch and stores the result at all members.",
    GroupStore "gstore" "Stores at all members of a group.",
    GroupStorePackets "gstorepkt" "Stores packets at all members of a group.",
    SemaphoreAcquire "sem_acquire" "Acquires device semaphores.",
    SemaphoreRelease "sem_release" "Releases device semaphores.",
    Pipeline "pipeline" "Repeats operations.",
}

impl OpName {
    /// Whether it sums.
    pub const fn reduces(self) -> bool {
        matches!(
            self,
            Self::Reduce
                | Self::ReduceSend
                | Self::ReadReduce
                | Self::ReadReduceSend
                | Self::ReducePackets
                | Self::ReduceSendPackets
                | Self::ReduceCopyPackets
                | Self::ReduceCopySendPackets
                | Self::GroupReduceStore
        )
    }

    /// Whether it reads or writes packets.
    pub const fn uses_packets(self) -> bool {
        matches!(
            self,
            Self::PutPackets
                | Self::ReadPutPackets
                | Self::CopyPackets
                | Self::UnpackPackets
                | Self::ReducePackets
                | Self::ReduceSendPackets
                | Self::ReduceCopyPackets
                | Self::ReduceCopySendPackets
                | Self::GroupStorePackets
        )
    }
}
