//! Breadth-first broadcasts: every rank's share takes a shortest way to every other, all at once, in as many steps as the
//! network is wide.
//!
//! In step t each rank receives what is t links away, divided among its links so that the busiest one anywhere carries
//! as little as possible: exactly the optimum, by [`canopy_optimize::Arrivals`]. Here it becomes a schedule: networks are
//! read (`network`), the number of chunks is chosen (`chunks`), shares are divided (`parts`), rank by rank or for one of
//! each kind (`likeness`), and written down as sends (`sends`).
//!
//! Sums go the other way: a reduce-scatter is the allgather of the network with all links turned around, run backwards.
//! That is not the allgather's own reverse unless the network is its own mirror image, and may cost more or less.
//!
//! Source: Zhao 2026, chapter 3 and appendix A.5. Links of different capacities carry what they can in equal times, and
//! where the size of messages is known, those of longer latencies so much less that all are done together (A.12, `latencies`).
//! Ranks may be behind cards whose hosts limit what their links carry together (3.8.5, `wires`): steps then take as
//! long as the busiest link or host anywhere, divided for all ranks at once ([`canopy_optimize::JointArrivals`]).

mod chunks;
mod latencies;
mod likeness;
mod network;
mod parts;
mod sends;
mod wires;

#[cfg(test)]
mod tests;

use std::num::NonZeroU64;

use canopy_optimize::{BfbError, Stop};
use canopy_schedule::{Collective, Schedule, Shape, Shares};
use canopy_topology::Topology;

use self::chunks::Chosen;
use crate::algorithm::{HeededLimits, Memory, Networks, Rival, SPREADING, SynthesisRequest, Synthesizer};
use crate::error::SynthesisError;
use crate::limits::TreeLimits;
use crate::parts::{phase_actions, require_room};
use crate::progress::{Progress, Stage};
use crate::reach::{ask, require_reach};
use likeness::Likeness;
use network::Direction;
use wires::Wires;

pub use wires::has_only_cards;

/// Breadth-first broadcasts.
pub(crate) static BFB: Synthesizer = Synthesizer {
    limits: HeededLimits::Chunks,
    memory: Memory { has_plain_sends: true, ..Memory::USUAL },
    rival: Some(Rival { place: 3, plans: Networks::Carded, ..Rival::LINKS }),
    ..Synthesizer::new(
        "bfb",
        "breadth-first broadcasts in steps on networks without switches other than cards (Zhao 2026, chapter 3)",
        SPREADING,
        |task| {
            let &SynthesisRequest { collective, ref shares, limits, size_bytes, .. } = task.request;
            let asked = Asked { limits, size_bytes, symmetry: Symmetry::Used };
            Ok(task.planned(plan(task.topology, collective, shares, asked, task.stop, task.progress)?))
        },
    )
};

/// Whether ranks that look alike are served alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetry {
    /// Ranks that automorphisms exchange get the same, moved; what the automorphisms are is found out and verified.
    Used,
    /// Every rank is served by itself.
    Unused,
}

/// The schedule that [`synthesize`](crate::synthesize()) makes for a request by `bfb`, with or without a look at
/// symmetries: the step costs are the same, the making is not as fast.
///
/// # Errors
/// The same.
pub fn breadth_first(
    topology: &Topology,
    request: &SynthesisRequest,
    symmetry: Symmetry,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Schedule, SynthesisError> {
    let &SynthesisRequest { collective, ref shares, limits, size_bytes, .. } = request;
    let shape = plan(topology, collective, shares, Asked { limits, size_bytes, symmetry }, stop, progress)?;
    let algorithm = BFB.name.to_owned();
    Ok(Schedule { collective, algorithm, shares: shares.clone(), shape })
}

/// What is asked of a plan, besides what it is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) limits: TreeLimits,
    /// Size of the messages, for which latencies are weighed against rates; none: latencies are left out of account.
    pub(crate) size_bytes: Option<NonZeroU64>,
    pub(crate) symmetry: Symmetry,
}

/// Plans a collective as breadth-first broadcasts.
///
/// * **In.** Any network whose ranks are linked with each other, without switches and devices that only forward, but
///   for cards of one rank each. Shares of any sizes. **Out.** As many steps as the greatest distance, twice that for
///   an allreduce; the bandwidth term is the least that steps of breadth-first broadcasts have with this number of
///   chunks per share, by default the least number with which no other one does better
///   ([`canopy_optimize::chunks_needed`]). Where links into a rank differ in latency and that counts at the size
///   stated, it is the time of the steps, latencies included, that is the least, by default with a number of chunks
///   that comes close to what undivided shares would take.
/// * **Errors.** [`SynthesisError`]: another collective, switches, disconnected, too many chunks or hops, stopped.
/// * **Cost.** O(ranks · links) for the searches, and for each rank and step a flow of as many arcs as there are sets of
///   in-links; on all threads of the caller's pool. Memory of some 80 bytes for each pair of ranks. Behind hosts, each
///   step has a few flows of these arcs for all ranks.
pub(crate) fn plan(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    Asked { limits, size_bytes, symmetry }: Asked,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Shape, SynthesisError> {
    let kind = collective.kind();
    let actions = phase_actions(kind).ok_or(BFB.unsupported(kind))?;
    let wires = Wires::of(topology)?;
    require_reach(topology, collective, shares)?;
    let amounts = network::amounts(topology, collective, shares);
    let sources = amounts.iter().filter(|&&amount| amount > 0).count() as u64;
    require_room(sources * u64::from(topology.rank_count()).saturating_sub(1) * actions.len() as u64)?;
    ask(stop)?;
    progress.report(Stage::Optimum, 0, 1);
    let likeness = match symmetry {
        Symmetry::Used if !wires.have_hosts() => Likeness::of(topology, &amounts, stop)?,
        Symmetry::Used | Symmetry::Unused => Likeness::none(topology.rank_count()),
    };
    let directions = actions.iter().map(|&action| Direction::new(&wires, action, &amounts, stop));
    let directions = directions.collect::<Result<Vec<_>, _>>()?;
    let size_bytes = size_bytes.filter(|_| !wires.have_hosts() && latencies::are_unequal(&wires, &directions));
    let Chosen { directions, chunks, loads } = match size_bytes {
        Some(size_bytes) => chunks::choose_in_time(&wires, directions, &likeness, limits, size_bytes, stop)?,
        None => {
            let (chunks, loads) = chunks::choose(&directions, &likeness, limits, stop)?;
            Chosen { directions, chunks, loads }
        }
    };
    progress.report(Stage::Optimum, 1, 1);
    let mut divided = Vec::with_capacity(directions.len());
    for (direction, loads) in directions.iter().zip(&loads) {
        let tell = |done, total| {
            let phase = divided.len() as u64;
            progress.report(Stage::Routes, phase * total + done, actions.len() as u64 * total);
        };
        let shares = match &direction.joint {
            Some(joint) => parts::divide_jointly(joint, chunks, loads, stop, &tell)?,
            None => parts::divide(&direction.graph, &likeness, chunks, loads, stop, &tell)?,
        };
        divided.push(shares);
    }
    sends::write(&wires, collective, shares, chunks, &directions, divided, stop).map(Shape::Steps)
}

impl From<BfbError> for SynthesisError {
    fn from(error: BfbError) -> Self {
        match error {
            BfbError::Stopped(_) => Self::Stopped,
            BfbError::TooLarge { .. } => Self::Bfb(error),
            BfbError::WrongLength { .. }
            | BfbError::TooFewDelays { .. }
            | BfbError::InexactDelays { .. }
            | BfbError::Unreachable { .. }
            | BfbError::Graph(_) => Self::Broken { what: format!("breadth-first broadcasts: {error}") },
        }
    }
}
