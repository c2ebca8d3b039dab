//! An archive on its way in: pieces of a stream, each checked, into a file without a name.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path;

use canopy_proto::v1::import_plans_request::Event;
use canopy_proto::v1::{ArchiveEnd, ArchivePiece, ImportPlansRequest};
use canopy_wire::sha256_hex;
use sha2::{Digest as _, Sha256};
use tokio::task::spawn_blocking;
use tokio::time;
use tonic::{Status, Streaming};

use crate::failure::CallFailure;
use crate::rpc::shared::deliver::{PIECE_BYTES, STALL_MAX};
use crate::store::ArchiveError;

/// An archive that has come in, as it was sent; what is in it has not been looked at.
#[derive(Debug)]
pub(super) struct Incoming {
    /// At its start. It goes with the process.
    pub(super) file: File,
    /// As stated in the first message.
    pub(super) request_id: String,
    /// SHA-256 of the whole.
    pub(super) digest: [u8; 32],
}

/// Why an archive was not received.
#[derive(Debug)]
pub(super) enum Refused {
    /// For what was sent, or for want of room.
    Call(CallFailure),
    /// On the way, in words of the layers there.
    Transport(Status),
}

impl<E: Into<CallFailure>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Call(error.into())
    }
}

/// Receives an archive of at most `limit` bytes to its end.
///
/// # Errors
/// A piece is out of order or not intact, the end is missing or states another length or digest, nothing came for a
/// long time, or the file cannot be written.
pub(super) async fn receive(
    mut stream: Streaming<ImportPlansRequest>,
    directory: &Path,
    limit: u64,
) -> Result<Incoming, Refused> {
    let directory = directory.to_owned();
    let mut file = on_the_disk(move || tempfile::tempfile_in(directory)).await?;
    let (mut request_id, mut is_first) = (String::new(), true);
    let (mut offset, mut digest) = (0_u64, Sha256::new());
    let end = loop {
        let message = time::timeout(STALL_MAX, stream.message()).await;
        let message = message.map_err(|_| CallFailure::Piece { offset, problem: "did not arrive" })?;
        let message = message.map_err(Refused::Transport)?;
        let message = message.ok_or(CallFailure::Piece { offset, problem: "is missing, and so is the end" })?;
        if std::mem::take(&mut is_first) {
            request_id = message.request_id;
        }
        match message.event {
            Some(Event::Piece(piece)) => {
                check(&piece, offset)?;
                offset += piece.data.len() as u64;
                if offset > limit {
                    return Err(ArchiveError::TooLarge { limit }.into());
                }
                digest.update(&piece.data);
                file = on_the_disk(move || file.write_all(&piece.data).map(|()| file)).await?;
            }
            Some(Event::End(end)) => break end,
            None => return Err(CallFailure::Piece { offset, problem: "is neither a piece nor the end" }.into()),
        }
    };
    let digest: [u8; 32] = digest.finalize().into();
    check_end(&end, offset, &digest)?;
    let file = on_the_disk(move || file.rewind().map(|()| file)).await?;
    Ok(Incoming { file, request_id, digest })
}

fn check(piece: &ArchivePiece, expected: u64) -> Result<(), CallFailure> {
    let refused = |problem| Err(CallFailure::Piece { offset: piece.offset, problem });
    if piece.offset != expected {
        return refused("is out of order");
    }
    if piece.data.is_empty() || piece.data.len() > PIECE_BYTES {
        return refused("is empty or longer than 256 KiB");
    }
    if !piece.sha256.eq_ignore_ascii_case(&sha256_hex(&piece.data)) {
        return refused("does not match its SHA-256");
    }
    Ok(())
}

fn check_end(end: &ArchiveEnd, offset: u64, digest: &[u8; 32]) -> Result<(), CallFailure> {
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    if end.size_bytes != offset || !end.sha256.eq_ignore_ascii_case(&hex) {
        return Err(CallFailure::Piece { offset, problem: "is the end of another archive: length or SHA-256 differs" });
    }
    Ok(())
}

/// Does something with a file away from the runtime.
async fn on_the_disk<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, CallFailure> {
    let done = spawn_blocking(work).await.map_err(|error| CallFailure::Broken { what: error.to_string() })?;
    Ok(done.map_err(ArchiveError::from)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_must_follow_one_another_intact() {
        let piece = |offset, data: &'static [u8]| ArchivePiece { offset, data: data.into(), sha256: sha256_hex(data) };
        assert!(check(&piece(7, b"abc"), 7).is_ok());
        assert!(check(&piece(7, b"abc"), 8).is_err());
        assert!(check(&piece(7, b""), 7).is_err());
        assert!(check(&ArchivePiece { data: vec![0; PIECE_BYTES + 1].into(), ..piece(7, b"") }, 7).is_err());
        assert!(check(&ArchivePiece { data: (&b"abd"[..]).into(), ..piece(7, b"abc") }, 7).is_err());
    }

    #[test]
    fn the_end_must_be_that_of_the_pieces() {
        let digest: [u8; 32] = Sha256::digest(b"abc").into();
        let end = ArchiveEnd { size_bytes: 3, sha256: sha256_hex(b"abc"), contents: None };
        assert!(check_end(&end, 3, &digest).is_ok());
        assert!(check_end(&end, 4, &digest).is_err());
        assert!(check_end(&ArchiveEnd { sha256: sha256_hex(b"abd"), ..end }, 3, &digest).is_err());
    }
}
