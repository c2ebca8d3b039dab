//! Things that belong together, pair by pair.

/// Things by position, each in one group.
pub(super) struct Groups {
    /// A member of the group of each, nearer to the one that stands for it.
    above: Vec<usize>,
}

impl Groups {
    /// Each in a group of its own.
    pub(super) fn new(count: usize) -> Self {
        Self { above: (0..count).collect() }
    }

    /// The one that stands for the group; paths are halved on the way.
    fn root(&mut self, mut of: usize) -> usize {
        while self.above[of] != of {
            self.above[of] = self.above[self.above[of]];
            of = self.above[of];
        }
        of
    }

    /// Puts two, and all that is with them, in one group.
    pub(super) fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        // The earlier one stands for the group, so that groups are numbered in the order of their first members.
        self.above[a.max(b)] = a.min(b);
    }

    /// Members of each group, both in order. O(things log things).
    pub(super) fn members(mut self) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.above.len()];
        for of in 0..self.above.len() {
            let root = self.root(of);
            members[root].push(of);
        }
        members.retain(|group| !group.is_empty());
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_come_in_the_order_of_their_first_members() {
        let mut groups = Groups::new(6);
        [(4, 1), (5, 4), (3, 2)].into_iter().for_each(|(a, b)| groups.join(a, b));
        assert_eq!(groups.members(), [vec![0], vec![1, 4, 5], vec![2, 3]]);
    }
}
