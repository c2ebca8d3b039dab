//! The packing problem of a topology in whole trees: how many per root, and how many each link can carry.

use canopy_optimize::{Arc, Digraph, Fraction, OptimumError, Stop, forest_optimum_for};
use canopy_topology::{LinkIndex, NodeIndex, Rank, Topology};
use num_integer::Integer;

use crate::error::SynthesisError;

/// Which ranks have data that every rank wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Roots {
    /// All of them, the same amount each.
    All,
    /// One.
    One(Rank),
}

/// Trees per root and capacities in trees, such that the optimal rate comes out whole everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instance {
    /// k: number of trees rooted at each root.
    pub(super) trees_per_root: u64,
    /// k for every root, 0 for the other nodes.
    pub(super) demands: Vec<u64>,
    /// U·b of each link of the topology: trees it can carry. 0 where no tree has a reason to go.
    pub(super) capacities: Vec<u128>,
}

/// Refuses a topology on which some rank can not reach another, or whose switches are not balanced.
///
/// O(links), and as often again as dead ends hang on dead ends.
pub(super) fn require_plannable(topology: &Topology) -> Result<(), SynthesisError> {
    match topology.first_unreachable() {
        Some((from, to)) => Err(disconnected(topology, from, to)),
        None => require_balanced_switches(topology, &useful_links(topology)),
    }
}

impl Instance {
    /// Scales a topology by its optimal rate.
    ///
    /// With `1/x* = p/q` in lowest terms and `d = gcd(q, {b})`, `U = p/d` is the least factor that makes `k = U·x* = q/d`
    /// and all `U·b` integers.
    ///
    /// * **Source.** Zhao 2026, §4.5.1 and theorem 23. A single root only changes the weights in 1/x* (Edmonds).
    /// * **In.** A topology that passed [`require_plannable`]. **Errors.** Too many trees, stopped.
    /// * **Cost.** That of [`forest_optimum_for`].
    pub(super) fn new(topology: &Topology, roots: Roots, stop: &dyn Stop) -> Result<Self, SynthesisError> {
        let useful = useful_links(topology);
        let rank_count = topology.rank_count();
        let is_root = |node: u32| match roots {
            Roots::All => node < rank_count,
            Roots::One(root) => node == root.number(),
        };
        let node_count = u32::try_from(topology.nodes().len()).expect("limits keep node counts within u32");
        let weights: Vec<u64> = (0..node_count).map(|node| u64::from(is_root(node))).collect();
        let terminals: Vec<bool> = (0..node_count).map(|node| node < rank_count).collect();
        let Fraction { numerator: p, denominator: q } = inverse_rate(topology, &useful, &weights, &terminals, stop)?;

        let bandwidths = || topology.links().iter().map(|link| u128::from(link.capacity.bytes_per_sec()));
        let divisor = bandwidths().zip(&useful).filter(|&(_, &useful)| useful).fold(q, |d, (b, _)| d.gcd(&b));
        let too_many = || SynthesisError::TooManyTrees { trees_per_rank: q / divisor, rank_count };
        let trees_per_root = u64::try_from(q / divisor).map_err(|_| too_many())?;
        trees_per_root.checked_mul(u64::from(rank_count)).ok_or_else(too_many)?;
        // p and q have no common factor, so U·b = p·b/d is whole only because d divides b.
        let scaled = |b: u128| (b / divisor).checked_mul(p).ok_or_else(too_many);
        let capacities = bandwidths().zip(&useful).map(|(b, &useful)| if useful { scaled(b) } else { Ok(0) });
        Ok(Self {
            trees_per_root,
            demands: weights.iter().map(|&weight| weight * trees_per_root).collect(),
            capacities: capacities.collect::<Result<_, _>>()?,
        })
    }

    /// Σ of all demands and capacities: whoever computes in a type that holds four times this never overflows.
    pub(super) fn magnitude(&self) -> Option<u128> {
        let demands = self.demands.iter().map(|&demand| u128::from(demand));
        demands.chain(self.capacities.iter().copied()).try_fold(0_u128, u128::checked_add)
    }
}

fn inverse_rate(
    topology: &Topology,
    useful: &[bool],
    weights: &[u64],
    terminals: &[bool],
    stop: &dyn Stop,
) -> Result<Fraction, SynthesisError> {
    let links = topology.links().iter().zip(useful).filter(|&(_, &useful)| useful);
    let arcs = links.map(|(link, _)| Arc {
        from: link.from.number(),
        to: link.to.number(),
        capacity: link.capacity.bytes_per_sec(),
    });
    let graph =
        Digraph { node_count: u32::try_from(weights.len()).expect("node counts are u32"), arcs: arcs.collect() };
    match forest_optimum_for(&graph, weights, terminals, stop) {
        Ok(optimum) => Ok(optimum.inverse_rate),
        Err(OptimumError::Stopped(_)) => Err(SynthesisError::Stopped),
        Err(other) => Err(SynthesisError::Broken { what: format!("no optimum for a connected network: {other}") }),
    }
}

fn disconnected(topology: &Topology, from: Rank, to: Rank) -> SynthesisError {
    let id = |rank: Rank| topology.node(rank.node()).id.clone();
    SynthesisError::Disconnected { from: id(from), from_rank: from.number(), to: id(to), to_rank: to.number() }
}

/// Leaves out switches through which nothing can pass: those with no way in, no way out, or only one neighbour. Taking
/// one away can make the next one useless.
///
/// O(switches · links) at worst, one or two rounds in practice.
fn useful_links(topology: &Topology) -> Vec<bool> {
    let mut useful = vec![true; topology.links().len()];
    loop {
        let dead = dead_ends(topology, &useful);
        let mut changed = false;
        for (link, useful) in topology.links().iter().zip(&mut useful) {
            if *useful && (dead[link.from.index()] || dead[link.to.index()]) {
                *useful = false;
                changed = true;
            }
        }
        if !changed {
            return useful;
        }
    }
}

/// Marks switches that some useful link touches but that no route can cross.
fn dead_ends(topology: &Topology, useful: &[bool]) -> Vec<bool> {
    /// Neighbours on one side, as far as it matters.
    #[derive(Clone, Copy, PartialEq)]
    enum Side {
        None,
        One(NodeIndex),
        Several,
    }
    let widen = |side: &mut Side, node: NodeIndex| match *side {
        Side::None => *side = Side::One(node),
        Side::One(known) if known != node => *side = Side::Several,
        _ => {}
    };
    let mut sides = vec![(Side::None, Side::None); topology.nodes().len()];
    for (link, _) in topology.links().iter().zip(useful).filter(|&(_, &useful)| useful) {
        widen(&mut sides[link.from.index()].1, link.to);
        widen(&mut sides[link.to.index()].0, link.from);
    }
    let is_dead = |(entering, leaving): (Side, Side)| match (entering, leaving) {
        (Side::None, _) | (_, Side::None) => true,
        (Side::One(from), Side::One(to)) => from == to,
        _ => false,
    };
    let rank_count = topology.rank_count() as usize;
    sides.into_iter().enumerate().map(|(node, sides)| node >= rank_count && is_dead(sides)).collect()
}

/// Splitting a switch off preserves the optimum only where all that enters it can also leave it, and the reverse.
///
/// The article asks the same of every node. For ranks it is not needed: without switches Edmonds' theorem packs trees
/// in any digraph, and Bang-Jensen, Frank and Jackson (1995) ask for balance only at nodes that are no terminals.
fn require_balanced_switches(topology: &Topology, useful: &[bool]) -> Result<(), SynthesisError> {
    let mut sums = vec![(0_u128, 0_u128); topology.nodes().len()];
    for (link, _) in topology.links().iter().zip(useful).filter(|&(_, &useful)| useful) {
        let capacity = u128::from(link.capacity.bytes_per_sec());
        sums[link.from.index()].1 += capacity;
        sums[link.to.index()].0 += capacity;
    }
    let switches = topology.nodes().iter().zip(sums).skip(topology.rank_count() as usize);
    match switches.into_iter().find(|(_, (entering, leaving))| entering != leaving) {
        Some((node, (entering, leaving))) => {
            Err(SynthesisError::NotEulerian { node: node.id.clone(), entering, leaving })
        }
        None => Ok(()),
    }
}

/// For each link of `topology.transposed()`, the link of `topology` it turns around.
pub(super) fn links_behind_transposed(topology: &Topology) -> Vec<LinkIndex> {
    let mut behind: Vec<LinkIndex> = (0_u32..).take(topology.links().len()).map(LinkIndex::new).collect();
    // The order in which a topology keeps its links, seen from the other end.
    behind.sort_unstable_by_key(|&index| {
        let link = topology.link(index);
        (link.to, link.from, link.latency)
    });
    behind
}
