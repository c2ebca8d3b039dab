//! Archives of plans, received and sent in checked pieces.

use std::io::{self, Read};
use std::time::Duration;

use canopy_proto::v1::archive_event::Event as Exported;
use canopy_proto::v1::import_plans_request::Event as Imported;
use canopy_proto::v1::{
    ArchiveContents, ArchiveEnd, ArchiveEvent, ArchivePiece, BackUpRequest, CheckStoreEntry, CheckStoreRequest,
    ExportPlansRequest, ImportPlansRequest, ImportPlansResponse,
};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::assembly::{hex, is_digest};
use crate::calls::answer;
use crate::client::{Client, within};
use crate::error::{ClientError, from_status};
use crate::request_id::RequestId;

/// Bytes of one piece.
const PIECE_BYTES: usize = 256 << 10;
/// Most pieces waiting to be sent.
const PIECES_WAITING: usize = 4;

/// Follows [`Client::export_plans`] and [`Client::back_up`]. Bytes are checked before they arrive here.
pub trait ArchiveReceiver: Send {
    /// Receives the contents of the archive.
    fn contents(&mut self, contents: &ArchiveContents);

    /// Receives the next bytes. The archive is complete only when the call returns without an error.
    ///
    /// # Errors
    /// An error ends the call.
    fn content(&mut self, data: &[u8]) -> io::Result<()>;
}

impl Client {
    /// Receives an archive of all topologies and of the plans that match `filter`; an empty filter matches all plans.
    ///
    /// # Errors
    /// See [`ClientError`]. After an error, discard what was received.
    pub async fn export_plans(
        &self,
        filter: &str,
        deadline: Option<Duration>,
        receiver: &mut dyn ArchiveReceiver,
    ) -> Result<ArchiveEnd, ClientError> {
        let request = self.limited(ExportPlansRequest { filter: filter.to_owned() }, deadline);
        let mut service = self.plans.clone();
        let call = async { answer(service.export_plans(request), deadline).await };
        within(deadline, receive(call, deadline, receiver)).await
    }

    /// Receives an archive of all that a successor of the server needs: plans, topologies, clusters, leases, faults and
    /// events. `canopyd restore` reads it.
    ///
    /// # Errors
    /// As [`Client::export_plans`].
    pub async fn back_up(
        &self,
        deadline: Option<Duration>,
        receiver: &mut dyn ArchiveReceiver,
    ) -> Result<ArchiveEnd, ClientError> {
        let request = self.limited(BackUpRequest {}, deadline);
        let mut service = self.server.clone();
        let call = async { answer(service.back_up(request), deadline).await };
        within(deadline, receive(call, deadline, receiver)).await
    }

    /// Has the server verify all that it stores; `checked` receives what it finds in each space.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn check_store(
        &self,
        deadline: Option<Duration>,
        mut checked: impl FnMut(CheckStoreEntry),
    ) -> Result<(), ClientError> {
        let request = self.limited(CheckStoreRequest {}, deadline);
        let mut service = self.server.clone();
        let received = async {
            let mut stream = answer(service.check_store(request), deadline).await?;
            while let Some(entry) = stream.message().await.map_err(|status| from_status(&status, deadline))? {
                checked(entry);
            }
            Ok(())
        };
        within(deadline, received).await
    }

    /// Sends an archive, which the server imports as a whole or not at all. `sent` receives the number of bytes sent so
    /// far.
    ///
    /// To retry, read the archive from its start and keep the id.
    ///
    /// # Errors
    /// See [`ClientError`]; [`ClientError::Read`] if the archive cannot be read.
    pub async fn import_plans(
        &self,
        archive: impl Read + Send + 'static,
        request_id: RequestId,
        deadline: Option<Duration>,
        sent: impl FnMut(u64) + Send + 'static,
    ) -> Result<ImportPlansResponse, ClientError> {
        let (sender, receiver) = mpsc::channel(PIECES_WAITING);
        let reading = spawn_blocking(move || send(archive, request_id, &sender, sent));
        let mut service = self.plans.clone();
        let reply = answer(service.import_plans(self.limited(ReceiverStream::new(receiver), deadline)), deadline).await;
        // The call has ended, so the reader ends, too; what kept it from reading matters more than what came of that.
        match reading.await {
            Ok(Err(error)) => Err(ClientError::Read(error)),
            Ok(Ok(())) => reply,
            Err(error) => reply.map_err(|_| ClientError::Lost { message: error.to_string() }),
        }
    }
}

/// Receives an archive, and checks it piece by piece.
async fn receive(
    call: impl Future<Output = Result<Streaming<ArchiveEvent>, ClientError>>,
    deadline: Option<Duration>,
    receiver: &mut dyn ArchiveReceiver,
) -> Result<ArchiveEnd, ClientError> {
    let mut stream = call.await?;
    let mut check = Check::default();
    while let Some(message) = stream.message().await.map_err(|status| from_status(&status, deadline))? {
        match message.event {
            Some(Exported::Contents(contents)) => receiver.contents(&contents),
            Some(Exported::Piece(piece)) => {
                check.accept(&piece)?;
                receiver.content(&piece.data).map_err(ClientError::Write)?;
            }
            Some(Exported::End(end)) => {
                check.finish(&end)?;
                return Ok(end);
            }
            // Of a kind that this client does not know.
            None => {}
        }
    }
    Err(ClientError::Protocol { what: "the archive has no end" })
}

/// Reads an archive and sends its messages until the receiver is gone.
fn send(
    mut archive: impl Read,
    request_id: RequestId,
    sender: &mpsc::Sender<ImportPlansRequest>,
    mut sent: impl FnMut(u64),
) -> io::Result<()> {
    let message = |event| ImportPlansRequest { event: Some(event), request_id: request_id.to_string() };
    let (mut offset, mut digest) = (0, Sha256::new());
    loop {
        let mut data = Vec::new();
        archive.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut data)?;
        if data.is_empty() {
            break;
        }
        digest.update(&data);
        let length = data.len() as u64;
        let sha256 = hex(&Sha256::digest(&data));
        if sender.blocking_send(message(Imported::Piece(ArchivePiece { offset, data: data.into(), sha256 }))).is_err() {
            return Ok(());
        }
        offset += length;
        sent(offset);
    }
    let end = ArchiveEnd { size_bytes: offset, sha256: hex(&digest.finalize()), contents: None };
    // A server that has refused already needs no end.
    let _taken = sender.blocking_send(message(Imported::End(end)));
    Ok(())
}

/// The state of an archive that is being received.
#[derive(Default)]
struct Check {
    offset: u64,
    digest: Sha256,
}

impl Check {
    fn accept(&mut self, piece: &ArchivePiece) -> Result<(), ClientError> {
        if piece.offset != self.offset || piece.data.is_empty() {
            return Err(ClientError::Protocol { what: "a piece of the archive is missing" });
        }
        if !is_digest(&Sha256::digest(&piece.data), &piece.sha256) {
            return Err(ClientError::Protocol { what: "a piece of the archive is damaged" });
        }
        self.digest.update(&piece.data);
        self.offset += piece.data.len() as u64;
        Ok(())
    }

    fn finish(self, end: &ArchiveEnd) -> Result<(), ClientError> {
        match end.size_bytes == self.offset && is_digest(&self.digest.finalize(), &end.sha256) {
            true => Ok(()),
            false => Err(ClientError::Protocol { what: "the archive does not match its announcement" }),
        }
    }
}
