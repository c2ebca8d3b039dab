//! What has to be sent: every transfer's lanes and their messages, with bytes that add up exactly.

use std::ops::Range;

use canopy_schedule::{Action, Batch, TransferGraph};
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
    /// Whether the receiver adds it to what it has.
    pub(crate) is_added: bool,
}

/// Batches of one collective, and how large its chunks are.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    /// Among those of the graph.
    pub(crate) batches: Range<usize>,
    pub(crate) size_bytes: u64,
    /// Bytes of `total` chunks.
    pub(crate) bytes_of_total: u128,
    pub(crate) total: u128,
    /// What a chunk counts where messages share a link, beside those of other collectives.
    pub(crate) chunk_weight: u64,
}

impl Span {
    /// Batches of a graph, by whose layout chunks are numbered.
    pub(crate) fn of(graph: &TransferGraph, batches: Range<usize>, size_bytes: u64) -> Result<Self, SimulateError> {
        let layout = graph.layout()?;
        let size = layout.size();
        let bytes_of_total = u128::from(size_bytes) * u128::from(size.divisor);
        let span = Self { batches, size_bytes, bytes_of_total, total: u128::from(size.chunks), chunk_weight: 1 };
        // The end of the vector comes last: if that can be counted, every chunk's place can.
        bytes_of_total.checked_mul(layout.total().into()).ok_or_else(|| span.too_large())?;
        Ok(span)
    }

    /// Where a chunk begins.
    fn position(&self, chunk: u64) -> u128 {
        u128::from(chunk).saturating_mul(self.bytes_of_total) / self.total
    }

    const fn too_large(&self) -> SimulateError {
        SimulateError::SizeTooLarge { size_bytes: self.size_bytes, limit: BYTES_MAX }
    }
}

/// What all lanes have together.
struct Sums {
    messages: u64,
    bytes: u128,
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
        let whole = Span::of(graph, 0..graph.batches.len(), options.size_bytes)?;
        Self::of_spans(topology, graph, &[whole], options)
    }

    /// The same where batches are those of several collectives.
    pub(crate) fn of_spans(
        topology: &Topology,
        graph: &TransferGraph,
        spans: &[Span],
        options: &SimulateOptions<'_>,
    ) -> Result<Self, SimulateError> {
        let latencies = route_links(topology, graph);
        let mut workload = Self { lanes: Vec::new(), lane_start: vec![0], pieces: Vec::new(), lane_of: Vec::new() };
        let mut sums = Sums { messages: 0, bytes: 0 };
        for span in spans {
            for batch in graph.batches.get(span.batches.clone()).unwrap_or_default() {
                if !workload.add(topology, (graph, batch), &latencies, span, (&mut sums, options))? {
                    let messages = spans.iter().map(|span| message_count(graph, options, span));
                    let messages = messages.fold(0, u64::saturating_add);
                    return Err(SimulateError::TooLarge { messages, limit: options.work_max });
                }
            }
        }
        if workload.pieces.len() != graph.transfers.len() {
            let transfer = number_of(workload.pieces.len());
            return Err(SimulateError::Malformed { transfer, what: "belongs to no batch" });
        }
        if sums.bytes > u128::from(BYTES_MAX) {
            let size_bytes = spans.iter().map(|span| span.size_bytes).fold(0, u64::saturating_add);
            return Err(SimulateError::SizeTooLarge { size_bytes, limit: BYTES_MAX });
        }
        u32::try_from(sums.messages)
            .map_err(|_| SimulateError::TooLarge { messages: sums.messages, limit: u32::MAX.into() })?;
        workload.reduce_weights();
        workload.number_messages();
        Ok(workload)
    }

    /// Adds the transfers of a batch; false: there are more messages than allowed.
    fn add(
        &mut self,
        topology: &Topology,
        (graph, batch): (&TransferGraph, &Batch),
        latencies: &[Option<u32>],
        span: &Span,
        (sums, options): (&mut Sums, &SimulateOptions<'_>),
    ) -> Result<bool, SimulateError> {
        let end = batch.chunk_first.saturating_add(batch.chunk_count);
        let pieces = piece_count(options.pieces, span.position(end) - span.position(batch.chunk_first));
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
                let bytes = u64::try_from(span.position(next) - span.position(chunk));
                let bytes = bytes.map_err(|_| span.too_large())?;
                sums.bytes += u128::from(bytes) * u128::from(links);
                sums.messages += u64::from(pieces);
                // Launched, left, arrived, and in FIFO once for each link.
                let first_message = u32::try_from(sums.messages - u64::from(pieces)).ok();
                let work = sums.messages.saturating_mul(3);
                let Some(first_message) = first_message.filter(|_| work <= options.work_max) else {
                    return Ok(false);
                };
                let weight = carrier.chunk_count.max(1).saturating_mul(span.chunk_weight);
                let route = carrier.route.number();
                let is_added = batch.action == Action::Reduce;
                self.lanes.push(Lane { transfer: number, route, weight, bytes, first_message, is_added });
                chunk = next;
            }
            if chunk == batch.chunk_first {
                return Err(malformed("has nothing to travel on"));
            }
            self.lane_start.push(number_of(self.lanes.len()));
            self.pieces.push(pieces);
        }
        Ok(true)
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
    pub(crate) fn lanes_of(&self, transfer: u32) -> Range<u32> {
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

/// Messages of a collective, to say how far over the limit it is.
fn message_count(graph: &TransferGraph, options: &SimulateOptions<'_>, span: &Span) -> u64 {
    let of_batch = |batch: &Batch| {
        let bytes = u128::from(batch.chunk_count).saturating_mul(span.bytes_of_total) / span.total;
        let lanes = graph.transfers_of(batch).iter().map(|transfer| graph.carriers_of(transfer).len() as u64);
        u64::from(piece_count(options.pieces, bytes)).saturating_mul(lanes.sum())
    };
    let batches = graph.batches.get(span.batches.clone()).unwrap_or_default();
    batches.iter().map(of_batch).fold(0, u64::saturating_add)
}

/// Tables of a graph have fewer than 2³² entries.
pub(crate) fn number_of(count: usize) -> u32 {
    u32::try_from(count).expect("tables of a graph have fewer than 2³² entries")
}
