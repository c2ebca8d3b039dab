//! Branches taken apart.

use super::super::editing::Editing;
use super::super::hanging::Hop;
use super::Relief;

/// Ranks that a branch may have.
const RANKS_MAX: usize = 64;

/// Ranks left up to which the cheapest of all hops to any of them comes next; of more, the cheapest to the next one.
const CHOICE_MAX: usize = 8;

impl Relief<'_> {
    /// Takes a rank and all that hang below it down, and hangs each of them where it is cheapest; says whether all of
    /// it has become cheaper, and changes nothing otherwise.
    pub(super) fn move_branch(&mut self, edit: &mut Editing<'_>, rank: usize) -> bool {
        if self.below.is_leaf(rank) || self.moving.len() > RANKS_MAX {
            return false;
        }
        let mut left = self.moving.clone();
        let old: Vec<(usize, Hop)> = left.iter().map(|&rank| (rank, edit.tree.hops[rank])).collect();
        let mut budget = 0_u64;
        for &rank in &left {
            let cost = edit.take_off(rank);
            budget = budget.saturating_add(self.worth(edit.tree.hops[rank].depth - 1, cost));
        }
        let mut is_entered = false;
        while !left.is_empty() {
            let choice = if is_entered && left.len() > CHOICE_MAX { 1 } else { left.len() };
            let mut best = None;
            let mut below = budget;
            for (place, &rank) in left.iter().enumerate().take(choice) {
                if let Some(found) = self.cheapest(edit, rank, 0, below) {
                    below = self.worth(edit.tree.hops[found.from as usize].depth, found.cost);
                    best = Some((place, found));
                }
            }
            let Some((place, found)) = best else { break };
            budget -= below;
            let rank = left.remove(place);
            edit.hang(rank, found.from, &found.links);
            self.is_moving[rank] = false;
            is_entered = true;
        }
        if left.is_empty() {
            self.below.read(edit.tree);
            return true;
        }
        for &(rank, hop) in &old {
            if !self.is_moving[rank] {
                edit.take_off(rank);
            }
            edit.tree.hops[rank] = hop;
            edit.put_on(rank);
            self.is_moving[rank] = true;
        }
        false
    }
}
