//! Recursive doubling and halving.

use std::ops::Range;

use canopy_optimize::Stop;
use canopy_schedule::{Action, Collective, CollectiveKind, Schedule};
use canopy_topology::{Rank, Topology};

use super::named::planned;
use super::{Rounds, SteppedError, spreading, written};
use crate::algorithm::{Rival, Synthesizer};

/// Recursive doubling and halving.
pub(crate) static RECURSIVE_DOUBLING: Synthesizer = Synthesizer {
    rival: Some(Rival { place: 8, ..Rival::DOUBLING }),
    ..Synthesizer::new(
        "recursive-doubling",
        "textbook exchanges between ranks that differ in one bit (Thakur 2005)",
        &[CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce],
        |task| planned(task, recursive_doubling),
    )
};

/// Allgather by recursive doubling, reduce-scatter by recursive halving, allreduce by the one after the other.
///
/// Doubling: in step i rank r exchanges all it has, the 2^i shares of its group, with rank r ⊕ 2^i. Halving is the same
/// backwards: each rank sends the half of its sums that is the partner's, and adds what it gets to its own half. log₂ N
/// steps each; every share is sent N−1 times.
///
/// Where N is no power of two, the ranks from the largest power of two P on are folded: in a step before, rank P + i
/// hands what it contributes to rank i, which then stands for both; in a step after, it gets from it what it is promised.
/// That is at most two steps more, and the links of the ranks that stand for two carry up to twice as much.
///
/// * **Source.** Thakur, Rabenseifner and Gropp 2005, who fold neighbours; the allreduce is Rabenseifner's.
/// * **Out.** k = 1. Where switches do not join ranks that talk, those between store and forward, a step for each hop; what is halved
///   is what is doubled, backwards.
/// * **Errors.** [`SteppedError`]: another collective, too many sends, stopped.
/// * **Cost.** O(N²), and a search of the network per rank.
pub fn recursive_doubling(
    topology: &Topology,
    collective: Collective,
    stop: &dyn Stop,
) -> Result<Schedule, SteppedError> {
    let count = topology.rank_count();
    written(topology, rounds(collective, count)?, || rounds(spreading(collective, count), count), stop)
}

fn rounds(collective: Collective, rank_count: u32) -> Result<Rounds, SteppedError> {
    let mut parts = Rounds::new(&RECURSIVE_DOUBLING, collective, rank_count);
    let (halves, doubles) = match collective.kind() {
        CollectiveKind::Allgather => (false, true),
        CollectiveKind::ReduceScatter => (true, false),
        CollectiveKind::Allreduce => (true, true),
        _ => return Err(parts.unsupported()),
    };
    let fold = Fold { core: 1 << rank_count.ilog2(), rank_count };
    let levels = rank_count.ilog2();
    let mut step = 0;
    if fold.folded().next().is_some() {
        // What is added must all be handed over; of a gathered vector a rank has its own share only.
        let action = if halves { Action::Reduce } else { Action::Copy };
        for folded in fold.folded() {
            let handed = if halves { 0..rank_count } else { folded..folded + 1 };
            parts.send(step, action, (Rank::new(folded), Rank::new(folded - fold.core)), handed.map(u64::from))?;
        }
        step += 1;
    }
    for level in (0..levels).rev().filter(|_| halves) {
        exchange(&mut parts, step, Action::Reduce, level, &fold)?;
        step += 1;
    }
    for level in (0..levels).filter(|_| doubles) {
        exchange(&mut parts, step, Action::Copy, level, &fold)?;
        step += 1;
    }
    for folded in fold.folded() {
        // Its own share is not new to a rank that only gathers, and all that is promised to one that only adds.
        let is_due = |share: &u32| match (halves, doubles) {
            (true, true) => true,
            (true, false) => *share == folded,
            _ => *share != folded,
        };
        let due = (0..rank_count).filter(is_due).map(u64::from);
        parts.send(step, Action::Copy, (Rank::new(folded - fold.core), Rank::new(folded)), due)?;
    }
    Ok(parts)
}

/// Which ranks take part, and for whom they stand.
struct Fold {
    /// The largest power of two that is no more than the ranks: those below it take part.
    core: u32,
    rank_count: u32,
}

impl Fold {
    /// The ranks that others stand for.
    fn folded(&self) -> impl Iterator<Item = u32> + use<> {
        self.core..self.rank_count
    }

    /// The shares of those for whom a group of ranks stands.
    fn shares(&self, group: Range<u32>) -> impl Iterator<Item = u64> + use<> {
        let (core, rank_count) = (self.core, self.rank_count);
        let folded = group.clone().map(move |rank| rank + core).filter(move |&rank| rank < rank_count);
        group.chain(folded).map(u64::from)
    }
}

/// Every rank that takes part sends to the one that differs in bit `level` only: to be copied, the shares of its own group
/// of 2^level ranks; to be reduced, those of the receiver's.
fn exchange(parts: &mut Rounds, step: u32, action: Action, level: u32, fold: &Fold) -> Result<(), SteppedError> {
    let size = 1_u32 << level;
    for from in (0..fold.core).map(Rank::new) {
        let to = Rank::new(from.number() ^ size);
        let of = if action == Action::Copy { from } else { to };
        let first = of.number() & !(size - 1);
        parts.send(step, action, (from, to), fold.shares(first..first + size))?;
    }
    Ok(())
}
