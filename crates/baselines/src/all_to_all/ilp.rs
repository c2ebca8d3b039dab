//! `ilp-disjoint`, `ilp-shortest`: one of some paths for each pair, so that the busiest link carries the fewest.

use canopy_optimize::{Fraction, SingleOptions, path_optimum, single_load_bound, single_paths};
use canopy_schedule::Flow;
use canopy_synth::{AllToAllError, Stage, SynthesisError, Task};

use super::sets::{Choice, Sets};

/// Most paths to choose among, of all pairs: beyond, local search alone would bear the name of an integer program.
const PATHS_MAX: u64 = 20_000;

/// How far the integer program itself is tried, where local search does not reach the linear program's limit.
const OPTIONS: SingleOptions = SingleOptions { paths_max: 1_000, nodes_max: 200 };

/// Chooses a path for each pair by local search, and an integer program where that is not proven best and the network is small.
///
/// * **Source.** Basu 2024 §5, `ILP-disjoint` and `ILP-shortest`.
/// * **Out.** k = 1; and the load of the busiest link, in blocks for each byte per second, that no choice of one path for each
///   pair is below: proven by prices of links, whole numbers of blocks on each taken into account.
/// * **Errors.** Too many paths, a linear program that is not solved, stopped.
pub(super) fn plan(task: &Task<'_>, choice: Choice) -> Result<(Flow, Fraction), SynthesisError> {
    let &Task { topology, stop, progress, .. } = task;
    let algorithm = task.algorithm.name();
    progress.report(Stage::Optimum, 0, 1);
    let sets = Sets::of(task, choice)?;
    let needed: u64 = sets.paths.iter().map(|paths| paths.len() as u64).sum();
    if needed > PATHS_MAX {
        return Err(AllToAllError::TooManyPaths { algorithm, needed, limit: PATHS_MAX }.into());
    }
    let optimum = path_optimum(&sets.graph, &sets.paths, &sets.demands, stop)?;
    let optimum = optimum.ok_or(AllToAllError::NotSolved { algorithm })?;
    let least = single_load_bound(&sets.graph, &sets.paths, &optimum.prices);
    let found = single_paths(&sets.graph, &sets.paths, least, OPTIONS, stop)?;
    progress.report(Stage::Optimum, 1, 1);
    let counts: Vec<Vec<u64>> = (sets.paths.iter().zip(&found.choices))
        .map(|(paths, &choice)| (0_u32..).zip(paths).map(|(place, _)| u64::from(place == choice)).collect())
        .collect();
    Ok((sets.flow(topology, 1, &counts)?, least))
}
