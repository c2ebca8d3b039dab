//! Textbook schedules in steps: recursive doubling, Bruck, binomial trees, two binary trees, rings of rings, pairwise exchange.
//!
//! They know ranks by number only: messages are a list of sender and receiver per round (`rounds`). Where switches join
//! every two ranks that talk, each message is one transfer (`switched`); elsewhere ranks on the way store and forward
//! (`routed`). One chunk per share (or block).

mod binomial;
mod bruck;
mod double_tree;
mod doubling;
mod named;
mod pairwise;
mod rounds;
mod routed;
mod shares;
mod switched;
mod ways;

use canopy_optimize::Stop;
use canopy_schedule::{Collective, CollectiveKind, Schedule, Shape, Shares};
use canopy_topology::{Rank, Topology};

pub use named::planned as planned_by_textbook;
pub use rounds::Rounds;

use crate::error::SteppedError;
pub(crate) use binomial::BINOMIAL;
pub use binomial::binomial;
pub(crate) use bruck::BRUCK;
pub use bruck::bruck;
pub(crate) use double_tree::DOUBLE_TREE;
pub use double_tree::double_tree;
pub(crate) use doubling::RECURSIVE_DOUBLING;
pub use doubling::recursive_doubling;
pub(crate) use pairwise::PAIRWISE;
pub use pairwise::pairwise;
pub use shares::with_shares;

/// A textbook's messages on a network: over switches, or else over ranks. `spread`: of a collective that adds up, what is copied after that, and
/// is added up the same way backwards.
///
/// # Errors
/// [`SteppedError`]: too many sends, stopped.
pub fn written(
    topology: &Topology,
    rounds: Rounds,
    spread: impl Fn() -> Result<Rounds, SteppedError>,
    stop: &dyn Stop,
) -> Result<Schedule, SteppedError> {
    let (collective, algorithm) = (rounds.collective, rounds.row.name.to_owned());
    let steps = match switched::over_switches(topology, &rounds, stop)? {
        Some(steps) => steps,
        None => match collective.kind() {
            CollectiveKind::Reduce | CollectiveKind::ReduceScatter => {
                routed::over_ranks(topology, (Some(&spread()?), None), stop)?
            }
            CollectiveKind::Allreduce => {
                let spread = spread()?;
                routed::over_ranks(topology, (Some(&spread), Some(&spread)), stop)?
            }
            _ => routed::over_ranks(topology, (None, Some(&rounds)), stop)?,
        },
    };
    Ok(Schedule { collective, algorithm, shares: Shares::Equal, shape: Shape::Steps(steps) })
}

/// What spreads the same shares as this collective adds up.
pub fn spreading(collective: Collective, rank_count: u32) -> Collective {
    let (kind, root) = match collective.root() {
        Some(root) => (CollectiveKind::Broadcast, Some(root)),
        None => (CollectiveKind::Allgather, None),
    };
    Collective::new(kind, root, rank_count).expect("of as many ranks, with the same root")
}

/// Rank `first + offset`, around the end.
fn after(first: Rank, offset: u32, rank_count: u32) -> Rank {
    let sum = (u64::from(first.number()) + u64::from(offset)) % u64::from(rank_count);
    Rank::new(u32::try_from(sum).expect("less than a u32"))
}

/// The chunk of a share: its rank's number, as there is one chunk per share; chunk 0 where there are no shares.
fn share(collective: Collective, rank: Rank) -> u64 {
    match collective.kind() {
        CollectiveKind::Broadcast | CollectiveKind::Reduce => 0,
        _ => u64::from(rank.number()),
    }
}

/// The chunk of the block that `source` has for `destination` in all-to-all.
fn block(source: Rank, destination: Rank, rank_count: u32) -> u64 {
    u64::from(source.number()) * u64::from(rank_count) + u64::from(destination.number())
}
