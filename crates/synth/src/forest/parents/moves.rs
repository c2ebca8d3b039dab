//! Which trees a rank takes from another edge, in chains of moves from an edge that carries too much to one with room.
//!
//! Of a few thousand trees on an edge one is moved at a time. Where several chains lead from an edge, its trees are kept in the
//! order in which they are moved.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

use canopy_optimize::FlowUnit;

use super::{Choice, NONE, Reach};

/// Trees that change from one edge into a rank to another.
#[derive(Clone, Copy)]
pub(super) struct Move {
    pub(super) tree: usize,
    pub(super) to: usize,
}

/// Trees that may be moved from an edge to another: by how much deeper they get, the heaviest first.
type Ranked<C> = BTreeSet<(u32, Reverse<C>, usize)>;

/// The trees on each edge into a rank, and in which order they are moved from it to another.
pub(super) struct Users<C> {
    /// By edge, ascending.
    trees: Vec<Vec<usize>>,
    /// By edge: whether a chain led from it.
    has_led: Vec<bool>,
    /// By edge that several chains led from, then by the edge to move to, where that was asked for.
    ranked: Vec<Vec<Option<Ranked<C>>>>,
}

/// Whether a tree is entered or struck off.
#[derive(Clone, Copy)]
enum Listing {
    On,
    Off,
}

impl<C> Users<C> {
    /// O(trees + edges). **In.** By tree, the edge that it is on.
    pub(super) fn of(parents: &[u32], edge_count: usize) -> Self {
        let ranked = std::iter::repeat_with(Vec::new).take(edge_count).collect();
        let mut users = Self { trees: vec![Vec::new(); edge_count], has_led: vec![false; edge_count], ranked };
        for (tree, &place) in parents.iter().enumerate().filter(|&(_, &place)| place != NONE) {
            users.trees[place as usize].push(tree);
        }
        users
    }
}

impl<C: FlowUnit> Choice<'_, C> {
    /// Moves so much of a tree to another edge into a rank.
    pub(super) fn shift(
        &mut self,
        rank: usize,
        Move { tree, to }: Move,
        amount: C,
        reach: Reach,
        users: &mut Users<C>,
    ) {
        self.list(rank, tree, reach, users, Listing::Off);
        if let Some(rest) = self.divide(tree, amount) {
            self.list(rank, rest, reach, users, Listing::On);
        }
        self.parents[rank][tree] = u32::try_from(to).expect("edges are counted in u32");
        self.sink(rank, tree);
        self.list(rank, tree, reach, users, Listing::On);
    }

    /// The shortest chain of moves from an edge that carries too much to one with room.
    pub(super) fn find_moves(
        &mut self,
        rank: usize,
        full: usize,
        reach: Reach,
        users: &mut Users<C>,
    ) -> Option<Vec<Move>> {
        let count = self.entering[rank].len();
        let excess = C::ZERO - self.room[rank][full];
        // The last move of the shortest chain to an edge, and where that move comes from.
        let mut last: Vec<Option<(usize, Move)>> = vec![None; count];
        let mut waiting = VecDeque::from([full]);
        while let Some(from) = waiting.pop_front() {
            // Most edges are left once, for which no order is worth its while.
            if std::mem::replace(&mut users.has_led[from], true) {
                users.ranked[from].resize_with(count, || None);
            }
            for to in 0..count {
                if to == full || last[to].is_some() {
                    continue;
                }
                self.looks_left = self.looks_left.checked_sub(users.trees[from].len() as u64)?;
                let room = self.room[rank][to];
                let wanted = if room > C::ZERO { excess.min(room) } else { excess };
                let Some(tree) = self.best_to_move(rank, (from, to), wanted, reach, users) else { continue };
                last[to] = Some((from, Move { tree, to }));
                if room > C::ZERO {
                    let before = |&(from, _): &(usize, Move)| last[from];
                    return Some(std::iter::successors(last[to], before).map(|(_, step)| step).collect());
                }
                waiting.push_back(to);
            }
        }
        None
    }

    /// Of the trees on one edge one that the rank may take from another: the least deep then, of these one that is moved as a
    /// whole, or else the one of which most can be.
    fn best_to_move(
        &self,
        rank: usize,
        (from, to): (usize, usize),
        wanted: C,
        reach: Reach,
        users: &mut Users<C>,
    ) -> Option<usize> {
        let candidates = || {
            let trees = users.trees[from].iter();
            trees.filter_map(|&tree| Some((self.sinking(rank, tree, to, reach)?, Reverse(self.weights[tree]), tree)))
        };
        let Some(sorted) = users.ranked[from].get_mut(to) else {
            let best = candidates().min_by_key(|&(sinking, Reverse(weight), _)| {
                let fit = if weight <= wanted { (0, wanted - weight) } else { (1, weight - wanted) };
                (self.prefers_whole && weight > wanted, sinking, fit)
            });
            return best.map(|(.., tree)| tree);
        };
        let sorted = sorted.get_or_insert_with(|| candidates().collect());
        let least = sorted.first()?.0;
        let mut sinking = least;
        while let Some(&(next, _, tree)) = sorted.range((sinking, Reverse(wanted), 0)..).next() {
            if next == sinking {
                return Some(tree);
            }
            if !self.prefers_whole {
                break;
            }
            sinking = next;
        }
        // None is moved as a whole: the lightest of those that stay least deep, of equal ones the first.
        let &(_, lightest, _) = sorted.range(..(least + 1, Reverse(C::MAX), 0)).next_back()?;
        sorted.range((least, lightest, 0)..).next().map(|&(_, _, tree)| tree)
    }

    /// By how much a tree gets deeper at a rank that takes it from this edge; `None` if it may not.
    fn sinking(&self, rank: usize, tree: usize, to: usize, reach: Reach) -> Option<u32> {
        let from = self.entering[rank][to].1 as usize;
        let (depth, below) = (self.depths[rank][tree], self.depths[from][tree]);
        let may_not = below >= depth && (reach == Reach::Nearer || self.is_below(from, rank, tree));
        (!may_not).then(|| (below + 1).saturating_sub(depth))
    }

    /// Enters a tree in all lists of the edge that it is on, or strikes it off.
    fn list(&self, rank: usize, tree: usize, reach: Reach, users: &mut Users<C>, listing: Listing) {
        let from = self.parents[rank][tree] as usize;
        let trees = &mut users.trees[from];
        match (trees.binary_search(&tree), listing) {
            (Err(place), Listing::On) => trees.insert(place, tree),
            (Ok(place), Listing::Off) => _ = trees.remove(place),
            _ => {}
        }
        for (to, ranked) in users.ranked[from].iter_mut().enumerate() {
            let Some(sorted) = ranked else { continue };
            let Some(sinking) = self.sinking(rank, tree, to, reach) else { continue };
            let entry = (sinking, Reverse(self.weights[tree]), tree);
            match listing {
                Listing::On => sorted.insert(entry),
                Listing::Off => sorted.remove(&entry),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use canopy_optimize::Never;
    use proptest::prelude::*;

    use super::*;
    use crate::forest::condition::Condition;
    use crate::forest::trees::{Grower, PackedTree, Remainder};

    proptest! {
        /// In the order of a list the same tree is found as by looking at each, also once trees were moved and divided.
        #[test]
        fn lists_find_what_looks_at_all_trees_find(
            ranks in 3_u32..9,
            planted in prop::collection::vec((any::<u32>(), 1_i64..9, prop::collection::vec(any::<u32>(), 9)), 2..30),
            moves in prop::collection::vec((any::<usize>(), any::<usize>(), 1_i64..9), 1..30),
            prefers_whole: bool,
        ) {
            let edges = (0..ranks).flat_map(|from| (0..ranks).filter(move |&to| to != from).map(move |to| (from, to, 9_i64)));
            let mut condition = Condition::new(edges, vec![9; ranks as usize], ranks, &Never).unwrap();
            let trees: Vec<PackedTree<i64>> = planted.iter().map(|(root, weight, parents)| {
                let node = |place: u32| (root + place) % ranks;
                let edge = |place: u32| condition.edge_or_new(node(parents[place as usize] % place), node(place));
                PackedTree { root: root % ranks, weight: *weight, edges: (1..ranks).map(edge).collect() }
            }).collect();
            let capacities = Remainder::of(&condition, ranks).capacities;
            let grower = Grower::new(&condition, ranks);
            let mut choice = Choice::of_trees(&grower, &capacities, &trees, &Never).unwrap().unwrap();
            choice.prefers_whole = prefers_whole;
            let (rank, count) = (0, ranks as usize - 1);
            for reach in [Reach::Nearer, Reach::Anywhere] {
                let mut listed = Users::of(&choice.parents[rank], count);
                listed.ranked.iter_mut().for_each(|lists| lists.resize_with(count, || None));
                for &(from, to, wanted) in &moves {
                    let (from, to) = (from % count, to % count);
                    let mut fresh = Users::of(&choice.parents[rank], count);
                    let found = choice.best_to_move(rank, (from, to), wanted, reach, &mut listed);
                    prop_assert_eq!(found, choice.best_to_move(rank, (from, to), wanted, reach, &mut fresh));
                    let Some(tree) = found.filter(|_| from != to) else { continue };
                    let amount = wanted.min(choice.weights[tree]);
                    choice.shift(rank, Move { tree, to }, amount, reach, &mut listed);
                }
            }
        }
    }
}
