//! Flows with one path for each pair of ranks whose paths from each rank form a tree, said by the links of the trees.
//!
//! A tree of a thousand nodes has as many links, and the paths along it some thousands: on them, each node is come to over one
//! link. Paths follow from the trees, and so do their routes: in the order in which paths first take them.

use canopy_topology::{LinkIndex, NodeIndex, Rank, Topology};

use crate::route::{RouteIndex, RouteInterner, RouteTable};
use crate::schedule::{Flow, Path};

/// Limits on what trees expand to: pairs of ranks, and the hops of their paths.
const PATHS_MAX: u64 = 1 << 25;
const HOPS_MAX: usize = 1 << 27;

/// Where no link leads.
const NONE: LinkIndex = LinkIndex::new(u32::MAX);

/// Why trees cannot be expanded to paths.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PathTreesError {
    #[error("trees has {found} lists of links; give one for each of the {rank_count} ranks")]
    Count { found: usize, rank_count: u32 },
    #[error("trees[{tree}] has link {link}, but there are {link_count}, counted from 0")]
    Link { tree: u32, link: u32, link_count: usize },
    #[error("trees[{tree}] has a second way to node {node}; give one link into each node, and none into rank {tree}")]
    Twice { tree: u32, node: u32 },
    #[error("trees[{tree}] does not lead from rank {tree} to rank {rank}; add the links between them")]
    Apart { tree: u32, rank: u32 },
    #[error("routes has {found} entries, but follows from trees; leave it empty")]
    Routes { found: usize },
    #[error("trees expand to more than {PATHS_MAX} paths or {HOPS_MAX} hops; plan for fewer ranks")]
    TooMany,
    #[error("stopped before all paths were expanded")]
    Stopped,
}

impl PathTreesError {
    /// The field at fault: `routes` or `trees`.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Routes { .. } => "routes",
            _ => "trees",
        }
    }
}

/// A tree of links from each rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathTrees {
    node_count: usize,
    /// By source, then by node: the link over which its tree comes to the node.
    links: Vec<LinkIndex>,
}

impl PathTrees {
    /// Trees without links.
    pub fn new(topology: &Topology) -> Self {
        let node_count = topology.nodes().len();
        Self { node_count, links: vec![NONE; node_count * topology.rank_count() as usize] }
    }

    /// Reads the links of each rank's tree, in any order.
    ///
    /// # Errors
    /// Not one list for each rank; links that do not exist; two into one node, or one into the source.
    pub fn from_lists(topology: &Topology, lists: &[Vec<u32>]) -> Result<Self, PathTreesError> {
        let rank_count = topology.rank_count();
        if lists.len() != rank_count as usize {
            return Err(PathTreesError::Count { found: lists.len(), rank_count });
        }
        if u64::from(rank_count).pow(2) > PATHS_MAX {
            return Err(PathTreesError::TooMany);
        }
        let mut trees = Self::new(topology);
        for (tree, list) in (0..).zip(lists) {
            for &link in list {
                let link_count = topology.links().len();
                let ends = topology.links().get(link as usize);
                let node = ends.ok_or(PathTreesError::Link { tree, link, link_count })?.to;
                let place = trees.place(Rank::new(tree), node);
                if node.number() == tree || trees.links[place] != NONE {
                    return Err(PathTreesError::Twice { tree, node: node.number() });
                }
                trees.links[place] = LinkIndex::new(link);
            }
        }
        Ok(trees)
    }

    /// The trees of a flow, if exactly its paths and routes are what they expand to: one path between every two ranks, with
    /// all that the one has for the other, hops and routes in the order of paths. O(links of all paths).
    pub fn of(topology: &Topology, flow: &Flow) -> Option<Self> {
        let ranks = u64::from(topology.rank_count());
        if flow.paths.len() as u64 != ranks * ranks.saturating_sub(1) || ranks.pow(2) > PATHS_MAX {
            return None;
        }
        let mut trees = Self::new(topology);
        let others = |source: Rank| topology.ranks().filter(move |&destination| destination != source);
        let pairs = topology.ranks().flat_map(|source| others(source).map(move |destination| (source, destination)));
        let (mut next_hop, mut next_route) = (0, 0);
        for (path, (source, destination)) in flow.paths.iter().zip(pairs) {
            let is_next = std::mem::replace(&mut next_hop, path.hops.end) == path.hops.start;
            let ends = (path.source, path.destination, path.chunk_count);
            if !is_next || ends != (source, destination, flow.chunks_per_share) {
                return None;
            }
            let mut rank = source;
            for &hop in flow.hops.get(path.hops.start as usize..path.hops.end as usize)? {
                // Routes are first taken in their order.
                if hop.number() >= next_route {
                    (hop.number() == next_route).then_some(())?;
                    next_route += 1;
                }
                rank = trees.take(topology, source, rank, flow.routes.get(hop)?)?;
            }
            if rank != destination {
                return None;
            }
        }
        let is_all = next_hop as usize == flow.hops.len() && next_route as usize == flow.routes.len();
        let mut names = Names::new(topology);
        (is_all && flow.routes.iter().zip(0..).all(|(links, route)| names.of(links).number() == route)).then_some(trees)
    }

    /// Has the tree of a source take a hop from a rank, and says where it ends. `None` where it is no hop from rank to rank, or
    /// comes to a node by another way than a path before it.
    fn take(&mut self, topology: &Topology, source: Rank, from: Rank, links: &[LinkIndex]) -> Option<Rank> {
        let mut node = from.node();
        for (place, &link) in links.iter().enumerate() {
            let ends = topology.links().get(link.index())?;
            let is_on = ends.from == node && (place == 0 || topology.rank_of(node).is_none());
            node = ends.to;
            let known = self.place(source, node);
            if !is_on || node == source.node() || (self.links[known] != NONE && self.links[known] != link) {
                return None;
            }
            self.links[known] = link;
        }
        topology.rank_of(node).filter(|_| !links.is_empty())
    }

    /// Has the tree of a rank come to a node over this link.
    pub fn set(&mut self, source: Rank, node: NodeIndex, link: LinkIndex) {
        let place = self.place(source, node);
        self.links[place] = link;
    }

    /// The links of each rank's tree, by the nodes that they lead to.
    pub fn lists(&self) -> impl Iterator<Item = impl Iterator<Item = LinkIndex>> {
        self.links.chunks(self.node_count.max(1)).map(|tree| tree.iter().copied().filter(|&link| link != NONE))
    }

    /// Expands trees to a flow: a path for each pair of ranks for which `chunks` says more than none, by source, then by
    /// destination.
    ///
    /// * **Errors.** A tree that does not lead to a rank that has a path; over 2²⁵ pairs or 2²⁷ hops; `stop`, asked for each
    ///   source, returned true.
    /// * **Cost.** O(hops + links of all trees) time; 4 bytes for each pair of ranks beside the flow.
    pub fn flow(
        &self,
        topology: &Topology,
        chunks_per_share: u64,
        chunks: impl Fn(Rank, Rank) -> u64,
        stop: &dyn Fn() -> bool,
    ) -> Result<Flow, PathTreesError> {
        let ranks = topology.rank_count();
        if u64::from(ranks).pow(2) > PATHS_MAX {
            return Err(PathTreesError::TooMany);
        }
        let mut names = Names::new(topology);
        let (mut hops, mut paths) = (Vec::new(), Vec::new());
        let mut walk = Walk::new(self, topology);
        let position = |length: usize| u32::try_from(length).expect("at most 2²⁷ hops");
        for source in topology.ranks() {
            if stop() {
                return Err(PathTreesError::Stopped);
            }
            walk.begin(source);
            for destination in topology.ranks().filter(|&destination| destination != source) {
                let chunk_count = chunks(source, destination);
                if chunk_count == 0 {
                    continue;
                }
                let path = walk.path(source, destination, &mut names)?;
                let start = hops.len();
                if start + path.len() > HOPS_MAX {
                    return Err(PathTreesError::TooMany);
                }
                hops.extend_from_slice(path);
                paths.push(Path { source, destination, chunk_count, hops: position(start)..position(hops.len()) });
            }
        }
        Ok(Flow { chunks_per_share, routes: names.finish(), hops, paths })
    }

    fn place(&self, source: Rank, node: NodeIndex) -> usize {
        source.index() * self.node_count + node.index()
    }
}

/// Follows the paths of one source; keeps its tables from one source to the next.
struct Walk<'a> {
    trees: &'a PathTrees,
    topology: &'a Topology,
    /// By rank: where its path is among `hops`, once it is known.
    paths: Vec<Option<(usize, usize)>>,
    /// The paths of this source that are known, one after the other.
    hops: Vec<RouteIndex>,
    /// The last ranks of a path, as far as their paths are unknown, the last first; each with where the links of the hop to
    /// it end among `links`.
    unknown: Vec<(Rank, usize)>,
    /// The links of these hops, the last first.
    links: Vec<LinkIndex>,
}

impl<'a> Walk<'a> {
    fn new(trees: &'a PathTrees, topology: &'a Topology) -> Self {
        let (paths, hops, unknown, links) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { trees, topology, paths, hops, unknown, links }
    }

    /// Turns to a source.
    fn begin(&mut self, source: Rank) {
        self.paths.clear();
        self.paths.resize(self.topology.rank_count() as usize, None);
        self.hops.clear();
        if let Some(own) = self.paths.get_mut(source.index()) {
            *own = Some((0, 0));
        }
    }

    /// The hops of the path from the source to a rank: those to the rank before, and one more.
    fn path(
        &mut self,
        source: Rank,
        destination: Rank,
        names: &mut Names<'_>,
    ) -> Result<&[RouteIndex], PathTreesError> {
        let apart = PathTreesError::Apart { tree: source.number(), rank: destination.number() };
        self.unknown.clear();
        self.links.clear();
        let mut rank = destination;
        let (mut start, mut end) = loop {
            if let Some(known) = self.paths[rank.index()] {
                break known;
            }
            if self.unknown.len() == self.paths.len() {
                // Around in a circle.
                return Err(apart);
            }
            let from = self.trace(source, rank).ok_or_else(|| apart.clone())?;
            self.unknown.push((rank, self.links.len()));
            rank = from;
        };
        // From the source on, so that routes are named in the order of their first use.
        while let Some((rank, links_end)) = self.unknown.pop() {
            let links_start = self.unknown.last().map_or(0, |&(_, end)| end);
            let links = &mut self.links[links_start..links_end];
            links.reverse();
            let route = names.of(links);
            let place = self.hops.len();
            self.hops.extend_from_within(start..end);
            self.hops.push(route);
            (start, end) = (place, self.hops.len());
            self.paths[rank.index()] = Some((start, end));
        }
        Ok(&self.hops[start..end])
    }

    /// The rank from which the tree of a source comes to a rank; writes down the links between the two, the last first.
    fn trace(&mut self, source: Rank, rank: Rank) -> Option<Rank> {
        let mut node = rank.node();
        // No way is longer than there are nodes, but for circles.
        for _ in 0..self.trees.node_count {
            let link = self.trees.links[self.trees.place(source, node)];
            node = self.topology.links().get(link.index())?.from;
            self.links.push(link);
            if let Some(from) = self.topology.rank_of(node) {
                return Some(from);
            }
        }
        None
    }
}

/// The routes that paths take, each once.
struct Names<'a> {
    topology: &'a Topology,
    routes: RouteInterner,
    /// By link: the route of this link alone, from 1; 0 where there is none.
    of_link: Vec<u32>,
    /// By the ranks at its ends: the first route of several links, from 1; 0 where there is none.
    between: Vec<u32>,
}

impl<'a> Names<'a> {
    fn new(topology: &'a Topology) -> Self {
        let ranks = topology.rank_count() as usize;
        let (of_link, between) = (vec![0; topology.links().len()], vec![0; ranks * ranks]);
        Self { topology, routes: RouteInterner::default(), of_link, between }
    }

    /// The index of the route over these links, one or more that lead from rank to rank, new or known.
    fn of(&mut self, links: &[LinkIndex]) -> RouteIndex {
        let known = match *links {
            [first, .., last] => {
                let (from, to) = (self.topology.link(first).from, self.topology.link(last).to);
                &mut self.between[from.index() * self.topology.rank_count() as usize + to.index()]
            }
            _ => &mut self.of_link[links[0].index()],
        };
        match known.checked_sub(1).map(RouteIndex::new) {
            Some(route) if self.routes.get(route) == Some(links) => route,
            // Another one between these ends.
            Some(_) => self.routes.intern(links),
            None => {
                let route = self.routes.add(links);
                *known = route.number() + 1;
                route
            }
        }
    }

    fn finish(self) -> RouteTable {
        self.routes.finish()
    }
}

#[cfg(test)]
mod tests;
