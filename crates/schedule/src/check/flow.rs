//! The checks for flows, path by path, without a transfer graph.
//!
//! A flow of a thousand ranks has millions of paths of a few hops each. Its transfer graph takes gigabytes and says
//! nothing that the paths do not say; here they are followed where they stand, a hop taking four bytes. Nothing of the
//! compiler is called, so the two ways to judge a flow can be held against each other.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use canopy_topology::{NodeIndex, Rank, Topology};
use rayon::prelude::*;

use super::error::{FlowError, LoadError, StructureError};
use super::load::{add_up, busiest};
use super::structure::{RouteEnds, route_ends};
use super::{CheckError, Stop, Verdict, in_network};
use crate::collective::{Collective, CollectiveKind};
use crate::fault::PathFault;
use crate::route::RouteTable;
use crate::schedule::{Flow, Path, Schedule, Shape};
use crate::shares::ChunkLayout;

/// Paths that one thread follows at a time.
const BLOCK: usize = 1 << 14;

/// Judges a flow: what [`check`](super::check) says of its transfer graph, from the paths alone.
///
/// * **Structure.** Every route of the table is one; every path has chunks and hops, each hop starts where the one before
///   ended, from the source to the destination, and none comes to a rank where the path has been.
/// * **Meaning.** Pairs of ranks come in order, those that have something for each other and no others, and the chunks of
///   a pair's paths add up to exactly what the collective promises: k times the weight of the block in all-to-all, or of the
///   share in gather and scatter.
/// * **Load.** Chunks over each link and the exact algbw, as for any other schedule.
///
/// Dependencies need no look, as a flow has none to be wrong: the shape itself says that a hop follows the one before it
/// on its path. Nor can transfers clash. Paths take different chunks, since those of a pair take consecutive ones; and on
/// one path every rank is come to once, so each place is written by one hop and read by the next.
///
/// * **Errors.** The first fault in the order of routes, then of paths, whatever the number of threads.
/// * **Cost.** O(hops + links of all routes + pairs of ranks), on all threads of the caller's pool; 20 bytes for each route
///   and 4 for each rank and thread.
pub fn check_flow(topology: &Topology, schedule: &Schedule) -> Result<Verdict, CheckError> {
    check_flow_until(topology, schedule, &|| false)
}

/// [`check_flow`], ended early with [`CheckError::Stopped`] soon after `stop` says so. It is asked for every pair of ranks,
/// so it has to be quick.
pub fn check_flow_until(
    topology: &Topology,
    schedule: &Schedule,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Verdict, CheckError> {
    let Shape::Flow(flow) = &schedule.shape else {
        return Err(FlowError::NotAFlow { shape: schedule.shape.name() }.into());
    };
    let (collective, rank_count) = (schedule.collective, topology.rank_count());
    if let Some(root) = collective.root().filter(|root| root.number() >= rank_count) {
        return Err(StructureError::UnknownRoot { root: root.number(), rank_count }.into());
    }
    let layout = ChunkLayout::new(collective, rank_count, flow.chunks_per_share, &schedule.shares);
    let layout = layout.map_err(StructureError::from)?;
    if !matches!(collective.kind(), CollectiveKind::Gather | CollectiveKind::Scatter | CollectiveKind::AllToAll) {
        return Err(FlowError::Unsupported { collective: collective.kind() }.into());
    }
    let ends = ends_of_all(topology, &flow.routes)?;
    let loads = flow.routes.iter().map(|_| AtomicU64::new(0)).collect();
    let walk = Walk { flow, layout: &layout, pairs: Pairs::new(collective, rank_count), rank_count, ends, loads };
    let sums = walk.all(stop)?;

    // A path is on a route once, as it leaves a rank once. So no route carries more chunks than there are: none of the
    // sums has wrapped around.
    let route_loads = walk.loads.iter().map(|load| u128::from(load.load(Ordering::Relaxed)));
    let loads = add_up(topology, &flow.routes, route_loads)?;
    let size = layout.size();
    let (algbw, busiest_link) = busiest(topology, &loads, size)?;
    let found = sums.chunks;
    Ok(Verdict {
        algbw,
        busiest_link,
        tree_count: u64::try_from(found).map_err(|_| LoadError::TooManyTrees { found })?,
        depth_max: sums.depth_max,
        depth_sum: sums.depth_sum,
        links_max: sums.links_max,
        links_sum: sums.links_sum,
        batch_count: flow.paths.len(),
        chain_max: sums.depth_max,
        steps: None,
        in_network: in_network::weigh_flow(topology, flow, &loads, size, stop)?,
        checks: ["structure", "meaning", "load"],
    })
}

/// Where each route leads. O(links of all routes).
fn ends_of_all(topology: &Topology, routes: &RouteTable) -> Result<Vec<RouteEnds>, StructureError> {
    let of_all = routes.iter().enumerate().map(|(index, links)| {
        route_ends(topology, links).map_err(|source| StructureError::Route { route: index, source })
    });
    of_all.collect()
}

/// The pairs of ranks that may have something for each other, numbered by source, then by destination.
struct Pairs {
    kind: CollectiveKind,
    root: Rank,
    rank_count: u64,
}

impl Pairs {
    fn new(collective: Collective, rank_count: u32) -> Self {
        let root = collective.root().unwrap_or(Rank::new(0));
        Self { kind: collective.kind(), root, rank_count: rank_count.into() }
    }

    /// The first pair from a number on that has something to move.
    fn from(&self, number: u64, layout: &ChunkLayout) -> Option<(Rank, Rank)> {
        let count =
            if self.kind == CollectiveKind::AllToAll { self.rank_count * self.rank_count } else { self.rank_count };
        let rank = |number: u64| Rank::new(u32::try_from(number).expect("below the number of ranks"));
        let pairs = (number..count).map(|number| match self.kind {
            CollectiveKind::Scatter => (self.root, rank(number)),
            CollectiveKind::Gather => (rank(number), self.root),
            _ => (rank(number / self.rank_count), rank(number % self.rank_count)),
        });
        let mut pairs = pairs.filter(|(source, destination)| source != destination);
        pairs.find(|&(source, destination)| !layout.chunks_between(source, destination).is_empty())
    }

    /// The first pair after one that is of the collective.
    fn after(&self, (source, destination): (Rank, Rank), layout: &ChunkLayout) -> Option<(Rank, Rank)> {
        let (source, destination) = (u64::from(source.number()), u64::from(destination.number()));
        let number = match self.kind {
            CollectiveKind::Scatter => destination,
            CollectiveKind::Gather => source,
            // Of ranks that do not exist the number may be any: their path is at fault itself.
            _ => source.saturating_mul(self.rank_count).saturating_add(destination),
        };
        self.from(number.saturating_add(1), layout)
    }
}

/// A flow whose paths are being followed.
struct Walk<'a> {
    flow: &'a Flow,
    layout: &'a ChunkLayout,
    pairs: Pairs,
    rank_count: u32,
    /// By route.
    ends: Vec<RouteEnds>,
    /// By route: chunks on it, added up by all threads. Sums of integers come out the same in any order.
    loads: Vec<AtomicU64>,
}

/// What is said of all paths together.
#[derive(Default)]
struct Sums {
    chunks: u128,
    depth_max: u32,
    depth_sum: u128,
    links_max: u32,
    links_sum: u128,
}

impl Sums {
    fn and(self, other: &Self) -> Self {
        Self {
            chunks: self.chunks + other.chunks,
            depth_max: self.depth_max.max(other.depth_max),
            depth_sum: self.depth_sum + other.depth_sum,
            links_max: self.links_max.max(other.links_max),
            links_sum: self.links_sum + other.links_sum,
        }
    }
}

impl Walk<'_> {
    /// Follows all paths, in blocks that depend on nothing but the flow.
    fn all(&self, stop: Stop<'_>) -> Result<Sums, CheckError> {
        let blocks = self.blocks();
        let found: Vec<Result<Sums, CheckError>> = blocks
            .into_par_iter()
            .map_init(|| Visits::new(self.rank_count), |visits, block| self.block(block, visits, stop))
            .collect();
        found.into_iter().try_fold(Sums::default(), |sums, found| Ok(sums.and(&found?)))
    }

    /// The paths, cut where a pair of ranks begins. At least one block, which may be empty.
    fn blocks(&self) -> Vec<Range<usize>> {
        let paths = &self.flow.paths;
        let mut blocks = Vec::with_capacity(paths.len() / BLOCK + 1);
        let mut start = 0;
        while start < paths.len() || blocks.is_empty() {
            let mut end = paths.len().min(start + BLOCK);
            while end < paths.len() && pair(&paths[end]) == pair(&paths[end - 1]) {
                end += 1;
            }
            blocks.push(start..end);
            start = end;
        }
        blocks
    }

    /// Follows the paths of a block. Where all blocks before are right, the one before its first path is of the pair
    /// before; where they are not, what is found here does not matter.
    fn block(&self, block: Range<usize>, visits: &mut Visits, stop: Stop<'_>) -> Result<Sums, CheckError> {
        let paths = &self.flow.paths;
        let mut turn = match block.start {
            0 => self.pairs.from(0, self.layout),
            start => self.pairs.after(pair(&paths[start - 1]), self.layout),
        };
        let mut sums = Sums::default();
        let mut at = block.start;
        while at < block.end {
            if stop() {
                return Err(CheckError::Stopped);
            }
            let Some((source, destination)) = turn else {
                let (source_rank, destination) = (paths[at].source.number(), paths[at].destination.number());
                let source = PathFault::Unexpected { source_rank, destination };
                return Err(FlowError::Path { path: at, source }.into());
            };
            let mut left = self.chunks_of(source, destination);
            while at < block.end && pair(&paths[at]) == (source, destination) {
                let taken = self.path(&paths[at], left, visits, &mut sums);
                left -= taken.map_err(|source| FlowError::Path { path: at, source })?;
                at += 1;
            }
            if left > 0 {
                return Err(self.too_few(source, destination, left).into());
            }
            turn = self.pairs.after((source, destination), self.layout);
        }
        match turn.filter(|_| block.end == paths.len()) {
            Some((source, destination)) => {
                Err(self.too_few(source, destination, self.chunks_of(source, destination)).into())
            }
            None => Ok(sums),
        }
    }

    /// Follows a path of a pair that has so many chunks left; returns how many of them it takes.
    fn path(&self, path: &Path, left: u64, visits: &mut Visits, sums: &mut Sums) -> Result<u64, PathFault> {
        let count = path.chunk_count;
        if count == 0 {
            return Err(PathFault::NoChunks);
        }
        if count > left {
            let (source_rank, destination) = (path.source.number(), path.destination.number());
            let limit = self.chunks_of(path.source, path.destination);
            return Err(PathFault::TooManyChunks { source_rank, destination, limit });
        }
        let hops = self.flow.hops_of(path);
        if hops.is_empty() {
            return Err(PathFault::NoHops);
        }
        visits.begin(path.source);
        let (mut at, mut links) = (path.source, 0_u32);
        for (hop, &route) in hops.iter().enumerate() {
            let ends = self
                .ends
                .get(route.index())
                .and_then(|&(start, end, length)| Some((self.rank_at(start)?, self.rank_at(end)?, length)));
            let (from, to, length) = ends.ok_or(PathFault::Route { hop, route: route.number() })?;
            if from != at {
                return Err(PathFault::Gap { hop, found: from.number(), expected: at.number() });
            }
            if visits.again(to) {
                return Err(PathFault::Loop { hop, rank: to.number() });
            }
            self.loads[route.index()].fetch_add(count, Ordering::Relaxed);
            links = links.saturating_add(length);
            at = to;
        }
        if at != path.destination {
            return Err(PathFault::WrongEnd { found: at.number(), expected: path.destination.number() });
        }
        // No rank twice, so fewer hops than ranks.
        let depth = u32::try_from(hops.len()).unwrap_or(u32::MAX);
        sums.chunks += u128::from(count);
        sums.depth_max = sums.depth_max.max(depth);
        sums.depth_sum += u128::from(count) * u128::from(depth);
        sums.links_max = sums.links_max.max(links);
        sums.links_sum += u128::from(count) * u128::from(links);
        Ok(count)
    }

    /// Chunks that one existing rank has for another.
    fn chunks_of(&self, source: Rank, destination: Rank) -> u64 {
        let chunks = self.layout.chunks_between(source, destination);
        chunks.end - chunks.start
    }

    /// The rank of a node, if it is one: ranks are the first nodes.
    fn rank_at(&self, node: NodeIndex) -> Option<Rank> {
        (node.number() < self.rank_count).then(|| Rank::new(node.number()))
    }

    fn too_few(&self, source: Rank, destination: Rank, left: u64) -> FlowError {
        let expected = self.chunks_of(source, destination);
        let (source_rank, destination) = (source.number(), destination.number());
        FlowError::TooFewPaths { source_rank, destination, found: expected - left, expected }
    }
}

const fn pair(path: &Path) -> (Rank, Rank) {
    (path.source, path.destination)
}

/// Where the path at hand has been.
struct Visits {
    path: u64,
    /// By rank: the last path that came there.
    latest: Vec<u64>,
}

impl Visits {
    fn new(rank_count: u32) -> Self {
        Self { path: 0, latest: vec![0; rank_count as usize] }
    }

    /// Begins a path at an existing rank.
    fn begin(&mut self, source: Rank) {
        self.path += 1;
        self.latest[source.index()] = self.path;
    }

    /// Whether the path has been at an existing rank before; it has from then on.
    fn again(&mut self, rank: Rank) -> bool {
        std::mem::replace(&mut self.latest[rank.index()], self.path) == self.path
    }
}
