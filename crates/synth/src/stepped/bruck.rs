//! Bruck's algorithms, for any number of ranks.

use canopy_optimize::Stop;
use canopy_schedule::{Action, Collective, CollectiveKind, Schedule};
use canopy_topology::{Rank, Topology};

use super::named::planned;
use super::{Rounds, SteppedError, after, block, spreading, written};
use crate::algorithm::{Rival, Synthesizer};

/// Bruck's algorithms.
pub(crate) static BRUCK: Synthesizer = Synthesizer {
    rival: Some(Rival { place: 7, ..Rival::DOUBLING }),
    ..Synthesizer::new(
        "bruck",
        "textbook exchanges over doubling distances (Bruck 1997)",
        &[CollectiveKind::Allgather, CollectiveKind::AllToAll],
        |task| planned(task, bruck),
    )
};

/// Allgather and all-to-all by Bruck's algorithms: ⌈log₂ N⌉ steps for any N.
///
/// Allgather: in step i rank r sends the shares of ranks r, r+1, … that it has to rank r − 2^i, at most 2^i of them.
/// All-to-all: in step i a block whose way still to go has bit i set moves on by 2^i ranks; it changes hands as often
/// as its distance has bits set.
///
/// * **Source.** Bruck, Ho, Kipnis, Upfal and Weathersby 1997: index with radix 2, and concatenation.
/// * **Out.** k = 1. Where switches do not join ranks 2^i apart, those between store and forward, a step for each hop.
/// * **Errors.** [`SteppedError`]: another collective, too many sends, stopped.
/// * **Cost.** O(N²), for all-to-all O(N² log N), and a search of the network per rank.
pub fn bruck(topology: &Topology, collective: Collective, stop: &dyn Stop) -> Result<Schedule, SteppedError> {
    let count = topology.rank_count();
    written(topology, rounds(collective, count)?, || rounds(spreading(collective, count), count), stop)
}

fn rounds(collective: Collective, rank_count: u32) -> Result<Rounds, SteppedError> {
    let mut parts = Rounds::new(&BRUCK, collective, rank_count);
    let distances = (0..32).map(|step| (step, 1_u32 << step)).take_while(|&(_, distance)| distance < rank_count);
    for (step, distance) in distances {
        for from in parts.ranks() {
            match collective.kind() {
                CollectiveKind::Allgather => {
                    let to = after(from, rank_count - distance, rank_count);
                    let held = 0..distance.min(rank_count - distance);
                    let shares = held.map(|offset| u64::from(after(from, offset, rank_count).number()));
                    parts.send(step, Action::Copy, (from, to), shares)?;
                }
                CollectiveKind::AllToAll => {
                    let to = after(from, distance, rank_count);
                    let moving = (0..rank_count).filter(|offset| offset & distance != 0);
                    let blocks = moving.map(|offset| block_at(from, offset, distance, rank_count));
                    parts.send(step, Action::Copy, (from, to), blocks)?;
                }
                _ => return Err(parts.unsupported()),
            }
        }
    }
    Ok(parts)
}

/// The block that goes `offset` ranks far and is at `holder` after the steps below `distance`.
fn block_at(holder: Rank, offset: u32, distance: u32, rank_count: u32) -> u64 {
    let gone = offset & (distance - 1);
    let source = after(holder, rank_count - gone, rank_count);
    block(source, after(source, offset, rank_count), rank_count)
}
