//! Bine trees: binomial trees whose distances are sums of powers of −2.

use canopy_optimize::Stop;
use canopy_schedule::{Action, Collective, CollectiveKind, Schedule};
use canopy_synth::components::{Rounds, planned_by_textbook, spreading, written};
use canopy_synth::{Algorithm, Rival, SteppedError, Synthesizer};
use canopy_topology::{Rank, Topology};

use crate::negabinary::{partner, reached, require_power_of_two};

/// Binomial negabinary trees.
pub const BINE: Algorithm = Algorithm::of(&BINE_ROW);
static BINE_ROW: Synthesizer = Synthesizer {
    rival: Some(Rival { place: 20, ..Rival::DOUBLING }),
    ..Synthesizer::new(
        "bine",
        "trees and exchanges at distances 1, 1, 3, 5, 11, … for a power of two of ranks (De Sensi 2025)",
        &[
            CollectiveKind::Allgather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::Allreduce,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
            CollectiveKind::Gather,
            CollectiveKind::Scatter,
        ],
        |task| planned_by_textbook(task, bine),
    )
};

/// All collectives but all-to-all over Bine trees, in log₂ N steps; an allreduce takes as many for each phase.
///
/// A reduce-scatter halves what is sent from step to step, at rising distances, so that most goes to neighbours; an
/// allgather is the same backwards. In broadcast and scatter distances fall: ranks that have something send to their
/// partner in the step; reduce and gather are the same backwards. Ranks are numbered from the root on, around the end.
///
/// * **Source.** De Sensi et al., *Bine Trees: Enhancing Collective Operations by Optimizing Communication Locality*
///   (SC 2025): its trees with falling distances, and its exchanges with rising ones.
/// * **Out.** k = 1. Where switches do not join partners, ranks between store and forward, a step for each hop.
/// * **Errors.** [`SteppedError`]: ranks that are no power of two, another collective, too many sends, stopped.
/// * **Cost.** O(N²), and a search of the network per rank.
pub fn bine(topology: &Topology, collective: Collective, stop: &dyn Stop) -> Result<Schedule, SteppedError> {
    let count = topology.rank_count();
    written(topology, rounds(collective, count)?, || rounds(spreading(collective, count), count), stop)
}

fn rounds(collective: Collective, count: u32) -> Result<Rounds, SteppedError> {
    let parts = Rounds::new(&BINE_ROW, collective, count);
    require_power_of_two(BINE_ROW.name, count)?;
    match collective.kind() {
        CollectiveKind::Allgather => gathered(parts, count),
        CollectiveKind::Broadcast | CollectiveKind::Scatter => from_root(parts, count, false),
        CollectiveKind::Gather => from_root(parts, count, true),
        CollectiveKind::ReduceScatter | CollectiveKind::Reduce | CollectiveKind::Allreduce => {
            rounds(spreading(collective, count), count)?.summing(collective)
        }
        CollectiveKind::AllToAll => Err(parts.unsupported()),
    }
}

/// Exchanges by falling distances: everyone sends all it has to its partner.
fn gathered(mut parts: Rounds, count: u32) -> Result<Rounds, SteppedError> {
    let levels = count.ilog2();
    let owned = reached(count, levels, |rank, level| partner(rank, level, count));
    for (step, level) in (0..levels).rev().enumerate() {
        let step = u32::try_from(step).expect("fewer than 32");
        for (from, shares) in (0..count).zip(&owned[level as usize + 1]) {
            let ends = (Rank::new(from), Rank::new(partner(from, level, count)));
            parts.send(step, Action::Copy, ends, shares.iter().map(|&share| share.into()))?;
        }
    }
    Ok(parts)
}

/// A tree by falling distances: each rank that has data sends its partner what the partner and the ranks behind the
/// partner need. `is_gather`: the same backwards.
fn from_root(mut parts: Rounds, count: u32, is_gather: bool) -> Result<Rounds, SteppedError> {
    let root = parts.collective.root().map_or(0, Rank::number);
    let is_message = parts.collective.kind() == CollectiveKind::Broadcast;
    let levels = count.ilog2();
    let partner_in = |place: u32, step: u32| partner(place, levels - 1 - step, count);
    let behind = reached(count, levels, partner_in);
    let rank = |place: u32| Rank::new((place + root) % count);
    let mut holders = vec![0];
    let mut hops: Vec<(u32, u32, u32)> = Vec::new();
    for step in 0..levels {
        let found: Vec<u32> = holders.iter().map(|&place| partner_in(place, step)).collect();
        hops.extend(holders.iter().zip(&found).map(|(&from, &to)| (step, from, to)));
        holders.extend(found);
    }
    if is_gather {
        hops.reverse();
    }
    for (step, from, to) in hops {
        let places = &behind[step as usize + 1][to as usize];
        // All places have the same message.
        let places = if is_message { &places[..1] } else { places };
        let share = |&place: &u32| if is_message { 0 } else { u64::from(rank(place).number()) };
        let (step, ends) = match is_gather {
            true => (levels - 1 - step, (rank(to), rank(from))),
            false => (step, (rank(from), rank(to))),
        };
        parts.send(step, Action::Copy, ends, places.iter().map(share))?;
    }
    Ok(parts)
}
