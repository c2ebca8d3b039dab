//! The rings that NCCL lays across boxes: one for each NIC of a box.
//!
//! A library that knows boxes and NICs, and nothing of what lies behind them, sends around as many rings as a box has NICs,
//! each with an equal part of the data. It is what a plan has to beat there. What libraries choose for small messages, and
//! what they reach of the rate of their links, is not known here.

mod boxed;

use canopy_optimize::Stop;
use canopy_schedule::{Collective, CollectiveKind, Schedule, Shape, Shares};
use canopy_topology::{Rank, Topology};

use super::walk::Walk;
use super::{chains, roots};
use crate::error::SynthesisError;
use crate::parts::phase_actions;
use crate::reach::{ask, require_reach};
use crate::routing::Loads;
use boxed::{Boxed, boxes};

/// Rings through all ranks, one per NIC of a box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicRings {
    /// What goes around them.
    pub schedule: Schedule,
    /// Number of rings.
    pub rings: u32,
}

/// Errors of rings over NICs.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum NicRingsError {
    #[error("{collective} does not run around rings")]
    Unsupported { collective: CollectiveKind },
    #[error("rank {rank} has no box")]
    NoBox { rank: u32 },
    #[error("all ranks are in one box")]
    OneBox,
    #[error("box {name} has no NIC (a link to a switch outside the box)")]
    NoNic { name: String },
    #[error(transparent)]
    Synthesis(#[from] SynthesisError),
}

/// Rings across boxes: each ring has one NIC of every box to come in by and one to leave by.
///
/// A box has K NICs: links from the box to switches outside, the k of greatest rate for which k times the least is most. Ring c
/// comes into a box at the GPU of NIC c, passes all its GPUs, and leaves from the GPU half of the NICs further on; in every
/// second box it is the other way round, so that each wire stays on its rail. All rings go the same way around, boxes in the
/// order of their first ranks, with equal parts of the data: K·r·N/(N−1) for an allgather where NICs of rate r limit.
/// Inside a box whose GPUs are all joined, the lines of different rings pass different pairs (Walecki's zigzags); elsewhere lines
/// follow links as far as a bounded search finds them. Where a box has one NIC alone, what its GPU has is not sent to it again,
/// which is faster than a library's ring by at most (N−1)/(N−g) with g GPUs in a box.
///
/// Where the chains would have more than `transfers_max` hops, each root's share goes around one ring instead of all, one
/// ring after the other: the load of a NIC then is at most one share more.
///
/// * **Source.** The construction of rings by NCCL 2.18 to 2.31, read in its public sources: search per NIC, node order by
///   ranks, odd nodes with neighbouring channels swapped.
/// * **In.** A topology whose ranks all state their box. **Out.** Trees, k = K, or 1 beyond `transfers_max`.
/// * **Errors.** No boxes, one box, a box without a NIC, collectives that use no rings, ranks out of reach, stopped.
/// * **Cost.** K·N searches of the network, then O(K·N²) for the hops.
pub fn nic_rings(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    transfers_max: u64,
    stop: &dyn Stop,
) -> Result<NicRings, NicRingsError> {
    let kind = collective.kind();
    let Some(actions) = phase_actions(kind) else { return Err(NicRingsError::Unsupported { collective: kind }) };
    let boxes = boxes(topology)?;
    require_reach(topology, collective, shares)?;
    if let Some((from, to)) = topology.first_unreachable() {
        return Err(super::no_ring(topology, from, to).into());
    }
    let ring_count = boxes.iter().map(Boxed::nic_count).min().unwrap_or_default();
    let mut boxes = boxes;
    let mut loads = Loads::none(topology);
    let mut walks = Vec::with_capacity(ring_count);
    for ring in 0..ring_count {
        ask(stop).map_err(SynthesisError::from)?;
        let order: Vec<Rank> =
            boxes.iter_mut().enumerate().flat_map(|(place, own)| own.line(ring, ring_count, place)).collect();
        walks.push(Walk::beside(&mut loads, topology, &order, stop)?);
    }
    let walks: Vec<&Walk> = walks.iter().collect();
    let roots = roots(collective, topology.rank_count(), shares);
    let hops = (roots.len() * actions.len() * ring_count) as u64 * u64::from(topology.rank_count().saturating_sub(1));
    let shape: Shape = if hops <= transfers_max {
        chains(topology, actions, &roots, ring_count as u64, |_| &walks, stop)?
    } else {
        let one_of = |place: usize| walks.get(place % ring_count..=place % ring_count).unwrap_or_default();
        chains(topology, actions, &roots, 1, one_of, stop)?
    };
    let schedule = Schedule { collective, algorithm: "nic-rings".to_owned(), shares: shares.clone(), shape };
    let rings = u32::try_from(ring_count).map_err(|_| NicRingsError::OneBox)?;
    Ok(NicRings { schedule, rings })
}

#[cfg(test)]
mod tests;
