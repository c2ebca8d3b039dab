//! Takes a plan's file from the stream and keeps it to itself until it is whole.

use std::path::Path;

use canopy_client::PlanReceiver;
use canopy_proto::v1::{Accepted, PlanResponse, Progress};

use crate::exit::Failure;
use crate::progress::ProgressLine;
use crate::whole_file::AtomicFile;

/// Receives the one file of a plan.
#[derive(Debug)]
pub(super) struct Receiver {
    file: AtomicFile,
    progress: ProgressLine,
    bytes: u64,
    bytes_total: u64,
}

impl Receiver {
    /// Prepares to write the file, or standard output where none is given.
    pub(super) fn new(output: Option<&Path>) -> Result<Self, Failure> {
        let file = AtomicFile::at(output)?;
        Ok(Self { file, progress: ProgressLine::start(), bytes: 0, bytes_total: 0 })
    }

    /// Hands out the whole file.
    pub(super) fn commit(self) -> Result<(), Failure> {
        drop(self.progress);
        self.file.commit()
    }
}

impl PlanReceiver for Receiver {
    fn accepted(&mut self, accepted: &Accepted) {
        self.progress.accepted(accepted);
    }

    fn progress(&mut self, progress: &Progress) {
        self.progress.progress(progress);
    }

    fn plan(&mut self, reply: &PlanResponse) -> std::io::Result<()> {
        let artifacts = reply.plan.as_ref().map(|plan| plan.artifacts.as_slice()).unwrap_or_default();
        self.bytes_total = artifacts.iter().fold(0, |sum, artifact| artifact.size_bytes.saturating_add(sum));
        match artifacts {
            [_] => Ok(()),
            _ => {
                Err(std::io::Error::other(format!("one file was asked for, the server announces {}", artifacts.len())))
            }
        }
    }

    fn content(&mut self, _: usize, data: &[u8]) -> std::io::Result<()> {
        self.bytes += data.len() as u64;
        self.progress.receiving(self.bytes, self.bytes_total);
        self.file.as_write().write_all(data)
    }
}
