//! An upper bound on all-to-all, with lengths of links as its proof.
//!
//! The best lengths are those of a linear program; where that is too large, a few kinds of lengths are tried that are best on
//! regular networks. Then the bound holds, but may be out of reach.

use std::collections::BTreeMap;

use canopy_optimize::Stop;
use canopy_schedule::{Bound, Certificate, ChunkLayout, Collective, CollectiveKind, Shares};
use canopy_topology::{Link, NodeIndex, Rank, Rate, Topology};
use num_integer::Integer;

use super::lengths::rate_of;
use super::{BoundError, symmetric};
use crate::concurrent::AllToAllFlow;
use crate::error::SynthesisError;
use crate::progress::Silent;
use crate::reach::first_unreachable;

/// Greatest length that is made: what is longer is rounded, which costs a little of the bound, never its truth.
const LENGTH_MAX: u64 = 1 << 40;

/// Most boxes whose cuts are tried: the first ones.
const BOXES_MAX: usize = 64;

/// The bound of the program where it can be solved, else a bound by itself. On large networks with few kinds of links the
/// program is one of few rows.
///
/// * **Errors.** Ranks that cannot reach each other; stopped. **Cost.** That of [`AllToAllFlow::of`].
pub(super) fn bound(topology: &Topology, shares: &Shares, stop: &dyn Stop) -> Result<Bound, BoundError> {
    if let Some(bound) = symmetric::bound(topology, shares, stop)? {
        return Ok(bound);
    }
    match AllToAllFlow::of(topology, shares, None, stop, &Silent) {
        Ok(flow) => Ok(flow.bound(topology)),
        Err(SynthesisError::TooManyVariables { .. } | SynthesisError::TooUneven) => counted(topology, shares, stop),
        Err(SynthesisError::Disconnected { from, from_rank, to, to_rank }) => {
            Err(BoundError::Disconnected { from, from_rank, to, to_rank })
        }
        Err(SynthesisError::Stopped) => Err(BoundError::Stopped),
        Err(error) => Err(BoundError::Broken { what: error.to_string() }),
    }
}

/// A bound on all-to-all that is there soon: on large networks with few kinds of links the best one, else by counting alone
/// the least of those of a few kinds of lengths. It is never below that of [`bound`](super::bound).
///
/// * **Errors.** Ranks that can not reach each other; shares that do not fit; stopped.
/// * **Cost.** The search for symmetries, and three searches of the network for each rank: a tenth of a second for 1,000.
pub fn quick_bound(topology: &Topology, shares: &Shares, stop: &dyn Stop) -> Result<Bound, BoundError> {
    let ranks = topology.rank_count();
    let broken = |error: &dyn std::error::Error| BoundError::Broken { what: error.to_string() };
    let collective = Collective::new(CollectiveKind::AllToAll, None, ranks).map_err(|error| broken(&error))?;
    ChunkLayout::new(collective, ranks, 1, shares)?;
    if let Some((from, to)) = first_unreachable(topology, collective, shares) {
        let id = |rank: Rank| topology.node(rank.node()).id.clone();
        let (from_rank, to_rank) = (from.number(), to.number());
        return Err(BoundError::Disconnected { from: id(from), from_rank, to: id(to), to_rank });
    }
    match symmetric::bound(topology, shares, stop)? {
        Some(bound) => Ok(bound),
        None => counted(topology, shares, stop),
    }
}

/// The least of the bounds `N·Σ c·ℓ / Σ_{s≠t} dist_ℓ(s, t)` for these lengths ℓ, or of those for weighted blocks:
///
/// * `1/c`: each link counts as one, however fast. Best where the network looks the same from every link, like a torus:
///   then it is `N·L / Σ dist` for `L` links, which shortest paths reach.
/// * 1 for each link: the capacity there is against the least number of links used.
/// * 1 for links that leave a set, or enter it, else 0: the cut that seems narrowest among those of one rank, of one box,
///   and of the first half of the boxes.
///
/// Nothing is said of what can be reached: `lower` is 0.
///
/// * **Source.** Weak duality of the maximum concurrent flow program, Basu 2024 §3.1, equations (1)–(5).
/// * **Errors.** Ranks that cannot reach each other; stopped.
/// * **Cost.** Three searches for each rank.
///
/// * **In.** Ranks that reach those they have something for.
fn counted(topology: &Topology, shares: &Shares, stop: &dyn Stop) -> Result<Bound, BoundError> {
    let ones = vec![1; topology.links().len()];
    let mut candidates = vec![narrowest_cut(topology, shares), inverse_capacities(topology)];
    if candidates.iter().all(|lengths| *lengths != ones) {
        candidates.push(ones);
    }
    let mut best: Option<(Rate, Vec<u64>)> = None;
    for lengths in candidates {
        let rate = rate_of(topology, shares, &lengths, stop)?;
        if let Some(rate) = rate.filter(|rate| best.as_ref().is_none_or(|(least, _)| rate < least)) {
            best = Some((rate, lengths));
        }
    }
    let nothing = || BoundError::Broken { what: "links of length 1 leave ranks at distance 0".to_owned() };
    let (upper, lengths) = best.ok_or_else(nothing)?;
    Ok(Bound { upper, lower: Rate::zero(), certificate: Certificate::LpDual { lengths } })
}

/// Lengths in inverse proportion to capacities: exact where their least common multiple allows, else rounded down.
fn inverse_capacities(topology: &Topology) -> Vec<u64> {
    let capacities = || topology.links().iter().map(|link| link.capacity.bytes_per_sec());
    let least = capacities().min().unwrap_or(1);
    let within = |multiple: &u64| multiple / least <= LENGTH_MAX;
    let lcm =
        capacities().try_fold(1_u64, |lcm, capacity| lcm.checked_mul(capacity / lcm.gcd(&capacity)).filter(within));
    match lcm {
        Some(lcm) => capacities().map(|capacity| lcm / capacity).collect(),
        None => {
            let numerator = u128::from(least) * u128::from(LENGTH_MAX);
            let length = |capacity: u64| numerator / u128::from(capacity);
            capacities().map(|capacity| u64::try_from(length(capacity)).expect("at most LENGTH_MAX")).collect()
        }
    }
}

/// Lengths that count the links out of a set, or into it: of all that are tried the one of least capacity for each unit of
/// what has to cross, the bound if every path crosses once.
fn narrowest_cut(topology: &Topology, shares: &Shares) -> Vec<u64> {
    let mut best: Option<(Rate, Vec<u64>)> = None;
    for inside in sets(topology) {
        for outwards in [true, false] {
            let crosses = |link: &Link| {
                let (from, to) = (inside[link.from.index()], inside[link.to.index()]);
                if outwards { from && !to } else { to && !from }
            };
            let lengths: Vec<u64> = topology.links().iter().map(|link| u64::from(crosses(link))).collect();
            let crossing = topology.links().iter().filter(|link| crosses(link));
            let capacity: u128 = crossing.map(|link| u128::from(link.capacity.bytes_per_sec())).sum();
            let rate = Rate::new(capacity, weight_across(topology, shares, &inside, outwards));
            if let Some(rate) = rate.filter(|rate| best.as_ref().is_none_or(|(least, _)| rate < least)) {
                best = Some((rate, lengths));
            }
        }
    }
    best.map_or_else(Vec::new, |(_, lengths)| lengths)
}

/// Weight of what ranks of one side of a set have for those of the other. O(ranks), with weighted blocks O(pairs).
fn weight_across(topology: &Topology, shares: &Shares, inside: &[bool], outwards: bool) -> u128 {
    match shares {
        Shares::Blocks(blocks) => {
            let crosses = |from: Rank, to: Rank| (inside[from.index()], inside[to.index()]) == (outwards, !outwards);
            let crossing = blocks.moving().filter(|&(from, to, _)| crosses(from, to));
            crossing.map(|(_, _, weight)| u128::from(weight)).sum()
        }
        Shares::Equal | Shares::Weighted(_) => {
            let ranks = topology.ranks().filter(|rank| inside[rank.index()]).count() as u128;
            ranks * (u128::from(topology.rank_count()) - ranks)
        }
    }
}

/// Sets of nodes, by node index, each with a rank and without another one.
fn sets(topology: &Topology) -> impl Iterator<Item = Vec<bool>> + '_ {
    let mut boxes: BTreeMap<&str, Vec<NodeIndex>> = BTreeMap::new();
    for (index, node) in (0_u32..).zip(topology.nodes()) {
        if let Some(name) = &node.attributes.box_name {
            boxes.entry(name).or_default().push(NodeIndex::new(index));
        }
    }
    let boxes: Vec<Vec<NodeIndex>> = boxes.into_values().collect();
    let half: Vec<NodeIndex> = boxes.iter().take(boxes.len() / 2).flatten().copied().collect();
    let ranks = extremes(topology).into_iter().map(|rank| vec![rank.node()]);
    let boxes = boxes.into_iter().take(BOXES_MAX);
    let chosen = move |nodes: Vec<NodeIndex>| {
        let mut inside = vec![false; topology.nodes().len()];
        nodes.iter().for_each(|node| inside[node.index()] = true);
        // A switch goes where most of its links lead, or its links would count for nothing.
        let mut pull = vec![0_i128; topology.nodes().len()];
        for link in topology.links() {
            let weight = i128::from(link.capacity.bytes_per_sec());
            pull[link.to.index()] += if inside[link.from.index()] { weight } else { -weight };
            pull[link.from.index()] += if inside[link.to.index()] { weight } else { -weight };
        }
        for switch in topology.rank_count() as usize..inside.len() {
            inside[switch] = inside[switch] || pull[switch] > 0;
        }
        inside
    };
    let all = ranks.chain(boxes).chain([half]);
    all.map(chosen).filter(|inside| {
        let ranks = &inside[..topology.rank_count() as usize];
        ranks.contains(&true) && ranks.contains(&false)
    })
}

/// The ranks of least capacity out and in.
fn extremes(topology: &Topology) -> Vec<Rank> {
    let mut totals = vec![(0_u128, 0_u128); topology.nodes().len()];
    for link in topology.links() {
        totals[link.from.index()].0 += u128::from(link.capacity.bytes_per_sec());
        totals[link.to.index()].1 += u128::from(link.capacity.bytes_per_sec());
    }
    let least_out = topology.ranks().min_by_key(|rank| totals[rank.index()].0);
    let least_in = topology.ranks().min_by_key(|rank| totals[rank.index()].1);
    let mut ranks: Vec<Rank> = least_out.into_iter().chain(least_in).collect();
    ranks.dedup();
    ranks
}
