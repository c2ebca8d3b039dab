//! Bounds for allreduce, which is more than reduce-scatter followed by allgather.
//!
//! Take one element of the vector and a partition of the ranks into p parts, each seen as one unit. Until some unit
//! knows the sum, p − 1 of them must have sent what they know; then the p − 1 others must be told. What plain
//! switches carry from unit to unit leaves one node set and arrives at one other, so `2(p−1)·algbw ≤ Σ B⁺(S_i)`.
//!
//! * **Upper bound.** The least such value over all partitions is the *strength* of the network if every switch is
//!   balanced: then `Σ B⁺(S_i) = Σ B⁻(S_i)`, so a link counts like half of it in either direction. Where a switch is
//!   not balanced, the partition of the strength, all singletons and all boxes are tried. A single cut also binds:
//!   what one side adds to the other's result must cross it, in both directions. The thinner one counts, which
//!   matters where a rank is not balanced. Switches that multicast or aggregate save messages that the partition counts,
//!   unless a part holds them; so could compute devices that only forward. Which part they are best in is not searched
//!   for, so with them the bound need not be the least.
//! * **Lower bound.** Reduce-scatter then allgather, `1/(1/rs + 1/ag)`, so `N·x*/2` in an Eulerian network; and the
//!   strength of the sub-network with links alike in both directions. The latter is reached, because that network
//!   packs trees of this weight without switches (Tutte, Nash-Williams: reduce up a tree and broadcast down the
//!   same links), and with them (some orientation has `in(S) + roots(S) ≥ L` for every set with a rank, by Gale and
//!   the truncation theorem, and out-trees pack into that by Bang-Jensen, Frank and Jackson). A path of three ranks
//!   shows the difference: 1 against 3/4. Trees may also be packed that hold switches that multicast and aggregate as if
//!   those were ranks: a star of n ranks with such a switch reaches 1 in place of n/(2(n−1)), as NVLink SHARP does.

use std::collections::BTreeMap;

use canopy_optimize::{
    Fraction, OptimumError, Stop, Strength, SumsLimit, SumsTerm, isolating_cuts, strength, sums_limit,
};
use canopy_schedule::{Bound, Certificate, CutDirection};
use canopy_topology::{NodeIndex, Rank, Rate, Topology};
use num_bigint::BigUint;

use super::network::Network;
use super::{BoundError, certificate as cut, rate_of, refusal, rooted_cut, spread, weighted};
use crate::mirror::mirror;

/// Upper and lower bound with the certificate of the upper one.
pub(super) fn bound(network: &Network<'_>, stop: &dyn Stop) -> Result<Bound, BoundError> {
    let two_way = network.two_way();
    let is_two_way = two_way.is_same_as(network);
    let reduce_and_broadcast = strength_of(&two_way, stop)?;
    let mut lower = rate(&reduce_and_broadcast);
    if network.topology.has_capable_switch() {
        lower = lower.max(rate(&strength_of_able(&two_way, stop)?));
    }
    // No two phases are faster than the strength where all links run both ways; they tell which ranks are apart.
    if !is_two_way || lower.is_zero() {
        let reduce_scatter = spread(network, CutDirection::In, stop)?;
        let allgather = match mirror(network.topology, &network.topology.transposed()) {
            Some(_) => reduce_scatter.clone(),
            None => spread(network, CutDirection::Out, stop)?,
        };
        lower = lower.max(in_sequence(&reduce_scatter.lower, &allgather.lower));
    }
    let weakest = if is_two_way { Some(reduce_and_broadcast) } else { None };
    let least = upper(network, weakest, stop)?;
    let least = if lower < least.0 { balanced(network, least, stop)? } else { least };
    Ok(Bound { upper: least.0, lower, certificate: least.1 })
}

/// The upper bound alone.
pub(super) fn limit(network: &Network<'_>, stop: &dyn Stop) -> Result<Rate, BoundError> {
    upper(network, None, stop).map(|(upper, _)| upper)
}

/// Upper bound with its certificate, given the strength of the network if it is known.
fn upper(network: &Network<'_>, weakest: Option<Strength>, stop: &dyn Stop) -> Result<(Rate, Certificate), BoundError> {
    let weakest = weakest.map_or_else(|| strength_of(network, stop), Ok)?;
    let mut best = partition(network, &weakest.parts, stop)?;
    // Which part should hold a node that replicates or adds up is a guess.
    let is_exact = network.topology.capable_nodes().next().is_none();
    let mut guesses = Vec::new();
    if !is_exact || !network.switches_are_balanced() {
        guesses.extend([singletons(network.topology), boxes(network.topology)]);
    }
    if network.topology.has_capable_switch() {
        guesses.push(ranks_of(&strength_of_able(network, stop)?.parts, network.topology));
    }
    for parts in guesses.iter().filter(|parts| parts.len() > 1) {
        best = smaller(best, partition(network, parts, stop)?);
    }
    // Where as much enters as leaves, a cut is a partition into two.
    if is_exact && network.topology.first_unbalanced().is_none() {
        Ok(best)
    } else {
        Ok(smaller(best, least_cut(network, stop)?))
    }
}

/// A lower upper bound, where what enters a switch can not leave it and no switch replicates or adds up.
fn balanced(
    network: &Network<'_>,
    (upper, certificate): (Rate, Certificate),
    stop: &dyn Stop,
) -> Result<(Rate, Certificate), BoundError> {
    let small = |part: BigUint| u128::try_from(part).ok();
    let (numerator, denominator) = upper.parts();
    let stated = small(numerator).zip(small(denominator)).and_then(|(top, bottom)| Fraction::new(top, bottom));
    let is_open = !network.switches_are_balanced() && network.topology.capable_nodes().next().is_none();
    let Some(stated) = stated.filter(|_| is_open) else { return Ok((upper, certificate)) };
    let found = sums_limit(&network.graph(CutDirection::Out), &network.terminals(), stated, stop);
    let found = found.map_err(|error| refusal(network, CutDirection::Out, None, error))?;
    let Some(SumsLimit { rate, terms, potentials }) = found else { return Ok((upper, certificate)) };
    let term = |(weight, term): (u64, SumsTerm)| {
        let set = |mut nodes: Vec<u32>| {
            nodes.sort_unstable();
            nodes.into_iter().map(NodeIndex::new).collect()
        };
        let claim = match term {
            SumsTerm::Entered(set) => cut(CutDirection::In, &set),
            SumsTerm::Left(set) => cut(CutDirection::Out, &set),
            SumsTerm::Partition(sets) => Certificate::Partition { sets: sets.into_iter().map(set).collect() },
        };
        (weight, claim)
    };
    let certificate = weighted(terms.into_iter().map(term).collect(), potentials);
    Ok((rate_of(rate.numerator, rate.denominator), certificate))
}

/// The smaller of two upper bounds, the first one if they are equal.
fn smaller(first: (Rate, Certificate), second: (Rate, Certificate)) -> (Rate, Certificate) {
    if second.0 < first.0 { second } else { first }
}

/// Rate of a reduce-scatter followed by an allgather, the times of which add up.
fn in_sequence(reduce_scatter: &Rate, allgather: &Rate) -> Rate {
    let ((a, b), (c, d)) = (reduce_scatter.parts(), allgather.parts());
    // 1/(b/a + d/c) = ac/(bc + ad); zero where either is.
    Rate::new(&a * &c, b * c + a * d).unwrap_or_else(Rate::zero)
}

fn strength_of(network: &Network<'_>, stop: &dyn Stop) -> Result<Strength, BoundError> {
    let answer = strength(&network.graph(CutDirection::Out), &network.terminals(), stop);
    answer.map_err(|error| refusal(network, CutDirection::Out, None, error))
}

/// The strength with switches that multicast and aggregate as if they were ranks.
fn strength_of_able(network: &Network<'_>, stop: &dyn Stop) -> Result<Strength, BoundError> {
    let answer = strength(&network.graph(CutDirection::Out), &network.able(), stop);
    answer.map_err(|error| refusal(network, CutDirection::Out, None, error))
}

/// The ranks of parts that have any.
fn ranks_of(parts: &[Vec<u32>], topology: &Topology) -> Vec<Vec<u32>> {
    let ranks = |part: &Vec<u32>| part.iter().copied().filter(|&node| node < topology.rank_count()).collect();
    parts.iter().map(ranks).filter(|part: &Vec<u32>| !part.is_empty()).collect()
}

fn rate(strength: &Strength) -> Rate {
    rate_of(strength.rate.numerator, strength.rate.denominator)
}

/// The bound that a partition of the ranks implies, each part together with the nodes next to it that replicate or add
/// up, and with the switches that are best on its side.
fn partition(network: &Network<'_>, parts: &[Vec<u32>], stop: &dyn Stop) -> Result<(Rate, Certificate), BoundError> {
    let parts = network.with_capable(parts);
    let cuts = isolating_cuts(&network.graph(CutDirection::Out), &parts, stop);
    let cuts = cuts.map_err(|error: OptimumError| refusal(network, CutDirection::Out, None, error))?;
    // Disjoint already if switches are balanced. Else what they share may make them worse than the parts alone.
    Ok(smaller(disjoint(network, cuts), disjoint(network, parts)))
}

/// The bound of these sets, of which the first keeps a node that several have.
fn disjoint(network: &Network<'_>, sets: Vec<Vec<u32>>) -> (Rate, Certificate) {
    let mut set_of = vec![None; network.topology.nodes().len()];
    let keep = |(set, mut nodes): (usize, Vec<u32>)| {
        nodes.sort_unstable();
        nodes.retain(|&node| *set_of[node as usize].get_or_insert(set) == set);
        nodes.into_iter().map(NodeIndex::new).collect()
    };
    let sets: Vec<Vec<NodeIndex>> = sets.into_iter().enumerate().map(keep).collect();
    let upper = rate_of(network.leaving(&set_of), 2 * (sets.len() as u128 - 1));
    (upper, Certificate::Partition { sets })
}

/// The least capacity that leaves a set with a rank inside and one outside. Such a set, or its complement, holds rank
/// 0; so the bounds of broadcast from there and of reduce to there cover all.
fn least_cut(network: &Network<'_>, stop: &dyn Stop) -> Result<(Rate, Certificate), BoundError> {
    let broadcast = rooted_cut(network, Rank::new(0), CutDirection::Out, stop)?;
    let reduce = rooted_cut(network, Rank::new(0), CutDirection::In, stop)?;
    Ok(smaller(broadcast, reduce))
}

/// Each rank alone.
fn singletons(topology: &Topology) -> Vec<Vec<u32>> {
    topology.ranks().map(|rank| vec![rank.number()]).collect()
}

/// Ranks by box, in the order of box names; a rank without box alone.
fn boxes(topology: &Topology) -> Vec<Vec<u32>> {
    let mut alone = Vec::new();
    let mut boxes: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for rank in topology.ranks() {
        match &topology.node(rank.node()).attributes.box_name {
            Some(name) => boxes.entry(name).or_default().push(rank.number()),
            None => alone.push(vec![rank.number()]),
        }
    }
    boxes.into_values().chain(alone).collect()
}
