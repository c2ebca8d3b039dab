//! Translations of grids in which all ranks of every line are joined.
//!
//! Such a network has a great many automorphisms without fixed ranks, few of which commute: a search that takes the first for one
//! dimension may find none for the next.

use canopy_direct::Digraph;
use canopy_direct::multiport::Grid;

use super::Graph;

/// By dimension, that to the next rank of each line; nothing where the network is no such grid. They commute, and move rank 0
/// anywhere, but may not keep capacities.
///
/// * **Cost.** O(ranks · degree) where counts rule grids out, else O(ranks · dimensions² + links · log degree).
pub(super) fn turns(graph: &Graph) -> Vec<Vec<u32>> {
    let Ok(rank_count) = u32::try_from(graph.rank_count()) else { return Vec::new() };
    let arcs = (0_u32..).zip(&graph.neighbours).flat_map(|(from, around)| around.iter().map(move |&to| (from, to)));
    let Ok(plain) = Digraph::new(rank_count, arcs) else { return Vec::new() };
    let Ok(grid) = Grid::of(&plain) else { return Vec::new() };
    let along = |dimension| (0..rank_count).map(|rank| grid.neighbour(rank, dimension, 1)).collect();
    (0..grid.sides().len()).map(along).collect()
}
