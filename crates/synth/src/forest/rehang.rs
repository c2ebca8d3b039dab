//! Makes finished trees shallower, with capacity left over and by exchange between trees.
//!
//! Nothing is at stake once all trees are found: whatever fits the capacities is as good a schedule, so no condition
//! has to be tested any more.

use std::ops::Range;

use canopy_optimize::{FlowUnit, Stop, Stopped};

use crate::forest::ask;
use crate::forest::condition::EdgeIndex;
use crate::forest::trees::{Grower, PackedTree, Remainder};

/// Looks at this many edges and pairs of trees before it leaves things as they are: about a tenth of a second.
const LOOKS_MAX: u64 = 8_000_000;

/// Gives ranks of each tree a parent nearer to the root wherever an edge from there has room for the whole tree, and
/// lets two trees exchange the edges into a rank where that makes them flatter together.
///
/// Flatness is the sum of the squares of all depths, over all trees and ranks, so that the deepest ranks count most. Every
/// change lowers it, hence the method ends; it also ends when it has had [`LOOKS_MAX`] looks.
///
/// * **In, out.** Trees that fit the capacities with `left` to spare. **Errors.** Stopped.
/// * **Cost.** O(trees · (edges + exchanges possible)) per pass.
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
    let mut looks = Looks { left: LOOKS_MAX, stop };
    while looks.left > 0 {
        let mut changed = false;
        let mut has_room = vec![false; grower.rank_count()];
        for (edge, _) in left.capacities.iter().enumerate().filter(|&(_, &capacity)| capacity > C::ZERO) {
            has_room[grower.ends(edge).0 as usize] = true;
        }
        for tree in &mut hung {
            ask(stop)?;
            changed |= tree.use_room(grower, left, &mut has_room, &mut looks)?;
        }
        if looks.left == 0 {
            break;
        }
        changed |= exchange_all(grower, left, &mut hung, &mut looks)?;
        if !changed {
            break;
        }
    }
    for (tree, hung) in trees.iter_mut().zip(hung) {
        ask(stop)?;
        tree.edges = hung.order[1..].iter().filter_map(|&rank| hung.parents[rank as usize]).collect();
    }
    Ok(())
}

/// How much may still be looked at.
struct Looks<'a> {
    left: u64,
    stop: &'a dyn Stop,
}

impl Looks<'_> {
    /// Says whether there were as many looks left, and takes them.
    fn take(&mut self, count: usize) -> Result<bool, Stopped> {
        let before = self.left;
        self.left = self.left.saturating_sub(count as u64);
        if before >> 12 != self.left >> 12 {
            ask(self.stop)?;
        }
        Ok(self.left > 0)
    }
}

/// One pass over all trees and ranks for exchanges that make the one tree flatter, deepest trees first.
fn exchange_all<C: FlowUnit>(
    grower: &Grower<C>,
    left: &mut Remainder<C>,
    trees: &mut [Hung<C>],
    looks: &mut Looks<'_>,
) -> Result<bool, Stopped> {
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); left.capacities.len()];
    for (position, tree) in trees.iter().enumerate() {
        ask(looks.stop)?;
        tree.parents.iter().flatten().for_each(|&edge| users[edge].push(position));
    }
    ask(looks.stop)?;
    let mut by_depth: Vec<usize> = (0..trees.len()).collect();
    by_depth.sort_by_cached_key(|&tree| std::cmp::Reverse(trees[tree].depth_max()));
    let mut changed = false;
    for &first in &by_depth {
        // From the root outwards: what hangs below moves along.
        for position in 1..trees[first].order.len() {
            let rank = trees[first].order[position];
            while let Some((edge, second)) = next_exchange(grower, left, trees, &users, (first, rank), looks)? {
                let given_up = trees[first].parents[rank as usize].expect("a root has nothing to exchange");
                exchange(grower, left, trees, (first, second), rank);
                // Two surveys cost as much as many looks.
                looks.take(trees[first].order.len() / 16)?;
                ask(looks.stop)?;
                users[edge].retain(|&user| user != second);
                users[edge].push(first);
                users[given_up].retain(|&user| user != first);
                users[given_up].push(second);
                changed = true;
            }
            if looks.left == 0 {
                return Ok(changed);
            }
        }
    }
    Ok(changed)
}

/// The edge into a rank that a tree should get from another one, which is to have its own, and that tree: the first
/// with which both together become flatter. `None` if there is none, or there are no looks left.
fn next_exchange<C: FlowUnit>(
    grower: &Grower<C>,
    left: &Remainder<C>,
    trees: &[Hung<C>],
    users: &[Vec<usize>],
    (first, rank): (usize, u32),
    looks: &mut Looks<'_>,
) -> Result<Option<(EdgeIndex, usize)>, Stopped> {
    let one = &trees[first];
    let Some(given_up) = one.parents[rank as usize] else { return Ok(None) };
    let mut best: Option<(usize, EdgeIndex)> = None;
    for &edge in grower.entering(rank) {
        // One of two trees that become flatter together does so alone: here it is the first.
        let gain = one.gain(grower, rank, edge).unwrap_or_default();
        let offers = if gain > 0 { users[edge].as_slice() } else { &[] };
        if !looks.take(1 + offers.len())? {
            return Ok(None);
        }
        for &second in offers {
            if best.is_some_and(|(known, _)| second >= known) {
                continue;
            }
            let other = &trees[second];
            let fits = left.capacities[edge] + other.weight >= one.weight
                && left.capacities[given_up] + one.weight >= other.weight;
            if fits && other.gain(grower, rank, given_up).is_some_and(|other_gain| gain + other_gain > 0) {
                best = Some((second, edge));
            }
        }
    }
    Ok(best.map(|(second, edge)| (edge, second)))
}

fn exchange<C: FlowUnit>(
    grower: &Grower<C>,
    left: &mut Remainder<C>,
    trees: &mut [Hung<C>],
    (first, second): (usize, usize),
    rank: u32,
) {
    let parent = |tree: &Hung<C>| tree.parents[rank as usize].expect("a root has nothing to exchange");
    let (from_one, from_other) = (parent(&trees[first]), parent(&trees[second]));
    let (weight_one, weight_other) = (trees[first].weight, trees[second].weight);
    left.capacities[from_one] = left.capacities[from_one] + weight_one - weight_other;
    left.capacities[from_other] = left.capacities[from_other] + weight_other - weight_one;
    trees[first].hang(grower, rank, from_other);
    trees[second].hang(grower, rank, from_one);
}

/// A tree with what is needed to move its branches.
#[cfg_attr(test, derive(Clone, Debug, PartialEq))]
struct Hung<C> {
    weight: C,
    /// The edge into each rank but the root.
    parents: Vec<Option<EdgeIndex>>,
    depths: Vec<i64>,
    /// Ranks, each branch contiguous, parents before children.
    order: Vec<u32>,
    /// Where a rank stands in `order`, and where its branch ends.
    span: Vec<(usize, usize)>,
    /// Sum of the depths in the branch of a rank.
    depth_sums: Vec<i64>,
    root: u32,
}

impl<C: FlowUnit> Hung<C> {
    fn new(grower: &Grower<C>, tree: &PackedTree<C>) -> Self {
        let ranks = grower.rank_count();
        let mut parents = vec![None; ranks];
        for &edge in &tree.edges {
            parents[grower.ends(edge).1 as usize] = Some(edge);
        }
        let mut hung = Self {
            weight: tree.weight,
            parents,
            depths: vec![0; ranks],
            order: Vec::with_capacity(ranks),
            span: vec![(0, 0); ranks],
            depth_sums: vec![0; ranks],
            root: tree.root,
        };
        hung.survey(grower);
        hung
    }

    /// Finds order, depths, spans and sums by the parents. O(ranks).
    fn survey(&mut self, grower: &Grower<C>) {
        // Children as linked lists: the first of each rank, and the next of the same parent.
        const NONE: u32 = u32::MAX;
        let mut links = vec![(NONE, NONE); self.parents.len()];
        for edge in self.parents.iter().rev().flatten() {
            let (above, rank) = grower.ends(*edge);
            links[rank as usize].1 = links[above as usize].0;
            links[above as usize].0 = rank;
        }
        self.order.clear();
        let mut stack = vec![(self.root, 0)];
        while let Some((rank, depth)) = stack.pop() {
            self.depths[rank as usize] = depth;
            self.span[rank as usize] = (self.order.len(), 0);
            self.order.push(rank);
            let (child, sibling) = links[rank as usize];
            stack.extend(Some((sibling, depth)).filter(|_| sibling != NONE && rank != self.root));
            stack.extend(Some((child, depth + 1)).filter(|_| child != NONE));
        }
        assert_eq!(self.order.len(), self.parents.len(), "a branch was never hung below itself");
        self.depth_sums.clone_from(&self.depths);
        for position in (0..self.order.len()).rev() {
            let rank = self.order[position];
            let start_and_end = &mut self.span[rank as usize];
            start_and_end.1 = start_and_end.1.max(position + 1);
            let end = start_and_end.1;
            if let Some(edge) = self.parents[rank as usize] {
                let above = grower.ends(edge).0 as usize;
                self.span[above].1 = self.span[above].1.max(end);
                self.depth_sums[above] += self.depth_sums[rank as usize];
            }
        }
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
        let count = i64::try_from(end - start).expect("ranks are counted in u32");
        Some(-shift * (2 * self.depth_sums[rank as usize] + shift * count))
    }

    /// Hangs the branch of a rank on another edge, and corrects what a survey would find anew: between its two places in the
    /// order, in the branch, and above both its ends. O(ranks), but mostly much less.
    fn hang(&mut self, grower: &Grower<C>, rank: u32, edge: EdgeIndex) {
        let (start, end) = self.span[rank as usize];
        let (count, branch_sum) = (end - start, self.depth_sums[rank as usize]);
        let above = grower.ends(edge).0;
        assert!(!(start..end).contains(&self.span[above as usize].0), "a branch is never hung below itself");
        // Children of one rank follow each other in the order of their numbers.
        let is_child = |edge: &&EdgeIndex| self.parents[grower.ends(**edge).1 as usize] == Some(**edge);
        let children = grower.leaving(above).iter().filter(is_child).map(|&edge| grower.ends(edge).1);
        let before = children.filter(|&child| child < rank).max();
        let target = before.map_or(self.span[above as usize].0 + 1, |child| self.span[child as usize].1);
        let as_depth = |count: usize| i64::try_from(count).expect("ranks are counted in u32");
        let shift = self.depths[above as usize] + 1 - self.depths[rank as usize];
        self.at_all_above(grower, rank, |(_, end), sum| (*end, *sum) = (*end - count, *sum - branch_sum));
        self.parents[rank as usize] = Some(edge);
        let branch_sum = branch_sum + shift * as_depth(count);
        self.at_all_above(grower, rank, |(_, end), sum| (*end, *sum) = (*end + count, *sum + branch_sum));
        for &rank in &self.order[start..end] {
            let (first, last) = self.span[rank as usize];
            self.depths[rank as usize] += shift;
            self.depth_sums[rank as usize] += shift * as_depth(last - first);
        }
        self.move_branch(start, end, target);
    }

    /// Moves a stretch of the order to before what stands at `target`.
    fn move_branch(&mut self, start: usize, end: usize, target: usize) {
        let (others, ahead) = if target <= start { (target..start, false) } else { (end..target, true) };
        let (by, passed) = (others.len(), end - start);
        let mut shift = |range: Range<usize>, by: usize, ahead: bool| {
            for &rank in &self.order[range] {
                let (first, last) = self.span[rank as usize];
                self.span[rank as usize] = if ahead { (first + by, last + by) } else { (first - by, last - by) };
            }
        };
        shift(start..end, by, ahead);
        shift(others, passed, !ahead);
        match ahead {
            true => self.order[start..target].rotate_left(passed),
            false => self.order[target..end].rotate_right(passed),
        }
    }

    /// Corrects spans and sums of all ranks above one.
    fn at_all_above(&mut self, grower: &Grower<C>, mut rank: u32, correct: impl Fn(&mut (usize, usize), &mut i64)) {
        while let Some(edge) = self.parents[rank as usize] {
            rank = grower.ends(edge).0;
            correct(&mut self.span[rank as usize], &mut self.depth_sums[rank as usize]);
        }
    }

    /// Moves branches to free edges that bring them nearer to the root, those of the nearest ranks first; only ranks that
    /// may have such edges are looked at. Says whether there were any.
    fn use_room(
        &mut self,
        grower: &Grower<C>,
        left: &mut Remainder<C>,
        has_room: &mut [bool],
        looks: &mut Looks<'_>,
    ) -> Result<bool, Stopped> {
        let mut changed = false;
        let mut position = 0;
        while position < self.order.len() {
            let from = self.order[position];
            position += 1;
            if !has_room[from as usize] {
                continue;
            }
            if !looks.take(1 + grower.leaving(from).len())? {
                break;
            }
            for &edge in grower.leaving(from) {
                let to = grower.ends(edge).1;
                let Some(parent) = self.parents[to as usize] else { continue };
                let nearer = self.depths[from as usize] + 1 < self.depths[to as usize];
                if nearer && left.capacities[edge] >= self.weight {
                    left.capacities[parent] += self.weight;
                    has_room[grower.ends(parent).0 as usize] = true;
                    left.capacities[edge] -= self.weight;
                    self.hang(grower, to, edge);
                    looks.take(self.order.len() / 16)?;
                    ask(looks.stop)?;
                    // What is before the branch in the order stays where it is.
                    position = position.min(self.span[from as usize].0 + 1);
                    changed = true;
                }
            }
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use canopy_optimize::Never;
    use proptest::prelude::*;

    use super::*;
    use crate::forest::condition::Condition;

    proptest! {
        /// What is corrected as a branch moves is what a survey of the whole tree finds.
        #[test]
        fn hanging_a_branch_is_a_survey(
            ranks in 2_u32..24,
            parents in prop::collection::vec(any::<u32>(), 24),
            moves in prop::collection::vec((any::<u32>(), any::<u32>()), 1..40),
        ) {
            let edges = (0..ranks).flat_map(|from| (0..ranks).filter(move |&to| to != from).map(move |to| (from, to, 1_i64)));
            let mut condition = Condition::new(edges, vec![1; ranks as usize], ranks, &Never).unwrap();
            let planted = (1..ranks).map(|rank| condition.edge_or_new(parents[rank as usize] % rank, rank)).collect();
            let grower = Grower::new(&condition, ranks);
            let mut hung = Hung::new(&grower, &PackedTree { root: 0, weight: 1, edges: planted });
            for (rank, from) in moves {
                let (rank, from) = (1 + rank % (ranks - 1), from % ranks);
                if from == rank {
                    continue;
                }
                let edge = condition.edge_or_new(from, rank);
                if hung.gain(&grower, rank, edge).is_none() {
                    continue;
                }
                hung.hang(&grower, rank, edge);
                let mut surveyed = Hung { order: Vec::new(), ..hung.clone() };
                surveyed.survey(&grower);
                prop_assert_eq!(&hung, &surveyed);
            }
        }
    }
}
