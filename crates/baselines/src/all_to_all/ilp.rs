//! `ilp-disjoint`, `ilp-shortest`: one of some paths for each pair, so that the busiest link carries the fewest.

use canopy_optimize::{Fraction, SingleOptions, SinglePaths, path_optimum, single_load_bound, single_paths};
use canopy_schedule::{Flow, Path, Shape};
use canopy_synth::components::seconds_per_byte;
use canopy_synth::{AllToAllError, Stage, SynthesisError, Task};

use super::sets::{Choice, Sets};
use super::{dor, sssp};

/// Most paths to choose among, of all pairs: the linear program of more takes minutes.
const PATHS_MAX: u64 = 50_000;

/// Effort for each lesser load: moves of a local search, and where that fails on small networks the integer program itself.
const OPTIONS: SingleOptions = SingleOptions { moves_max: 100_000, paths_max: 1_000, nodes_max: 200 };

/// Chooses a path for each pair by local search, and an integer program where that is not proven best and the network is small.
///
/// The search begins with the better of `sssp` and `dor` if their paths are among those of their pairs. Where one of them is
/// still faster than the choice, its paths join those of their pairs and the search is repeated, so that neither ever is.
///
/// * **Source.** Basu 2024 §5, `ILP-disjoint` and `ILP-shortest`.
/// * **Out.** k = 1; and the load of the busiest link, in blocks for each byte per second, that no choice of one path for each
///   pair is below: proven by prices of links, whole numbers of blocks on each taken into account.
/// * **Errors.** Too many paths, a linear program that is not solved, stopped.
pub(super) fn plan(task: &Task<'_>, choice: Choice) -> Result<(Flow, Fraction), SynthesisError> {
    let &Task { topology, progress, .. } = task;
    progress.report(Stage::Optimum, 0, 1);
    let mut sets = Sets::of(task, choice)?;
    let routings = routings(task)?;
    let paths: Vec<Vec<Vec<u32>>> = routings.iter().map(paths_of).collect();
    let starts: Vec<Vec<u32>> = paths.iter().filter_map(|paths| sets.places(paths)).collect();
    let (mut found, mut least) = chosen(task, &sets, &starts)?;
    let is_faster = |flow: Flow| seconds_per_byte(topology, &Shape::Flow(flow)) < found.load;
    if routings.into_iter().any(is_faster) {
        let starts: Vec<Vec<u32>> = paths.iter().map(|paths| sets.include(paths)).collect();
        (found, least) = chosen(task, &sets, &starts)?;
    }
    progress.report(Stage::Optimum, 1, 1);
    let counts: Vec<Vec<u64>> = (sets.paths.iter().zip(&found.choices))
        .map(|(paths, &choice)| (0_u32..).zip(paths).map(|(place, _)| u64::from(place == choice)).collect())
        .collect();
    Ok((sets.flow(topology, 1, &counts)?, least))
}

/// The best choice that is found, and the load that none is below.
fn chosen(task: &Task<'_>, sets: &Sets, starts: &[Vec<u32>]) -> Result<(SinglePaths, Fraction), SynthesisError> {
    let (algorithm, stop) = (task.algorithm.name(), task.stop);
    let needed: u64 = sets.paths.iter().map(|paths| paths.len() as u64).sum();
    if needed > PATHS_MAX {
        return Err(AllToAllError::TooManyPaths { algorithm, needed, limit: PATHS_MAX }.into());
    }
    let optimum = path_optimum(&sets.graph, &sets.paths, &sets.demands, stop)?;
    let optimum = optimum.ok_or(AllToAllError::NotSolved { algorithm })?;
    let least = single_load_bound(&sets.graph, &sets.paths, &optimum.prices);
    Ok((single_paths(&sets.graph, &sets.paths, starts, least, OPTIONS, stop)?, least))
}

/// Routings of one path for each pair; that of `dor` on grids only.
fn routings(task: &Task<'_>) -> Result<Vec<Flow>, SynthesisError> {
    let mut flows = vec![sssp::plan(task)?];
    match dor::plan(task) {
        Ok(flow) => flows.push(flow),
        Err(SynthesisError::AllToAll(AllToAllError::NoGrid | AllToAllError::BrokenGrid { .. })) => {}
        Err(other) => return Err(other),
    }
    Ok(flows)
}

/// The links of each path.
fn paths_of(flow: &Flow) -> Vec<Vec<u32>> {
    let links = |path: &Path| {
        let hops = flow.hops.get(path.hops.start as usize..path.hops.end as usize).unwrap_or_default();
        let links = hops.iter().flat_map(|&hop| flow.routes.get(hop).unwrap_or_default());
        links.map(|link| link.number()).collect()
    };
    flow.paths.iter().map(links).collect()
}
