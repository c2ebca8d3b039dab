//! `flow`: gather and scatter at the optimum, as one maximum flow from or to the root.
//!
//! What the root has for each rank are different chunks, so nothing is gained by copying, and the only limits are cuts
//! around the root: a flow that fills them exists (max-flow min-cut), on any network, and is taken apart into paths.

use canopy_optimize::{Arc, Digraph, FlowNetwork, OptimumError, Stop, scatter_optimum};
use canopy_schedule::{CollectiveKind, Flow, Shape, Shares};
use canopy_topology::{LinkIndex, NodeIndex, Rank, Topology};
use num_integer::Integer as _;

use crate::algorithm::{HeededLimits, Kept, Memory, Solver, SynthesisRequest, Synthesized, Synthesizer, Task};
use crate::concurrent::AllToAllFlow;
use crate::error::SynthesisError;
use crate::found::Found;
use crate::parts::FlowParts;
use crate::peel::Peeler;
use crate::progress::Stage;
use crate::reach::{ask, require_reach};

/// One maximum flow, or concurrent ones.
pub(crate) static FLOW: Synthesizer = Synthesizer {
    limits: HeededLimits::Paths,
    memory: Memory { solver: Solver::Flow, ..Memory::USUAL },
    kept: Kept::ByShape,
    ..Synthesizer::new(
        "flow",
        "one maximum flow from or to the root; for all-to-all, concurrent flows between all ranks (Basu 2024)",
        &[CollectiveKind::Gather, CollectiveKind::Scatter, CollectiveKind::AllToAll],
        planned,
    )
};

/// A plan of one flow or, of an all-to-all, of those that are known or found.
fn planned(task: &Task<'_>) -> Result<Synthesized, SynthesisError> {
    let &Task { topology, request, stop, progress, .. } = task;
    let &SynthesisRequest { collective, ref shares, limits, .. } = request;
    let flow = match (collective.kind(), task.known) {
        (CollectiveKind::AllToAll, Some(Found::Flow(known))) => known.plan(topology, limits, stop, progress)?,
        (CollectiveKind::AllToAll, _) => {
            let found = AllToAllFlow::of(topology, shares, limits.tolerance, stop, progress)?;
            found.plan(topology, limits, stop, progress)?
        }
        _ => plan(task)?,
    };
    Ok(task.planned(Shape::Flow(flow)))
}

/// Numbers of chunks per share that are tried in place of the one that makes all capacities whole.
const FEWER_TRIED: u64 = 12;

/// Plans gather or scatter at the greatest rate there is.
///
/// With 1/x* = max w(V∖S)/B⁺(S) over the sets S that hold the root, w being the weights of the ranks' shares, k chunks for
/// each unit of weight need the time k/x*, in which a link carries b·k/x* of them. The least k that makes these whole numbers always serves, and smaller ones do
/// where the flow fits into the whole parts.
///
/// * **Source.** Max-flow min-cut; [`scatter_optimum`] for 1/x*. Gather is scatter with all links turned around.
/// * **In.** Any topology on which data of the root can go where it must. **Out.** A flow that reaches the bound exactly,
///   on simple paths.
/// * **Errors.** Disconnected, another collective, capacities too uneven to count in 64 bits, too many hops, stopped.
/// * **Cost.** Some maximum flows, and O(links · path length) for the paths.
fn plan(task: &Task<'_>) -> Result<Flow, SynthesisError> {
    let &Task { topology, request, stop, progress, .. } = task;
    let &SynthesisRequest { collective, ref shares, .. } = request;
    let outwards = match collective.kind() {
        CollectiveKind::Scatter => true,
        CollectiveKind::Gather => false,
        other => return Err(FLOW.unsupported(other)),
    };
    require_reach(topology, collective, shares)?;
    let root = collective.root().expect("gather and scatter have a root");
    progress.report(Stage::Optimum, 0, 1);
    let network = Network { topology, shares, root, outwards };
    let (chunks_per_share, amounts) = network.amounts(stop)?;
    progress.report(Stage::Routes, 0, u64::from(topology.rank_count()));
    let mut peeler = Peeler::new(topology, root.node(), outwards, amounts);
    let mut parts = FlowParts::new(topology, chunks_per_share);
    for rank in topology.ranks().filter(|&rank| network.weight(rank) > 0) {
        ask(stop)?;
        let chunk_count = chunks_per_share * network.weight(rank);
        for (chunk_count, mut links) in peeler.paths(rank.node(), chunk_count) {
            let (source, destination) = if outwards { (root, rank) } else { (rank, root) };
            if outwards {
                links.reverse();
            }
            parts.add_path(source, destination, chunk_count, &links)?;
        }
        progress.report(Stage::Routes, u64::from(rank.number()) + 1, u64::from(topology.rank_count()));
    }
    Ok(parts.finish())
}

/// The network as the root sees it: data flows away from it.
struct Network<'a> {
    topology: &'a Topology,
    shares: &'a Shares,
    root: Rank,
    /// Whether data flows along the links, or against them.
    outwards: bool,
}

impl Network<'_> {
    /// Where a link starts and ends, seen so.
    fn ends(&self, link: LinkIndex) -> (NodeIndex, NodeIndex) {
        let link = self.topology.link(link);
        if self.outwards { (link.from, link.to) } else { (link.to, link.from) }
    }

    fn links(&self) -> impl Iterator<Item = LinkIndex> + use<> {
        (0..u32::try_from(self.topology.links().len()).expect("links are counted in u32")).map(LinkIndex::new)
    }

    fn node_count(&self) -> u32 {
        u32::try_from(self.topology.nodes().len()).expect("nodes are counted in u32")
    }

    /// Weight of what the root has for a rank, or the rank for the root.
    fn weight(&self, rank: Rank) -> u64 {
        if rank == self.root { 0 } else { self.shares.weight(rank) }
    }

    /// Chunks per share (of weight 1), and how many of all chunks each link carries.
    fn amounts(&self, stop: &dyn Stop) -> Result<(u64, Vec<u64>), SynthesisError> {
        let capacity = |link: LinkIndex| self.topology.link(link).capacity.bytes_per_sec();
        let arc = |link: LinkIndex| {
            let (from, to) = self.ends(link);
            Arc { from: from.number(), to: to.number(), capacity: capacity(link) }
        };
        let graph = Digraph { node_count: self.node_count(), arcs: self.links().map(arc).collect() };
        let mut weights: Vec<u64> = self.topology.ranks().map(|rank| self.weight(rank)).collect();
        weights.resize(graph.node_count as usize, 0);
        let (rank_count, weight_total) =
            (self.topology.rank_count(), self.shares.weight_total(self.topology.rank_count()));
        let (inverse_rate, _) =
            scatter_optimum(&graph, &weights, self.root.node().number(), stop).map_err(|error| match error {
                OptimumError::Stopped(_) => SynthesisError::Stopped,
                OptimumError::TooLarge { weight } => {
                    SynthesisError::TooManyTrees { trees_per_rank: weight, rank_count }
                }
                error => SynthesisError::Broken { what: format!("the optimum of a connected network: {error}") },
            })?;
        let unit = self.links().fold(inverse_rate.denominator, |unit, link| unit.gcd(&u128::from(capacity(link))));
        let whole = inverse_rate.denominator / unit;
        let too_many = SynthesisError::TooManyTrees { trees_per_rank: whole, rank_count };
        let counts = |chunks: u128| chunks.checked_mul(weight_total).is_some_and(|all| u64::try_from(all).is_ok());
        let fewer = |&fewer: &u64| u128::from(fewer) < whole && counts(fewer.into());
        for chunks_per_share in (1..=FEWER_TRIED).take_while(fewer) {
            if let Some(amounts) = self.flow(chunks_per_share, inverse_rate, stop)? {
                return Ok((chunks_per_share, amounts));
            }
        }
        // More would not be counted by chunk numbers, which every plan needs.
        let whole = u64::try_from(whole).ok().filter(|&whole| counts(whole.into()));
        let chunks_per_share = whole.ok_or(too_many)?;
        let amounts = self.flow(chunks_per_share, inverse_rate, stop)?;
        let broken = || SynthesisError::Broken { what: "the flow of the optimum does not fit".to_owned() };
        Ok((chunks_per_share, amounts.ok_or_else(broken)?))
    }

    /// What each link carries where every rank gets so many chunks in the time that the optimum allows; none where whole
    /// chunks do not fit.
    fn flow(
        &self,
        chunks_per_share: u64,
        inverse_rate: canopy_optimize::Fraction,
        stop: &dyn Stop,
    ) -> Result<Option<Vec<u64>>, SynthesisError> {
        let chunks = |rank: Rank| i128::from(chunks_per_share) * i128::from(self.weight(rank));
        let total = self.topology.ranks().map(chunks).sum();
        let mut network = FlowNetwork::<i128>::new(self.node_count() + 1);
        let sink = self.node_count();
        let mut arcs = Vec::with_capacity(self.topology.links().len());
        for link in self.links() {
            let (from, to) = self.ends(link);
            let bandwidth = u128::from(self.topology.link(link).capacity.bytes_per_sec());
            // Beyond the total it makes no difference, nor does it where the product is beyond 128 bits.
            let time = inverse_rate.numerator.checked_mul(u128::from(chunks_per_share));
            let product = time.and_then(|time| time.checked_mul(bandwidth));
            let fits = product.map_or(total, |product| {
                i128::try_from(product / inverse_rate.denominator).map_or(total, |fits| fits.min(total))
            });
            arcs.push(network.add_arc(from.number(), to.number(), fits));
        }
        for rank in self.topology.ranks().filter(|&rank| self.weight(rank) > 0) {
            network.add_arc(rank.node().number(), sink, chunks(rank));
        }
        network.set_supply(self.root.node().number(), i128::MAX);
        let found = network.pull(sink, total, stop).map_err(|_| SynthesisError::Stopped)?;
        if found < total {
            return Ok(None);
        }
        let amount = |arc| u64::try_from(network.flow(arc)).expect("at least nothing, at most the total, which fits");
        Ok(Some(arcs.into_iter().map(amount).collect()))
    }
}
