//! Capacities in multiples of what all demands are multiples of, wherever trees do with less than there is.
//!
//! A damaged box can make it take many trees per root, such as 83. In boxes that are whole these then come in odd numbers,
//! too, since capacities are, although their trees would do with multiples of 83. Where pieces are put together, each odd
//! number divides a tree in two.

use canopy_optimize::{FlowUnit, Stop};
use num_integer::Integer;

use crate::error::SynthesisError;
use crate::forest::condition::Condition;
use crate::forest::network::Network;
use crate::forest::trim::Tight;

/// Attempts, each of which takes a test.
const ATTEMPTS_MAX: usize = 4;

/// Rounds capacities down to multiples of the greatest common divisor of all demands, around no cluster where too little would
/// be left. Says by what pieces can be divided at most, whether anything was rounded or not.
///
/// * **In.** Capacities that meet the condition. **Out.** Such that still do. **Errors.** Stopped. **Cost.** Up to
///   [`ATTEMPTS_MAX`] tests.
pub(super) fn coarsen<C: FlowUnit>(
    network: &Network<'_>,
    tight: &mut Tight<C>,
    demands: &[C],
    stop: &dyn Stop,
) -> Result<u128, SynthesisError> {
    let unit = demands.iter().fold(0, |unit: u128, demand| unit.gcd(&demand.to_u128()));
    if unit <= 1 {
        return Ok(1);
    }
    let owners = owners(network, tight);
    let round = |capacity: C| {
        let whole = capacity.to_u128() / unit * unit;
        C::try_from_u128(whole).expect("no more than the capacity")
    };
    // The last one is that of links in no cluster.
    let mut is_fine = vec![false; tight.clusters.len() + 1];
    for _ in 0..ATTEMPTS_MAX {
        let rounded = |(&capacity, &owner): (&C, &usize)| if is_fine[owner] { capacity } else { round(capacity) };
        let capacities: Vec<C> = tight.capacities.iter().zip(&owners).map(rounded).collect();
        if capacities == tight.capacities || !network.switches_are_balanced(&capacities) {
            return Ok(unit);
        }
        let edges = network.links.iter().zip(&capacities).map(|(link, &capacity)| (link.from, link.to, capacity));
        let mut condition = Condition::new(edges, demands.to_vec(), network.terminal_count, stop)?;
        let Some(violation) = condition.violation()? else {
            tight.capacities = capacities;
            return Ok(unit);
        };
        let lost = network.links.iter().zip(&owners).zip(tight.capacities.iter().zip(&capacities));
        for ((link, &owner), (before, after)) in lost {
            if before != after && !violation.set[link.from as usize] && violation.set[link.to as usize] {
                is_fine[owner] = true;
            }
        }
    }
    Ok(unit)
}

/// By link: the innermost cluster with both of its ends, or one beyond all.
fn owners<C>(network: &Network<'_>, tight: &Tight<C>) -> Vec<usize> {
    let none = tight.clusters.len();
    let (mut innermost, mut around) = (vec![none; network.node_count as usize], vec![none; none]);
    // Children before parents.
    for (number, cluster) in tight.clusters.iter().enumerate() {
        cluster.children.iter().for_each(|&child| around[child] = number);
        for &node in &cluster.nodes {
            let known = &mut innermost[node as usize];
            *known = (*known).min(number);
        }
    }
    let owner = |link: &crate::forest::network::Way| {
        let (mut one, mut other) = (innermost[link.from as usize], innermost[link.to as usize]);
        while one != other {
            // The later one is not inside the other.
            let inner = if one < other { &mut one } else { &mut other };
            *inner = around[*inner];
        }
        one
    };
    network.links.iter().map(owner).collect()
}
