//! Several collectives at once, whose messages stand in the same queues.

use std::num::NonZeroU64;

use canopy_optimize::Stop;
use canopy_schedule::{Action, ChunkLayout, ChunkSize, Collective, Shares};
use canopy_synth::components::{Clock, Heading, ask, phase_actions};
use canopy_synth::{Algorithm, Composition, SynthesisError};
use canopy_topology::{Rank, Topology};
use num_integer::Integer;

use crate::queues::QueuedLink;

use super::ways::Ways;
use super::{Model, Run, physical, queued_link};

/// One of several collectives that run at the same time.
#[derive(Clone, Debug)]
pub struct Tenant {
    /// Among its own ranks.
    pub collective: Collective,
    /// By own rank, the rank of the network.
    pub members: Vec<Rank>,
    /// Chunks of a share.
    pub chunks: NonZeroU64,
    /// Of its vector or message, in bytes.
    pub size_bytes: NonZeroU64,
}

/// Time of a published baseline for several collectives that begin together, in picoseconds: until the last message came
/// to its end.
///
/// All messages stand in the same queues, those of the first collective first. A second phase of an allreduce begins when all
/// first messages are there.
///
/// * **Source.** Won et al., section 8 G. **In.** [`super::DIRECT_XY`] or [`super::RING_XY`]; `alpha_ns` as of
///   [`super::queued_time_ps`]. **Errors.** A collective that the baseline does not run; no way leads from one member to
///   another; sizes that are too far apart; too many hops; stopped. **Cost.** O(links of all ways · log of these).
pub fn queued_together_ps(
    topology: &Topology,
    (composition, algorithm): (Option<&Composition>, Algorithm),
    tenants: &[Tenant],
    alpha_ns: u64,
    stop: &dyn Stop,
) -> Result<u64, SynthesisError> {
    let shares = Shares::Equal;
    let layout = |tenant: &Tenant| {
        let rank_count = u32::try_from(tenant.members.len()).unwrap_or(u32::MAX);
        ChunkLayout::new(tenant.collective, rank_count, tenant.chunks.get(), &shares)
    };
    let layouts: Vec<ChunkLayout> = tenants.iter().map(layout).collect::<Result<_, _>>()?;
    let (unit, weights) = weights(tenants, &layouts).ok_or_else(|| SynthesisError::Broken {
        what: "the chunks of the collectives have no common measure that 64 bits hold".to_owned(),
    })?;
    let physical = physical(topology, alpha_ns);
    let clock = Clock::for_chunks(&physical, unit.size, Some(unit.bytes));
    let links: Vec<QueuedLink> = clock.network(&physical)?.links().iter().map(queued_link).collect();
    let ways = Ways::new(topology, composition, Heading::Along);
    let mut end = 0_u64;
    for phase in 0..2 {
        let mut run = Run::new();
        for ((tenant, layout), &weight) in tenants.iter().zip(&layouts).zip(&weights) {
            ask(stop)?;
            let collective = tenant.collective;
            let phases = phase_actions(collective.kind()).unwrap_or(&[Action::Copy]);
            let Some(&action) = phases.get(phase) else { continue };
            let is_gathered = action == Action::Reduce;
            let (members, seed, links, shares) = (tenant.members.as_slice(), 0, links.as_slice(), &shares);
            let model =
                Model { topology, collective, shares, algorithm, seed, layout, links, members, weight, is_gathered };
            model.fill(&mut run, &ways, Heading::Along, stop)?;
        }
        run.send(topology, &links, Heading::Along, stop)?;
        end = end.saturating_add(run.end(&links));
    }
    Ok(clock.picoseconds(end, unit.bytes))
}

/// The greatest common measure of the chunks of all collectives: so many bytes, divided into so many.
struct Unit {
    bytes: NonZeroU64,
    size: ChunkSize,
}

/// The measure, and how often it is in a chunk of each; none where 64 bits do not hold them.
fn weights(tenants: &[Tenant], layouts: &[ChunkLayout]) -> Option<(Unit, Vec<u64>)> {
    let sizes: Vec<ChunkSize> = layouts.iter().map(ChunkLayout::size).collect();
    let chunks = |size: &ChunkSize| u128::from(size.chunks);
    let all = sizes.iter().map(chunks).try_fold(1, |all: u128, chunks| (all / all.gcd(&chunks)).checked_mul(chunks))?;
    let parts = tenants.iter().zip(&sizes).map(|(tenant, size)| {
        let bytes = u128::from(tenant.size_bytes.get()) * u128::from(size.divisor);
        bytes.checked_mul(all / chunks(size))
    });
    let parts: Vec<u128> = parts.collect::<Option<_>>()?;
    let measure = parts.iter().copied().fold(0_u128, |all, part| all.gcd(&part));
    let common = measure.gcd(&all);
    let small = |number: u128| u64::try_from(number).ok();
    let bytes = NonZeroU64::new(small(measure.checked_div(common)?)?)?;
    let size = ChunkSize { chunks: small(all / common)?, divisor: 1 };
    let weights = parts.iter().map(|part| small(part / measure)).collect::<Option<_>>()?;
    Some((Unit { bytes, size }, weights))
}
