//! Networks that look the same from several ranks, though not from all: one rank of each kind stands for the others.
//!
//! Loads are averages over all automorphisms, so the flow of a rank is the average of what automorphisms make of the flow of
//! the rank that stands for it. Only groups small enough to be written down are used.

use canopy_canonical::{Budget, WORK_SERVED, analyse, graph_of};
use canopy_optimize::{Commodity, ConcurrentError, ConcurrentProblem, Digraph, ProposedFlow, Stop};
use canopy_topology::Topology;

use crate::error::SynthesisError;
use crate::reach::ask;

/// Most automorphisms, and nodes that all of them together move.
const ELEMENTS_MAX: usize = 512;
const MOVES_MAX: usize = 1 << 22;
/// Ranks per kind at least, on average.
const RANKS_PER_KIND: usize = 4;

/// All automorphisms of a network, each verified link by link, and what they exchange.
pub(super) struct Symmetric {
    /// One for each kind of ranks, with as many copies as there are of the kind.
    commodities: Vec<Commodity>,
    /// By arc.
    orbits: Vec<u32>,
    /// By automorphism, where each node goes, and each arc.
    elements: Vec<(Vec<u32>, Vec<u32>)>,
}

impl Symmetric {
    /// Automorphisms and orbits; `None` if there are too few, too many, or they are not found within a quarter of a second.
    ///
    /// * **In.** `all`: the flows of all ranks, by rank, which demand alike. **Errors.** Stopped.
    /// * **Cost.** O(automorphisms · links).
    pub(super) fn of(
        topology: &Topology,
        (graph, all): (&Digraph, &[Commodity]),
        stop: &dyn Stop,
    ) -> Result<Option<Self>, SynthesisError> {
        let node_count = topology.nodes().len();
        let Some(coloured) = graph_of(topology, &[]) else { return Ok(None) };
        let budget = Budget { work_max: WORK_SERVED, stop: &|| stop.is_requested() };
        let analysis = analyse(&coloured, budget).map_err(|_| SynthesisError::Stopped)?;
        let kinds: Vec<Vec<u32>> =
            analysis.orbits.to_sets().into_iter().filter(|kind| (kind[0] as usize) < all.len()).collect();
        if kinds.len() * RANKS_PER_KIND > all.len() {
            return Ok(None);
        }
        let generators: Vec<Vec<u32>> =
            analysis.generators.iter().map(|generator| generator.to_table(node_count)).collect();
        let Some(nodes) = closure(&generators, node_count, stop)? else { return Ok(None) };
        let mut elements = Vec::with_capacity(nodes.len());
        for nodes in nodes {
            ask(stop)?;
            let Some(arcs) = moved_arcs(topology, &nodes) else { return Ok(None) };
            elements.push((nodes, arcs));
        }
        let mut orbits = vec![u32::MAX; graph.arcs.len()];
        let mut count = 0;
        for arc in 0..orbits.len() {
            if orbits[arc] == u32::MAX {
                elements.iter().for_each(|(_, arcs)| orbits[arcs[arc] as usize] = count);
                count += 1;
            }
        }
        let first = |kind: &Vec<u32>| Commodity { copies: kind.len() as u64, ..all[kind[0] as usize].clone() };
        Ok(Some(Self { commodities: kinds.iter().map(first).collect(), orbits, elements }))
    }

    pub(super) fn problem<'a>(&'a self, graph: &'a Digraph) -> Result<ConcurrentProblem<'a>, ConcurrentError> {
        ConcurrentProblem::new(graph, &self.commodities, &self.orbits)
    }

    /// Flows of all ranks, by rank, from those of one rank of each kind.
    ///
    /// O(automorphisms · amounts + ranks · links).
    pub(super) fn spread(
        &self,
        graph: &Digraph,
        rank_count: usize,
        flow: &ProposedFlow,
        stop: &dyn Stop,
    ) -> Result<ProposedFlow, SynthesisError> {
        let mut amounts = vec![Vec::new(); rank_count];
        let mut sums = vec![0.0; graph.arcs.len()];
        for (commodity, own) in self.commodities.iter().zip(&flow.amounts) {
            // Of all automorphisms, as many move it to any one rank of its kind as to any other.
            let mut by_rank: Vec<(u32, &Vec<u32>)> =
                self.elements.iter().map(|(nodes, arcs)| (nodes[commodity.source as usize], arcs)).collect();
            by_rank.sort_by_key(|&(rank, _)| rank);
            for moved in by_rank.chunk_by(|left, right| left.0 == right.0) {
                ask(stop)?;
                for &(_, arcs) in moved {
                    own.iter().for_each(|&(arc, amount)| sums[arcs[arc as usize] as usize] += amount);
                }
                let count = u32::try_from(moved.len()).map_or(f64::MAX, f64::from);
                let all = (0_u32..).zip(&mut sums).filter(|(_, sum)| **sum > 0.0);
                amounts[moved[0].0 as usize] = all.map(|(arc, sum)| (arc, std::mem::take(sum) / count)).collect();
            }
        }
        Ok(ProposedFlow { amounts })
    }
}

/// All products of permutations; `None` where there are too many.
fn closure(
    generators: &[Vec<u32>],
    node_count: usize,
    stop: &dyn Stop,
) -> Result<Option<Vec<Vec<u32>>>, SynthesisError> {
    let identity: Vec<u32> = (0_u32..).take(node_count).collect();
    let mut known = std::collections::BTreeSet::from([identity.clone()]);
    let mut elements = vec![identity];
    let mut next = 0;
    while next < elements.len() {
        ask(stop)?;
        for generator in generators {
            let product: Vec<u32> = elements[next].iter().map(|&moved| generator[moved as usize]).collect();
            if known.insert(product.clone()) {
                elements.push(product);
                if elements.len() > ELEMENTS_MAX || elements.len() * node_count > MOVES_MAX {
                    return Ok(None);
                }
            }
        }
        next += 1;
    }
    Ok(Some(elements))
}

/// Where each link goes; `None` if one is lost.
fn moved_arcs(topology: &Topology, nodes: &[u32]) -> Option<Vec<u32>> {
    let moved = |link: &canopy_topology::Link| {
        let (from, to) = (nodes[link.from.index()], nodes[link.to.index()]);
        let mut candidates = topology.links_from(canopy_topology::NodeIndex::new(from));
        let found = candidates.find(|&other| {
            let other = topology.link(other);
            (other.to.number(), other.latency, other.capacity) == (to, link.latency, link.capacity)
        });
        found.map(|link| link.number())
    };
    topology.links().iter().map(moved).collect()
}
