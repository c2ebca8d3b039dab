//! One rank of the lab, in a process and a network namespace of its own: real memory, and a connection for each route
//! to and from the ranks it deals with. One thread does it all.

mod wire;

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use canopy_lab::{PORT, Pace, RankProgram, RankState, StateError};
use socket2::{Domain, SockRef, Socket, Type};

use super::protocol::{FromRank, ToRank};
use crate::clock;
use crate::exit::{Failure, words};
use crate::lines::{hear, say};
use wire::{InLine, OutLine, Waiting};

/// Connections that may wait until the rank takes them.
const BACKLOG: i32 = 1024;
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(20);
/// How much of a connection's pace may be in the system's hands, and at most.
const UNSENT_MS: u64 = 100;
const UNSENT_BYTES_MAX: u64 = 1 << 20;
/// How long nothing may happen.
const STALL_NS: u64 = 60_000_000_000;

/// One rank of a lab; started by `canopy tools lab`
#[derive(Debug, clap::Args)]
pub(crate) struct RankArgs {}

/// Why a rank gives up.
#[derive(Debug, thiserror::Error)]
pub(super) enum RankError {
    #[error("{what}: {error}")]
    Io { what: &'static str, error: io::Error },
    #[error(transparent)]
    State(#[from] StateError),
    #[error("another rank has gone")]
    PeerGone,
    #[error("nothing happened for a minute: {0} bytes of pieces wait to be sent")]
    Stalled(usize),
    #[error("the command does not keep to its own words")]
    Protocol,
}

fn broken(what: &'static str) -> impl Fn(io::Error) -> RankError {
    move |error| RankError::Io { what, error }
}

/// Does what the command says until it has gone.
pub(crate) fn run(_: &RankArgs) -> Result<(), Failure> {
    let (mut from, mut to) = (io::stdin().lock(), io::stdout().lock());
    serve(&mut from, &mut to).or_else(|error| {
        let message = words(&error);
        say(&mut to, &FromRank::Failed { message: message.clone() }).map_err(|_| Failure::fault(message))
    })
}

fn serve(from: &mut impl io::BufRead, to: &mut impl io::Write) -> Result<(), RankError> {
    let lost = broken("the command has gone");
    let Some(ToRank::Program(program)) = hear(from).map_err(&lost)? else { return Err(RankError::Protocol) };
    let listener = listen().map_err(broken("cannot listen"))?;
    say(to, &FromRank::Listening).map_err(&lost)?;
    let Some(ToRank::Connect) = hear(from).map_err(&lost)? else { return Err(RankError::Protocol) };
    let mut lines = Lines::connect(&program, &listener)?;
    let mut state = RankState::new(*program)?;
    say(to, &FromRank::Connected).map_err(&lost)?;
    while let Some(told) = hear(from).map_err(&lost)? {
        match told {
            ToRank::Prepare => {
                state.prepare();
                say(to, &FromRank::Prepared).map_err(&lost)?;
            }
            ToRank::Go { at_ns } => {
                let before_ns = clock::processor_ns();
                let end_ns = lines.exchange(&mut state, at_ns)?;
                let processor_ns = clock::processor_ns().saturating_sub(before_ns);
                let wrong_words = state.wrong_words();
                say(to, &FromRank::Ran { end_ns, wrong_words, processor_ns }).map_err(&lost)?;
            }
            ToRank::Program(_) | ToRank::Connect => return Err(RankError::Protocol),
        }
    }
    Ok(())
}

/// Listens at every address of the namespace: those of the routes that end here.
fn listen() -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)).into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// All connections of a rank.
struct Lines {
    outs: Vec<OutLine>,
    ins: Vec<InLine>,
}

impl Lines {
    /// Connects to the ranks that it sends to, over the routes of the plan, and takes the connections of the others.
    fn connect(program: &RankProgram, listener: &TcpListener) -> Result<Self, RankError> {
        let cannot = broken("cannot reach another rank");
        let mut outs = Vec::with_capacity(program.outgoing.len());
        for outgoing in &program.outgoing {
            let address: Ipv4Addr = outgoing.address.parse().map_err(|_| RankError::Protocol)?;
            let mut stream = TcpStream::connect_timeout(&(address, PORT).into(), CONNECT).map_err(&cannot)?;
            stream.write_all(&outgoing.id.to_le_bytes()).map_err(&cannot)?;
            outs.push(OutLine::new(ready(stream, outgoing.pace_bytes_per_sec)?, outgoing.pace_bytes_per_sec));
        }
        let mut ins: Vec<Option<InLine>> = program.incoming.iter().map(|_| None).collect();
        while ins.iter().any(Option::is_none) {
            let (mut stream, _) = listener.accept().map_err(broken("cannot take a connection"))?;
            stream.set_read_timeout(Some(CONNECT)).map_err(&cannot)?;
            let mut id = [0; 4];
            stream.read_exact(&mut id).map_err(&cannot)?;
            let id = u32::from_le_bytes(id);
            let place = program.incoming.iter().position(|incoming| incoming.id == id).ok_or(RankError::Protocol)?;
            let line = ins.get_mut(place).filter(|line| line.is_none()).ok_or(RankError::Protocol)?;
            *line = Some(InLine::new(ready(stream, 0)?));
        }
        Ok(Self { outs, ins: ins.into_iter().flatten().collect() })
    }

    /// Sends and takes everything, from a moment on; returns when the last byte came.
    fn exchange(&mut self, state: &mut RankState, at_ns: u64) -> Result<u64, RankError> {
        while let Some(left) = at_ns.checked_sub(clock::monotonic_ns()).filter(|left| *left > 0) {
            std::thread::sleep(Duration::from_nanos(left));
        }
        let mut received_ns = None;
        let mut moved_ns = clock::monotonic_ns();
        self.outs.iter_mut().for_each(|line| line.start(moved_ns));
        loop {
            let now_ns = clock::monotonic_ns();
            let (mut wait_ns, mut has_moved) = (STALL_NS, false);
            for (connection, line) in self.outs.iter_mut().enumerate() {
                match line.send(state, connection, now_ns)? {
                    Waiting::Until { ns } => wait_ns = wait_ns.min(ns),
                    Waiting::ForSocket | Waiting::ForPieces => {}
                }
                has_moved |= line.has_moved();
            }
            if state.has_received_all() && received_ns.is_none() {
                received_ns = Some(now_ns);
            }
            if state.is_done() && self.outs.iter().all(OutLine::is_empty) {
                return Ok(received_ns.unwrap_or(now_ns));
            }
            wire::wait(&mut self.ins, &mut self.outs, wait_ns).map_err(broken("cannot wait"))?;
            for (connection, line) in self.ins.iter_mut().enumerate() {
                has_moved |= line.receive(state, connection)?;
            }
            if has_moved {
                moved_ns = now_ns;
            } else if now_ns.saturating_sub(moved_ns) > STALL_NS {
                return Err(RankError::Stalled(self.outs.iter().map(OutLine::len).sum()));
            }
        }
    }
}

/// Sets up a connection: small writes go at once, and little more than what is about to leave is in the system's hands,
/// so that the next piece is chosen late. On a busy machine the system needs something to send while the process waits
/// for a processor.
fn ready(stream: TcpStream, bytes_per_sec: u64) -> Result<TcpStream, RankError> {
    let unsent = (bytes_per_sec / 1000 * UNSENT_MS).clamp(2 * Pace::QUANTUM_BYTES as u64, UNSENT_BYTES_MAX);
    let lowat = u32::try_from(unsent).unwrap_or(u32::MAX);
    let set = || {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        SockRef::from(&stream).set_tcp_notsent_lowat(lowat)
    };
    set().map_err(broken("cannot set up a connection"))?;
    Ok(stream)
}
