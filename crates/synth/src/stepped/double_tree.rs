//! Two binary trees, in each of which the inner ranks are leaves of the other.

use canopy_optimize::Stop;
use canopy_schedule::{Action, Collective, CollectiveKind, Schedule};
use canopy_topology::{Rank, Topology};

use super::named::planned;
use super::{Rounds, SteppedError, written};
use crate::algorithm::{Rival, Synthesizer};

/// Two binary trees.
pub(crate) static DOUBLE_TREE: Synthesizer = Synthesizer {
    // The trees are as deep as a binary tree must be.
    rival: Some(Rival { place: 10, ..Rival::DOUBLING }),
    ..Synthesizer::new(
        "double-tree",
        "two binary trees, each with half the data (Sanders 2009)",
        &[CollectiveKind::Broadcast, CollectiveKind::Reduce, CollectiveKind::Allreduce],
        |task| planned(task, double_tree),
    )
};

/// Broadcast, reduce and allreduce over two binary trees, each for half of the data.
///
/// Positions 1 … N in a tree are numbered so that odd ones are leaves: the parent of a position is found by moving its lowest set bit up, as
/// far as there are ranks. In the second tree each rank has the position next to its own, or, where N is even, the mirrored one, which changes
/// odd and even. A broadcast goes from its root to those of both trees, and down; a reduce is the same backwards; an allreduce adds shares with
/// even numbers up one tree and the others up the other one, and sends them down again. Without pipelining, a share moves whole.
///
/// * **Source.** Sanders, Speck and Träff 2009, *Two-tree algorithms for full bandwidth broadcast, reduction and scan*.
/// * **Out.** k = 2 for broadcast and reduce, else k = 1. Where switches do not join parents and children, ranks between store and forward,
///   a step for each hop.
/// * **Errors.** [`SteppedError`]: another collective, too many sends, stopped.
/// * **Cost.** O(N log N), of an allreduce O(N²), and a search of the network per rank.
pub fn double_tree(topology: &Topology, collective: Collective, stop: &dyn Stop) -> Result<Schedule, SteppedError> {
    let count = topology.rank_count();
    written(topology, rounds(collective, count)?, || copies(collective, count), stop)
}

fn rounds(collective: Collective, rank_count: u32) -> Result<Rounds, SteppedError> {
    match collective.kind() {
        CollectiveKind::Broadcast => copies(collective, rank_count),
        CollectiveKind::Reduce | CollectiveKind::Allreduce => copies(collective, rank_count)?.summing(collective),
        _ => {
            let parts = Rounds::new(&DOUBLE_TREE, collective, rank_count);
            Err(parts.unsupported())
        }
    }
}

/// Copies what is at the root, or of an allreduce at the trees' own roots, down both trees.
fn copies(collective: Collective, rank_count: u32) -> Result<Rounds, SteppedError> {
    let mut parts = Rounds::new(&DOUBLE_TREE, collective, rank_count);
    let root = collective.root();
    if root.is_some() {
        parts.chunks_per_share = 2;
    }
    let mut edges: Vec<(u32, usize, (Rank, Rank))> = Vec::new();
    for tree in 0..2 {
        let rank = |position: u32| match tree {
            0 => Rank::new(position - 1),
            _ if rank_count.is_multiple_of(2) => Rank::new(rank_count - position),
            _ => Rank::new(position % rank_count),
        };
        let top = 1 << rank_count.ilog2();
        let handed = root.filter(|&root| root != rank(top)).map(|root| (0, tree, (root, rank(top))));
        let first = u32::from(root.is_some());
        edges.extend(handed);
        for position in (1..=rank_count).filter(|&position| position != top) {
            let (parent, depth) = (parent(position, rank_count), depth(position, rank_count));
            // The root has it.
            if root != Some(rank(position)) {
                edges.push((first + depth - 1, tree, (rank(parent), rank(position))));
            }
        }
    }
    edges.sort_by_key(|&(step, ..)| step);
    for (step, tree, ends) in edges {
        let chunks = match root {
            Some(_) => tree..tree + 1,
            None => 0..rank_count as usize,
        };
        let of_tree = chunks.filter(|chunk| chunk % 2 == tree).map(|chunk| chunk as u64);
        parts.send(step, Action::Copy, ends, of_tree)?;
    }
    Ok(parts)
}

/// The next position on the way up; of the greatest power of two there is none.
fn parent(position: u32, count: u32) -> u32 {
    let mut bit = position & position.wrapping_neg();
    let mut rest = position ^ bit;
    loop {
        let above = u64::from(rest) | u64::from(bit) << 1;
        if let Ok(above) = u32::try_from(above)
            && above <= count
        {
            return above;
        }
        // Too far: the bit below which there is nothing moves away.
        bit <<= 1;
        rest &= !bit;
    }
}

/// How many moves lead up to the top.
fn depth(position: u32, count: u32) -> u32 {
    let top = 1 << count.ilog2();
    let way_up = std::iter::successors(Some(position), |&at| (at != top).then(|| parent(at, count)));
    way_up.skip(1).map(|_| 1).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every position leads to the top over at most as many as there are bits; odd ones are leaves; nobody has three children.
    #[test]
    fn positions_make_a_flat_binary_tree() {
        for count in 1..=130_u32 {
            let top = 1 << count.ilog2();
            let mut children = vec![0; count as usize + 1];
            for position in (1..=count).filter(|&position| position != top) {
                children[parent(position, count) as usize] += 1;
                assert!(depth(position, count) <= count.ilog2(), "{position} of {count}");
            }
            assert!((1..=count).all(|position| children[position as usize] <= if position % 2 == 1 { 0 } else { 2 }));
        }
    }
}
