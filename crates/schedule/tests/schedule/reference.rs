//! A second judge, slow and simple: chunk by chunk, with a full matrix of dependencies. And a third, which runs the
//! graph on numbers, in an order of its own choice.

use std::collections::{BTreeMap, BTreeSet};

use canopy_schedule::{Action, Batch, CollectiveKind, Shares, Transfer, TransferGraph};
use canopy_topology::{NodeIndex, Rank, Topology};

use crate::forests::Random;

/// Whether a graph is right, with the first reason why not.
pub(crate) fn judge(topology: &Topology, graph: &TransferGraph) -> Result<(), &'static str> {
    well_formed(topology, graph)?;
    let before = closure(graph);
    let batch_of = batch_of(graph);
    for chunk in 0..graph.chunk_count().unwrap() {
        let carries = |index: &usize| {
            let batch = &graph.batches[batch_of[*index]];
            (batch.chunk_first..batch.chunk_first + batch.chunk_count).contains(&chunk)
        };
        let moving: Vec<usize> = (0..graph.transfers.len()).filter(carries).collect();
        let action = |index: usize| graph.batches[batch_of[index]].action;
        for (position, &second) in moving.iter().enumerate() {
            for &first in &moving[..position] {
                let (a, b) = (&graph.transfers[first], &graph.transfers[second]);
                let both_reduce = action(first) == Action::Reduce && action(second) == Action::Reduce;
                let clash = a.to == b.from || a.from == b.to || (a.to == b.to && !both_reduce);
                if clash && !before[second].contains(&first) {
                    return Err("unordered");
                }
            }
        }
        run_chunk(graph, chunk, &moving, action)?;
    }
    Ok(())
}

fn run_chunk(
    graph: &TransferGraph,
    chunk: u64,
    moving: &[usize],
    action: impl Fn(usize) -> Action,
) -> Result<(), &'static str> {
    let mut held: Vec<BTreeSet<u32>> = (0..graph.rank_count).map(|rank| initial(graph, rank, chunk)).collect();
    for &index in moving {
        let transfer = &graph.transfers[index];
        let sent = held[transfer.from.index()].clone();
        let place = &mut held[transfer.to.index()];
        match action(index) {
            _ if sent.is_empty() => return Err("nothing sent"),
            Action::Copy if *place == sent => return Err("redundant"),
            Action::Copy if !place.is_subset(&sent) => return Err("destroyed"),
            Action::Copy => *place = sent,
            Action::Reduce if place.is_empty() => return Err("reduced into nothing"),
            Action::Reduce if !place.is_disjoint(&sent) => return Err("reduced twice"),
            Action::Reduce => place.extend(sent),
        }
    }
    let right = (0..graph.rank_count)
        .all(|rank| promised(graph, rank, chunk).is_none_or(|promised| held[rank as usize] == promised));
    if right { Ok(()) } else { Err("promise broken") }
}

/// Sizes of the shares in chunks, by rank; in all-to-all of the blocks.
fn sizes(graph: &TransferGraph) -> Vec<u64> {
    let ranks = graph.rank_count as usize;
    match (&graph.shares, graph.collective.kind()) {
        (Shares::Weighted(weights), _) => weights.iter().map(|weight| weight * graph.chunks_per_share).collect(),
        (Shares::Blocks(blocks), _) => blocks.weights().iter().map(|weight| weight * graph.chunks_per_share).collect(),
        (Shares::Equal, CollectiveKind::AllToAll) => vec![graph.chunks_per_share; ranks * ranks],
        (Shares::Equal, _) => vec![graph.chunks_per_share; ranks],
    }
}

/// The share or block that a chunk lies in.
fn unit(graph: &TransferGraph, chunk: u64) -> u32 {
    let mut end = 0;
    let sizes = sizes(graph);
    let found = sizes.iter().position(|size| {
        end += size;
        chunk < end
    });
    u32::try_from(found.unwrap()).unwrap()
}

fn share(graph: &TransferGraph, chunk: u64) -> u32 {
    match graph.collective.kind() {
        CollectiveKind::AllToAll => unit(graph, chunk) / graph.rank_count,
        _ => unit(graph, chunk),
    }
}

fn initial(graph: &TransferGraph, rank: u32, chunk: u64) -> BTreeSet<u32> {
    let root = graph.collective.root().map(Rank::number);
    let holds = match graph.collective.kind() {
        CollectiveKind::Allgather | CollectiveKind::Gather | CollectiveKind::AllToAll => rank == share(graph, chunk),
        CollectiveKind::Broadcast | CollectiveKind::Scatter => Some(rank) == root,
        _ => true,
    };
    if holds { BTreeSet::from([rank]) } else { BTreeSet::new() }
}

fn promised(graph: &TransferGraph, rank: u32, chunk: u64) -> Option<BTreeSet<u32>> {
    let root = graph.collective.root().map(Rank::number);
    let everyone = (0..graph.rank_count).collect();
    match graph.collective.kind() {
        CollectiveKind::Allgather => Some(BTreeSet::from([share(graph, chunk)])),
        CollectiveKind::Broadcast => Some(root.into_iter().collect()),
        CollectiveKind::Allreduce => Some(everyone),
        CollectiveKind::ReduceScatter => (rank == share(graph, chunk)).then_some(everyone),
        CollectiveKind::Reduce => (Some(rank) == root).then_some(everyone),
        CollectiveKind::Gather => (Some(rank) == root).then(|| BTreeSet::from([share(graph, chunk)])),
        CollectiveKind::Scatter => (rank == share(graph, chunk)).then(|| root.into_iter().collect()),
        CollectiveKind::AllToAll => {
            (rank == unit(graph, chunk) % graph.rank_count).then(|| BTreeSet::from([share(graph, chunk)]))
        }
    }
}

fn batch_of(graph: &TransferGraph) -> Vec<usize> {
    let of = |(index, batch): (usize, &Batch)| batch.transfers.clone().map(move |_| index);
    graph.batches.iter().enumerate().flat_map(of).collect()
}

/// All transfers that must come before each.
fn closure(graph: &TransferGraph) -> Vec<BTreeSet<usize>> {
    let mut before: Vec<BTreeSet<usize>> = Vec::new();
    for transfer in &graph.transfers {
        let direct = graph.dependencies_of(transfer).iter().map(|&dependency| dependency as usize);
        before.push(direct.flat_map(|other| before[other].iter().copied().chain([other])).collect());
    }
    before
}

fn well_formed(topology: &Topology, graph: &TransferGraph) -> Result<(), &'static str> {
    let ok = |condition: bool, why: &'static str| if condition { Ok(()) } else { Err(why) };
    ok(graph.rank_count == topology.rank_count() && graph.chunk_count().is_some_and(|count| count > 0), "sizes")?;
    let mut expected = 0;
    for batch in &graph.batches {
        ok(batch.transfers.start == expected && batch.transfers.end > expected, "tiling")?;
        expected = batch.transfers.end;
        let end = u128::from(batch.chunk_first) + u128::from(batch.chunk_count);
        ok(batch.chunk_count > 0 && end <= u128::from(graph.chunk_count().unwrap()), "chunk range")?;
        let is_message = matches!(graph.collective.kind(), CollectiveKind::Broadcast | CollectiveKind::Reduce);
        let last = batch.chunk_first + batch.chunk_count - 1;
        ok(is_message || unit(graph, batch.chunk_first) == unit(graph, last), "across shares")?;
        ok(batch.root.number() < graph.rank_count, "batch root")?;
        ok(batch.transfers.end as usize <= graph.transfers.len(), "tiling")?;
        for (index, transfer) in batch.transfers.clone().zip(graph.transfers_of(batch)) {
            ok(transfer.from.number().max(transfer.to.number()) < graph.rank_count, "rank")?;
            ok(transfer.from != transfer.to, "to itself")?;
            ok(transfer.dependencies.end as usize <= graph.dependencies.len(), "dependency range")?;
            ok(graph.dependencies_of(transfer).iter().all(|&dependency| dependency < index), "forward dependency")?;
            carried(topology, graph, batch, transfer)?;
        }
        tree(batch, graph.transfers_of(batch))?;
    }
    ok(expected as usize == graph.transfers.len(), "tiling")
}

fn carried(topology: &Topology, graph: &TransferGraph, batch: &Batch, transfer: &Transfer) -> Result<(), &'static str> {
    let mut sum = 0_u128;
    for carrier in graph.carriers_of(transfer) {
        sum += u128::from(carrier.chunk_count);
        let links = graph.routes.get(carrier.route).ok_or("no such route")?;
        let mut node = transfer.from.node();
        for (position, &link) in links.iter().enumerate() {
            let link = topology.links().get(link.index()).ok_or("no such link")?;
            if link.from != node || (position > 0 && is_rank(topology, node)) || carrier.chunk_count == 0 {
                return Err("route");
            }
            node = link.to;
        }
        if links.is_empty() || node != transfer.to.node() {
            return Err("route");
        }
    }
    if sum == u128::from(batch.chunk_count) { Ok(()) } else { Err("carrier sum") }
}

fn is_rank(topology: &Topology, node: NodeIndex) -> bool {
    node.number() < topology.rank_count()
}

/// A copy tree is a reduce tree run backwards.
fn tree(batch: &Batch, transfers: &[Transfer]) -> Result<(), &'static str> {
    let mut edges: Vec<(Rank, Rank)> = transfers.iter().map(|transfer| (transfer.from, transfer.to)).collect();
    if batch.action == Action::Reduce {
        edges = edges.into_iter().rev().map(|(from, to)| (to, from)).collect();
    }
    let mut reached = BTreeSet::from([batch.root]);
    let grows = edges.into_iter().all(|(from, to)| reached.contains(&from) && reached.insert(to));
    if grows { Ok(()) } else { Err("no tree") }
}

/// Runs a well-formed graph on random numbers, always doing a random transfer whose dependencies are met; whether all
/// promises are kept. Places that hold nothing hold `None`; sums wrap.
pub(crate) fn computes_the_promise(graph: &TransferGraph, random: &mut Random) -> bool {
    let chunks = graph.chunk_count().unwrap();
    let mut given = BTreeMap::new();
    let mut held = BTreeMap::new();
    for (rank, chunk) in (0..graph.rank_count).flat_map(|rank| (0..chunks).map(move |chunk| (rank, chunk))) {
        if !initial(graph, rank, chunk).is_empty() {
            let value = random.next();
            given.insert((rank, chunk), value);
            held.insert((rank, chunk), value);
        }
    }
    let batch_of = batch_of(graph);
    let mut waiting: Vec<usize> = (0..graph.transfers.len()).collect();
    let mut done = BTreeSet::new();
    while !waiting.is_empty() {
        let is_ready = |&&index: &&usize| {
            graph.dependencies_of(&graph.transfers[index]).iter().all(|&other| done.contains(&(other as usize)))
        };
        let ready: Vec<usize> = waiting.iter().filter(is_ready).copied().collect();
        let index = ready[random.below(ready.len())];
        waiting.retain(|&other| other != index);
        done.insert(index);
        let (transfer, batch) = (&graph.transfers[index], &graph.batches[batch_of[index]]);
        for chunk in batch.chunk_first..batch.chunk_first + batch.chunk_count {
            let sent = held.get(&(transfer.from.number(), chunk)).copied();
            let place = (transfer.to.number(), chunk);
            let value = match batch.action {
                Action::Copy => sent,
                Action::Reduce => sent.zip(held.get(&place)).map(|(sent, held)| sent.wrapping_add(*held)),
            };
            let Some(value) = value else { return false };
            held.insert(place, value);
        }
    }
    (0..graph.rank_count).flat_map(|rank| (0..chunks).map(move |chunk| (rank, chunk))).all(|(rank, chunk)| {
        let sum = |ranks: BTreeSet<u32>| ranks.iter().fold(0_u64, |sum, &rank| sum.wrapping_add(given[&(rank, chunk)]));
        promised(graph, rank, chunk).is_none_or(|ranks| held.get(&(rank, chunk)) == Some(&sum(ranks)))
    })
}
