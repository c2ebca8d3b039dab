//! Flows for fabrics that forward by source routing: one way for each queue pair, and a layer for each way.
//!
//! A network card that forwards as bits arrive holds a link while it waits for the next one, so ways must be kept apart
//! where they could wait for each other in a ring; see [`Layers`]. What is said here is judged elsewhere, without this.

mod detours;
mod error;
mod ways;

use std::cmp::Reverse;
use std::num::NonZeroU32;

use canopy_optimize::{Layers, Stop};
use canopy_schedule::{Flow, Schedule, Shape};
use canopy_topology::{LinkIndex, Rank, Topology};

use crate::parts::FlowParts;
use crate::reach::ask;
use ways::Ways;

pub use error::LayersError;

/// Ways that are placed between two looks at the stop request.
const WAYS_PER_LOOK: usize = 1 << 10;

/// A flow with a layer for each of its paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayeredFlow {
    /// Of each pair of ranks, one path for each way over links; none passes a node twice.
    pub flow: Flow,
    /// By path.
    pub layers: Vec<u32>,
    /// One more than the greatest of them.
    pub layer_count: u32,
    /// Chunks that take another way than in the schedule, so that there are no more layers than allowed.
    pub chunks_moved: u64,
}

/// The orders in which ways are placed: one may need fewer layers than another.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// By source, then by destination.
    Pairs,
    /// The ways of most links first: what is short has room later.
    LongestFirst,
    ShortestFirst,
}

impl Order {
    const ALL: [Self; 3] = [Self::LongestFirst, Self::Pairs, Self::ShortestFirst];

    fn of(self, ways: &Ways) -> Vec<usize> {
        let mut order: Vec<usize> = (0..ways.len()).collect();
        match self {
            Self::Pairs => {}
            Self::LongestFirst => order.sort_by_key(|&way| Reverse(ways.links(way).len())),
            Self::ShortestFirst => order.sort_by_key(|&way| ways.links(way).len()),
        }
        order
    }
}

/// Gives each way of a flow a layer in which it cannot help to block any other: as few layers as are found in several
/// orders, and no more than `layers_max`.
///
/// Where more are needed, what has no room takes other ways through the layers that there are, by channels that are
/// least loaded; the flow is then another one, and may be slower. Paths of a pair over the same links become one, and one that comes to a
/// switch again leaves out the round trip.
///
/// * **Errors.** The schedule is no flow; some pair of ranks has no way left within `layers_max`; `stop`.
/// * **Cost.** That of [`Layers`] for each order. O(links · ranks · layers) more where ways are moved.
pub fn layered_flow(
    topology: &Topology,
    schedule: &Schedule,
    layers_max: Option<NonZeroU32>,
    stop: &dyn Stop,
) -> Result<LayeredFlow, LayersError> {
    let Shape::Flow(flow) = &schedule.shape else {
        return Err(LayersError::NotAFlow { shape: schedule.shape.name() });
    };
    let ways = Ways::of(topology, flow)?;
    let channel_count = topology.links().len();
    let mut best: Option<Vec<u32>> = None;
    for order in Order::ALL {
        // Another order is of use with fewer layers only.
        let most = best.as_ref().map_or(u32::MAX, |best| count(best).saturating_sub(1));
        let mut layers = Layers::new(channel_count, most);
        let placed = place(&mut layers, &ways, (&order.of(&ways), false), stop)?;
        best = placed.into_iter().collect::<Option<Vec<u32>>>().or(best);
    }
    // Some way waits for itself, however many layers there are.
    let best = best.ok_or(LayersError::Malformed)?;
    match layers_max {
        Some(most) if count(&best) > most.get() => detours::within(topology, flow, &ways, (count(&best), most), stop),
        _ => finish(topology, flow.chunks_per_share, &ways, best, 0),
    }
}

/// Layers in use.
fn count(layers: &[u32]) -> u32 {
    layers.iter().max().map_or(0, |layer| layer + 1)
}

/// The layer of each way, where it has one. Unless ways may lack one, the first that has no room is the last that is placed.
fn place(
    layers: &mut Layers,
    ways: &Ways,
    (order, may_lack): (&[usize], bool),
    stop: &dyn Stop,
) -> Result<Vec<Option<u32>>, LayersError> {
    let mut placed = vec![None; ways.len()];
    for some in order.chunks(WAYS_PER_LOOK) {
        ask(stop).map_err(|_| LayersError::Stopped)?;
        for &way in some {
            placed[way] = layers.place(ways.links(way));
            if placed[way].is_none() && !may_lack {
                return Ok(placed);
            }
        }
    }
    Ok(placed)
}

fn finish(
    topology: &Topology,
    chunks_per_share: u64,
    ways: &Ways,
    layers: Vec<u32>,
    chunks_moved: u64,
) -> Result<LayeredFlow, LayersError> {
    let mut parts = FlowParts::new(topology, chunks_per_share);
    let mut links = Vec::new();
    for way in 0..ways.len() {
        let (source, destination) = ways.ends(way);
        links.clear();
        links.extend(ways.links(way).iter().map(|&link| LinkIndex::new(link)));
        let added = parts.add_path(Rank::new(source), Rank::new(destination), ways.chunks(way), &links);
        added.map_err(|_| LayersError::TooManyHops)?;
    }
    let layer_count = count(&layers);
    Ok(LayeredFlow { flow: parts.finish(), layers, layer_count, chunks_moved })
}

#[cfg(test)]
mod tests;
