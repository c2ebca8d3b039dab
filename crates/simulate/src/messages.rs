//! The messages of a run as a list, for other simulators.

use canopy_schedule::{Action, RouteIndex, TransferGraph};
use canopy_topology::{Rank, Topology};

use crate::gates::{checked_steps, checked_waits};
use crate::options::{SimulateError, SimulateOptions};
use crate::workload::{Lane, Workload, number_of};

/// A piece of a transfer on one of its routes: what [`simulate`](crate::simulate) sends as one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its transfer, by its position in the graph.
    pub transfer: u32,
    /// What the receiver does.
    pub action: Action,
    /// The sending rank.
    pub from: Rank,
    /// The receiving rank.
    pub to: Rank,
    /// What it travels on, in the graph's table of routes.
    pub route: RouteIndex,
    /// Chunks it stands for, as far as all have no common divisor: its part of a link that is shared fairly.
    pub weight: u64,
    /// Which piece of its transfer, from 0.
    pub piece: u32,
    /// Its bytes.
    pub bytes: u64,
    /// Messages that must have arrived before it starts, by their positions in the list, all smaller than its own.
    pub after: Vec<u32>,
    /// The previous piece on its route, which must have left the sender.
    pub behind: Option<u32>,
    /// Messages of the step before it on the same route, which must have left before its first byte is sent; it may take α
    /// meanwhile. The same holds for the pieces after it.
    pub turn: Vec<u32>,
}

/// The messages that [`simulate`](crate::simulate) sends for the same options with [`Sync::Deps`](crate::Sync::Deps), in
/// the order of the graph's transfers.
///
/// Piece `i` of `P` waits, of each transfer that its own waits for, for the last of the pieces that cover the same part
/// of the chunks, `⌈(i + 1)·Q/P⌉` of `Q`; those before it have left earlier on the same routes. The first piece waits for its turn.
///
/// * **In.** A graph that [`check`](canopy_schedule::check) accepted for this topology.
/// * **Errors.** As of [`simulate`](crate::simulate); each message counts three units of work, each wait one.
/// * **Cost.** O(messages + waits), some 80 bytes for each message and 4 for each wait.
pub fn messages(
    topology: &Topology,
    graph: &TransferGraph,
    options: &SimulateOptions<'_>,
) -> Result<Vec<Message>, SimulateError> {
    let workload = Workload::new(topology, graph, options)?;
    let steps = if graph.steps.is_empty() { &[] } else { checked_steps(graph, &graph.steps)? };
    let mut routes = vec![Route::default(); graph.routes.len()];
    let count = workload.message_count();
    let mut list = Vec::with_capacity(count);
    let mut work = 3 * count as u64;
    for (batch, number) in graph.batches.iter().flat_map(|batch| batch.transfers.clone().map(move |at| (batch, at))) {
        let transfer = &graph.transfers[number as usize];
        let waits = checked_waits(graph, number, transfer)?;
        for lane in workload.lanes_of(number) {
            let Lane { route, weight, first_message, .. } = workload.lanes[lane as usize];
            let pieces = workload.pieces_of(lane);
            let mut turn = match steps.get(number as usize) {
                Some(&step) => routes[route as usize].take(step, first_message + pieces - 1),
                None => Vec::new(),
            };
            for piece in 0..pieces {
                let after = arrivals(&workload, waits, piece, pieces);
                let turn = std::mem::take(&mut turn);
                work += (after.len() + turn.len()) as u64;
                if work > options.work_max {
                    return Err(SimulateError::TooLarge { messages: count as u64, limit: options.work_max });
                }
                let message = first_message + piece;
                debug_assert_eq!(message, number_of(list.len()));
                list.push(Message {
                    transfer: number,
                    action: batch.action,
                    from: transfer.from,
                    to: transfer.to,
                    route: RouteIndex::new(route),
                    weight,
                    piece,
                    bytes: workload.bytes_of(message),
                    after,
                    behind: (piece > 0).then(|| message - 1),
                    turn,
                });
            }
        }
    }
    Ok(list)
}

/// The last pieces on a route, of its latest step and of the one before.
#[derive(Clone, Debug, Default)]
struct Route {
    step: u32,
    latest: Vec<u32>,
    before: Vec<u32>,
}

impl Route {
    /// Notes the last piece of a transfer in a step, and says whom that step waits for. Steps do not fall.
    fn take(&mut self, step: u32, last_piece: u32) -> Vec<u32> {
        if self.step != step {
            self.before = std::mem::take(&mut self.latest);
            self.step = step;
        }
        self.latest.push(last_piece);
        self.before.clone()
    }
}

/// The last messages, on each of their routes, that piece `piece` of `pieces` waits for.
fn arrivals(workload: &Workload, waits: &[u32], piece: u32, pieces: u32) -> Vec<u32> {
    let mut after = Vec::with_capacity(waits.len());
    for &before in waits {
        for lane in workload.lanes_of(before) {
            let part = (u64::from(piece) + 1) * u64::from(workload.pieces_of(lane));
            let needed = u32::try_from(part.div_ceil(pieces.into())).expect("at most all pieces");
            after.push(workload.lanes[lane as usize].first_message + needed - 1);
        }
    }
    after
}
