//! Swing: exchanges with partners on alternating sides, on all dimensions of a torus at once.

use canopy_schedule::{Action, Collective, CollectiveKind};
use canopy_synth::components::{Rounds, planned_by_textbook, spreading, written};
use canopy_synth::{Algorithm, Composition, ConstructionUse, Rival, SteppedError, Synthesizer};
use canopy_topology::{Rank, Topology};

use crate::all_to_all::dor::{Line, lines_of};
use crate::negabinary::{partner, reached, require_power_of_two};

/// Exchanges on alternating sides.
pub const SWING: Algorithm = Algorithm::of(&SWING_ROW);
static SWING_ROW: Synthesizer = Synthesizer {
    construction: ConstructionUse::Stated,
    rival: Some(Rival { place: 20, ..Rival::DOUBLING }),
    ..Synthesizer::new(
        "swing",
        "exchanges on alternating sides in all dimensions of a torus, for a power of two of ranks (De Sensi 2024)",
        &[CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce],
        |task| {
            let composition = task.request.composition.as_ref();
            planned_by_textbook(task, |topology, collective, stop| {
                let extents = extents(topology, composition);
                let count = topology.rank_count();
                let spread = || rounds(spreading(collective, count), count, &extents);
                written(topology, rounds(collective, count, &extents)?, spread, stop)
            })
        },
    )
};

/// Ranks of each dimension with more than one, the slowest first: as the network's expression says, else one ring of
/// all.
fn extents(topology: &Topology, composition: Option<&Composition>) -> Vec<u32> {
    let count = topology.rank_count();
    let numbered_alike = composition.filter(|composition| composition.ranks.is_none());
    let lines = numbered_alike.and_then(|composition| lines_of(&composition.construction));
    let lines = lines.filter(|lines| Line::count(lines) == Some(count.into()));
    let extents = lines.map(|lines| lines.iter().map(|line| u32::try_from(line.extent).unwrap_or(u32::MAX)).collect());
    let mut extents: Vec<u32> = extents.unwrap_or_else(|| vec![count]);
    extents.retain(|&extent| extent > 1);
    extents
}

/// Reduce-scatter by Swing, allgather as the same backwards, and allreduce as the one after the other.
///
/// With D dimensions every share is in 2·D parts. Part after part begins in another dimension, half of the parts on
/// the other side: so all ports are used at once. In the steps of a reduce-scatter the dimensions take turns, with
/// distances 1, 1, 3, 5, 11, … in each; what is sent is halved from step to step. A dimension that has been passed is
/// left out.
///
/// * **Source.** De Sensi et al., *Swing: Short-cutting Rings for Higher Bandwidth Allreduce* (NSDI 2024), its
///   variant of least traffic; that of least latency, which sends all of the vector in each step, is none of trees
///   and is left out.
/// * **Out.** k = 2·D. Ranks between partners store and forward, a step for each hop.
/// * **Errors.** [`SteppedError`]: ranks that are no power of two, another collective, too many sends, stopped.
/// * **Cost.** O(N² · D), and a search of the network per rank.
fn rounds(collective: Collective, count: u32, extents: &[u32]) -> Result<Rounds, SteppedError> {
    let part_count = 2 * extents.len().max(1);
    let mut parts = Rounds::new(&SWING_ROW, collective, count).in_chunks(part_count as u64);
    require_power_of_two(SWING_ROW.name, count)?;
    match collective.kind() {
        CollectiveKind::Allgather => {}
        CollectiveKind::ReduceScatter | CollectiveKind::Allreduce => {
            return rounds(spreading(collective, count), count, extents)?.summing(collective);
        }
        _ => return Err(parts.unsupported()),
    }
    let steps = count.ilog2();
    let turns: Vec<Turns> = (0..part_count).map(|part| Turns::new(extents, part / 2, part % 2 == 1)).collect();
    let owned: Vec<Vec<Vec<Vec<u32>>>> =
        turns.iter().map(|turns| reached(count, steps, |rank, exchange| turns.partner(rank, exchange))).collect();
    for step in 0..steps {
        let exchange = steps - 1 - step;
        for from in 0..count {
            for (part, (turns, owned)) in (0..).zip(turns.iter().zip(&owned)) {
                let ends = (Rank::new(from), Rank::new(turns.partner(from, exchange)));
                let shares = &owned[exchange as usize + 1][from as usize];
                let chunk = |&share: &u32| u64::from(share) * part_count as u64 + part;
                parts.send(step, Action::Copy, ends, shares.iter().map(chunk))?;
            }
        }
    }
    Ok(parts)
}

/// The exchanges of one part.
struct Turns {
    /// By exchange: the stride of its dimension, the ranks along it, and its level there.
    turns: Vec<(u32, u32, u32)>,
    /// Whether even places go down and odd ones up.
    is_mirrored: bool,
}

impl Turns {
    /// Dimension after dimension from one on, as long as a dimension has levels left.
    fn new(extents: &[u32], first: usize, is_mirrored: bool) -> Self {
        let stride = |dimension: usize| extents[dimension + 1..].iter().product::<u32>();
        let levels = extents.iter().map(|extent| extent.ilog2()).max().unwrap_or(0);
        let dimensions = || (0..extents.len()).map(|dimension| (first + dimension) % extents.len());
        let all = (0..levels).flat_map(|level| dimensions().map(move |dimension| (dimension, level)));
        let left = all.filter(|&(dimension, level)| level < extents[dimension].ilog2());
        let turns = left.map(|(dimension, level)| (stride(dimension), extents[dimension], level)).collect();
        Self { turns, is_mirrored }
    }

    fn partner(&self, rank: u32, exchange: u32) -> u32 {
        let (stride, extent, level) = self.turns[exchange as usize];
        let place = rank / stride % extent;
        // Counted the other way around, even places stay even.
        let turned = |place: u32| if self.is_mirrored { (extent - place) % extent } else { place };
        let other = turned(partner(turned(place), level, extent));
        rank - place * stride + other * stride
    }
}
