//! Step numbers of transfers, for runs with barriers.

use canopy_schedule::{Schedule, Shape, TransferGraph};

/// The step of each transfer of the graph that a schedule was compiled to.
///
/// Schedules in steps state them. Of forests and flows it is the place in the longest chain of waits, from 0: the hops out
/// of all roots are step 0, those after them step 1, and so on. O(transfers + dependencies).
pub fn step_numbers(schedule: &Schedule, graph: &TransferGraph) -> Vec<u32> {
    // The compiler keeps sends step by step and reorders them within a step only, one transfer for each.
    if let Shape::Steps(steps) = &schedule.shape
        && steps.sends.len() == graph.transfers.len()
    {
        return steps.sends.iter().map(|send| send.step).collect();
    }
    let mut levels: Vec<u32> = Vec::with_capacity(graph.transfers.len());
    let mut latest = (0..0, 0);
    for transfer in &graph.transfers {
        if latest.0 != transfer.dependencies {
            let before = graph.dependencies_of(transfer).iter();
            let level = before.filter_map(|&before| levels.get(before as usize)).map(|&level| level + 1).max();
            latest = (transfer.dependencies.clone(), level.unwrap_or(0));
        }
        levels.push(latest.1);
    }
    levels
}
