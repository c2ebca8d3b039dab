//! Networks that tests count on.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use std::collections::BTreeSet;

use canopy_tacos::{TimedLink, TimedNetwork};
use proptest::prelude::*;

/// A ring one way through all nodes, and links at random.
pub(crate) fn networks() -> impl Strategy<Value = TimedNetwork> {
    let times = (1_u64..9, 0_u64..4);
    (2_u32..9).prop_flat_map(move |nodes| {
        let link = (0..nodes, 1..nodes, times.clone());
        let ring = prop::collection::vec(times.clone(), nodes as usize);
        (Just(nodes), ring, prop::collection::vec(link, 0..20)).prop_map(|(nodes, ring, others)| {
            let timed = |from, to, (occupancy, alpha)| TimedLink { from, to, latency: occupancy + alpha, occupancy };
            let ring = (0..nodes).zip(ring).map(|(node, times)| timed(node, (node + 1) % nodes, times));
            let others = others.into_iter().map(|(from, offset, times)| timed(from, (from + offset) % nodes, times));
            TimedNetwork::new(nodes, ring.chain(others).collect()).unwrap()
        })
    })
}

/// Links both ways between nodes, each taking one tick.
pub(crate) fn cables(node_count: u32, cables: impl IntoIterator<Item = (u32, u32)>) -> TimedNetwork {
    let both = |(a, b): (u32, u32)| [(a, b), (b, a)];
    let links = cables.into_iter().flat_map(both);
    let links = links.map(|(from, to)| TimedLink { from, to, latency: 1, occupancy: 1 });
    TimedNetwork::new(node_count, links.collect()).unwrap()
}

/// Cables of a grid, node by node in rows; around the ends or not.
pub(crate) fn grid_cables(sizes: &[u32], is_torus: bool) -> Vec<(u32, u32)> {
    let node_count: u32 = sizes.iter().product();
    let mut cables = Vec::new();
    for node in 0..node_count {
        let mut stride = 1;
        for &size in sizes.iter().rev() {
            let place = node / stride % size;
            if place + 1 < size {
                cables.push((node, node + stride));
            } else if is_torus && size > 2 {
                cables.push((node, node - place * stride));
            }
            stride *= size;
        }
    }
    cables
}

pub(crate) fn mesh(sizes: &[u32]) -> TimedNetwork {
    cables(sizes.iter().product(), grid_cables(sizes, false))
}

pub(crate) fn torus(sizes: &[u32]) -> TimedNetwork {
    cables(sizes.iter().product(), grid_cables(sizes, true))
}

/// All translations of a torus by one step in one dimension.
pub(crate) fn turns(sizes: &[u32]) -> Vec<Vec<u32>> {
    let node_count: u32 = sizes.iter().product();
    let mut stride = 1;
    let mut turns = Vec::new();
    for &size in sizes.iter().rev() {
        let turned = |node: u32| {
            let place = node / stride % size;
            node - place * stride + (place + 1) % size * stride
        };
        turns.push((0..node_count).map(turned).collect());
        stride *= size;
    }
    turns
}

pub(crate) fn hypercube(dimensions: u32) -> TimedNetwork {
    let all = (0..1 << dimensions).flat_map(|node: u32| (0..dimensions).map(move |bit| (node, node ^ 1 << bit)));
    cables(1 << dimensions, all.filter(|(a, b)| a < b))
}

/// The network without some nodes; the others keep their order.
pub(crate) fn without(network: &TimedNetwork, dead: &[u32]) -> TimedNetwork {
    let number = |node: u32| node - u32::try_from(dead.iter().filter(|&&other| other < node).count()).unwrap();
    let alive = network.links().iter().filter(|link| !dead.contains(&link.from) && !dead.contains(&link.to));
    let links = alive.map(|link| TimedLink { from: number(link.from), to: number(link.to), ..*link });
    TimedNetwork::new(network.node_count() - u32::try_from(dead.len()).unwrap(), links.collect()).unwrap()
}

/// SplitMix64.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u32::try_from(((mixed ^ (mixed >> 31)) >> 33) % u64::from(bound)).unwrap()
    }
}

/// Cables such that each node has so many, to different nodes, and all are joined: rings and, for an odd number, every second
/// cable of one, through all nodes in random order. `node_count` is even where the degree is odd.
pub(crate) fn random_regular(node_count: u32, degree: u32, seed: u64) -> TimedNetwork {
    let mut chance = Chance(seed);
    let mut all = BTreeSet::new();
    let mut left = degree;
    while left > 0 {
        let mut order: Vec<u32> = (0..node_count).collect();
        for count in (2..=node_count).rev() {
            order.swap(count as usize - 1, chance.below(count) as usize);
        }
        let next = order.iter().cycle().skip(1);
        let ring = order.iter().zip(next).map(|(&a, &b)| (a.min(b), a.max(b)));
        let ring: Vec<(u32, u32)> = ring.step_by(if left == 1 { 2 } else { 1 }).collect();
        if ring.iter().all(|cable| !all.contains(cable)) {
            all.extend(ring);
            left -= left.min(2);
        }
    }
    cables(node_count, all)
}

/// Rings of two NPUs, four of them fully connected, `count` such planes joined by switches of which each is a ring one way: the
/// network of Won et al., table I, at 200, 100 and 50 GB/s with α = 0.5 µs, for chunks of this many bytes, in nanoseconds.
pub(crate) fn ring_fc_switch(count: u32, chunk_bytes: u64) -> TimedNetwork {
    let time = |gigabytes: u64| chunk_bytes / gigabytes;
    let mut links = Vec::new();
    let mut add = |from, to, rate| {
        let occupancy = time(rate);
        links.push(TimedLink { from, to, latency: 500 + occupancy, occupancy });
    };
    for plane in 0..count {
        for place in 0..8 {
            let (node, (pair, side)) = (plane * 8 + place, (place / 2, place % 2));
            add(node, plane * 8 + pair * 2 + (1 - side), 200);
            (0..4).filter(|&other| other != pair).for_each(|other| add(node, plane * 8 + other * 2 + side, 100));
            add(node, (plane + 1) % count * 8 + place, 50);
        }
    }
    TimedNetwork::new(count * 8, links).unwrap()
}

/// Five groups of four nodes that are joined with each other, and a global link of every node: node a of group g to group
/// g + 1 + a; local links take one tick, global ones two.
pub(crate) fn dragonfly() -> TimedNetwork {
    let mut links = Vec::new();
    for group in 0..5 {
        for node in 0..4 {
            let local = (0..4).filter(|&other| other != node).map(|other| (group * 4 + other, 1));
            // The cable of group h back to g is that of its node g - h - 1.
            let other = (group + 1 + node) % 5;
            let global = (other * 4 + (group + 4 - other) % 5, 2);
            let ends = local.chain([global]);
            links.extend(ends.map(|(to, ticks)| TimedLink {
                from: group * 4 + node,
                to,
                latency: ticks,
                occupancy: ticks,
            }));
        }
    }
    TimedNetwork::new(20, links).unwrap()
}
