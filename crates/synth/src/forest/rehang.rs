//! Makes finished trees shallower, with capacity left over and by exchange between trees.
//!
//! Nothing is at stake once all trees are found: whatever fits the capacities is as good a schedule, so no condition
//! has to be tested any more.

use canopy_optimize::{FlowUnit, Stop, Stopped};

use crate::forest::ask;
use crate::forest::condition::EdgeIndex;
use crate::forest::trees::{Grower, PackedTree, Remainder};

/// Looks at this many pairs of trees at a rank before it leaves things as they are: some tenths of a second.
const EXCHANGES_MAX: u64 = 20_000_000;

/// Gives ranks of each tree a parent nearer to the root wherever an edge from there has room for the whole tree, and
/// lets two trees exchange the edges into a rank where that makes them flatter together.
///
/// Flatness is the sum of the squares of all depths, over all trees and ranks, so that the deepest ranks count most. Every
/// change lowers it, hence the method ends; it also ends when it has looked at [`EXCHANGES_MAX`] pairs.
///
/// * **In, out.** Trees that fit the capacities with `left` to spare. **Errors.** Stopped.
/// * **Cost.** O(trees² · ranks) per pass.
pub(super) fn rehang<C: FlowUnit>(
    grower: &Grower<C>,
    left: &mut Remainder<C>,
    trees: &mut [PackedTree<C>],
    stop: &dyn Stop,
) -> Result<(), Stopped> {
    let mut hung: Vec<Hung<C>> = Vec::with_capacity(trees.len());
    for tree in trees.iter() {
        ask(stop)?;
        hung.push(Hung::new(grower, tree));
    }
    let mut budget = EXCHANGES_MAX;
    loop {
        let mut changed = false;
        for tree in &mut hung {
            ask(stop)?;
            while tree.use_room(grower, left) {
                ask(stop)?;
                changed = true;
            }
        }
        changed |= exchange_all(grower, left, &mut hung, &mut budget, stop)?;
        if !changed || budget == 0 {
            break;
        }
    }
    for (tree, hung) in trees.iter_mut().zip(&hung) {
        tree.edges = hung.order[1..].iter().filter_map(|&rank| hung.parents[rank as usize]).collect();
    }
    Ok(())
}

/// One pass over all pairs of trees at all ranks, deepest trees first.
fn exchange_all<C: FlowUnit>(
    grower: &Grower<C>,
    left: &mut Remainder<C>,
    trees: &mut [Hung<C>],
    budget: &mut u64,
    stop: &dyn Stop,
) -> Result<bool, Stopped> {
    let mut by_depth: Vec<usize> = (0..trees.len()).collect();
    by_depth.sort_by_key(|&tree| std::cmp::Reverse(trees[tree].depth_max()));
    let mut changed = false;
    for &first in &by_depth {
        // From the root outwards: what hangs below moves along.
        for position in 1..trees[first].order.len() {
            let rank = trees[first].order[position];
            ask(stop)?;
            for second in (0..trees.len()).filter(|&second| second != first) {
                if *budget == 0 {
                    return Ok(changed);
                }
                *budget -= 1;
                if budget.is_multiple_of(1 << 10) {
                    ask(stop)?;
                }
                if exchange(grower, left, trees, (first, second), rank) {
                    changed = true;
                }
            }
        }
    }
    Ok(changed)
}

/// Exchanges the edges of two trees into a rank if both fit and the trees become flatter together.
fn exchange<C: FlowUnit>(
    grower: &Grower<C>,
    left: &mut Remainder<C>,
    trees: &mut [Hung<C>],
    (first, second): (usize, usize),
    rank: u32,
) -> bool {
    let (one, other) = (&trees[first], &trees[second]);
    let (Some(from_one), Some(from_other)) = (one.parents[rank as usize], other.parents[rank as usize]) else {
        return false;
    };
    if from_one == from_other {
        return false;
    }
    let fits = left.capacities[from_other] + other.weight >= one.weight
        && left.capacities[from_one] + one.weight >= other.weight;
    if !fits {
        return false;
    }
    let (Some(gain_one), Some(gain_other)) = (one.gain(grower, rank, from_other), other.gain(grower, rank, from_one))
    else {
        return false;
    };
    if gain_one + gain_other <= 0 {
        return false;
    }
    left.capacities[from_one] = left.capacities[from_one] + one.weight - other.weight;
    left.capacities[from_other] = left.capacities[from_other] + other.weight - one.weight;
    trees[first].hang(grower, rank, from_other);
    trees[second].hang(grower, rank, from_one);
    true
}

/// A tree with what is needed to move its branches.
struct Hung<C> {
    weight: C,
    /// The edge into each rank but the root.
    parents: Vec<Option<EdgeIndex>>,
    depths: Vec<i64>,
    /// Ranks, each branch contiguous, parents before children.
    order: Vec<u32>,
    /// Where a rank stands in `order`, and where its branch ends.
    span: Vec<(usize, usize)>,
    root: u32,
}

impl<C: FlowUnit> Hung<C> {
    fn new(grower: &Grower<C>, tree: &PackedTree<C>) -> Self {
        let ranks = grower.rank_count();
        let mut parents = vec![None; ranks];
        for &edge in &tree.edges {
            parents[grower.ends(edge).1 as usize] = Some(edge);
        }
        let (depths, span) = (vec![0; ranks], vec![(0, 0); ranks]);
        let mut hung = Self { weight: tree.weight, parents, depths, order: Vec::new(), span, root: tree.root };
        hung.survey(grower);
        hung
    }

    /// Finds order, depths and spans by the parents. O(ranks).
    fn survey(&mut self, grower: &Grower<C>) {
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.parents.len()];
        for (rank, parent) in (0_u32..).zip(&self.parents) {
            if let Some(edge) = parent {
                children[grower.ends(*edge).0 as usize].push(rank);
            }
        }
        self.order.clear();
        let mut stack = vec![(self.root, 0)];
        while let Some((rank, depth)) = stack.pop() {
            self.depths[rank as usize] = depth;
            self.span[rank as usize].0 = self.order.len();
            self.order.push(rank);
            stack.extend(children[rank as usize].iter().rev().map(|&child| (child, depth + 1)));
        }
        for position in (0..self.order.len()).rev() {
            let rank = self.order[position] as usize;
            let after = children[rank].iter().map(|&child| self.span[child as usize].1).max();
            self.span[rank].1 = after.unwrap_or(position + 1);
        }
        assert_eq!(self.order.len(), self.parents.len(), "a branch was never hung below itself");
    }

    fn depth_max(&self) -> i64 {
        self.depths.iter().copied().max().unwrap_or_default()
    }

    /// By how much the sum of squared depths falls if the branch of a rank hangs on this edge; `None` if the edge starts
    /// in the branch itself.
    fn gain(&self, grower: &Grower<C>, rank: u32, edge: EdgeIndex) -> Option<i64> {
        let parent = grower.ends(edge).0 as usize;
        let (start, end) = self.span[rank as usize];
        if (start..end).contains(&self.span[parent].0) {
            return None;
        }
        let shift = self.depths[parent] + 1 - self.depths[rank as usize];
        let square_change = |&below: &u32| shift * (2 * self.depths[below as usize] + shift);
        Some(if shift == 0 { 0 } else { -self.order[start..end].iter().map(square_change).sum::<i64>() })
    }

    fn hang(&mut self, grower: &Grower<C>, rank: u32, edge: EdgeIndex) {
        self.parents[rank as usize] = Some(edge);
        self.survey(grower);
    }

    /// Moves one branch to a free edge that brings it nearer to the root, the nearest rank to the root first.
    fn use_room(&mut self, grower: &Grower<C>, left: &mut Remainder<C>) -> bool {
        for position in 0..self.order.len() {
            let from = self.order[position];
            for &edge in grower.leaving(from) {
                let to = grower.ends(edge).1;
                let Some(parent) = self.parents[to as usize] else { continue };
                let nearer = self.depths[from as usize] + 1 < self.depths[to as usize];
                if nearer && left.capacities[edge] >= self.weight {
                    left.capacities[parent] += self.weight;
                    left.capacities[edge] -= self.weight;
                    self.hang(grower, to, edge);
                    return true;
                }
            }
        }
        false
    }
}
