//! What the command and its ranks say to each other: one JSON object on a line, over a connection for each rank.

use std::io;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::data::ElementType;

/// Longest line, which is the one with the plan.
const LINE_BYTES_MAX: u64 = 1 << 30;

/// What a rank says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromRank {
    /// The first line: who it is, by the word the command gave it, and the port at which others reach it.
    Hello { token: String, rank: u32, port: u16 },
    /// It is connected to all ranks it deals with, and its buffers are filled.
    Ready,
    /// An instance waits for all ranks.
    Barrier { instance: u32 },
    /// It is through.
    Done(Done),
    /// It gives up.
    Failed { message: String },
}

/// What a rank did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Done {
    /// From the start to the end of its last step.
    pub(super) nanos: u64,
    /// Messages it sent.
    pub(super) messages: u64,
    /// Bytes of data it sent.
    pub(super) bytes: u64,
    /// The first element of its output that is wrong.
    pub(super) first_wrong: Option<u64>,
}

/// What a rank is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToRank {
    /// What to do.
    Job(Job),
    /// All are ready.
    Start,
    /// All ranks are at the barrier that an instance waits at.
    Go { instance: u32 },
    /// Nobody needs it any more.
    End,
}

/// What all ranks need to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Job {
    /// The plan, as oneCCL XML.
    pub(super) plan: String,
    /// Per share, or of the message where there are none.
    pub(super) elements: u64,
    pub(super) element: ElementType,
    pub(super) seed: u64,
    /// Longest pause before each step, drawn by chance.
    pub(super) delay_max: Duration,
    /// Where each rank is reached.
    pub(super) ports: Vec<u16>,
}

/// The half that listens.
pub(super) struct Listening {
    lines: BufReader<OwnedReadHalf>,
    /// What was read of a line that has not ended: listening may be given up at any moment and begun again.
    begun: Vec<u8>,
}

/// The half that speaks.
pub(super) struct Speaking(OwnedWriteHalf);

/// Both halves of a connection.
pub(super) fn split(stream: TcpStream) -> (Listening, Speaking) {
    let (read, write) = stream.into_split();
    (Listening { lines: BufReader::new(read), begun: Vec::new() }, Speaking(write))
}

impl Listening {
    /// The next thing that is said; `None` once the other side has gone.
    pub(super) async fn hear<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let room = LINE_BYTES_MAX.saturating_sub(self.begun.len() as u64);
        (&mut self.lines).take(room).read_until(b'\n', &mut self.begun).await?;
        if self.begun.last() != Some(&b'\n') {
            return if self.begun.len() as u64 >= LINE_BYTES_MAX {
                Err(io::ErrorKind::FileTooLarge.into())
            } else {
                Ok(None)
            };
        }
        let line = std::mem::take(&mut self.begun);
        serde_json::from_slice(&line).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

impl Speaking {
    pub(super) async fn say<T: Serialize>(&mut self, what: &T) -> io::Result<()> {
        let mut line = serde_json::to_vec(what).map_err(io::Error::other)?;
        line.push(b'\n');
        self.0.write_all(&line).await
    }
}
