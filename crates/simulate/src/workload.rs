//! What has to be sent: every transfer's lanes and their messages, with bytes that add up exactly.

use canopy_schedule::TransferGraph;
use canopy_topology::Topology;

use crate::options::{Pieces, SimulateError, SimulateOptions};

/// Most bytes on all links together: with 2³² parts of a byte and 10¹² parts of a second they fit 128 bits.
const BYTES_MAX: u64 = 1 << 54;

/// The part of a transfer that takes one route: its messages go one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) transfer: u32,
    /// In the graph's table of routes.
    pub(crate) route: u32,
    /// Chunks it stands for, as far as all have no common divisor.
    pub(crate) weight: u64,
    pub(crate) bytes: u64,
    /// Its first message; the pieces follow each other.
    pub(crate) first_message: u32,
}

/// All lanes, transfer by transfer, and their messages, lane by lane.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) lanes: Vec<Lane>,
    /// Where each transfer's lanes start, and the end.
    pub(crate) lane_start: Vec<u32>,
    /// Pieces of each transfer.
    pub(crate) pieces: Vec<u32>,
    /// Lane of each message.
    pub(crate) lane_of: Vec<u32>,
}

impl Workload {
    /// Cuts a graph's transfers into messages.
    ///
    /// # Errors
    /// What does not exist in the graph or topology, and more work or bytes than allowed: before anything is allocated for
    /// it. O(messages + links of all routes).
    pub(crate) fn new(
        topology: &Topology,
        graph: &TransferGraph,
        options: &SimulateOptions<'_>,
    ) -> Result<Self, SimulateError> {
        let layout = graph.layout()?;
        let too_large = || SimulateError::SizeTooLarge { size_bytes: options.size_bytes, limit: BYTES_MAX };
        let size = layout.size();
        let total = u128::from(size.chunks);
        // Bytes of `total` chunks. The end of the vector comes last: if that can be counted, every chunk's place can.
        let bytes_of_total = u128::from(options.size_bytes) * u128::from(size.divisor);
        bytes_of_total.checked_mul(layout.total().into()).ok_or_else(too_large)?;
        let latencies = route_links(topology, graph);
        let mut workload = Self { lanes: Vec::new(), lane_start: vec![0], pieces: Vec::new(), lane_of: Vec::new() };
        let (mut messages, mut bytes_all) = (0_u64, 0_u128);
        let position = |chunk: u64| u128::from(chunk).saturating_mul(bytes_of_total) / total;
        for batch in &graph.batches {
            let end = batch.chunk_first.saturating_add(batch.chunk_count);
            let pieces = piece_count(options.pieces, position(end) - position(batch.chunk_first));
            for (number, transfer) in batch.transfers.clone().zip(graph.transfers_of(batch)) {
                let malformed = |what| SimulateError::Malformed { transfer: number, what };
                if transfer.from.number() >= topology.rank_count() || transfer.to.number() >= topology.rank_count() {
                    return Err(malformed("names a rank that does not exist"));
                }
                let mut chunk = batch.chunk_first;
                for carrier in graph.carriers_of(transfer) {
                    let links = latencies.get(carrier.route.index()).copied().flatten();
                    let links = links.ok_or_else(|| malformed("uses a route that does not exist"))?;
                    let next = chunk.saturating_add(carrier.chunk_count);
                    let bytes = u64::try_from(position(next) - position(chunk)).map_err(|_| too_large())?;
                    bytes_all += u128::from(bytes) * u128::from(links);
                    messages += u64::from(pieces);
                    // Launched, left, arrived, and in FIFO once for each link.
                    let first_message = u32::try_from(messages - u64::from(pieces)).ok();
                    let work = messages.saturating_mul(3);
                    let Some(first_message) = first_message.filter(|_| work <= options.work_max) else {
                        let messages = message_count(graph, options, (bytes_of_total, total));
                        return Err(SimulateError::TooLarge { messages, limit: options.work_max });
                    };
                    let (route, weight) = (carrier.route.number(), carrier.chunk_count.max(1));
                    workload.lanes.push(Lane { transfer: number, route, weight, bytes, first_message });
                    chunk = next;
                }
                if chunk == batch.chunk_first {
                    return Err(malformed("has nothing to travel on"));
                }
                workload.lane_start.push(number_of(workload.lanes.len()));
                workload.pieces.push(pieces);
            }
        }
        if workload.pieces.len() != graph.transfers.len() {
            let transfer = number_of(workload.pieces.len());
            return Err(SimulateError::Malformed { transfer, what: "belongs to no batch" });
        }
        if bytes_all > u128::from(BYTES_MAX) {
            return Err(too_large());
        }
        u32::try_from(messages).map_err(|_| SimulateError::TooLarge { messages, limit: u32::MAX.into() })?;
        workload.reduce_weights();
        workload.number_messages();
        Ok(workload)
    }

    /// Pieces of a lane.
    pub(crate) fn pieces_of(&self, lane: u32) -> u32 {
        self.pieces[self.lanes[lane as usize].transfer as usize]
    }

    /// The lane of a message, and which piece it is.
    pub(crate) fn piece_of(&self, message: u32) -> (u32, u32) {
        let lane = self.lane_of[message as usize];
        (lane, message - self.lanes[lane as usize].first_message)
    }

    /// Bytes of a message.
    pub(crate) fn bytes_of(&self, message: u32) -> u64 {
        let (lane, piece) = self.piece_of(message);
        let bytes = u128::from(self.lanes[lane as usize].bytes);
        let (piece, pieces) = (u128::from(piece), u128::from(self.pieces_of(lane)));
        u64::try_from(bytes * (piece + 1) / pieces - bytes * piece / pieces).expect("a part of a number of bytes")
    }

    /// Lanes of a transfer.
    pub(crate) fn lanes_of(&self, transfer: u32) -> std::ops::Range<u32> {
        self.lane_start[transfer as usize]..self.lane_start[transfer as usize + 1]
    }

    /// Number of messages.
    pub(crate) fn message_count(&self) -> usize {
        self.lane_of.len()
    }

    /// Only proportions of weights count, and small ones are divided exactly more often.
    fn reduce_weights(&mut self) {
        let divisor = self.lanes.iter().fold(0, |divisor, lane| num_integer::gcd(divisor, lane.weight)).max(1);
        self.lanes.iter_mut().for_each(|lane| lane.weight /= divisor);
    }

    fn number_messages(&mut self) {
        for (number, lane) in (0..).zip(&self.lanes) {
            let pieces = self.pieces[lane.transfer as usize] as usize;
            self.lane_of.extend(std::iter::repeat_n(number, pieces));
        }
    }
}

/// Number of links of each route; `None` where it has none, or one that does not exist.
fn route_links(topology: &Topology, graph: &TransferGraph) -> Vec<Option<u32>> {
    let exists = |links: &&[canopy_topology::LinkIndex]| {
        !links.is_empty() && links.iter().all(|link| link.index() < topology.links().len())
    };
    graph.routes.iter().map(|links| Some(links).filter(exists).map(|links| number_of(links.len()))).collect()
}

fn piece_count(pieces: Pieces, bytes: u128) -> u32 {
    let found = match pieces {
        Pieces::Whole => 1,
        Pieces::AtMost { bytes: most } => bytes.div_ceil(most.max(1).into()).max(1),
        Pieces::Count(count) => count.max(1).into(),
    };
    u32::try_from(found).unwrap_or(u32::MAX)
}

/// Messages of the whole graph, to say how far over the limit it is.
fn message_count(graph: &TransferGraph, options: &SimulateOptions<'_>, (bytes_of_total, total): (u128, u128)) -> u64 {
    let of_batch = |batch: &canopy_schedule::Batch| {
        let bytes = u128::from(batch.chunk_count).saturating_mul(bytes_of_total) / total;
        let lanes = graph.transfers_of(batch).iter().map(|transfer| graph.carriers_of(transfer).len() as u64);
        u64::from(piece_count(options.pieces, bytes)).saturating_mul(lanes.sum())
    };
    graph.batches.iter().map(of_batch).fold(0, u64::saturating_add)
}

/// Tables of a graph have fewer than 2³² entries.
pub(crate) fn number_of(count: usize) -> u32 {
    u32::try_from(count).expect("tables of a graph have fewer than 2³² entries")
}
