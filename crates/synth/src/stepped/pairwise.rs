//! Pairwise exchange: every pair of ranks has a step, or as many as its route has hops.

use canopy_optimize::Stop;
use canopy_schedule::{Action, Collective, CollectiveKind, Schedule};
use canopy_topology::{Rank, Topology};

use super::named::planned;
use super::{Rounds, SteppedError, after, block, share, spreading, written};
use crate::algorithm::{Rival, Synthesizer};

/// Pairwise exchange.
pub(crate) static PAIRWISE: Synthesizer = Synthesizer {
    rival: Some(Rival { place: 6, ..Rival::PAIRS }),
    ..Synthesizer::new(
        "pairwise",
        "textbook exchanges of each rank with every other rank in turn (Thakur 2005)",
        &[CollectiveKind::AllToAll, CollectiveKind::ReduceScatter, CollectiveKind::Allgather],
        |task| planned(task, pairwise),
    )
};

/// All-to-all, reduce-scatter and allgather in N−1 exchanges, in each of which every rank sends to one other.
///
/// In exchange i rank r sends to rank r ⊕ i if N is a power of two, so that two ranks exchange, else to r + i. It sends its block
/// (all-to-all), what it has of the receiver's sum (reduce-scatter), or its own share, on a shortest route: over switches in a step for
/// each exchange, or through ranks that store and forward, in as many steps as the route with the most hops of its own has.
///
/// * **Source.** Thakur, Rabenseifner and Gropp 2005, pairwise exchange for long messages; Basu 2024 §5 compares with it.
/// * **Out.** k = 1.
/// * **Errors.** [`SteppedError`]: another collective, too many sends, stopped.
/// * **Cost.** O(N² · length of routes), and a search of the network per rank.
pub fn pairwise(topology: &Topology, collective: Collective, stop: &dyn Stop) -> Result<Schedule, SteppedError> {
    let count = topology.rank_count();
    written(topology, rounds(collective, count)?, || rounds(spreading(collective, count), count), stop)
}

fn rounds(collective: Collective, rank_count: u32) -> Result<Rounds, SteppedError> {
    let mut parts = Rounds::new(&PAIRWISE, collective, rank_count);
    for offset in 1..rank_count {
        for from in parts.ranks() {
            let to = match rank_count.is_power_of_two() {
                true => Rank::new(from.number() ^ offset),
                false => after(from, offset, rank_count),
            };
            let (action, chunk) = match collective.kind() {
                CollectiveKind::AllToAll => (Action::Copy, block(from, to, rank_count)),
                CollectiveKind::ReduceScatter => (Action::Reduce, share(collective, to)),
                CollectiveKind::Allgather => (Action::Copy, share(collective, from)),
                _ => return Err(parts.unsupported()),
            };
            parts.send(offset - 1, action, (from, to), std::iter::once(chunk))?;
        }
    }
    Ok(parts)
}
