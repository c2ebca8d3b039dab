//! `pmcf`, `pmcf-shortest`: the best use of some paths for each pair, in whole chunks.

use canopy_optimize::{WholePaths, path_optimum, whole_paths};
use canopy_schedule::Flow;
use canopy_synth::{AllToAllError, Stage, SynthesisError, Task};

use super::sets::{Choice, Sets};

/// Part of the rate of the best weights that may be lost to whole chunks.
const LOSS_MAX: f64 = 1e-3;

/// Most chunks of a block.
const CHUNKS_MAX: u64 = 1024;

/// Divides blocks among paths so that the busiest link is busy for the least time, in as few chunks as lose next to nothing of
/// it: 1, 2, 3, 4, 6, 8 and so on, up to 1,024.
///
/// * **Source.** Basu 2024 §3.1.4, equations (21)–(24), and §4.2.
/// * **Errors.** More paths than the program is solved for, or one that is not solved; too many hops, stopped.
/// * **Cost.** That of [`path_optimum`].
pub(super) fn plan(task: &Task<'_>, choice: Choice) -> Result<Flow, SynthesisError> {
    let &Task { topology, stop, progress, .. } = task;
    let algorithm = task.algorithm.name();
    let sets = Sets::of(task, choice)?;
    progress.report(Stage::Optimum, 0, 1);
    let optimum = path_optimum(&sets.graph, &sets.paths, &sets.demands, stop)?;
    let optimum = optimum.ok_or(AllToAllError::NotSolved { algorithm })?;
    progress.report(Stage::Optimum, 1, 1);
    // Their sum has 64 bits, or there would be no such shares.
    let units: u64 = sets.demands.iter().sum();
    let enough = (1.0 + LOSS_MAX) / optimum.rate;
    let mut best: Option<WholePaths> = None;
    let doubled = (0..).map(|exponent| 1_u64 << exponent);
    for chunks in doubled.flat_map(|power| [power, power / 2 * 3]).filter(|&chunks| chunks > 0) {
        if chunks > CHUNKS_MAX.min(u64::MAX / units.max(1)) {
            break;
        }
        let whole = whole_paths(&sets.graph, &sets.paths, &sets.demands, &optimum.weights, chunks, stop)?;
        if best.as_ref().is_none_or(|best| whole.load < best.load) {
            best = Some(whole);
        }
        if best.as_ref().is_some_and(|best| best.load.to_float() <= enough) {
            break;
        }
    }
    let best = best.ok_or(AllToAllError::NotSolved { algorithm })?;
    sets.flow(topology, best.chunks, &best.counts)
}
