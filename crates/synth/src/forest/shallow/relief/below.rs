//! What hangs on each rank of one tree.

use super::super::hanging::Hanging;

/// Stands for no rank.
const NONE: u32 = u32::MAX;

/// The ranks that hang on each rank, as linked lists.
pub(super) struct Below {
    /// By rank: the first that hangs on it.
    first: Vec<u32>,
    /// By rank: the next that hangs where it does.
    next: Vec<u32>,
}

impl Below {
    pub(super) fn new(rank_count: usize) -> Self {
        Self { first: vec![NONE; rank_count], next: vec![NONE; rank_count] }
    }

    /// Reads a tree. O(ranks).
    pub(super) fn read(&mut self, tree: &Hanging) {
        self.first.fill(NONE);
        for (rank, hop) in tree.hops.iter().enumerate().filter(|(_, hop)| hop.route.is_some()) {
            self.hang(rank, hop.from as usize);
        }
    }

    /// Whether nothing hangs on a rank.
    pub(super) fn is_leaf(&self, rank: usize) -> bool {
        self.first[rank] == NONE
    }

    /// Hangs a rank that hangs nowhere on another one.
    pub(super) fn hang(&mut self, rank: usize, on: usize) {
        let number = u32::try_from(rank).expect("ranks are counted in u32");
        self.next[rank] = std::mem::replace(&mut self.first[on], number);
    }

    /// Takes a rank off another one. O(ranks that hang there).
    pub(super) fn take_off(&mut self, rank: usize, on: usize) {
        let after = self.next[rank];
        let mut other = self.first[on] as usize;
        if other == rank {
            self.first[on] = after;
            return;
        }
        while self.next[other] as usize != rank {
            other = self.next[other] as usize;
        }
        self.next[other] = after;
    }

    /// Lists a rank and all that hang below it. O(ranks listed).
    pub(super) fn list(&self, top: usize, ranks: &mut Vec<usize>) {
        ranks.clear();
        ranks.push(top);
        let mut done = 0;
        while let Some(&rank) = ranks.get(done) {
            done += 1;
            let mut below = self.first[rank];
            while below != NONE {
                ranks.push(below as usize);
                below = self.next[below as usize];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use canopy_schedule::RouteInterner;

    use super::super::super::hanging::Hop;
    use super::*;

    #[test]
    fn ranks_are_listed_with_what_hangs_below_them() {
        let route = Some(RouteInterner::default().intern(&[]));
        // 0 is above 1, 2 and 5; 1 above 3 and 4.
        let hops = [(0, None), (0, route), (0, route), (1, route), (1, route), (0, route)];
        let hops = hops.map(|(from, route)| Hop { depth: 0, from, route }).to_vec();
        let mut below = Below::new(6);
        below.read(&Hanging::new(0, 1, hops));
        let listed = |below: &Below, top: usize| {
            let mut ranks = Vec::new();
            below.list(top, &mut ranks);
            assert_eq!(ranks[0], top);
            ranks.sort_unstable();
            ranks
        };
        assert_eq!(listed(&below, 0), [0, 1, 2, 3, 4, 5]);
        assert_eq!(listed(&below, 1), [1, 3, 4]);
        assert!(below.is_leaf(2) && !below.is_leaf(1));
        for rank in [5, 1, 2] {
            below.take_off(rank, 0);
        }
        assert!(below.is_leaf(0));
        below.hang(1, 5);
        assert_eq!(listed(&below, 5), [1, 3, 4, 5]);
    }
}
