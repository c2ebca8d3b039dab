//! Orbit forests: trees of one rank, and a group of symmetries that makes the trees of all others of them.
//!
//! A network that looks alike from every rank, such as a torus, needs no tree for each rank: moved along with its root,
//! one tree serves all. Ranks that the group moves to each other are an *orbit*; each orbit states the trees of one of
//! its ranks. Where links or ranks are missing, *patches* state other parents in the trees that met them.

mod trees;

use std::collections::BTreeMap;

use canopy_topology::Rank;

use crate::collective::CollectiveKind;
use crate::forest::{Action, collective_of};
use crate::stages::{BoxGrid, SeatError, Seating, Seats};

pub use trees::ExpansionError;

/// An allgather, a reduce-scatter or an allreduce along trees that symmetries make of a few, pipelined.
///
/// The group acts on the *healthy* network: on seats `0 … seat_count − 1`, each of which has a rank or has lost it, and
/// on the switches behind them, in their order in the topology. Shares are equal, of `chunks_per_share` (k) chunks.
/// Templates of one root take consecutive chunks of its share, in their order, as many as their weights say. A
/// reduce-scatter is the same backwards: every hop the other way round, over links of the other direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orbits {
    /// k: equal chunks of one rank's share.
    pub chunks_per_share: u64,
    /// One for each phase, in order: copy for an allgather, reduce for a reduce-scatter, both for an allreduce.
    pub actions: Vec<Action>,
    /// Ranks of the healthy network, lost ones included.
    pub seat_count: u32,
    /// The ranks on the seats.
    pub seats: Seats,
    /// Generators of the group. They commute, and the product of their orders is the number of seats of each orbit.
    pub generators: Vec<Generator>,
    /// Trees of one seat of each orbit. Those of one seat follow each other, and their weights add up to k.
    pub templates: Vec<Template>,
    /// Other parents in some trees.
    pub patches: Vec<Patch>,
}

/// A symmetry of the healthy network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generator {
    /// Applied this often, it moves nothing; ≥ 2.
    pub order: u32,
    /// Where it moves nodes.
    pub motion: Motion,
}

/// Where a symmetry moves nodes: seats by number, then switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Motion {
    /// Digits of numbers turn. Nodes in no range stay; one in several ranges moves as the first of them says.
    Turns(Vec<Turn>),
    /// The image of each node.
    Table(Vec<u32>),
}

/// One digit of the numbers of a range of nodes turns: `(node − first) / unit % size` grows by `step`, modulo `size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The first node of the range.
    pub first: u32,
    /// Number of nodes, a multiple of `unit · size`.
    pub count: u32,
    /// Product of the sizes of lower digits, ≥ 1.
    pub unit: u32,
    /// Values of the digit, ≥ 1.
    pub size: u32,
    /// What is added.
    pub step: u32,
}

/// A tree of one root, which the group moves to all others of its orbit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The seat where it begins.
    pub root: u32,
    /// Chunks that it takes, ≥ 1.
    pub weight: u64,
    /// By seat, the seat that it gets the chunks from; the root names itself.
    pub parents: Vec<u32>,
    /// Switches on the route into a seat, in the order from its parent, by seat; none where a link leads there.
    pub over: BTreeMap<u32, Vec<u32>>,
}

/// Another parent of a seat, in the trees that one template makes for some roots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The template, by its number.
    pub template: u32,
    /// The seat.
    pub child: u32,
    /// Its parent in these trees, over the link that leads from it.
    pub parent: u32,
    /// Seats of the roots of the trees, increasing.
    pub roots: Vec<u32>,
}

impl Orbits {
    /// The collective that its phases make; `None`: none.
    pub fn kind(&self) -> Option<CollectiveKind> {
        collective_of(&self.actions)
    }

    /// The same forest where rank `r` is `ranks[r]`, and switches are as they were. O(seats).
    ///
    /// * **In.** A permutation. **Errors.** [`SeatError`], as of [`Orbits::seating`].
    pub(crate) fn relabelled(&self, ranks: &[Rank]) -> Result<Self, SeatError> {
        let grid = self.grid().relabelled(ranks)?;
        Ok(Self { seats: grid.seats, ..self.clone() })
    }

    fn grid(&self) -> BoxGrid {
        BoxGrid { places: self.seat_count, digits: Vec::new(), seats: self.seats.clone() }
    }

    /// Puts ranks on seats: one box, whose places are the seats. O(seats).
    ///
    /// # Errors
    /// [`SeatError`].
    pub fn seating(&self, rank_count: u32) -> Result<Seating, SeatError> {
        self.grid().seating(rank_count)
    }
}

impl Motion {
    /// Where a node is moved; `None` for one that a table lacks, or beyond 2³².
    pub fn image(&self, node: u32) -> Option<u32> {
        match self {
            Self::Table(images) => images.get(node as usize).copied(),
            Self::Turns(turns) => {
                let image = turns.iter().find_map(|turn| turn.image(node));
                image.map_or(Some(node), |image| u32::try_from(image).ok())
            }
        }
    }
}

impl Turn {
    /// Where a node of the range is moved; `None` for another.
    fn image(&self, node: u32) -> Option<u64> {
        let offset = node.checked_sub(self.first).filter(|&offset| offset < self.count)?;
        let digit = offset.checked_div(self.unit)?.checked_rem(self.size)?;
        let turned = (u64::from(digit) + u64::from(self.step)) % u64::from(self.size);
        // The number without the digit, and the digit as it is then.
        Some(u64::from(node) - u64::from(digit) * u64::from(self.unit) + turned * u64::from(self.unit))
    }
}
