//! An archive on its way out: bytes in, events of the stream out.

use std::io::{self, Write};

use bytes::Bytes;
use canopy_proto::v1::archive_event::Event;
use canopy_proto::v1::{ArchiveContents, ArchiveEnd, ArchiveEvent, ArchivePiece};
use canopy_wire::sha256_hex;
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time;
use tonic::Status;

use crate::rpc::shared::deliver::{PIECE_BYTES, STALL_MAX};

/// Cuts what is written into pieces and sends them. Blocks while its reader is slow; a reader that takes nothing for a
/// long time, or has gone, is an error. Only for threads on which the runtime lets one block.
#[derive(Debug)]
pub(super) struct PieceWriter {
    sender: mpsc::Sender<Result<ArchiveEvent, Status>>,
    buffer: Vec<u8>,
    /// Bytes that were sent.
    offset: u64,
    digest: Sha256,
}

impl PieceWriter {
    pub(super) fn new(sender: mpsc::Sender<Result<ArchiveEvent, Status>>) -> Self {
        Self { sender, buffer: Vec::with_capacity(PIECE_BYTES), offset: 0, digest: Sha256::new() }
    }

    /// Sends what the archive will hold.
    pub(super) fn contents(&self, contents: ArchiveContents) -> io::Result<()> {
        self.send(Ok(Event::Contents(contents)))
    }

    /// Sends the rest and the end.
    pub(super) fn finish(mut self, contents: ArchiveContents) {
        if self.send_piece().is_ok() {
            let digest = std::mem::take(&mut self.digest).finalize();
            let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            // A reader that has gone needs no end.
            let _gone =
                self.send(Ok(Event::End(ArchiveEnd { size_bytes: self.offset, sha256, contents: Some(contents) })));
        }
    }

    /// Says why there is no end.
    pub(super) fn fail(self, status: Status) {
        let _gone = self.send(Err(status));
    }

    fn send_piece(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let data = Bytes::from(std::mem::replace(&mut self.buffer, Vec::with_capacity(PIECE_BYTES)));
        let (offset, sha256) = (self.offset, sha256_hex(&data));
        self.digest.update(&data);
        self.offset += data.len() as u64;
        self.send(Ok(Event::Piece(ArchivePiece { offset, data, sha256 })))
    }

    fn send(&self, event: Result<Event, Status>) -> io::Result<()> {
        let event = event.map(|event| ArchiveEvent { event: Some(event) });
        let sent = Handle::current().block_on(async { time::timeout(STALL_MAX, self.sender.send(event)).await });
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() == PIECE_BYTES {
            self.send_piece()?;
        }
        let taken = bytes.get(..bytes.len().min(PIECE_BYTES - self.buffer.len())).unwrap_or_default();
        self.buffer.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
