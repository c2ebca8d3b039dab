//! The whole answer for one graph.

#[cfg(test)]
mod tests;

use num_bigint::BigUint;

use crate::automorphism::Automorphism;
use crate::budget::{Budget, Ended, Meter, Stopped};
use crate::graph::Graph;
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
    /// By node: its number in the canonical form. Two graphs are isomorphic if, and only if, they are equal after
    /// [`Graph::renumbered`] by these. Nodes are sorted by colour first.
    pub places: Vec<u32>,
    /// Number of automorphisms.
    pub group_order: BigUint,
}

impl Analysis {
    /// Number of cells.
    pub fn cell_count(&self) -> usize {
        self.cells.iter().max().map_or(0, |&last| last as usize + 1)
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
    let mut partition = Partition::of_tags(graph.classes());
    let splitters: Vec<u32> = partition.cells().collect();
    let mut refiner = Refiner::new(graph.node_count());
    let mut unlimited = Meter::unlimited(budget);
    refiner.refine(&Part::whole(graph), &mut partition, splitters, &mut unlimited).map_err(|_| Stopped)?;
    let mut cells = vec![0; graph.node_count()];
    for (number, cell) in (0_u32..).zip(partition.cells()) {
        partition.members(cell).iter().for_each(|&node| cells[node as usize] = number);
    }

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
