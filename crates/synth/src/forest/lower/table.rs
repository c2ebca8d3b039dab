//! Where every rank hangs in every tree, such that all trees can be searched at one rank.

use canopy_optimize::{Stop, Stopped};

use crate::forest::{RoutedHop, RoutedTrees, ask};

/// In place of the parent of a root.
const NONE: u32 = u32::MAX;

/// Trees that are looked up together: what a rank has of them is as much as memory moves at once, and what all ranks have
/// stays near the processor.
const BLOCK: usize = 32;

/// Parents and depths of all ranks in all trees.
pub(super) struct Table {
    /// By rank, then by tree.
    parents: Vec<Vec<u32>>,
    depths: Vec<Vec<u16>>,
    /// By tree: depth of its deepest rank.
    depths_max: Vec<u16>,
}

impl Table {
    /// Looks all trees up; `None` if none is deeper than `depth_min`, or one is deeper than can be told. O(hops).
    pub(super) fn new(
        routed: &RoutedTrees,
        rank_count: u32,
        depth_min: u16,
        stop: &dyn Stop,
    ) -> Result<Option<Self>, Stopped> {
        if rank_count >= u32::from(u16::MAX) {
            return Ok(None);
        }
        let ranks = rank_count as usize;
        let mut depths_max = Vec::with_capacity(routed.trees.len());
        let mut depths = vec![0_u16; ranks];
        for tree in &routed.trees {
            ask(stop)?;
            depths_max.push(depths_of(routed, tree.root, &hops(routed, depths_max.len()), &mut depths));
        }
        if depths_max.iter().all(|&depth| depth <= depth_min) {
            return Ok(None);
        }
        let trees = routed.trees.len();
        let mut table = Self {
            parents: (0..ranks).map(|_| Vec::with_capacity(trees)).collect(),
            depths: (0..ranks).map(|_| Vec::with_capacity(trees)).collect(),
            depths_max,
        };
        // By rank, then by tree.
        let (mut parents, mut depths) = (vec![NONE; ranks * BLOCK], vec![0; ranks * BLOCK]);
        for block in (0..trees).step_by(BLOCK) {
            ask(stop)?;
            let count = BLOCK.min(trees - block);
            for (place, tree) in (block..block + count).enumerate() {
                let root = routed.trees[tree].root as usize * BLOCK + place;
                (parents[root], depths[root]) = (NONE, 0);
                for hop in &routed.hops[hops(routed, tree)] {
                    let [to, from] = [hop.to, hop.from].map(|rank| rank as usize * BLOCK + place);
                    (parents[to], depths[to]) = (hop.from, depths[from] + 1);
                }
            }
            let rows = parents.chunks_exact(BLOCK).zip(depths.chunks_exact(BLOCK));
            for ((parents, depths), row) in table.parents.iter_mut().zip(&mut table.depths).zip(rows) {
                parents.extend_from_slice(&row.0[..count]);
                depths.extend_from_slice(&row.1[..count]);
            }
        }
        Ok(Some(table))
    }

    pub(super) fn rank_count(&self) -> usize {
        self.parents.len()
    }

    /// Depth of the deepest of all ranks.
    pub(super) fn depth_max(&self) -> u16 {
        self.depths_max.iter().copied().max().unwrap_or_default()
    }

    /// Depth of the deepest rank of a tree.
    pub(super) fn depth_of(&self, tree: usize) -> u16 {
        self.depths_max[tree]
    }

    /// By tree: what a rank hangs on, [`Self::is_none`] for the root.
    pub(super) fn parents_of(&self, rank: u32) -> &[u32] {
        &self.parents[rank as usize]
    }

    /// By tree: how deep a rank is.
    pub(super) fn depths_of(&self, rank: u32) -> &[u16] {
        &self.depths[rank as usize]
    }

    /// Whether this stands for no parent.
    pub(super) fn is_none(parent: u32) -> bool {
        parent == NONE
    }

    /// By rank: how deep it is in a tree.
    pub(super) fn depths_in(&self, tree: usize) -> Vec<u16> {
        self.depths.iter().map(|depths| depths[tree]).collect()
    }

    /// By rank: depth of the deepest rank in its branch of a tree, of which these are the depths.
    pub(super) fn deepest_in_branches(routed: &RoutedTrees, tree: usize, depths: &[u16]) -> Vec<u16> {
        let mut deepest = depths.to_vec();
        for hop in routed.hops[hops(routed, tree)].iter().rev() {
            deepest[hop.from as usize] = deepest[hop.from as usize].max(deepest[hop.to as usize]);
        }
        deepest
    }

    /// Whether `below` is in the branch of `rank`. O(depth).
    pub(super) fn is_in_branch(&self, tree: usize, rank: u32, below: u32) -> bool {
        let up = |&node: &u32| Some(self.parents[node as usize][tree]).filter(|&parent| parent != NONE);
        std::iter::successors(Some(below), up).any(|node| node == rank)
    }

    /// Levels of the branch of a rank below it. O(ranks).
    pub(super) fn height(&self, routed: &RoutedTrees, tree: usize, rank: u32) -> u16 {
        let mut is_in = vec![false; self.rank_count()];
        is_in[rank as usize] = true;
        let here = self.depths[rank as usize][tree];
        let mut deepest = here;
        for hop in &routed.hops[hops(routed, tree)] {
            if is_in[hop.from as usize] {
                is_in[hop.to as usize] = true;
                deepest = deepest.max(self.depths[hop.to as usize][tree]);
            }
        }
        deepest - here
    }

    /// Swaps the hops of two trees into a rank, which is below neither of the parents exchanged. O(ranks).
    pub(super) fn exchange(&mut self, routed: &mut RoutedTrees, (one, other): (usize, usize), rank: u32) {
        let into = |routed: &RoutedTrees, tree: usize| {
            let mut range = hops(routed, tree);
            range
                .find(|&hop| routed.hops[hop].to == rank)
                .expect("only ranks with a parent in both trees are exchanged")
        };
        let (of_one, of_other) = (into(routed, one), into(routed, other));
        routed.hops.swap(of_one, of_other);
        for tree in [one, other] {
            sort_outwards(routed, tree, self.rank_count());
            self.fill(routed, tree);
        }
    }

    /// Adds the tree that was appended to the others.
    pub(super) fn push_last(&mut self, routed: &RoutedTrees) {
        for (parents, depths) in self.parents.iter_mut().zip(&mut self.depths) {
            parents.push(NONE);
            depths.push(0);
        }
        self.depths_max.push(0);
        self.fill(routed, routed.trees.len() - 1);
    }

    /// Looks a tree up.
    fn fill(&mut self, routed: &RoutedTrees, tree: usize) {
        let mut depths = vec![0; self.rank_count()];
        let range = hops(routed, tree);
        self.depths_max[tree] = depths_of(routed, routed.trees[tree].root, &range, &mut depths);
        for hop in &routed.hops[range] {
            self.parents[hop.to as usize][tree] = hop.from;
            self.depths[hop.to as usize][tree] = depths[hop.to as usize];
        }
    }
}

/// The hops of a tree, by position.
pub(super) fn hops(routed: &RoutedTrees, tree: usize) -> std::ops::Range<usize> {
    let hops = &routed.trees[tree].hops;
    hops.start as usize..hops.end as usize
}

/// Finds the depths of all ranks of a tree and returns the greatest.
fn depths_of(routed: &RoutedTrees, root: u32, hops: &std::ops::Range<usize>, depths: &mut [u16]) -> u16 {
    depths[root as usize] = 0;
    let mut most = 0;
    for hop in &routed.hops[hops.clone()] {
        depths[hop.to as usize] = depths[hop.from as usize] + 1;
        most = most.max(depths[hop.to as usize]);
    }
    most
}

/// Brings the hops of a tree into an order in which data can flow down.
fn sort_outwards(routed: &mut RoutedTrees, tree: usize, rank_count: usize) {
    let range = hops(routed, tree);
    // Children as linked lists: the first of each rank, and the next of the same parent.
    let (mut first, mut next) = (vec![NONE; rank_count], vec![NONE; range.len()]);
    let positions = 0..u32::try_from(range.len()).expect("hops are counted in u32");
    for (position, hop) in positions.zip(&routed.hops[range.clone()]).rev() {
        next[position as usize] = std::mem::replace(&mut first[hop.from as usize], position);
    }
    let mut sorted: Vec<RoutedHop> = Vec::with_capacity(range.len());
    let mut child = first[routed.trees[tree].root as usize];
    let mut done = 0;
    loop {
        while child != NONE {
            sorted.push(routed.hops[range.start + child as usize].clone());
            child = next[child as usize];
        }
        let Some(hop) = sorted.get(done) else { break };
        child = first[hop.to as usize];
        done += 1;
    }
    routed.hops[range].clone_from_slice(&sorted);
}
