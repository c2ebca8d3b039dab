//! From a schedule's natural shape to the transfer graph.
//!
//! It refuses what has no meaning as a schedule (plan files of strangers come through here) and fixes the order of
//! transfers and their dependencies. Whether the result does what the collective promises is not its business: the
//! checker decides that from the graph alone.

mod error;
mod flow;
mod forest;
mod guess;
mod once;
mod places;
mod steps;
mod waits;

use canopy_topology::Topology;

use crate::schedule::{Schedule, Shape};
use crate::shares::ChunkLayout;
use crate::transfer::TransferGraph;

pub use error::{CompileError, HopFault, SendFault, TreePlace};

/// Most transfers of one graph: some 44 bytes each, so 5.5 GiB. 4,096 ranks with a tree each need 1.7·10⁷.
const TRANSFERS_MAX: usize = 1 << 27;

/// Whether the caller wants the work to end.
type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// Turns a schedule into the transfer graph that the checker, the simulator and every lowering read.
///
/// | shape | batches, in order | a transfer waits for |
/// |---|---|---|
/// | forest | one per tree: phase by phase, by root, then as listed | what brings its sender the data |
/// | steps | one of a single transfer per send: step by step, then as listed | what its places still have to go through |
/// | flow | one chain per path: by source, by destination, then as listed | the hop before |
/// | stages, orbits | those of the trees that they amount to | as in a forest |
///
/// Every wait is one that the data needs: there are no barriers, neither between the phases of a forest nor between
/// steps. Within a step a place is read before it is written, as sends use what was there before the step; listed
/// order is kept except for that.
///
/// **Rooted collectives.** Broadcast and reduce have trees of one root, the collective's. In gather and scatter a
/// tree's root names the share it carries, and the tree need not reach every rank: it starts at that rank (gather) or
/// at the collective's root (scatter).
///
/// * **Errors.** A schedule that is malformed: see [`CompileError`]. Routes and the chunk counts of carriers are copied
///   as they are, for the checker to judge.
/// * **Cost.** O(transfers + carriers + dependencies), for steps times the logarithm of the transfers. Stages
///   and orbits are refused where there are too many trees to write down; the checker judges those
///   [by their rule](crate::check_stages_until).
pub fn compile(topology: &Topology, schedule: &Schedule) -> Result<TransferGraph, CompileError> {
    compile_until(topology, schedule, &|| false)
}

/// [`compile`], ended early with [`CompileError::Stopped`] soon after `stop` says so. It is asked for every few
/// transfers, so it has to be quick.
pub fn compile_until(
    topology: &Topology,
    schedule: &Schedule,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<TransferGraph, CompileError> {
    let rank_count = topology.rank_count();
    if let Some(root) = schedule.collective.root().filter(|root| root.number() >= rank_count) {
        return Err(CompileError::UnknownRoot { root: root.number(), rank_count });
    }
    let chunks_per_share = schedule.shape.chunks_per_share();
    let layout = ChunkLayout::new(schedule.collective, rank_count, chunks_per_share, &schedule.shares)?;
    match &schedule.shape {
        Shape::Forest(forest) => forest::compile_forest(topology, schedule, forest, &layout, stop),
        Shape::Steps(steps) => steps::compile_steps(topology, schedule, steps, &layout, stop),
        Shape::Flow(flow) => flow::compile_flow(topology, schedule, flow, &layout, stop),
        Shape::Stages(stages) => forest::compile_forest(topology, schedule, &stages.trees(topology)?, &layout, stop),
        Shape::Orbits(orbits) => forest::compile_forest(topology, schedule, &orbits.trees(topology)?, &layout, stop),
    }
}

/// Ends the work if nobody wants it any more.
fn ask(stop: Stop<'_>) -> Result<(), CompileError> {
    if stop() { Err(CompileError::Stopped) } else { Ok(()) }
}
