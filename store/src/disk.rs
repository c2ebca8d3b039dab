//! The steps by which spaces change their own files. A test can record them, and make of them what a power cut may leave.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Durability;

/// How names of files that are being written begin.
pub const UNFINISHED: &str = ".new-";

/// Something that was done.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the variants name every field")]
pub enum Step<'a> {
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
pub trait Witness: Send + Sync {
    /// This is about to be done.
    ///
    /// # Errors
    /// The disk shall refuse it.
    fn allows(&self, step: Step<'_>) -> io::Result<()>;

    /// This was done.
    fn saw(&self, step: Step<'_>);
}

/// The disk; clones are the same one.
#[derive(Clone, Default)]
pub struct Disk {
    witness: Option<Arc<dyn Witness>>,
}

impl Disk {
    /// A disk that tells what is done.
    #[cfg(any(test, feature = "simulation"))]
    pub fn watched(witness: Arc<dyn Witness>) -> Self {
        Self { witness: Some(witness) }
    }

    /// Does a step, and tells of it.
    fn step<T>(&self, step: Step<'_>, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let Some(witness) = &self.witness else { return work() };
        witness.allows(step)?;
        let done = work()?;
        witness.saw(step);
        Ok(done)
    }

    /// Makes a folder if needed. Its name survives a power cut, also where an earlier process made it.
    pub fn make_folder(&self, path: &Path) -> io::Result<()> {
        match self.step(Step::Folder { path }, || fs::create_dir(path)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            Err(error) => return Err(error),
        }
        path.parent().map_or(Ok(()), |parent| self.sync_names(parent))
    }

    /// Makes the names in a folder survive a power cut.
    pub fn sync_names(&self, folder: &Path) -> io::Result<()> {
        self.step(Step::NamesSynced { folder }, || File::open(folder)?.sync_all())
    }

    /// Writes a file in place of an earlier one: a reader finds one of them whole. With [`Durability::Synced`] that
    /// holds after a power cut as well, and the new one survives it once this returns.
    pub fn replace(&self, path: &Path, parts: &[&[u8]], durability: Durability) -> io::Result<LogFile> {
        let folder = path.parent().ok_or_else(|| io::Error::other("a file is in a folder"))?;
        let temporary = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
        let (mut file, temporary) = temporary.into_parts();
        let from = temporary.to_path_buf();
        self.step(Step::File { path: &from }, || Ok(()))?;
        let mut offset = 0;
        for bytes in parts {
            self.step(Step::Written { path: &from, offset, bytes }, || file.write_all(bytes))?;
            offset += bytes.len() as u64;
        }
        if durability == Durability::Synced {
            self.step(Step::Synced { path: &from }, || file.sync_all())?;
        }
        self.step(Step::Renamed { from: &from, to: path }, || temporary.persist(path).map_err(io::Error::from))?;
        if durability == Durability::Synced {
            self.sync_names(folder)?;
        }
        Ok(LogFile { file, path: path.to_owned(), disk: self.clone() })
    }

    /// The contents of a file; `None` if it does not exist.
    pub fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        match fs::read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives a file another name, which survives a power cut. False: it does not exist.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<bool> {
        match self.step(Step::Renamed { from, to }, || fs::rename(from, to)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        }
        for path in [from, to] {
            path.parent().map_or(Ok(()), |folder| self.sync_names(folder))?;
        }
        Ok(true)
    }

    /// Removes a file. Its name may come back after a power cut until [`Disk::sync_names`]. False: it does not exist.
    pub fn remove(&self, path: &Path) -> io::Result<bool> {
        match self.step(Step::Removed { path }, || fs::remove_file(path)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Names in a folder, and which of them are folders.
    pub fn names(&self, folder: &Path) -> io::Result<Vec<(OsString, bool)>> {
        let entries = fs::read_dir(folder)?;
        entries.map(|entry| entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?.is_dir())))).collect()
    }
}

/// A file that grows at its end.
pub struct LogFile {
    file: File,
    path: PathBuf,
    disk: Disk,
}

impl LogFile {
    /// Opens a file, which is made if needed.
    pub fn open(disk: &Disk, path: &Path) -> io::Result<Self> {
        let open = || OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path);
        let file = if path.exists() { open() } else { disk.step(Step::File { path }, open) };
        Ok(Self { file: file?, path: path.to_owned(), disk: disk.clone() })
    }

    /// Writes bytes at an offset.
    pub fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.disk.step(Step::Written { path: &self.path, offset, bytes }, || self.file.write_all(bytes))
    }

    /// Makes what was written survive a power cut.
    pub fn sync(&self) -> io::Result<()> {
        self.disk.step(Step::Synced { path: &self.path }, || self.file.sync_data())
    }

    /// Cuts what stands behind this length.
    pub fn cut(&self, length: u64) -> io::Result<()> {
        self.disk.step(Step::Length { path: &self.path, length }, || self.file.set_len(length))
    }
}
