//! Recursive doubling and halving.

use canopy_optimize::Stop;
use canopy_schedule::{Action, Collective, CollectiveKind, Schedule};
use canopy_topology::{Rank, Topology};

use super::{StepParts, SteppedError};

/// Allgather by recursive doubling, reduce-scatter by recursive halving, allreduce by the one after the other.
///
/// Doubling: in step i rank r exchanges all it has, the 2^i shares of its group, with rank r ⊕ 2^i. Halving is the same
/// backwards: each rank sends the half of its sums that is the partner's, and adds what it gets to its own half. log₂ N
/// steps each; every share is sent N−1 times.
///
/// * **Source.** Thakur, Rabenseifner and Gropp 2005; the allreduce is Rabenseifner's.
/// * **In.** A power of two ranks, any two that differ in one bit joined over switches. **Out.** k = 1.
/// * **Errors.** [`SteppedError`]: another collective, not a power of two, no route, too many sends, stopped.
/// * **Cost.** O(N²), and a search of the network per rank.
pub fn recursive_doubling(
    topology: &Topology,
    collective: Collective,
    stop: &dyn Stop,
) -> Result<Schedule, SteppedError> {
    let mut parts = StepParts::new("recursive-doubling", topology, collective, stop);
    let rank_count = topology.rank_count();
    let (halves, doubles) = match collective.kind() {
        CollectiveKind::Allgather => (false, true),
        CollectiveKind::ReduceScatter => (true, false),
        CollectiveKind::Allreduce => (true, true),
        _ => return Err(parts.unsupported("allgather, reduce-scatter and allreduce")),
    };
    if !rank_count.is_power_of_two() {
        return Err(SteppedError::NotPowerOfTwo { name: parts.name, rank_count });
    }
    let levels = rank_count.ilog2();
    let mut step = 0;
    for level in (0..levels).rev().filter(|_| halves) {
        exchange(&mut parts, step, Action::Reduce, level)?;
        step += 1;
    }
    for level in (0..levels).filter(|_| doubles) {
        exchange(&mut parts, step, Action::Copy, level)?;
        step += 1;
    }
    Ok(parts.finish())
}

/// Every rank sends to the one that differs in bit `level` only: to be copied, the shares of its own group of 2^level
/// ranks; to be reduced, those of the receiver's.
fn exchange(parts: &mut StepParts<'_>, step: u32, action: Action, level: u32) -> Result<(), SteppedError> {
    let size = 1_u32 << level;
    for from in parts.topology.ranks() {
        let to = Rank::new(from.number() ^ size);
        let of = if action == Action::Copy { from } else { to };
        let first = of.number() & !(size - 1);
        parts.send(step, action, (from, to), (first..first + size).map(u64::from))?;
    }
    Ok(())
}
