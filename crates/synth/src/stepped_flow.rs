//! All-to-all in steps by a time-stepped multi-commodity flow.
//!
//! What a rank forwards it has received in an earlier step; switches, and devices that only forward, are passed within a step,
//! so a send is a route from rank to rank. How long the steps take at best, and which chunk goes which way
//! when, is found by [`canopy_optimize::stepped_routes`]; here it becomes sends.
//!
//! Source: Basu 2024, §3.1.3, equations (15)–(20).

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::Range;

use canopy_optimize::{ConcurrentProblem, EXACT_VARIABLES_MAX, SteppedOptions, stepped_routes};
use canopy_schedule::{Action, ChunkLayout, CollectiveKind, Pace, RouteInterner, Shape, Steps};
use canopy_topology::{Link, LinkIndex, NodeIndex, Rank, Topology};

use crate::algorithm::{HeededLimits, Memory, Rival, Scale, Solver, SynthesisRequest, Synthesized, Synthesizer, Task};
use crate::all_pairs::{commodities, digraph};
use crate::error::SynthesisError;
use crate::parts::{Sending, StepsParts, require_room};
use crate::progress::Stage;
use crate::reach::{ask, require_reach};

/// All-to-all in steps.
pub(crate) static TSMCF: Synthesizer = Synthesizer {
    limits: HeededLimits::Chunks,
    memory: Memory { solver: Solver::SteppedFlow, ..Memory::USUAL },
    rival: Some(Rival { place: 14, work: Scale::programs, ..Rival::PAIRS }),
    ..Synthesizer::new(
        "tsmcf",
        "all-to-all in steps by a time-stepped multi-commodity flow (Basu 2024, section 3.1.3)",
        &[CollectiveKind::AllToAll],
        plan,
    )
};

/// Most chunks of a block, where the request does not say.
const CHUNKS_MAX: u64 = 24;

/// What whole chunks may add to the time, as a part of it: no more chunks are made than keep to it.
const LOSS_MAX: f64 = 0.01;

/// Plans an all-to-all in steps.
///
/// * **In.** Any network of some dozens of ranks. **Out.** As many steps as the greatest distance from rank to rank, or one or two
///   more where that is faster; blocks of as few chunks as lose no more than a hundredth of the least sum of the times of steps,
///   or the best that was found.
/// * **Errors.** [`SynthesisError`]: another collective, disconnected, too large, stopped.
/// * **Cost.** Of [`stepped_routes`]: 27 ranks in a torus take half a second.
fn plan(task: &Task<'_>) -> Result<Synthesized, SynthesisError> {
    let &Task { topology, request, stop, progress, .. } = task;
    let &SynthesisRequest { collective, ref shares, limits, .. } = request;
    if collective.kind() != CollectiveKind::AllToAll {
        return Err(TSMCF.unsupported(collective.kind()));
    }
    require_reach(topology, collective, shares)?;
    ask(stop)?;
    progress.report(Stage::Optimum, 0, 1);
    let rank_count = topology.rank_count();
    let (graph, commodities) = (digraph(topology), commodities(rank_count, shares));
    let transit: Vec<bool> =
        (0..graph.node_count).map(|node| topology.rank_of(NodeIndex::new(node)).is_none()).collect();
    let chunks = match (limits.chunks, limits.max_chunks) {
        (Some(exactly), _) => (exactly.get(), exactly.get()),
        (None, most) => (1, most.map_or(CHUNKS_MAX, NonZeroU64::get)),
    };
    let options = SteppedOptions { chunks, loss_max: LOSS_MAX, transit: &transit };
    let problem = ConcurrentProblem::new(&graph, &commodities, &[])?;
    let found = stepped_routes(&problem, &options, stop)?.ok_or_else(|| SynthesisError::TooLargeForSteps {
        ranks: rank_count,
        links: topology.links().len(),
        limit: EXACT_VARIABLES_MAX,
    })?;
    progress.report(Stage::Optimum, 1, 1);
    let layout = ChunkLayout::new(collective, rank_count, found.chunks_per_unit, shares)?;
    // By step and route, the chunks in order: neighbours of one block together.
    let mut moved: BTreeMap<(u32, Vec<LinkIndex>), Vec<Range<u64>>> = BTreeMap::new();
    let mut count = 0_u64;
    for (commodity, sinks) in commodities.iter().zip(&found.routes) {
        for (&(destination, _), trajectories) in commodity.sinks.iter().zip(sinks) {
            let block = layout.chunks_between(Rank::new(commodity.source), Rank::new(destination));
            let mut start = block.start;
            for trajectory in trajectories {
                let end = start + trajectory.chunk_count;
                // What is passed in one step is one route, from rank to rank.
                for hops in trajectory.hops.chunk_by(|one, next| one.1 == next.1) {
                    let route = hops.iter().map(|&(link, _)| LinkIndex::new(link)).collect();
                    let ranges = moved.entry((hops[0].1, route)).or_default();
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
    Ok(task.planned(Shape::Steps(written(topology, found.chunks_per_unit, moved)?)))
}

/// Sends by step, then by route. The first routes are the links from rank to rank, each by itself.
fn written(
    topology: &Topology,
    chunks_per_share: u64,
    moved: BTreeMap<(u32, Vec<LinkIndex>), Vec<Range<u64>>>,
) -> Result<Steps, SynthesisError> {
    let mut routes = RouteInterner::default();
    for (link, Link { from, to, .. }) in (0..).map(LinkIndex::new).zip(topology.links()) {
        if topology.rank_of(*from).is_some() && topology.rank_of(*to).is_some() {
            routes.intern(&[link]);
        }
    }
    let mut steps = StepsParts::new(chunks_per_share, Pace::Barriers);
    for ((step, links), ranges) in moved {
        let (from, to) = ends(topology, &links)?;
        let route = routes.intern(&links);
        for chunks in ranges {
            steps.push(Sending { step, action: Action::Copy, from, to, chunks, route });
        }
    }
    Ok(steps.finish(routes.finish()))
}

/// The ranks at the ends of a route.
fn ends(topology: &Topology, links: &[LinkIndex]) -> Result<(Rank, Rank), SynthesisError> {
    let from = links.first().and_then(|&link| topology.rank_of(topology.link(link).from));
    let to = links.last().and_then(|&link| topology.rank_of(topology.link(link).to));
    let broken = || SynthesisError::Broken { what: format!("a way in time that ends a step between ranks: {links:?}") };
    from.zip(to).ok_or_else(broken)
}
