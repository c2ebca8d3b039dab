//! Transfer graphs for tests: hand-made trees, and real schedules.

use std::ops::Range;

use canopy_plan::{Instances, LowerError, LowerOptions, Lowered, Profile, Program, lower};
use canopy_schedule::{
    Action, Batch, Collective, CollectiveKind, Pace, RouteTable, Shares, Transfer, TransferGraph, compile,
};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{Rank, Topology, TopologyLimits, generate};

/// Hops `(nearer to the root, farther)` of a tree over all ranks, from the root outwards.
pub(crate) type Hops = Vec<(u32, u32)>;

/// A graph in which `tree_of(root, i)` carries the `i`-th of `trees` parts of each root's share of `k` chunks.
pub(crate) fn graph(
    kind: CollectiveKind,
    ranks: u32,
    k: u64,
    trees: u64,
    tree_of: impl Fn(u32, u64) -> Hops,
) -> TransferGraph {
    let mut graph = empty(kind, ranks, k);
    let roots = if kind.has_root() { 0..1 } else { 0..ranks };
    for action in actions(kind) {
        for root in roots.clone() {
            for part in 0..trees {
                let chunks =
                    root_start(kind, root, k) + part * k / trees..root_start(kind, root, k) + (part + 1) * k / trees;
                if !chunks.is_empty() {
                    push_batch(&mut graph, *action, root, chunks, tree_of(root, part));
                }
            }
        }
    }
    graph
}

/// A graph without transfers.
fn empty(kind: CollectiveKind, ranks: u32, k: u64) -> TransferGraph {
    TransferGraph {
        steps: Vec::new(),
        pace: Pace::Barriers,
        collective: Collective::new(kind, None, ranks).unwrap(),
        rank_count: ranks,
        chunks_per_share: k,
        shares: Shares::Equal,
        routes: RouteTable::default(),
        carriers: Vec::new(),
        dependencies: Vec::new(),
        batches: Vec::new(),
        transfers: Vec::new(),
    }
}

/// A gather, scatter or all-to-all in which each pair's chunks pass the ranks of `path_of(source, destination)`, both
/// ends included.
pub(crate) fn paths(kind: CollectiveKind, ranks: u32, k: u64, path_of: impl Fn(u32, u32) -> Vec<u32>) -> TransferGraph {
    let mut graph = empty(kind, ranks, k);
    for source in 0..ranks {
        for destination in 0..ranks {
            let share = match kind {
                CollectiveKind::Gather if destination == 0 => source,
                CollectiveKind::Scatter if source == 0 => destination,
                CollectiveKind::AllToAll => source * ranks + destination,
                _ => continue,
            };
            if source != destination {
                let path = path_of(source, destination);
                let hops = path.windows(2).map(|hop| (hop[0], hop[1])).collect();
                push_batch(&mut graph, Action::Copy, source, u64::from(share) * k..u64::from(share + 1) * k, hops);
            }
        }
    }
    graph
}

/// The shorter way around a ring, both ends included.
pub(crate) fn around(ranks: u32, source: u32, destination: u32) -> Vec<u32> {
    let ahead = (destination + ranks - source) % ranks;
    match 2 * ahead <= ranks {
        true => (0..=ahead).map(|step| (source + step) % ranks).collect(),
        false => (0..=ranks - ahead).map(|step| (source + ranks - step) % ranks).collect(),
    }
}

/// A graph of single hops, in order: action, sender, receiver, chunks.
pub(crate) fn sends(
    kind: CollectiveKind,
    ranks: u32,
    k: u64,
    sends: impl IntoIterator<Item = (Action, u32, u32, Range<u64>)>,
) -> TransferGraph {
    let mut graph = empty(kind, ranks, k);
    for (action, from, to, chunks) in sends {
        let (root, hop) = if action == Action::Copy { (from, (from, to)) } else { (to, (to, from)) };
        push_batch(&mut graph, action, root, chunks, vec![hop]);
    }
    graph
}

fn root_start(kind: CollectiveKind, root: u32, k: u64) -> u64 {
    if kind.has_root() { 0 } else { u64::from(root) * k }
}

fn actions(kind: CollectiveKind) -> &'static [Action] {
    match kind {
        CollectiveKind::Allgather | CollectiveKind::Broadcast => &[Action::Copy],
        CollectiveKind::Allreduce => &[Action::Reduce, Action::Copy],
        _ => &[Action::Reduce],
    }
}

fn push_batch(graph: &mut TransferGraph, action: Action, root: u32, chunks: Range<u64>, mut hops: Hops) {
    let first = u32::try_from(graph.transfers.len()).unwrap();
    if action == Action::Reduce {
        hops.reverse();
    }
    for (near, far) in hops {
        let (from, to) = if action == Action::Copy { (near, far) } else { (far, near) };
        graph.transfers.push(Transfer { from: Rank::new(from), to: Rank::new(to), carriers: 0..0, dependencies: 0..0 });
    }
    graph.batches.push(Batch {
        action,
        root: Rank::new(root),
        chunk_first: chunks.start,
        chunk_count: chunks.end - chunks.start,
        transfers: first..u32::try_from(graph.transfers.len()).unwrap(),
    });
}

/// Around the ring, one hop after the other.
pub(crate) fn ring_tree(ranks: u32, root: u32) -> Hops {
    (0..ranks - 1).map(|step| ((root + step) % ranks, (root + step + 1) % ranks)).collect()
}

/// The root reaches everyone at once.
pub(crate) fn star_tree(ranks: u32, root: u32) -> Hops {
    (0..ranks).filter(|&rank| rank != root).map(|rank| (root, rank)).collect()
}

/// Down both sides of the path 0, 1, …, N−1.
pub(crate) fn path_tree(ranks: u32, root: u32) -> Hops {
    (root..ranks - 1).map(|rank| (rank, rank + 1)).chain((1..=root).rev().map(|rank| (rank, rank - 1))).collect()
}

/// A tree in which rank `(root + n) mod N` has the children at distances `a·n + 1 … a·n + a`.
pub(crate) fn heap_tree(ranks: u32, root: u32, arity: u32) -> Hops {
    (1..ranks).map(|distance| ((root + (distance - 1) / arity) % ranks, (root + distance) % ranks)).collect()
}

/// Every hop for itself, those of different chunks in an order that `numbers` decide.
pub(crate) fn exploded(graph: &TransferGraph, numbers: &[u32]) -> TransferGraph {
    let mut lists: Vec<(u64, Vec<Batch>)> = Vec::new();
    for batch in &graph.batches {
        let hops = batch.transfers.clone().map(|index| {
            let Transfer { from, to, .. } = graph.transfers[index as usize];
            let root = if batch.action == Action::Copy { from } else { to };
            Batch { root, transfers: index..index + 1, ..batch.clone() }
        });
        match lists.iter_mut().find(|(first, _)| *first == batch.chunk_first) {
            Some((_, list)) => list.extend(hops),
            None => lists.push((batch.chunk_first, hops.collect())),
        }
    }
    lists.iter_mut().for_each(|(_, list)| list.reverse());
    let mut batches = Vec::new();
    for number in numbers.iter().cycle() {
        lists.retain(|(_, list)| !list.is_empty());
        if lists.is_empty() {
            break;
        }
        let chosen = *number as usize % lists.len();
        batches.extend(lists[chosen].1.pop());
    }
    TransferGraph { batches, ..graph.clone() }
}

/// The transfer graph of the optimal schedule for a generated topology.
pub(crate) fn synthesized(expression: &str, kind: CollectiveKind) -> TransferGraph {
    planned(expression, kind, Algorithm::Forest)
}

/// The transfer graph of an algorithm's schedule for a generated topology.
pub(crate) fn planned(expression: &str, kind: CollectiveKind, algorithm: Algorithm) -> TransferGraph {
    planned_on(&generate(expression, &TopologyLimits::STANDARD).unwrap(), kind, algorithm)
}

/// The same for any topology.
pub(crate) fn planned_on(topology: &Topology, kind: CollectiveKind, algorithm: Algorithm) -> TransferGraph {
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    let request = SynthesisRequest::new(collective, algorithm);
    let schedule = synthesize(topology, &request, &Never, &Silent).unwrap();
    compile(topology, &schedule).unwrap()
}

/// Lowers for messages up to 1 GiB.
pub(crate) fn lowered(graph: &TransferGraph, in_place: bool) -> Program {
    lowered_for(Profile::Msccl, graph, in_place)
}

/// Lowers so many instances for a runtime and messages up to 1 GiB.
pub(crate) fn lowered_times(
    profile: Profile,
    graph: &TransferGraph,
    in_place: bool,
    instances: Instances,
) -> Result<Lowered, LowerError> {
    let options = LowerOptions { in_place, bytes_max: 1 << 30, profile, name: "test".to_owned(), instances };
    lower(graph, &options, &|| false)
}

/// Lowers for a runtime and messages up to 1 GiB.
pub(crate) fn lowered_for(profile: Profile, graph: &TransferGraph, in_place: bool) -> Program {
    lowered_times(profile, graph, in_place, Instances::ONE).unwrap().program
}
