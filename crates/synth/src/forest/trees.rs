//! Trees on a network of ranks, and how the greedy method grows one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use canopy_optimize::{FlowUnit, Stop, Stopped};

use crate::forest::ask;
use crate::forest::condition::{Condition, EdgeIndex, Step};

/// Equal trees from one root to all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PackedTree<C> {
    pub(super) root: u32,
    /// How many of them there are.
    pub(super) weight: C,
    /// N−1 edges, each after the one that enters its tail.
    pub(super) edges: Vec<EdgeIndex>,
}

impl<C: FlowUnit> Step<C> for PackedTree<C> {
    fn amount(&self) -> C {
        self.weight
    }

    fn apply(&self, condition: &mut Condition<'_, C>, amount: C) {
        condition.lower_demand(self.root, amount);
        for &edge in &self.edges {
            condition.lower(edge, amount);
        }
    }

    fn undo(&self, condition: &mut Condition<'_, C>, amount: C) {
        condition.raise_demand(self.root, amount);
        for &edge in &self.edges {
            condition.raise(edge, amount);
        }
    }

    /// A tree has to enter once a set without its root; every further entry is a loss.
    fn cost(&self, condition: &Condition<'_, C>, set: &[bool]) -> u64 {
        let enters = |&&edge: &&EdgeIndex| {
            let (from, to) = condition.ends(edge);
            !set[from as usize] && set[to as usize]
        };
        let entries = self.edges.iter().filter(enters).count() as u64;
        entries - u64::from(!set[self.root as usize])
    }
}

/// What counts when a tree picks its next edge: `fullness·residual/initial − flatness·depth`, greatest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct EdgePreference {
    pub(super) fullness: i64,
    pub(super) flatness: i64,
    pub(super) residual: Residual,
}

/// What counts as left of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Residual {
    /// Its capacity.
    Capacity,
    /// What the trees still to be rooted at its tail can spare, unless it is the root of this one.
    Spare,
}

/// The edges by tail, and their initial capacities.
pub(super) struct Grower<C> {
    ends: Vec<(u32, u32)>,
    leaving: Vec<Vec<EdgeIndex>>,
    entering: Vec<Vec<EdgeIndex>>,
    initial: Vec<C>,
    rank_count: usize,
}

/// What is left while trees are grown without any test.
#[derive(Clone, Debug)]
pub(super) struct Remainder<C> {
    pub(super) capacities: Vec<C>,
    pub(super) demands: Vec<C>,
}

impl<C: FlowUnit> Remainder<C> {
    pub(super) fn of(condition: &Condition<'_, C>, rank_count: u32) -> Self {
        Self {
            capacities: (0..condition.edge_count()).map(|edge| condition.capacity(edge)).collect(),
            demands: (0..rank_count).map(|rank| condition.demand(rank)).collect(),
        }
    }

    pub(super) fn take(&mut self, tree: &PackedTree<C>) {
        self.demands[tree.root as usize] -= tree.weight;
        for &edge in &tree.edges {
            self.capacities[edge] -= tree.weight;
        }
    }
}

impl<C: FlowUnit> Grower<C> {
    pub(super) fn new(condition: &Condition<'_, C>, rank_count: u32) -> Self {
        let ends: Vec<(u32, u32)> = (0..condition.edge_count()).map(|edge| condition.ends(edge)).collect();
        let (mut leaving, mut entering) =
            (vec![Vec::new(); rank_count as usize], vec![Vec::new(); rank_count as usize]);
        for (edge, &(from, to)) in ends.iter().enumerate() {
            leaving[from as usize].push(edge);
            entering[to as usize].push(edge);
        }
        let initial = (0..ends.len()).map(|edge| condition.capacity(edge)).collect();
        Self { ends, leaving, entering, initial, rank_count: rank_count as usize }
    }

    pub(super) fn ends(&self, edge: EdgeIndex) -> (u32, u32) {
        self.ends[edge]
    }

    /// Number of edges, those of capacity zero included.
    pub(super) fn edge_count(&self) -> usize {
        self.ends.len()
    }

    /// Edges that leave a rank.
    pub(super) fn leaving(&self, rank: u32) -> &[EdgeIndex] {
        &self.leaving[rank as usize]
    }

    /// Edges that enter a rank.
    pub(super) fn entering(&self, rank: u32) -> &[EdgeIndex] {
        &self.entering[rank as usize]
    }

    pub(super) fn rank_count(&self) -> usize {
        self.rank_count
    }

    /// Hops between the root of a tree and the rank furthest from it.
    pub(super) fn depth_max(&self, tree: &PackedTree<C>) -> u32 {
        self.depths(tree).into_iter().max().unwrap_or_default()
    }

    /// Hops between the root of a tree and each rank.
    pub(super) fn depths(&self, tree: &PackedTree<C>) -> Vec<u32> {
        let mut depths = vec![0; self.rank_count];
        for &edge in &tree.edges {
            let (from, to) = self.ends[edge];
            depths[to as usize] = depths[from as usize] + 1;
        }
        depths
    }

    /// Grows one spanning tree within the capacities left, edge by edge as Prim's algorithm, for the root's demand or
    /// `weight_max`; where only thinner edges lead on, for as much as the thickest of them carries. `None` where none
    /// does.
    ///
    /// O(edges log edges).
    pub(super) fn grow(
        &self,
        left: &Remainder<C>,
        root: u32,
        weight_max: C,
        preference: EdgePreference,
        stop: &dyn Stop,
    ) -> Result<Option<PackedTree<C>>, Stopped> {
        if preference.flatness > preference.fullness
            && let Some(star) = self.star(left, root, weight_max)
        {
            return Ok(Some(star));
        }
        let mut growth = Growth {
            weight: left.demands[root as usize].min(weight_max),
            depths: vec![None; self.rank_count],
            best: vec![None; self.rank_count],
            ready: BinaryHeap::new(),
            thin: BinaryHeap::new(),
        };
        let mut edges = Vec::with_capacity(self.rank_count - 1);
        self.join(&mut growth, left, root, 0, preference);
        while edges.len() + 1 < self.rank_count {
            ask(stop)?;
            let Some(edge) = growth.next_edge(&self.ends) else {
                return Ok(None);
            };
            edges.push(edge);
            let (from, to) = self.ends[edge];
            let depth = growth.depths[from as usize].expect("the tail of an edge offered has joined");
            self.join(&mut growth, left, to, depth + 1, preference);
        }
        Ok(Some(PackedTree { root, weight: growth.weight, edges }))
    }

    /// A tree of this weight that uses edges with less left of their capacities where no others lead on, those with most left
    /// first, and is flat otherwise. `None` if the root does not reach all ranks. O(edges log edges).
    pub(super) fn grow_over_full_edges(
        &self,
        capacities: &[C],
        left: &Remainder<C>,
        root: u32,
        weight: C,
    ) -> Option<PackedTree<C>> {
        let mut has_joined = vec![false; self.rank_count];
        has_joined[root as usize] = true;
        let mut edges = Vec::with_capacity(self.rank_count - 1);
        let mut waiting = VecDeque::from([root]);
        let mut thin: BinaryHeap<(C, Reverse<EdgeIndex>)> = BinaryHeap::new();
        while edges.len() + 1 < self.rank_count {
            let Some(rank) = waiting.pop_front() else {
                let (_, Reverse(edge)) = thin.pop()?;
                let to = self.ends[edge].1;
                if !std::mem::replace(&mut has_joined[to as usize], true) {
                    edges.push(edge);
                    waiting.push_back(to);
                }
                continue;
            };
            for &edge in self.leaving(rank).iter().filter(|&&edge| capacities[edge] > C::ZERO) {
                let to = self.ends[edge].1;
                if has_joined[to as usize] {
                    continue;
                }
                if left.capacities[edge] >= weight {
                    has_joined[to as usize] = true;
                    edges.push(edge);
                    waiting.push_back(to);
                } else {
                    thin.push((left.capacities[edge], Reverse(edge)));
                }
            }
        }
        Some(PackedTree { root, weight, edges })
    }

    /// The tree without any branching but at the root, if its edges have room for the whole demand or `weight_max`:
    /// what the greedy method would come to, without looking at the edges between other ranks.
    pub(super) fn star(&self, left: &Remainder<C>, root: u32, weight_max: C) -> Option<PackedTree<C>> {
        let weight = left.demands[root as usize].min(weight_max);
        let edges = self.leaving[root as usize].iter().copied().filter(|&edge| left.capacities[edge] >= weight);
        let edges: Vec<EdgeIndex> = edges.collect();
        (edges.len() + 1 == self.rank_count).then_some(PackedTree { root, weight, edges })
    }

    /// As [`star`](Self::star), for as much of the demand as the edges have room for, if that is at least half of it.
    pub(super) fn thick_star(&self, left: &Remainder<C>, root: u32, weight_max: C) -> Option<PackedTree<C>> {
        let wanted = left.demands[root as usize].min(weight_max);
        let room = self.leaving[root as usize].iter().map(|&edge| left.capacities[edge]).min()?;
        let is_most = room >= wanted || room >= wanted - room;
        (is_most && room > C::ZERO).then(|| self.star(left, root, room.min(wanted))).flatten()
    }

    /// Adds a rank to a growing tree and offers the edges that leave it.
    fn join(&self, growth: &mut Growth<C>, left: &Remainder<C>, rank: u32, depth: i64, preference: EdgePreference) {
        growth.depths[rank as usize] = Some(depth);
        for &edge in &self.leaving[rank as usize] {
            let capacity = left.capacities[edge];
            if capacity > C::ZERO && growth.depths[self.ends[edge].1 as usize].is_none() {
                let spare = match preference.residual {
                    Residual::Spare if depth > 0 => capacity - capacity.min(left.demands[rank as usize]),
                    _ => capacity,
                };
                growth.offer(self.ends[edge].1, capacity, (self.score(edge, spare, depth, preference), Reverse(edge)));
            }
        }
    }

    /// What speaks for an edge at this depth, of whose capacity so much counts as left.
    pub(super) fn score(&self, edge: EdgeIndex, capacity: C, depth: i64, preference: EdgePreference) -> i64 {
        let (capacity, initial) = (capacity.to_u128(), self.initial[edge].to_u128().max(1));
        // In 1024ths, of numbers cut to 50 bits, which divide several times as fast.
        let shift = (u128::BITS - initial.leading_zeros()).saturating_sub(50);
        let cut = |number: u128| u64::try_from(number >> shift).expect("the rest of an edge is at most the edge");
        let fullness = (cut(capacity) << 10) / cut(initial);
        let fullness = i64::try_from(fullness).expect("the rest of an edge is at most the edge");
        preference.fullness * fullness - preference.flatness * (depth << 10)
    }
}

/// A tree on its way.
struct Growth<C> {
    /// How many equal trees it stands for, as far as is known.
    weight: C,
    depths: Vec<Option<i64>>,
    /// By rank: the best edge into it that was seen to carry the weight, which only falls.
    best: Vec<Option<(i64, Reverse<EdgeIndex>)>>,
    /// Edges that carry the weight, best score first.
    ready: BinaryHeap<(i64, Reverse<EdgeIndex>)>,
    /// Edges not yet seen to carry the weight, thickest first.
    thin: BinaryHeap<(C, i64, Reverse<EdgeIndex>)>,
}

impl<C: FlowUnit> Growth<C> {
    /// Takes note of an edge into a rank, unless a better one into it will come first for certain: of dense networks most
    /// edges need not be sorted then.
    fn offer(&mut self, rank: u32, capacity: C, offer: (i64, Reverse<EdgeIndex>)) {
        let best = &mut self.best[rank as usize];
        if best.is_some_and(|best| best > offer) {
            return;
        }
        if capacity < self.weight {
            self.thin.push((capacity, offer.0, offer.1));
        } else {
            *best = Some(offer);
            self.ready.push(offer);
        }
    }

    /// The best edge that leads out of the tree and carries its weight, else the thickest one, lowering the weight.
    fn next_edge(&mut self, ends: &[(u32, u32)]) -> Option<EdgeIndex> {
        loop {
            while let Some(&(_, score, edge)) = self.thin.peek().filter(|&&(capacity, ..)| capacity >= self.weight) {
                self.ready.push((score, edge));
                self.thin.pop();
            }
            let (edge, capacity) = match self.ready.pop() {
                Some((_, Reverse(edge))) => (edge, self.weight),
                None => self.thin.pop().map(|(capacity, _, Reverse(edge))| (edge, capacity))?,
            };
            if self.depths[ends[edge].1 as usize].is_none() {
                self.weight = capacity;
                return Some(edge);
            }
        }
    }
}
