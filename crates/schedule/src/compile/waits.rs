//! What each hop of a tree waits for, found while the tree is walked in the order of its hops.

use std::ops::Range;

use canopy_topology::Rank;

use super::error::HopFault;
use crate::forest::Hop;

/// The dependency table under construction, and what the tree at hand has done at each rank so far.
#[derive(Debug)]
pub(super) struct Waits {
    table: Vec<u32>,
    /// Number of the tree at hand: places of another tree are blank.
    tree: u32,
    places: Vec<Place>,
}

/// What the tree at hand has done at one rank.
#[derive(Debug, Default)]
struct Place {
    tree: u32,
    /// Transfers into the rank.
    arrivals: Vec<u32>,
    /// What hops out of it wait for, once one has been asked for.
    waits: Option<Range<u32>>,
    visit: Visit,
}

/// What a tree has settled about a rank: each rank but the root receives once (copy) or sends once (reduce).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Visit {
    /// Nothing yet.
    #[default]
    None,
    /// It is the root.
    Root,
    /// It has received (copy) or sent (reduce).
    Done,
}

impl Waits {
    pub(super) fn new(rank_count: u32, transfer_count: usize) -> Self {
        let places = (0..rank_count).map(|_| Place::default()).collect();
        Self { table: Vec::with_capacity(transfer_count), tree: 0, places }
    }

    /// Begins a tree at an existing rank; hops out of the root wait for `before`.
    pub(super) fn start<'a>(&mut self, root: Rank, before: impl Iterator<Item = &'a [u32]>) {
        self.tree += 1;
        let start = self.position();
        before.for_each(|transfers| self.table.extend_from_slice(transfers));
        let waits = start..self.position();
        let place = self.place(root);
        place.visit = Visit::Root;
        place.waits = Some(waits);
    }

    /// Adds a hop of a copy tree as transfer `index`; returns what it waits for.
    pub(super) fn copy(&mut self, hop: &Hop, index: u32) -> Result<Range<u32>, HopFault> {
        self.require_ranks(hop)?;
        if self.place(hop.from).visit == Visit::None {
            return Err(HopFault::SenderNotReached { rank: hop.from.number() });
        }
        let receiver = self.place(hop.to);
        if receiver.visit != Visit::None {
            return Err(HopFault::ReachedTwice { rank: hop.to.number() });
        }
        receiver.visit = Visit::Done;
        receiver.arrivals.push(index);
        Ok(self.waits_of(hop.from))
    }

    /// Adds a hop of a reduce tree as transfer `index`; returns what it waits for.
    pub(super) fn reduce(&mut self, hop: &Hop, index: u32) -> Result<Range<u32>, HopFault> {
        self.require_ranks(hop)?;
        if self.place(hop.to).visit == Visit::Done {
            return Err(HopFault::ReceivesLate { rank: hop.to.number() });
        }
        let sender = self.place(hop.from);
        if sender.visit != Visit::None {
            return Err(HopFault::SendsTwice { rank: hop.from.number() });
        }
        sender.visit = Visit::Done;
        self.place(hop.to).arrivals.push(index);
        Ok(self.waits_of(hop.from))
    }

    /// Transfers of the tree at hand into a rank.
    pub(super) fn arrivals_at(&mut self, rank: Rank) -> &[u32] {
        &self.place(rank).arrivals
    }

    /// The finished table.
    pub(super) fn finish(self) -> Vec<u32> {
        self.table
    }

    /// All hops out of a rank wait for the same transfers, so they share a range of the table.
    fn waits_of(&mut self, rank: Rank) -> Range<u32> {
        if let Some(waits) = &self.places[rank.index()].waits {
            return waits.clone();
        }
        let start = self.position();
        self.table.extend_from_slice(&self.places[rank.index()].arrivals);
        let waits = start..self.position();
        self.places[rank.index()].waits = Some(waits.clone());
        waits
    }

    /// The place of an existing rank, wiped if another tree used it last.
    fn place(&mut self, rank: Rank) -> &mut Place {
        let place = &mut self.places[rank.index()];
        if place.tree != self.tree {
            place.tree = self.tree;
            place.arrivals.clear();
            place.waits = None;
            place.visit = Visit::None;
        }
        place
    }

    /// Trees that share a chunk share its root, so a table holds at most two dependencies per transfer.
    fn position(&self) -> u32 {
        u32::try_from(self.table.len()).expect("at most two for each transfer")
    }

    fn require_ranks(&self, hop: &Hop) -> Result<(), HopFault> {
        let exists = |rank: &Rank| rank.index() < self.places.len();
        if let Some(rank) = [hop.from, hop.to].into_iter().find(|rank| !exists(rank)) {
            let rank_count = u32::try_from(self.places.len()).expect("one place per rank");
            return Err(HopFault::UnknownRank { rank: rank.number(), rank_count });
        }
        match hop.from == hop.to {
            true => Err(HopFault::ToItself { rank: hop.from.number() }),
            false => Ok(()),
        }
    }
}
