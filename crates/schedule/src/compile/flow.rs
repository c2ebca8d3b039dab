//! Flows: one chain of transfers per path.

use std::ops::Range;

use canopy_topology::{Rank, Topology};

use super::error::CompileError;
use super::{Stop, TRANSFERS_MAX, ask};
use crate::collective::{Collective, CollectiveKind};
use crate::fault::PathFault;
use crate::forest::{Action, Carrier};
use crate::route::RouteIndex;
use crate::schedule::{Flow, Pace, Path, Schedule};
use crate::shares::ChunkLayout;
use crate::transfer::{Batch, Transfer, TransferGraph};

/// The transfers of a flow. Each waits for the one before it on its path, and places are never used twice.
///
/// O(pairs of ranks for all-to-all + hops).
pub(super) fn compile_flow(
    topology: &Topology,
    schedule: &Schedule,
    flow: &Flow,
    layout: &ChunkLayout,
    stop: Stop<'_>,
) -> Result<TransferGraph, CompileError> {
    let (kind, rank_count) = (schedule.collective.kind(), topology.rank_count());
    if !matches!(kind, CollectiveKind::Gather | CollectiveKind::Scatter | CollectiveKind::AllToAll) {
        return Err(CompileError::Unsupported { collective: kind, shape: "flow" });
    }
    let length = |path: &Path| usize::try_from(path.hops.end.saturating_sub(path.hops.start)).unwrap_or(usize::MAX);
    let found = flow.paths.iter().map(length).fold(0, usize::saturating_add);
    if found > TRANSFERS_MAX {
        return Err(CompileError::TooManyPathHops { found, limit: TRANSFERS_MAX });
    }
    let mut chains = Chains::new(topology, flow);
    let mut paths = flow.paths.iter().enumerate().peekable();
    for (source, destination) in pairs(schedule.collective, rank_count) {
        let chunks = layout.chunks_between(source, destination);
        let mut first = chunks.start;
        let is_theirs = |path: &Path| (path.source, path.destination) == (source, destination);
        while let Some((index, path)) = paths.next_if(|(_, path)| !chunks.is_empty() && is_theirs(path)) {
            ask(stop)?;
            let added = chains.add(path, first, &chunks);
            first = added.map_err(|source| CompileError::Path { path: index, source })?;
        }
        if first < chunks.end {
            let (found, expected) = (first - chunks.start, chunks.end - chunks.start);
            let (source_rank, destination) = (source.number(), destination.number());
            return Err(CompileError::TooFewPaths { source_rank, destination, found, expected });
        }
    }
    if let Some((index, path)) = paths.next() {
        let (source_rank, destination) = (path.source.number(), path.destination.number());
        let source = PathFault::Unexpected { source_rank, destination };
        return Err(CompileError::Path { path: index, source });
    }
    Ok(TransferGraph {
        steps: Vec::new(),
        pace: Pace::Barriers,
        collective: schedule.collective,
        rank_count,
        chunks_per_share: flow.chunks_per_share,
        shares: schedule.shares.clone(),
        routes: flow.routes.clone(),
        carriers: chains.carriers,
        dependencies: chains.dependencies,
        batches: chains.batches,
        transfers: chains.transfers,
    })
}

/// Ranks that have something for each other, by source, then by destination.
fn pairs(collective: Collective, rank_count: u32) -> impl Iterator<Item = (Rank, Rank)> {
    let all = move |only: Option<Rank>| only.map_or(0..rank_count, |rank| rank.number()..rank.number() + 1);
    let (sources, destinations) = match collective.kind() {
        CollectiveKind::Scatter => (all(collective.root()), all(None)),
        CollectiveKind::Gather => (all(None), all(collective.root())),
        _ => (all(None), all(None)),
    };
    let pairs = sources.flat_map(move |source| destinations.clone().map(move |destination| (source, destination)));
    pairs.filter(|(source, destination)| source != destination).map(|(from, to)| (Rank::new(from), Rank::new(to)))
}

/// The tables of a graph under construction.
struct Chains<'a> {
    topology: &'a Topology,
    flow: &'a Flow,
    carriers: Vec<Carrier>,
    dependencies: Vec<u32>,
    batches: Vec<Batch>,
    transfers: Vec<Transfer>,
    /// For each rank, the number of the last path that has been there.
    visits: Vec<u32>,
}

impl<'a> Chains<'a> {
    fn new(topology: &'a Topology, flow: &'a Flow) -> Self {
        let visits = vec![0; topology.rank_count() as usize];
        let (carriers, dependencies, batches, transfers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { topology, flow, carriers, dependencies, batches, transfers, visits }
    }

    /// Adds a path on the chunks from `first` on, which must not pass the end of `chunks`; returns where it ends.
    fn add(&mut self, path: &Path, first: u64, chunks: &Range<u64>) -> Result<u64, PathFault> {
        let (source_rank, destination) = (path.source.number(), path.destination.number());
        if path.chunk_count == 0 {
            return Err(PathFault::NoChunks);
        }
        let end = first.checked_add(path.chunk_count).filter(|&end| end <= chunks.end);
        let limit = chunks.end - chunks.start;
        let end = end.ok_or(PathFault::TooManyChunks { source_rank, destination, limit })?;
        let hops = self.flow.hops.get(path.hops.start as usize..path.hops.end as usize).unwrap_or_default();
        if hops.is_empty() {
            return Err(PathFault::NoHops);
        }
        let start = position(self.transfers.len());
        let number = position(self.batches.len()) + 1;
        self.visits[path.source.index()] = number;
        let mut at = path.source;
        for (hop, &route) in hops.iter().enumerate() {
            let (from, to) = self.ends(route).ok_or(PathFault::Route { hop, route: route.number() })?;
            if from != at {
                return Err(PathFault::Gap { hop, found: from.number(), expected: at.number() });
            }
            if std::mem::replace(&mut self.visits[to.index()], number) == number {
                return Err(PathFault::Loop { hop, rank: to.number() });
            }
            self.push(from, to, Carrier { route, chunk_count: path.chunk_count }, hop > 0);
            at = to;
        }
        if at != path.destination {
            return Err(PathFault::WrongEnd { found: at.number(), expected: destination });
        }
        let transfers = start..position(self.transfers.len());
        let (chunk_first, chunk_count) = (first, path.chunk_count);
        self.batches.push(Batch { action: Action::Copy, root: path.source, chunk_first, chunk_count, transfers });
        Ok(end)
    }

    /// Appends a transfer that waits for the one before, or for nothing.
    fn push(&mut self, from: Rank, to: Rank, carrier: Carrier, waits: bool) {
        let carriers = position(self.carriers.len());
        self.carriers.push(carrier);
        let dependencies = position(self.dependencies.len());
        if waits {
            self.dependencies.push(position(self.transfers.len() - 1));
        }
        let dependencies = dependencies..position(self.dependencies.len());
        self.transfers.push(Transfer { from, to, carriers: carriers..carriers + 1, dependencies });
    }

    /// The ranks where a route starts and ends.
    fn ends(&self, route: RouteIndex) -> Option<(Rank, Rank)> {
        let links = self.flow.routes.get(route)?;
        let link = |index: Option<&canopy_topology::LinkIndex>| self.topology.links().get(index?.index());
        let (first, last) = (link(links.first())?, link(links.last())?);
        self.topology.rank_of(first.from).zip(self.topology.rank_of(last.to))
    }
}

fn position(length: usize) -> u32 {
    u32::try_from(length).expect("bounded by TRANSFERS_MAX")
}
