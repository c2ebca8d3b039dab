//! The run itself: one event after the other until everything has arrived.

use std::cmp::Reverse;

use canopy_schedule::{RouteIndex, TransferGraph};
use canopy_topology::{Capacity, LinkIndex, Topology};

use crate::event_queue::EventQueue;
use crate::fair::Fair;
use crate::fifo::Fifo;
use crate::gates::{Freed, Gates};
use crate::limit::PS_PER_SEC;
use crate::options::{Sharing, SimulateError, SimulateOptions, Stop, Sync};
use crate::outcome::{Leg, LinkUse, Outcome, Sent, Start};
use crate::turns::Turns;
use crate::workload::{Lane, Span, Workload};

/// Events between two questions to `stop`.
const EVENTS_BETWEEN_STOPS: u64 = 4096;
/// Latest time, so that sums of two do not overflow.
const TIME_MAX: u64 = 1 << 63;
/// No message.
const NONE: u32 = u32::MAX;

/// Simulates a transfer graph on its topology: when everything has arrived, what links did, and what took so long.
///
/// The model stands in the crate's documentation. Events of one picosecond are all taken before rates are computed (fair),
/// and messages that reach a link at the same time are served in the order of the graph's transfers (FIFO), so the
/// outcome does not depend on how links are numbered.
///
/// * **In.** A graph that [`check`](canopy_schedule::check) accepted for this topology.
/// * **Errors.** What does not fit together, and more work, bytes or time than there is room for: see [`SimulateError`].
/// * **Cost.** With `M` messages, O(M log M) and the links of their routes under FIFO. Under fair sharing each distinct
///   time of an event costs up to O(R log L) more for the `R` routes in use and their `L` links, as far as they are
///   connected; symmetric schedules have few distinct times. Some 50 bytes for each message.
pub fn simulate(
    topology: &Topology,
    graph: &TransferGraph,
    options: &SimulateOptions<'_>,
    stop: Stop<'_>,
) -> Result<Outcome, SimulateError> {
    let mut run = prepared(topology, graph, Workload::new(topology, graph, options)?, options)?;
    run.complete(stop)?;
    Ok(run.outcome())
}

/// [`simulate_traced`] for a graph whose batches are those of several collectives.
pub(crate) fn simulate_spans(
    topology: &Topology,
    graph: &TransferGraph,
    spans: &[Span],
    options: &SimulateOptions<'_>,
    stop: Stop<'_>,
) -> Result<(Outcome, Vec<Sent>), SimulateError> {
    let mut run = prepared(topology, graph, Workload::of_spans(topology, graph, spans, options)?, options)?;
    run.complete(stop)?;
    let trace = run.trace();
    Ok((run.outcome(), trace))
}

/// [`simulate`] with the times of every message, in the order of transfers, of their routes and of pieces.
///
/// # Errors
/// The same.
pub fn simulate_traced(
    topology: &Topology,
    graph: &TransferGraph,
    options: &SimulateOptions<'_>,
    stop: Stop<'_>,
) -> Result<(Outcome, Vec<Sent>), SimulateError> {
    let mut run = prepared(topology, graph, Workload::new(topology, graph, options)?, options)?;
    run.complete(stop)?;
    let trace = run.trace();
    Ok((run.outcome(), trace))
}

fn prepared<'a>(
    topology: &'a Topology,
    graph: &'a TransferGraph,
    workload: Workload,
    options: &SimulateOptions<'a>,
) -> Result<Run<'a>, SimulateError> {
    let gates = Gates::new(graph, &workload, options.sync)?;
    let turns = match options.sync {
        Sync::Deps => Turns::new(graph, &workload)?,
        // Barriers keep the order.
        Sync::Steps(_) => None,
    };
    let network = match options.sharing {
        Sharing::Fair => Network::Fair(Fair::new(topology, graph)),
        Sharing::Fifo => Network::Fifo(Fifo::new(topology, graph, workload.message_count())),
    };
    let route_latency = |links: &[LinkIndex]| -> u64 {
        let latency = |link: &LinkIndex| topology.link(*link).latency.nanos().saturating_mul(1_000);
        links.iter().map(latency).fold(0, u64::saturating_add)
    };
    // Routes nobody uses may be nonsense; those in use have been looked at.
    let exists = |links: &&[LinkIndex]| links.iter().all(|link| link.index() < topology.links().len());
    let latencies = graph.routes.iter().map(|links| Some(links).filter(exists).map_or(0, route_latency)).collect();
    let messages = vec![Message::default(); workload.message_count()];
    let next_piece = vec![0; workload.lanes.len()];
    let lane_arrived = vec![0; workload.lanes.len()];
    let alpha_ps = options.alpha.nanos().saturating_mul(1_000);
    Ok(Run {
        topology,
        graph,
        workload,
        gates,
        turns,
        network,
        latencies,
        messages,
        next_piece,
        lane_arrived,
        alpha_ps,
        launch_ps: options.launch.nanos().saturating_mul(1_000),
        adder: options.reduce_rate.map(|rate| Adder { rate, free: vec![0; topology.rank_count() as usize] }),
        event_queue: EventQueue::new(),
        event_count: 0,
        work_max: options.work_max,
    })
}

#[derive(Debug)]
enum Network<'a> {
    Fair(Fair<'a>),
    Fifo(Fifo<'a>),
}

/// What happens to a message, in the order in which it is looked at within one picosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Its last byte is there, and has to be added to what the receiver has.
    Landed(u32),
    /// Its last byte is there, and can be used.
    Arrived(u32),
    /// Its last byte is on the way.
    Left(u32),
    /// α is over.
    Launched(u32),
}

/// What is known of a message.
#[derive(Clone, Copy, Debug)]
struct Message {
    start: u64,
    /// When it was put on the network.
    launched: u64,
    left: u64,
    end: u64,
    /// The message that let it start, if any.
    cause: u32,
    how: Start,
    link: u32,
}

impl Default for Message {
    fn default() -> Self {
        Self { start: 0, launched: 0, left: 0, end: 0, cause: NONE, how: Start::AtOnce, link: NONE }
    }
}

/// What adding up takes: each rank adds one message after the other.
#[derive(Debug)]
struct Adder {
    rate: Capacity,
    /// By rank: when it has added up all that has come so far.
    free: Vec<u64>,
}

impl Adder {
    /// Time at which a rank has added up `bytes` bytes that it has from `time` on, in picoseconds.
    fn added(&mut self, time: u64, rank: usize, bytes: u64) -> u64 {
        let takes = (u128::from(bytes) * u128::from(PS_PER_SEC)).div_ceil(self.rate.bytes_per_sec().into());
        let free = &mut self.free[rank];
        *free = time.max(*free).saturating_add(u64::try_from(takes).unwrap_or(u64::MAX));
        *free
    }
}

struct Run<'a> {
    topology: &'a Topology,
    graph: &'a TransferGraph,
    workload: Workload,
    gates: Gates<'a>,
    turns: Option<Turns>,
    network: Network<'a>,
    /// By route, in picoseconds.
    latencies: Vec<u64>,
    messages: Vec<Message>,
    /// By lane: the piece that is to start next.
    next_piece: Vec<u32>,
    /// By lane: pieces that have arrived.
    lane_arrived: Vec<u32>,
    alpha_ps: u64,
    launch_ps: u64,
    adder: Option<Adder>,
    event_queue: EventQueue<Event>,
    event_count: u64,
    work_max: u64,
}

impl Run<'_> {
    fn complete(&mut self, stop: Stop<'_>) -> Result<(), SimulateError> {
        for lane in 0..crate::workload::number_of(self.workload.lanes.len()) {
            self.try_start(lane, self.launch_ps, NONE, Start::AtOnce);
        }
        let mut asked = 0;
        while let Some(time) = self.next_time() {
            if time >= TIME_MAX {
                return Err(SimulateError::TooLong);
            }
            self.take_all(time);
            let work = self.event_count + self.settle(time);
            if work > self.work_max {
                let messages = self.messages.len() as u64;
                return Err(SimulateError::TooLarge { messages, limit: self.work_max });
            }
            if work / EVENTS_BETWEEN_STOPS != asked {
                asked = work / EVENTS_BETWEEN_STOPS;
                if stop() {
                    return Err(SimulateError::Stopped);
                }
            }
        }
        Ok(())
    }

    fn trace(&self) -> Vec<Sent> {
        let sent = |(message, found): (u32, &Message)| {
            let (lane, _) = self.workload.piece_of(message);
            let Lane { transfer, route, .. } = self.workload.lanes[lane as usize];
            Sent { transfer, route: RouteIndex::new(route), launched_ps: found.launched, left_ps: found.left }
        };
        (0..).zip(&self.messages).map(sent).collect()
    }

    fn next_time(&mut self) -> Option<u64> {
        let network = match &mut self.network {
            Network::Fair(fair) => fair.next_time(),
            Network::Fifo(fifo) => fifo.next_time(),
        };
        [network, self.event_queue.next_time()].into_iter().flatten().min()
    }

    /// Everything that happens at one time, and what follows from it at the same time.
    fn take_all(&mut self, time: u64) {
        loop {
            while let Some(event) = self.event_queue.take(time) {
                self.event_count += 1;
                match event {
                    Event::Landed(message) => self.land(time, message),
                    Event::Arrived(message) => self.arrive(time, message),
                    Event::Left(message) => self.follow(time, message),
                    Event::Launched(message) => self.launch(time, message),
                }
            }
            if !self.serve(time) && self.event_queue.next_time() != Some(time) {
                return;
            }
        }
    }

    /// Starts a lane's next piece, if nothing keeps it any more.
    fn try_start(&mut self, lane: u32, time: u64, cause: u32, how: Start) {
        let Lane { transfer, first_message, .. } = self.workload.lanes[lane as usize];
        let piece = self.next_piece[lane as usize];
        if piece == self.workload.pieces_of(lane) || !self.gates.is_open(transfer, piece) {
            return;
        }
        let message = first_message + piece;
        // The piece before is still at its sender.
        if piece > 0 && self.messages[message as usize - 1].left > time {
            return;
        }
        self.next_piece[lane as usize] += 1;
        let left = u64::MAX;
        self.messages[message as usize] =
            Message { start: time, launched: time, left, end: time, cause, how, link: NONE };
        self.event_queue.add(time.saturating_add(self.alpha_ps), Event::Launched(message));
    }

    /// A message is ready for the network, where it may have to wait for its turn.
    fn launch(&mut self, time: u64, message: u32) {
        let (lane, _) = self.workload.piece_of(message);
        if !self.turns.as_mut().is_some_and(|turns| turns.keeps(lane, message)) {
            self.enter(time, message);
        }
    }

    /// Puts a message on the network; one without bytes is through at once.
    fn enter(&mut self, time: u64, message: u32) {
        self.messages[message as usize].launched = time;
        let (lane, _) = self.workload.piece_of(message);
        let bytes = self.workload.bytes_of(message);
        let Lane { route, weight, .. } = self.workload.lanes[lane as usize];
        match &mut self.network {
            _ if bytes == 0 => {
                let link = self.graph.routes.get(RouteIndex::new(route)).and_then(<[_]>::first);
                self.sent(message, time, link.map_or(NONE, |link| link.number()));
            }
            Network::Fair(fair) => fair.join(time, message, route, bytes, weight),
            Network::Fifo(fifo) => fifo.join(time, message),
        }
    }

    /// Lets the network work up to this time; whether it had anything to do.
    fn serve(&mut self, time: u64) -> bool {
        match &mut self.network {
            Network::Fair(fair) => {
                let mut left = Vec::new();
                let workload = &self.workload;
                fair.leave(time, |message| workload.lanes[workload.piece_of(message).0 as usize].weight, &mut left);
                for &(message, link) in &left {
                    self.sent(message, time, link);
                }
                !left.is_empty()
            }
            Network::Fifo(fifo) => {
                let workload = &self.workload;
                let of = |message| {
                    let (lane, _) = workload.piece_of(message);
                    (workload.lanes[lane as usize].route, workload.bytes_of(message))
                };
                let Some(served) = fifo.serve(time, of) else { return false };
                if let Some(left) = served.left {
                    self.messages[served.message as usize].left = left;
                    self.event_queue.add(left, Event::Left(served.message));
                }
                if let Some((end, link)) = served.arrived {
                    self.messages[served.message as usize].link = link;
                    self.event_queue.add(end, self.arrival(served.message));
                }
                true
            }
        }
    }

    /// A message has left its sender and crosses the route's latencies.
    fn sent(&mut self, message: u32, time: u64, link: u32) {
        let (lane, _) = self.workload.piece_of(message);
        let latency = self.latencies[self.workload.lanes[lane as usize].route as usize];
        let found = &mut self.messages[message as usize];
        (found.left, found.link) = (time, link);
        self.event_queue.add(time, Event::Left(message));
        self.event_queue.add(time.saturating_add(latency), self.arrival(message));
    }

    /// What happens when the last byte of a message is there.
    fn arrival(&self, message: u32) -> Event {
        let is_added = |message| self.workload.lanes[self.workload.piece_of(message).0 as usize].is_added;
        if self.adder.is_some() && is_added(message) { Event::Landed(message) } else { Event::Arrived(message) }
    }

    /// The receiver adds a message up once it has done so with those that came before.
    fn land(&mut self, time: u64, message: u32) {
        let bytes = self.workload.bytes_of(message);
        let (lane, _) = self.workload.piece_of(message);
        let to = self.graph.transfers[self.workload.lanes[lane as usize].transfer as usize].to;
        let end = self.adder.as_mut().map_or(time, |adder| adder.added(time, to.index(), bytes));
        self.event_queue.add(end, Event::Arrived(message));
    }

    /// The piece after one that has left may start, and it may be the next ones' turn on the route.
    fn follow(&mut self, time: u64, message: u32) {
        let (lane, _) = self.workload.piece_of(message);
        self.try_start(lane, time, message, Start::Piece);
        let next = self.turns.as_mut().map_or_else(Vec::new, |turns| turns.leave(lane));
        for kept in next {
            let found = &mut self.messages[kept as usize];
            (found.start, found.cause, found.how) = (time, message, Start::Turn);
            self.enter(time, kept);
        }
    }

    fn arrive(&mut self, time: u64, message: u32) {
        self.messages[message as usize].end = time;
        let (lane, _) = self.workload.piece_of(message);
        self.lane_arrived[lane as usize] += 1;
        let transfer = self.workload.lanes[lane as usize].transfer;
        let lanes = self.workload.lanes_of(transfer);
        let whole = lanes.map(|lane| self.lane_arrived[lane as usize]).min().unwrap_or(0);
        if whole == self.gates.arrived(transfer) {
            return;
        }
        let mut freed = Freed::default();
        self.gates.arrive(transfer, &self.workload.pieces, &mut freed);
        for (transfers, how) in [(freed.by_data, Start::Data), (freed.by_step, Start::Step)] {
            for lane in transfers.into_iter().flat_map(|transfer| self.workload.lanes_of(transfer)).collect::<Vec<_>>()
            {
                self.try_start(lane, time, message, how);
            }
        }
    }

    /// Computes rates where they are shared, and says how much work the network has done in all.
    fn settle(&mut self, time: u64) -> u64 {
        match &mut self.network {
            Network::Fair(fair) => {
                fair.settle(time);
                fair.work
            }
            Network::Fifo(fifo) => fifo.work,
        }
    }

    fn outcome(self) -> Outcome {
        let mut ranks_ps = vec![0_u64; self.topology.rank_count() as usize];
        let mut links = vec![LinkUse::default(); self.topology.links().len()];
        for (message, found) in (0..).zip(&self.messages) {
            let (lane, _) = self.workload.piece_of(message);
            let lane = &self.workload.lanes[lane as usize];
            let transfer = &self.graph.transfers[lane.transfer as usize];
            for (rank, time) in [(transfer.from, found.left), (transfer.to, found.end)] {
                ranks_ps[rank.index()] = ranks_ps[rank.index()].max(time);
            }
        }
        for lane in &self.workload.lanes {
            for link in self.graph.routes.get(RouteIndex::new(lane.route)).unwrap_or_default() {
                links[link.index()].bytes += lane.bytes;
            }
        }
        let busy: Vec<u64> = match &self.network {
            Network::Fair(fair) => fair.busy().collect(),
            Network::Fifo(fifo) => fifo.busy().collect(),
        };
        links.iter_mut().zip(busy).for_each(|(link, busy)| link.busy_ps = busy);
        let network_events = match &self.network {
            Network::Fair(_) => 0,
            Network::Fifo(fifo) => fifo.work,
        };
        Outcome {
            time_ps: self.messages.iter().map(|message| message.end).max().unwrap_or(0),
            ranks_ps,
            links,
            message_count: self.messages.len() as u64,
            event_count: self.event_count + network_events,
            critical_path: self.critical_path(),
        }
    }

    /// From the message that arrived last, the first of them in the graph's order, back to one that waited for nothing.
    fn critical_path(&self) -> Vec<Leg> {
        let last = (0..).zip(&self.messages).max_by_key(|&(number, message)| (message.end, Reverse(number)));
        let mut path = Vec::new();
        let mut next = last.map_or(NONE, |(number, _)| number);
        while next != NONE {
            let (lane, piece) = self.workload.piece_of(next);
            let lane = &self.workload.lanes[lane as usize];
            let transfer = &self.graph.transfers[lane.transfer as usize];
            let Message { start, left, end, cause, how, link, .. } = self.messages[next as usize];
            path.push(Leg {
                transfer: lane.transfer,
                from: transfer.from,
                to: transfer.to,
                piece,
                bytes: self.workload.bytes_of(next),
                start_ps: start,
                left_ps: left,
                end_ps: end,
                start: how,
                link: LinkIndex::new(link),
            });
            next = cause;
        }
        path.reverse();
        path
    }
}
