//! Pairwise exchange: every pair of ranks has a step.

use canopy_optimize::Stop;
use canopy_schedule::{Action, Collective, CollectiveKind, Schedule};
use canopy_topology::{Rank, Topology};

use super::{StepParts, SteppedError, after, block, share};

/// All-to-all, reduce-scatter and allgather in N−1 steps, in each of which every rank sends to one other.
///
/// In step i rank r sends to rank r ⊕ i if N is a power of two, so that two ranks exchange, else to r + i. Nothing is
/// forwarded: it sends its block (all-to-all), what it has of the receiver's sum (reduce-scatter), or its own share.
///
/// * **Source.** Thakur, Rabenseifner and Gropp 2005, pairwise exchange for long messages.
/// * **In.** Any two ranks joined over switches. **Out.** k = 1.
/// * **Errors.** [`SteppedError`]: another collective, no route, too many sends, stopped.
/// * **Cost.** O(N² · length of routes), and a search of the network per rank.
pub fn pairwise(topology: &Topology, collective: Collective, stop: &dyn Stop) -> Result<Schedule, SteppedError> {
    let mut parts = StepParts::new("pairwise", topology, collective, stop);
    let rank_count = topology.rank_count();
    for offset in 1..rank_count {
        for from in topology.ranks() {
            let to = match rank_count.is_power_of_two() {
                true => Rank::new(from.number() ^ offset),
                false => after(from, offset, rank_count),
            };
            let (action, chunk) = match collective.kind() {
                CollectiveKind::AllToAll => (Action::Copy, block(from, to, rank_count)),
                CollectiveKind::ReduceScatter => (Action::Reduce, share(collective, to)),
                CollectiveKind::Allgather => (Action::Copy, share(collective, from)),
                _ => return Err(parts.unsupported("all-to-all, reduce-scatter and allgather")),
            };
            parts.send(offset - 1, action, (from, to), std::iter::once(chunk))?;
        }
    }
    Ok(parts.finish())
}
