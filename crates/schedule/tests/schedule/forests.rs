//! Topologies and forests by hand and at random, for the tests of this crate.

use canopy_schedule::{
    Action, Carrier, Collective, CollectiveKind, Forest, Hop, Phase, RouteIndex, RouteInterner, Schedule, Shape,
    Shares, Tree,
};
use canopy_topology::{Capacity, Latency, LinkIndex, NodeIndex, Rank, Topology, TopologyDraft, TopologyLimits};

/// Capacity of every link made here, in bytes per second.
pub(crate) const CAPACITY: u64 = 1_000;

/// A topology of `ranks` compute nodes `r0`, `r1`, … and `switches` switches `s0`, …; links are (from, to), both by
/// name, each with [`CAPACITY`].
pub(crate) fn topology(ranks: u32, switches: u32, links: &[(&str, &str)]) -> Topology {
    let mut draft = TopologyDraft::default();
    (0..ranks).for_each(|rank| draft.add_compute(format!("r{rank}")));
    (0..switches).for_each(|switch| draft.add_switch(format!("s{switch}")));
    for &(from, to) in links {
        draft.add_link(from, to, Capacity::from_bytes_per_sec(CAPACITY).unwrap(), Latency::default());
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// Three ranks in a row, linked both ways.
pub(crate) fn path_3() -> Topology {
    topology(3, 0, &[("r0", "r1"), ("r1", "r0"), ("r1", "r2"), ("r2", "r1")])
}

/// Ranks around a switch, linked both ways.
pub(crate) fn star(ranks: u32) -> Topology {
    let names: Vec<String> = (0..ranks).map(|rank| format!("r{rank}")).collect();
    let links: Vec<(&str, &str)> =
        names.iter().flat_map(|name| [(name.as_str(), "s0"), ("s0", name.as_str())]).collect();
    topology(ranks, 1, &links)
}

/// Ranks in a one-way ring.
pub(crate) fn one_way_ring(ranks: u32) -> Topology {
    let names: Vec<String> = (0..ranks).map(|rank| format!("r{rank}")).collect();
    let next = |rank: usize| names[(rank + 1) % names.len()].as_str();
    let links: Vec<(&str, &str)> = (0..names.len()).map(|rank| (names[rank].as_str(), next(rank))).collect();
    topology(ranks, 0, &links)
}

/// Ranks that are all linked to each other, and to a switch besides.
pub(crate) fn complete_with_switch(ranks: u32) -> Topology {
    let names: Vec<String> = (0..ranks).map(|rank| format!("r{rank}")).chain(["s0".to_owned()]).collect();
    let pairs = names.iter().flat_map(|from| names.iter().map(move |to| (from.as_str(), to.as_str())));
    let links: Vec<(&str, &str)> = pairs.filter(|(from, to)| from != to).collect();
    topology(ranks, 1, &links)
}

/// The link from one node to another.
pub(crate) fn link(topology: &Topology, from: &str, to: &str) -> LinkIndex {
    let (from, to) = (topology.find_node(from).unwrap(), topology.find_node(to).unwrap());
    topology.links_from(from).find(|&link| topology.link(link).to == to).unwrap()
}

/// Builds a schedule tree by tree.
pub(crate) struct Builder<'a> {
    topology: &'a Topology,
    collective: Collective,
    chunks_per_share: u64,
    shares: Shares,
    routes: RouteInterner,
    carriers: Vec<Carrier>,
    hops: Vec<Hop>,
    phases: Vec<Phase>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(topology: &'a Topology, kind: CollectiveKind, root: Option<u32>, chunks_per_share: u64) -> Self {
        let collective = Collective::new(kind, root.map(Rank::new), topology.rank_count()).unwrap();
        let (routes, carriers, hops, phases) = (RouteInterner::default(), Vec::new(), Vec::new(), Vec::new());
        Self { topology, collective, chunks_per_share, shares: Shares::Equal, routes, carriers, hops, phases }
    }

    /// Gives shares weights.
    pub(crate) fn weights(mut self, weights: &[u64]) -> Self {
        self.shares = Shares::Weighted(weights.to_vec());
        self
    }

    /// Begins a phase.
    pub(crate) fn phase(mut self, action: Action) -> Self {
        self.phases.push(Phase { action, trees: Vec::new() });
        self
    }

    /// Adds a tree whose hops take one route each: the direct link, else the one through a switch.
    pub(crate) fn tree(mut self, root: u32, multiplicity: u64, hops: &[(u32, u32)]) -> Self {
        let start = self.hops.len();
        for &(from, to) in hops {
            let route = shortest_route(self.topology, from, to);
            let route = self.routes.intern(&route);
            self.push_hop(from, to, &[(route, multiplicity)]);
        }
        self.push_tree(root, multiplicity, start);
        self
    }

    /// A random spanning tree in the order of `phase`, each hop over one or two random routes.
    pub(crate) fn random_tree(&mut self, root: u32, multiplicity: u64, random: &mut Random) {
        let action = self.phases.last().unwrap().action;
        let start = self.hops.len();
        let mut reached = vec![root];
        let mut hops = Vec::new();
        let mut missing: Vec<u32> = (0..self.topology.rank_count()).filter(|&rank| rank != root).collect();
        while !missing.is_empty() {
            let from = reached[random.below(reached.len())];
            let to = missing.swap_remove(random.below(missing.len()));
            reached.push(to);
            hops.push((from, to));
        }
        if action == Action::Reduce {
            hops = hops.into_iter().rev().map(|(from, to)| (to, from)).collect();
        }
        self.random_routes(hops, multiplicity, random);
        self.push_tree(root, multiplicity, start);
    }

    /// A random path between two ranks, each hop over one or two random routes.
    pub(crate) fn random_path(
        &mut self,
        share: u32,
        (first, last): (u32, u32),
        multiplicity: u64,
        random: &mut Random,
    ) {
        let start = self.hops.len();
        let mut between: Vec<u32> =
            (0..self.topology.rank_count()).filter(|&rank| rank != first && rank != last).collect();
        let mut stops = vec![first];
        for _ in 0..random.below(between.len().min(2) + 1) {
            stops.push(between.swap_remove(random.below(between.len())));
        }
        stops.push(last);
        self.random_routes(stops.windows(2).map(|pair| (pair[0], pair[1])).collect(), multiplicity, random);
        self.push_tree(share, multiplicity, start);
    }

    fn random_routes(&mut self, hops: Vec<(u32, u32)>, multiplicity: u64, random: &mut Random) {
        for (from, to) in hops {
            let direct = self.routes.intern(&shortest_route(self.topology, from, to));
            let through = self.routes.intern(&switch_route(self.topology, from, to));
            let first = random.below(usize::try_from(multiplicity).unwrap() + 1) as u64;
            let parts = [(direct, first), (through, multiplicity - first)];
            self.push_hop(from, to, &parts.into_iter().filter(|part| part.1 > 0).collect::<Vec<_>>());
        }
    }

    pub(crate) fn schedule(self) -> Schedule {
        let forest = Forest {
            chunks_per_share: self.chunks_per_share,
            routes: self.routes.finish(),
            carriers: self.carriers,
            hops: self.hops,
            phases: self.phases,
        };
        Schedule {
            collective: self.collective,
            algorithm: "by-hand".to_owned(),
            shares: self.shares,
            shape: Shape::Forest(forest),
        }
    }

    fn push_hop(&mut self, from: u32, to: u32, parts: &[(RouteIndex, u64)]) {
        let start = number(self.carriers.len());
        self.carriers.extend(parts.iter().map(|&(route, chunk_count)| Carrier { route, chunk_count }));
        let carriers = start..number(self.carriers.len());
        self.hops.push(Hop { from: Rank::new(from), to: Rank::new(to), carriers });
    }

    fn push_tree(&mut self, root: u32, multiplicity: u64, start: usize) {
        let hops = number(start)..number(self.hops.len());
        self.phases.last_mut().unwrap().trees.push(Tree { root: Rank::new(root), multiplicity, hops });
    }
}

/// A random schedule on [`complete_with_switch`]: every share is divided among a few random trees.
pub(crate) fn random_schedule(topology: &Topology, kind: CollectiveKind, random: &mut Random) -> Schedule {
    let chunks_per_share = 1 + random.below(5) as u64;
    let root = kind.has_root().then(|| number(random.below(topology.rank_count() as usize)));
    let mut builder = Builder::new(topology, kind, root, chunks_per_share);
    let weighted = !matches!(kind, CollectiveKind::Broadcast | CollectiveKind::Reduce) && random.below(2) == 0;
    let weights = weights(topology, random);
    if weighted {
        builder = builder.weights(&weights);
    }
    let actions: &[Action] = match kind {
        CollectiveKind::Allreduce => &[Action::Reduce, Action::Copy],
        CollectiveKind::ReduceScatter | CollectiveKind::Reduce => &[Action::Reduce],
        _ => &[Action::Copy],
    };
    for &action in actions {
        builder = builder.phase(action);
        for share in 0..topology.rank_count() {
            let is_path = matches!(kind, CollectiveKind::Gather | CollectiveKind::Scatter);
            if root.is_some_and(|root| is_path == (share == root)) {
                continue;
            }
            let mut left = chunks_per_share * if weighted { weights[share as usize] } else { 1 };
            while left > 0 {
                let multiplicity = 1 + random.below(usize::try_from(left).unwrap()) as u64;
                match (kind, root) {
                    (CollectiveKind::Gather, Some(root)) => {
                        builder.random_path(share, (share, root), multiplicity, random)
                    }
                    (CollectiveKind::Scatter, Some(root)) => {
                        builder.random_path(share, (root, share), multiplicity, random)
                    }
                    _ => builder.random_tree(share, multiplicity, random),
                }
                left -= multiplicity;
            }
        }
    }
    builder.schedule()
}

/// Weights of shares: any may be 0 but those of ranks 0 and 1, so that something has to move.
fn weights(topology: &Topology, random: &mut Random) -> Vec<u64> {
    (0..topology.rank_count()).map(|rank| u64::from(rank < 2) + random.below(3) as u64).collect()
}

/// The direct link, else the route through the first switch that has both links.
pub(crate) fn shortest_route(topology: &Topology, from: u32, to: u32) -> Vec<LinkIndex> {
    direct(topology, from, to).map_or_else(|| switch_route(topology, from, to), |link| vec![link])
}

pub(crate) fn switch_route(topology: &Topology, from: u32, to: u32) -> Vec<LinkIndex> {
    let switches = topology.rank_count()..number(topology.nodes().len());
    let through = |switch: u32| Some(vec![direct(topology, from, switch)?, direct(topology, switch, to)?]);
    switches.into_iter().find_map(through).unwrap()
}

fn direct(topology: &Topology, from: u32, to: u32) -> Option<LinkIndex> {
    topology.links_from(NodeIndex::new(from)).find(|&link| topology.link(link).to.number() == to)
}

pub(crate) fn number(length: usize) -> u32 {
    u32::try_from(length).unwrap()
}

/// SplitMix64: a small generator with a stated seed, so that every run is the same.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is positive.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}
