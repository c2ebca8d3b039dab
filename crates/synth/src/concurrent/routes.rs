//! From whole flows to paths of ranks and routes between them.

use canopy_optimize::{ConcurrentProblem, Stop, WholeFlow, WholePath};
use canopy_schedule::Flow;
use canopy_topology::{LinkIndex, Rank, Topology};
use rayon::prelude::*;

use super::network::Network;
use crate::error::SynthesisError;
use crate::parts::FlowParts;
use crate::progress::{Progress, Stage};
use crate::reach::ask;

/// Sources whose paths are taken apart at a time.
const SOURCES_AT_ONCE: usize = 64;

/// The paths of all pairs.
///
/// O(hops), and of networks without translations what it takes to find the widest paths.
pub(super) fn flow(
    topology: &Topology,
    network: &Network,
    problem: &ConcurrentProblem<'_>,
    whole: &WholeFlow,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Flow, SynthesisError> {
    let mut parts = FlowParts::new(topology, whole.chunks);
    let rank_count = topology.rank_count();
    let apart = |commodity: usize| {
        ask(stop)?;
        whole.paths(problem, commodity).map_err(SynthesisError::from)
    };
    if network.is_translated() {
        let template = apart(0)?;
        for rank in 0..rank_count {
            ask(stop)?;
            let moved = template.iter().map(|path| {
                let arcs: Vec<u32> = network.translated(rank, &path.arcs).collect();
                let sink = arcs.last().map_or(rank, |&arc| problem.graph().arcs[arc as usize].to);
                WholePath { sink, chunks: path.chunks, arcs }
            });
            let mut moved: Vec<WholePath> = moved.collect();
            moved.sort_by_key(|path| path.sink);
            add(&mut parts, rank, &moved)?;
            progress.report(Stage::Routes, u64::from(rank) + 1, rank_count.into());
        }
        return Ok(parts.finish());
    }
    let commodities: Vec<usize> = (0..problem.commodities().len()).collect();
    for some in commodities.chunks(SOURCES_AT_ONCE) {
        let paths: Vec<Result<Vec<WholePath>, SynthesisError>> =
            some.par_iter().map(|&commodity| apart(commodity)).collect();
        for (&commodity, paths) in some.iter().zip(paths) {
            let source = problem.commodities()[commodity].source;
            add(&mut parts, source, &paths?)?;
            progress.report(Stage::Routes, commodity as u64 + 1, rank_count.into());
        }
    }
    Ok(parts.finish())
}

fn add(parts: &mut FlowParts<'_>, source: u32, paths: &[WholePath]) -> Result<(), SynthesisError> {
    let mut links = Vec::new();
    for path in paths {
        links.clear();
        links.extend(path.arcs.iter().map(|&arc| LinkIndex::new(arc)));
        parts.add_path(Rank::new(source), Rank::new(path.sink), path.chunks, &links)?;
    }
    Ok(())
}
