//! Messages on the wire between two ranks: how many chunks, how long each is, then their bytes.
//!
//! Bytes go from the memory of a rank to the socket and back without a copy between: as many at a time as the socket
//! takes.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::task::{Context, Poll, ready};

use canopy_plan::oneccl::{Incoming, RankRun, RunError};
use tokio::net::TcpStream;

/// Most chunks of a message that are believed: a header of 512 MiB.
const CHUNKS_MAX: u32 = 1 << 26;

/// Why a message cannot come or go.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    /// The connection broke.
    #[error("the connection to rank {peer} broke: {error}")]
    Broken { peer: u32, error: io::Error },
    /// The other rank ended early.
    #[error("rank {peer} has gone")]
    Gone { peer: u32 },
    /// The other rank sends what nobody expects.
    #[error(transparent)]
    Unexpected(#[from] RunError),
}

/// Messages to one rank.
pub(super) struct OutLine {
    peer: u32,
    stream: TcpStream,
    messages: VecDeque<OutMessage>,
}

struct OutMessage {
    header: Vec<u8>,
    chunks: VecDeque<Range<usize>>,
    /// Bytes of the header that have gone.
    sent: usize,
}

impl OutLine {
    pub(super) fn new(peer: u32, stream: TcpStream) -> Self {
        Self { peer, stream, messages: VecDeque::new() }
    }

    /// Adds a message: bytes of the memory for each chunk, which must not change before it has gone.
    pub(super) fn post(&mut self, element_bytes: usize, chunks: &[Range<usize>]) {
        let count = u32::try_from(chunks.len()).expect("a count of the plan");
        let mut header = Vec::with_capacity(4 + 8 * chunks.len());
        header.extend(count.to_le_bytes());
        let mut joined: VecDeque<Range<usize>> = VecDeque::new();
        for chunk in chunks {
            header.extend((chunk.len() as u64).to_le_bytes());
            let bytes = chunk.start * element_bytes..chunk.end * element_bytes;
            match joined.back_mut().filter(|last| last.end == bytes.start) {
                Some(last) => last.end = bytes.end,
                None => joined.push_back(bytes),
            }
        }
        joined.retain(|bytes| !bytes.is_empty());
        self.messages.push_back(OutMessage { header, chunks: joined, sent: 0 });
    }

    pub(super) fn is_idle(&self) -> bool {
        self.messages.is_empty()
    }

    /// Sends as much as the socket takes. Ready once nothing is left.
    pub(super) fn poll(&mut self, memory: &[u8], cx: &mut Context<'_>) -> Poll<Result<(), WireError>> {
        let peer = self.peer;
        while let Some(message) = self.messages.front_mut() {
            let bytes = match (message.header.get(message.sent..), message.chunks.front()) {
                (Some(header), _) if !header.is_empty() => header,
                (_, Some(chunk)) => &memory[chunk.clone()],
                (_, None) => {
                    self.messages.pop_front();
                    continue;
                }
            };
            message.advance(ready!(moved(peer, self.stream.try_write(bytes), || self.stream.poll_write_ready(cx)))?);
        }
        Poll::Ready(Ok(()))
    }
}

impl OutMessage {
    fn advance(&mut self, count: usize) {
        if self.sent < self.header.len() {
            self.sent += count;
        } else {
            take_from(&mut self.chunks, count);
        }
    }
}

/// So many bytes of the first chunk are through.
fn take_from(chunks: &mut VecDeque<Range<usize>>, count: usize) {
    if let Some(chunk) = chunks.front_mut() {
        chunk.start += count;
        if chunk.start >= chunk.end {
            chunks.pop_front();
        }
    }
}

/// Messages from one rank.
pub(super) struct InLine {
    peer: u32,
    stream: TcpStream,
    messages: VecDeque<Incoming>,
    state: Reading,
}

/// What is read next.
enum Reading {
    /// The number of chunks and their lengths.
    Header { bytes: Vec<u8>, read: usize },
    /// Their bytes.
    Chunks(VecDeque<Range<usize>>),
}

impl Reading {
    /// The number of chunks of the next message.
    fn begin() -> Self {
        Self::Header { bytes: vec![0; 4], read: 0 }
    }
}

impl InLine {
    pub(super) fn new(peer: u32, stream: TcpStream) -> Self {
        Self { peer, stream, messages: VecDeque::new(), state: Reading::begin() }
    }

    /// Expects a message.
    pub(super) fn post(&mut self, message: Incoming) {
        self.messages.push_back(message);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.messages.is_empty()
    }

    /// Reads as much as has come. Ready once all expected messages are there.
    pub(super) fn poll(
        &mut self,
        memory: &mut [u8],
        element_bytes: usize,
        run: &mut RankRun,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), WireError>> {
        while let Some(message) = self.messages.front().copied() {
            if self.is_through(&message, element_bytes, run)? {
                self.messages.pop_front();
                continue;
            }
            let bytes = match &mut self.state {
                Reading::Header { bytes, read } => &mut bytes[*read..],
                Reading::Chunks(chunks) => match chunks.front() {
                    Some(chunk) => &mut memory[chunk.clone()],
                    None => continue,
                },
            };
            let peer = self.peer;
            let count = ready!(moved(peer, self.stream.try_read(bytes), || self.stream.poll_read_ready(cx)))?;
            match &mut self.state {
                Reading::Header { read, .. } => *read += count,
                Reading::Chunks(chunks) => take_from(chunks, count),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Goes from a header that is complete to what follows it; says whether the message is complete.
    fn is_through(&mut self, message: &Incoming, element_bytes: usize, run: &mut RankRun) -> Result<bool, WireError> {
        match &mut self.state {
            Reading::Header { bytes, read } if *read == bytes.len() => {
                let (count, lengths) = bytes.split_at(4);
                let count = u32::from_le_bytes(count.try_into().expect("four bytes"));
                if count != message.chunk_count() || count > CHUNKS_MAX {
                    let (from, expected) = (self.peer, message.chunk_count());
                    return Err(RunError::Count { from, found: count as usize, expected }.into());
                }
                if lengths.is_empty() {
                    bytes.resize(4 + 8 * count as usize, 0);
                    return Ok(false);
                }
                let (lengths, _) = lengths.as_chunks::<8>();
                let lengths: Vec<u64> = lengths.iter().map(|length| u64::from_le_bytes(*length)).collect();
                let chunks = run.land(message, &lengths)?.into_iter().filter(|chunk| !chunk.is_empty());
                let chunks = chunks.map(|chunk| chunk.start * element_bytes..chunk.end * element_bytes).collect();
                self.state = Reading::Chunks(chunks);
                self.is_through(message, element_bytes, run)
            }
            Reading::Header { .. } => Ok(false),
            Reading::Chunks(chunks) => {
                let is_through = chunks.is_empty();
                if is_through {
                    self.state = Reading::begin();
                }
                Ok(is_through)
            }
        }
    }
}

/// How many bytes went or came; where none could, once the socket may be tried again.
fn moved(
    peer: u32,
    tried: io::Result<usize>,
    ready: impl FnOnce() -> Poll<io::Result<()>>,
) -> Poll<Result<usize, WireError>> {
    Poll::Ready(match tried {
        Ok(0) => Err(WireError::Gone { peer }),
        Ok(count) => Ok(count),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            ready!(ready()).map(|()| 0).map_err(|error| WireError::Broken { peer, error })
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(broken(peer, error)),
    })
}

fn broken(peer: u32, error: io::Error) -> WireError {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => {
            WireError::Gone { peer }
        }
        _ => WireError::Broken { peer, error },
    }
}
