//! What each collective promises, place by place.

use canopy_schedule::{Collective, CollectiveKind};
use canopy_topology::Rank;

/// What a place of a rank's output must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// What a rank has at a place of its input.
    From(Rank, u64),
    /// What all ranks have at a place of their inputs, combined.
    All(u64),
}

/// What a place of the output of a rank that has an output must hold; places, elements or chunks, are counted from the
/// start of each buffer, `per_share` in each share. Where the collective knows no shares, `per_share` means nothing.
pub fn promise(collective: Collective, rank: Rank, place: u64, per_share: u64) -> Promise {
    let own = u64::from(rank.number()) * per_share;
    let root = collective.root().unwrap_or(Rank::new(0));
    // A message of so many ranks' shares has a source for each place.
    let source = || Rank::new(u32::try_from(place / per_share.max(1)).unwrap_or(u32::MAX));
    match collective.kind() {
        CollectiveKind::Allgather | CollectiveKind::Gather => Promise::From(source(), place % per_share.max(1)),
        CollectiveKind::AllToAll => Promise::From(source(), own + place % per_share.max(1)),
        CollectiveKind::ReduceScatter => Promise::All(own + place),
        CollectiveKind::Allreduce | CollectiveKind::Reduce => Promise::All(place),
        CollectiveKind::Broadcast => Promise::From(root, place),
        CollectiveKind::Scatter => Promise::From(root, own + place),
    }
}
