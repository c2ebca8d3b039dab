//! The whole answer for one graph.

#[cfg(test)]
mod tests;

use num_bigint::BigUint;

use crate::automorphism::Automorphism;
use crate::budget::{Budget, Ended, Meter, Stopped};
use crate::graph::{Arc, Graph};
use crate::orbits::Orbits;
use crate::partition::Partition;
use crate::reduce::Part;
use crate::refine::Refiner;
use crate::search::Search;

/// What is known about the symmetry of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// By node: its cell, from 0 on. Nodes of different cells differ in how many arcs of some weight they have to some cell;
    /// those of one cell may differ otherwise.
    pub cells: Vec<u32>,
    /// Verified automorphisms. Where the search came to its end, every automorphism is a product of them.
    pub generators: Vec<Automorphism>,
    /// Which nodes the generators exchange.
    pub orbits: Orbits,
    /// Whether the search came to its end.
    pub outcome: Outcome,
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With everything known.
    Determined(Solution),
    /// The work allowed was not enough. Nodes of one orbit are alike; those of two orbits may be.
    BudgetSpent,
}

/// What only a search that came to its end knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// By node: its number in the canonical form, where nodes are sorted by colour first.
    pub places: Vec<u32>,
    /// Number of automorphisms.
    pub group_order: BigUint,
}

impl Solution {
    /// The canonical form of the graph that this was found for: of two graphs the same if, and only if, they are isomorphic.
    /// O(arcs log arcs).
    pub fn form(&self, graph: &Graph) -> Graph {
        graph.renumbered(&self.places).expect("every node has a place of its own in the canonical form")
    }
}

impl Analysis {
    /// Number of cells.
    pub fn cell_count(&self) -> usize {
        self.cells.iter().max().map_or(0, |&last| last as usize + 1)
    }

    /// Which arcs the generators exchange, by index into [`Graph::arcs`].
    ///
    /// * **In.** The graph that this was found for. **Cost.** O(log degree) per generator and arc with an end that it moves.
    pub fn arc_orbits(&self, graph: &Graph) -> Orbits {
        let arcs = graph.arcs();
        let mut orbits = Orbits::new(arcs.len());
        let mut entering = vec![Vec::new(); graph.node_count()];
        for (index, arc) in (0_u32..).zip(arcs) {
            entering[arc.to as usize].push(index);
        }
        let mut image: Vec<u32> = (0_u32..).take(graph.node_count()).collect();
        for generator in &self.generators {
            for &(from, to) in generator.moves() {
                image[from as usize] = to;
            }
            for &(node, _) in generator.moves() {
                let leaving = arcs.partition_point(|arc| arc.from < node)..arcs.partition_point(|arc| arc.from <= node);
                let leaving = leaving.filter_map(|index| u32::try_from(index).ok());
                for index in leaving.chain(entering[node as usize].iter().copied()) {
                    let arc = arcs[index as usize];
                    let moved = Arc { from: image[arc.from as usize], to: image[arc.to as usize], ..arc };
                    // Of several arcs alike, all are joined with the first.
                    let first = arcs.partition_point(|other| *other < moved);
                    orbits.join(index, u32::try_from(first).expect("arcs are counted in u32"));
                }
            }
            for &(from, _) in generator.moves() {
                image[from as usize] = from;
            }
        }
        orbits
    }

    /// What only a search that came to its end knows.
    pub const fn solution(&self) -> Option<&Solution> {
        match &self.outcome {
            Outcome::Determined(solution) => Some(solution),
            Outcome::BudgetSpent => None,
        }
    }
}

/// Finds the automorphisms of a graph and its canonical form.
///
/// * **Source.** McKay and Piperno 2014, §2–3, on components of what refinement leaves.
/// * **In.** Any graph. The cells do not count against the budget. **Out.** The same for the same graph and budget.
/// * **Errors.** Stopped. **Cost.** O(arcs log nodes) where refinement and components suffice, that times a few per
///   generator on most others; exponential on graphs made for it, which is what the budget is for.
pub fn analyse(graph: &Graph, budget: Budget<'_>) -> Result<Analysis, Stopped> {
    let partition = refined(graph, budget)?;
    let cells = numbered(&partition);
    let mut search = Search::new(graph, Meter::new(budget));
    match search.run(&partition) {
        Ok(solved) => {
            let mut orbits = Orbits::new(graph.node_count());
            for &(from, to) in solved.generators.iter().flat_map(Automorphism::moves) {
                orbits.join(from, to);
            }
            let mut order = solved.order;
            order.sort_by_key(|&node| graph.classes()[node as usize]);
            let mut places = vec![0; order.len()];
            for (place, &node) in (0_u32..).zip(&order) {
                places[node as usize] = place;
            }
            let group_order = product(&solved.factors);
            let outcome = Outcome::Determined(Solution { places, group_order });
            Ok(Analysis { cells, generators: solved.generators, orbits, outcome })
        }
        Err(Ended::Spent) => {
            let (generators, orbits) = search.into_found();
            Ok(Analysis { cells, generators, orbits, outcome: Outcome::BudgetSpent })
        }
        Err(Ended::Stopped) => Err(Stopped),
    }
}

/// Finds automorphisms of a graph alone: every one is a product of them, if the budget sufficed.
///
/// As [`analyse`], without what a canonical form takes; much faster where many nodes are alike.
///
/// # Errors
/// Stopped.
pub fn automorphisms(graph: &Graph, budget: Budget<'_>) -> Result<Vec<Automorphism>, Stopped> {
    let partition = refined(graph, budget)?;
    let mut search = Search::for_automorphisms(graph, Meter::new(budget));
    match search.run(&partition) {
        Ok(solved) => Ok(solved.generators),
        Err(Ended::Spent) => Ok(search.into_found().0),
        Err(Ended::Stopped) => Err(Stopped),
    }
}

/// By node: its cell, from 0 on, as in [`Analysis::cells`]. O(arcs log nodes).
pub(crate) fn cells_of(graph: &Graph, budget: Budget<'_>) -> Result<Vec<u32>, Stopped> {
    refined(graph, budget).map(|partition| numbered(&partition))
}

fn refined(graph: &Graph, budget: Budget<'_>) -> Result<Partition, Stopped> {
    let mut partition = Partition::of_tags(graph.classes());
    let splitters: Vec<u32> = partition.cells().collect();
    let mut unlimited = Meter::unlimited(budget);
    let mut refiner = Refiner::new(graph.node_count());
    refiner.refine(&Part::whole(graph), &mut partition, splitters, &mut unlimited).map_err(|_| Stopped)?;
    Ok(partition)
}

fn numbered(partition: &Partition) -> Vec<u32> {
    let mut cells = vec![0; partition.order().len()];
    for (number, cell) in (0_u32..).zip(partition.cells()) {
        partition.members(cell).iter().for_each(|&node| cells[node as usize] = number);
    }
    cells
}

/// Multiplied by halves, so that large numbers meet large ones.
fn product(factors: &[u32]) -> BigUint {
    match factors {
        [] => BigUint::from(1_u32),
        [factor] => BigUint::from(*factor),
        _ => {
            let (left, right) = factors.split_at(factors.len() / 2);
            product(left) * product(right)
        }
    }
}
