//! Files of cached plans, fetched in pieces and resumed after a lost connection.

use std::time::Duration;

use canopy_proto::v1::fetch_plan_file_event::Event;
use canopy_proto::v1::{Artifact, FetchPlanFileEvent, FetchPlanFileRequest, OutputFormat, Placement};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use tonic::Streaming;

use crate::assembly::Assembly;
use crate::calls::answer;
use crate::client::Client;
use crate::error::{ClientError, from_status};
use crate::retry::Retries;

/// The file has not been described.
const UNDESCRIBED: ClientError = ClientError::Protocol { what: "the description of the file is missing" };

/// A file of a cached plan, or a slice of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileName {
    /// `plans/…`.
    pub plan: String,
    /// Its format.
    pub format: OutputFormat,
    /// Its runtime profile; empty for [`OutputFormat::Json`], and for the usual one of its format.
    pub profile: String,
    /// Instances of the plan in it; `None` means the first file of the format and profile.
    pub instances: Option<u32>,
    /// Fetches only the part of these ranks, for formats whose runtimes need no more; empty: the whole file.
    pub ranks: Vec<u32>,
    /// The caller's placement, if the plan must be for exactly these devices.
    pub placement: Option<Placement>,
}

/// The part of a file that arrived before its transfer broke off.
#[derive(Clone, Debug)]
pub struct PartialFile {
    artifact: Artifact,
    offset: u64,
    digest: Sha256,
}

impl PartialFile {
    /// No part of a file with this description.
    pub fn new(artifact: Artifact) -> Self {
        Self { artifact, offset: 0, digest: Sha256::new() }
    }

    /// Adds the next bytes.
    pub fn add(&mut self, data: &[u8]) {
        self.offset += data.len() as u64;
        self.digest.update(data);
    }

    /// Number of bytes that have arrived.
    pub const fn offset(&self) -> u64 {
        self.offset
    }
}

impl Client {
    /// Fetches a file and passes its bytes to `write` in order, each once; a broken call is resumed where it ended.
    ///
    /// Each piece matches its digest, but the whole file is verified only when this returns without an error. Until
    /// then, keep the file from its users. The deadline covers the whole transfer; `retries` starts again after each
    /// piece that arrives.
    ///
    /// # Errors
    /// See [`ClientError`]; also [`ClientError::Protocol`] if the file changed between two tries, and
    /// [`ClientError::Write`] if `write` failed.
    pub async fn download(
        &self,
        file: &FileName,
        deadline: Option<Duration>,
        retries: &mut Retries,
        write: &mut (dyn FnMut(&[u8]) -> std::io::Result<()> + Send),
    ) -> Result<Artifact, ClientError> {
        self.transfer(file, Transfer::default(), deadline, retries, write).await
    }

    /// As [`Client::download`], for the rest of a file.
    ///
    /// # Errors
    /// As [`Client::download`]: the file must not have changed since its first part arrived.
    pub async fn resume_download(
        &self,
        file: &FileName,
        there: PartialFile,
        deadline: Option<Duration>,
        retries: &mut Retries,
        write: &mut (dyn FnMut(&[u8]) -> std::io::Result<()> + Send),
    ) -> Result<Artifact, ClientError> {
        let PartialFile { artifact, offset, digest } = there;
        let assembly = Assembly::resumed(&artifact, offset, digest)?;
        self.transfer(file, Transfer(Some((artifact, assembly))), deadline, retries, write).await
    }

    async fn transfer(
        &self,
        file: &FileName,
        mut transfer: Transfer,
        deadline: Option<Duration>,
        retries: &mut Retries,
        write: &mut (dyn FnMut(&[u8]) -> std::io::Result<()> + Send),
    ) -> Result<Artifact, ClientError> {
        let end = deadline.and_then(|limit| Some((limit, Instant::now().checked_add(limit)?)));
        let left = || end.map(|(_, end)| end.saturating_duration_since(Instant::now()));
        retries.forget();
        loop {
            let before = transfer.offset();
            let limit = left().map(|left| left.max(Duration::from_millis(1)));
            let attempt = self.resume(file, limit, &mut transfer, write);
            let outcome = match (end, limit) {
                (Some((stated, _)), Some(limit)) => {
                    tokio::time::timeout(limit, attempt).await.unwrap_or(Err(ClientError::Deadline { limit: stated }))
                }
                _ => attempt.await,
            };
            let Err(error) = outcome else { return transfer.finish() };
            if transfer.offset() > before {
                retries.forget();
            }
            match retries.pause_after(&error, left()) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(error),
            }
        }
    }

    /// One call, from the first missing byte.
    async fn resume(
        &self,
        file: &FileName,
        limit: Option<Duration>,
        transfer: &mut Transfer,
        write: &mut (dyn FnMut(&[u8]) -> std::io::Result<()> + Send),
    ) -> Result<(), ClientError> {
        let request = FetchPlanFileRequest {
            name: file.plan.clone(),
            format: file.format.into(),
            profile: Some(file.profile.clone()).filter(|profile| !profile.is_empty()),
            offset: transfer.offset(),
            ranks: file.ranks.clone(),
            instances: file.instances,
            placement: file.placement.clone(),
        };
        let mut plans = self.plans.clone();
        let mut stream = answer(plans.fetch_plan_file(self.limited(request, limit)), limit).await?;
        let Some(Event::Artifact(artifact)) = next(&mut stream, limit).await? else {
            return Err(UNDESCRIBED);
        };
        transfer.start(artifact)?;
        while let Some(event) = next(&mut stream, limit).await? {
            let Event::Content(mut piece) = event else {
                return Err(ClientError::Protocol { what: "the file is described twice" });
            };
            // It is numbered within its plan; here it is alone.
            piece.artifact = 0;
            transfer.assembly()?.accept(&piece)?;
            write(&piece.data).map_err(ClientError::Write)?;
        }
        Ok(())
    }
}

/// The next event of a kind that this client knows; `None` at the end of the stream.
async fn next(
    stream: &mut Streaming<FetchPlanFileEvent>,
    limit: Option<Duration>,
) -> Result<Option<Event>, ClientError> {
    loop {
        match stream.message().await.map_err(|status| from_status(&status, limit))? {
            None => return Ok(None),
            Some(FetchPlanFileEvent { event: Some(event), .. }) => return Ok(Some(event)),
            Some(FetchPlanFileEvent { event: None, .. }) => {}
        }
    }
}

/// The state of a file over all calls.
#[derive(Debug, Default)]
struct Transfer(Option<(Artifact, Assembly)>);

impl Transfer {
    /// The offset of the first missing byte.
    fn offset(&self) -> u64 {
        self.0.as_ref().map_or(0, |(artifact, assembly)| assembly.offset().unwrap_or(artifact.size_bytes))
    }

    /// Records the description of the file, or checks that it has not changed.
    fn start(&mut self, artifact: Artifact) -> Result<(), ClientError> {
        match &self.0 {
            Some((before, _)) if (&before.sha256, before.size_bytes) != (&artifact.sha256, artifact.size_bytes) => {
                Err(ClientError::Protocol { what: "the file changed while it was fetched" })
            }
            Some(_) => Ok(()),
            None => {
                let assembly = Assembly::new(std::slice::from_ref(&artifact));
                self.0 = Some((artifact, assembly));
                Ok(())
            }
        }
    }

    fn assembly(&mut self) -> Result<&mut Assembly, ClientError> {
        self.0.as_mut().map(|(_, assembly)| assembly).ok_or(UNDESCRIBED)
    }

    /// The description of a complete file.
    fn finish(self) -> Result<Artifact, ClientError> {
        let (artifact, assembly) = self.0.ok_or(UNDESCRIBED)?;
        assembly.finish()?;
        Ok(artifact)
    }
}
