//! Divided shares as a schedule in steps.

use canopy_optimize::Stop;
use canopy_schedule::{Action, ChunkLayout, Collective, Pace, RouteIndex, Shares, Steps};
use canopy_topology::Rank;

use super::network::Direction;
use super::parts::{Part, Received};
use super::wires::Wires;
use crate::error::SynthesisError;
use crate::parts::{Sending, StepsParts, require_room};
use crate::reach::ask;

/// Writes the phases down, one after the other: by step, then by receiver, sums backwards.
///
/// Every wire is a route of its own, so routes are numbered like wires.
///
/// # Errors
/// More sends than there is room for; stopped. O(sends).
pub(super) fn write(
    wires: &Wires,
    collective: Collective,
    shares: &Shares,
    chunks_per_share: u64,
    directions: &[Direction],
    divided: Vec<Vec<Received>>,
    stop: &dyn Stop,
) -> Result<Steps, SynthesisError> {
    let rank_count = directions.first().map_or(0, |direction| direction.graph.node_count());
    let layout = ChunkLayout::new(collective, rank_count, chunks_per_share, shares)?;
    let first_chunk = |source: u32| match collective.root() {
        Some(_) => 0,
        None => layout.chunks_of(Rank::new(source)).start,
    };
    let count = divided.iter().flatten().map(Received::len).sum::<usize>();
    require_room(count as u64)?;
    let mut steps = StepsParts::new(chunks_per_share, Pace::Barriers);
    steps.reserve(count);
    let mut step_first = 0;
    for (direction, received) in directions.iter().zip(divided) {
        let step_count = received.iter().map(Received::step_count).max().unwrap_or(0);
        for step in 0..step_count {
            // Sums start where data would arrive last.
            let distance = if direction.action == Action::Copy { step } else { step_count - 1 - step };
            for (node, received) in (0_u32..).zip(&received) {
                ask(stop)?;
                let links = direction.graph.in_links(node);
                for &Part { source, link, start, end } in received.in_step(distance) {
                    let (near, far) = (Rank::new(node), Rank::new(links[link as usize].from));
                    let (from, to) = if direction.action == Action::Copy { (far, near) } else { (near, far) };
                    let route = RouteIndex::new(links[link as usize].arc);
                    let first = first_chunk(source);
                    let chunks = first + u64::from(start)..first + u64::from(end);
                    let (step, action) = (step_first + number(step), direction.action);
                    steps.push(Sending { step, action, from, to, chunks, route });
                }
            }
        }
        step_first += number(step_count);
    }
    Ok(steps.finish(wires.routes()))
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("there is room for fewer than 2³² steps")
}
