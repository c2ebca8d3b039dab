//! Schedules in the shape their synthesizers think in, before they become a transfer graph.

use std::ops::Range;

use canopy_topology::Rank;

use crate::collective::Collective;
use crate::route::{RouteIndex, RouteTable};
use crate::shares::Shares;

/// A schedule for one collective on one topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The collective.
    pub collective: Collective,
    /// Name of the algorithm that made it, as users choose it.
    pub algorithm: String,
    /// Sizes of the ranks' shares, or of the blocks of an all-to-all.
    pub shares: Shares,
    /// Its natural shape.
    pub shape: Shape,
}

/// Natural shapes of schedules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Weighted trees in one or two phases; see [`Forest`].
    Forest(Forest),
    /// Sends in numbered steps; see [`Steps`].
    Steps(Steps),
    /// Weighted paths between pairs of ranks; see [`Flow`].
    Flow(Flow),
}

impl Shape {
    /// Its name in plan files.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Forest(_) => "forest",
            Self::Steps(_) => "steps",
            Self::Flow(_) => "flow",
        }
    }

    /// k: equal chunks of one rank's share; in all-to-all, of one block; for each unit of weight where these differ.
    pub const fn chunks_per_share(&self) -> u64 {
        match self {
            Self::Forest(forest) => forest.chunks_per_share,
            Self::Steps(steps) => steps.chunks_per_share,
            Self::Flow(flow) => flow.chunks_per_share,
        }
    }
}

/// Sends of chunk ranges in numbered steps.
///
/// A send may use what its sender held before the step; all sends of one step may be under way at once. Steps give an
/// order, not a barrier: compiled, a send waits only for what it needs. Chunks are numbered as in
/// [`TransferGraph`](crate::TransferGraph).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// k: equal chunks of one rank's share; in all-to-all, of one block; for each unit of weight where these differ.
    pub chunks_per_share: u64,
    /// How the times of steps add up.
    pub pace: Pace,
    /// Routes that the carriers refer to.
    pub routes: RouteTable,
    /// Carriers of all sends, flat; sends own ranges of this table.
    pub carriers: Vec<Carrier>,
    /// The sends, by increasing step.
    pub sends: Vec<Send>,
}

/// How the time of steps is counted.
///
/// It changes neither the order nor the data, only the time that the schedule is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Pace {
    /// Each step starts when the previous one has ended everywhere.
    #[default]
    Barriers,
    /// Routes are *lanes*: each has an equal part of every link that it passes for itself, and carries what is sent over it in
    /// the order of steps, each as soon as the lane is free and what it waits for has come.
    InTurn,
}

impl Pace {
    /// Its name in plan files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Barriers => "barriers",
            Self::InTurn => "in-turn",
        }
    }
}

/// A send of a chunk range from one rank to another in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Send {
    /// The step, from 0.
    pub step: u32,
    /// What the receiver does with the data.
    pub action: Action,
    /// The sending rank.
    pub from: Rank,
    /// The receiving rank.
    pub to: Rank,
    /// The chunks, not empty, all of one share, or of one block of an all-to-all.
    pub chunks: Range<u64>,
    /// Its carriers in [`Steps::carriers`]: their chunk counts add up to the length of `chunks`.
    pub carriers: Range<u32>,
}

/// Weighted paths from each source to each destination, pipelined: for gather, scatter and all-to-all.
///
/// The paths of one pair take consecutive chunks of what the source has for the destination, in the order of `paths`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// k: equal chunks of one rank's share; in all-to-all, of one block; for each unit of weight where these differ.
    pub chunks_per_share: u64,
    /// Routes that the hops refer to.
    pub routes: RouteTable,
    /// Hops of all paths, flat; paths own ranges of this table. Each hop takes the chunks of its path on one route
    /// between the ranks at the ends of the route.
    pub hops: Vec<RouteIndex>,
    /// The paths, by increasing source, then by increasing destination.
    pub paths: Vec<Path>,
}

/// A part of the data from a source to a destination, and the ranks that it passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The source of the chunks.
    pub source: Rank,
    /// The destination of the chunks.
    pub destination: Rank,
    /// Number of chunks, ≥ 1.
    pub chunk_count: u64,
    /// Its hops in [`Flow::hops`], at least one: rank after rank from the source to the destination.
    pub hops: Range<u32>,
}

/// Weighted trees, pipelined: chunks flow down (or up) every tree without barriers, not even between phases.
///
/// Each rank's share is divided into `chunks_per_share` (k) equal chunks. Trees of one phase and one root take
/// consecutive chunks of the root's share, in the order of `trees`: a tree of multiplicity m takes m. So for each
/// phase and root the multiplicities add up to k.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forest {
    /// k: equal chunks of one rank's share.
    pub chunks_per_share: u64,
    /// Routes that the carriers refer to.
    pub routes: RouteTable,
    /// Carriers of all hops, flat; hops own ranges of this table.
    pub carriers: Vec<Carrier>,
    /// Hops of all trees, flat; trees own ranges of this table.
    pub hops: Vec<Hop>,
    /// Phases, in order: allgather one broadcast, reduce-scatter one reduce, allreduce reduce then broadcast.
    pub phases: Vec<Phase>,
}

/// One direction of a collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Whether data flows away from the roots or towards them.
    pub action: Action,
    /// Trees, by increasing root.
    pub trees: Vec<Tree>,
}

/// What the receiver of a transfer does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Stores it: trees carry data from the root to all ranks.
    Copy,
    /// Adds it to its own: trees carry data from all ranks to the root.
    Reduce,
}

/// A batch of `multiplicity` equal trees on consecutive chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The rank whose share it carries.
    pub root: Rank,
    /// Number of chunks (trees of the article) in the batch, ≥ 1.
    pub multiplicity: u64,
    /// Its hops in [`Forest::hops`], in an order in which data can flow: a broadcast tree lists a rank's incoming
    /// hop before its outgoing ones, a reduce tree all its incoming ones before its outgoing one.
    pub hops: Range<u32>,
}

/// One logical hop of a tree, in the direction of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The sending rank.
    pub from: Rank,
    /// The receiving rank.
    pub to: Rank,
    /// Its carriers in [`Forest::carriers`]: their chunk counts add up to the tree's multiplicity.
    pub carriers: Range<u32>,
}

/// A part of a hop's chunks and the physical route it takes.
///
/// A hop between two ranks may use several parallel routes: the first carrier takes the first `chunk_count` chunks
/// of the tree's range, the next carrier the following ones, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Carrier {
    /// The route.
    pub route: RouteIndex,
    /// Number of chunks on it, ≥ 1.
    pub chunk_count: u64,
}

impl Forest {
    /// Hops of a tree; an empty slice for a range outside the table (the checker reports it).
    pub fn hops_of(&self, tree: &Tree) -> &[Hop] {
        self.hops.get(tree.hops.start as usize..tree.hops.end as usize).unwrap_or_default()
    }

    /// Carriers of a hop; an empty slice for a range outside the table (the checker reports it).
    pub fn carriers_of(&self, hop: &Hop) -> &[Carrier] {
        self.carriers.get(hop.carriers.start as usize..hop.carriers.end as usize).unwrap_or_default()
    }
}

impl Steps {
    /// Carriers of a send; an empty slice for a range outside the table (the compiler reports it).
    pub fn carriers_of(&self, send: &Send) -> &[Carrier] {
        self.carriers.get(send.carriers.start as usize..send.carriers.end as usize).unwrap_or_default()
    }

    /// Number of steps: one more than the last step's number, 0 without sends.
    pub fn step_count(&self) -> u64 {
        self.sends.iter().map(|send| u64::from(send.step) + 1).max().unwrap_or(0)
    }
}

impl Flow {
    /// Hops of a path; an empty slice for a range outside the table (the compiler reports it).
    pub fn hops_of(&self, path: &Path) -> &[RouteIndex] {
        self.hops.get(path.hops.start as usize..path.hops.end as usize).unwrap_or_default()
    }
}
