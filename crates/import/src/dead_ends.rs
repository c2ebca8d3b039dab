//! Nodes that join nothing.

use std::collections::BTreeSet;

/// Nodes with fewer than two ways out, and those that have fewer once such nodes are gone; rising.
///
/// `neighbours` are those of each node, in both directions. `others` are its ways out besides them: two or more keep a node
/// whatever becomes of its neighbours.
///
/// O(links · log nodes).
pub(crate) fn dead_ends(mut neighbours: Vec<BTreeSet<usize>>, others: &[usize]) -> Vec<usize> {
    let is_dead = |node: usize, neighbours: &[BTreeSet<usize>]| neighbours[node].len() + others[node] < 2;
    let mut open: Vec<usize> = (0..neighbours.len()).filter(|&node| is_dead(node, &neighbours)).collect();
    let mut dead = BTreeSet::new();
    while let Some(node) = open.pop() {
        if !dead.insert(node) {
            continue;
        }
        for other in std::mem::take(&mut neighbours[node]) {
            neighbours[other].remove(&node);
            if is_dead(other, &neighbours) {
                open.push(other);
            }
        }
    }
    dead.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_go_from_their_ends_and_what_is_kept_ends_them() {
        // A chain 0-1-2-3-4 with a branch 5 at 2.
        let links = [(0, 1), (1, 2), (2, 3), (3, 4), (2, 5)];
        let ends = |others: [usize; 6]| {
            let mut neighbours = vec![BTreeSet::new(); 6];
            for (a, b) in links {
                neighbours[a].insert(b);
                neighbours[b].insert(a);
            }
            dead_ends(neighbours, &others)
        };
        assert_eq!(ends([2, 0, 0, 0, 2, 0]), [5]);
        assert_eq!(ends([2, 0, 0, 0, 1, 0]), [5], "one way out besides a neighbour is two");
        assert_eq!(ends([2, 0, 0, 0, 0, 0]), [1, 2, 3, 4, 5]);
        assert_eq!(ends([0; 6]), [0, 1, 2, 3, 4, 5]);
    }
}
