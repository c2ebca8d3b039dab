//! The network as the solver sees it, and its translations.

use std::collections::HashMap;

use canopy_optimize::{Commodity, ConcurrentError, ConcurrentProblem, Digraph, Stop};
use canopy_schedule::Shares;
use canopy_topology::{NodeIndex, Topology};

use crate::all_pairs::{commodities, commodity, digraph, is_uniform};
use crate::error::SynthesisError;
use crate::symmetry::{boxes, translations};

/// A problem of concurrent flows with everything it refers to.
#[derive(Clone, Debug)]
pub(super) struct Network {
    /// Nodes and arcs are those of the topology, by index.
    graph: Digraph,
    commodities: Vec<Commodity>,
    is_uniform: bool,
    /// By arc, its orbit under translations; empty without any.
    orbits: Vec<u32>,
    /// By rank and orbit, the arc that leaves the rank; empty without translations.
    leaving: Vec<Vec<u32>>,
}

impl Network {
    /// What every rank wants of every other. Where that is always as much, rank 0 stands for all if there are translations.
    ///
    /// * **Errors.** More variables than `variables_max`, stopped.
    pub(super) fn of(
        topology: &Topology,
        shares: &Shares,
        variables_max: u64,
        stop: &dyn Stop,
    ) -> Result<Self, SynthesisError> {
        let graph = digraph(topology);
        let (ranks, links) = (topology.rank_count(), graph.arcs.len());
        let is_uniform = is_uniform(shares);
        let found = if is_uniform { translated(topology, &graph, stop)? } else { None };
        let sources = if found.is_some() { 1 } else { u64::from(ranks) };
        if sources * links as u64 > variables_max {
            return Err(SynthesisError::TooManyVariables { ranks, links, limit: variables_max });
        }
        Ok(match found {
            Some((orbits, leaving)) => {
                let first = Commodity { copies: u64::from(ranks), ..commodity(ranks, shares, 0) };
                Self { graph, commodities: vec![first], is_uniform, orbits, leaving }
            }
            None => {
                let commodities = commodities(ranks, shares);
                Self { graph, commodities, is_uniform, orbits: Vec::new(), leaving: Vec::new() }
            }
        })
    }

    /// Whether all ranks want as much of all others, so that they can stand for each other.
    pub(super) const fn is_uniform(&self) -> bool {
        self.is_uniform
    }

    pub(super) fn problem(&self) -> Result<ConcurrentProblem<'_>, ConcurrentError> {
        ConcurrentProblem::new(&self.graph, &self.commodities, &self.orbits)
    }

    /// Whether rank 0 stands for all.
    pub(super) fn is_translated(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// The orbit of an arc under translations.
    pub(super) fn orbit(&self, arc: u32) -> u32 {
        self.orbits[arc as usize]
    }

    /// By rank and orbit, the arc that leaves the rank.
    pub(super) fn leaving(&self) -> &[Vec<u32>] {
        &self.leaving
    }
}

/// By arc its orbit, and by rank and orbit the arc that leaves it.
type Orbits = (Vec<u32>, Vec<Vec<u32>>);

/// Orbits of arcs under translations: exactly one of them moves rank 0 to each rank, so of each orbit one arc leaves each
/// rank, and what one rank's paths use of an orbit each of its arcs carries. `None` for networks with switches, parallel
/// links that differ, or without translations.
fn translated(topology: &Topology, graph: &Digraph, stop: &dyn Stop) -> Result<Option<Orbits>, SynthesisError> {
    let rank_count = topology.rank_count() as usize;
    if topology.nodes().len() != rank_count {
        return Ok(None);
    }
    let arcs = graph.arcs.iter().map(|arc| (arc.from, arc.to, u128::from(arc.capacity)));
    let Some(translations) = translations(rank_count, arcs, &boxes(topology), stop)? else { return Ok(None) };
    // Links are sorted by their ends: parallel ones are told apart by their order.
    let places = |rank: u32| {
        let links = topology.links_from(NodeIndex::new(rank)).map(|link| link.number());
        let mut count: HashMap<u32, u32> = HashMap::new();
        links.map(move |link| {
            let to = graph.arcs[link as usize].to;
            let place = count.entry(to).and_modify(|place| *place += 1).or_insert(0);
            ((to, *place), link)
        })
    };
    let first: Vec<((u32, u32), u32)> = places(0).collect();
    let mut orbits = vec![u32::MAX; graph.arcs.len()];
    let mut leaving = Vec::with_capacity(rank_count);
    for (rank, image) in (0_u32..).zip(&translations.image) {
        let here: HashMap<(u32, u32), u32> = places(rank).collect();
        let mut moved = Vec::with_capacity(first.len());
        for (orbit, &((to, place), link)) in (0_u32..).zip(&first) {
            let Some(&own) = here.get(&(image[to as usize], place)) else { return Ok(None) };
            if graph.arcs[own as usize].capacity != graph.arcs[link as usize].capacity {
                return Ok(None);
            }
            orbits[own as usize] = orbit;
            moved.push(own);
        }
        leaving.push(moved);
    }
    // Each rank has as many links, so all of them are reached.
    Ok(orbits.iter().all(|&orbit| orbit != u32::MAX).then_some((orbits, leaving)))
}
