//! Networks that look the same from every rank because a group made them, under names and in an order that do not show it:
//! trees as shallow as any, at the best rate.

use std::collections::HashMap;

use canopy_schedule::CollectiveKind::Allgather;
use canopy_schedule::{Collective, Shares};
use canopy_synth::{Never, bound};
use canopy_topology::{Capacity, Latency, Topology, TopologyDraft, TopologyLimits};

use crate::forest::validator::plan_of;

/// A rank for each number, renamed by a step that shares no factor with their count.
fn network(rank_count: usize, links: &[(usize, usize, u64)], step: usize) -> Topology {
    let id = |rank: usize| format!("n{:05}", rank * step % rank_count);
    let mut draft = TopologyDraft::default();
    for rank in 0..rank_count {
        draft.add_compute(format!("n{rank:05}"));
    }
    for &(from, to, rate) in links {
        draft.add_link(id(from), id(to), Capacity::from_bytes_per_sec(rate).unwrap(), Latency::from_nanos(0));
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// All orders of so many things, each linked with those where two of them changed places as the pairs say.
fn orders(count: usize, pairs: &[(usize, usize)], step: usize) -> Topology {
    let first: Vec<usize> = (0..count).collect();
    let mut numbers = HashMap::from([(first.clone(), 0)]);
    let (mut all, mut links) = (vec![first], Vec::new());
    let mut next = 0;
    while let Some(order) = all.get(next).cloned() {
        for &(a, b) in pairs {
            let mut other = order.clone();
            other.swap(a, b);
            let number = *numbers.entry(other.clone()).or_insert(all.len());
            if number == all.len() {
                all.push(other);
            }
            links.push((next, number, 10));
        }
        next += 1;
    }
    network(all.len(), &links, step)
}

/// Rings in place of the corners of a cube: the links of its edges have a rate of their own.
fn cube_connected_cycles(dimensions: usize, edge_rate: u64, step: usize) -> Topology {
    let rank = |corner: usize, place: usize| corner * dimensions + place % dimensions;
    let mut links = Vec::new();
    for (corner, place) in (0..1 << dimensions).flat_map(|corner| (0..dimensions).map(move |place| (corner, place))) {
        links.push((rank(corner, place), rank(corner, place + 1), 10));
        links.push((rank(corner, place + 1), rank(corner, place), 10));
        links.push((rank(corner, place), rank(corner ^ 1 << place, place), edge_rate));
    }
    network(dimensions << dimensions, &links, step)
}

/// Hops from rank 0 to the rank furthest away, which is as far as from any other.
fn eccentricity(topology: &Topology) -> usize {
    let mut distances = vec![None; topology.nodes().len()];
    distances[0] = Some(0);
    let mut waiting = vec![0_u32];
    let mut next = 0;
    while let Some(&rank) = waiting.get(next) {
        next += 1;
        for link in topology.links().iter().filter(|link| link.from.number() == rank) {
            if distances[link.to.index()].is_none() {
                distances[link.to.index()] = distances[rank as usize].map(|distance: usize| distance + 1);
                waiting.push(link.to.number());
            }
        }
    }
    distances.into_iter().flatten().max().unwrap()
}

#[track_caller]
fn check(topology: &Topology) {
    let collective = Collective::new(Allgather, None, topology.rank_count()).unwrap();
    let judged = plan_of(topology, collective);
    assert_eq!(judged.algbw, bound(topology, collective, &Shares::Equal, &Never).unwrap().upper);
    assert_eq!(judged.depth_max(), eccentricity(topology));
}

#[test]
fn cubes_of_rings() {
    check(&cube_connected_cycles(4, 10, 27));
    check(&cube_connected_cycles(5, 10, 77));
    check(&cube_connected_cycles(5, 20, 77));
}

/// Star graphs exchange the first with any other, bubble-sort graphs neighbours.
#[test]
fn orders_of_five_things() {
    check(&orders(5, &[(0, 1), (0, 2), (0, 3), (0, 4)], 49));
    check(&orders(5, &[(0, 1), (1, 2), (2, 3), (3, 4)], 49));
}

/// Ranks on a torus, the links of whose rows have a rate of their own.
fn torus(rows: usize, columns: usize, row_rate: u64, step: usize) -> Topology {
    let mut links = Vec::new();
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let here = row * columns + column;
        let (down, right) = ((row + 1) % rows * columns + column, row * columns + (column + 1) % columns);
        links.extend([(here, down, 10), (down, here, 10), (here, right, row_rate), (right, here, row_rate)]);
    }
    network(rows * columns, &links, step)
}

#[test]
fn disguised_grids() {
    check(&torus(8, 8, 10, 27));
    check(&torus(8, 10, 20, 27));
    let ring = |ranks: usize, steps: [usize; 2], step| {
        let pairs = (0..ranks).flat_map(|rank| steps.map(|far| (rank, (rank + far) % ranks)));
        network(ranks, &pairs.flat_map(|(a, b)| [(a, b, 10), (b, a, 10)]).collect::<Vec<_>>(), step)
    };
    check(&ring(90, [1, 7], 37));
    let cube = (0..64_usize).flat_map(|rank| (0..6).map(move |bit| (rank, rank ^ 1 << bit, 10)));
    check(&network(64, &cube.collect::<Vec<_>>(), 27));
}
