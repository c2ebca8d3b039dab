//! Schedules in the shape their synthesizers think in, before they become a transfer graph.

use std::ops::Range;

use canopy_topology::Rank;

use crate::collective::Collective;
use crate::forest::{Action, Carrier, Forest};
use crate::orbits::Orbits;
use crate::route::{RouteIndex, RouteTable};
use crate::shares::Shares;
use crate::stages::Stages;

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
    /// An exchange between boxes by a rule; see [`Stages`].
    Stages(Stages),
    /// Trees of one rank that symmetries move to all others; see [`Orbits`].
    Orbits(Orbits),
}

impl Shape {
    /// Its name in plan files.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Forest(_) => "forest",
            Self::Steps(_) => "steps",
            Self::Flow(_) => "flow",
            Self::Stages(_) => "stages",
            Self::Orbits(_) => "orbits",
        }
    }

    /// k: equal chunks of one rank's share; in all-to-all, of one block; for each unit of weight where these differ.
    pub const fn chunks_per_share(&self) -> u64 {
        match self {
            Self::Forest(forest) => forest.chunks_per_share,
            Self::Steps(steps) => steps.chunks_per_share,
            Self::Flow(flow) => flow.chunks_per_share,
            Self::Stages(stages) => stages.chunks_per_share,
            Self::Orbits(orbits) => orbits.chunks_per_share,
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
