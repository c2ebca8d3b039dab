//! Decides whether two graphs are isomorphic, and finds a difference if not.

use std::collections::BTreeMap;

use crate::analysis::{analyse, cells_of};
use crate::budget::{Budget, Stopped};
use crate::graph::{Arc, Graph, GraphError, Weight};

/// The result of comparing two graphs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The graphs are isomorphic: for each node of the first, its counterpart in the second.
    Same(Vec<u32>),
    /// The graphs differ.
    Different(Difference),
    /// All counts agree, and the budget ended before a decision.
    Undetermined,
}

/// The first difference found between two graphs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The number of nodes with a colour.
    Colour {
        /// The least colour where the numbers differ.
        colour: u64,
        /// Nodes of the first and of the second graph that have it.
        counts: [usize; 2],
    },
    /// The number of arcs with a weight.
    Weight {
        /// The least weight where the numbers differ.
        weight: Weight,
        /// Arcs of the first and of the second graph that have it.
        counts: [usize; 2],
    },
    /// How many nodes have so many arcs of each weight to so many nodes that have so many arcs, and so on.
    Cell {
        /// A node of the first and of the second graph for which this is so, where there are any.
        nodes: [Option<u32>; 2],
        /// How many there are.
        counts: [usize; 2],
    },
    /// All counts agree, but the canonical forms differ.
    Form,
}

/// Compares two graphs, cheapest first: colours, weights, cells, canonical forms.
///
/// * **Errors.** Stopped; the two together are too large to be numbered. **Cost.** That of [`analyse`], twice.
pub fn compare(a: &Graph, b: &Graph, budget: Budget<'_>) -> Result<Comparison, CompareError> {
    if let Some((colour, counts)) = first_count(a.colours().iter(), b.colours().iter()) {
        return Ok(Comparison::Different(Difference::Colour { colour, counts }));
    }
    let weights = |graph: &Graph| graph.arcs().iter().map(|arc| arc.weight).collect::<Vec<_>>();
    if let Some((weight, counts)) = first_count(weights(a).iter(), weights(b).iter()) {
        return Ok(Comparison::Different(Difference::Weight { weight, counts }));
    }
    if let Some(difference) = first_cell(a, b, budget)? {
        return Ok(Comparison::Different(difference));
    }
    let (of_a, of_b) = (analyse(a, budget)?, analyse(b, budget)?);
    let (Some(of_a), Some(of_b)) = (of_a.solution(), of_b.solution()) else { return Ok(Comparison::Undetermined) };
    if of_a.form(a) != of_b.form(b) {
        return Ok(Comparison::Different(Difference::Form));
    }
    let mut at_place = vec![0; of_b.places.len()];
    for (node, &place) in (0_u32..).zip(&of_b.places) {
        at_place[place as usize] = node;
    }
    Ok(Comparison::Same(of_a.places.iter().map(|&place| at_place[place as usize]).collect()))
}

/// Errors of comparing two graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CompareError {
    #[error(transparent)]
    Stopped(#[from] Stopped),
    #[error("the two graphs together are too large")]
    Together(#[from] GraphError),
}

/// The least item that there are more of on one side.
fn first_count<'a, T: Ord + Copy + 'a>(
    a: impl Iterator<Item = &'a T>,
    b: impl Iterator<Item = &'a T>,
) -> Option<(T, [usize; 2])> {
    let mut counts: BTreeMap<T, [usize; 2]> = BTreeMap::new();
    a.for_each(|&item| counts.entry(item).or_default()[0] += 1);
    b.for_each(|&item| counts.entry(item).or_default()[1] += 1);
    counts.into_iter().find(|(_, [a, b])| a != b)
}

/// The first cell of both graphs together that does not have as many nodes of each.
fn first_cell(a: &Graph, b: &Graph, budget: Budget<'_>) -> Result<Option<Difference>, CompareError> {
    let border = u32::try_from(a.node_count()).expect("nodes are counted in u32");
    let both = a.colours().iter().chain(b.colours()).copied().collect();
    // Numbers of both together may not fit; the graph refuses what does not.
    let moved = |arc: &Arc| Arc { from: arc.from.saturating_add(border), to: arc.to.saturating_add(border), ..*arc };
    let together = Graph::new(both, a.arcs().iter().copied().chain(b.arcs().iter().map(moved)).collect())?;
    let mut found: BTreeMap<u32, ([Option<u32>; 2], [usize; 2])> = BTreeMap::new();
    for (node, cell) in (0_u32..).zip(cells_of(&together, budget)?) {
        let (nodes, counts) = found.entry(cell).or_default();
        let (side, node) = if node < border { (0, node) } else { (1, node - border) };
        nodes[side].get_or_insert(node);
        counts[side] += 1;
    }
    let uneven = found.into_values().find(|(_, [a, b])| a != b);
    Ok(uneven.map(|(nodes, counts)| Difference::Cell { nodes, counts }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::WORK_STANDARD;

    fn graph(colours: &[u64], edges: &[(u32, u32)]) -> Graph {
        let both = edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
        Graph::new(colours.to_vec(), both.map(|(from, to)| Arc { from, to, weight: [1, 0] }).collect()).unwrap()
    }

    fn compared(a: &Graph, b: &Graph) -> Comparison {
        compare(a, b, Budget { work_max: WORK_STANDARD, stop: &|| false }).unwrap()
    }

    #[test]
    fn counterparts_are_named() {
        let a = graph(&[0, 0, 5, 0], &[(0, 1), (1, 2), (2, 3)]);
        let b = graph(&[0, 5, 0, 0], &[(2, 1), (1, 0), (0, 3)]);
        assert_eq!(compared(&a, &b), Comparison::Same(vec![3, 0, 1, 2]));
    }

    #[test]
    fn the_first_difference_is_named() {
        let path = graph(&[0; 4], &[(0, 1), (1, 2), (2, 3)]);
        let different = |b: &Graph| match compared(&path, b) {
            Comparison::Different(difference) => difference,
            other => panic!("{other:?}"),
        };
        let coloured = graph(&[0, 0, 0, 7], &[(0, 1), (1, 2), (2, 3)]);
        assert_eq!(different(&coloured), Difference::Colour { colour: 0, counts: [4, 3] });
        let closed = graph(&[0; 4], &[(0, 1), (1, 2), (2, 3), (3, 0)]);
        assert_eq!(different(&closed), Difference::Weight { weight: [1, 0], counts: [6, 8] });
        let star = graph(&[0; 4], &[(0, 1), (0, 2), (0, 3)]);
        assert!(matches!(different(&star), Difference::Cell { counts: [a, b], .. } if a != b));
    }

    /// A ring of six and two of three look alike from every node.
    #[test]
    fn equal_counts_are_not_enough() {
        let ring = graph(&[0; 6], &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)]);
        let two = graph(&[0; 6], &[(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]);
        assert_eq!(compared(&ring, &two), Comparison::Different(Difference::Form));
        let little = Budget { work_max: 10, stop: &|| false };
        assert_eq!(compare(&ring, &two, little), Ok(Comparison::Undetermined));
    }
}
