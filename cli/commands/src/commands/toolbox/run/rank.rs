//! One rank of `canopy tools run`, in a process of its own: real buffers, and a connection to and from each rank it deals with.
//!
//! One thread does it all, as a worker of a library of collectives does: it gives each socket what that takes, takes what
//! has come, and works within the memory once a step's messages are complete.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use canopy_plan::oneccl::{OWN_BYTES_MAX, Piece, Program, RankRun, Turn, parse_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Sleep, timeout};

use super::control::{Done, FromRank, Job, ToRank};
use super::data::{Data, ElementType, mix};
use super::wire::{InLine, OutLine, WireError};
use crate::clock;
use crate::exit::{Failure, words};
use crate::lines::split;

/// Environment variable with the word that proves that a process belongs to this run.
pub(super) const TOKEN: &str = "CANOPY_RUN_TOKEN";

/// Bytes of the word.
pub(super) const TOKEN_BYTES: usize = 32;
/// Bytes of what a connection begins with: the word, rank and instance of who sends on it.
const HELLO_BYTES: usize = TOKEN_BYTES + 8;
/// How long a connection may take to say who it is.
pub(super) const GREETING: Duration = Duration::from_secs(5);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(20);

/// One rank of a run; started by `canopy tools run`
#[derive(Debug, clap::Args)]
pub(crate) struct RankArgs {
    /// The rank
    rank: u32,
    /// Where the command listens
    control: SocketAddr,
    /// Let ranks of other hosts connect
    #[arg(long)]
    hosts: bool,
}

/// Runs the rank to its end, or until the command has gone.
pub(crate) fn run(args: &RankArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::fault(format!("cannot start: {error}")))?;
    runtime.block_on(serve(args)).map_err(|error| Failure::fault(format!("rank {}: {error}", args.rank)))
}

/// Why a rank gives up.
#[derive(Debug, thiserror::Error)]
enum RankError {
    #[error("{what}: {error}")]
    Io { what: &'static str, error: io::Error },
    #[error("cannot reach rank {rank} at {host}:{port}: {error}")]
    Unreachable { rank: u32, host: String, port: u16, error: io::Error },
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("{0}")]
    Plan(String),
    #[error("the command does not keep to its own words")]
    Protocol,
}

fn broken(what: &'static str) -> impl Fn(io::Error) -> RankError {
    move |error| RankError::Io { what, error }
}

async fn serve(args: &RankArgs) -> Result<(), RankError> {
    let token = std::env::var(TOKEN).ok().filter(|token| token.len() == TOKEN_BYTES).ok_or(RankError::Protocol)?;
    let listener = listen(args.hosts).await.map_err(broken("cannot listen"))?;
    let port = listener.local_addr().map_err(broken("cannot listen"))?.port();
    let control = TcpStream::connect(args.control).await.map_err(broken("cannot reach the command"))?;
    let (mut listening, mut speaking) = split(control);
    let lost = broken("the command has gone");
    let hello = FromRank::Hello { token: token.clone(), rank: args.rank, port };
    speaking.say(&hello).await.map_err(&lost)?;
    let Some(ToRank::Job(job)) = listening.hear().await.map_err(&lost)? else { return Err(RankError::Protocol) };
    let plan = parse_until(&job.plan, OWN_BYTES_MAX, &|| false).map_err(|error| RankError::Plan(error.to_string()))?;
    let outcome = async {
        let mut machine = Machine::new(&plan, args.rank, &job)?;
        machine.connect(&plan, &listener, &job, token.as_bytes()).await?;
        let data = Data::new(&plan, job.seed, job.elements, job.element);
        data.fill(args.rank, machine.bytes_mut(machine.input.clone()));
        speaking.say(&FromRank::Ready).await.map_err(&lost)?;
        match listening.hear().await.map_err(&lost)? {
            Some(ToRank::Start) => {}
            Some(ToRank::End) | None => return Ok(None),
            Some(_) => return Err(RankError::Protocol),
        }
        let started = clock::now();
        loop {
            tokio::select! {
                event = poll_fn(|cx| machine.poll(cx)) => match event? {
                    Event::Barrier(instance) => speaking.say(&FromRank::Barrier { instance }).await.map_err(&lost)?,
                    Event::End => break,
                },
                told = listening.hear() => match told.map_err(&lost)? {
                    Some(ToRank::Go { instance }) => machine.go(instance),
                    Some(ToRank::End) | None => return Ok(None),
                    Some(_) => return Err(RankError::Protocol),
                },
            }
        }
        let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let first_wrong = data.first_wrong(args.rank, machine.bytes_mut(machine.output.clone()));
        let Machine { messages, bytes, .. } = machine;
        // The connections stay open until everybody is through: others may still read from them.
        Ok(Some((Done { nanos, messages, bytes, first_wrong }, machine)))
    };
    match outcome.await {
        Ok(None) => Ok(()),
        Ok(Some((done, _machine))) => {
            speaking.say(&FromRank::Done(done)).await.map_err(&lost)?;
            // Whatever comes, nothing is left to do.
            let _end = listening.hear::<ToRank>().await;
            Ok(())
        }
        Err(error) => {
            let message = words(&error);
            speaking.say(&FromRank::Failed { message }).await.map_err(&lost)?;
            let _end = listening.hear::<ToRank>().await;
            Ok(())
        }
    }
}

/// Listens on this machine's loopback, or on all of its addresses.
async fn listen(do_hosts_connect: bool) -> io::Result<TcpListener> {
    if !do_hosts_connect {
        return TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    }
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).await {
        Ok(listener) => Ok(listener),
        // Where there is IPv4 only.
        Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await,
    }
}

/// Connects to a rank.
async fn reach(rank: u32, (host, port): &(String, u16)) -> Result<TcpStream, RankError> {
    let unreachable = |error| RankError::Unreachable { rank, host: host.clone(), port: *port, error };
    match timeout(CONNECT, TcpStream::connect((host.as_str(), *port))).await {
        Ok(connected) => connected.map_err(unreachable),
        Err(_) => Err(unreachable(io::ErrorKind::TimedOut.into())),
    }
}

/// What a connection begins with; none if it ends before.
async fn greet(mut stream: TcpStream) -> Option<([u8; HELLO_BYTES], TcpStream)> {
    let mut hello = [0_u8; HELLO_BYTES];
    stream.read_exact(&mut hello).await.ok()?;
    Some((hello, stream))
}

/// What is to be said to the command.
enum Event {
    /// An instance waits for all ranks.
    Barrier(u32),
    /// All instances are through.
    End,
}

/// Memory and connections of a rank.
struct Machine {
    rank: u32,
    memory: Vec<u8>,
    input: std::ops::Range<usize>,
    output: std::ops::Range<usize>,
    element: ElementType,
    copies: Vec<Copy>,
    delay_max: Duration,
    chance: u64,
    messages: u64,
    bytes: u64,
}

/// One instance of the plan.
struct Copy {
    run: RankRun,
    state: State,
    outs: BTreeMap<u32, OutLine>,
    ins: BTreeMap<u32, InLine>,
}

enum State {
    /// Asks what to do next.
    Idle,
    /// Messages are under way.
    Exchanging,
    /// Waits before it posts messages.
    Delayed(Pin<Box<Sleep>>, Turn),
    /// Has said that it waits for all ranks.
    AtBarrier,
    Ended,
}

impl Machine {
    fn new(plan: &Program, rank: u32, job: &Job) -> Result<Self, RankError> {
        let run = |instance| {
            let run = RankRun::new(plan, rank, job.elements, instance);
            run.map_err(|error| RankError::Plan(error.to_string()))
        };
        let first = run(0)?;
        let bytes = first.memory_elements().checked_mul(job.element.bytes());
        let bytes = bytes.ok_or_else(|| RankError::Plan("its memory cannot be addressed; lower --size".to_owned()))?;
        let copy = |instance| {
            run(instance).map(|run| Copy { run, state: State::Idle, outs: BTreeMap::new(), ins: BTreeMap::new() })
        };
        Ok(Self {
            rank,
            memory: vec![0xa5; bytes],
            input: first.input(),
            output: first.output(),
            element: job.element,
            copies: (0..plan.instances).map(copy).collect::<Result<_, _>>()?,
            delay_max: job.delay_max,
            chance: mix(job.seed ^ u64::from(rank)),
            messages: 0,
            bytes: 0,
        })
    }

    /// The bytes of some elements.
    fn bytes_mut(&mut self, elements: std::ops::Range<usize>) -> &mut [u8] {
        let bytes = self.element.bytes();
        &mut self.memory[elements.start * bytes..elements.end * bytes]
    }

    /// Connects each instance to the ranks that it sends to, and waits for those that it receives from.
    async fn connect(
        &mut self,
        plan: &Program,
        listener: &TcpListener,
        job: &Job,
        token: &[u8],
    ) -> Result<(), RankError> {
        let own = plan.ranks.iter().find(|own| own.rank == self.rank).ok_or(RankError::Protocol)?;
        let receivers: BTreeSet<u32> = own.steps.iter().flat_map(|step| &step.sends).map(|send| send.peer).collect();
        let senders: BTreeSet<u32> = own.steps.iter().flat_map(|step| &step.receives).map(|own| own.peer).collect();
        for (instance, copy) in (0_u32..).zip(&mut self.copies) {
            for &peer in &receivers {
                let mut stream = reach(peer, job.places.get(peer as usize).ok_or(RankError::Protocol)?).await?;
                stream.set_nodelay(true).map_err(broken("cannot set up a connection"))?;
                let hello = [token, &self.rank.to_le_bytes(), &instance.to_le_bytes()].concat();
                stream.write_all(&hello).await.map_err(broken("cannot reach another rank"))?;
                copy.outs.insert(peer, OutLine::new(peer, stream));
            }
        }
        let mut missing = senders.len() * self.copies.len();
        let mut greeting = JoinSet::new();
        while missing > 0 {
            let greeted = tokio::select! {
                accepted = listener.accept() => {
                    let (stream, _) = accepted.map_err(broken("cannot accept another rank"))?;
                    greeting.spawn(timeout(GREETING, greet(stream)));
                    continue;
                }
                Some(greeted) = greeting.join_next() => greeted,
            };
            // Others may connect, but do not say the word, or not in time.
            let Ok(Ok(Some((hello, stream)))) = greeted else { continue };
            if hello[..TOKEN_BYTES] != *token {
                continue;
            }
            let number = |at: usize| u32::from_le_bytes([hello[at], hello[at + 1], hello[at + 2], hello[at + 3]]);
            let (peer, instance) = (number(TOKEN_BYTES), number(TOKEN_BYTES + 4));
            let copy = self.copies.get_mut(instance as usize).filter(|_| senders.contains(&peer));
            let copy = copy.ok_or(RankError::Protocol)?;
            missing -= usize::from(copy.ins.insert(peer, InLine::new(peer, stream)).is_none());
        }
        Ok(())
    }

    /// An instance may leave its barrier.
    fn go(&mut self, instance: u32) {
        if let Some(copy) = self.copies.get_mut(instance as usize) {
            copy.state = State::Idle;
        }
    }

    /// Takes all instances as far as they can go; ready when something is to be said.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, RankError>> {
        let mut all_ended = true;
        for index in 0..self.copies.len() {
            if self.poll_copy(index, cx)?.is_ready() {
                let instance = u32::try_from(index).expect("at most 64 instances");
                return Poll::Ready(Ok(Event::Barrier(instance)));
            }
            all_ended &= matches!(self.copies[index].state, State::Ended);
        }
        if all_ended { Poll::Ready(Ok(Event::End)) } else { Poll::Pending }
    }

    /// Takes an instance as far as it can go; ready when it has come to a barrier.
    fn poll_copy(&mut self, index: usize, cx: &mut Context<'_>) -> Result<Poll<()>, RankError> {
        loop {
            let copy = &mut self.copies[index];
            match &mut copy.state {
                State::AtBarrier | State::Ended => return Ok(Poll::Pending),
                State::Delayed(sleep, turn) => {
                    if sleep.as_mut().poll(cx).is_pending() {
                        return Ok(Poll::Pending);
                    }
                    let turn = std::mem::replace(turn, Turn::End);
                    self.post(index, turn);
                }
                State::Exchanging => {
                    let mut is_pending = false;
                    for line in copy.outs.values_mut().filter(|line| !line.is_idle()) {
                        match line.poll(&self.memory, cx) {
                            Poll::Ready(done) => done?,
                            Poll::Pending => is_pending = true,
                        }
                    }
                    for line in copy.ins.values_mut().filter(|line| !line.is_idle()) {
                        match line.poll(&mut self.memory, self.element.bytes(), &mut copy.run, cx) {
                            Poll::Ready(done) => done?,
                            Poll::Pending => is_pending = true,
                        }
                    }
                    if is_pending {
                        return Ok(Poll::Pending);
                    }
                    copy.state = State::Idle;
                }
                State::Idle => match copy.run.turn() {
                    turn @ Turn::Exchange { .. } => match self.delay() {
                        Some(sleep) => self.copies[index].state = State::Delayed(sleep, turn),
                        None => self.post(index, turn),
                    },
                    Turn::Barrier => {
                        copy.state = State::AtBarrier;
                        return Ok(Poll::Ready(()));
                    }
                    Turn::Local(pieces) => pieces.iter().for_each(|piece| self.work(piece)),
                    Turn::End => copy.state = State::Ended,
                },
            }
        }
    }

    /// A pause before a step, where pauses are asked for.
    fn delay(&mut self) -> Option<Pin<Box<Sleep>>> {
        if self.delay_max.is_zero() {
            return None;
        }
        self.chance = mix(self.chance);
        let micros_max = u64::try_from(self.delay_max.as_micros()).unwrap_or(u64::MAX);
        let micros = self.chance % micros_max.saturating_add(1);
        Some(Box::pin(tokio::time::sleep(Duration::from_micros(micros))))
    }

    /// Posts the messages of a step.
    fn post(&mut self, index: usize, turn: Turn) {
        let Turn::Exchange { sends, receives } = turn else { return };
        let element_bytes = self.element.bytes();
        let copy = &mut self.copies[index];
        for send in sends {
            self.messages += 1;
            self.bytes += send.chunks.iter().map(|chunk| (chunk.len() * element_bytes) as u64).sum::<u64>();
            if let Some(line) = copy.outs.get_mut(&send.peer) {
                line.post(element_bytes, &send.chunks);
            }
        }
        for receive in receives {
            if let Some(line) = copy.ins.get_mut(&receive.peer) {
                line.post(receive);
            }
        }
        copy.state = State::Exchanging;
    }

    /// A copy or reduction within the memory.
    fn work(&mut self, piece: &Piece) {
        let bytes = self.element.bytes();
        let (source, target) = (piece.source.start * bytes..piece.source.end * bytes, piece.destination.start * bytes);
        if !piece.is_reduction {
            return self.memory.copy_within(source, target);
        }
        let length = source.len();
        // Both ends of a reduction are apart: the proof has seen to that.
        if source.start < target {
            let (low, high) = self.memory.split_at_mut(target);
            self.element.add(&mut high[..length], &low[source]);
        } else {
            let (low, high) = self.memory.split_at_mut(source.start);
            self.element.add(&mut low[target..target + length], &high[..length]);
        }
    }
}
