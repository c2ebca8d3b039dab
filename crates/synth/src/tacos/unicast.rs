//! Chunks that are for one rank each: scatter, gather, all-to-all.

use canopy_optimize::Stop;
use canopy_schedule::{ChunkLayout, Collective, Shares};
use canopy_tacos::{Attempts, Demand, Sends, TimedNetwork, deliver_best};
use canopy_topology::Rank;

use super::{ATTEMPTED_SENDS_MAX, ATTEMPTS_MAX, Asked, refused};
use crate::error::SynthesisError;
use crate::parts::{HOPS_MAX, pairs, phase_actions, require_room};

/// Links that a chunk is taken to pass, where the number of attempts is decided.
const HOPS_EACH: u64 = 4;

impl Asked<'_> {
    /// Whether every chunk is for one rank alone.
    pub(super) const fn is_unicast(&self) -> bool {
        phase_actions(self.collective.kind()).is_none()
    }

    /// Chunks that are to leave the rank that has them, with one for each unit of weight.
    pub(super) fn unicast_weight(&self) -> u64 {
        let (ranks, shares) = (self.topology.rank_count(), self.shares);
        let total = shares.weight_total(ranks);
        let weight = match (self.collective.root(), shares) {
            (Some(root), _) => total.saturating_sub(shares.weight(root).into()),
            (None, Shares::Blocks(blocks)) => {
                let own = |rank: Rank| u128::from(blocks.weight(rank, rank));
                total.saturating_sub(self.topology.ranks().map(own).sum())
            }
            (None, _) => u128::from(ranks) * u128::from(ranks.saturating_sub(1)),
        };
        u64::try_from(weight).unwrap_or(u64::MAX)
    }

    /// The best of some attempts to bring every chunk from the rank that has it to the one that it is for, numbered by demands.
    ///
    /// # Errors
    /// That of [`deliver_best`].
    pub(super) fn delivered(
        &self,
        network: &TimedNetwork,
        demands: &[Demand],
        known: Option<Sends>,
        bound: u64,
        stop: &dyn Stop,
    ) -> Result<Sends, SynthesisError> {
        let count = match known {
            None => 1,
            Some(_) => ATTEMPTED_SENDS_MAX / (HOPS_EACH * demands.len() as u64).max(1),
        };
        let count = u32::try_from(count.clamp(1, ATTEMPTS_MAX)).expect("few");
        let attempts = Attempts { seed: self.seed, count, bound, known };
        deliver_best(network, demands, attempts, stop).map(|attempt| attempt.sends).map_err(refused)
    }
}

/// Chunks that go from one rank to another, and their numbers in the schedule.
///
/// # Errors
/// Too many chunks.
pub(super) fn demands(
    collective: Collective,
    shares: &Shares,
    ranks: u32,
    layout: &ChunkLayout,
) -> Result<(Vec<Demand>, Vec<u32>), SynthesisError> {
    let too_many = SynthesisError::TooManyHops { needed: layout.total(), limit: HOPS_MAX };
    let (mut demands, mut chunks) = (Vec::new(), Vec::new());
    for (source, destination) in pairs(collective, ranks, shares)? {
        let block = layout.chunks_between(source, destination);
        require_room((demands.len() as u64).saturating_add(block.end - block.start))?;
        for chunk in block {
            demands.push(Demand { from: source.number(), to: destination.number() });
            chunks.push(u32::try_from(chunk).map_err(|_| too_many.clone())?);
        }
    }
    Ok((demands, chunks))
}
