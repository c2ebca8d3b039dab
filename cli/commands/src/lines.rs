//! What processes of this program say to each other: one JSON object on a line, over pipes and connections.

use std::io::{self, BufRead, Read as _, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

/// Longest line, which is one with a plan or with programs.
const LINE_BYTES_MAX: u64 = 1 << 30;

fn line_of(what: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(what).map_err(io::Error::other)?;
    line.push(b'\n');
    Ok(line)
}

fn read<T: DeserializeOwned>(line: &[u8]) -> io::Result<T> {
    serde_json::from_slice(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Writes one line.
pub(crate) fn say(to: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    to.write_all(&line_of(what)?)?;
    to.flush()
}

/// Reads one line; `None` once the other side has gone.
pub(crate) fn hear<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    from.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.last() == Some(&b'\n') { read(&line).map(Some) } else { Ok(None) }
}

/// The half that listens.
pub(crate) struct Listening<R = OwnedReadHalf> {
    lines: BufReader<R>,
    /// What was read of a line that has not ended: listening may be given up at any moment and begun again.
    begun: Vec<u8>,
}

/// The half that speaks.
pub(crate) struct Speaking<W = OwnedWriteHalf>(W);

/// Both halves of a connection.
pub(crate) fn split(stream: TcpStream) -> (Listening, Speaking) {
    let (read, write) = stream.into_split();
    (Listening::new(read), Speaking::new(write))
}

impl<R: AsyncRead + Unpin> Listening<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { lines: BufReader::new(from), begun: Vec::new() }
    }

    /// Passes on all that is said, as from this one, and at the end that the other side has gone.
    pub(crate) async fn pass_on<K: Copy, T: DeserializeOwned>(mut self, from: K, to: mpsc::Sender<(K, Option<T>)>) {
        while let Ok(Some(said)) = self.hear().await {
            if to.send((from, Some(said))).await.is_err() {
                return;
            }
        }
        // An error means that the receiver has ended.
        let _ended = to.send((from, None)).await;
    }

    /// The next thing that is said; `None` once the other side has gone.
    pub(crate) async fn hear<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let room = LINE_BYTES_MAX.saturating_sub(self.begun.len() as u64);
        (&mut self.lines).take(room).read_until(b'\n', &mut self.begun).await?;
        if self.begun.last() != Some(&b'\n') {
            return if self.begun.len() as u64 >= LINE_BYTES_MAX {
                Err(io::ErrorKind::FileTooLarge.into())
            } else {
                Ok(None)
            };
        }
        read(&std::mem::take(&mut self.begun)).map(Some)
    }
}

impl<W: AsyncWrite + Unpin> Speaking<W> {
    pub(crate) const fn new(to: W) -> Self {
        Self(to)
    }

    pub(crate) async fn say<T: Serialize>(&mut self, what: &T) -> io::Result<()> {
        self.0.write_all(&line_of(what)?).await?;
        self.0.flush().await
    }
}
