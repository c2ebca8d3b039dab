//! Networks and schedules by hand, and runs of them.

use std::collections::VecDeque;

use canopy_schedule::{
    Action, Carrier, Collective, CollectiveKind, Pace, RouteInterner, Schedule, Send, Shape, Shares, Steps,
    TransferGraph, check, compile,
};
use canopy_simulate::{Outcome, Pieces, Sharing, SimulateOptions, Sync, simulate, step_numbers};
use canopy_topology::{Capacity, Latency, LinkIndex, NodeIndex, Rank, Rate, Topology, TopologyDraft, TopologyLimits};

/// 25 GB/s: 40 ps for each byte.
pub(crate) const CAPACITY: u64 = 25_000_000_000;
/// Picoseconds that a byte takes at it.
pub(crate) const BETA: u64 = 40;
/// 1 µs, and the same in picoseconds.
pub(crate) const ALPHA: Latency = Latency::from_nanos(1_000);
pub(crate) const ALPHA_PS: u64 = 1_000_000;

/// Whole transfers, fair links, no barriers.
pub(crate) fn options(size_bytes: u64) -> SimulateOptions<'static> {
    let (pieces, sharing, sync) = (Pieces::Whole, Sharing::Fair, Sync::Deps);
    SimulateOptions { alpha: ALPHA, pieces, sharing, sync, ..SimulateOptions::usual(size_bytes, 100_000_000) }
}

/// Ranks `0 … n−1` named by their numbers, switches named `s…`, and links `(from, to, bytes per second, nanoseconds)`.
pub(crate) fn network(ranks: u32, switches: u32, links: &[(&str, &str, u64, u64)]) -> Topology {
    let mut draft = TopologyDraft::default();
    (0..ranks).for_each(|rank| draft.add_compute(rank.to_string()));
    (0..switches).for_each(|switch| draft.add_switch(format!("s{switch}")));
    for &(from, to, capacity, latency) in links {
        draft.add_link(from, to, Capacity::from_bytes_per_sec(capacity).unwrap(), Latency::from_nanos(latency));
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// A ring whose links lead one way, of latency 0.
pub(crate) fn one_way_ring(ranks: u32) -> Topology {
    let names: Vec<String> = (0..ranks).map(|rank| rank.to_string()).collect();
    let next = |rank: usize| &names[(rank + 1) % names.len()];
    let links: Vec<_> = (0..names.len()).map(|rank| (names[rank].as_str(), next(rank).as_str(), CAPACITY, 0)).collect();
    network(ranks, 0, &links)
}

/// Links of a shortest path between two ranks.
pub(crate) fn route(topology: &Topology, from: u32, to: u32) -> Vec<LinkIndex> {
    let mut into: Vec<Option<LinkIndex>> = vec![None; topology.nodes().len()];
    let mut queue = VecDeque::from([NodeIndex::new(from)]);
    while let Some(node) = queue.pop_front() {
        for link in topology.links_from(node) {
            let next = topology.link(link).to;
            if into[next.index()].is_none() && next.number() != from {
                into[next.index()] = Some(link);
                queue.push_back(next);
            }
        }
    }
    let mut links = Vec::new();
    let mut node = to;
    while node != from {
        let link = into[node as usize].unwrap();
        links.push(link);
        node = topology.link(link).from.number();
    }
    links.reverse();
    links
}

/// A schedule in steps: `(step, from, to, chunks)`, all copies on shortest routes.
pub(crate) fn steps(
    topology: &Topology,
    collective: Collective,
    shares: Shares,
    chunks_per_share: u64,
    sent: &[(u32, u32, u32, std::ops::Range<u64>)],
) -> Schedule {
    let mut routes = RouteInterner::default();
    let (mut carriers, mut sends) = (Vec::new(), Vec::new());
    for (start, (step, from, to, chunks)) in (0_u32..).zip(sent) {
        let chunk_count = chunks.end - chunks.start;
        carriers.push(Carrier { route: routes.intern(&route(topology, *from, *to)), chunk_count });
        let (from, to, chunks) = (Rank::new(*from), Rank::new(*to), chunks.clone());
        sends.push(Send { step: *step, action: Action::Copy, from, to, chunks, carriers: start..start + 1 });
    }
    let shape =
        Shape::Steps(Steps { chunks_per_share, pace: Pace::Barriers, routes: routes.finish(), carriers, sends });
    Schedule { collective, algorithm: "by-hand".to_owned(), shares, shape }
}

/// A collective on a topology, with root 0 where it has one.
pub(crate) fn collective(topology: &Topology, kind: CollectiveKind) -> Collective {
    Collective::new(kind, None, topology.rank_count()).unwrap()
}

/// A broadcast from rank 0 of one chunk.
pub(crate) fn broadcast(topology: &Topology, sent: &[(u32, u32, u32)]) -> Schedule {
    let sent: Vec<_> = sent.iter().map(|&(step, from, to)| (step, from, to, 0..1)).collect();
    steps(topology, collective(topology, CollectiveKind::Broadcast), Shares::Equal, 1, &sent)
}

/// The graph of a schedule that is right, and its algbw.
#[track_caller]
pub(crate) fn checked(topology: &Topology, schedule: &Schedule) -> (TransferGraph, Rate) {
    let graph = compile(topology, schedule).unwrap();
    let algbw = check(topology, &graph).unwrap().algbw;
    (graph, algbw)
}

/// A run that nobody stops.
#[track_caller]
pub(crate) fn run(topology: &Topology, schedule: &Schedule, options: &SimulateOptions<'_>) -> Outcome {
    simulate(topology, &checked(topology, schedule).0, options, &|| false).unwrap()
}

/// A run with barriers between the steps.
#[track_caller]
pub(crate) fn run_in_steps(topology: &Topology, schedule: &Schedule, options: &SimulateOptions<'_>) -> Outcome {
    let (graph, _) = checked(topology, schedule);
    let numbers = step_numbers(schedule, &graph);
    simulate(topology, &graph, &SimulateOptions { sync: Sync::Steps(&numbers), ..*options }, &|| false).unwrap()
}
