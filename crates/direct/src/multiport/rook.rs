//! Trees on two-dimensional networks with fully joined lines, of which no two take an edge in the same step.

use crate::multiport::grid::Grid;
use crate::multiport::trees::{Branch, Tree, Trees};

/// Trees that are each other's translates: in the first step to all of both lines, then, step by step, to one more
/// node of each line across.
///
/// A node off both lines is reached along either dimension, from the node of the root's other line. Each offset along
/// a dimension may be taken once in a step, so nodes are divided between the dimensions such that no offset is taken
/// more often than there are steps, and such that the first links lead to as few nodes as possible: their blocks of
/// an all-to-all pass them in the first step.
///
/// None where the grid has not two dimensions.
///
/// * **Source.** Pham 2026, section 4.1.2, whose division by odd and even offsets is as good for squares; that of
///   other grids is our own.
/// * **Out.** ⌈(m₁·m₂ − 1)/(m₁ + m₂ − 2)⌉ steps, the least number for shares of all nodes (its equation 4.4).
/// * **Cost.** O(roots · nodes).
pub fn rook_trees(grid: &Grid, roots: &[u32]) -> Option<Trees> {
    let &[width, height] = grid.sides() else { return None };
    let across = Division::best(width - 1, height - 1).places();
    let trees = roots.iter().map(|&root| {
        let mut branches: Vec<Branch> = Vec::new();
        for (dimension, side) in [(0, width), (1, height)] {
            branches.extend((1..side).map(|offset| Branch { step: 0, edge: grid.edge(root, dimension, offset) }));
        }
        // How often each offset was taken along its dimension.
        let mut taken = [vec![0; width as usize], vec![0; height as usize]];
        for (offsets, &is_across) in (1..height).flat_map(|y| (1..width).map(move |x| [x, y])).zip(&across) {
            let (along, other) = if is_across { (0, 1) } else { (1, 0) };
            let from = grid.neighbour(root, other, offsets[other]);
            let step = &mut taken[along][offsets[along] as usize];
            *step += 1;
            branches.push(Branch { step: *step, edge: grid.edge(from, along, offsets[along]) });
        }
        branches.sort_unstable();
        Tree { root, branches }
    });
    Some(Trees { trees: trees.collect() })
}

/// How the nodes off both lines are divided between the dimensions.
struct Division {
    /// Other nodes of a line of the first dimension.
    columns: u32,
    /// Other nodes of a line of the second dimension.
    rows: u32,
    /// Nodes that are reached along the first dimension.
    across: u32,
}

impl Division {
    /// The one whose first links lead to the fewest nodes, of those in the least number of steps. O(rows · columns).
    fn best(columns: u32, rows: u32) -> Self {
        let steps = (columns * rows).div_ceil(columns + rows);
        // Each column is taken by as many rows as by others, or one more; each row by as many columns as by others,
        // or one more.
        let fits = |&across: &u32| across.div_ceil(columns) <= steps && columns - across / rows <= steps;
        let most = |&across: &u32| (across.div_ceil(rows)).max(rows - across / columns);
        // It fits if the columns are taken in every step.
        let across = (0..=columns * rows).filter(fits).min_by_key(most).unwrap_or(columns * steps);
        Self { columns, rows, across }
    }

    /// Row by row, which nodes are reached along the first dimension: in each row the next columns, around the end.
    fn places(&self) -> Vec<bool> {
        let &Self { columns, rows, across } = self;
        let mut places = vec![false; (columns * rows) as usize];
        let before = |row: u32| u32::try_from(u64::from(across) * u64::from(row) / u64::from(rows)).unwrap_or(across);
        for row in 0..rows {
            for each in before(row)..before(row + 1) {
                places[(row * columns + each % columns) as usize] = true;
            }
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use crate::Family;

    use super::*;
    use crate::multiport::judge::judge_trees;
    use crate::multiport::tests::graph;

    /// Value F2, equation 4.4 of 12×8, and all sides from 2 to 8.
    #[test]
    fn no_edge_is_taken_twice_in_a_step() {
        for (rows, columns, steps) in [(4, 4, 3), (6, 6, 4), (12, 8, 6)] {
            let graph = graph(Family::Dfc2 { rows, columns });
            let roots: Vec<u32> = (0..graph.order()).collect();
            assert_eq!(rook_trees(&Grid::of(&graph).unwrap(), &roots).unwrap().step_count(), steps);
        }
        for (rows, columns) in (2..=8).flat_map(|rows| (2..=8).map(move |columns| (rows, columns))) {
            let graph = graph(Family::Dfc2 { rows, columns });
            let roots: Vec<u32> = (0..graph.order()).collect();
            let trees = rook_trees(&Grid::of(&graph).unwrap(), &roots).unwrap();
            assert_eq!(judge_trees(&graph, &trees), Ok(1), "{rows}x{columns}");
            let least = (rows * columns - 1).div_ceil(rows + columns - 2);
            assert_eq!(u64::from(trees.step_count()), least, "{rows}x{columns}");
        }
    }
}
