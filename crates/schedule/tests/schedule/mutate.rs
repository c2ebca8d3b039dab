//! Small damage to transfer graphs.

use canopy_schedule::{Action, Blocks, Collective, CollectiveKind, RouteIndex, Shares, Transfer, TransferGraph};
use canopy_topology::{Rank, Topology};

use crate::forests::{Random, shortest_route};

/// Damages a graph on a topology.
type Damage = fn(&Topology, &mut TransferGraph, &mut Random);

/// Kinds of damage, by name.
pub(crate) const KINDS: [(&str, Damage); 20] = [
    ("drop a transfer", |_, graph, random| drop_transfer(graph, random)),
    ("duplicate a transfer", |_, graph, random| duplicate_transfer(graph, random)),
    ("swap two transfers", |_, graph, random| {
        let (a, b) = (random.below(graph.transfers.len()), random.below(graph.transfers.len()));
        graph.transfers.swap(a, b);
    }),
    ("swap neighbours", |_, graph, random| {
        let (count, a) = (graph.transfers.len(), random.below(graph.transfers.len()));
        graph.transfers.swap(a, (a + 1) % count);
    }),
    ("shift a chunk range", |_, graph, random| {
        let batch = random.below(graph.batches.len());
        graph.batches[batch].chunk_first = nudge(graph.batches[batch].chunk_first, random);
    }),
    ("resize a chunk range", |_, graph, random| {
        let batch = random.below(graph.batches.len());
        graph.batches[batch].chunk_count = nudge(graph.batches[batch].chunk_count, random);
    }),
    ("resize a chunk range and its carriers", |_, graph, random| resize_all(graph, random)),
    ("swap two chunk ranges", |_, graph, random| {
        let (a, b) = (random.below(graph.batches.len()), random.below(graph.batches.len()));
        let first = graph.batches[a].chunk_first;
        graph.batches[a].chunk_first = graph.batches[b].chunk_first;
        graph.batches[b].chunk_first = first;
    }),
    ("change a route", |_, graph, random| {
        let (carrier, route) = (random.below(graph.carriers.len()), random.below(graph.routes.len() + 1));
        graph.carriers[carrier].route = RouteIndex::new(u32::try_from(route).unwrap());
    }),
    ("change a carrier's count", |_, graph, random| {
        let carrier = random.below(graph.carriers.len());
        graph.carriers[carrier].chunk_count = nudge(graph.carriers[carrier].chunk_count, random);
    }),
    ("forget dependencies", |_, graph, random| {
        let transfer = random.below(graph.transfers.len());
        graph.transfers[transfer].dependencies = 0..0;
    }),
    ("forget one dependency", |_, graph, random| {
        let transfer = random.below(graph.transfers.len());
        let range = &mut graph.transfers[transfer].dependencies;
        range.end = range.end.saturating_sub(1).max(range.start);
    }),
    ("change a dependency", |_, graph, random| {
        if !graph.dependencies.is_empty() {
            let dependency = random.below(graph.dependencies.len());
            graph.dependencies[dependency] = u32::try_from(random.below(graph.transfers.len())).unwrap();
        }
    }),
    ("change the sender", |_, graph, random| {
        let transfer = random.below(graph.transfers.len());
        graph.transfers[transfer].from = any_rank(graph, random);
    }),
    ("change the receiver", |_, graph, random| {
        let transfer = random.below(graph.transfers.len());
        graph.transfers[transfer].to = any_rank(graph, random);
    }),
    ("reroute to another sender", |topology, graph, random| reroute(topology, graph, random, true)),
    ("reroute to another receiver", |topology, graph, random| reroute(topology, graph, random, false)),
    ("change a batch's root", |_, graph, random| {
        let batch = random.below(graph.batches.len());
        graph.batches[batch].root = any_rank(graph, random);
    }),
    ("turn copy into reduce or back", |_, graph, random| {
        let batch = random.below(graph.batches.len());
        graph.batches[batch].action = match graph.batches[batch].action {
            Action::Copy => Action::Reduce,
            Action::Reduce => Action::Copy,
        };
    }),
    ("change the promise", |_, graph, random| change_promise(graph, random)),
];

/// One more or one less.
fn nudge(number: u64, random: &mut Random) -> u64 {
    if random.below(2) == 0 { number + 1 } else { number.saturating_sub(1) }
}

fn any_rank(graph: &TransferGraph, random: &mut Random) -> Rank {
    Rank::new(u32::try_from(random.below(graph.rank_count as usize)).unwrap())
}

/// Removes a transfer and keeps everything else in step, as a compiler with a bug would.
fn drop_transfer(graph: &mut TransferGraph, random: &mut Random) {
    let dropped = u32::try_from(random.below(graph.transfers.len())).unwrap();
    graph.transfers.remove(dropped as usize);
    for batch in &mut graph.batches {
        batch.transfers.start -= u32::from(batch.transfers.start > dropped);
        batch.transfers.end -= u32::from(batch.transfers.end > dropped);
    }
    graph.batches.retain(|batch| !batch.transfers.is_empty());
    // What waited for the dropped transfer waits for the first instead, and is itself if that is what it is.
    for dependency in &mut graph.dependencies {
        *dependency = if *dependency == dropped { 0 } else { *dependency - u32::from(*dependency > dropped) };
    }
}

/// Inserts a second transfer after the first, which waits for it.
fn duplicate_transfer(graph: &mut TransferGraph, random: &mut Random) {
    let original = u32::try_from(random.below(graph.transfers.len())).unwrap();
    for dependency in &mut graph.dependencies {
        *dependency += u32::from(*dependency > original);
    }
    let dependency = u32::try_from(graph.dependencies.len()).unwrap();
    graph.dependencies.push(original);
    let transfer = Transfer { dependencies: dependency..dependency + 1, ..graph.transfers[original as usize].clone() };
    graph.transfers.insert(original as usize + 1, transfer);
    for batch in &mut graph.batches {
        batch.transfers.start += u32::from(batch.transfers.start > original);
        batch.transfers.end += u32::from(batch.transfers.end > original);
    }
}

/// Makes a batch longer or shorter, with carriers that still add up.
fn resize_all(graph: &mut TransferGraph, random: &mut Random) {
    let batch = random.below(graph.batches.len());
    let batch = &mut graph.batches[batch];
    let more = random.below(2) == 0;
    let resize = |count: &mut u64| *count = if more { *count + 1 } else { count.saturating_sub(1) };
    resize(&mut batch.chunk_count);
    for transfer in batch.transfers.clone() {
        let carriers = &graph.transfers[transfer as usize].carriers;
        resize(&mut graph.carriers[carriers.start as usize].chunk_count);
    }
}

/// Gives a transfer another end, with a route that fits.
fn reroute(topology: &Topology, graph: &mut TransferGraph, random: &mut Random, sender: bool) {
    let position = random.below(graph.transfers.len());
    let (mut from, mut to) = (graph.transfers[position].from, graph.transfers[position].to);
    *(if sender { &mut from } else { &mut to }) = any_rank(graph, random);
    if from != to {
        let route = graph.routes.push(&shortest_route(topology, from.number(), to.number()));
        let transfer = &mut graph.transfers[position];
        (transfer.from, transfer.to) = (from, to);
        for carrier in &mut graph.carriers[transfer.carriers.start as usize..transfer.carriers.end as usize] {
            carrier.route = route;
        }
    }
}

/// Another collective, another root or another number of chunks.
fn change_promise(graph: &mut TransferGraph, random: &mut Random) {
    if random.below(3) == 0 {
        graph.chunks_per_share = nudge(graph.chunks_per_share, random);
        return;
    }
    if random.below(3) == 0 {
        graph.shares = match &graph.shares {
            Shares::Equal => Shares::Weighted((0..graph.rank_count).map(|_| random.below(3) as u64).collect()),
            Shares::Weighted(weights) if random.below(2) == 0 => {
                let (mut weights, rank) = (weights.clone(), random.below(weights.len()));
                weights[rank] = nudge(weights[rank], random);
                Shares::Weighted(weights)
            }
            Shares::Blocks(blocks) if random.below(2) == 0 => {
                let mut weights = blocks.weights().to_vec();
                let block = random.below(weights.len());
                weights[block] = nudge(weights[block], random);
                Blocks::new(blocks.rank_count(), weights).map_or(Shares::Equal, Shares::Blocks)
            }
            Shares::Weighted(_) | Shares::Blocks(_) => Shares::Equal,
        };
        return;
    }
    let kind = CollectiveKind::ALL[random.below(8)];
    let root = kind.has_root().then(|| any_rank(graph, random));
    graph.collective = Collective::new(kind, root, graph.rank_count).unwrap();
}
