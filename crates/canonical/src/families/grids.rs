//! Networks of ranks alone, all links alike: what rings, complete and complete bipartite graphs, hypercubes, tori and meshes
//! would have such counts.

use canopy_topology::NodeIndex;

use crate::families::extents::{Line, factorisations, has_layers};
use crate::families::summary::Summary;

/// `ring:8`, `ring:8,dir=uni`; two ranks, three all joined, and a square are rings.
pub(crate) fn ring(summary: &Summary<'_>) -> Vec<String> {
    let Some(rate) = summary.uniform() else { return Vec::new() };
    let ranks = summary.ranks;
    let degree = if ranks == 2 { 1 } else { 2 };
    let mut found = Vec::new();
    if summary.is_regular(degree) {
        found.push(format!("{ranks},bw={rate}"));
    } else if summary.is_regular(1) {
        found.push(format!("{ranks},dir=uni,bw={rate}"));
    }
    found
}

/// `complete:8`.
pub(crate) fn complete(summary: &Summary<'_>) -> Vec<String> {
    let ranks = summary.ranks;
    let rate = summary.uniform().filter(|_| summary.is_regular(ranks - 1));
    rate.map(|rate| format!("{ranks},bw={rate}")).into_iter().collect()
}

/// `hypercube:6`.
pub(crate) fn hypercube(summary: &Summary<'_>) -> Vec<String> {
    let ranks = summary.ranks;
    let dimension = ranks.ilog2() as usize;
    let rate = summary.uniform().filter(|_| ranks.is_power_of_two() && summary.is_regular(dimension));
    rate.map(|rate| format!("{dimension},bw={rate}")).into_iter().collect()
}

/// `torus:4x4x4`, extents rising. Two of 2 are as one of 4, so that there is at most one; extents of 1 are none.
pub(crate) fn torus(summary: &Summary<'_>) -> Vec<String> {
    let Some(rate) = summary.uniform() else { return Vec::new() };
    let degree = summary.degrees().next().unwrap_or_default();
    let twos = degree % 2;
    let cycled = summary.ranks / (1 + twos);
    if !summary.is_regular(degree) || cycled * (1 + twos) != summary.ranks {
        return Vec::new();
    }
    // Every node of a torus sees the same.
    let layers = summary.layers(NodeIndex::new(0));
    let cycles = factorisations(cycled, degree / 2, 3).into_iter();
    let extents = cycles.map(|cycles| [vec![2; twos], cycles].concat());
    extents.filter(|extents| has_layers(extents, Line::Cycle, &layers)).map(|extents| grid(&extents, rate)).collect()
}

/// `mesh:4x4`, extents rising.
pub(crate) fn mesh(summary: &Summary<'_>) -> Vec<String> {
    let Some(rate) = summary.uniform() else { return Vec::new() };
    // A corner has one neighbour in each dimension.
    let Some((dimensions, corner)) = summary.degrees().zip(0_u32..).min() else { return Vec::new() };
    let ranks = summary.ranks;
    let pairs = |extents: &[usize]| extents.iter().map(|extent| ranks / extent * (extent - 1)).sum::<usize>();
    let extents = factorisations(ranks, dimensions, 2).into_iter();
    let mut extents = extents.filter(|extents| 2 * pairs(extents) == summary.links).peekable();
    if extents.peek().is_none() {
        return Vec::new();
    }
    let layers = summary.layers(NodeIndex::new(corner));
    extents.filter(|extents| has_layers(extents, Line::Path, &layers)).map(|extents| grid(&extents, rate)).collect()
}

/// `bipartite:4x6`, the smaller part first.
pub(crate) fn bipartite(summary: &Summary<'_>) -> Vec<String> {
    let Some(rate) = summary.uniform() else { return Vec::new() };
    let ranks = summary.ranks;
    // Whoever is in the larger part has all of the smaller one as neighbours.
    let left = summary.degrees().min().unwrap_or_default();
    let fits = (1..=ranks / 2).contains(&left) && 2 * left * (ranks - left) == summary.links;
    if fits { vec![format!("{left}x{},bw={rate}", ranks - left)] } else { Vec::new() }
}

fn grid(extents: &[usize], rate: canopy_topology::Capacity) -> String {
    let extents: Vec<String> = extents.iter().map(usize::to_string).collect();
    format!("{},bw={rate}", extents.join("x"))
}
