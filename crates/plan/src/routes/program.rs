//! A route plan in memory: exactly what the text says, nothing derived.
//!
//! A program may be nonsense; only [`prove`](super::prove()) says whether it is right.

use std::ops::Range;

use canopy_schedule::{Collective, CollectiveKind};
use canopy_topology::Rate;

/// Queue pairs for one collective on one network (`<routeplan>`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Label: 1 to 63 letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// `coll` and `root`.
    pub collective: Collective,
    /// `nranks`.
    pub rank_count: u32,
    /// `blockchunks`: chunks of what one rank has for another; where shares are weighted, of one of weight 1.
    pub block_chunks: u32,
    /// `nlayers`.
    pub layer_count: u32,
    /// `maxroutes`: most queue pairs of one rank to another.
    pub routes_max: u32,
    /// `algbw`: bytes per second in the bandwidth limit.
    pub algbw: Rate,
    /// `minbytes`, inclusive.
    pub bytes_min: u64,
    /// `maxbytes`, inclusive.
    pub bytes_max: u64,
    /// The network's nodes with their ports, in file order.
    pub nodes: Vec<Node>,
    /// What each rank sends, in file order.
    pub ranks: Vec<RankProgram>,
}

/// A node of the network (`<node>`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// `id` as written.
    pub id: u32,
    /// Its name in the topology: at most 1024 characters, none of them a control character.
    pub name: String,
    /// What it does.
    pub role: Role,
    /// Its ports, in file order.
    pub ports: Vec<Port>,
}

/// What a node does (`kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Holds a rank, and forwards.
    Rank,
    /// A switch.
    Switch,
    /// A compute device that only forwards.
    Forwarder,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rank, Self::Switch, Self::Forwarder];

    /// The word in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rank => "rank",
            Self::Switch => "switch",
            Self::Forwarder => "forwarder",
        }
    }
}

/// Where a link leaves a node (`<port>`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// `id` as written.
    pub id: u32,
    /// The node that it leads to.
    pub to: u32,
    /// Which of the links there it is.
    pub parallel: u32,
    /// Bytes per second.
    pub rate: u64,
}

/// What one rank sends (`<rank>`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankProgram {
    /// The rank.
    pub rank: u32,
    /// `i_chunks`.
    pub input_chunks: u32,
    /// `o_chunks`.
    pub output_chunks: u32,
    /// Its queue pairs, in file order.
    pub queue_pairs: Vec<QueuePair>,
    /// Ports of all of them, flat.
    pub ports: Vec<u32>,
}

/// A connection to another rank over one route, and the chunks that are posted on it (`<qp>`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePair {
    /// `id` as written.
    pub id: u32,
    /// The receiving rank.
    pub destination: u32,
    /// Virtual channel.
    pub layer: u32,
    /// Where its egress ports, node after node from the source, lie in [`RankProgram::ports`].
    pub ports: Range<u32>,
    /// `i_off`: the first of its chunks in the source's input.
    pub input_first: u32,
    /// `o_off`: where that goes in the destination's output.
    pub output_first: u32,
    /// How many there are.
    pub chunk_count: u32,
}

impl Program {
    /// Its collective, where all shares are of one size.
    pub fn equal_shares(&self) -> Option<Collective> {
        let share = |rank: &RankProgram| match self.collective.kind() {
            CollectiveKind::Gather => rank.input_chunks,
            CollectiveKind::Scatter => rank.output_chunks,
            _ => self.block_chunks,
        };
        self.ranks.iter().all(|rank| share(rank) == self.block_chunks).then_some(self.collective)
    }
}

impl RankProgram {
    /// Egress ports of a queue pair; none for a range outside the table.
    pub fn ports_of(&self, pair: &QueuePair) -> &[u32] {
        self.ports.get(pair.ports.start as usize..pair.ports.end as usize).unwrap_or_default()
    }
}
