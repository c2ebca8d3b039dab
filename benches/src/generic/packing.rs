//! Algorithm 4: spanning trees packed in batches.

use std::collections::BTreeSet;
use std::error::Error;

use canopy_optimize::{FlowNetwork, Never};

use super::Edges;

/// Equal trees in the making.
#[derive(Clone)]
struct Batch {
    /// In the order of joining.
    members: Vec<u32>,
    is_member: Vec<bool>,
    trees: i64,
}

/// Packs so many trees per rank; returns the number of batches.
pub(super) fn pack(
    mut edges: Edges,
    rank_count: u32,
    trees_per_rank: i64,
    flows: &mut u64,
) -> Result<usize, Box<dyn Error>> {
    let start = |root: u32| Batch {
        members: vec![root],
        is_member: (0..rank_count).map(|rank| rank == root).collect(),
        trees: trees_per_rank,
    };
    let mut batches: Vec<Batch> = (0..rank_count).map(start).collect();
    let mut current = 0;
    while current < batches.len() {
        let mut refused = BTreeSet::new();
        while batches[current].members.len() < rank_count as usize {
            let (edge, most) = next_edge(&batches, current, &edges, rank_count, &mut refused, flows)?;
            if most < batches[current].trees {
                let rest = Batch { trees: batches[current].trees - most, ..batches[current].clone() };
                batches.push(rest);
                batches[current].trees = most;
            }
            batches[current].members.push(edge.1);
            batches[current].is_member[edge.1 as usize] = true;
            if let Some(capacity) = edges.get_mut(&edge) {
                *capacity -= most;
                if *capacity == 0 {
                    edges.remove(&edge);
                }
            }
        }
        current += 1;
    }
    Ok(batches.len())
}

/// The first edge out of a batch that it may take, and with how many of its trees.
fn next_edge(
    batches: &[Batch],
    current: usize,
    edges: &Edges,
    rank_count: u32,
    refused: &mut BTreeSet<(u32, u32)>,
    flows: &mut u64,
) -> Result<((u32, u32), i64), Box<dyn Error>> {
    let batch = &batches[current];
    for &from in &batch.members {
        for (&edge, &capacity) in edges.range((from, 0)..=(from, rank_count)) {
            if batch.is_member[edge.1 as usize] || refused.contains(&edge) {
                continue;
            }
            let most = mu(batches, current, edges, rank_count, edge, capacity, flows)?;
            if most > 0 {
                return Ok((edge, most));
            }
            refused.insert(edge);
        }
    }
    Err("no edge is left that a tree may take".into())
}

/// How many trees of a batch may take an edge: one flow (theorem 32).
fn mu(
    batches: &[Batch],
    current: usize,
    edges: &Edges,
    rank_count: u32,
    (from, to): (u32, u32),
    capacity: i64,
    flows: &mut u64,
) -> Result<i64, Box<dyn Error>> {
    *flows += 1;
    let unfinished =
        batches.iter().enumerate().filter(|&(other, batch)| other != current && !batch.is_member[to as usize]);
    let unfinished: Vec<&Batch> = unfinished.map(|(_, batch)| batch).collect();
    let needed: i64 = unfinished.iter().map(|batch| batch.trees).sum();
    let wanted = capacity.min(batches[current].trees);
    let mut network = FlowNetwork::<i64>::new(rank_count + u32::try_from(unfinished.len())?);
    for (&(from, to), &capacity) in edges {
        network.add_arc(from, to, capacity);
    }
    for (node, batch) in (rank_count..).zip(unfinished) {
        network.add_arc(from, node, batch.trees);
        for &member in &batch.members {
            network.add_arc(node, member, batch.trees);
        }
    }
    let flow = network.max_flow(from, to, needed + wanted, &Never)?;
    Ok((flow - needed).max(0))
}
