//! Data sent back the way it came.

use canopy_schedule::{
    Action, Blocks, ChunkLayout, Collective, CollectiveKind, Flow, Forest, Hop, Orbits, Path, Phase, RouteTable,
    Schedule, Send, Shape, Shares, Stages, Steps, Tree,
};
use canopy_topology::{LinkIndex, Rank, Topology};

use super::unit_start;

/// Where each link of a topology is found among the links of [`Topology::transposed`], by link index.
///
/// There links are sorted by (from, to, latency) of the turned links. O(links log links).
pub(crate) fn transposed_links(topology: &Topology) -> Vec<LinkIndex> {
    let count = u32::try_from(topology.links().len()).expect("links are counted in u32");
    let mut order: Vec<LinkIndex> = (0..count).map(LinkIndex::new).collect();
    order.sort_by_key(|&index| {
        let link = topology.link(index);
        (link.to, link.from, link.latency)
    });
    let mut map = order.clone();
    for (position, old) in (0..count).zip(order) {
        map[old.index()] = LinkIndex::new(position);
    }
    map
}

/// The schedule run backwards, on the topology with all links turned around.
///
/// What was copied from a place is added to it, and the other way round: allgather becomes reduce-scatter, broadcast
/// reduce, an allreduce another allreduce. Gather and scatter, which add nothing, become each other, and all-to-all sends
/// every block back. Loads stay, link by link, and so do rates and depths.
///
/// * **Source.** Zhao 2026 §4.6, for trees; the same for every transfer.
/// * **In.** A schedule on `topology`. **Out.** One on `topology.transposed()`; links move as [`transposed_links`] says.
/// * **Cost.** O(size of the schedule + links log links).
#[must_use]
pub(crate) fn reversed(topology: &Topology, schedule: &Schedule) -> Schedule {
    let links = transposed_links(topology);
    let turned = |routes: &RouteTable| {
        let mut turned = RouteTable::default();
        for route in routes.iter() {
            turned.push(&route.iter().rev().map(|link| links[link.index()]).collect::<Vec<_>>());
        }
        turned
    };
    let kind = schedule.collective.kind();
    let shares = match &schedule.shares {
        Shares::Blocks(blocks) => Shares::Blocks(transposed(blocks)),
        same => same.clone(),
    };
    let shape = match &schedule.shape {
        Shape::Forest(forest) => {
            Shape::Forest(Forest { routes: turned(&forest.routes), ..reversed_forest(forest, kind) })
        }
        Shape::Steps(steps) => {
            let layout =
                |shares| ChunkLayout::new(schedule.collective, topology.rank_count(), steps.chunks_per_share, shares);
            let layouts = layout(&schedule.shares).ok().zip(layout(&shares).ok());
            let back = Back { kind, layouts };
            Shape::Steps(Steps { routes: turned(&steps.routes), ..reversed_steps(steps, &back) })
        }
        Shape::Flow(flow) => Shape::Flow(Flow { routes: turned(&flow.routes), ..reversed_flow(flow) }),
        Shape::Stages(stages) => Shape::Stages(Stages { actions: back(&stages.actions), ..stages.clone() }),
        Shape::Orbits(orbits) => Shape::Orbits(Orbits { actions: back(&orbits.actions), ..orbits.clone() }),
    };
    let root = schedule.collective.root();
    let collective = Collective::new(reversed_kind(kind), root, topology.rank_count());
    // The kinds that become each other either have a root or have none; only a root that is no rank stays refused.
    let collective = collective.unwrap_or(schedule.collective);
    Schedule { collective, algorithm: schedule.algorithm.clone(), shares, shape }
}

/// The actions of phases that run backwards.
fn back(actions: &[Action]) -> Vec<Action> {
    let back = |action: &Action| match action {
        Action::Copy => Action::Reduce,
        Action::Reduce => Action::Copy,
    };
    actions.iter().rev().map(back).collect()
}

/// Each block the other way.
fn transposed(blocks: &Blocks) -> Blocks {
    let ranks = || (0..blocks.rank_count()).map(Rank::new);
    let back = ranks().flat_map(|source| ranks().map(move |destination| blocks.weight(destination, source)));
    Blocks::new(blocks.rank_count(), back.collect()).unwrap()
}

/// What a collective run backwards is.
const fn reversed_kind(kind: CollectiveKind) -> CollectiveKind {
    match kind {
        CollectiveKind::Allgather => CollectiveKind::ReduceScatter,
        CollectiveKind::ReduceScatter => CollectiveKind::Allgather,
        CollectiveKind::Broadcast => CollectiveKind::Reduce,
        CollectiveKind::Reduce => CollectiveKind::Broadcast,
        CollectiveKind::Gather => CollectiveKind::Scatter,
        CollectiveKind::Scatter => CollectiveKind::Gather,
        CollectiveKind::Allreduce => CollectiveKind::Allreduce,
        CollectiveKind::AllToAll => CollectiveKind::AllToAll,
    }
}

/// What a receiver does in the reversed collective.
const fn reversed_action(kind: CollectiveKind, action: Action) -> Action {
    match (kind, action) {
        (CollectiveKind::Gather | CollectiveKind::Scatter | CollectiveKind::AllToAll, action) => action,
        (_, Action::Copy) => Action::Reduce,
        (_, Action::Reduce) => Action::Copy,
    }
}

/// All but the routes.
fn reversed_forest(forest: &Forest, kind: CollectiveKind) -> Forest {
    let mut hops = Vec::with_capacity(forest.hops.len());
    let position = |hops: &Vec<Hop>| u32::try_from(hops.len()).expect("as many hops as the trees had");
    let phases = forest.phases.iter().rev().map(|phase| {
        let trees = phase.trees.iter().map(|tree| {
            let start = position(&hops);
            let turned = forest.hops_of(tree).iter().rev();
            hops.extend(turned.map(|hop| Hop { from: hop.to, to: hop.from, carriers: hop.carriers.clone() }));
            Tree { hops: start..position(&hops), ..tree.clone() }
        });
        Phase { trees: trees.collect(), action: reversed_action(kind, phase.action) }
    });
    let phases = phases.collect();
    Forest { hops, phases, ..forest.clone() }
}

/// What it takes to number the chunks of the reversed collective.
struct Back {
    kind: CollectiveKind,
    /// Before and after; none where shares do not fit the collective, which stays to be refused.
    layouts: Option<(ChunkLayout, ChunkLayout)>,
}

impl Back {
    /// The block from `s` to `d` is the one from `d` to `s` on its way back; shares keep their numbers.
    fn chunk(&self, chunk: u64) -> u64 {
        match &self.layouts {
            Some((before, after)) if self.kind == CollectiveKind::AllToAll && chunk < before.total() => {
                let (source, destination) = (before.share_of(chunk), before.destination_of(chunk));
                after.chunks_between(destination, source).start + (chunk - unit_start(before, chunk))
            }
            _ => chunk,
        }
    }
}

/// All but the routes.
fn reversed_steps(steps: &Steps, back: &Back) -> Steps {
    let last = steps.sends.iter().map(|send| send.step).max().unwrap_or(0);
    let sends = steps.sends.iter().rev().map(|send| {
        let start = back.chunk(send.chunks.start);
        let length = send.chunks.end.saturating_sub(send.chunks.start);
        Send {
            step: last - send.step,
            action: reversed_action(back.kind, send.action),
            from: send.to,
            to: send.from,
            chunks: start..start.saturating_add(length),
            carriers: send.carriers.clone(),
        }
    });
    Steps { sends: sends.collect(), ..steps.clone() }
}

/// All but the routes. Stable, so that the paths of a pair keep their chunks.
fn reversed_flow(flow: &Flow) -> Flow {
    let mut turned: Vec<&Path> = flow.paths.iter().collect();
    turned.sort_by_key(|path| (path.destination, path.source));
    let mut hops = Vec::with_capacity(flow.hops.len());
    let mut paths = Vec::with_capacity(turned.len());
    for path in turned {
        let start = hops.len();
        hops.extend(flow.hops_of(path).iter().rev());
        let position = |length: usize| u32::try_from(length).expect("as many hops as the paths had");
        let range = position(start)..position(hops.len());
        paths.push(Path { source: path.destination, destination: path.source, hops: range, ..path.clone() });
    }
    Flow { hops, paths, ..flow.clone() }
}
