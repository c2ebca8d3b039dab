//! What each collective promises, place by place. What a file means to its runtime is for each format to say; what a caller
//! gets is the same in all of them.

use std::sync::Arc;

use canopy_schedule::{Collective, CollectiveKind};
use canopy_topology::Rank;

use crate::slots::Slots;

/// What a place of a rank's output must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// The input of a rank at a place.
    From(Rank, u64),
    /// The inputs of all ranks at a place, combined.
    All(u64),
}

/// The local copy of a rank from its input to its output if these are different memory, in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnCopy {
    /// First chunk of the input.
    pub(crate) source: u32,
    /// First chunk of the output.
    pub(crate) target: u32,
    pub(crate) count: u32,
}

impl OwnCopy {
    /// The local copy of a rank in a collective with `share` chunks in each share; `None` if there is none.
    pub(crate) fn of(kind: CollectiveKind, root: u32, rank: u32, share: u32) -> Option<Self> {
        let own = rank.saturating_mul(share);
        let (source, target) = match kind {
            CollectiveKind::Allgather => (0, own),
            CollectiveKind::AllToAll => (own, own),
            CollectiveKind::Broadcast if rank == root => (0, 0),
            CollectiveKind::Gather if rank == root => (0, own),
            CollectiveKind::Scatter if rank == root => (own, 0),
            _ => return None,
        };
        Some(Self { source, target, count: share })
    }
}

/// The promises of a call. Places (elements or chunks) count from the start of each buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promises {
    kind: Option<CollectiveKind>,
    root: Rank,
    per_share: u64,
    /// Of an all-to-all: its slots, if not all of them are full.
    slots: Option<Arc<Slots>>,
}

impl Promises {
    /// The promises of a collective with this many places in each share, which collectives without shares ignore.
    pub fn new(collective: Collective, per_share: u64) -> Self {
        Self::of(Some(collective.kind()), collective.root().unwrap_or(Rank::new(0)), per_share)
    }

    /// The promises of a file whose word for the collective may promise nothing.
    pub(crate) const fn of(kind: Option<CollectiveKind>, root: Rank, per_share: u64) -> Self {
        Self { kind, root, per_share, slots: None }
    }

    /// The promises of an all-to-all in slots, each of so many places.
    pub(crate) const fn of_slots(slots: Arc<Slots>, per_slot: u64) -> Self {
        Self { kind: Some(CollectiveKind::AllToAll), root: Rank::new(0), per_share: per_slot, slots: Some(slots) }
    }

    /// The required content of a place of a rank's output; `None` if the collective promises nothing to this rank
    /// there.
    pub fn at(&self, rank: Rank, place: u64) -> Option<Promise> {
        let own = u64::from(rank.number()) * self.per_share;
        // A message of so many ranks' shares has a source for each place.
        let per_share = self.per_share.max(1);
        let of_source = |within: u64| {
            let source = u32::try_from(place / per_share).ok()?;
            Some(Promise::From(Rank::new(source), within + place % per_share))
        };
        match self.kind? {
            CollectiveKind::Gather | CollectiveKind::Reduce if rank != self.root => None,
            CollectiveKind::Allgather | CollectiveKind::Gather => of_source(0),
            CollectiveKind::AllToAll if self.leaves(rank, place) => None,
            CollectiveKind::AllToAll => of_source(own),
            CollectiveKind::ReduceScatter => Some(Promise::All(own + place)),
            CollectiveKind::Allreduce | CollectiveKind::Reduce => Some(Promise::All(place)),
            CollectiveKind::Broadcast => Some(Promise::From(self.root, place)),
            CollectiveKind::Scatter => Some(Promise::From(self.root, own + place)),
        }
    }

    /// Whether a place of a rank's output must stay as it is: the rest of a slot that is filled in part.
    pub(crate) fn leaves(&self, rank: Rank, place: u64) -> bool {
        let Some(slots) = &self.slots else { return false };
        let per_slot = self.per_share.max(1);
        let source = u32::try_from(place / per_slot).unwrap_or(u32::MAX);
        // A slot has as many places for each unit.
        let filled = u128::from(slots.filled(source, rank.number())) * u128::from(per_slot);
        u128::from(place % per_slot) * u128::from(slots.slot_units()) >= filled
    }

    /// Whether some places must stay as they are.
    pub(crate) const fn has_rests(&self) -> bool {
        self.slots.is_some()
    }

    /// Whether a rank's input holds something at the start.
    pub(crate) fn is_given(&self, rank: Rank) -> bool {
        !matches!(self.kind, Some(CollectiveKind::Broadcast | CollectiveKind::Scatter)) || rank == self.root
    }

    /// Whether outputs are sums.
    pub(crate) const fn are_sums(&self) -> bool {
        use CollectiveKind::{Allreduce, Reduce, ReduceScatter};
        matches!(self.kind, Some(Allreduce | Reduce | ReduceScatter))
    }
}
