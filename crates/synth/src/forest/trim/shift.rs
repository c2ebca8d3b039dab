//! Moves surplus between clusters that are joined directly, where what trimming each in turn leaves can not be cut.
//!
//! A link between two clusters counts for both. When the last ones are trimmed, all others have given up what they
//! could: a surplus is left that no link of its own can lose. It can move: a link to another cluster is cut, a link from
//! there to a third one gets back what it had lost, and the surplus is with the third one now.

use std::collections::VecDeque;

use canopy_optimize::FlowUnit;

use super::slack::ScarceSet;
use super::{Pair, Trimmer};
use crate::error::SynthesisError;

/// Walks per cluster of the level, at most: each ends a surplus or uses up a link, as a rule.
const WALKS_PER_CLUSTER: usize = 8;

/// One step of a walk: from a cluster with a surplus over a cut pair to another one, then, if that has none to give up,
/// over a pair that is given back to a third one.
#[derive(Clone, Copy)]
struct Move {
    from: usize,
    cut: usize,
    given_back: usize,
}

impl<C: FlowUnit> Trimmer<'_, '_, '_, C> {
    /// Moves surplus left by trimming until it can be cut. Says whether no member has any left.
    ///
    /// Walks alternate: cut, give back, cut, …, and are found breadth first, so that few links change.
    ///
    /// * **In.** Clusters of the level at hand; capacities `before` any of them was trimmed.
    /// * **Errors.** Stopped. **Cost.** O(links) per walk.
    pub(super) fn shift_surplus(&mut self, members: &[usize], before: &[C]) -> Result<bool, SynthesisError> {
        let mut walks = WALKS_PER_CLUSTER * members.len();
        for &cluster in members {
            loop {
                match self.surplus(cluster) {
                    None => return Ok(false),
                    Some(surplus) if surplus == C::ZERO => break,
                    Some(_) => {}
                }
                self.condition.ask()?;
                let Some((moves, last)) = self.find_walk(cluster, before).filter(|_| walks > 0) else {
                    return Ok(false);
                };
                walks -= 1;
                if !self.walk(cluster, &moves, last, before) {
                    return Ok(false);
                }
            }
        }
        // A walk leaves all clusters but its two ends as they were.
        Ok(members.iter().all(|&cluster| self.surplus(cluster) == Some(C::ZERO)))
    }

    /// The clusters of the level at the two ends of a pair, if it leads from one to another of them.
    fn between(&self, pair: usize) -> Option<(usize, usize)> {
        let (low, high) = self.pairs[pair].ends;
        let ends = (self.in_level[low as usize]?, self.in_level[high as usize]?);
        let is_inside = self.around[low as usize] == self.around[high as usize];
        (ends.0 != ends.1 && is_inside).then_some(ends)
    }

    /// What a pair could lose, as far as concerns itself and the sets it enters, but for clusters of the level.
    fn room_to_cut(&self, pair: usize) -> C {
        let Pair { ends: (low, high), up, down } = &self.pairs[pair];
        let in_level = [low, high].map(|&node| self.in_level[node as usize].map(ScarceSet::Cluster));
        let sets = self.slacks.sets_entered(pair).filter(|&set| !in_level.contains(&Some(set)));
        let room = self.sum(up).min(self.sum(down));
        sets.fold(room, |room, set| room.min(self.slacks.of(set))).max(C::ZERO)
    }

    /// What a pair has lost, in the direction that lost less.
    fn room_to_give_back(&self, pair: usize, before: &[C]) -> C {
        let Pair { up, down, .. } = &self.pairs[pair];
        let lost = |links: &std::ops::Range<usize>| {
            links.clone().fold(C::ZERO, |sum, link| sum + (before[link] - self.capacities[link]))
        };
        lost(up).min(lost(down))
    }

    /// Pairs that lead from a cluster to others of the level, each with the other.
    fn pairs_from(&self, cluster: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let nodes = self.clusters[cluster].nodes.iter();
        nodes.flat_map(|&node| &self.pairs_of[node as usize]).filter_map(move |&pair| {
            let (one, other) = self.between(pair)?;
            Some((pair, if one == cluster { other } else { one }))
        })
    }

    /// A pair that leads from a cluster to a node in no cluster of the level, and has something to lose.
    fn pair_to_others(&self, cluster: usize) -> Option<usize> {
        let leads_out = |pair: &usize| {
            let (low, high) = self.pairs[*pair].ends;
            let is_inside = self.around[low as usize] == self.around[high as usize];
            let in_level = [low, high].map(|node| self.in_level[node as usize]);
            is_inside && in_level.contains(&None) && self.room_to_cut(*pair) > C::ZERO
        };
        let pairs = self.clusters[cluster].nodes.iter().flat_map(|&node| &self.pairs_of[node as usize]);
        pairs.copied().find(leads_out)
    }

    /// Moves of a surplus away from a cluster, and the pair to be cut in the end.
    fn find_walk(&self, start: usize, before: &[C]) -> Option<(Vec<Move>, usize)> {
        let mut came_by: Vec<Option<Move>> = vec![None; self.clusters.len()];
        let mut is_seen = vec![false; self.clusters.len()];
        let mut is_short = vec![false; self.clusters.len()];
        is_seen[start] = true;
        let mut queue = VecDeque::from([start]);
        let arrived = |came_by: &[Option<Move>], cluster: usize, last: usize| {
            let mut moves: Vec<Move> =
                std::iter::successors(came_by[cluster], |earlier| came_by[earlier.from]).collect();
            moves.reverse();
            Some((moves, last))
        };
        while let Some(cluster) = queue.pop_front() {
            if let Some(last) = self.pair_to_others(cluster) {
                return arrived(&came_by, cluster, last);
            }
            for (cut, other) in self.pairs_from(cluster) {
                if is_short[other] || self.room_to_cut(cut) == C::ZERO {
                    continue;
                }
                let surplus = self.surplus(other)?;
                let one = C::try_from_u128(1)?;
                if surplus > C::ZERO && (other != start || surplus > one) {
                    return arrived(&came_by, cluster, cut);
                }
                is_short[other] = true;
                for (given_back, third) in self.pairs_from(other) {
                    let is_new = given_back != cut && !is_seen[third];
                    if is_new && self.room_to_give_back(given_back, before) > C::ZERO {
                        is_seen[third] = true;
                        came_by[third] = Some(Move { from: cluster, cut, given_back });
                        queue.push_back(third);
                    }
                }
            }
        }
        None
    }

    /// Moves as much surplus as all steps have room for, half of it where a step may be taken twice. Says whether that
    /// was anything.
    fn walk(&mut self, start: usize, moves: &[Move], last: usize, before: &[C]) -> bool {
        let mut amount = self.surplus(start).unwrap_or(C::ZERO).min(self.room_to_cut(last));
        for cluster in self.between(last).map_or([start, start], |ends| [ends.0, ends.1]) {
            // The one the surplus comes to last has none of its own, as a rule.
            let surplus = self.surplus(cluster).unwrap_or(C::ZERO);
            amount = if surplus > C::ZERO { amount.min(surplus) } else { amount };
        }
        for step in moves {
            amount = amount.min(self.room_to_cut(step.cut)).min(self.room_to_give_back(step.given_back, before));
        }
        let half = C::try_from_u128(amount.to_u128().div_ceil(2)).unwrap_or(C::ZERO);
        amount = if moves.is_empty() { amount } else { half };
        for step in moves {
            if self.room_to_cut(step.cut) < amount || self.room_to_give_back(step.given_back, before) < amount {
                return false;
            }
            self.take(step.cut, amount);
            self.give_back(step.given_back, amount, before);
        }
        if amount == C::ZERO || self.room_to_cut(last) < amount {
            return false;
        }
        self.take(last, amount);
        true
    }

    /// Raises both directions of a pair by as much, up to what they had.
    fn give_back(&mut self, pair: usize, amount: C, before: &[C]) {
        let Pair { up, down, .. } = &self.pairs[pair];
        for links in [up.clone(), down.clone()] {
            let mut missing = amount;
            for link in links {
                let given = (before[link] - self.capacities[link]).min(missing);
                self.capacities[link] += given;
                missing -= given;
            }
        }
        self.slacks.raise(pair, amount);
        self.tell(pair);
    }
}
