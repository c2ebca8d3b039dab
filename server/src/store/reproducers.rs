//! The folder of reproducers: for each plan that one of canopy's own checks refused a report, and beside it the topology.
//!
//! Files here are for a person, and the server never reads them back. What is kept is decided from the folder itself each
//! time, so a person may remove any of them. The first ones are the most useful: beyond the limits, none is added.

use std::io;
use std::path::{Path, PathBuf};

use super::Durability;
use super::disk::{Disk, UNFINISHED};

/// Name of the folder in a data directory.
const FOLDER: &str = "reproducers";
/// How names of reports and of topologies end.
const REPORT: &str = ".json";
const TOPOLOGY: &str = ".topology.json";

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReproducerLimits {
    /// Most reports.
    pub(crate) count_max: usize,
    /// Most bytes of all files.
    pub(crate) bytes_max: u64,
}

impl ReproducerLimits {
    /// Those of a server.
    pub(crate) const STANDARD: Self = Self { count_max: 100, bytes_max: 64 << 20 };
}

/// The folder. Used by one thread at a time.
pub(crate) struct ReproducerFolder {
    path: PathBuf,
    limits: ReproducerLimits,
    disk: Disk,
}

/// What the folder holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Reports.
    pub(crate) count: usize,
    /// Bytes of all files.
    pub(crate) bytes: u64,
}

/// The two files of a reproducer.
pub(crate) struct Files {
    pub(crate) report: Vec<u8>,
    pub(crate) topology: Vec<u8>,
}

/// Whether a reproducer was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It was written.
    Added,
    /// It was there.
    Already,
}

/// Why a reproducer was not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotKept {
    #[error("{count} reproducers of {bytes} bytes are kept, and the folder takes no more; send and remove some")]
    Full { count: usize, bytes: u64 },
    #[error("the folder of reproducers cannot be written")]
    Disk(#[from] io::Error),
}

impl ReproducerFolder {
    /// That of a data directory. It is made with the first reproducer.
    pub(crate) fn of(data_dir: &Path, limits: ReproducerLimits) -> Self {
        Self { path: data_dir.join(FOLDER), limits, disk: Disk::default() }
    }

    /// Where the report of this name is, or would be.
    pub(crate) fn report_path(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{REPORT}"))
    }

    /// The name of the file with the topology, in the same folder.
    pub(crate) fn topology_name(name: &str) -> String {
        format!("{name}{TOPOLOGY}")
    }

    /// What is there. O(files).
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn held(&self) -> io::Result<Held> {
        let mut held = Held::default();
        let names = match self.disk.names(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(held),
            names => names?,
        };
        for (name, is_folder) in names {
            if is_folder {
                continue;
            }
            let text = name.to_string_lossy();
            held.count += usize::from(text.ends_with(REPORT) && !text.ends_with(TOPOLOGY));
            // It may be removed by a person at any moment.
            held.bytes += self.path.join(&name).metadata().map_or(0, |file| file.len());
        }
        Ok(held)
    }

    /// Keeps a reproducer of this name unless it is there or the limits are reached, and returns once it survives a crash
    /// of the machine. `files` is asked only where there may be room.
    ///
    /// # Errors
    /// Why it is not kept, or cannot be made; then neither file is there.
    pub(crate) fn keep<E: From<NotKept>>(
        &self,
        name: &str,
        files: impl FnOnce() -> Result<Files, E>,
    ) -> Result<Kept, E> {
        if self.report_path(name).exists() {
            return Ok(Kept::Already);
        }
        let Held { count, bytes } = self.held().map_err(NotKept::from)?;
        let full = NotKept::Full { count, bytes };
        if count >= self.limits.count_max || bytes >= self.limits.bytes_max {
            return Err(full.into());
        }
        let files = files()?;
        let added = files.report.len() as u64 + files.topology.len() as u64;
        if bytes.saturating_add(added) > self.limits.bytes_max {
            return Err(full.into());
        }
        self.write(name, &files).map_err(NotKept::from)?;
        Ok(Kept::Added)
    }

    /// Writes both files, or neither.
    fn write(&self, name: &str, Files { report, topology }: &Files) -> io::Result<()> {
        self.disk.make_folder(&self.path)?;
        self.remove_unfinished()?;
        // The report comes last: where it is, the topology is.
        let (path, beside) = (self.report_path(name), self.path.join(Self::topology_name(name)));
        let write = |path, content: &[u8]| self.disk.replace(path, &[content], Durability::Synced).map(drop);
        if let Err(error) = write(&beside, topology).and_then(|()| write(&path, report)) {
            // One that would not survive a crash goes, too. If even that fails, a person finds it.
            for path in [&path, &beside] {
                let _removed = self.disk.remove(path);
            }
            return Err(error);
        }
        Ok(())
    }

    /// Removes what a crash left half written.
    fn remove_unfinished(&self) -> io::Result<()> {
        for (name, is_folder) in self.disk.names(&self.path)? {
            if !is_folder && name.to_string_lossy().starts_with(UNFINISHED) {
                self.disk.remove(&self.path.join(name))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
