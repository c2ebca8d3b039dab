//! From whole flows to paths of ranks and routes between them.

use std::collections::{BTreeSet, HashMap};

use canopy_optimize::{ConcurrentProblem, Stop, WholeFlow, WholePath};
use canopy_schedule::{Flow, Pattern, Patterns, PatternsError, RouteTable};
use canopy_topology::{LinkIndex, Rank, Topology};
use rayon::prelude::*;

use super::network::Network;
use crate::error::SynthesisError;
use crate::parts::{FlowParts, require_room};
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
    let rank_count = topology.rank_count();
    let apart = |commodity: usize| {
        ask(stop)?;
        whole.paths(problem, commodity).map_err(SynthesisError::from)
    };
    if network.is_translated() {
        let flow = spread(topology, network, &apart(0)?, whole.chunks, stop)?;
        progress.report(Stage::Routes, rank_count.into(), rank_count.into());
        return Ok(flow);
    }
    let mut parts = FlowParts::new(topology, whole.chunks);
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

/// The paths of rank 0, translated to every rank.
///
/// Routes are grouped by the rank that they leave, and in each group those of one orbit have the same place: so the paths
/// of all ranks take the same places in the groups that they pass. O(hops).
fn spread(
    topology: &Topology,
    network: &Network,
    template: &[WholePath],
    chunks_per_share: u64,
    stop: &dyn Stop,
) -> Result<Flow, SynthesisError> {
    let used: BTreeSet<u32> = template.iter().flat_map(|path| &path.arcs).map(|&arc| network.orbit(arc)).collect();
    let mut routes = RouteTable::default();
    for leaving in network.leaving() {
        for &orbit in &used {
            routes.push(&[LinkIndex::new(leaving[orbit as usize])]);
        }
    }
    let length: usize = template.iter().map(|path| path.arcs.len()).sum();
    require_room(length as u64 * network.leaving().len() as u64)?;
    let places: HashMap<u32, u32> = used.iter().copied().zip(0..).collect();
    let pattern = |path: &WholePath| {
        let hops = path.arcs.iter().map(|&arc| places[&network.orbit(arc)]).collect();
        Pattern { chunk_count: path.chunks, hops }
    };
    let ports = u32::try_from(used.len()).expect("a rank has fewer links than there are");
    let patterns = Patterns { ports, patterns: template.iter().map(pattern).collect() };
    let flow = patterns.flow(topology, chunks_per_share, routes, &|| stop.is_requested());
    flow.map_err(|error| match error {
        PatternsError::Stopped => SynthesisError::Stopped,
        error => SynthesisError::Broken { what: format!("translated paths: {error}") },
    })
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
