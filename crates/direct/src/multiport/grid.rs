//! Networks in which the nodes of every line of a grid are all joined: two-dimensional ones (2dfc) and those of more dimensions.

use crate::Digraph;

use crate::multiport::trees::{Branch, Tree, Trees};

/// Coordinates of all nodes of a network whose nodes are joined where they differ in one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Nodes of a line, by dimension, shorter ones first.
    sides: Vec<u32>,
    /// By node, and dimension.
    coordinates: Vec<u32>,
    /// By place, in mixed radix with the first dimension as the last digit.
    node_at: Vec<u32>,
    /// By node, dimension and offset.
    edges: Vec<u32>,
}

/// Errors of recognising a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum GridError {
    #[error("rank {from} has {found} links to rank {to}, where it needs one in each direction")]
    Links { from: u32, to: u32, found: usize },
    #[error("{order} ranks do not form a grid of {} with fully connected lines", by(*first, *second))]
    Sides { order: u32, first: u32, second: u32 },
    #[error("rank {node} has no place in the grid that the links of rank 0 span")]
    Place { node: u32 },
    #[error("the link from rank {from} to rank {to} changes {found} coordinates, not one")]
    Crossing { from: u32, to: u32, found: usize },
    #[error("rank {node} has {found} links, but its lines need {degree}")]
    Degree { node: u32, found: usize, degree: usize },
}

fn by(first: u32, second: u32) -> String {
    format!("{first}x{second} or more sides")
}

impl Grid {
    /// Finds coordinates, whatever the labels are.
    ///
    /// The lines of node 0 are the cliques among its neighbours; a node further away has what the nodes before it on the
    /// way have. All is verified then.
    ///
    /// * **Errors.** [`GridError`], the first. **Cost.** O(nodes · dimensions + edges · log degree).
    pub fn of(graph: &Digraph) -> Result<Self, GridError> {
        let order = graph.order();
        let mut heads: Vec<Vec<u32>> = (0..order).map(|node| graph.out(node).to_vec()).collect();
        heads.iter_mut().for_each(|heads| heads.sort_unstable());
        let count = |from: u32, to: u32| {
            let heads = &heads[from as usize];
            heads.partition_point(|&head| head <= to) - heads.partition_point(|&head| head < to)
        };
        for (from, to) in graph.edges() {
            for (from, to) in [(from, to), (to, from)] {
                let found = count(from, to);
                if from == to || found != 1 {
                    return Err(GridError::Links { from, to, found });
                }
            }
        }
        // Lines of node 0, without itself.
        let mut lines: Vec<Vec<u32>> = Vec::new();
        for &node in heads.first().into_iter().flatten() {
            match lines.iter_mut().find(|line| count(line[0], node) > 0) {
                Some(line) => line.push(node),
                None => lines.push(vec![node]),
            }
        }
        lines.sort_by_key(|line| line.len());
        let sides: Vec<u32> = lines.iter().map(|line| 1 + u32::try_from(line.len()).unwrap_or(u32::MAX - 1)).collect();
        let places = sides.iter().try_fold(1_u32, |places, &side| places.checked_mul(side));
        if places != Some(order) {
            let side = |dimension: usize| sides.get(dimension).copied().unwrap_or(1);
            return Err(GridError::Sides { order, first: side(1), second: side(0) });
        }
        let coordinates = coordinates(&heads, &lines);
        let grid = Self { node_at: vec![u32::MAX; order as usize], edges: Vec::new(), sides, coordinates };
        grid.verified(graph)
    }

    /// Fills the tables, where every node has a place of its own and every edge leads along one dimension.
    fn verified(mut self, graph: &Digraph) -> Result<Self, GridError> {
        let dimensions = self.sides.len();
        for node in 0..graph.order() {
            let place = self.place((0..dimensions).map(|dimension| self.coordinate(node, dimension)));
            match place.and_then(|place| self.node_at.get_mut(place)) {
                Some(at) if *at == u32::MAX => *at = node,
                _ => return Err(GridError::Place { node }),
            }
        }
        let degree: usize = self.sides.iter().map(|&side| side as usize - 1).sum();
        self.edges = vec![u32::MAX; graph.order() as usize * degree];
        for node in 0..graph.order() {
            if graph.out(node).len() != degree {
                return Err(GridError::Degree { node, found: graph.out(node).len(), degree });
            }
            for (&head, edge) in graph.out(node).iter().zip(graph.out_edges(node)) {
                let differs = |&dimension: &usize| self.coordinate(node, dimension) != self.coordinate(head, dimension);
                let mut along = (0..dimensions).filter(differs);
                let (Some(dimension), None) = (along.next(), along.next()) else {
                    let found = (0..dimensions).filter(differs).count();
                    return Err(GridError::Crossing { from: node, to: head, found });
                };
                let side = self.sides[dimension];
                let offset = (self.coordinate(head, dimension) + side - self.coordinate(node, dimension)) % side;
                let slot = self.slot(node, dimension, offset);
                self.edges[slot] = edge;
            }
        }
        Ok(self)
    }

    /// Nodes of a line, by dimension, shorter ones first.
    pub fn sides(&self) -> &[u32] {
        &self.sides
    }

    /// The nearest number of another node on the line of node 0 in a dimension: small where lines have numbers in a row.
    pub fn stride(&self, dimension: usize) -> u32 {
        self.neighbour(0, dimension, 1)
    }

    /// Trees that go along the dimensions in this order, a step for each: what is at a node goes to all others of its line.
    ///
    /// * **Source.** Pham 2026, section 4.2.2, dimension order. **In.** Every dimension once; nodes. **Cost.** O(roots · nodes).
    pub fn trees_along(&self, dimensions: &[usize], roots: &[u32]) -> Trees {
        let trees = roots.iter().map(|&root| {
            let mut reached = vec![root];
            let mut branches = Vec::with_capacity(self.node_at.len().saturating_sub(1));
            // In each dimension all nodes reached so far reach the rest of their lines: one branch for each node but the root.
            for (step, &dimension) in (0..).zip(dimensions) {
                for at in 0..reached.len() {
                    for offset in 1..self.sides[dimension] {
                        branches.push(Branch { step, edge: self.edge(reached[at], dimension, offset) });
                        reached.push(self.neighbour(reached[at], dimension, offset));
                    }
                }
            }
            Tree { root, branches }
        });
        Trees { trees: trees.collect() }
    }

    /// The node whose coordinate in a dimension is greater by an offset, modulo the side.
    ///
    /// * **In.** A node and a dimension of the grid. **Cost.** O(dimensions).
    pub fn neighbour(&self, node: u32, dimension: usize, offset: u32) -> u32 {
        let moved = (0..self.sides.len()).map(|each| {
            let coordinate = self.coordinate(node, each);
            if each == dimension { (coordinate + offset) % self.sides[each] } else { coordinate }
        });
        self.place(moved).map_or(node, |place| self.node_at[place])
    }

    /// The edge that leads there, for an offset that is not 0.
    pub(crate) fn edge(&self, node: u32, dimension: usize, offset: u32) -> u32 {
        self.edges[self.slot(node, dimension, offset)]
    }

    fn coordinate(&self, node: u32, dimension: usize) -> u32 {
        self.coordinates[node as usize * self.sides.len() + dimension]
    }

    /// The place with these coordinates, by dimension; none if one is too large.
    fn place(&self, coordinates: impl DoubleEndedIterator<Item = u32> + ExactSizeIterator) -> Option<usize> {
        let mut place = 0;
        for (coordinate, &side) in coordinates.zip(&self.sides).rev() {
            place = if coordinate < side { place * side as usize + coordinate as usize } else { return None };
        }
        Some(place)
    }

    fn slot(&self, node: u32, dimension: usize, offset: u32) -> usize {
        let before: usize = self.sides[..dimension].iter().map(|&side| side as usize - 1).sum();
        let degree: usize = self.sides.iter().map(|&side| side as usize - 1).sum();
        node as usize * degree + before + offset as usize - 1
    }
}

/// By node and dimension, coordinates by the lines of node 0: in each dimension the greatest of the nodes before it on shortest
/// paths from node 0.
fn coordinates(heads: &[Vec<u32>], lines: &[Vec<u32>]) -> Vec<u32> {
    let dimensions = lines.len();
    let mut coordinates = vec![0; heads.len() * dimensions];
    let mut levels: Vec<Option<u32>> = vec![None; heads.len()];
    let mut queue: Vec<u32> = Vec::with_capacity(heads.len());
    if let Some(level) = levels.first_mut() {
        *level = Some(0);
    }
    for (dimension, line) in lines.iter().enumerate() {
        for (&node, coordinate) in line.iter().zip(1..) {
            coordinates[node as usize * dimensions + dimension] = coordinate;
            levels[node as usize] = Some(1);
            queue.push(node);
        }
    }
    let mut at = 0;
    // Breadth first over all links; each passes the coordinates on to the next level: O(links · dimensions).
    while let Some(&node) = queue.get(at) {
        at += 1;
        let level = levels[node as usize].unwrap_or(0);
        for &next in &heads[node as usize] {
            if levels[next as usize].is_none() {
                levels[next as usize] = Some(level + 1);
                queue.push(next);
            }
            if levels[next as usize] == Some(level + 1) {
                for dimension in 0..dimensions {
                    let own = coordinates[node as usize * dimensions + dimension];
                    let other = &mut coordinates[next as usize * dimensions + dimension];
                    *other = own.max(*other);
                }
            }
        }
    }
    coordinates
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Family;
    use crate::multiport::judge::judge_trees;
    use crate::multiport::tests::{graph, relabelled};

    #[test]
    fn sides_are_found_and_other_networks_refused() {
        for (rows, columns, sides) in [(4, 4, [4, 4]), (6, 5, [5, 6]), (2, 8, [2, 8]), (2, 2, [2, 2])] {
            assert_eq!(Grid::of(&graph(Family::Dfc2 { rows, columns })).unwrap().sides(), sides);
        }
        let cube = Family::Hamming { extents: vec![4, 2, 3] };
        assert_eq!(Grid::of(&graph(cube)).unwrap().sides(), [2, 3, 4]);
        assert_eq!(Grid::of(&graph(Family::Complete { n: 5 })).unwrap().sides(), [5]);
        assert_eq!(Grid::of(&graph(Family::Hypercube { n: 4 })).unwrap().sides(), [2, 2, 2, 2]);
        // The Shrikhande graph has the numbers of 4x4, but other lines: 4x4 with i, j joined by ±(1,0), ±(0,1), ±(1,1).
        let offsets = [(1, 0), (3, 0), (0, 1), (0, 3), (1, 1), (3, 3)];
        let edges = (0..16_u32)
            .flat_map(|node| offsets.map(|(i, j): (u32, u32)| (node, (node / 4 + i) % 4 * 4 + (node % 4 + j) % 4)));
        assert!(Grid::of(&Digraph::new(16, edges).unwrap()).is_err());
        assert!(matches!(Grid::of(&graph(Family::Kautz { d: 2, n: 2 })), Err(GridError::Links { .. })));
        assert!(matches!(Grid::of(&graph(Family::Ring { n: 6, one_way: false })), Err(GridError::Sides { .. })));
    }

    proptest! {
        #[test]
        fn labels_do_not_matter(rows in 2_u64..7, columns in 2_u64..7, seed in any::<u64>()) {
            let graph = relabelled(&graph(Family::Dfc2 { rows, columns }), seed);
            let grid = Grid::of(&graph).unwrap();
            let roots: Vec<u32> = (0..graph.order()).collect();
            for order in [[0, 1], [1, 0]] {
                // One share in the first step, those of a line in the second.
                let trees = grid.trees_along(&order, &roots);
                prop_assert_eq!(judge_trees(&graph, &trees), Ok(grid.sides()[order[0]]));
                prop_assert_eq!(trees.step_count(), 2);
            }
        }
    }
}
