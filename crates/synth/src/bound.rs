//! The rate that no schedule can beat, with a certificate that anyone can check by adding up capacities.
//!
//! This module does not depend on synthesis; theorems alone show whether a rate is reachable.

mod all_to_all;
mod allreduce;
mod lengths;
mod network;
mod plain;
mod symmetric;

use canopy_optimize::{
    BalanceLimit, Digraph, Fraction, OptimumError, Stop, Stopped, balance_limit, balanced_optimum, broadcast_optimum,
    forest_optimum_for, gather_optimum, scatter_optimum,
};
use canopy_schedule::{Bound, Certificate, ChunkLayout, Collective, CollectiveKind, CutDirection, Shares, SharesError};
use canopy_topology::{NodeIndex, Rank, Rate, Topology};
use num_bigint::BigUint;

use network::Network;

pub use all_to_all::quick_bound;
pub use plain::{PlainBounds, plain_bounds};

/// Errors of computing a bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum BoundError {
    #[error("no path leads from rank {from_rank} ({from}) to rank {to_rank} ({to}); add links that connect them")]
    Disconnected { from: String, from_rank: u32, to: String, to_rank: u32 },
    #[error(
        "capacities times weights of shares overflow 128 bits; round capacities to a common unit, such as 1GB/s, and \
         weights to fewer digits"
    )]
    TooLarge,
    #[error("only rank {root}, the root, has a share, so nothing has to move; give another rank a weight above 0")]
    NothingToMove { root: u32 },
    #[error(transparent)]
    Shares(#[from] SharesError),
    #[error("stopped before a bound was found")]
    Stopped,
    #[error("this is a bug in canopy: {what}; report it with the topology")]
    Broken { what: String },
}

impl From<Stopped> for BoundError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// The bound that [`reachable::bound`](crate::bound) describes, with what theorems say is reachable.
pub(crate) fn bound(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    stop: &dyn Stop,
) -> Result<Bound, BoundError> {
    // One chunk for each unit of weight: whether the weights fit the collective, and can be added up.
    ChunkLayout::new(collective, topology.rank_count(), 1, shares)?;
    let of_all = collective.kind() == CollectiveKind::Allreduce;
    let network = Network::of(topology, if of_all { &Shares::Equal } else { shares });
    let root = || {
        let missing = || BoundError::Broken { what: format!("{} without a root", collective.kind()) };
        collective.root().ok_or_else(missing)
    };
    match collective.kind() {
        CollectiveKind::Allgather => spread(&network, CutDirection::Out, stop),
        CollectiveKind::ReduceScatter => spread(&network, CutDirection::In, stop),
        CollectiveKind::Broadcast => rooted(&network, root()?, CutDirection::Out, stop),
        CollectiveKind::Reduce => rooted(&network, root()?, CutDirection::In, stop),
        CollectiveKind::Scatter => personal(&network, root()?, CutDirection::Out, stop),
        CollectiveKind::Gather => personal(&network, root()?, CutDirection::In, stop),
        CollectiveKind::Allreduce => allreduce::bound(&network, stop),
        CollectiveKind::AllToAll => all_to_all::bound(topology, shares, stop),
    }
}

/// Allgather, and reduce-scatter as allgather on the transposed network with the same cut entered.
fn spread(network: &Network<'_>, direction: CutDirection, stop: &dyn Stop) -> Result<Bound, BoundError> {
    let (weights, graph) = (network.weights(), network.graph(direction));
    let optimum = forest_optimum_for(&graph, &weights, &network.terminals(), stop);
    let optimum = optimum.map_err(|error| refusal(network, direction, None, error))?;
    let upper = network.rate_of_shares(optimum.inverse_rate);
    let cut = (upper, certificate(direction, &optimum.cut));
    by_trees(network, &graph, &weights, (direction, None), cut, stop)
}

/// Broadcast, and reduce as broadcast on the transposed network.
fn rooted(network: &Network<'_>, root: Rank, direction: CutDirection, stop: &dyn Stop) -> Result<Bound, BoundError> {
    let cut = rooted_cut(network, root, direction, stop)?;
    let graph = network.graph(direction);
    let weights: Vec<u64> = (0..graph.node_count).map(|node| u64::from(node == root.number())).collect();
    by_trees(network, &graph, &weights, (direction, Some(root)), cut, stop)
}

/// The least capacity of a cut between a root and another rank, in the direction of the data.
fn rooted_cut(
    network: &Network<'_>,
    root: Rank,
    direction: CutDirection,
    stop: &dyn Stop,
) -> Result<(Rate, Certificate), BoundError> {
    let optimum = broadcast_optimum(&network.graph(direction), &network.terminals(), root.number(), stop);
    let (rate, cut) = optimum.map_err(|error| refusal(network, direction, Some(root), error))?;
    Ok((rate_of(rate, 1), certificate(direction, &cut)))
}

/// The rate that no allreduce can beat, which [`bound`] states with its certificate. A fraction of its time.
pub(crate) fn allreduce_limit(topology: &Topology, stop: &dyn Stop) -> Result<Rate, BoundError> {
    allreduce::limit(&Network::of(topology, &Shares::Equal), stop)
}

/// The bound of a cut, or a lower one where what enters a switch can not leave it, and the algbw at which trees can be packed
/// for sure.
fn by_trees(
    network: &Network<'_>,
    graph: &Digraph,
    weights: &[u64],
    (direction, root): (CutDirection, Option<Rank>),
    (upper, certificate): (Rate, Certificate),
    stop: &dyn Stop,
) -> Result<Bound, BoundError> {
    if network.switches_are_balanced() {
        return Ok(Bound { lower: upper.clone(), upper, certificate });
    }
    let terminals = network.terminals();
    let shares: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    let refused = |error| refusal(network, direction, root, error);
    let found = match balanced_optimum(graph, weights, &terminals, stop) {
        Ok(found) => found,
        Err(OptimumError::NoBalancedPart) => return Ok(Bound { upper, lower: Rate::zero(), certificate }),
        Err(error) => return Err(refused(error)),
    };
    // What does not fit is not worth an error: a lower bound may be any rate that is reached.
    let rate =
        |Fraction { numerator, denominator }: Fraction| Rate::new(BigUint::from(denominator) * shares, numerator);
    let lower = rate(found.inverse_rate).unwrap_or_else(Rate::zero);
    let limit = match network.topology.capable_nodes().next() {
        None => found.limit,
        // What replicates or adds up need not pass on as much as enters it.
        Some(_) => balance_limit(graph, weights, &terminals, &network.capable(), stop).map_err(refused)?,
    };
    Ok(match rate(limit.inverse_rate).filter(|limit| *limit < upper) {
        Some(upper) => Bound { upper, lower, certificate: sum(direction, &limit) },
        None => Bound { upper, lower, certificate },
    })
}

/// Sets that data enters, with potentials, in the shape of a certificate; of reductions the data leaves them.
fn sum(direction: CutDirection, limit: &BalanceLimit) -> Certificate {
    let entered = match direction {
        CutDirection::Out => CutDirection::In,
        CutDirection::In => CutDirection::Out,
    };
    let terms = limit.sets.iter().map(|(weight, set)| (*weight, certificate(entered, set)));
    // The graph of a reduction is turned around, and so are the rises of potentials.
    let sign = if direction == CutDirection::Out { 1 } else { -1 };
    weighted(terms.collect(), limit.potentials.iter().map(|potential| sign * potential).collect())
}

/// Terms with the potentials of all nodes in the shape of a certificate.
fn weighted(terms: Vec<(u64, Certificate)>, potentials: Vec<i64>) -> Certificate {
    let potentials = (0_u32..).map(NodeIndex::new).zip(potentials).filter(|&(_, potential)| potential != 0);
    Certificate::Sum { terms, potentials: potentials.collect() }
}

/// Scatter and gather: flows, so the bound is always reached.
fn personal(network: &Network<'_>, root: Rank, direction: CutDirection, stop: &dyn Stop) -> Result<Bound, BoundError> {
    let (graph, weights) = (network.graph(CutDirection::Out), network.weights());
    let optimum = match direction {
        CutDirection::Out => scatter_optimum(&graph, &weights, root.number(), stop),
        CutDirection::In => gather_optimum(&graph, &weights, root.number(), stop),
    };
    let (inverse_rate, cut) = optimum.map_err(|error| match error {
        OptimumError::NothingToMove => BoundError::NothingToMove { root: root.number() },
        error => refusal(network, direction, Some(root), error),
    })?;
    let upper = network.rate_of_shares(inverse_rate);
    Ok(Bound { lower: upper.clone(), upper, certificate: certificate(direction, &cut) })
}

/// The set of a cut in the shape of a certificate.
fn certificate(direction: CutDirection, cut: &[bool]) -> Certificate {
    let nodes = (0_u32..).zip(cut).filter(|&(_, &inside)| inside).map(|(node, _)| NodeIndex::new(node)).collect();
    Certificate::Cut { direction, nodes }
}

/// `capacity / divisor` bytes per second, for a divisor that is a positive count.
fn rate_of(capacity: u128, divisor: u128) -> Rate {
    Rate::new(capacity, divisor).expect("divisors are positive counts")
}

/// `1 / time`, times `factor`.
fn rate_of_time(factor: u128, time: Fraction) -> Rate {
    Rate::new(BigUint::from(factor) * time.denominator, time.numerator).expect("data that has to move takes time")
}

/// Says in terms of ranks why a kernel found no optimum. A cut that nothing leaves separates the ranks inside from
/// those outside; for `In` the kernel saw the transposed network, so the roles change.
/// Where there is a root, it is the rank inside.
fn refusal(network: &Network<'_>, direction: CutDirection, root: Option<Rank>, error: OptimumError) -> BoundError {
    let cut = match error {
        OptimumError::Disconnected { cut } => cut,
        OptimumError::Stopped(stopped) => return stopped.into(),
        OptimumError::TooLarge { .. } => return BoundError::TooLarge,
        other => return BoundError::Broken { what: other.to_string() },
    };
    let topology = network.topology;
    // One with a share, if there is any: others may have nothing that has to move.
    let first = |inside: bool| {
        let mut ranks = topology.ranks().filter(|rank| cut.get(rank.index()) == Some(&inside));
        ranks.clone().find(|&rank| network.shares.weight(rank) > 0).or_else(|| ranks.next())
    };
    let (Some(inside), Some(outside)) = (root.or_else(|| first(true)), first(false)) else {
        return BoundError::Broken { what: "a cut of capacity zero separates no ranks".to_owned() };
    };
    let (from, to) = match direction {
        CutDirection::Out => (inside, outside),
        CutDirection::In => (outside, inside),
    };
    let id = |rank: Rank| topology.node(rank.node()).id.clone();
    BoundError::Disconnected { from: id(from), from_rank: from.number(), to: id(to), to_rank: to.number() }
}
