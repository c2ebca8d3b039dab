//! Takes a plan's file from the stream and keeps it to itself until it is whole.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use canopy_client::PlanReceiver;
use canopy_proto::v1::{Accepted, PlanReply, Progress};

use crate::exit::Failure;
use crate::output::{AtomicFile, write_stdout};
use crate::progress::ProgressLine;

/// Largest file that waits in memory for its last byte before it goes to standard output; larger ones wait on disk.
const MEMORY_MAX: usize = 16 << 20;
/// Bytes that go to standard output at once.
const COPY_BYTES: usize = 256 << 10;

/// Receives the one file of a plan.
#[derive(Debug)]
pub(super) struct Receiver {
    target: Target,
    progress: ProgressLine,
    bytes: u64,
    bytes_total: u64,
}

#[derive(Debug)]
enum Target {
    File(AtomicFile),
    Stdout(tempfile::SpooledTempFile),
}

impl Receiver {
    /// Prepares to write the file, or standard output where none is given.
    pub(super) fn new(output: Option<&Path>) -> Result<Self, Failure> {
        let target = match output {
            Some(path) => Target::File(AtomicFile::create(path)?),
            None => Target::Stdout(tempfile::spooled_tempfile(MEMORY_MAX)),
        };
        Ok(Self { target, progress: ProgressLine::start(), bytes: 0, bytes_total: 0 })
    }

    /// Hands out the whole file.
    pub(super) fn commit(self) -> Result<(), Failure> {
        drop(self.progress);
        match self.target {
            Target::File(file) => file.commit(),
            Target::Stdout(mut spool) => {
                let unreadable = |error| Failure::fault(format!("cannot read the plan back: {error}"));
                spool.seek(SeekFrom::Start(0)).map_err(unreadable)?;
                let mut buffer = vec![0; COPY_BYTES];
                loop {
                    match spool.read(&mut buffer).map_err(unreadable)? {
                        0 => return Ok(()),
                        length => write_stdout(&buffer[..length])?,
                    }
                }
            }
        }
    }
}

impl PlanReceiver for Receiver {
    fn accepted(&mut self, accepted: &Accepted) {
        self.progress.accepted(accepted);
    }

    fn progress(&mut self, progress: &Progress) {
        self.progress.progress(progress);
    }

    fn plan(&mut self, reply: &PlanReply) -> std::io::Result<()> {
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
        match &mut self.target {
            Target::File(file) => file.as_write().write_all(data),
            Target::Stdout(spool) => spool.write_all(data),
        }
    }
}
