//! Binomial trees, for collectives with a root.

use canopy_optimize::Stop;
use canopy_schedule::{Action, Collective, CollectiveKind, Schedule};
use canopy_topology::Topology;

use super::named::planned;
use super::{Rounds, SteppedError, after, share, spreading, written};
use crate::algorithm::{Rival, Synthesizer};

/// Binomial trees.
pub(crate) static BINOMIAL: Synthesizer = Synthesizer {
    rival: Some(Rival { place: 9, ..Rival::DOUBLING }),
    ..Synthesizer::new(
        "binomial",
        "textbook trees over doubling distances",
        &[CollectiveKind::Broadcast, CollectiveKind::Reduce, CollectiveKind::Gather, CollectiveKind::Scatter],
        |task| planned(task, binomial),
    )
};

/// Broadcast, reduce, gather and scatter along a binomial tree: ⌈log₂ N⌉ steps for any N.
///
/// Ranks are numbered from the root on, around the end. Broadcast: in step i rank v < 2^i sends to v + 2^i; reduce is
/// the same backwards. Gather: in step i each rank v whose lowest set bit is 2^i sends the shares of v … v + 2^i − 1, all
/// it has, to v − 2^i; scatter is the same backwards.
///
/// * **Source.** Thakur, Rabenseifner and Gropp 2005, *Optimization of collective communication operations in MPICH*.
/// * **Out.** k = 1. Where switches do not join parents and children, ranks between store and forward, a step for each hop.
/// * **Errors.** [`SteppedError`]: another collective, too many sends, stopped.
/// * **Cost.** O(N log N), and a search of the network per rank.
pub fn binomial(topology: &Topology, collective: Collective, stop: &dyn Stop) -> Result<Schedule, SteppedError> {
    let count = topology.rank_count();
    written(topology, rounds(collective, count)?, || rounds(spreading(collective, count), count), stop)
}

fn rounds(collective: Collective, rank_count: u32) -> Result<Rounds, SteppedError> {
    let mut parts = Rounds::new(&BINOMIAL, collective, rank_count);
    let Some(root) = collective.root() else {
        return Err(parts.unsupported());
    };
    let step_count = rank_count.next_power_of_two().ilog2();
    for step in 0..step_count {
        let kind = collective.kind();
        let level = match kind {
            CollectiveKind::Broadcast | CollectiveKind::Gather => step,
            _ => step_count - 1 - step,
        };
        let size = 1_u32 << level;
        let is_child = |v: &u32| match kind {
            CollectiveKind::Broadcast | CollectiveKind::Reduce => (size..2 * size).contains(v),
            _ => v & (2 * size - 1) == size,
        };
        for v in (0..rank_count).filter(is_child) {
            let rank = |v: u32| after(root, v, rank_count);
            let (child, parent) = (rank(v), rank(v - size));
            let subtree = v..rank_count.min(v + size);
            let shares = move || subtree.clone().map(move |v| share(collective, rank(v)));
            match kind {
                CollectiveKind::Broadcast => parts.send(step, Action::Copy, (parent, child), shares().take(1))?,
                CollectiveKind::Reduce => parts.send(step, Action::Reduce, (child, parent), shares().take(1))?,
                CollectiveKind::Gather => parts.send(step, Action::Copy, (child, parent), shares())?,
                _ => parts.send(step, Action::Copy, (parent, child), shares())?,
            }
        }
    }
    Ok(parts)
}
