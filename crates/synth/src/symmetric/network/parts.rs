//! Taking switches away until small pieces are left.

use std::collections::BTreeMap;

use canopy_topology::Topology;
use petgraph::unionfind::UnionFind;

/// Pieces of a network without its outer switches.
pub(super) struct Parts {
    /// Ranks of each piece, ascending; pieces by their first rank.
    pub(super) ranks: Vec<Vec<u32>>,
    /// By node: its piece, if there are ranks in it.
    pub(super) piece_of: Vec<Option<usize>>,
    /// By node: whether it is a switch that was taken away.
    pub(super) outer: Vec<bool>,
    /// Whether most pieces are single ranks.
    pub(super) are_single: bool,
}

/// Most numbers of links that switches of a network made of boxes have.
const DEGREES_MAX: usize = 64;

impl Parts {
    /// All divisions into pieces of at most so many ranks, the finest first; those with single ranks for the most part
    /// come last.
    pub(super) fn all(topology: &Topology, ranks_max: usize) -> Vec<Self> {
        let nodes = topology.nodes().len();
        let first_switch = topology.rank_count() as usize;
        let mut degrees = vec![0_u32; nodes];
        for link in topology.links() {
            degrees[link.from.index()] += 1;
            degrees[link.to.index()] += 1;
        }
        let mut by_degree: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        (first_switch..nodes).for_each(|switch| by_degree.entry(degrees[switch]).or_default().push(switch));
        if by_degree.len() > DEGREES_MAX {
            return Vec::new();
        }
        let mut outer = vec![false; nodes];
        let mut all: Vec<Self> = Vec::new();
        for switches in by_degree.into_values().rev() {
            switches.into_iter().for_each(|switch| outer[switch] = true);
            let (ranks, piece_of) = pieces(topology, &outer);
            let is_finer = all.last().is_none_or(|last| last.ranks.len() < ranks.len());
            if ranks.len() > 1 && is_finer && ranks.iter().all(|ranks| ranks.len() <= ranks_max) {
                let are_single = usual_size(&ranks) == Some(1);
                all.push(Self { ranks, piece_of, outer: outer.clone(), are_single });
            }
        }
        all.reverse();
        // Where faults have taken ranks of a box away, its switch has fewer links than the others and is taken away
        // later.
        all.sort_by_key(|parts| parts.are_single);
        all
    }
}

/// The number of ranks that most pieces have.
fn usual_size(pieces: &[Vec<u32>]) -> Option<usize> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    pieces.iter().for_each(|ranks| *counts.entry(ranks.len()).or_default() += 1);
    counts.into_iter().max_by_key(|&(_, count)| count).map(|(size, _)| size)
}

/// Ranks that are joined without the switches that were taken away, and by node the piece that it is in.
fn pieces(topology: &Topology, outer: &[bool]) -> (Vec<Vec<u32>>, Vec<Option<usize>>) {
    let mut joined = UnionFind::<usize>::new(outer.len());
    for link in topology.links() {
        let (from, to) = (link.from.index(), link.to.index());
        if !outer[from] && !outer[to] {
            joined.union(from, to);
        }
    }
    let mut number = vec![None; outer.len()];
    let mut pieces: Vec<Vec<u32>> = Vec::new();
    for rank in topology.ranks() {
        let piece = *number[joined.find_mut(rank.index())].get_or_insert_with(|| {
            pieces.push(Vec::new());
            pieces.len() - 1
        });
        pieces[piece].push(rank.number());
    }
    let piece_of = (0..outer.len()).map(|node| number[joined.find_mut(node)]).collect();
    (pieces, piece_of)
}
