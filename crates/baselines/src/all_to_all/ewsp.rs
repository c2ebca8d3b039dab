//! `ewsp`: every pair divides its block equally among all of its shortest paths.

use std::ops::ControlFlow;

use canopy_optimize::PathGraph;
use canopy_schedule::{ChunkLayout, Flow};
use canopy_synth::components::{FlowParts, ask, digraph, require_room};
use canopy_synth::{AllToAllError, Stage, SynthesisError, SynthesisRequest, Task};
use canopy_topology::{LinkIndex, Rank};
use num_integer::Integer;

use super::ASK_INTERVAL;

/// Divides every block exactly: into the least common multiple of all pairs' numbers of paths.
///
/// * **Source.** Basu 2024 §5, `EwSP`: shortest by number of links. **Out.** k is that multiple.
/// * **Errors.** More hops than there is room for, more chunks than 64 bits count, stopped.
/// * **Cost.** O(N · links + length of all paths).
pub(super) fn plan(task: &Task<'_>) -> Result<Flow, SynthesisError> {
    let &Task { topology, request, stop, progress, .. } = task;
    let &SynthesisRequest { collective, ref shares, .. } = request;
    let all = ChunkLayout::new(collective, topology.rank_count(), 1, shares)?.total();
    let is_wanted = |source: Rank, rank: Rank| rank != source && shares.block(source, rank) > 0;
    let graph = PathGraph::new(&digraph(topology));
    let (mut chunks, mut hops) = (1_u64, 0_u64);
    for source in topology.ranks() {
        ask(stop)?;
        let paths = graph.shortest_from(source.number());
        for destination in topology.ranks().filter(|&rank| is_wanted(source, rank)) {
            let count = u64::try_from(paths.count(destination.number())).unwrap_or(u64::MAX);
            let length = u64::from(paths.distance(destination.number()).unwrap_or_default());
            hops = hops.saturating_add(count.saturating_mul(length));
            require_room(hops)?;
            let multiple = chunks.checked_mul(count / count.gcd(&chunks)).filter(|chunks| *chunks <= u64::MAX / all);
            chunks = multiple.ok_or(AllToAllError::TooManyParts { limit: u64::MAX / all })?;
        }
    }
    let mut parts = FlowParts::new(topology, chunks);
    for source in topology.ranks() {
        let paths = graph.shortest_from(source.number());
        for (destination, position) in topology.ranks().zip(1_usize..).filter(|&(rank, _)| is_wanted(source, rank)) {
            if position % ASK_INTERVAL == 0 {
                ask(stop)?;
            }
            // Counted above: there is room for all of them.
            let count = u64::try_from(paths.count(destination.number())).unwrap_or(1);
            let each = chunks / count * shares.block(source, destination);
            let mut added = Ok(());
            paths.each(destination.number(), &mut |arcs| {
                let links: Vec<LinkIndex> = arcs.iter().map(|&arc| LinkIndex::new(arc)).collect();
                added = parts.add_path(source, destination, each, &links);
                if added.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            added?;
        }
        progress.report(Stage::Routes, u64::from(source.number()) + 1, topology.rank_count().into());
    }
    Ok(parts.finish())
}
