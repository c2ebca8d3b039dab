//! Trees that span switches, as trees of ranks alone.
//!
//! What hangs from a switch hangs from the rank that the tree reaches the switch from, by routes through the switch. If the
//! switch replicates and adds up, each of these routes carries what is its own, and what they share is carried once
//! (`canopy_schedule::InNetwork`): just the links of the tree that spans the switch.

use std::collections::HashMap;

use crate::forest::sums::glue::FreeTree;
use crate::forest::sums::hung::Hung;

/// A hop between ranks, away from the root of its tree.
pub(super) struct Down {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) ways: Vec<(Way, u64)>,
}

/// A route made of routes of [`FreeTrees`](crate::forest::sums::glue::FreeTrees), each there or back.
pub(super) type Way = Vec<(usize, bool)>;

impl Down {
    /// The same hop towards the root.
    pub(super) fn reversed(self) -> Self {
        let back = |way: Way| way.into_iter().rev().map(|(route, is_back)| (route, !is_back)).collect();
        let ways = self.ways.into_iter().map(|(way, count)| (back(way), count)).collect();
        Self { from: self.to, to: self.from, ways }
    }
}

/// The hops between ranks of a tree that hangs from a rank, each after the one that leads to its start. Switches that lead
/// no further are left out. O(hops · depth).
pub(super) fn contracted(hung: &Hung, tree: &FreeTree, rank_count: u32) -> Vec<Down> {
    let mut hops = Vec::with_capacity(rank_count as usize - 1);
    // By switch: the rank before it, and the ways from there.
    let mut before: HashMap<u32, (u32, Vec<(Way, u64)>)> = HashMap::new();
    for &(hop, is_back) in &hung.order {
        let hop = &tree.hops[hop];
        let [from, to] = if is_back { [hop.ends[1], hop.ends[0]] } else { hop.ends };
        let ways = hop.carriers.iter().map(|&(route, count)| (vec![(route, is_back)], count)).collect();
        let (from, ways) = match before.get(&from) {
            Some((rank, first)) => (*rank, one_after_another(first, ways)),
            None => (from, ways),
        };
        if to < rank_count {
            hops.push(Down { from, to, ways });
        } else {
            before.insert(to, (from, ways));
        }
    }
    hops
}

/// Ways that go on as others do: both carry the same trees, in the same order.
fn one_after_another(first: &[(Way, u64)], second: Vec<(Way, u64)>) -> Vec<(Way, u64)> {
    let mut joined: Vec<(Way, u64)> = Vec::with_capacity(second.len());
    let mut firsts = first.iter().map(|(way, count)| (way, *count));
    let mut at_hand = firsts.next();
    for (way, mut left) in second {
        while let Some((start, rest)) = at_hand
            && left > 0
        {
            let common = rest.min(left);
            joined.push((start.iter().chain(&way).copied().collect(), common));
            left -= common;
            at_hand = if rest == common { firsts.next() } else { Some((start, rest - common)) };
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forest::sums::glue::FreeHop;

    #[test]
    fn what_hangs_from_switches_hangs_from_the_rank_before_them() {
        // 0 - (3) - (4) - 1, and 2 behind 1; five trees, of which three and two reach the first switch by different routes.
        let hop = |ends, carriers: &[(usize, u64)]| FreeHop { ends, carriers: carriers.to_vec() };
        let hops = vec![
            hop([3, 0], &[(0, 3), (1, 2)]),
            hop([3, 4], &[(2, 5)]),
            hop([4, 1], &[(3, 1), (4, 4)]),
            hop([2, 1], &[(5, 5)]),
        ];
        let tree = FreeTree { weight: 5, hops };
        let hung = Hung::at(&tree, 5, 0).unwrap();
        let hops = contracted(&hung, &tree, 3);
        let all: Vec<_> = hops.into_iter().map(|Down { from, to, ways }| (from, to, ways)).collect();
        let way = |first, last| vec![(first, true), (2, false), (last, false)];
        let through = vec![(way(0, 3), 1), (way(0, 4), 2), (way(1, 4), 2)];
        assert_eq!(all, [(0, 1, through), (1, 2, vec![(vec![(5, true)], 5)])]);
    }

    #[test]
    fn a_hop_turned_around_takes_its_routes_from_the_end() {
        let down = Down { from: 0, to: 1, ways: vec![(vec![(7, true), (3, false)], 2)] };
        let up = down.reversed();
        assert_eq!((up.from, up.to, up.ways), (1, 0, vec![(vec![(3, true), (7, false)], 2)]));
    }
}
