//! Writes routes down as shapes of schedules: hops of trees, paths of pairs, sends in steps.

use std::ops::Range;

use canopy_schedule::{
    Action, Carrier, Collective, CollectiveKind, Flow, Forest, Hop, Pace, Path, Phase, RouteIndex, RouteInterner,
    RouteTable, Send, Shares, Steps, Tree,
};
use canopy_topology::{LinkIndex, Rank, Topology};
use rayon::prelude::*;

use crate::error::SynthesisError;

/// Most hops of one schedule: those of 4,096 ranks with two trees each. Until the schedule is written, a hop takes some
/// 200 bytes where trees are packed, and less elsewhere.
pub const HOPS_MAX: u64 = 1 << 25;

/// Refuses schedules with too many hops before they take memory.
pub fn require_room(needed: u64) -> Result<(), SynthesisError> {
    if needed > HOPS_MAX { Err(SynthesisError::TooManyHops { needed, limit: HOPS_MAX }) } else { Ok(()) }
}

/// The actions of a collective's phases in order, if data or sums spread from roots over trees or steps; `None` for
/// gather, scatter and all-to-all.
pub const fn phase_actions(kind: CollectiveKind) -> Option<&'static [Action]> {
    match kind {
        CollectiveKind::Allgather | CollectiveKind::Broadcast => Some(&[Action::Copy]),
        CollectiveKind::ReduceScatter | CollectiveKind::Reduce => Some(&[Action::Reduce]),
        CollectiveKind::Allreduce => Some(&[Action::Reduce, Action::Copy]),
        CollectiveKind::Gather | CollectiveKind::Scatter | CollectiveKind::AllToAll => None,
    }
}

/// Pairs of source and destination in gather, scatter and all-to-all: by source, then by destination.
pub fn pairs(collective: Collective, rank_count: u32, shares: &Shares) -> Result<Vec<(Rank, Rank)>, SynthesisError> {
    let all = 0..rank_count;
    let only = |root: Rank| root.number()..root.number() + 1;
    let (sources, destinations) = match (collective.kind(), collective.root()) {
        (CollectiveKind::Gather, Some(root)) => (all, only(root)),
        (CollectiveKind::Scatter, Some(root)) => (only(root), all),
        _ => (all.clone(), all),
    };
    require_room(sources.len() as u64 * destinations.len() as u64)?;
    let pairs = sources.flat_map(|source| destinations.clone().map(move |destination| (source, destination)));
    let pairs = pairs.filter(|(source, destination)| source != destination);
    let pairs = pairs.map(|(source, destination)| (Rank::new(source), Rank::new(destination)));
    Ok(pairs.filter(|&pair| weight_between(collective, shares, pair) > 0).collect())
}

/// Weight of what a rank has for another in gather, scatter and all-to-all.
pub(crate) fn weight_between(collective: Collective, shares: &Shares, (source, destination): (Rank, Rank)) -> u64 {
    match collective.kind() {
        CollectiveKind::Gather => shares.weight(source),
        CollectiveKind::Scatter => shares.weight(destination),
        _ => shares.block(source, destination),
    }
}

/// Ranks with trees of their own, each with the weight of its share: all that have one, or the root with weight 1.
pub(crate) fn roots(collective: Collective, rank_count: u32, shares: &Shares) -> Vec<(Rank, u64)> {
    match collective.root() {
        Some(root) => vec![(root, 1)],
        None => {
            let ranks = (0..rank_count).map(Rank::new);
            ranks.map(|rank| (rank, shares.weight(rank))).filter(|&(_, weight)| weight > 0).collect()
        }
    }
}

/// One hop of a tree with its route, both in the direction of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leg {
    pub(crate) from: Rank,
    pub(crate) to: Rank,
    pub(crate) links: Vec<LinkIndex>,
}

/// A forest in the making; every hop takes one route.
pub(crate) struct ForestParts {
    forest: Forest,
    routes: RouteInterner,
}

impl ForestParts {
    /// Without any phase.
    pub(crate) fn new(chunks_per_share: u64) -> Self {
        let (routes, carriers, hops, phases) = (RouteTable::default(), Vec::new(), Vec::new(), Vec::new());
        Self { forest: Forest { chunks_per_share, routes, carriers, hops, phases }, routes: RouteInterner::default() }
    }

    /// Begins a phase.
    pub(crate) fn add_phase(&mut self, action: Action) {
        self.forest.phases.push(Phase { action, trees: Vec::new() });
    }

    /// Adds a tree to the phase begun last; its hops in the order that [`Tree::hops`] asks for.
    pub(crate) fn add_tree(
        &mut self,
        root: Rank,
        multiplicity: u64,
        legs: impl Iterator<Item = Leg>,
    ) -> Result<(), SynthesisError> {
        let start = position(self.forest.hops.len())?;
        for leg in legs {
            let first = position(self.forest.carriers.len())?;
            let route = self.routes.intern(&leg.links);
            self.forest.carriers.push(Carrier { route, chunk_count: multiplicity });
            self.forest.hops.push(Hop { from: leg.from, to: leg.to, carriers: first..first + 1 });
        }
        let tree = Tree { root, multiplicity, hops: start..position(self.forest.hops.len())? };
        self.forest.phases.last_mut().expect("a phase has begun").trees.push(tree);
        Ok(())
    }

    /// The forest.
    pub(crate) fn finish(mut self) -> Forest {
        self.forest.routes = self.routes.finish();
        self.forest
    }
}

/// A flow under construction.
pub struct FlowParts<'a> {
    topology: &'a Topology,
    flow: Flow,
    routes: RouteInterner,
    /// By link: the route of this link alone, where there is one. Most hops are one link.
    of_link: Vec<Option<RouteIndex>>,
}

impl<'a> FlowParts<'a> {
    /// A flow without paths.
    pub fn new(topology: &'a Topology, chunks_per_share: u64) -> Self {
        let (routes, hops, paths) = (RouteTable::default(), Vec::new(), Vec::new());
        Self {
            topology,
            flow: Flow { chunks_per_share, routes, hops, paths },
            routes: RouteInterner::default(),
            of_link: vec![None; topology.links().len()],
        }
    }

    /// Adds a path over these links, which it cuts into hops at the ranks on the way. Sources, then destinations must
    /// come in order.
    pub fn add_path(
        &mut self,
        source: Rank,
        destination: Rank,
        chunk_count: u64,
        links: &[LinkIndex],
    ) -> Result<(), SynthesisError> {
        let start = position(self.flow.hops.len())?;
        for hop in hops(self.topology, links) {
            let route = self.route(hop);
            self.flow.hops.push(route);
        }
        let hops = start..position(self.flow.hops.len())?;
        self.flow.paths.push(Path { source, destination, chunk_count, hops });
        Ok(())
    }

    /// The route over the links of a hop, new or known.
    fn route(&mut self, hop: &[LinkIndex]) -> RouteIndex {
        match *hop {
            [link] => *self.of_link[link.index()].get_or_insert_with(|| self.routes.add(hop)),
            _ => self.routes.intern(hop),
        }
    }

    /// The flow.
    pub fn finish(mut self) -> Flow {
        self.flow.routes = self.routes.finish();
        self.flow
    }
}

/// A send in the making; it takes one route.
pub(crate) struct Sending {
    pub(crate) step: u32,
    pub(crate) action: Action,
    pub(crate) from: Rank,
    pub(crate) to: Rank,
    pub(crate) chunks: Range<u64>,
    pub(crate) route: RouteIndex,
}

impl Sending {
    /// The send, and what carries it: entry `position` of either table.
    fn written(self, position: u32) -> (Send, Carrier) {
        let Self { step, action, from, to, chunks, route } = self;
        let carrier = Carrier { route, chunk_count: chunks.end - chunks.start };
        (Send { step, action, from, to, chunks, carriers: position..position + 1 }, carrier)
    }
}

/// Steps in the making. Callers refuse more sends than there is room for.
pub(crate) struct StepsParts {
    steps: Steps,
}

impl StepsParts {
    /// Without any send.
    pub(crate) fn new(chunks_per_share: u64, pace: Pace) -> Self {
        let (routes, carriers, sends) = (RouteTable::default(), Vec::new(), Vec::new());
        Self { steps: Steps { chunks_per_share, pace, routes, carriers, sends } }
    }

    /// How many sends there are.
    pub(crate) const fn len(&self) -> usize {
        self.steps.sends.len()
    }

    /// Makes room for so many more.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.steps.sends.reserve(count);
        self.steps.carriers.reserve(count);
    }

    /// One more send, no earlier than those before.
    pub(crate) fn push(&mut self, sending: Sending) {
        let (send, carrier) = sending.written(sends_position(self.len()));
        self.steps.sends.push(send);
        self.steps.carriers.push(carrier);
    }

    /// Many more, written on all threads of the caller's pool: room for them takes as long as all else.
    pub(crate) fn extend(&mut self, sendings: impl IndexedParallelIterator<Item = Sending>) {
        let first = self.len();
        let written = sendings.enumerate().map(|(number, sending)| sending.written(sends_position(first + number)));
        let (mut sends, mut carriers) = (Vec::new(), Vec::new());
        written.unzip_into_vecs(&mut sends, &mut carriers);
        self.steps.sends.append(&mut sends);
        self.steps.carriers.append(&mut carriers);
    }

    /// The steps, on these routes.
    pub(crate) fn finish(self, routes: RouteTable) -> Steps {
        Steps { routes, ..self.steps }
    }
}

fn sends_position(length: usize) -> u32 {
    u32::try_from(length).expect("there is room for fewer than 2³² sends")
}

/// A table in which every link is a route of its own, so that routes are numbered like links.
pub(crate) fn each_link(topology: &Topology) -> RouteTable {
    let mut routes = RouteTable::default();
    (0..).map(LinkIndex::new).zip(topology.links()).for_each(|(link, _)| {
        routes.push(&[link]);
    });
    routes
}

/// A route cut at the ranks it passes.
pub(crate) fn hops<'a>(topology: &Topology, route: &'a [LinkIndex]) -> impl Iterator<Item = &'a [LinkIndex]> {
    route.split_inclusive(|&link| topology.rank_of(topology.link(link).to).is_some())
}

/// Where the next entry of a table of so many goes.
pub(crate) fn position(length: usize) -> Result<u32, SynthesisError> {
    require_room(length as u64)?;
    Ok(u32::try_from(length).expect("there is room for fewer than 2³² hops"))
}
