//! Switches as links between the ranks that they join.
//!
//! Switches that are joined with each other are one *fabric*. The ranks at a fabric are put in order, and each gets links to those
//! that follow it: the next one, the ones on both sides, or all. Where faster links join ranks into groups, the slower fabric
//! between the groups is cut into *rails* first: the first ranks of all groups, then the second ones, and so on.
//!
//! Every link so made has a part of each physical link on its route for itself, so that together they claim no more than there is.
//!
//! Where there is no switch, links of different speeds may become parallel ones that are alike (`parallel`).
//!
//! Source: Won et al., section 3.3 (degrees 1 and n − 1, and the ring both ways); rails and parallel links are our own.

mod joined;
mod parallel;

use std::collections::BTreeMap;

use canopy_optimize::Stop;
use canopy_topology::{LinkIndex, NodeIndex, Rank, Topology};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;
use petgraph::unionfind::UnionFind;

use crate::error::SynthesisError;
use crate::reach::ask;
use crate::routing::{Chooser, Heading, Levels, Loads, Network, Passing};

/// Most links that a way to unwind a network may make.
const LINKS_MAX: usize = 1 << 18;
/// Classes of fabrics by speed that are unwound each in its own way.
const CLASSES_MAX: usize = 2;

/// Which ranks of a rail get links from a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// The next one.
    OneWay,
    /// The next one and the one before.
    TwoWays,
    /// All others.
    Full,
}

/// How to unwind a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Patterns {
    /// Of fabrics by class of speed, the fastest first; the last stands for all others.
    by_class: Vec<Pattern>,
    /// By link between two ranks, how many parallel ones it becomes; where nothing is said, it stays as it is.
    widths: Vec<u64>,
}

impl Patterns {
    /// All ways to unwind switches that are worth trying; one where there is none.
    pub(super) fn all(topology: &Topology) -> Vec<Self> {
        const EACH: [Pattern; 3] = [Pattern::TwoWays, Pattern::OneWay, Pattern::Full];
        let classes = fabrics(topology).into_iter().map(|fabric| fabric.class + 1).max().unwrap_or(0);
        let mut all = vec![Vec::new()];
        for _ in 0..classes.min(CLASSES_MAX) {
            let longer = |patterns: &Vec<Pattern>| {
                EACH.map(|pattern| patterns.iter().copied().chain([pattern]).collect()).into_iter().collect::<Vec<_>>()
            };
            all = all.iter().flat_map(longer).collect();
        }
        all.into_iter().map(Self::whole).collect()
    }

    /// These and, where there is no switch and links are of different speeds, parallel links that are alike, if that is possible.
    pub(super) fn with_parallel(topology: &Topology) -> Vec<Self> {
        let parallel = parallel::widths(topology).map(|widths| Self { by_class: Vec::new(), widths });
        Self::all(topology).into_iter().chain(parallel).collect()
    }

    /// Links between ranks stay as they are.
    const fn whole(by_class: Vec<Pattern>) -> Self {
        Self { by_class, widths: Vec::new() }
    }

    /// The one way of the published experiments: all ranks of a fabric with each other, where nothing faster joins some of them,
    /// else each with the next.
    pub(super) fn published(topology: &Topology) -> Self {
        let mut patterns = Vec::new();
        for fabric in fabrics(topology) {
            patterns.resize(patterns.len().max(fabric.class + 1), Pattern::Full);
            if fabric.rails.len() > 1 {
                patterns[fabric.class] = Pattern::OneWay;
            }
        }
        Self::whole(patterns)
    }

    fn of(&self, class: usize) -> Pattern {
        self.by_class.get(class).or(self.by_class.last()).copied().unwrap_or(Pattern::TwoWays)
    }
}

/// A link between two ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwoundLink {
    /// Where it begins.
    pub from: Rank,
    /// Where it ends.
    pub to: Rank,
    /// Its physical links, in order.
    pub route: Vec<LinkIndex>,
    /// It has one of `parts` equal parts of `capacity` bytes/s, on the physical link where that is least.
    pub capacity: u64,
    /// See there.
    pub parts: u64,
    /// Of all physical links together.
    pub latency_ns: u64,
}

/// A network without switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwound {
    /// Ranks, which are all nodes.
    pub rank_count: u32,
    /// All links.
    pub links: Vec<UnwoundLink>,
}

impl Unwound {
    /// Unwinds all fabrics of a network in a way.
    ///
    /// Ranks that only a fabric joins in one direction get their links by the same order; where these are not enough for all that the
    /// network joins, there are more (`joined`).
    ///
    /// # Errors
    /// Stopped; too many links. O(links made · links of a fabric).
    pub(super) fn of(topology: &Topology, patterns: &Patterns, stop: &dyn Stop) -> Result<Self, SynthesisError> {
        let mut ends: Vec<(Rank, Rank, Vec<LinkIndex>)> = Vec::new();
        for (index, link) in (0..).map(LinkIndex::new).zip(topology.links()) {
            if let (Some(from), Some(to)) = (topology.rank_of(link.from), topology.rank_of(link.to)) {
                let width = patterns.widths.get(index.index()).copied().unwrap_or(1);
                ends.extend((0..width).map(|_| (from, to, vec![index])));
            }
        }
        let network = Network::new(topology, Heading::Along);
        let (mut chooser, mut loads) = (Chooser::new(topology), Loads::none(topology));
        // In each rail of each fabric, from every rank to those that follow it in the pattern: a search of the network each.
        for fabric in fabrics(topology) {
            let pattern = patterns.of(fabric.class);
            for rail in &fabric.rails {
                for (place, &from) in rail.iter().enumerate() {
                    ask(stop)?;
                    let levels = Levels::new(&network, from.node(), Passing::Switches);
                    for to in pattern.followers(rail, place) {
                        let route = chooser.choose(&network, &levels, &loads, to.node(), |node| node == from.node());
                        // A direct link is there already.
                        if let Some(route) = route.filter(|route| route.len() > 1) {
                            loads.add(&route);
                            ends.push((from, to, route));
                        }
                    }
                    if ends.len() > LINKS_MAX {
                        return Err(SynthesisError::TooManyHops { needed: ends.len() as u64, limit: LINKS_MAX as u64 });
                    }
                }
            }
        }
        joined::join(topology, &network, (&mut chooser, &mut loads), &mut ends, stop)?;
        Ok(Self::over(topology, ends))
    }

    /// Links over these routes, of which each has an equal part of every physical link on it, whoever else passes there. Routes are
    /// not empty, and lead from the one rank to the other. O(links of routes).
    pub(super) fn over(topology: &Topology, routes: Vec<(Rank, Rank, Vec<LinkIndex>)>) -> Self {
        let mut users = vec![0_u64; topology.links().len()];
        routes.iter().flat_map(|(.., route)| route).for_each(|link| users[link.index()] += 1);
        let links = routes.into_iter().map(|(from, to, route)| {
            let parts = route.iter().map(|&link| (topology.link(link).capacity.bytes_per_sec(), users[link.index()]));
            let narrower = |a: (u64, u64), b: (u64, u64)| {
                let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
                if product(b.0, a.1) < product(a.0, b.1) { b } else { a }
            };
            let (capacity, parts) = parts.reduce(narrower).expect("a route has links");
            let latency_ns = route.iter().map(|&link| topology.link(link).latency.nanos()).fold(0, u64::saturating_add);
            UnwoundLink { from, to, route, capacity, parts, latency_ns }
        });
        Self { rank_count: topology.rank_count(), links: links.collect() }
    }

    /// Whether every rank reaches every other. O(ranks + links).
    pub(super) fn joins_all(&self) -> bool {
        let ends = self.links.iter().map(|link| (link.from.number(), link.to.number()));
        let graph = DiGraph::<(), ()>::from_edges(ends);
        graph.node_count() == self.rank_count as usize && kosaraju_scc(&graph).len() == 1
    }
}

impl Pattern {
    /// Ranks of a rail that one of them gets links to.
    fn followers(self, rail: &[Rank], place: usize) -> Vec<Rank> {
        let count = rail.len();
        let at = |offset: usize| rail[(place + offset) % count];
        match (self, count) {
            (_, 0 | 1) => Vec::new(),
            (_, 2) | (Self::OneWay, _) => vec![at(1)],
            (Self::TwoWays, _) => vec![at(1), at(count - 1)],
            (Self::Full, _) => (1..count).map(at).collect(),
        }
    }
}

/// Switches that are joined, and the ranks at them.
struct Fabric {
    /// 0 for the fabrics of the fastest ports.
    class: usize,
    rails: Vec<Vec<Rank>>,
}

/// All fabrics of a network, by their first node. O(nodes + links · log nodes) for each class of speed.
fn fabrics(topology: &Topology) -> Vec<Fabric> {
    let node_count = topology.nodes().len();
    let is_rank = |node: NodeIndex| topology.rank_of(node).is_some();
    let mut joined = UnionFind::<usize>::new(node_count);
    for link in topology.links().iter().filter(|link| !is_rank(link.from) && !is_rank(link.to)) {
        joined.union(link.from.index(), link.to.index());
    }
    // By fabric: the widest port of a rank, and its ranks.
    let mut found: BTreeMap<usize, (u64, Vec<Rank>)> = BTreeMap::new();
    for link in topology.links() {
        let (rank, switch) = match (topology.rank_of(link.from), topology.rank_of(link.to)) {
            (Some(rank), None) => (rank, link.to),
            (None, Some(rank)) => (rank, link.from),
            _ => continue,
        };
        let (port, ranks) = found.entry(joined.find(switch.index())).or_default();
        *port = (*port).max(link.capacity.bytes_per_sec());
        ranks.push(rank);
    }
    let mut ports: Vec<u64> = found.values().map(|&(port, _)| port).collect();
    ports.sort_unstable_by(|a, b| b.cmp(a));
    ports.dedup();
    let mut fabrics = Vec::with_capacity(found.len());
    for (class, &port) in ports.iter().enumerate() {
        let groups = groups_faster_than(topology, port, &found);
        for (_, ranks) in found.values_mut().filter(|(own, _)| *own == port) {
            ranks.sort_unstable();
            ranks.dedup();
            fabrics.push(Fabric { class, rails: rails(ranks, &groups) });
        }
    }
    fabrics
}

/// By rank, the group that it is in by faster links and fabrics.
fn groups_faster_than(topology: &Topology, port: u64, fabrics: &BTreeMap<usize, (u64, Vec<Rank>)>) -> Vec<usize> {
    let mut joined = UnionFind::<usize>::new(topology.rank_count() as usize);
    for link in topology.links().iter().filter(|link| link.capacity.bytes_per_sec() > port) {
        if let (Some(from), Some(to)) = (topology.rank_of(link.from), topology.rank_of(link.to)) {
            joined.union(from.index(), to.index());
        }
    }
    for (_, ranks) in fabrics.values().filter(|&&(own, _)| own > port) {
        ranks.windows(2).for_each(|pair| {
            joined.union(pair[0].index(), pair[1].index());
        });
    }
    joined.into_labeling()
}

/// Ranks of a fabric, the first of each group, then the second, and so on; those that would be alone with the first.
fn rails(ranks: &[Rank], groups: &[usize]) -> Vec<Vec<Rank>> {
    let mut places: BTreeMap<usize, usize> = BTreeMap::new();
    let mut rails: Vec<Vec<Rank>> = Vec::new();
    for &rank in ranks {
        let place = places.entry(groups[rank.index()]).or_default();
        if rails.len() == *place {
            rails.push(Vec::new());
        }
        rails[*place].push(rank);
        *place += 1;
    }
    if places.len() == 1 {
        return vec![ranks.to_vec()];
    }
    let (mut whole, alone): (Vec<_>, Vec<_>) = rails.into_iter().partition(|rail| rail.len() > 1);
    if let Some(first) = whole.first_mut() {
        first.extend(alone.into_iter().flatten());
        first.sort_unstable();
    }
    whole
}
