//! The bound on all-to-all that lengths of links prove.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use canopy_topology::{NodeIndex, Rank, Rate, Topology};
use num_bigint::BigUint;
use rayon::prelude::*;

use super::CertificateError;
use crate::collective::CollectiveKind;
use crate::shares::Shares;

/// What lengths of links add up to: `Σ c·ℓ` over all links and `Σ w(s, t)·dist_ℓ(s, t)` over all ordered pairs of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LpDualSums {
    /// Σ c·ℓ, in bytes per second.
    pub volume: BigUint,
    /// Σ over pairs of different ranks of the length of a shortest path, times the weight of the block where these differ.
    pub distance: BigUint,
}

/// Adds up what a dual of all-to-all stands on.
///
/// * **In.** Shares of an all-to-all between these ranks: equal, or weights of blocks.
/// * **Errors.** A number of lengths that is not the number of links; a rank that has something for one it cannot reach.
/// * **Cost.** One search by Dijkstra for each rank, `O((V + E) log V)`, on the threads of the caller's pool.
pub fn lp_dual_sums(topology: &Topology, shares: &Shares, lengths: &[u64]) -> Result<LpDualSums, CertificateError> {
    if lengths.len() != topology.links().len() {
        return Err(CertificateError::LengthCount { found: lengths.len(), expected: topology.links().len() });
    }
    let product = |(link, &length): (&canopy_topology::Link, &u64)| {
        BigUint::from(u128::from(link.capacity.bytes_per_sec()) * u128::from(length))
    };
    let volume = topology.links().iter().zip(lengths).map(product).sum();
    let ranks: Vec<Rank> = topology.ranks().collect();
    let sum = |search: &mut Search, rank: Rank| search.sum(topology, shares, lengths, rank);
    let sums: Vec<Result<BigUint, CertificateError>> = ranks.into_par_iter().map_init(Search::default, sum).collect();
    // In the order of ranks, so that the first one at fault is named whatever the number of threads.
    let distance = sums.into_iter().sum::<Result<BigUint, _>>()?;
    Ok(LpDualSums { volume, distance })
}

/// `algbw ≤ (W/N)·Σ c·ℓ / Σ_{s≠t} w(s, t)·dist_ℓ(s, t)`, where equal blocks have weight 1: then `W/N` is `N`.
pub(super) fn lp_dual_bound(
    topology: &Topology,
    collective: CollectiveKind,
    shares: &Shares,
    lengths: &[u64],
) -> Result<Rate, CertificateError> {
    if collective != CollectiveKind::AllToAll {
        return Err(CertificateError::NotApplicable { kind: "lp-dual", collective });
    }
    let sums = lp_dual_sums(topology, shares, lengths)?;
    let ranks = u128::from(topology.rank_count());
    let (weight, divisor) = match shares {
        Shares::Equal | Shares::Weighted(_) => (ranks, 1),
        Shares::Blocks(_) => (shares.weight_total(topology.rank_count()), ranks),
    };
    Rate::new(sums.volume * weight, sums.distance * divisor).ok_or(CertificateError::NoDistance)
}

/// Buffers of one search, used again for the next.
#[derive(Default)]
struct Search {
    distances: Vec<Option<u128>>,
    queue: BinaryHeap<Reverse<(u128, u32)>>,
}

impl Search {
    /// Σ of the distances from one rank to all others, each times its block. Less than 2³² links of less than 2⁶⁴ make less
    /// than 2⁹⁶.
    fn sum(
        &mut self,
        topology: &Topology,
        shares: &Shares,
        lengths: &[u64],
        source: Rank,
    ) -> Result<BigUint, CertificateError> {
        self.distances.clear();
        self.distances.resize(topology.nodes().len(), None);
        self.distances[source.index()] = Some(0);
        self.queue.push(Reverse((0, source.number())));
        while let Some(Reverse((distance, node))) = self.queue.pop() {
            if self.distances[node as usize] != Some(distance) {
                continue;
            }
            for index in topology.links_from(NodeIndex::new(node)) {
                let to = topology.link(index).to;
                let through = distance + u128::from(lengths[index.index()]);
                let known = &mut self.distances[to.index()];
                if known.is_none_or(|known| through < known) {
                    *known = Some(through);
                    self.queue.push(Reverse((through, to.number())));
                }
            }
        }
        // Numbers of 128 bits take a fraction of the time that others do, and mostly suffice.
        let (mut small, mut rest) = (0_u128, BigUint::ZERO);
        for (rank, distance) in topology.ranks().zip(&self.distances) {
            let weight = shares.block(source, rank);
            if weight > 0 && rank != source {
                let unreachable = CertificateError::Unreachable { from: source.number(), to: rank.number() };
                let distance = distance.ok_or(unreachable)?;
                match distance.checked_mul(weight.into()).and_then(|product| small.checked_add(product)) {
                    Some(sum) => small = sum,
                    None => rest += BigUint::from(distance) * weight,
                }
            }
        }
        Ok(rest + small)
    }
}
