//! The two directions of a rank's connections: pieces behind their heads, as many bytes at a time as the socket and the
//! pace let.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use canopy_lab::{Arrival, FRAME_HEAD_BYTES, Pace, RankState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{RankError, broken};

/// How much of its pace a connection may catch up: on a busy machine a process may have to wait that long for a
/// processor.
const PACE_MEMORY_NS: u64 = 200_000_000;
/// Bytes that are read at a time.
const READ_BYTES: usize = 64 << 10;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Its pace, for this long.
    Until { ns: u64 },
    /// The socket takes no more.
    ForSocket,
    /// No piece can go.
    ForPieces,
}

/// A connection to another rank.
pub(super) struct OutLine {
    stream: TcpStream,
    pace: Pace,
    /// Pieces that were taken, from `sent` on.
    bytes: Vec<u8>,
    sent: usize,
    is_blocked: bool,
    has_moved: bool,
}

impl OutLine {
    pub(super) fn new(stream: TcpStream, bytes_per_sec: u64) -> Self {
        let pace = Pace::new(bytes_per_sec, PACE_MEMORY_NS);
        Self { stream, pace, bytes: Vec::new(), sent: 0, is_blocked: false, has_moved: false }
    }

    /// A run begins.
    pub(super) fn start(&mut self, now_ns: u64) {
        self.pace.start(now_ns);
    }

    /// Bytes that were taken and have not left.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the last call of [`send`](Self::send) sent anything.
    pub(super) fn has_moved(&self) -> bool {
        self.has_moved
    }

    /// Sends what can go now. Which piece is next is decided as late as can be.
    pub(super) fn send(&mut self, state: &mut RankState, connection: usize, now_ns: u64) -> Result<Waiting, RankError> {
        self.has_moved = false;
        if self.is_blocked {
            return Ok(Waiting::ForSocket);
        }
        loop {
            if self.len() < Pace::QUANTUM_BYTES {
                self.bytes.drain(..self.sent);
                self.sent = 0;
                while self.bytes.len() < Pace::QUANTUM_BYTES && state.take_ready(connection, &mut self.bytes) {}
            }
            if self.is_empty() {
                return Ok(Waiting::ForPieces);
            }
            let allowed = self.pace.allowed(now_ns, self.len());
            if allowed == 0 {
                return Ok(Waiting::Until { ns: self.pace.wait_ns(self.len()) });
            }
            match self.stream.write(&self.bytes[self.sent..self.sent + allowed]) {
                Ok(bytes) => {
                    self.pace.sent(bytes);
                    self.sent += bytes;
                    self.has_moved = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    return Ok(Waiting::ForSocket);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(lost("cannot send")(error)),
            }
        }
    }
}

/// A connection from another rank.
pub(super) struct InLine {
    stream: TcpStream,
    bytes: Vec<u8>,
    /// Bytes at the front that are there.
    filled: usize,
    is_readable: bool,
}

impl InLine {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, bytes: vec![0; READ_BYTES], filled: 0, is_readable: false }
    }

    /// Takes what has come; returns whether anything has.
    pub(super) fn receive(&mut self, state: &mut RankState, connection: usize) -> Result<bool, RankError> {
        if !std::mem::take(&mut self.is_readable) {
            return Ok(false);
        }
        match self.stream.read(&mut self.bytes[self.filled..]) {
            Ok(0) => return Err(RankError::PeerGone),
            Ok(bytes) => self.filled += bytes,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(false),
            Err(error) => return Err(lost("cannot receive")(error)),
        }
        let mut taken = 0;
        while let Some((arrival, length)) = self.head(state, connection, taken)? {
            let start = taken + FRAME_HEAD_BYTES;
            // The next read needs room for all of the piece.
            if self.bytes.len() - taken < FRAME_HEAD_BYTES + length {
                self.bytes.resize(taken + FRAME_HEAD_BYTES + length, 0);
            }
            let Some(piece) = self.bytes[..self.filled].get(start..start + length) else { break };
            state.arrived(connection, arrival, piece)?;
            taken = start + length;
        }
        self.bytes.copy_within(taken..self.filled, 0);
        self.filled -= taken;
        Ok(true)
    }

    /// What comes at a place of the buffer, and its bytes; `None` if it is not there yet.
    fn head(&self, state: &RankState, connection: usize, at: usize) -> Result<Option<(Arrival, usize)>, RankError> {
        let head = self.bytes[..self.filled].get(at..at + FRAME_HEAD_BYTES);
        let Some(&[a, b, c, d, e, f, g, h]) = head else { return Ok(None) };
        let arrival = Arrival { receive: u32::from_le_bytes([a, b, c, d]), piece: u32::from_le_bytes([e, f, g, h]) };
        Ok(Some((arrival, state.piece_bytes(connection, arrival)?)))
    }
}

/// Another rank that ends is the symptom, not the cause.
fn lost(what: &'static str) -> impl Fn(io::Error) -> RankError {
    move |error| match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => RankError::PeerGone,
        _ => broken(what)(error),
    }
}

/// Waits until a socket has something, or takes something again, or the time is over.
pub(super) fn wait(ins: &mut [InLine], outs: &mut [OutLine], wait_ns: u64) -> io::Result<()> {
    let blocked: Vec<usize> = (0..outs.len()).filter(|&place| outs[place].is_blocked).collect();
    let mut sockets: Vec<PollFd<'_>> = ins.iter().map(|line| PollFd::new(&line.stream, PollFlags::IN)).collect();
    sockets.extend(blocked.iter().map(|&place| PollFd::new(&outs[place].stream, PollFlags::OUT)));
    let timeout = Timespec {
        tv_sec: i64::try_from(wait_ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(wait_ns % 1_000_000_000).unwrap_or(0),
    };
    match poll(&mut sockets, Some(&timeout)) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let has_news: Vec<bool> = sockets.iter().map(|socket| !socket.revents().is_empty()).collect();
    let (readable, writable) = has_news.split_at(ins.len());
    ins.iter_mut().zip(readable).for_each(|(line, &is)| line.is_readable = is);
    blocked.iter().zip(writable).filter(|(_, is)| **is).for_each(|(&place, _)| outs[place].is_blocked = false);
    Ok(())
}
