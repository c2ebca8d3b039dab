//! Parts within parts: what is joined without the switches above.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::fabric::{Edge, Fabric};

/// By node: hops from the nearest machine; none where no machine leads to.
fn heights(fabric: &Fabric) -> Vec<Option<usize>> {
    let machines = fabric.machines().len();
    let mut heights: Vec<Option<usize>> = (0..fabric.node_count()).map(|node| (node < machines).then_some(0)).collect();
    let mut layer: Vec<usize> = (0..machines).collect();
    let mut height = 0;
    while !layer.is_empty() {
        height += 1;
        let mut next = Vec::new();
        for &node in &layer {
            for &edge in &fabric.leaving[node] {
                let to = fabric.edges[edge].to;
                if heights[to].is_none() {
                    heights[to] = Some(height);
                    next.push(to);
                }
            }
        }
        layer = next;
    }
    heights
}

/// By edge: of the machines below it, those of the job and all; as 1 and 1 where it leads neither up nor down. In bits,
/// O(edges · machines).
pub(crate) fn machines_below(fabric: &Fabric, is_of_job: &dyn Fn(usize) -> bool) -> Vec<(u64, u64)> {
    let (machines, heights) = (fabric.machines().len(), heights(fabric));
    let words = machines.div_ceil(64);
    let mut below: Vec<Vec<u64>> = vec![vec![0; words]; fabric.node_count()];
    let mut upwards: Vec<usize> = (0..fabric.node_count()).filter(|&node| heights[node].is_some()).collect();
    upwards.sort_by_key(|&node| heights[node]);
    for node in upwards {
        if node < machines {
            below[node][node / 64] |= 1 << (node % 64);
        }
        let of_node = below[node].clone();
        for &edge in &fabric.leaving[node] {
            let to = fabric.edges[edge].to;
            if heights[to] > heights[node] {
                below[to].iter_mut().zip(&of_node).for_each(|(word, more)| *word |= more);
            }
        }
    }
    let mut of_job = vec![0_u64; words];
    (0..machines).filter(|&machine| is_of_job(machine)).for_each(|machine| of_job[machine / 64] |= 1 << (machine % 64));
    let count = |node: usize, mask: &dyn Fn(usize) -> u64| {
        let bits = below[node].iter().enumerate().map(|(at, word)| u64::from((word & mask(at)).count_ones()));
        bits.sum::<u64>()
    };
    let of = |edge: &Edge| {
        let lower = match heights[edge.from].cmp(&heights[edge.to]) {
            Ordering::Less => edge.from,
            Ordering::Greater => edge.to,
            Ordering::Equal => return (1, 1),
        };
        (count(lower, &|at| of_job[at]), count(lower, &|_| u64::MAX))
    };
    fabric.edges.iter().map(of).collect()
}

/// By level from the lowest: the part of each node, by the least node in it. Levels that join nothing more are left out.
fn levels(fabric: &Fabric) -> Vec<Vec<usize>> {
    let heights = heights(fabric);
    let top = heights.iter().flatten().copied().max().unwrap_or(0);
    let mut parent: Vec<usize> = (0..fabric.node_count()).collect();
    let mut levels: Vec<Vec<usize>> = Vec::new();
    for level in 1..=top.max(1) {
        let is_below = |node: usize| heights[node].is_some_and(|height| height <= level);
        for edge in fabric.edges.iter().filter(|edge| is_below(edge.from) && is_below(edge.to)) {
            let (a, b) = (root(&mut parent, edge.from), root(&mut parent, edge.to));
            parent[a.max(b)] = a.min(b);
        }
        let parts: Vec<usize> = (0..fabric.node_count()).map(|node| root(&mut parent, node)).collect();
        if levels.last() != Some(&parts) {
            levels.push(parts);
        }
    }
    levels
}

fn root(parent: &mut [usize], mut node: usize) -> usize {
    while parent[node] != node {
        parent[node] = parent[parent[node]];
        node = parent[node];
    }
    node
}

/// All parts of several machines, with their switches.
pub(crate) fn parts(fabric: &Fabric) -> Vec<Vec<usize>> {
    let machines = fabric.machines().len();
    let mut all = Vec::new();
    for level in levels(fabric) {
        let mut by_part: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (node, part) in level.into_iter().enumerate() {
            by_part.entry(part).or_default().push(node);
        }
        all.extend(by_part.into_values().filter(|nodes| nodes.iter().filter(|&&node| node < machines).count() > 1));
    }
    all
}

/// Whether there are parts of several machines besides all of them.
pub(crate) fn has_levels(fabric: &Fabric) -> bool {
    let machines = fabric.machines().len();
    parts(fabric).iter().any(|part| part.iter().filter(|&&node| node < machines).count() < machines)
}

/// Machines part by part, each part at the place of its first machine. O(links · levels).
pub(crate) fn by_levels(fabric: &Fabric) -> Vec<usize> {
    sorted(&levels(fabric), fabric.machines().len(), &|part| part)
}

/// Machines part by part, parts in this order beside their like. The least node of a part that has machines is its first
/// machine.
fn sorted<K: Ord>(levels: &[Vec<usize>], machines: usize, key: &dyn Fn(usize) -> K) -> Vec<usize> {
    let mut order: Vec<usize> = (0..machines).collect();
    order.sort_by_cached_key(|&machine| {
        let parts: Vec<(K, usize)> = levels.iter().rev().map(|level| (key(level[machine]), level[machine])).collect();
        (parts, machine)
    });
    order
}

/// Orders part by part with parts in so many other orders beside their like, where there are parts; the first machine and
/// its parts stay first. The same ones each time.
pub(crate) fn by_levels_shuffled(fabric: &Fabric, count: usize) -> impl Iterator<Item = Vec<usize>> {
    let (levels, machines) = (levels(fabric), fabric.machines().len());
    (1..=count as u64).map(move |turn| {
        // The finisher of SplitMix64.
        let mixed = move |part: usize| {
            let mut bits = (part as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(turn << 32);
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            bits ^ (bits >> 31)
        };
        sorted(&levels, machines, &move |part| (part > 0, mixed(part)))
    })
}

/// Machines that are next to one another in an order.
struct Block {
    machines: Vec<usize>,
    /// The lowest level at which all are in one part.
    level: usize,
}

/// Machines in blocks of these numbers, small ones within large ones, each block in as small a part as has room for it. What
/// remains of parts makes blocks across them, after those within. O(machines · levels · log machines).
pub(crate) fn in_blocks(fabric: &Fabric, sizes: &[usize]) -> Vec<usize> {
    let levels = levels(fabric);
    let single = |machine: usize| Block { machines: vec![machine], level: 0 };
    let mut blocks: Vec<Block> = (0..fabric.machines().len()).map(single).collect();
    let mut size = 1;
    for &larger in sizes {
        if larger > size && larger.is_multiple_of(size) {
            blocks = joined(&levels, blocks, larger / size);
            size = larger;
        }
    }
    blocks.sort_by_cached_key(|block| place(&levels, block));
    blocks.into_iter().flat_map(|block| block.machines).collect()
}

/// Blocks joined by so many, from the smallest parts up.
fn joined(levels: &[Vec<usize>], mut rest: Vec<Block>, count: usize) -> Vec<Block> {
    let mut made = Vec::new();
    rest.sort_by_cached_key(|block| place(levels, block));
    for (number, level) in levels.iter().enumerate() {
        let mut by_part: BTreeMap<usize, Vec<Block>> = BTreeMap::new();
        let (ready, mut left): (Vec<Block>, Vec<Block>) = rest.into_iter().partition(|block| block.level <= number);
        for block in ready {
            by_part.entry(block.machines.first().map_or(0, |&machine| level[machine])).or_default().push(block);
        }
        for mut blocks in by_part.into_values() {
            let remains = blocks.split_off(blocks.len() - blocks.len() % count);
            left.extend(remains);
            let mut blocks = blocks.into_iter();
            while blocks.len() >= count {
                let machines = blocks.by_ref().take(count).flat_map(|block| block.machines).collect();
                made.push(Block { machines, level: number });
            }
        }
        left.sort_by_cached_key(|block| place(levels, block));
        rest = left;
    }
    // Without a level that holds them all, or too few for one.
    made.extend(rest);
    made
}

/// Where a block stands: that of the first machine first, then part by part from the highest level, those across parts
/// after those within.
fn place(levels: &[Vec<usize>], block: &Block) -> (bool, Vec<usize>, usize) {
    let first = block.machines.first().copied().unwrap_or_default();
    let part = |(number, level): (usize, &Vec<usize>)| if number < block.level { usize::MAX } else { level[first] };
    (first > 0, levels.iter().enumerate().rev().map(part).collect(), first)
}
