//! Weighted trees: the shape of schedules in which data flows without steps.

use std::ops::Range;

use canopy_topology::Rank;

use crate::collective::CollectiveKind;
use crate::route::{RouteIndex, RouteTable};

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

/// The collective of equal shares that phases with these actions make, in which every rank has a share; `None`: none.
pub(crate) fn collective_of(actions: &[Action]) -> Option<CollectiveKind> {
    CollectiveKind::ALL.into_iter().find(|&kind| actions_of(kind) == Some(actions))
}

/// The actions of the phases of a collective in which every rank has a share, in order; `None` for others.
pub const fn actions_of(kind: CollectiveKind) -> Option<&'static [Action]> {
    match kind {
        CollectiveKind::Allgather => Some(&[Action::Copy]),
        CollectiveKind::ReduceScatter => Some(&[Action::Reduce]),
        CollectiveKind::Allreduce => Some(&[Action::Reduce, Action::Copy]),
        _ => None,
    }
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
