//! What sets could do without: how much of the links into them can be cut before too few trees enter.

use std::collections::BTreeMap;

use canopy_optimize::FlowUnit;

use super::Trimmer;
use crate::forest::pattern::quotas;

/// A set that may become scarce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ScarceSet {
    Rank(u32),
    Cluster(usize),
    /// One that a test found violated when trimming had not heeded it.
    Found(usize),
}

/// `in(X) − D(V∖X)` of sets X, kept up to date as pairs of links change.
#[derive(Clone)]
pub(super) struct Slacks<C> {
    of_set: BTreeMap<ScarceSet, C>,
    /// By pair: the sets that hold one of its ends.
    entered: Vec<Vec<ScarceSet>>,
    found: usize,
}

impl<C: FlowUnit> Slacks<C> {
    pub(super) fn new(pair_count: usize) -> Self {
        Self { of_set: BTreeMap::new(), entered: vec![Vec::new(); pair_count], found: 0 }
    }

    /// How many sets were found by tests so far.
    pub(super) fn found(&self) -> usize {
        self.found
    }

    pub(super) fn knows(&self, set: ScarceSet) -> bool {
        self.of_set.contains_key(&set)
    }

    /// Negative if too few trees can enter.
    pub(super) fn of(&self, set: ScarceSet) -> C {
        self.of_set.get(&set).copied().unwrap_or(C::ZERO)
    }

    /// The sets that lose what a pair loses.
    pub(super) fn sets_entered(&self, pair: usize) -> impl Iterator<Item = ScarceSet> + '_ {
        self.entered[pair].iter().copied()
    }

    /// Takes note that both directions of a pair have this much less.
    pub(super) fn lower(&mut self, pair: usize, amount: C) {
        for set in &self.entered[pair] {
            self.of_set.entry(*set).and_modify(|slack| *slack -= amount);
        }
    }

    /// Takes note that both directions of a pair have this much more.
    pub(super) fn raise(&mut self, pair: usize, amount: C) {
        for set in &self.entered[pair] {
            self.of_set.entry(*set).and_modify(|slack| *slack += amount);
        }
    }
}

impl<C: FlowUnit> Trimmer<'_, '_, '_, C> {
    /// Keeps account of a set from now on.
    ///
    /// O(ranks + pairs) for a set that a test found, O(links of its nodes) for others.
    pub(super) fn heed(&mut self, set: ScarceSet, holds: &dyn Fn(u32) -> bool) {
        let nodes: Vec<u32> = match set {
            ScarceSet::Rank(rank) => vec![rank],
            ScarceSet::Cluster(cluster) => self.clusters[cluster].nodes.clone(),
            ScarceSet::Found(_) => (0_u32..).take(self.pairs_of.len()).filter(|&node| holds(node)).collect(),
        };
        let inside = nodes.iter().fold(C::ZERO, |sum, &node| sum + self.condition.demand(node));
        let mut slack = inside - self.demand_total;
        for &node in &nodes {
            for &pair in &self.pairs_of[node as usize] {
                let (low, high) = self.pairs[pair].ends;
                if !holds(if low == node { high } else { low }) {
                    slack += self.sum(if high == node { &self.pairs[pair].up } else { &self.pairs[pair].down });
                    self.slacks.entered[pair].push(set);
                }
            }
        }
        self.slacks.of_set.insert(set, slack);
        self.slacks.found += usize::from(matches!(set, ScarceSet::Found(_)));
    }

    /// The pairs on the boundary of a cluster, and what each could lose in both directions, all of them at once: as far as
    /// concerns the links themselves and all other sets that they lead into. What leads out of a cluster around it that is
    /// tight already is left out.
    ///
    /// O(boundary · sets that a pair enters).
    pub(super) fn rooms(&self, cluster: usize) -> Vec<(usize, C)> {
        let nodes = &self.clusters[cluster].nodes;
        let mut rooms: Vec<(usize, C)> = Vec::new();
        let mut sharing: BTreeMap<ScarceSet, Vec<usize>> = BTreeMap::new();
        for &node in nodes {
            for &pair in &self.pairs_of[node as usize] {
                let (low, high) = self.pairs[pair].ends;
                if self.around[low as usize] != self.around[high as usize] {
                    continue;
                }
                let Some((inward, outward)) = self.crossing(pair, node, nodes) else { continue };
                for set in self.slacks.sets_entered(pair).filter(|&set| set != ScarceSet::Cluster(cluster)) {
                    sharing.entry(set).or_default().push(rooms.len());
                }
                rooms.push((pair, self.sum(&inward).min(self.sum(&outward))));
            }
        }
        for (set, places) in sharing {
            let slack = self.slacks.of(set).max(C::ZERO);
            let room: Vec<C> = places.iter().map(|&place| rooms[place].1).collect();
            let most = room.iter().fold(C::ZERO, |sum, &room| sum + room);
            if most > slack {
                places.iter().zip(quotas(&room, slack)).for_each(|(&place, part)| rooms[place].1 = part);
            }
        }
        rooms
    }
}
