//! Ranks moved nearer to the root for the sake of others.

use super::super::editing::Editing;
use super::Relief;

impl Relief<'_> {
    /// Hangs a rank up nearer to the root, though that may be dearer, and on it all ranks on busy links for which
    /// that is cheaper; says whether all of it has become cheaper, and changes nothing otherwise.
    pub(super) fn promote(&mut self, edit: &mut Editing<'_>, rank: usize, allowed: &[u64]) -> bool {
        let Some(above) = edit.tree.hops[rank].depth.checked_sub(2) else { return false };
        let (saved, followers) = self.followers(edit, rank, allowed);
        if followers.is_empty() {
            return false;
        }
        let old = edit.tree.hops[rank];
        let present = edit.take_off(rank);
        let (is_moving, hops) = (&self.is_moving, &edit.tree.hops);
        let worth = |from: usize, cost: u64| (!is_moving[from] && hops[from].depth <= above).then_some(cost);
        let found = self.search.cheapest(rank, edit.prices, present.saturating_add(saved), worth);
        let Some(found) = found else {
            edit.put_on(rank);
            return false;
        };
        edit.hang(rank, found.from, &found.links);
        let depth = edit.tree.hops[rank].depth;
        let mut log = vec![(rank, old)];
        let mut balance = i128::from(present) - i128::from(found.cost);
        for other in followers {
            if depth + 1 + self.heights[other] > self.depth_max || edit.tree.is_below(rank, other) {
                continue;
            }
            let before = edit.tree.hops[other];
            let present = edit.take_off(other);
            let worth = |from: usize, cost: u64| (from == rank).then_some(cost);
            match self.search.cheapest(other, edit.prices, present, worth) {
                Some(found) => {
                    balance += i128::from(present) - i128::from(found.cost);
                    log.push((other, before));
                    edit.hang(other, found.from, &found.links);
                }
                None => edit.put_on(other),
            }
        }
        if balance <= 0 {
            edit.undo(&log);
            return false;
        }
        edit.tree.count_depths();
        self.below.read(edit.tree);
        true
    }

    /// Ranks on busy links that would hang on a rank if it were one hop nearer to the root, and what that would save.
    fn followers(&mut self, edit: &Editing<'_>, rank: usize, allowed: &[u64]) -> (u64, Vec<usize>) {
        if !std::mem::replace(&mut self.are_heights_counted, true) {
            self.search.spend(4 * self.heights.len());
            edit.tree.count_heights(&mut self.heights);
        }
        self.search.spread(rank, edit.prices);
        let depth = edit.tree.hops[rank].depth;
        let (mut saved, mut followers) = (0_u64, Vec::new());
        for other in 0..self.heights.len() {
            let fits = !self.is_moving[other] && depth + self.heights[other] <= self.depth_max;
            if !fits || !edit.is_busy(other, allowed) {
                continue;
            }
            let present = edit.cost(other);
            let cost = self.search.spread_to(rank, other, edit.prices);
            if let Some(cost) = cost.filter(|&cost| cost < present && !edit.tree.is_below(rank, other)) {
                saved = saved.saturating_add(present - cost);
                followers.push(other);
            }
        }
        (saved, followers)
    }
}
