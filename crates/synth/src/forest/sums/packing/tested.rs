//! A tree that is tested while it grows, for the end of a packing, when hardly any tree fits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use canopy_optimize::FlowUnit;

use super::Packing;
use crate::error::SynthesisError;
use crate::forest::ask;
use crate::forest::condition::{EdgeIndex, Violation};
use crate::forest::trees::PackedTree;

/// The first weight tried is this part of what is left.
const PARTS: u64 = 8;

/// Most edges that join between two tests.
const BATCH_MAX: usize = 256;

/// Grows a tree and takes it out of the network.
///
/// Edges join as in a greedy tree, save those that would enter a known set more often than it can bear. After some of
/// them the sets around their heads are tested, since no other can have been broken. A violated set is remembered, the
/// tree is taken back to where it is not violated any more, and goes on elsewhere. Where nothing leads on, the weight is
/// halved: a tree of weight one always finds an edge (Lovász).
///
/// * **Source.** Lovász 1976; to test many edges at once, and to remember sets from tree to tree, is our own.
/// * **Errors.** Stopped; broken if the condition does not hold.
/// * **Cost.** A flow for each edge, most of them local; some more for each set that was not known.
pub(super) fn tree<C: FlowUnit>(packing: &mut Packing<'_, '_, C>, left: C) -> Result<PackedTree<C>, SynthesisError> {
    let part = (left.to_u128() / u128::from(PARTS)).max(1);
    let weight = C::try_from_u128(part).expect("a part of the rest is at most the rest");
    packing.condition.lower_demand(packing.root, weight);
    let rank_count = packing.grower.rank_count();
    let mut depths = vec![None; rank_count];
    depths[packing.root as usize] = Some(0);
    let mut tested =
        Tested { packing, weight, edges: Vec::with_capacity(rank_count), sure: 0, depths, spare: Vec::new(), batch: 1 };
    tested.run()?;
    let Tested { packing, weight, edges, .. } = tested;
    Ok(PackedTree { root: packing.root, weight, edges })
}

/// A tree on its way; whatever it has is taken out of the network.
struct Tested<'t, 'a, 'c, C> {
    packing: &'t mut Packing<'a, 'c, C>,
    weight: C,
    edges: Vec<EdgeIndex>,
    /// So many edges are known to break nothing.
    sure: usize,
    depths: Vec<Option<i64>>,
    /// By scarce set: what can enter it beyond the trees that have to.
    spare: Vec<C>,
    batch: usize,
}

impl<C: FlowUnit> Tested<'_, '_, '_, C> {
    fn run(&mut self) -> Result<(), SynthesisError> {
        let all = self.packing.grower.rank_count() - 1;
        self.look_at_sets();
        let mut offers = self.offers();
        loop {
            ask(self.packing.stop)?;
            let next = if self.edges.len() < all { self.next_edge(&mut offers) } else { None };
            if let Some(edge) = next {
                self.join(edge, &mut offers);
                if self.edges.len() - self.sure < self.batch {
                    continue;
                }
            } else if self.sure == self.edges.len() {
                if self.sure == all {
                    return Ok(());
                }
                self.halve()?;
                offers = self.offers();
                continue;
            }
            match self.test()? {
                None => {
                    self.sure = self.edges.len();
                    self.batch = (2 * self.batch).min(BATCH_MAX);
                }
                Some(violation) => {
                    self.go_back(violation)?;
                    self.batch = (self.batch / 2).max(1);
                    offers = self.offers();
                }
            }
        }
    }

    /// All edges that lead out of the tree and carry its weight, best score first.
    fn offers(&self) -> BinaryHeap<(i64, Reverse<EdgeIndex>)> {
        let mut offers = BinaryHeap::new();
        for (rank, depth) in (0_u32..).zip(&self.depths) {
            if let Some(depth) = *depth {
                self.offer(rank, depth, &mut offers);
            }
        }
        offers
    }

    fn offer(&self, rank: u32, depth: i64, offers: &mut BinaryHeap<(i64, Reverse<EdgeIndex>)>) {
        let Packing { grower, condition, preference, .. } = &*self.packing;
        for &edge in grower.leaving(rank) {
            let capacity = condition.capacity(edge);
            if capacity >= self.weight && self.depths[grower.ends(edge).1 as usize].is_none() {
                offers.push((grower.score(edge, capacity, depth, *preference), Reverse(edge)));
            }
        }
    }

    /// The best edge that no known set forbids. Sets only lose while a tree grows, so what is passed over stays so.
    fn next_edge(&self, offers: &mut BinaryHeap<(i64, Reverse<EdgeIndex>)>) -> Option<EdgeIndex> {
        while let Some((_, Reverse(edge))) = offers.pop() {
            let (from, to) = self.packing.grower.ends(edge);
            let is_free = self.depths[to as usize].is_none();
            let mut sets = self.packing.scarce.iter().zip(&self.spare);
            if is_free && sets.all(|(set, &spare)| spare >= self.weight || !set[to as usize] || set[from as usize]) {
                return Some(edge);
            }
        }
        None
    }

    fn join(&mut self, edge: EdgeIndex, offers: &mut BinaryHeap<(i64, Reverse<EdgeIndex>)>) {
        let (from, to) = self.packing.grower.ends(edge);
        self.packing.condition.lower(edge, self.weight);
        for (set, spare) in self.packing.scarce.iter().zip(&mut self.spare) {
            if set[to as usize] && !set[from as usize] {
                *spare -= self.weight;
            }
        }
        let depth = self.depths[from as usize].unwrap_or_default() + 1;
        self.depths[to as usize] = Some(depth);
        self.edges.push(edge);
        self.offer(to, depth, offers);
    }

    /// Tests whatever the edges that are not sure may have broken.
    fn test(&mut self) -> Result<Option<Violation<C>>, SynthesisError> {
        let Packing { grower, places, condition, .. } = &mut *self.packing;
        let mut heads: Vec<u32> = self.edges[self.sure..].iter().map(|&edge| grower.ends(edge).1).collect();
        heads.sort_unstable_by_key(|&head| places[head as usize]);
        condition.violation_around(&heads)
    }

    /// Takes back the last edges, down to the one without which the set is not violated.
    fn go_back(&mut self, violation: Violation<C>) -> Result<(), SynthesisError> {
        let Violation { set, mut deficit } = violation;
        while deficit > C::ZERO {
            let edge = self.edges.pop().filter(|_| self.edges.len() >= self.sure).ok_or_else(broken)?;
            let (from, to) = self.packing.grower.ends(edge);
            self.packing.condition.raise(edge, self.weight);
            self.depths[to as usize] = None;
            if set[to as usize] && !set[from as usize] {
                deficit -= self.weight;
            }
        }
        self.packing.remember(set);
        self.look_at_sets();
        Ok(())
    }

    /// Goes on with half the weight, rounded up.
    fn halve(&mut self) -> Result<(), SynthesisError> {
        let half = self.weight.to_u128() / 2;
        let less = C::try_from_u128(half).filter(|&less| less > C::ZERO).ok_or_else(broken)?;
        let Packing { condition, root, .. } = &mut *self.packing;
        condition.raise_demand(*root, less);
        self.edges.iter().for_each(|&edge| condition.raise(edge, less));
        self.weight -= less;
        self.look_at_sets();
        Ok(())
    }

    /// Counts what all sets can spare. O(sets · edges).
    fn look_at_sets(&mut self) {
        let left = self.packing.condition.demand(self.packing.root);
        self.spare = self.packing.scarce.iter().map(|set| self.packing.spare(set, left)).collect();
    }
}

fn broken() -> SynthesisError {
    SynthesisError::Broken { what: "the trees left do not fit the network left".to_owned() }
}

#[cfg(test)]
mod tests {
    use canopy_optimize::Never;

    use super::*;
    use crate::forest::condition::Condition;
    use crate::forest::sums::packing::{PREFERENCES, places};
    use crate::forest::trees::Grower;

    /// Trees drawn at random, one over the other: nothing is left when as many have been found again.
    #[test]
    fn networks_that_just_suffice_are_used_up() {
        let mut state = 1_u64;
        let mut draw = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..60_u64 {
            let (ranks, trees) = (4 + round % 9, 1 + round % 5);
            let mut edges = Vec::new();
            for _ in 0..trees {
                let weight = 1 + i64::try_from(draw(4)).unwrap();
                let mut order: Vec<u32> = (1..u32::try_from(ranks).unwrap()).collect();
                for place in (1..order.len()).rev() {
                    order.swap(place, usize::try_from(draw(place as u64 + 1)).unwrap());
                }
                let mut inside = vec![0_u32];
                for rank in order {
                    let from = inside[usize::try_from(draw(inside.len() as u64)).unwrap()];
                    edges.push((from, rank, weight));
                    inside.push(rank);
                }
            }
            let all: i64 = edges.iter().filter(|edge| edge.1 == 1).map(|edge| edge.2).sum();
            let mut demands = vec![0_i64; usize::try_from(ranks).unwrap()];
            demands[0] = all;
            let rank_count = u32::try_from(ranks).unwrap();
            let condition = Condition::new(edges.into_iter(), demands, rank_count, &Never).unwrap();
            let grower = Grower::new(&condition, rank_count);
            let places = places(&grower, 0);
            let mut packing = Packing {
                condition,
                grower: &grower,
                root: 0,
                preference: PREFERENCES[1],
                places: &places,
                scarce: Vec::new(),
                stop: &Never,
            };
            let mut left = all;
            while left > 0 {
                let found = tree(&mut packing, left).unwrap();
                assert_eq!(found.edges.len() as u64, ranks - 1);
                let mut inside = vec![false; usize::try_from(ranks).unwrap()];
                inside[0] = true;
                for &edge in &found.edges {
                    let (from, to) = grower.ends(edge);
                    assert!(inside[from as usize] && !std::mem::replace(&mut inside[to as usize], true));
                }
                left -= found.weight;
                assert_eq!(packing.condition.demand(0), left);
            }
            assert!((0..grower.edge_count()).all(|edge| packing.condition.capacity(edge) == 0));
        }
    }

    #[test]
    fn what_does_not_suffice_is_a_bug_and_no_endless_search() {
        let condition = Condition::new([(0, 1, 1_i64), (1, 2, 2)].into_iter(), vec![2, 0, 0], 3, &Never).unwrap();
        let grower = Grower::new(&condition, 3);
        let places = places(&grower, 0);
        let mut packing = Packing {
            condition,
            grower: &grower,
            root: 0,
            preference: PREFERENCES[0],
            places: &places,
            scarce: Vec::new(),
            stop: &Never,
        };
        assert!(matches!(tree(&mut packing, 2), Err(SynthesisError::Broken { .. })));
    }
}
