//! Trees on two-dimensional networks with fully joined lines, of which no two take an edge in the same step.

use crate::grid::Grid;
use crate::trees::{Branch, Tree, Trees};

/// Trees that are each other's translates: to all of both lines first, then, step by step, from two more nodes of each line, one at
/// an odd and one at an even offset, across.
///
/// None where the grid has not two dimensions.
///
/// * **Source.** Pham 2026, section 4.2.3. **Out.** 1 + ⌊side / 2⌋ steps, of the longer side; for a square that is the least number
///   of steps (its equation 4.4) for shares of all nodes. **Cost.** O(roots · nodes).
pub fn rook_trees(grid: &Grid, roots: &[u32]) -> Option<Trees> {
    let &[width, height] = grid.sides() else { return None };
    let trees = roots.iter().map(|&root| {
        let mut branches: Vec<Branch> = Vec::new();
        for (dimension, side) in [(0, width), (1, height)] {
            branches.extend((1..side).map(|offset| Branch { step: 0, edge: grid.edge(root, dimension, offset) }));
        }
        for (own, other, is_alike) in [(1, 0, true), (0, 1, false)] {
            let (own_side, other_side) = (grid.sides()[own], grid.sides()[other]);
            for offset in 1..own_side {
                let from = grid.neighbour(root, own, offset);
                let across = (1..other_side).filter(|across| (across % 2 == offset % 2) == is_alike);
                let step = offset.div_ceil(2);
                branches.extend(across.map(|across| Branch { step, edge: grid.edge(from, other, across) }));
            }
        }
        branches.sort_unstable();
        Tree { root, branches }
    });
    Some(Trees { trees: trees.collect() })
}

#[cfg(test)]
mod tests {
    use canopy_direct::Family;

    use super::*;
    use crate::judge::judge_trees;
    use crate::tests::graph;

    /// Value F2, and all sides from 2 to 8.
    #[test]
    fn no_edge_is_taken_twice_in_a_step() {
        for (rows, columns, steps) in [(4, 4, 3), (6, 6, 4)] {
            let graph = graph(Family::Dfc2 { rows, columns });
            let roots: Vec<u32> = (0..graph.order()).collect();
            assert_eq!(rook_trees(&Grid::of(&graph).unwrap(), &roots).unwrap().step_count(), steps);
        }
        for (rows, columns) in (2..=8).flat_map(|rows| (2..=8).map(move |columns| (rows, columns))) {
            let graph = graph(Family::Dfc2 { rows, columns });
            let roots: Vec<u32> = (0..graph.order()).collect();
            let trees = rook_trees(&Grid::of(&graph).unwrap(), &roots).unwrap();
            assert_eq!(judge_trees(&graph, &trees), Ok(1), "{rows}x{columns}");
            assert_eq!(u64::from(trees.step_count()), 1 + rows.max(columns) / 2);
        }
    }
}
