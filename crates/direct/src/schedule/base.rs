//! The breadth-first broadcast of a graph as transfers.

use canopy_optimize::{Arrivals, BfbError, Fraction, Stop, chunks_needed, step_loads};

use super::Heading;
use super::error::ScheduleError;
use crate::digraph::Digraph;
use crate::regular::bfb_graph;
use crate::transfer::Transfer;

/// Chunks per share, number of steps, and all transfers.
pub(super) struct Base {
    pub(super) chunks: u64,
    pub(super) steps: u32,
    pub(super) transfers: Vec<Transfer>,
}

/// The breadth-first broadcast with the least loads, in as few chunks as whole ones reach them: in each step all links
/// stay within the load of the busiest one anywhere.
///
/// Edges have their numbers in `graph`, whichever the heading. O(order · edges) and one flow for each node and step.
pub(super) fn breadth_first(graph: &Digraph, heading: Heading, stop: &dyn Stop) -> Result<Base, ScheduleError> {
    let turned;
    let (oriented, numbers) = match heading {
        Heading::Along => (graph, None),
        Heading::Against => {
            turned = graph.transpose();
            (&turned, Some(graph.transposed_edges()))
        }
    };
    let links = bfb_graph(oriented, stop)?;
    let loads = step_loads(&links, 0..oriented.order(), None, stop)?;
    let chunks = chunks_needed(&loads).filter(|&chunks| u32::try_from(chunks).is_ok());
    let chunks = chunks.ok_or(ScheduleError::TooManyChunks)?;
    let in_chunks = |load: &Fraction| Fraction::new(u128::from(chunks) / load.denominator * load.numerator, 1);
    let room: Vec<Fraction> = loads.loads.iter().map(|load| in_chunks(load).expect("not by zero")).collect();
    let mut arrivals = Arrivals::new(&links);
    let mut transfers = Vec::new();
    for node in 0..oriented.order() {
        arrivals.visit(node, stop)?;
        for (step, &room) in (0..).zip(&room).take(arrivals.step_count() as usize) {
            let pieces = arrivals.assign(step + 1, chunks, room, stop).map_err(BfbError::from)?;
            let pieces = pieces.expect("no node needs more than the load of the busiest");
            transfers.extend(pieces.into_iter().map(|piece| {
                let arc = links.in_links(node)[piece.link as usize].arc;
                let edge = numbers.as_ref().map_or(arc, |numbers| numbers[arc as usize]);
                Transfer { step, source: piece.source, edge, chunks: piece.chunks }
            }));
        }
    }
    let steps = u32::try_from(room.len()).map_err(|_| ScheduleError::TooManySteps)?;
    Ok(Base { chunks, steps, transfers })
}
