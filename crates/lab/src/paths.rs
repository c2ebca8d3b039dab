//! Paths to the names of ranks: what answers take, and everything that does not follow a plan.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The next node from each node towards `target`: fewest links, then the widest of those, then the smallest number.
/// `None` where no path leads. `links` has sender, receiver and rate. O(nodes · links).
pub(crate) fn next_hops(node_count: usize, links: &[(usize, usize, u64)], target: usize) -> Vec<Option<usize>> {
    let mut next = vec![None; node_count];
    let mut is_done = vec![false; node_count];
    // Links, the narrowest on the way (wider first), node, next node.
    let mut open = BinaryHeap::from([Reverse((0_u32, Reverse(u64::MAX), target, target))]);
    while let Some(Reverse((hops, Reverse(width), node, via))) = open.pop() {
        if std::mem::replace(&mut is_done[node], true) {
            continue;
        }
        if node != target {
            next[node] = Some(via);
        }
        for &(from, to, rate) in links.iter().filter(|&&(from, to, _)| to == node && !is_done[from]) {
            open.push(Reverse((hops + 1, Reverse(width.min(rate)), from, to)));
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_paths_go_first_then_wide_ones() {
        // 0 to 3 by 1 (narrow) or by 2 (wide), or by 4 and 5.
        let both = |a, b, rate| [(a, b, rate), (b, a, rate)];
        let links: Vec<_> = [
            both(0, 1, 5),
            both(1, 3, 9),
            both(0, 2, 7),
            both(2, 3, 7),
            both(0, 4, 99),
            both(4, 5, 99),
            both(5, 3, 99),
        ]
        .concat();
        let next = next_hops(7, &links, 3);
        assert_eq!(next, [Some(2), Some(3), Some(3), None, Some(5), Some(3), None]);
    }
}
