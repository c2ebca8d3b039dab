//! Random networks from a seed, the same on every machine.

use crate::draft::TopologyDraft;
use crate::generate::arguments::Arguments;
use crate::generate::error::ExpressionError;
use crate::generate::size::{Size, product, sum};
use crate::limits::TopologyLimits;
use crate::units::{Capacity, Latency};

/// Longest cycle drawn besides the first one.
const CYCLE_MAX: usize = 6;
/// Largest capacity of one cycle, in GB/s.
const CAPACITY_MAX: u64 = 4;

/// `random-euler:n=64,switches=8,seed=1`: a random network in which every node receives as much as it sends, with
/// `n` ranks named by their number and switches `s0`, `s1`, ….
///
/// A union of directed cycles, each with a capacity of 1 to 4 GB/s: every cycle enters each of its nodes as much as it
/// leaves, so the union is Eulerian. The first cycle visits all nodes in random order, which connects them strongly;
/// as many more as there are nodes visit 2 to 6 random nodes each, every second one exactly two, which is a
/// bidirectional link. At most 7 links per node; parallels add up.
pub(super) fn random_euler(
    arguments: &Arguments<'_>,
    limits: &TopologyLimits,
) -> Result<TopologyDraft, ExpressionError> {
    let ranks = arguments.count("n", None)?;
    let switches = match arguments.find("switches") {
        Some(argument) if argument.value == "0" => 0,
        _ => arguments.count("switches", Some(8))?,
    };
    let seed = arguments.seed()?;
    let nodes = sum(&[ranks as u128, switches as u128]);
    let links_max = nodes.saturating_mul(1 + CYCLE_MAX as u128);
    Size { ranks: ranks as u128, switches: switches as u128, links: links_max }.check(limits)?;
    let mut draft = TopologyDraft::default();
    (0..ranks).for_each(|rank| draft.add_compute(rank.to_string()));
    (0..switches).for_each(|switch| draft.add_switch(format!("s{switch}")));

    let mut generator = SplitMix64::new(seed);
    let mut order: Vec<usize> = (0..ranks + switches).collect();
    generator.shuffle_front(&mut order, ranks + switches);
    add_cycle(&mut draft, &mut generator, &order);
    for extra in 0..order.len() {
        let longest = CYCLE_MAX.min(order.len());
        let length = if extra % 2 == 0 || longest < 3 { 2 } else { 3 + generator.below(longest - 2) };
        generator.shuffle_front(&mut order, length);
        add_cycle(&mut draft, &mut generator, &order[..length]);
    }
    Ok(draft)
}

/// `random-regular:n=1024,d=4,seed=1`: the union of d random directed Hamiltonian cycles on `n` ranks named by their
/// number, each link with `bw`; parallels add up. Every rank sends and receives d · bw.
pub(super) fn random_regular(
    arguments: &Arguments<'_>,
    limits: &TopologyLimits,
) -> Result<TopologyDraft, ExpressionError> {
    let (ranks, degree) = (arguments.count("n", None)?, arguments.count("d", None)?);
    let seed = arguments.seed()?;
    let bandwidth = arguments.rate("bw", 25_000_000_000)?;
    Size { ranks: ranks as u128, switches: 0, links: product(&[ranks, degree]) }.check(limits)?;
    let mut draft = TopologyDraft::default();
    (0..ranks).for_each(|rank| draft.add_compute(rank.to_string()));
    let mut generator = SplitMix64::new(seed);
    let mut order: Vec<usize> = (0..ranks).collect();
    for _ in 0..degree {
        generator.shuffle_front(&mut order, ranks);
        link_cycle(&mut draft, &order, bandwidth);
    }
    Ok(draft)
}

/// Drawings of a random graph until one is connected: of graphs whose nodes have three links or more, hardly any is not.
const DRAWINGS_MAX: usize = 100;

/// `jellyfish:n=32,d=4,seed=1`: a random graph of ranks, each linked both ways with `d` others.
///
/// Free ends of links are joined two by two at random, no two of which belong to one rank or to two that are linked already;
/// where none is left to join, all begins anew (Steger and Wormald 1999).
///
/// Source: Singla, Hong, Popa and Godfrey, "Jellyfish: networking data centers randomly", NSDI 2012.
pub(super) fn jellyfish(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Result<TopologyDraft, ExpressionError> {
    let (ranks, degree) = (arguments.count("n", None)?, arguments.count("d", None)?);
    if degree < 3 || degree >= ranks {
        return Err(arguments.refused("d", "whole numbers from 3 below `n`"));
    }
    if ranks % 2 == 1 && degree % 2 == 1 {
        return Err(arguments.refused("n", "even numbers if `d` is odd"));
    }
    undirected(arguments, limits, (ranks, degree), |generator| {
        let mut edges: Vec<(usize, usize)> = Vec::with_capacity(ranks * degree / 2);
        let mut linked = vec![Vec::with_capacity(degree); ranks];
        let mut ends: Vec<usize> = (0..ranks * degree).map(|end| end / degree).collect();
        let mut failures = 0;
        while !ends.is_empty() {
            generator.shuffle_front(&mut ends, 2);
            let (one, other) = (ends[0], ends[1]);
            if one == other || linked[one].contains(&other) {
                failures += 1;
                // As likely as not, no two free ends can be joined any more.
                if failures > 100 + ends.len() {
                    return None;
                }
                continue;
            }
            failures = 0;
            linked[one].push(other);
            linked[other].push(one);
            edges.push((one.min(other), one.max(other)));
            ends.swap_remove(1);
            ends.swap_remove(0);
        }
        Some(edges)
    })
}

/// `xpander:n=30,d=5,seed=1`: `n / (d + 1)` copies of a complete graph of d + 1 ranks, in which each link is replaced by links
/// between the copies of its ends, one for each copy, at random. Rank `c` of copy `k` has the number `c·n/(d + 1) + k`.
///
/// Source: Valadarsky, Shahaf, Dinitz and Schapira, "Xpander: towards optimal-performance datacenters", CoNEXT 2016, §3.
pub(super) fn xpander(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Result<TopologyDraft, ExpressionError> {
    let (ranks, degree) = (arguments.count("n", None)?, arguments.count("d", None)?);
    if degree < 2 || !ranks.is_multiple_of(degree.saturating_add(1)) {
        return Err(arguments.refused("n", "multiples of `d` + 1, with `d` from 2"));
    }
    let copies = ranks / (degree + 1);
    undirected(arguments, limits, (ranks, degree), |generator| {
        let mut edges = Vec::with_capacity(ranks * degree / 2);
        let mut order: Vec<usize> = (0..copies).collect();
        for one in 0..=degree {
            for other in one + 1..=degree {
                generator.shuffle_front(&mut order, copies);
                edges.extend(
                    (0..copies).zip(&order).map(|(copy, &matched)| (one * copies + copy, other * copies + matched)),
                );
            }
        }
        Some(edges)
    })
}

/// Ranks named by their number that the first connected drawing links both ways.
fn undirected(
    arguments: &Arguments<'_>,
    limits: &TopologyLimits,
    (ranks, degree): (usize, usize),
    draw: impl Fn(&mut SplitMix64) -> Option<Vec<(usize, usize)>>,
) -> Result<TopologyDraft, ExpressionError> {
    let seed = arguments.seed()?;
    let bandwidth = arguments.rate("bw", 25_000_000_000)?;
    Size { ranks: ranks as u128, switches: 0, links: product(&[ranks, degree]) }.check(limits)?;
    let mut generator = SplitMix64::new(seed);
    let mut drawings = (0..DRAWINGS_MAX).filter_map(|_| draw(&mut generator));
    let Some(mut edges) = drawings.find(|edges| is_connected(ranks, edges)) else {
        return Err(arguments.refused("d", "a larger number: no drawing is connected"));
    };
    edges.sort_unstable();
    let mut draft = TopologyDraft::default();
    (0..ranks).for_each(|rank| draft.add_compute(rank.to_string()));
    for (one, other) in edges {
        draft.add_both(&one.to_string(), &other.to_string(), bandwidth, Latency::default());
    }
    Ok(draft)
}

fn is_connected(ranks: usize, edges: &[(usize, usize)]) -> bool {
    let mut linked = vec![Vec::new(); ranks];
    for &(one, other) in edges {
        linked[one].push(other);
        linked[other].push(one);
    }
    let mut is_reached = vec![false; ranks];
    is_reached[0] = true;
    let mut reached = vec![0];
    while let Some(rank) = reached.pop() {
        for &next in &linked[rank] {
            if !std::mem::replace(&mut is_reached[next], true) {
                reached.push(next);
            }
        }
    }
    is_reached.into_iter().all(|reached| reached)
}

/// Links each node of the cycle to the next, all with one random capacity.
fn add_cycle(draft: &mut TopologyDraft, generator: &mut SplitMix64, cycle: &[usize]) {
    let gigabytes = 1 + generator.next() % CAPACITY_MAX;
    let capacity = Capacity::from_bytes_per_sec(gigabytes * 1_000_000_000).expect("at least 1 GB/s");
    link_cycle(draft, cycle, capacity);
}

fn link_cycle(draft: &mut TopologyDraft, cycle: &[usize], capacity: Capacity) {
    for (position, &from) in cycle.iter().enumerate() {
        let to = cycle[(position + 1) % cycle.len()];
        let (from, to) = (draft.nodes[from].id.clone(), draft.nodes[to].id.clone());
        draft.add_link(from, to, capacity, Latency::default());
    }
}

/// The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, figure 15,
/// with the constants of java.util.SplittableRandom. Not for secrets.
pub(super) struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound` > 0; its bias is below `bound` / 2⁶⁴.
    fn below(&mut self, bound: usize) -> usize {
        let scaled = (u128::from(self.next()) * bound as u128) >> 64;
        usize::try_from(scaled).expect("the high half of a product is below its factor")
    }

    /// Makes the first `count` entries a random choice in random order (Fisher and Yates).
    pub(super) fn shuffle_front<T>(&mut self, entries: &mut [T], count: usize) {
        for position in 0..count.min(entries.len()) {
            let other = position + self.below(entries.len() - position);
            entries.swap(position, other);
        }
    }
}
