//! Leaves out elements that have no role within one host.
//!
//! Contract of the mapping, step 3: CPUs go unless GPUs need them to reach each other; then every switch with fewer
//! than two neighbours goes, because it connects nothing. So ports and NICs go, unless something else is behind them:
//! they matter between hosts only.

use std::collections::BTreeSet;

use crate::nccl::graph::{HostGraph, VertexKind};

/// Most ids a warning lists.
const SHOWN_MAX: usize = 12;

/// Removes vertices and their links, and says so in the warnings. O(vertices log vertices + links log links).
pub(super) fn prune(graph: &mut HostGraph) {
    let is_cpu = |vertex: usize| graph.vertices[vertex].kind == VertexKind::Cpu;
    let cpus: Vec<usize> = (0..graph.vertices.len()).filter(|&vertex| is_cpu(vertex)).collect();
    let mut gone = vec![false; graph.vertices.len()];
    if gpus_meet_without_cpus(graph) {
        remove(graph, &mut gone, &cpus, "no path between GPUs needs them");
    }
    let dead_ends = dead_ends(graph, &gone);
    remove(graph, &mut gone, &dead_ends, "they connect no GPUs of the host");

    let mut renumbered = Vec::with_capacity(gone.len());
    let mut kept = 0;
    for gone in &gone {
        renumbered.push(kept);
        kept += usize::from(!gone);
    }
    graph.links.retain(|link| !gone[link.from] && !gone[link.to]);
    for link in &mut graph.links {
        (link.from, link.to) = (renumbered[link.from], renumbered[link.to]);
    }
    let mut gone = gone.into_iter();
    graph.vertices.retain(|_| !gone.next().unwrap_or(false));
}

fn remove(graph: &mut HostGraph, gone: &mut [bool], vertices: &[usize], reason: &str) {
    if vertices.is_empty() {
        return;
    }
    vertices.iter().for_each(|&vertex| gone[vertex] = true);
    let ids: Vec<&str> = vertices.iter().take(SHOWN_MAX).map(|&vertex| graph.vertices[vertex].id.as_str()).collect();
    let more =
        if vertices.len() > SHOWN_MAX { format!(" and {} more", vertices.len() - SHOWN_MAX) } else { String::new() };
    graph.warnings.push(format!("left out, because {reason}: {}{more}", ids.join(" ")));
}

/// Whether every GPU reaches every other on paths that meet no CPU.
fn gpus_meet_without_cpus(graph: &HostGraph) -> bool {
    let is = |vertex: usize, kind| graph.vertices[vertex].kind == kind;
    let Some(start) = (0..graph.vertices.len()).find(|&vertex| is(vertex, VertexKind::Gpu)) else { return false };
    let all_reached = |against_links: bool| {
        let mut neighbours = vec![Vec::new(); graph.vertices.len()];
        for link in &graph.links {
            let (from, to) = if against_links { (link.to, link.from) } else { (link.from, link.to) };
            neighbours[from].push(to);
        }
        let mut seen = vec![false; graph.vertices.len()];
        seen[start] = true;
        let mut stack = vec![start];
        while let Some(vertex) = stack.pop() {
            for &next in &neighbours[vertex] {
                if !is(next, VertexKind::Cpu) && !std::mem::replace(&mut seen[next], true) {
                    stack.push(next);
                }
            }
        }
        (0..graph.vertices.len()).all(|vertex| seen[vertex] || !is(vertex, VertexKind::Gpu))
    };
    all_reached(false) && all_reached(true)
}

/// Vertices other than GPUs that have fewer than two neighbours, or have when all such are gone.
fn dead_ends(graph: &HostGraph, gone: &[bool]) -> Vec<usize> {
    let mut neighbours = vec![BTreeSet::new(); graph.vertices.len()];
    for link in graph.links.iter().filter(|link| !gone[link.from] && !gone[link.to]) {
        neighbours[link.from].insert(link.to);
        neighbours[link.to].insert(link.from);
    }
    let is_gpu = |vertex: usize| graph.vertices[vertex].kind == VertexKind::Gpu;
    let candidates = (0..graph.vertices.len()).filter(|&vertex| !gone[vertex] && !is_gpu(vertex));
    let mut open: Vec<usize> = candidates.filter(|&vertex| neighbours[vertex].len() < 2).collect();
    let mut dead = BTreeSet::new();
    while let Some(vertex) = open.pop() {
        if !dead.insert(vertex) {
            continue;
        }
        for neighbour in std::mem::take(&mut neighbours[vertex]) {
            neighbours[neighbour].remove(&vertex);
            if !is_gpu(neighbour) && neighbours[neighbour].len() < 2 {
                open.push(neighbour);
            }
        }
    }
    dead.into_iter().collect()
}
