//! What looks alike in a network: cells, orbits and automorphisms.

use canopy_canonical::{Analysis, Budget, Graph, WORK_STANDARD, analyse, graph_of};
use canopy_topology::Topology;
use serde::Serialize;

use crate::exit::Failure;

/// Most digits of a number of automorphisms that are written out.
const DIGITS_MAX: usize = 40;

/// Work for one topology: the same everywhere, so that what is determined is, too.
pub(super) const BUDGET: Budget<'static> = Budget { work_max: WORK_STANDARD, stop: &|| false };

/// Member of the JSON object of `show`.
#[derive(Serialize)]
pub(super) struct Symmetry {
    /// Whether the search came to its end. Otherwise there may be fewer orbits.
    determined: bool,
    /// Nodes of different cells differ in their links, or in the cells of their neighbours.
    cells: usize,
    rank_orbits: usize,
    link_orbits: usize,
    /// Whether every rank sees the same network; none where that is not known.
    rank_transitive: Option<bool>,
    /// How many automorphisms there are, where that is known and has few digits.
    automorphisms: Option<String>,
    automorphism_digits: Option<usize>,
}

/// The graph of a topology.
pub(super) fn graph(topology: &Topology) -> Result<Graph, Failure> {
    graph_of(topology, &[]).ok_or_else(|| Failure::fault("the topology is no graph; please report this"))
}

/// Everything about the symmetry of a graph.
pub(super) fn analysis(graph: &Graph) -> Result<Analysis, Failure> {
    analyse(graph, BUDGET).map_err(|error| Failure::fault(error.to_string()))
}

impl Symmetry {
    /// Finds out.
    pub(super) fn of(topology: &Topology) -> Result<Self, Failure> {
        let graph = graph(topology)?;
        let analysis = analysis(&graph)?;
        let is_first = |set: &&Vec<u32>| set.first().is_some_and(|&node| node < topology.rank_count());
        // Ranks come first, so an orbit of ranks starts with one.
        let rank_orbits = analysis.orbits.to_sets().iter().filter(is_first).count();
        let order = analysis.solution().map(|solution| solution.group_order.to_string());
        let determined = order.is_some();
        Ok(Self {
            determined,
            cells: analysis.cell_count(),
            rank_orbits,
            link_orbits: analysis.arc_orbits(&graph).count(),
            rank_transitive: (determined || rank_orbits == 1).then_some(rank_orbits == 1),
            automorphism_digits: order.as_ref().map(String::len),
            automorphisms: order.filter(|digits| digits.len() <= DIGITS_MAX),
        })
    }

    /// A line for people.
    pub(super) fn line(&self) -> String {
        let counted = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let cells = counted(self.cells, "cell of nodes", "cells of nodes");
        let links = counted(self.link_orbits, "orbit of links", "orbits of links");
        let ranks = match self.rank_orbits {
            1 => "every rank sees the same network".to_owned(),
            count => format!("{count} orbits of ranks"),
        };
        let order = match (&self.automorphisms, self.automorphism_digits) {
            (Some(order), _) if order == "1" => "no automorphism but the identity".to_owned(),
            (Some(order), _) => format!("{order} automorphisms"),
            (None, Some(digits)) => format!("about 10^{} automorphisms", digits.saturating_sub(1)),
            (None, None) => {
                return format!(
                    "symmetry   {ranks}, {links} at most, {cells}; not determined within the budget of work"
                );
            }
        };
        format!("symmetry   {ranks}, {links}, {cells}; {order}")
    }
}
