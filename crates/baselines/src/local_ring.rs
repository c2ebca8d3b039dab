//! Rings between groups of ranks, then rings within them.

use std::collections::BTreeMap;

use canopy_optimize::Stop;
use canopy_schedule::{Action, Collective, CollectiveKind, Schedule};
use canopy_synth::components::{Rounds, planned_by_textbook, spreading, written};
use canopy_synth::{Algorithm, Rival, SteppedError, Synthesizer};
use canopy_topology::{Rank, Topology};

/// Rings of rings.
pub const LOCAL_RING: Algorithm = Algorithm::of(&LOCAL_RING_ROW);
static LOCAL_RING_ROW: Synthesizer = Synthesizer {
    rival: Some(Rival { place: 21, ..Rival::PAIRS }),
    ..Synthesizer::new(
        "local-ring",
        "rings between groups of ranks, then rings within them",
        &[CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce],
        |task| planned_by_textbook(task, local_ring),
    )
};

/// Allgather by rings of the ranks that have the same place in their groups, then within groups; reduce-scatter is the same
/// backwards, and allreduce the one after the other.
///
/// Groups are the boxes where all are of one size, else of neighbours by number: as many as the greatest divisor of N that is no more than
/// √N says. With G groups of L ranks that takes G − 1 steps of one share, and L − 1 steps of G.
///
/// * **Source.** The local ring of Ueno and Yokota 2019, as Pham 2026, section 2.2.3, compares with it; the long-range part comes first here, so
///   that the least data goes far.
/// * **Out.** k = 1. Where switches do not join neighbours in a ring, ranks between store and forward, a step for each hop.
/// * **Errors.** [`SteppedError`]: another collective, too many sends, stopped.
/// * **Cost.** O(N²), and a search of the network per rank.
pub fn local_ring(topology: &Topology, collective: Collective, stop: &dyn Stop) -> Result<Schedule, SteppedError> {
    let groups = groups(topology);
    let count = topology.rank_count();
    let spread = || rounds(spreading(collective, count), count, &groups);
    written(topology, rounds(collective, count, &groups)?, spread, stop)
}

fn rounds(collective: Collective, rank_count: u32, groups: &[Vec<Rank>]) -> Result<Rounds, SteppedError> {
    let mut parts = Rounds::new(&LOCAL_RING_ROW, collective, rank_count);
    match collective.kind() {
        CollectiveKind::Allgather => {}
        CollectiveKind::ReduceScatter | CollectiveKind::Allreduce => {
            return rounds(spreading(collective, rank_count), rank_count, groups)?.summing(collective);
        }
        _ => return Err(parts.unsupported()),
    }
    let (count, size) = (groups.len(), groups.first().map_or(0, Vec::len));
    let share = |rank: Rank| u64::from(rank.number());
    let mut step = 0;
    for round in 0..count.saturating_sub(1) {
        for (group, place) in (0..count).flat_map(|group| (0..size).map(move |place| (group, place))) {
            let ends = (groups[group][place], groups[(group + 1) % count][place]);
            let origin = groups[(group + count - round) % count][place];
            parts.send(step, Action::Copy, ends, std::iter::once(share(origin)))?;
        }
        step += 1;
    }
    // Around each group, every rank passes on what came in the round before: size − 1 rounds of one send for each rank.
    for round in 0..size.saturating_sub(1) {
        for group in groups {
            for place in 0..size {
                let ends = (group[place], group[(place + 1) % size]);
                let origin = (place + size - round) % size;
                parts.send(step, Action::Copy, ends, groups.iter().map(|group| share(group[origin])))?;
            }
        }
        step += 1;
    }
    Ok(parts)
}

/// Ranks by group, all of one size.
fn groups(topology: &Topology) -> Vec<Vec<Rank>> {
    let ranks: Vec<Rank> = topology.ranks().collect();
    let mut boxes: BTreeMap<Option<&str>, Vec<Rank>> = BTreeMap::new();
    for &rank in &ranks {
        boxes.entry(topology.node(rank.node()).attributes.box_name.as_deref()).or_default().push(rank);
    }
    let size = boxes.values().next().map_or(0, Vec::len);
    if boxes.iter().all(|(name, members)| name.is_some() && members.len() == size) {
        // In the order of their first ranks.
        let mut groups: Vec<Vec<Rank>> = boxes.into_values().collect();
        groups.sort_unstable();
        return groups;
    }
    let roots = (1..=ranks.len()).take_while(|divisor| divisor * divisor <= ranks.len());
    let count = roots.filter(|divisor| ranks.len().is_multiple_of(*divisor)).last().unwrap_or(1);
    ranks.chunks((ranks.len() / count).max(1)).map(<[Rank]>::to_vec).collect()
}
