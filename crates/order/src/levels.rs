//! Parts within parts: what is joined without the switches above.

use std::collections::BTreeMap;

use crate::fabric::Fabric;

/// By level from the lowest: the part of each node, by the least node in it. Levels that join nothing more are left out.
fn levels(fabric: &Fabric) -> Vec<Vec<usize>> {
    let machines = fabric.machines().len();
    // Hops from the nearest machine.
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
    let levels = levels(fabric);
    let mut order: Vec<usize> = (0..fabric.machines().len()).collect();
    // The least node of a part that has machines is its first machine.
    order.sort_by_key(|&machine| {
        let parts: Vec<usize> = levels.iter().rev().map(|level| level[machine]).collect();
        (parts, machine)
    });
    order
}
