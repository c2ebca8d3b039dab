//! All-to-all in steps by a time-stepped multi-commodity flow, on networks without switches.
//!
//! What a rank forwards it has received in an earlier step. How long the steps take at best, and which chunk goes which way
//! when, is found by [`canopy_optimize::stepped_routes`]; here it becomes sends.
//!
//! Source: Basu 2024, §3.1.3, equations (15)–(20).

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::Range;

use canopy_optimize::{ConcurrentProblem, EXACT_VARIABLES_MAX, SteppedOptions, Stop, stepped_routes};
use canopy_schedule::{
    Action, Carrier, ChunkLayout, Collective, CollectiveKind, RouteIndex, RouteTable, Send, Shape, Shares, Steps,
};
use canopy_topology::{LinkIndex, Rank, Topology};

use crate::algorithm::{Algorithm, TreeLimits};
use crate::all_pairs::{commodities, digraph};
use crate::bfb::require_direct;
use crate::error::SynthesisError;
use crate::parts::require_room;
use crate::progress::{Progress, Stage};
use crate::reach::{ask, require_reach};

/// Most chunks of a block, where the request does not say.
const CHUNKS_MAX: u64 = 24;

/// What whole chunks may add to the time, as a part of it: no more chunks are made than keep to it.
const LOSS_MAX: f64 = 0.01;

/// Plans an all-to-all in steps.
///
/// * **In.** Any network of some dozens of ranks that are linked with each other, without switches and devices that only
///   forward. **Out.** As many steps as the greatest distance, or one or two more where that is faster; blocks of as few
///   chunks as lose no more than a hundredth of the least sum of the times of steps, or the best that was found.
/// * **Errors.** [`SynthesisError`]: another collective, switches, disconnected, too large, stopped.
/// * **Cost.** Of [`stepped_routes`]: 27 ranks in a torus take half a second.
pub(crate) fn plan(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    limits: TreeLimits,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Shape, SynthesisError> {
    if collective.kind() != CollectiveKind::AllToAll {
        return Err(SynthesisError::Unsupported { algorithm: Algorithm::Tsmcf, collective: collective.kind() });
    }
    require_direct(topology, Algorithm::Tsmcf)?;
    require_reach(topology, collective, shares)?;
    ask(stop)?;
    progress.report(Stage::Optimum, 0, 1);
    let rank_count = topology.rank_count();
    let (graph, commodities) = (digraph(topology), commodities(rank_count));
    let chunks = match (limits.chunks, limits.max_chunks) {
        (Some(exactly), _) => (exactly.get(), exactly.get()),
        (None, most) => (1, most.map_or(CHUNKS_MAX, NonZeroU64::get)),
    };
    let options = SteppedOptions { chunks, loss_max: LOSS_MAX, transit: &[] };
    let problem = ConcurrentProblem::new(&graph, &commodities, &[])?;
    let found = stepped_routes(&problem, &options, stop)?.ok_or_else(|| SynthesisError::TooLargeForSteps {
        ranks: rank_count,
        links: topology.links().len(),
        limit: EXACT_VARIABLES_MAX,
    })?;
    progress.report(Stage::Optimum, 1, 1);
    let layout = ChunkLayout::new(collective, rank_count, found.chunks_per_unit, shares)?;
    // By step and link, the chunks in order: neighbours of one block together.
    let mut moved: BTreeMap<(u32, u32), Vec<Range<u64>>> = BTreeMap::new();
    let mut count = 0_u64;
    for (commodity, sinks) in commodities.iter().zip(&found.routes) {
        for (&(destination, _), trajectories) in commodity.sinks.iter().zip(sinks) {
            let block = layout.chunks_between(Rank::new(commodity.source), Rank::new(destination));
            let mut start = block.start;
            for trajectory in trajectories {
                let end = start + trajectory.chunk_count;
                for &(link, step) in &trajectory.hops {
                    let ranges = moved.entry((step, link)).or_default();
                    match ranges.last_mut() {
                        Some(last) if last.end == start && start > block.start => last.end = end,
                        _ => {
                            count += 1;
                            require_room(count)?;
                            ranges.push(start..end);
                        }
                    }
                }
                start = end;
            }
        }
    }
    Ok(Shape::Steps(written(topology, found.chunks_per_unit, moved)))
}

/// Sends by step, then by link; every link is a route of its own, so routes are numbered like links.
fn written(topology: &Topology, chunks_per_share: u64, moved: BTreeMap<(u32, u32), Vec<Range<u64>>>) -> Steps {
    let mut routes = RouteTable::default();
    (0..).zip(topology.links()).for_each(|(link, _)| {
        routes.push(&[LinkIndex::new(link)]);
    });
    let mut steps = Steps { chunks_per_share, routes, carriers: Vec::new(), sends: Vec::new() };
    for ((step, link), ranges) in moved {
        let ends = topology.link(LinkIndex::new(link));
        // Every node is a rank, of the same number.
        let (from, to) = (Rank::new(ends.from.number()), Rank::new(ends.to.number()));
        for chunks in ranges {
            let carrier = u32::try_from(steps.carriers.len()).expect("there is room for fewer than 2³² sends");
            steps.carriers.push(Carrier { route: RouteIndex::new(link), chunk_count: chunks.end - chunks.start });
            let carriers = carrier..carrier + 1;
            steps.sends.push(Send { step, action: Action::Copy, from, to, chunks, carriers });
        }
    }
    steps
}
