//! Exchanges between boxes in stages: a rule of a few numbers, and what differs from it, instead of a tree for each
//! rank.
//!
//! A plan for N ranks with a tree for each root has N² hops. Machines made of boxes need none of them. Boxes are
//! numbered by digits. In the stage of a digit each box sends all that it holds, its *run*, to each box that differs
//! from it in that digit alone, in pieces: one for each place, over the NIC of that place. What enters a box is spread
//! in it by the rank where it enters. After all stages each rank has everything, each NIC has carried what a cut around
//! its box demands, and a rank has had Σ (digit − 1) peers outside its box instead of all boxes but one.
//!
//! Where NICs are almost as fast as the box, spreading takes longer than the NICs do. All ranks of the box have its run,
//! so part of it may go *in the box first*: it was spread where it is, each place then sends all of that part to the same
//! place of the other box, and nothing is left to spread there. Each chunk of it costs P − 1 hops in the box less, and
//! P − 1 hops over NICs more.

mod boxes;
mod far;
mod lanes;
mod nics;
mod pieces;
mod program;
mod trees;
mod ways;

use std::collections::BTreeMap;

use crate::collective::CollectiveKind;
use crate::forest::{Action, collective_of};

pub use boxes::{BoxGrid, NOBODY, SeatError, Seating, Seats};
pub(crate) use nics::Nics;
pub use pieces::{Exchange, Pieces};
pub use program::{Move, ProgramError, ProgramPhase, ProgramStep, RankProgram};
pub use trees::TreesError;
pub use ways::{Way, Ways};

/// An allgather, a reduce-scatter or an allreduce as an exchange between boxes, pipelined.
///
/// Shares are equal, of `chunks_per_share` (k) chunks. The chunks of a run are numbered by box, then by place, then by
/// chunk of the share; pieces take consecutive chunks, in their order. A reduce-scatter is the same backwards: every
/// transfer the other way round, over links of the other direction, and the last first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stages {
    /// k: equal chunks of one rank's share.
    pub chunks_per_share: u64,
    /// One for each phase, in order: copy for an allgather, reduce for a reduce-scatter, both for an allreduce.
    pub actions: Vec<Action>,
    /// Which rank is where.
    pub grid: BoxGrid,
    /// How boxes spread what enters them, by class; boxes that `classes` does not name are of the first.
    pub inside: Vec<Inside>,
    /// Classes of other boxes.
    pub classes: BTreeMap<u32, u32>,
    /// By stage: so many chunks of each run, its first, go in the box first; none in stages beyond the list. Each place
    /// sends them to the same place of the other box, and pieces carry the others. Only where each rank of the
    /// receiving box has one at its place in the box that sends, and no pieces are stated for the pair; runs with fewer
    /// chunks go whole.
    pub inside_first: Vec<u64>,
    /// Pieces of pairs of boxes that do not exchange equal ones, by the box that holds the run, and the one that gets
    /// it. They differ in one digit, which is that of the stage.
    pub exceptions: BTreeMap<(u32, u32), Vec<Piece>>,
}

/// How a box spreads what enters it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inside {
    /// The rank where it enters sends it to each other one.
    Star,
    /// Along trees.
    Trees(Vec<BoxTree>),
}

/// A tree that spans the ranks of a box.
///
/// What enters at the root, and the root's own share, is counted in the order in which it comes. Trees of one root take
/// turns in their order: each as many chunks as its multiplicity, then the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxTree {
    /// The place where it begins.
    pub root: u32,
    /// Chunks that it takes in each turn, ≥ 1.
    pub multiplicity: u64,
    /// Places from and to, a place's incoming hop before its outgoing ones.
    pub hops: Vec<(u32, u32)>,
}

/// A part of a run on its way to one box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The box that sends it: one that has the run.
    pub sender: u32,
    /// The place there that sends it.
    pub leaves: u32,
    /// The place that receives it.
    pub enters: u32,
    /// Number of chunks, ≥ 1.
    pub chunk_count: u64,
}

impl Stages {
    /// The collective that its phases make; `None`: none.
    pub fn kind(&self) -> Option<CollectiveKind> {
        collective_of(&self.actions)
    }

    /// How a box spreads what enters it; `None` for a class that is not stated.
    pub fn inside_of(&self, of_box: u32) -> Option<&Inside> {
        self.inside.get(self.classes.get(&of_box).copied().unwrap_or(0) as usize)
    }
}
