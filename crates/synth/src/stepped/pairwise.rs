//! Pairwise exchange: every pair of ranks has a step, or as many as its route has hops.

use canopy_optimize::Stop;
use canopy_schedule::{Action, Collective, CollectiveKind, Schedule};
use canopy_topology::{Rank, Topology};

use super::{StepParts, SteppedError, after, block, share};

/// All-to-all, reduce-scatter and allgather in N−1 exchanges, in each of which every rank sends to one other.
///
/// In exchange i rank r sends to rank r ⊕ i if N is a power of two, so that two ranks exchange, else to r + i. It sends its block
/// (all-to-all), what it has of the receiver's sum (reduce-scatter), or its own share. Sums and shares go over switches, in a step
/// for each exchange. Blocks take a shortest route, whose ranks store and forward where it has any: an exchange takes as many
/// steps as the route with the most hops of its own.
///
/// * **Source.** Thakur, Rabenseifner and Gropp 2005, pairwise exchange for long messages; Basu 2024 §5 compares with it.
/// * **In.** Any two ranks joined over switches, for all-to-all over anything. **Out.** k = 1.
/// * **Errors.** [`SteppedError`]: another collective, no route, too many sends, stopped.
/// * **Cost.** O(N² · length of routes), and a search of the network per rank.
pub fn pairwise(topology: &Topology, collective: Collective, stop: &dyn Stop) -> Result<Schedule, SteppedError> {
    let mut parts = StepParts::new("pairwise", topology, collective, stop);
    let rank_count = topology.rank_count();
    let mut first_step = 0;
    for offset in 1..rank_count {
        let partners = topology.ranks().map(|from| match rank_count.is_power_of_two() {
            true => (from, Rank::new(from.number() ^ offset)),
            false => (from, after(from, offset, rank_count)),
        });
        if collective.kind() == CollectiveKind::AllToAll {
            let blocks = partners.map(|(from, to)| ((from, to), block(from, to, rank_count)));
            first_step += parts.send_on(first_step, blocks)?;
            continue;
        }
        for (from, to) in partners {
            let (action, chunk) = match collective.kind() {
                CollectiveKind::ReduceScatter => (Action::Reduce, share(collective, to)),
                CollectiveKind::Allgather => (Action::Copy, share(collective, from)),
                _ => return Err(parts.unsupported("all-to-all, reduce-scatter and allgather")),
            };
            parts.send(offset - 1, action, (from, to), std::iter::once(chunk))?;
        }
    }
    Ok(parts.finish())
}
