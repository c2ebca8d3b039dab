//! The packing problem of a topology in whole trees: how many per root, and how many each link can carry.

mod near;
pub(super) mod whole;

use std::num::NonZeroU64;

use canopy_optimize::{Arc, BalancedOptimum, Digraph, Fraction, OptimumError, Stop, balanced_optimum};
use canopy_schedule::{Action, Shares};
use canopy_topology::{LinkIndex, NodeIndex, Rank, Topology};
use num_integer::Integer;

use crate::error::SynthesisError;
use crate::forest::condition::Condition;
use crate::limits::TreeLimits;
use crate::reach::{disconnected, first_not_reaching, first_unreachable_from};
use crate::tolerance::Tolerance;

/// Numbers of trees per root that are tried in place of the one that makes all capacities whole.
const FEWER_TRIED: u64 = 12;

/// Chunks per unit of share of several networks whose own numbers have no common multiple that can be counted: together
/// they lose some millionths of the rate.
const CHUNKS_TOGETHER: NonZeroU64 = NonZeroU64::new(1 << 20).unwrap();

/// Which ranks have data that every rank wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Roots<'a> {
    /// All of them, in proportion to their shares.
    All(&'a Shares),
    /// One.
    One(Rank),
}

impl Roots<'_> {
    /// How much data a rank has, in units of k chunks.
    pub(super) fn weight(self, rank: Rank) -> u64 {
        match self {
            Self::All(shares) => shares.weight(rank),
            Self::One(root) => u64::from(rank == root),
        }
    }

    /// k chunks of each unit are numbered in 64 bits: the units there are, at least one for each rank.
    fn unit_count(self, rank_count: u32) -> Option<u64> {
        let units = match self {
            Self::All(shares) => shares.weight_total(rank_count),
            Self::One(_) => 1,
        };
        u64::try_from(units.max(rank_count.into())).ok()
    }
}

/// Trees per root and capacities in trees, such that the optimal rate comes out whole everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instance {
    /// k: number of trees rooted at a root, for each unit of its weight.
    pub(super) trees_per_root: u64,
    /// k times the weight for every rank, 0 for the other nodes.
    pub(super) demands: Vec<u64>,
    /// U·b of each link of the topology: trees it can carry. 0 where no tree has a reason to go.
    pub(super) capacities: Vec<u128>,
}

/// Refuses a topology on which data of these roots can not go where `action` takes it. O(nodes + links).
pub(super) fn require_plannable(topology: &Topology, roots: Roots<'_>, action: Action) -> Result<(), SynthesisError> {
    let lost = match (roots, action) {
        (Roots::All(shares), Action::Copy) => first_unreachable_from(topology, shares),
        (Roots::All(shares), Action::Reduce) => first_not_reaching(topology, shares),
        (Roots::One(root), Action::Copy) => topology.first_unreachable_from(root).map(|lost| (root, lost)),
        (Roots::One(root), Action::Reduce) => topology.first_not_reaching(root).map(|lost| (lost, root)),
    };
    match lost {
        Some((from, to)) => Err(disconnected(topology, from, to)),
        None => Ok(()),
    }
}

/// One instance per network, for as many trees per root as `limits` say; see [`Instance::new`] where they say nothing.
///
/// Networks of one collective follow each other, so that their shares are cut into chunks that suit all of them: where
/// these could not be counted, as many as can.
pub(super) fn instances(
    networks: &[&Topology],
    roots: Roots<'_>,
    limits: TreeLimits,
    stop: &dyn Stop,
) -> Result<Vec<Instance>, SynthesisError> {
    let exactly = |trees_per_root| {
        require_balanced(networks)?;
        let network = |network: &&Topology| whole::exactly(network, roots, trees_per_root, limits.tolerance, stop);
        networks.iter().map(network).collect()
    };
    if let Some(trees_per_root) = limits.trees_per_root {
        return exactly(trees_per_root);
    }
    let optimal = networks.iter().map(|network| Instance::new(network, roots, limits.tolerance, stop));
    let optimal: Result<Vec<Instance>, SynthesisError> = optimal.collect();
    let chunks = |optimal: &[Instance]| {
        optimal.iter().fold(1_u128, |chunks, instance| chunks.lcm(&instance.trees_per_root.into()))
    };
    match (limits.max_chunks, optimal) {
        (None, Ok(optimal)) if are_countable(chunks(&optimal), networks, roots) => Ok(optimal),
        // Each network may have as many trees as it needs, but no chunks suit them all.
        (None, Ok(_)) => exactly(CHUNKS_TOGETHER),
        (Some(chunks_max), Ok(optimal)) if chunks(&optimal) <= chunks_max.get().into() => Ok(optimal),
        // Too many trees to be counted are too many for any limit.
        (Some(chunks_max), Ok(_) | Err(SynthesisError::TooManyTrees { .. })) => {
            require_balanced(networks)?;
            whole::at_most(networks, roots, chunks_max, limits.tolerance, stop)
        }
        (_, Err(error)) => Err(error),
    }
}

/// Whether the chunks of all ranks can be counted in 64 bits; `chunks` is their number for each unit of weight.
fn are_countable(chunks: u128, networks: &[&Topology], roots: Roots<'_>) -> bool {
    let rank_count = networks.first().map_or(0, |network| network.rank_count());
    let all = roots.unit_count(rank_count).and_then(|units| chunks.checked_mul(units.into()));
    all.is_some_and(|all| u64::try_from(all).is_ok())
}

/// 1/x*: the time in which these roots can spread one byte for each unit of their weight, in seconds.
///
/// * **In.** A topology that passed [`require_plannable`]. **Errors.** Too many trees, stopped; not Eulerian where no
///   balanced part was found.
/// * **Cost.** That of [`balanced_optimum`].
pub(super) fn seconds_per_unit(
    topology: &Topology,
    roots: Roots<'_>,
    stop: &dyn Stop,
) -> Result<Fraction, SynthesisError> {
    let (weights, terminals) = weights_and_terminals(topology, roots);
    Ok(balanced_part(topology, &useful_links(topology), &weights, &terminals, stop)?.inverse_rate)
}

impl Instance {
    /// Scales a topology by its optimal rate.
    ///
    /// Splitting a switch off preserves the optimum only where as much leaves it as enters, so links keep what they have
    /// in a balanced part of the network. The article asks the same of every node. For ranks it is not needed: without
    /// switches Edmonds' theorem packs trees in any digraph, and Bang-Jensen, Frank and Jackson (1995) ask for balance
    /// only at nodes that are no terminals.
    ///
    /// With `1/x* = p/q` in lowest terms and `d = gcd(q, {b})`, `U = p/d` is the least factor that makes `k = U·x* = q/d`
    /// and all `U·b` integers. Within a tolerance it is the instance that [`near`](near::near) finds, if any.
    ///
    /// * **Source.** Zhao 2026, §4.5.1 and theorem 23. A single root, or shares of different sizes,
    ///   only change the weights in 1/x* (Edmonds).
    /// * **In.** A topology that passed [`require_plannable`]. **Errors.** Too many trees, stopped; not Eulerian where no
    ///   balanced part was found.
    /// * **Cost.** That of [`balanced_optimum`].
    pub(super) fn new(
        topology: &Topology,
        roots: Roots<'_>,
        tolerance: Option<Tolerance>,
        stop: &dyn Stop,
    ) -> Result<Self, SynthesisError> {
        let useful = useful_links(topology);
        let rank_count = topology.rank_count();
        let (weights, terminals) = weights_and_terminals(topology, roots);
        let part = best_part(topology, &useful, &weights, &terminals, stop)?;
        if let Some(tolerance) = tolerance
            && let Some(near) = near::near(topology, roots, &part, tolerance, stop)?
        {
            return Ok(near);
        }
        let Part { bandwidths, inverse_rate } = part;
        let Fraction { numerator: p, denominator: q } = inverse_rate;

        let divisor = bandwidths.iter().fold(q, |divisor, bandwidth| divisor.gcd(bandwidth));
        let too_many = || SynthesisError::TooManyTrees { trees_per_rank: q / divisor, rank_count };
        let trees_per_root = u64::try_from(q / divisor).map_err(|_| too_many())?;
        let unit_count = roots.unit_count(rank_count).ok_or_else(too_many)?;
        trees_per_root.checked_mul(unit_count).ok_or_else(too_many)?;
        // p and q have no common factor, so U·b = p·b/d is whole only because d divides b.
        let scaled = |b: u128| (b / divisor).checked_mul(p).ok_or_else(too_many);
        let capacities = bandwidths.iter().map(|&bandwidth| scaled(bandwidth));
        let exact = Self {
            trees_per_root,
            demands: weights.iter().map(|&weight| weight * trees_per_root).collect(),
            capacities: capacities.collect::<Result<_, _>>()?,
        };
        Ok(exact.with_fewer_trees(topology, &weights, &bandwidths, (p, q), stop)?.unwrap_or(exact))
    }

    /// The same rate with fewer trees per root, if links can do without the fraction of a tree they then can not carry.
    ///
    /// * **Source.** Zhao 2026, appendix B.5.4, for the k whose capacities `⌊k·b·p/q⌋` lose nothing of the optimum.
    /// * **Cost.** One test for each of the least k, [`FEWER_TRIED`] at most, and for each greater one that goes into the
    ///   one at hand as many times or fewer.
    fn with_fewer_trees(
        &self,
        topology: &Topology,
        weights: &[u64],
        bandwidths: &[u128],
        (p, q): (u128, u128),
        stop: &dyn Stop,
    ) -> Result<Option<Self>, SynthesisError> {
        let (rank_count, node_count) = (topology.rank_count(), topology.nodes().len());
        // Where a cut needs all of several links, numbers that divide the one at hand are the likeliest.
        let divisors = (1..=FEWER_TRIED).rev().filter(|&part| part > 1 && self.trees_per_root.is_multiple_of(part));
        let divisors = divisors.map(|part| self.trees_per_root / part).filter(|&count| count > FEWER_TRIED);
        for trees_per_root in (1..self.trees_per_root.min(FEWER_TRIED + 1)).chain(divisors) {
            let mut capacities = vec![0; self.capacities.len()];
            let mut sums = vec![(0_i64, 0_i64); node_count];
            for ((link, bandwidth), capacity) in topology.links().iter().zip(bandwidths).zip(&mut capacities) {
                let product = bandwidth.checked_mul(trees_per_root.into()).and_then(|product| product.checked_mul(p));
                let Some(product) = product else { return Ok(None) };
                *capacity = product / q;
                let Ok(amount) = i64::try_from(*capacity) else { return Ok(None) };
                let (from, to) = (link.from.index(), link.to.index());
                let (Some(leaving), Some(entering)) =
                    (sums[from].1.checked_add(amount), sums[to].0.checked_add(amount))
                else {
                    return Ok(None);
                };
                (sums[from].1, sums[to].0) = (leaving, entering);
            }
            // Switches must stay balanced, and ranks should.
            if sums.iter().any(|(entering, leaving)| entering != leaving) {
                continue;
            }
            let fewer =
                Self { trees_per_root, demands: weights.iter().map(|w| w * trees_per_root).collect(), capacities };
            if fewer.magnitude().is_none_or(|sum| sum >= u128::from(i64::MAX.unsigned_abs()) / 4) {
                return Ok(None);
            }
            let narrow = |value: u128| i64::try_from(value).expect("the sum of all numbers fits");
            let edges = topology.links().iter().zip(&fewer.capacities);
            let edges = edges.map(|(link, &capacity)| (link.from.number(), link.to.number(), narrow(capacity)));
            let demands: Vec<i64> = fewer.demands.iter().map(|&demand| narrow(demand.into())).collect();
            if Condition::new(edges, demands, rank_count, stop)?.violation()?.is_none() {
                return Ok(Some(fewer));
            }
        }
        Ok(None)
    }

    /// Σ of all demands and capacities: whoever computes in a type that holds four times this never overflows.
    pub(super) fn magnitude(&self) -> Option<u128> {
        let demands = self.demands.iter().map(|&demand| u128::from(demand));
        demands.chain(self.capacities.iter().copied()).try_fold(0_u128, u128::checked_add)
    }
}

/// By node: its weight as a root, and whether it is a rank.
fn weights_and_terminals(topology: &Topology, roots: Roots<'_>) -> (Vec<u64>, Vec<bool>) {
    let mut weights: Vec<u64> = topology.ranks().map(|rank| roots.weight(rank)).collect();
    let mut terminals = vec![true; weights.len()];
    weights.resize(topology.nodes().len(), 0);
    terminals.resize(weights.len(), false);
    (weights, terminals)
}

/// What is planned on: of each link, the part that trees may use.
struct Part {
    /// By link, in parts of bytes per second that are the same for all; 0 where no tree has a reason to go.
    bandwidths: Vec<u128>,
    /// 1/x*, in reciprocal units of these bandwidths.
    inverse_rate: Fraction,
}

fn best_part(
    topology: &Topology,
    useful: &[bool],
    weights: &[u64],
    terminals: &[bool],
    stop: &dyn Stop,
) -> Result<Part, SynthesisError> {
    let found = balanced_part(topology, useful, weights, terminals, stop)?;
    let BalancedOptimum { kept, scale, inverse_rate, .. } = found;
    let rank_count = topology.rank_count();
    let Fraction { numerator, denominator } = inverse_rate;
    let finer = denominator.checked_mul(scale).and_then(|denominator| Fraction::new(numerator, denominator));
    let too_many = || SynthesisError::TooManyTrees { trees_per_rank: denominator, rank_count };
    Ok(Part { bandwidths: kept, inverse_rate: finer.ok_or_else(too_many)? })
}

/// The part of the useful links that is balanced at every switch, and its optimum.
fn balanced_part(
    topology: &Topology,
    useful: &[bool],
    weights: &[u64],
    terminals: &[bool],
    stop: &dyn Stop,
) -> Result<BalancedOptimum, SynthesisError> {
    let arcs = topology.links().iter().zip(useful).map(|(link, &useful)| Arc {
        from: link.from.number(),
        to: link.to.number(),
        capacity: if useful { link.capacity.bytes_per_sec() } else { 0 },
    });
    let graph =
        Digraph { node_count: u32::try_from(weights.len()).expect("node counts are u32"), arcs: arcs.collect() };
    let rank_count = topology.rank_count();
    match balanced_optimum(&graph, weights, terminals, stop) {
        Ok(found) => Ok(found),
        Err(OptimumError::Stopped(_)) => Err(SynthesisError::Stopped),
        Err(OptimumError::NoBalancedPart) => Err(first_unbalanced(topology, useful)),
        Err(OptimumError::TooLarge { weight }) => {
            Err(SynthesisError::TooManyTrees { trees_per_rank: weight, rank_count })
        }
        Err(other) => {
            let what = format!("no optimum for a connected network: {other}");
            Err(SynthesisError::Broken { what })
        }
    }
}

/// Leaves out switches through which nothing can pass: those with no way in, no way out, or only one neighbour. Taking
/// one away can make the next one useless.
///
/// O(links): a switch is looked at again only when it has lost a neighbour.
fn useful_links(topology: &Topology) -> Vec<bool> {
    let mut sides = vec![Sides::default(); topology.nodes().len()];
    // Links are sorted by both ends, so a neighbour that is there already is the last one.
    let add = |side: &mut Vec<NodeIndex>, node: NodeIndex| {
        if side.last() != Some(&node) {
            side.push(node);
        }
    };
    for link in topology.links() {
        add(&mut sides[link.from.index()].leaving, link.to);
        add(&mut sides[link.to.index()].entering, link.from);
    }
    for side in &mut sides {
        (side.entering_left, side.leaving_left) = (side.entering.len(), side.leaving.len());
    }
    let first_switch = topology.rank_count() as usize;
    let mut dead = vec![false; sides.len()];
    let mut suspects: Vec<usize> = (first_switch..sides.len()).collect();
    while let Some(switch) = suspects.pop() {
        if dead[switch] || !sides[switch].is_dead_end(&dead) {
            continue;
        }
        dead[switch] = true;
        let Sides { mut entering, mut leaving, .. } = std::mem::take(&mut sides[switch]);
        entering.retain(|from| !dead[from.index()]);
        leaving.retain(|to| !dead[to.index()]);
        entering.iter().for_each(|from| sides[from.index()].leaving_left -= 1);
        leaving.iter().for_each(|to| sides[to.index()].entering_left -= 1);
        let neighbours = entering.into_iter().chain(leaving).map(NodeIndex::index);
        suspects.extend(neighbours.filter(|&neighbour| neighbour >= first_switch));
    }
    topology.links().iter().map(|link| !dead[link.from.index()] && !dead[link.to.index()]).collect()
}

/// Neighbours of a node on both sides, and how many of them are not dead ends.
#[derive(Clone, Default)]
struct Sides {
    entering: Vec<NodeIndex>,
    leaving: Vec<NodeIndex>,
    entering_left: usize,
    leaving_left: usize,
}

impl Sides {
    /// Whether no route can cross the node.
    fn is_dead_end(&self, dead: &[bool]) -> bool {
        let only = |side: &[NodeIndex]| side.iter().copied().find(|node| !dead[node.index()]);
        match (self.entering_left, self.leaving_left) {
            (0, _) | (_, 0) => true,
            (1, 1) => only(&self.entering) == only(&self.leaving),
            _ => false,
        }
    }
}

/// The first switch that more enters than leaves, or the reverse, as the reason why there is no plan.
fn first_unbalanced(topology: &Topology, useful: &[bool]) -> SynthesisError {
    let balanced = || SynthesisError::Broken { what: "a balanced network has no balanced part".to_owned() };
    require_balanced_switches(topology, useful).err().unwrap_or_else(balanced)
}

/// Whole trees of a given number are packed in the whole network only, which needs its switches balanced.
fn require_balanced(networks: &[&Topology]) -> Result<(), SynthesisError> {
    networks.iter().try_for_each(|network| require_balanced_switches(network, &useful_links(network)))
}

/// Refuses switches that more enters than leaves, or the reverse. O(links).
fn require_balanced_switches(topology: &Topology, useful: &[bool]) -> Result<(), SynthesisError> {
    let mut sums = vec![(0_u128, 0_u128); topology.nodes().len()];
    for (link, _) in topology.links().iter().zip(useful).filter(|&(_, &useful)| useful) {
        let capacity = u128::from(link.capacity.bytes_per_sec());
        sums[link.from.index()].1 += capacity;
        sums[link.to.index()].0 += capacity;
    }
    let mut switches = topology.nodes().iter().zip(sums).skip(topology.rank_count() as usize);
    match switches.find(|(_, (entering, leaving))| entering != leaving) {
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
