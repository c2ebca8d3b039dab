//! Divided shares as a schedule in steps.

use canopy_optimize::Stop;
use canopy_schedule::{Action, Carrier, ChunkLayout, Collective, Pace, RouteIndex, RouteTable, Send, Shares, Steps};
use canopy_topology::{LinkIndex, Rank, Topology};

use super::network::Direction;
use super::parts::{Part, Received};
use crate::error::SynthesisError;
use crate::parts::require_room;
use crate::reach::ask;

/// Writes the phases down, one after the other: by step, then by receiver, sums backwards.
///
/// Every link is a route of its own, so routes are numbered like links.
///
/// # Errors
/// More sends than there is room for; stopped. O(sends).
pub(super) fn write(
    topology: &Topology,
    (collective, shares): (Collective, &Shares),
    chunks_per_share: u64,
    directions: &[Direction],
    divided: Vec<Vec<Received>>,
    stop: &dyn Stop,
) -> Result<Steps, SynthesisError> {
    let layout = ChunkLayout::new(collective, topology.rank_count(), chunks_per_share, shares)?;
    let first_chunk = |source: u32| match collective.root() {
        Some(_) => 0,
        None => layout.chunks_of(Rank::new(source)).start,
    };
    let count = divided.iter().flatten().map(Received::len).sum::<usize>();
    require_room(count as u64)?;
    let mut routes = RouteTable::default();
    (0..topology.links().len()).for_each(|link| {
        routes.push(&[LinkIndex::new(number(link))]);
    });
    let mut steps = Steps {
        chunks_per_share,
        pace: Pace::Barriers,
        routes,
        carriers: Vec::with_capacity(count),
        sends: Vec::with_capacity(count),
    };
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
                    let carrier = number(steps.carriers.len());
                    steps.carriers.push(Carrier { route, chunk_count: u64::from(end - start) });
                    let first = first_chunk(source);
                    steps.sends.push(Send {
                        step: step_first + number(step),
                        action: direction.action,
                        from,
                        to,
                        chunks: first + u64::from(start)..first + u64::from(end),
                        carriers: carrier..carrier + 1,
                    });
                }
            }
        }
        step_first += number(step_count);
    }
    Ok(steps)
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("there is room for fewer than 2³² sends, steps and links")
}
