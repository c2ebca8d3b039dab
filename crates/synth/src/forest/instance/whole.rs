//! Instances of a given number of trees per root, or of the best one up to a limit, at the expense of the rate.

use std::num::NonZeroU64;

use canopy_optimize::{Arc, Digraph, Fraction, OptimumError, Stop, WholeForest, WholeTrees};
use canopy_topology::Topology;

use super::{Instance, Roots, useful_links, weights_and_terminals};
use crate::error::SynthesisError;
use crate::tolerance::Tolerance;

/// Tests times ranks times links that a search for the best number of trees may take: about a second.
const SCAN_WORK: u64 = 1 << 28;
/// Least and greatest number of numbers tried, whatever the network.
const SCAN_RANGE: (u64, u64) = (64, 1 << 16);

/// The instance with this many trees per root whose rate is best, or lacks as much of that as may be given up.
///
/// * **Source.** Zhao 2026, appendix B.5.4; see [`WholeForest`].
/// * **Errors.** Too many trees, stopped. **Cost.** Some ten tests of the network.
pub(super) fn exactly(
    topology: &Topology,
    roots: Roots<'_>,
    trees_per_root: NonZeroU64,
    tolerance: Option<Tolerance>,
    stop: &dyn Stop,
) -> Result<Instance, SynthesisError> {
    let network = Spread::of(topology, roots);
    let mut forest = network.forest(trees_per_root, stop)?;
    let trees = forest.pack(trees_per_root, None, stop).map_err(|error| refusal(error, trees_per_root, topology))?;
    let trees = trees.expect("any time is good enough");
    let trees = loosened(&mut forest, trees, trees_per_root, tolerance, stop)?;
    network.instance(trees_per_root, &trees)
}

/// As many trees in the longer time that a tolerance gives them, where its numbers fit.
fn loosened(
    forest: &mut WholeForest<'_>,
    trees: WholeTrees,
    trees_per_root: NonZeroU64,
    tolerance: Option<Tolerance>,
    stop: &dyn Stop,
) -> Result<WholeTrees, SynthesisError> {
    let time = trees.inverse_rate(trees_per_root);
    let Some(times) = tolerance.zip(time).and_then(|(tolerance, time)| tolerance.stretched(time)) else {
        return Ok(trees);
    };
    match forest.pack_within(trees_per_root, times.all, stop) {
        Ok(loose) => Ok(loose.unwrap_or(trees)),
        Err(OptimumError::Stopped(stopped)) => Err(stopped.into()),
        Err(_) => Ok(trees),
    }
}

/// The instances with the same number of trees per root, at most `trees_max`, that take the least time together, those
/// of the fewest trees among equals.
///
/// More trees are not always better, so all numbers are tried, each against the best so far, which takes one test as a
/// rule. Where that would take longer than a second or so, only the least and the greatest numbers are: the greatest lose
/// at most one tree of the thinnest link (theorem 35), the least are what runtimes have room for.
///
/// * **Errors.** Too many trees, stopped.
/// * **Cost.** A test per number tried and network, up to [`SCAN_WORK`].
pub(super) fn at_most(
    networks: &[&Topology],
    roots: Roots<'_>,
    trees_max: NonZeroU64,
    tolerance: Option<Tolerance>,
    stop: &dyn Stop,
) -> Result<Vec<Instance>, SynthesisError> {
    let spreads: Vec<Spread> = networks.iter().map(|network| Spread::of(network, roots)).collect();
    let forests = spreads.iter().map(|spread| spread.forest(trees_max, stop));
    let mut forests = forests.collect::<Result<Vec<_>, _>>()?;
    let work = |network: &&Topology| u64::from(network.rank_count()).saturating_mul(network.links().len() as u64);
    let count = numbers_worth_trying(networks.iter().map(work).fold(0, u64::saturating_add));
    let optimum = sum(forests.iter().map(|forest| Some(forest.optimum())));
    let mut best: Option<(Fraction, NonZeroU64, Vec<WholeTrees>)> = None;
    // The trees of all ranks must be counted in 64 bits.
    let last = trees_max.get().min(u64::MAX / u64::from(networks[0].rank_count()));
    for trees_per_root in numbers_tried(last, count).filter_map(NonZeroU64::new) {
        // What a single network must beat; of several, one may do worse if another does better.
        let below = best.as_ref().filter(|_| forests.len() == 1).map(|&(time, ..)| time);
        let packed = forests.iter_mut().map(|forest| forest.pack(trees_per_root, below, stop));
        let trees = match packed.collect::<Result<Option<Vec<_>>, _>>() {
            Ok(Some(trees)) => trees,
            Ok(None) => continue,
            // Greater numbers are no easier to compute with.
            Err(OptimumError::TooLarge { .. }) if best.is_some() => break,
            Err(error) => return Err(refusal(error, trees_per_root, networks[0])),
        };
        let time = sum(trees.iter().map(|trees| trees.inverse_rate(trees_per_root)));
        let time = time.ok_or_else(|| too_many(trees_per_root, networks[0]))?;
        if best.as_ref().is_none_or(|&(known, ..)| time < known) {
            best = Some((time, trees_per_root, trees));
        }
        if Some(time) == optimum {
            break;
        }
    }
    let (_, trees_per_root, trees) = best.expect("one tree per root is always tried");
    let loosen = |(forest, trees)| loosened(forest, trees, trees_per_root, tolerance, stop);
    let trees = forests.iter_mut().zip(trees).map(loosen).collect::<Result<Vec<_>, _>>()?;
    spreads.iter().zip(&trees).map(|(spread, trees)| spread.instance(trees_per_root, trees)).collect()
}

/// How many numbers of trees a scan may try where one takes so much work: ranks times links.
pub(in crate::forest) fn numbers_worth_trying(work: u64) -> u64 {
    (SCAN_WORK / work.max(1)).clamp(SCAN_RANGE.0, SCAN_RANGE.1)
}

/// `None` if a time, or the sum, does not fit.
fn sum(mut times: impl Iterator<Item = Option<Fraction>>) -> Option<Fraction> {
    times.try_fold(Fraction::ZERO, |sum, time| sum.checked_add(time?))
}

/// All numbers from 1 to `last`, or, where those are more than `count`, half of them from each end.
pub(in crate::forest) fn numbers_tried(last: u64, count: u64) -> impl Iterator<Item = u64> {
    let low = if last <= count { last } else { count / 2 };
    (1..=low).chain(last - (count - count / 2).min(last - low) + 1..=last)
}

/// Whose data goes where on which links: a topology as kernels want it.
pub(super) struct Spread<'a> {
    topology: &'a Topology,
    /// The links that can be of use, and their positions in the topology.
    graph: Digraph,
    links: Vec<usize>,
    weights: Vec<u64>,
    terminals: Vec<bool>,
    /// The sum of the weights, at least one for each rank, if 64 bits hold it.
    unit_count: Option<u64>,
}

impl<'a> Spread<'a> {
    fn of(topology: &'a Topology, roots: Roots<'_>) -> Self {
        let useful = useful_links(topology).into_iter().zip(topology.links());
        Self::on(topology, roots, useful.map(|(useful, link)| if useful { link.capacity.bytes_per_sec() } else { 0 }))
    }

    /// On what is planned on, by link; `None` where its numbers do not fit.
    pub(super) fn of_part(topology: &'a Topology, roots: Roots<'_>, bandwidths: &[u128]) -> Option<Self> {
        let bandwidths: Vec<u64> =
            bandwidths.iter().map(|&bandwidth| u64::try_from(bandwidth)).collect::<Result<_, _>>().ok()?;
        Some(Self::on(topology, roots, bandwidths.into_iter()))
    }

    fn on(topology: &'a Topology, roots: Roots<'_>, bandwidths: impl Iterator<Item = u64>) -> Self {
        let (weights, terminals) = weights_and_terminals(topology, roots);
        let arcs = topology.links().iter().zip(bandwidths);
        let arcs = arcs.map(|(link, capacity)| Arc { from: link.from.number(), to: link.to.number(), capacity });
        let (links, arcs) = arcs.enumerate().filter(|(_, arc)| arc.capacity > 0).unzip();
        let node_count = u32::try_from(weights.len()).expect("limits keep node counts within u32");
        Self {
            topology,
            graph: Digraph { node_count, arcs },
            links,
            weights,
            terminals,
            unit_count: roots.unit_count(topology.rank_count()),
        }
    }

    pub(super) fn forest(
        &self,
        trees_per_root: NonZeroU64,
        stop: &dyn Stop,
    ) -> Result<WholeForest<'_>, SynthesisError> {
        let forest = WholeForest::new(&self.graph, &self.weights, &self.terminals, stop);
        forest.map_err(|error| refusal(error, trees_per_root, self.topology))
    }

    pub(super) fn instance(&self, trees_per_root: NonZeroU64, trees: &WholeTrees) -> Result<Instance, SynthesisError> {
        let count = trees_per_root.get();
        let all = self.unit_count.and_then(|units| count.checked_mul(units));
        all.ok_or_else(|| too_many(trees_per_root, self.topology))?;
        let mut capacities = vec![0; self.topology.links().len()];
        for (&link, &capacity) in self.links.iter().zip(&trees.capacities) {
            capacities[link] = capacity;
        }
        let demands = self.weights.iter().map(|&weight| weight * count).collect();
        Ok(Instance { trees_per_root: count, demands, capacities })
    }
}

fn too_many(trees_per_root: NonZeroU64, topology: &Topology) -> SynthesisError {
    let trees_per_rank = trees_per_root.get().into();
    SynthesisError::TooManyTrees { trees_per_rank, rank_count: topology.rank_count() }
}

pub(super) fn refusal(error: OptimumError, trees_per_root: NonZeroU64, topology: &Topology) -> SynthesisError {
    match error {
        OptimumError::Stopped(stopped) => stopped.into(),
        OptimumError::TooLarge { .. } => too_many(trees_per_root, topology),
        other => SynthesisError::Broken { what: format!("no whole trees for a connected network: {other}") },
    }
}
