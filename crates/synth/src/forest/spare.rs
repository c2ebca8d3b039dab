//! Links that the optimum can do without: their capacity is taken away where that makes smaller pieces.
//!
//! PCI switches lead from each rank to its own NIC and to the processors of its box. Where NICs bring all that ranks can
//! take, what is between the processors is spare: it only keeps boxes from falling into pieces. Links of one kind go
//! together, so that what is equal stays equal.
//!
//! Source: our own.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use canopy_optimize::{FlowUnit, Stop};

use crate::error::SynthesisError;
use crate::forest::ask;
use crate::forest::condition::Condition;
use crate::forest::network::Network;

/// Kinds of links that are tried: a test of the network for each.
const KINDS_MAX: usize = 32;

/// Rounds in which nodes are told apart by their neighbours: enough for a rank, its PCI switch and the processor behind.
const ROUNDS: usize = 3;

/// The capacities without links that can be spared, and those that lead the other way; `None` if there are none.
///
/// * **Source.** Our own. **Errors.** Stopped, too many hops.
/// * **Cost.** Up to 32 tests of the network.
pub(super) fn without_spare_links<C: FlowUnit>(
    network: &Network<'_>,
    capacities: &[C],
    demands: &[C],
    stop: &dyn Stop,
) -> Result<Option<Vec<C>>, SynthesisError> {
    let mut left = capacities.to_vec();
    let mut is_less = false;
    for kind in kinds(network, capacities).into_iter().take(KINDS_MAX) {
        ask(stop)?;
        let mut fewer = left.clone();
        kind.iter().for_each(|&link| fewer[link] = C::ZERO);
        if network.switches_are_balanced(&fewer) && admits(network, &fewer, demands, stop)? {
            left = fewer;
            is_less = true;
        }
    }
    Ok(is_less.then_some(left))
}

fn admits<C: FlowUnit>(
    network: &Network<'_>,
    capacities: &[C],
    demands: &[C],
    stop: &dyn Stop,
) -> Result<bool, SynthesisError> {
    let edges = network.links.iter().zip(capacities).map(|(link, &capacity)| (link.from, link.to, capacity));
    let mut condition = Condition::new(edges, demands.to_vec(), network.terminal_count, stop)?;
    Ok(condition.violation()?.is_none())
}

/// Links that look alike, by rising capacity: between nodes whose neighbours look alike, in either direction.
fn kinds<C: FlowUnit>(network: &Network<'_>, capacities: &[C]) -> Vec<Vec<usize>> {
    let looks = looks(network);
    let mut kinds: BTreeMap<(u128, u64, u64), Vec<usize>> = BTreeMap::new();
    for (place, (link, capacity)) in network.links.iter().zip(capacities).enumerate() {
        let (from, to) = (looks[link.from as usize], looks[link.to as usize]);
        kinds.entry((capacity.to_u128(), from.min(to), from.max(to))).or_default().push(place);
    }
    // Which of those of one capacity come first depends on nothing but how many they are and where the first is.
    let mut kinds: Vec<(u128, usize, Vec<usize>)> =
        kinds.into_iter().map(|((capacity, ..), links)| (capacity, links.len(), links)).collect();
    kinds.sort_by_key(|(capacity, count, links)| (*capacity, std::cmp::Reverse(*count), links[0]));
    kinds.into_iter().map(|(_, _, links)| links).collect()
}

/// By node: a number that is the same for nodes whose surroundings have the same shape, whatever the capacities.
fn looks(network: &Network<'_>) -> Vec<u64> {
    let mut looks: Vec<u64> = (0..network.node_count).map(|node| u64::from(node < network.terminal_count)).collect();
    for _ in 0..ROUNDS {
        let mut around: Vec<Vec<u64>> = vec![Vec::new(); looks.len()];
        for link in &network.links {
            around[link.to as usize].push(looks[link.from as usize]);
        }
        looks = around
            .iter_mut()
            .zip(&looks)
            .map(|(around, own)| {
                around.sort_unstable();
                let mut hasher = DefaultHasher::new();
                (own, around).hash(&mut hasher);
                hasher.finish()
            })
            .collect();
    }
    looks
}
