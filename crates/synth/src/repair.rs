//! Repairs the schedule of a healthy network for the links and ranks that are left.
//!
//! Trees, routes and sends that crossed nothing broken stay as they are. What was cut off is joined again by the best way
//! that is left (`forest`, `flow`, `steps`), then loads are moved off the busiest links (`balance`), within a bounded
//! amount of work. Schedules in time keep what can still be sent when it was (`tacos/mended`). That takes milliseconds where the optimum may take seconds; how far from it the result is, is for others to say.

mod balance;
mod finder;
mod flow;
mod forest;
mod loads;
mod refinement;
mod remainder;
mod steps;
mod tree;

use std::num::NonZeroU64;

use canopy_optimize::Stop;
use canopy_schedule::{CollectiveKind, ExpansionError, Schedule, Shape, SharesError, Steps, TreesError};
use canopy_topology::Topology;

use crate::error::SynthesisError;
use crate::reach::require_reach;
use crate::tacos::mended::{Damage, mended};
use remainder::Remainder;

/// The name of the method that a repaired schedule states.
pub const REPAIR: &str = "repair";

/// Errors of repairing a schedule.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RepairError {
    #[error("{what} is not in the network of the schedule; repair the schedule of the network that broke")]
    Foreign { what: String },
    #[error("the root {root} is gone; plan with another root")]
    RootGone { root: String },
    #[error(
        "no path leads from rank {from_rank} ({from}) to rank {to_rank} ({to}) any more; plan for a connected part"
    )]
    Disconnected { from: String, from_rank: u32, to: String, to_rank: u32 },
    #[error("{collective} as a {shape} cannot be repaired; plan again")]
    Unsupported { collective: CollectiveKind, shape: &'static str },
    #[error("step {step} sends from {from} to {to}, and no route is left between them; plan again")]
    NoRoute { step: u32, from: String, to: String },
    #[error("{gone} is gone, and a schedule in steps cannot lose a rank; plan again")]
    RankGone { gone: String },
    #[error("all ranks with a share are gone, so nothing has to move; plan for other shares")]
    NothingLeft,
    #[error("the schedule does not fit its network: {what}")]
    Malformed { what: &'static str },
    #[error(transparent)]
    Shares(#[from] SharesError),
    #[error("the schedule has too many chunks or hops to be repaired; plan again")]
    TooLarge,
    #[error("stopped before the repair was complete")]
    Stopped,
}

impl From<canopy_optimize::Stopped> for RepairError {
    fn from(_: canopy_optimize::Stopped) -> Self {
        Self::Stopped
    }
}

/// Options of a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairOptions {
    /// Most chunks per share if chunks are made smaller; `None` for any number.
    pub chunks_max: Option<NonZeroU64>,
    /// Message size in bytes for which a schedule in time was made; `None` ignores latencies.
    pub size_bytes: Option<NonZeroU64>,
    /// Whether the schedule is in time ([`Synthesizer::is_in_time`](crate::Synthesizer::is_in_time)).
    pub is_in_time: bool,
}

/// Repairs a schedule of a healthy network for the links and ranks that are left.
///
/// Ranks are numbered anew, in their old order; shares of ranks that are gone are gone with them, and so are their trees and
/// paths. In a forest a branch that was cut off is hung by any of its ranks to the rest of its tree, over the links that are
/// least used; a path takes the least used way from end to end; a send in steps only another route between the same
/// two ranks, but in time ([`RepairOptions::is_in_time`]) anything by anyone where it cannot be as it was. Trees and paths are then
/// moved off the busiest links, in parts where that helps, as long as a potential that doubles with every small part of a link's load
/// falls with it. Steps are not balanced.
///
/// * **In.** `left`: nodes by the ids that they have in `base`, ranks in the same order; fewer links, or of less capacity.
///   A switch that no longer multicasts or aggregates forwards all the same.
///   What there is stays within the options.
/// * **Out.** A schedule of `left` that does the same; chunks may be smaller. Equal arguments give equal schedules.
/// * **Source.** Our own; the potential as of Plotkin, Shmoys and Tardos 1995 for packings. **Errors.** [`RepairError`].
/// * **Cost.** O(hops) per round, and a search over the links for each branch and path moved, at most
///   2²⁰ looks at links, ranks and hops in all once everything is joined.
pub fn repaired(
    base: &Topology,
    schedule: &Schedule,
    left: &Topology,
    options: RepairOptions,
    stop: &dyn Stop,
) -> Result<Schedule, RepairError> {
    let remainder = Remainder::of(base, left)?;
    let collective = remainder.collective(schedule.collective)?;
    let (shares, divisor) = remainder.shares(collective, &schedule.shares)?;
    require_reach(left, collective, &shares).map_err(|error| match error {
        SynthesisError::Disconnected { from, from_rank, to, to_rank } => {
            RepairError::Disconnected { from, from_rank, to, to_rank }
        }
        _ => RepairError::NothingLeft,
    })?;
    let chunks_max = options.chunks_max.map_or(u64::MAX, NonZeroU64::get) / divisor;
    let of = Wanted { remainder: &remainder, collective, shares: &shares, divisor, chunks_max };
    let shape = match &schedule.shape {
        Shape::Forest(forest) => Shape::Forest(forest::repaired(&of, forest, stop)?),
        Shape::Flow(flow) => Shape::Flow(flow::repaired(&of, flow, stop)?),
        // Without some of its links it is a rule no more.
        Shape::Stages(stages) => {
            let trees = stages.trees(base).map_err(|error| match error {
                TreesError::TooManyHops { .. } => RepairError::TooLarge,
                _ => RepairError::Malformed { what: "its stages do not reach all ranks" },
            })?;
            Shape::Forest(forest::repaired(&of, &trees, stop)?)
        }
        Shape::Orbits(orbits) => {
            let trees = orbits.trees(base).map_err(|error| match error {
                ExpansionError::TooManyHops { .. } => RepairError::TooLarge,
                _ => RepairError::Malformed { what: "its orbits do not reach all ranks" },
            })?;
            Shape::Forest(forest::repaired(&of, &trees, stop)?)
        }
        Shape::Steps(steps) => Shape::Steps(in_steps(&of, schedule, steps, options, stop)?),
    };
    Ok(Schedule { collective, algorithm: REPAIR.to_owned(), shares, shape })
}

/// What can still be sent when it was, and the rest by anyone, where that can be found out; else by other routes.
fn in_steps(
    of: &Wanted<'_>,
    schedule: &Schedule,
    steps: &Steps,
    options: RepairOptions,
    stop: &dyn Stop,
) -> Result<Steps, RepairError> {
    if !options.is_in_time {
        return steps::repaired(of, steps);
    }
    let damage = Damage {
        base: of.remainder.base,
        steps,
        planned: (schedule.collective, &schedule.shares),
        ranks: &of.remainder.ranks,
        routes: &of.remainder.routes(&steps.routes),
        left: of.remainder.left,
        wanted: (of.collective, of.shares),
        chunks: steps.chunks_per_share.checked_mul(of.divisor).ok_or(RepairError::TooLarge)?,
    };
    match mended(&damage, options.size_bytes, stop) {
        Ok(steps) => Ok(steps),
        Err(SynthesisError::Stopped) => Err(RepairError::Stopped),
        Err(SynthesisError::TooManyHops { .. }) => Err(RepairError::TooLarge),
        Err(_) => steps::repaired(of, steps),
    }
}

/// Whether faults can turn the network into `left`: only nodes that it had, ranks in their order, and links that are no
/// wider. O(nodes + links · log links).
pub fn is_remainder(base: &Topology, left: &Topology) -> bool {
    Remainder::of(base, left).is_ok()
}

/// What is wanted of the network that is left.
struct Wanted<'a> {
    remainder: &'a Remainder<'a>,
    collective: canopy_schedule::Collective,
    shares: &'a canopy_schedule::Shares,
    /// By how much the weights of the shares have become smaller: as many times more chunks are in each unit.
    divisor: u64,
    /// Most chunks of each unit that was before.
    chunks_max: u64,
}
