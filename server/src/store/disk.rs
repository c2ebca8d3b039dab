//! What spaces do with files of their own. Each step is told to whoever listens: a test makes of the steps what a power
//! cut may leave.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Durability;

/// How names of files that are being written begin.
pub(super) const UNFINISHED: &str = ".new-";

/// Something that was done.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "only tests listen"))]
pub(super) enum Step<'a> {
    /// A folder was made.
    Folder { path: &'a Path },
    /// An empty file was made.
    File { path: &'a Path },
    /// Bytes were written into a file.
    Written { path: &'a Path, offset: u64, bytes: &'a [u8] },
    /// A file was cut, or made longer.
    Length { path: &'a Path, length: u64 },
    /// The contents of a file survive a power cut.
    Synced { path: &'a Path },
    /// A file has another name, in place of the file that had it before.
    Renamed { from: &'a Path, to: &'a Path },
    /// A file is gone.
    Removed { path: &'a Path },
    /// The names in a folder survive a power cut.
    NamesSynced { folder: &'a Path },
}

/// Listens to steps.
pub(super) trait Witness: Send + Sync {
    /// This was done.
    fn saw(&self, step: Step<'_>);
}

/// The disk; clones are the same one.
#[derive(Clone, Default)]
pub(super) struct Disk {
    witness: Option<Arc<dyn Witness>>,
}

impl Disk {
    /// A disk that tells what is done.
    #[cfg(test)]
    pub(super) fn watched(witness: Arc<dyn Witness>) -> Self {
        Self { witness: Some(witness) }
    }

    fn tell(&self, step: Step<'_>) {
        if let Some(witness) = &self.witness {
            witness.saw(step);
        }
    }

    /// Makes a folder if needed. Its name survives a power cut, also where an earlier process made it.
    pub(super) fn make_folder(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Ok(()) => self.tell(Step::Folder { path }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            Err(error) => return Err(error),
        }
        path.parent().map_or(Ok(()), |parent| self.sync_names(parent))
    }

    /// Makes the names in a folder survive a power cut.
    pub(super) fn sync_names(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()?;
        self.tell(Step::NamesSynced { folder });
        Ok(())
    }

    /// Writes a file in place of an earlier one: whoever looks finds one of them whole. With [`Durability::Synced`] that
    /// holds after a power cut as well, and the new one survives it once this returns.
    pub(super) fn replace(&self, path: &Path, parts: &[&[u8]], durability: Durability) -> io::Result<LogFile> {
        let folder = path.parent().ok_or_else(|| io::Error::other("a file is in a folder"))?;
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
        self.tell(Step::File { path: file.path() });
        let mut offset = 0;
        for bytes in parts {
            file.write_all(bytes)?;
            self.tell(Step::Written { path: file.path(), offset, bytes });
            offset += bytes.len() as u64;
        }
        if durability == Durability::Synced {
            file.as_file().sync_all()?;
            self.tell(Step::Synced { path: file.path() });
        }
        let from = file.path().to_owned();
        let file = file.persist(path)?;
        self.tell(Step::Renamed { from: &from, to: path });
        if durability == Durability::Synced {
            self.sync_names(folder)?;
        }
        Ok(LogFile { file, path: path.to_owned(), disk: self.clone() })
    }

    /// The contents of a file; `None` if it does not exist.
    pub(super) fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        match fs::read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives a file another name, which survives a power cut. False: it does not exist.
    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<bool> {
        match fs::rename(from, to) {
            Ok(()) => self.tell(Step::Renamed { from, to }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        }
        for path in [from, to] {
            path.parent().map_or(Ok(()), |folder| self.sync_names(folder))?;
        }
        Ok(true)
    }

    /// Removes a file. Its name may come back after a power cut until [`Disk::sync_names`]. False: it does not exist.
    pub(super) fn remove(&self, path: &Path) -> io::Result<bool> {
        match fs::remove_file(path) {
            Ok(()) => self.tell(Step::Removed { path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Names in a folder, and which of them are folders.
    pub(super) fn names(&self, folder: &Path) -> io::Result<Vec<(OsString, bool)>> {
        let entries = fs::read_dir(folder)?;
        entries.map(|entry| entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?.is_dir())))).collect()
    }
}

/// A file that grows at its end.
pub(super) struct LogFile {
    file: File,
    path: PathBuf,
    disk: Disk,
}

impl LogFile {
    /// Opens a file, which is made if needed.
    pub(super) fn open(disk: &Disk, path: &Path) -> io::Result<Self> {
        let is_new = !path.exists();
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        if is_new {
            disk.tell(Step::File { path });
        }
        Ok(Self { file, path: path.to_owned(), disk: disk.clone() })
    }

    /// Writes bytes at an offset.
    pub(super) fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(bytes)?;
        self.disk.tell(Step::Written { path: &self.path, offset, bytes });
        Ok(())
    }

    /// Makes what was written survive a power cut.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        self.disk.tell(Step::Synced { path: &self.path });
        Ok(())
    }

    /// Cuts what stands behind this length.
    pub(super) fn cut(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)?;
        self.disk.tell(Step::Length { path: &self.path, length });
        Ok(())
    }
}
