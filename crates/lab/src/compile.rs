//! From a plan's transfer graph to the programs of its ranks.

use std::collections::BTreeMap;
use std::ops::Range;

use canopy_schedule::{Action, ChunkLayout, Collective, CollectiveKind, RouteIndex, TransferGraph};
use canopy_topology::{Rank, Topology};
use num_traits::ToPrimitive as _;

use crate::address::ROUTES_MAX;
use crate::error::LabError;
use crate::program::{
    FRAME_HEAD_BYTES, Incoming, MEMORY_BYTES_MAX, Outgoing, RankProgram, Receive, Segment, SendOrder,
};
use crate::routes::PlanRoute;
use crate::segments::Segments;

/// Most segments that all transfers move.
const ITEMS_MAX: u64 = 1 << 20;
/// Most pieces that all transfers move.
const PIECES_MAX: u64 = 1 << 20;

/// What is run, and how.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The network of the plan.
    pub topology: &'a Topology,
    /// A graph that [`check`](canopy_schedule::check) accepted on it.
    pub graph: &'a TransferGraph,
    /// *Size* of the collective, as rates are stated.
    pub size_bytes: u64,
    /// Largest piece.
    pub piece_bytes: u64,
    /// How long the plan is predicted to take in the lab, without α and pieces: connections send at the rate at which
    /// they would be done by then.
    pub time_ns: u64,
    /// Percent of that rate at which connections send; 0 for no limit.
    pub pace_percent: u64,
    /// Number of its first route, for a plan beside others.
    pub route_first: u32,
}

/// Programs, and what they ask of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// By rank.
    pub programs: Vec<RankProgram>,
    /// Routes that something takes, each with its address.
    pub routes: Vec<PlanRoute>,
    /// Bytes of data that each link carries, by link.
    pub link_bytes: Vec<u64>,
    /// Number of connections.
    pub connection_count: u32,
}

/// Makes the programs of all ranks.
///
/// A transfer moves one [segment](Segment) after the other on its route, in pieces. Piece `i` leaves once piece `i` of
/// every transfer that brings its sender this segment has come; it changes its place at the receiver once all that
/// reads what was there has left. So no rank waits for what it cannot see.
///
/// * **Errors.** Limits of a lab, and graphs that were not checked.
/// * **Cost.** O(carriers + dependencies, times segments of each).
pub fn compile(job: &Job<'_>) -> Result<Compiled, LabError> {
    let layout = job.graph.layout()?;
    let size = layout.size();
    // All-to-all: the vectors of all ranks, one after the other.
    let total_bytes = u128::from(job.size_bytes) * u128::from(size.divisor) * u128::from(layout.total());
    let total_words = total_bytes / u128::from(size.chunks) / 4;
    let segments = Segments::new(job.graph, layout.starts(), layout.total(), total_words)?;
    let mut items = Items::new(job, &segments)?;
    let mut connections = Connections::default();
    let mut ranks: Vec<Builder> = job.topology.ranks().map(|_| Builder::new(segments.len())).collect();
    items.add_transfers(job, &segments, &mut connections, &mut ranks)?;
    items.add_waits(job, &mut ranks)?;
    let routes = connections.routes(job)?;
    let mut link_bytes = vec![0_u64; job.topology.links().len()];
    for (&(_, _, route), connection) in &connections.by_ends {
        for link in job.graph.routes.get(RouteIndex::new(route)).unwrap_or_default() {
            link_bytes[link.index()] += connection.bytes;
        }
    }
    let mut memory_bytes = 0_u64;
    let mut programs = Vec::with_capacity(ranks.len());
    for (rank, builder) in job.topology.ranks().zip(ranks) {
        let program = builder.finish(job, &layout, &segments, rank, (&connections, &routes))?;
        memory_bytes = memory_bytes.saturating_add(program.words as u64 * 4);
        programs.push(program);
    }
    if memory_bytes > MEMORY_BYTES_MAX {
        return Err(LabError::TooMuchMemory { found: memory_bytes, limit: MEMORY_BYTES_MAX });
    }
    let connection_count = number(connections.by_ends.len());
    Ok(Compiled { programs, routes: routes.into_values().collect(), link_bytes, connection_count })
}

/// Tables of a job have fewer than 2³² entries: [`ITEMS_MAX`] sees to it.
fn number(count: usize) -> u32 {
    u32::try_from(count).expect("tables of a job have fewer than 2^32 entries")
}

/// A transfer's part in one segment: the sender's number of it, and the receiver's.
type Item = Option<(u32, u32)>;

/// All transfers by the segments that they move.
struct Items {
    /// By transfer: its segments, and where they begin in the table.
    of: Vec<(Range<usize>, usize)>,
    table: Vec<Item>,
    /// By transfer: transfers of the longest chain that waits for it.
    heights: Vec<u32>,
}

impl Items {
    fn new(job: &Job<'_>, segments: &Segments) -> Result<Self, LabError> {
        let graph = job.graph;
        let (mut of, mut found) = (vec![(0..0, 0); graph.transfers.len()], 0_usize);
        let (mut pieces, mut words) = (0_u64, 0_u64);
        for batch in &graph.batches {
            let range = segments.within(&(batch.chunk_first..batch.chunk_first + batch.chunk_count));
            let all: Range<u64> = segments.words(range.start).start..segments.words(range.end - 1).end;
            words = words.max(all.end - all.start);
            for transfer in batch.transfers.clone() {
                let place = of.get_mut(transfer as usize);
                *place.ok_or(LabError::Malformed { transfer, what: "does not exist" })? = (range.clone(), found);
                found = found.saturating_add(range.len());
                pieces = pieces.saturating_add((all.end - all.start) * 4 / job.piece_bytes.max(4) + range.len() as u64);
            }
        }
        for (what, found, limit) in [("segments in", found as u64, ITEMS_MAX), ("more than", pieces, PIECES_MAX)] {
            if found > limit {
                return Err(LabError::TooManyPieces { what, found, limit });
            }
        }
        if words == 0 {
            return Err(LabError::TooSmall { size_bytes: job.size_bytes });
        }
        Ok(Self { of, table: vec![None; found], heights: heights(graph)? })
    }

    /// Adds what each transfer sends and receives.
    fn add_transfers(
        &mut self,
        job: &Job<'_>,
        segments: &Segments,
        connections: &mut Connections,
        ranks: &mut [Builder],
    ) -> Result<(), LabError> {
        for batch in &job.graph.batches {
            for (transfer, index) in job.graph.transfers_of(batch).iter().zip(batch.transfers.clone()) {
                let outside = LabError::Malformed { transfer: index, what: "names a rank that does not exist" };
                if transfer.from.index().max(transfer.to.index()) >= ranks.len() || transfer.from == transfer.to {
                    return Err(outside);
                }
                let (mut chunk, (_, place)) = (batch.chunk_first, self.of[index as usize].clone());
                let first = self.of[index as usize].0.start;
                for carrier in job.graph.carriers_of(transfer) {
                    let end = chunk + carrier.chunk_count;
                    for segment in segments.within(&(chunk..end)) {
                        let words = segments.words(segment);
                        if words.is_empty() {
                            continue;
                        }
                        let pieces = pieces_of(&words, job.piece_bytes);
                        let ends = (transfer.from, transfer.to, carrier.route.number());
                        let connection = connections.add(ends, (words.end - words.start) * 4, pieces);
                        let receive = ranks[transfer.to.index()].receive(connection, segment, batch.action);
                        let height = self.heights[index as usize];
                        let send = ranks[transfer.from.index()].send(connection, segment, receive, height);
                        self.table[place + segment - first] = Some((send, receive));
                    }
                    chunk = end;
                }
            }
        }
        Ok(())
    }

    /// Adds what each of them waits for, at the sender or at the receiver.
    fn add_waits(&self, job: &Job<'_>, ranks: &mut [Builder]) -> Result<(), LabError> {
        for (transfer, index) in job.graph.transfers.iter().zip(0_u32..) {
            for &before in job.graph.dependencies_of(transfer) {
                let earlier = &job.graph.transfers[before as usize];
                let (range, place) = &self.of[index as usize];
                let (others, other_place) = &self.of[before as usize];
                for segment in range.start.max(others.start)..range.end.min(others.end) {
                    let item = self.table[place + segment - range.start];
                    let other = self.table[other_place + segment - others.start];
                    let (Some((send, receive)), Some((sent, received))) = (item, other) else { continue };
                    if earlier.to == transfer.from {
                        ranks[transfer.from.index()].sends[send as usize].after.push(received);
                    } else if earlier.from == transfer.to {
                        ranks[transfer.to.index()].receives[receive as usize].after_sends.push(sent);
                    } else if earlier.to == transfer.to {
                        ranks[transfer.to.index()].receives[receive as usize].after_receives.push(received);
                    } else {
                        let what = "waits for another that neither its sender nor its receiver takes part in";
                        return Err(LabError::Malformed { transfer: index, what });
                    }
                }
            }
        }
        Ok(())
    }
}

/// Transfers of the longest chain that waits for each.
fn heights(graph: &TransferGraph) -> Result<Vec<u32>, LabError> {
    let mut heights = vec![0_u32; graph.transfers.len()];
    for (position, transfer) in graph.transfers.iter().enumerate().rev() {
        let (index, height) = (number(position), heights[position] + 1);
        for &before in graph.dependencies_of(transfer) {
            if before >= index {
                let what = "waits for one that comes later";
                return Err(LabError::Malformed { transfer: index, what });
            }
            let most = &mut heights[before as usize];
            *most = height.max(*most);
        }
    }
    Ok(heights)
}

/// Pieces of a segment of these words.
fn pieces_of(words: &Range<u64>, piece_bytes: u64) -> u32 {
    let pieces = ((words.end - words.start) * 4).div_ceil(piece_bytes.max(4)).max(1);
    u32::try_from(pieces).expect("the number of all pieces is limited")
}

/// What one connection carries.
#[derive(Clone, Copy, Debug)]
struct Connection {
    id: u32,
    bytes: u64,
    /// With the heads of pieces.
    wire_bytes: u64,
}

/// All connections, by sender, receiver and route.
#[derive(Debug, Default)]
struct Connections {
    by_ends: BTreeMap<(Rank, Rank, u32), Connection>,
}

impl Connections {
    /// Adds bytes; returns the connection's number.
    fn add(&mut self, ends: (Rank, Rank, u32), bytes: u64, pieces: u32) -> u32 {
        let id = number(self.by_ends.len());
        let connection = self.by_ends.entry(ends).or_insert(Connection { id, bytes: 0, wire_bytes: 0 });
        connection.bytes += bytes;
        connection.wire_bytes += bytes + u64::from(pieces) * FRAME_HEAD_BYTES as u64;
        connection.id
    }

    /// The routes that they take, by their numbers in the plan.
    fn routes(&self, job: &Job<'_>) -> Result<BTreeMap<u32, PlanRoute>, LabError> {
        let mut used: BTreeMap<u32, (Rank, Rank)> = BTreeMap::new();
        for &(from, to, route) in self.by_ends.keys() {
            used.insert(route, (from, to));
        }
        let most = ROUTES_MAX.saturating_sub(job.route_first);
        if used.len() > most as usize {
            return Err(LabError::TooManyRoutes { found: used.len(), limit: most });
        }
        let links = |route| job.graph.routes.get(RouteIndex::new(route)).unwrap_or_default();
        let made = used.iter().zip(job.route_first..).map(|((&route, ends), address)| {
            let made = PlanRoute::new(job.topology, links(route), *ends, address);
            made.map(|made| (route, made)).ok_or(LabError::Malformed {
                transfer: 0,
                what: "takes a route that does not lead from its sender to its receiver",
            })
        });
        made.collect()
    }
}

/// The program of a rank in the making.
struct Builder {
    /// By segment: whether it is sent or received here.
    is_moved: Vec<bool>,
    sends: Vec<SendOrder>,
    receives: Vec<Receive>,
}

impl Builder {
    fn new(segments: usize) -> Self {
        Self { is_moved: vec![false; segments], sends: Vec::new(), receives: Vec::new() }
    }

    /// Segments and connections have numbers of the whole plan until the end.
    fn send(&mut self, connection: u32, segment: usize, receive: u32, height: u32) -> u32 {
        self.is_moved[segment] = true;
        self.sends.push(SendOrder { connection, segment: number(segment), receive, height, after: Vec::new() });
        number(self.sends.len() - 1)
    }

    fn receive(&mut self, connection: u32, segment: usize, action: Action) -> u32 {
        self.is_moved[segment] = true;
        let is_added = action == Action::Reduce;
        let (after_sends, after_receives) = (Vec::new(), Vec::new());
        let segment = number(segment);
        self.receives.push(Receive { connection, segment, is_added, after_sends, after_receives });
        number(self.receives.len() - 1)
    }

    /// Numbers segments and connections as the rank knows them.
    fn finish(
        mut self,
        job: &Job<'_>,
        layout: &ChunkLayout,
        segments: &Segments,
        rank: Rank,
        (connections, routes): (&Connections, &BTreeMap<u32, PlanRoute>),
    ) -> Result<RankProgram, LabError> {
        let collective = job.graph.collective;
        let (mut held, mut words, mut number_of) = (Vec::new(), 0_usize, vec![0; segments.len()]);
        for (segment, own_number) in number_of.iter_mut().enumerate() {
            let range = segments.words(segment);
            let (is_own, is_wanted) = roles(collective, layout, rank, segments.chunk(segment));
            if range.is_empty() || !(is_own || is_wanted || self.is_moved[segment]) {
                continue;
            }
            let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
            *own_number = number(held.len());
            let pieces = pieces_of(&range, job.piece_bytes);
            held.push(Segment { first_word: range.start, place: words, words: length, pieces, is_own, is_wanted });
            words = words.saturating_add(length);
        }
        let (mut outgoing, mut incoming, mut local) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (&(from, to, route), connection) in &connections.by_ends {
            if from == rank {
                local.insert(connection.id, number(outgoing.len()));
                let address = routes[&route].address.clone();
                outgoing.push(Outgoing { id: connection.id, address, pace_bytes_per_sec: pace(job, connection) });
            } else if to == rank {
                local.insert(connection.id, number(incoming.len()));
                incoming.push(Incoming { id: connection.id });
            }
        }
        for send in &mut self.sends {
            (send.connection, send.segment) = (local[&send.connection], number_of[send.segment as usize]);
        }
        for receive in &mut self.receives {
            (receive.connection, receive.segment) = (local[&receive.connection], number_of[receive.segment as usize]);
        }
        let piece = held.iter().map(|segment| segment.words.div_ceil(segment.pieces.max(1) as usize) * 4).max();
        Ok(RankProgram {
            rank: rank.number(),
            rank_count: job.graph.rank_count,
            is_sum: is_sum(collective.kind()),
            words,
            piece_bytes_max: piece.unwrap_or(4),
            segments: held,
            outgoing,
            incoming,
            sends: self.sends,
            receives: self.receives,
        })
    }
}

/// Bytes per second at which a connection is done in the predicted time.
fn pace(job: &Job<'_>, connection: &Connection) -> u64 {
    let bytes = u128::from(connection.wire_bytes) * u128::from(job.pace_percent) * 10_000_000;
    (bytes / u128::from(job.time_ns.max(1))).to_u64().unwrap_or(u64::MAX)
}

const fn is_sum(kind: CollectiveKind) -> bool {
    matches!(kind, CollectiveKind::Allreduce | CollectiveKind::ReduceScatter | CollectiveKind::Reduce)
}

/// Whether a rank contributes to a chunk, and whether it is promised it.
fn roles(collective: Collective, layout: &ChunkLayout, rank: Rank, chunk: u64) -> (bool, bool) {
    let is_root = collective.root() == Some(rank);
    let has = || layout.share_of(chunk) == rank;
    match collective.kind() {
        CollectiveKind::Allgather => (has(), true),
        CollectiveKind::ReduceScatter => (true, has()),
        CollectiveKind::Allreduce => (true, true),
        CollectiveKind::Broadcast => (is_root, true),
        CollectiveKind::Reduce => (true, is_root),
        CollectiveKind::Gather => (has(), is_root),
        CollectiveKind::Scatter => (is_root, has()),
        CollectiveKind::AllToAll => (has(), layout.destination_of(chunk) == rank),
    }
}
