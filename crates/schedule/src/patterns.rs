//! Flows whose paths look alike from every rank, said once: by places in groups of routes instead of by routes.
//!
//! The table of routes then consists of groups of as many routes each, one group for each rank, of routes that start there.
//! A pattern says for each hop which route it is of the group of the rank where it starts, so it stands for one path from
//! every rank.

use std::ops::Range;

use canopy_topology::{Rank, Topology};
use rayon::prelude::*;

use crate::route::{RouteIndex, RouteTable};
use crate::schedule::{Flow, Path};

/// Limits on the paths that patterns expand to, and on their hops: few bytes can name many.
const PATHS_MAX: u64 = 1 << 25;
const HOPS_MAX: u64 = 1 << 27;

/// Why patterns cannot be expanded to paths.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PatternsError {
    #[error(
        "ports is {ports}, but routes has {routes} entries; give a group of {ports} routes for each of the {rank_count} \
         ranks"
    )]
    Count { ports: u32, routes: usize, rank_count: u32 },
    #[error("routes[{route}] must lead from rank to rank, and start at the rank where its group starts")]
    Route { route: usize },
    #[error("routes has two groups that start at rank {rank}; give each rank one group")]
    Twice { rank: u32 },
    #[error("patterns[{pattern}] has no hop; give each pattern at least one")]
    Empty { pattern: usize },
    #[error("patterns[{pattern}] has hop {hop}, but groups have {ports} routes, counted from 0")]
    Hop { pattern: usize, hop: u32, ports: u32 },
    #[error(
        "patterns expand to {paths} paths of {hops} hops, over the limits of {PATHS_MAX} and {HOPS_MAX}; plan with \
         fewer chunks, or for fewer ranks"
    )]
    TooMany { paths: u128, hops: u128 },
    #[error("stopped before all paths were expanded")]
    Stopped,
}

impl PatternsError {
    /// The field at fault: `ports`, `routes` or `patterns`.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Count { .. } => "ports",
            Self::Route { .. } | Self::Twice { .. } => "routes",
            Self::Empty { .. } | Self::Hop { .. } | Self::TooMany { .. } | Self::Stopped => "patterns",
        }
    }
}

/// A path from each rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Number of chunks of each of the paths.
    pub chunk_count: u64,
    /// Positions in the groups of the ranks on the path, from 0.
    pub hops: Vec<u32>,
}

/// The paths of a flow by patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patterns {
    /// Routes of a group.
    pub ports: u32,
    /// In the order of the first source's paths.
    pub patterns: Vec<Pattern>,
}

impl Patterns {
    /// The patterns of a flow, if exactly its paths in their order are what they stand for. O(hops), on the threads of the
    /// caller's pool.
    pub fn of(topology: &Topology, flow: &Flow) -> Option<Self> {
        let rank_count = topology.rank_count();
        let ports = u32::try_from(flow.routes.len()).ok()? / rank_count;
        let groups = Groups::of(topology, &flow.routes, ports).ok()?;
        let source = flow.paths.first()?.source;
        let own = flow.paths.iter().take_while(|path| path.source == source);
        let pattern = |path: &Path| {
            let mut node = source.number();
            let hops = flow.hops_of(path).iter().map(|&route| {
                let place = route.number().checked_sub(groups.first(node)?).filter(|&place| place < ports)?;
                node = groups.end(route.number());
                Some(place)
            });
            let hops = hops.collect::<Option<Vec<u32>>>()?;
            (!hops.is_empty()).then_some(Pattern { chunk_count: path.chunk_count, hops })
        };
        let patterns = Self { ports, patterns: own.map(pattern).collect::<Option<_>>()? };
        let count = patterns.patterns.len();
        if flow.paths.len() as u64 != count as u64 * u64::from(rank_count) {
            return None;
        }
        if !groups.is_spread(&patterns, flow) {
            return None;
        }
        // Tables that are filled in another order would not be made again as they are.
        let mut next = 0;
        let is_in_order = flow.paths.iter().all(|path| {
            let Range { start, end } = path.hops;
            std::mem::replace(&mut next, end) == start
        });
        (is_in_order && next as usize == flow.hops.len()).then_some(patterns)
    }

    /// Expands patterns to a flow: paths by source, then by destination, then in the order of the patterns.
    ///
    /// * **Errors.** Routes that do not form groups, a hop beyond its group, over 2²⁵ paths or 2²⁷ hops, or `stop`,
    ///   asked for each source, returned true.
    /// * **Cost.** O(hops) time and memory.
    pub fn flow(
        &self,
        topology: &Topology,
        chunks_per_share: u64,
        routes: RouteTable,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Flow, PatternsError> {
        let (ports, rank_count) = (self.ports, topology.rank_count());
        let groups = Groups::of(topology, &routes, ports)?;
        for (position, pattern) in self.patterns.iter().enumerate() {
            if pattern.hops.is_empty() {
                return Err(PatternsError::Empty { pattern: position });
            }
            if let Some(&hop) = pattern.hops.iter().find(|&&hop| hop >= ports) {
                return Err(PatternsError::Hop { pattern: position, hop, ports });
            }
        }
        let ranks = u128::from(rank_count);
        let path_count = self.patterns.len() as u128 * ranks;
        let hop_count = self.patterns.iter().map(|pattern| pattern.hops.len() as u128).sum::<u128>() * ranks;
        if path_count > PATHS_MAX.into() || hop_count > HOPS_MAX.into() {
            return Err(PatternsError::TooMany { paths: path_count, hops: hop_count });
        }
        let room = |count: u128| usize::try_from(count).expect("at most 2²⁷");
        let (mut hops, mut paths) = (Vec::with_capacity(room(hop_count)), Vec::with_capacity(room(path_count)));
        let position = |hops: &Vec<RouteIndex>| u32::try_from(hops.len()).expect("at most 2²⁷ hops");
        for source in 0..rank_count {
            if stop() {
                return Err(PatternsError::Stopped);
            }
            for (destination, pattern) in self.order(&groups, source) {
                let Pattern { chunk_count, hops: places } = &self.patterns[pattern];
                let start = position(&hops);
                groups.walk(source, places, |route| hops.push(route));
                let (source, destination) = (Rank::new(source), Rank::new(destination));
                let hops = start..position(&hops);
                paths.push(Path { source, destination, chunk_count: *chunk_count, hops });
            }
        }
        Ok(Flow { chunks_per_share, routes, hops, paths })
    }

    /// Where each pattern leads from a rank, in the order of the paths.
    fn order(&self, groups: &Groups, source: u32) -> Vec<(u32, usize)> {
        let ends = self.patterns.iter().map(|pattern| groups.walk(source, &pattern.hops, |_| ()));
        let mut order: Vec<(u32, usize)> = ends.zip(0..).collect();
        order.sort_unstable();
        order
    }
}

/// Routes by the rank that they leave.
struct Groups {
    /// By rank, the first route of its group.
    firsts: Vec<u32>,
    /// By route, the rank where it ends.
    ends: Vec<u32>,
}

impl Groups {
    fn of(topology: &Topology, routes: &RouteTable, ports: u32) -> Result<Self, PatternsError> {
        let rank_count = topology.rank_count();
        if ports == 0 || routes.len() as u64 != u64::from(ports) * u64::from(rank_count) {
            return Err(PatternsError::Count { ports, routes: routes.len(), rank_count });
        }
        let mut firsts = vec![None; rank_count as usize];
        let mut ends = Vec::with_capacity(routes.len());
        let mut group = None;
        for ((number, place), links) in (0_u32..).zip((0..ports).cycle()).zip(routes.iter()) {
            let wrong = PatternsError::Route { route: number as usize };
            let rank = |node| topology.rank_of(node).map(Rank::number);
            let from = links.first().and_then(|&link| rank(topology.links().get(link.index())?.from));
            let to = links.last().and_then(|&link| rank(topology.links().get(link.index())?.to));
            let (Some(from), Some(to)) = (from, to) else { return Err(wrong) };
            if place == 0 {
                if firsts[from as usize].replace(number).is_some() {
                    return Err(PatternsError::Twice { rank: from });
                }
                group = Some(from);
            } else if group != Some(from) {
                return Err(wrong);
            }
            ends.push(to);
        }
        // As many groups as ranks, and none twice: each has one.
        Ok(Self { firsts: firsts.into_iter().flatten().collect(), ends })
    }

    /// Whether the paths of a flow are those that patterns stand for.
    fn is_spread(&self, patterns: &Patterns, flow: &Flow) -> bool {
        flow.paths.par_chunks(patterns.patterns.len()).enumerate().all(|(source, paths)| {
            let mut hops = Vec::new();
            let source = u32::try_from(source).expect("no more sources than ranks");
            patterns.order(self, source).into_iter().zip(paths).all(|((destination, pattern), path)| {
                let pattern = &patterns.patterns[pattern];
                hops.clear();
                self.walk(source, &pattern.hops, |route| hops.push(route));
                let expected = (Rank::new(source), Rank::new(destination), pattern.chunk_count);
                (path.source, path.destination, path.chunk_count) == expected && flow.hops_of(path) == hops
            })
        })
    }

    fn first(&self, rank: u32) -> Option<u32> {
        self.firsts.get(rank as usize).copied()
    }

    /// The rank where a route ends.
    fn end(&self, route: u32) -> u32 {
        self.ends.get(route as usize).copied().unwrap_or(u32::MAX)
    }

    /// Takes the routes of a pattern from a rank on, and says where they end.
    fn walk(&self, source: u32, places: &[u32], mut visit: impl FnMut(RouteIndex)) -> u32 {
        places.iter().fold(source, |node, place| {
            let route = self.firsts[node as usize] + place;
            visit(RouteIndex::new(route));
            self.ends[route as usize]
        })
    }
}

#[cfg(test)]
mod tests;
