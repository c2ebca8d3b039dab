//! From whole flows to paths of ranks and routes between them.

use std::collections::{BTreeSet, HashMap};

use canopy_optimize::{ConcurrentProblem, Stop, WholeFlow, WholePath};
use canopy_schedule::{Flow, Path, RouteIndex, RouteTable};
use canopy_topology::{LinkIndex, Rank, Topology};
use rayon::prelude::*;

use super::network::Network;
use crate::error::SynthesisError;
use crate::parts::{FlowParts, position, require_room};
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
        let flow = spread(network, &apart(0)?, whole.chunks, stop)?;
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
    network: &Network,
    template: &[WholePath],
    chunks_per_share: u64,
    stop: &dyn Stop,
) -> Result<Flow, SynthesisError> {
    let used: BTreeSet<u32> = template.iter().flat_map(|path| &path.arcs).map(|&arc| network.orbit(arc)).collect();
    let mut routes = RouteTable::default();
    let mut ends = Vec::new();
    for leaving in network.leaving() {
        for &orbit in &used {
            let arc = leaving[orbit as usize];
            routes.push(&[LinkIndex::new(arc)]);
            ends.push(network.head(arc));
        }
    }
    let places: HashMap<u32, u32> = used.iter().copied().zip(0..).collect();
    let patterns: Vec<Vec<u32>> =
        template.iter().map(|path| path.arcs.iter().map(|&arc| places[&network.orbit(arc)]).collect()).collect();
    let length: usize = patterns.iter().map(Vec::len).sum();
    require_room(length as u64 * network.leaving().len() as u64)?;
    let mut hops = Vec::with_capacity(length * network.leaving().len());
    let mut paths = Vec::with_capacity(template.len() * network.leaving().len());
    let group = u32::try_from(used.len()).expect("a rank has fewer links than there are");
    for (source, _) in (0..).zip(network.leaving()) {
        ask(stop)?;
        let end = |pattern: &Vec<u32>| pattern.iter().fold(source, |node, place| ends[(node * group + place) as usize]);
        let mut order: Vec<(u32, usize)> =
            patterns.iter().enumerate().map(|(path, pattern)| (end(pattern), path)).collect();
        order.sort_unstable();
        for (destination, path) in order {
            let first = position(hops.len())?;
            let mut node = source;
            for place in &patterns[path] {
                let route = node * group + place;
                hops.push(RouteIndex::new(route));
                node = ends[route as usize];
            }
            let hops = first..position(hops.len())?;
            let (source, destination) = (Rank::new(source), Rank::new(destination));
            paths.push(Path { source, destination, chunk_count: template[path].chunks, hops });
        }
    }
    Ok(Flow { chunks_per_share, routes, hops, paths })
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
