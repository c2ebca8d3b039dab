//! Flows and stepped schedules at random.

use canopy_schedule::{
    Action, Blocks, Carrier, Collective, CollectiveKind, Flow, Path, RouteIndex, RouteInterner, Schedule, Send, Shape,
    Shares, Steps, compile,
};
use canopy_topology::{Rank, Topology};

use crate::forests::{Random, number, random_schedule, shortest_route, switch_route};

/// A random schedule on [`complete_with_switch`](crate::forests::complete_with_switch) in any shape that can express
/// the collective.
pub(crate) fn any_shape(topology: &Topology, kind: CollectiveKind, random: &mut Random) -> Schedule {
    let personal = matches!(kind, CollectiveKind::Gather | CollectiveKind::Scatter | CollectiveKind::AllToAll);
    match random.below(3) {
        0 => random_steps(topology, kind, random),
        _ if personal && (kind == CollectiveKind::AllToAll || random.below(2) == 0) => {
            random_flow(topology, kind, random)
        }
        _ => random_schedule(topology, kind, random),
    }
}

/// Every pair's chunks divided among a few random paths.
pub(crate) fn random_flow(topology: &Topology, kind: CollectiveKind, random: &mut Random) -> Schedule {
    let rank_count = topology.rank_count();
    let chunks_per_share = 1 + random.below(3) as u64;
    let root = kind.has_root().then(|| number(random.below(rank_count as usize)));
    let shares = random.below(2) == 0;
    let shares = if shares { random_shares(kind, rank_count, random) } else { Shares::Equal };
    let mut routes = RouteInterner::default();
    let (mut hops, mut paths): (Vec<RouteIndex>, Vec<Path>) = (Vec::new(), Vec::new());
    for (source, destination) in (0..rank_count).flat_map(|source| (0..rank_count).map(move |to| (source, to))) {
        let (needed, weight) = match kind {
            CollectiveKind::Gather => (Some(destination) == root, shares.weight(Rank::new(source))),
            CollectiveKind::Scatter => (Some(source) == root, shares.weight(Rank::new(destination))),
            _ => (true, shares.block(Rank::new(source), Rank::new(destination))),
        };
        let mut left = chunks_per_share * weight;
        while needed && source != destination && left > 0 {
            let chunk_count = 1 + random.below(usize::try_from(left).unwrap()) as u64;
            let start = number(hops.len());
            let mut between: Vec<u32> = (0..rank_count).filter(|&rank| rank != source && rank != destination).collect();
            let mut at = source;
            for _ in 0..random.below(between.len().min(2) + 1) {
                let next = between.swap_remove(random.below(between.len()));
                hops.push(routes.intern(&shortest_route(topology, at, next)));
                at = next;
            }
            hops.push(routes.intern(&switch_route(topology, at, destination)));
            let (source, destination) = (Rank::new(source), Rank::new(destination));
            paths.push(Path { source, destination, chunk_count, hops: start..number(hops.len()) });
            left -= chunk_count;
        }
    }
    let flow = Flow { chunks_per_share, routes: routes.finish(), hops, paths };
    Schedule {
        collective: Collective::new(kind, root.map(Rank::new), rank_count).unwrap(),
        algorithm: "by-hand".to_owned(),
        shares,
        shape: Shape::Flow(flow),
    }
}

/// Small weights of shares or blocks, at least two of which have to move.
fn random_shares(kind: CollectiveKind, rank_count: u32, random: &mut Random) -> Shares {
    let ranks = rank_count as usize;
    if kind == CollectiveKind::AllToAll {
        let mut weights: Vec<u64> = (0..ranks * ranks).map(|_| random.below(3) as u64).collect();
        weights[1] += 1;
        return Shares::Blocks(Blocks::new(rank_count, weights).unwrap());
    }
    Shares::Weighted((0..rank_count).map(|rank| u64::from(rank < 2) + random.below(3) as u64).collect())
}

/// A random forest or flow, hop by hop: each at the step after the one before on its tree, in two parts at random, with
/// the sends of a step in a random order.
pub(crate) fn random_steps(topology: &Topology, kind: CollectiveKind, random: &mut Random) -> Schedule {
    let model = match kind {
        CollectiveKind::AllToAll => random_flow(topology, kind, random),
        _ => random_schedule(topology, kind, random),
    };
    let graph = compile(topology, &model).unwrap();
    let mut carriers = Vec::new();
    let mut sends = Vec::new();
    for batch in &graph.batches {
        // A copy phase comes after every reduction.
        let phase = if kind == CollectiveKind::Allreduce && batch.action == Action::Copy { 100 } else { 0 };
        for (position, transfer) in graph.transfers_of(batch).iter().enumerate() {
            let route = graph.carriers_of(transfer)[0].route;
            let end = batch.chunk_first + batch.chunk_count;
            let middle = batch.chunk_first + random.below(usize::try_from(batch.chunk_count).unwrap()) as u64;
            for chunks in [batch.chunk_first..middle, middle..end] {
                if !chunks.is_empty() {
                    let start = number(carriers.len());
                    carriers.push(Carrier { route, chunk_count: chunks.end - chunks.start });
                    let step = number(position) + phase;
                    let (action, from, to) = (batch.action, transfer.from, transfer.to);
                    let send = Send { step, action, from, to, chunks, carriers: start..start + 1 };
                    sends.push((step, random.next(), send));
                }
            }
        }
    }
    sends.sort_by_key(|&(step, tie, _)| (step, tie));
    let sends = sends.into_iter().map(|(_, _, send)| send).collect();
    let steps =
        Steps { chunks_per_share: graph.chunks_per_share, pace: graph.pace, routes: graph.routes, carriers, sends };
    Schedule { shape: Shape::Steps(steps), ..model }
}
