//! Files that appear whole or not at all.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write};
use std::path::{Path, PathBuf};

use crate::exit::Failure;
use crate::stdout::write_stdout;

/// Writes a file so that a reader sees all of it or nothing: under a temporary name beside it, then renamed.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut file = AtomicFile::create(path)?;
    file.as_write().write_all(bytes).map_err(|error| cannot_write(path, &error))?;
    file.commit()
}

/// A file on its way to its name. Dropped before [`commit`](Self::commit), it leaves nothing behind.
///
/// A name that belongs to a device or a pipe keeps it: there the bytes go straight through.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Temporary(tempfile::NamedTempFile),
    Special(File),
    Stdout(tempfile::SpooledTempFile),
}

/// Most bytes that wait in memory for the last one before they go to standard output; more wait on disk.
const MEMORY_MAX: usize = 16 << 20;
/// Bytes that go to standard output at once.
const COPY_BYTES: usize = 256 << 10;

impl AtomicFile {
    /// The file at `path`, or standard output if it is `None`: that, too, receives the content only as a whole.
    pub(crate) fn at(path: Option<&Path>) -> Result<Self, Failure> {
        match path {
            Some(path) => Self::create(path),
            None => {
                let waiting = Target::Stdout(tempfile::spooled_tempfile(MEMORY_MAX));
                Ok(Self { path: PathBuf::from("standard output"), target: waiting })
            }
        }
    }

    /// Opens a temporary file beside `path`, with the rights a plain new file would have.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let refuse = |error: std::io::Error| cannot_write(path, &error);
        // The end of a chain of symbolic links is what gets replaced, not the link.
        let resolved = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match std::fs::metadata(&resolved) {
            Ok(found) if found.is_dir() => {
                return Err(Failure::input(format!(
                    "cannot write {}: it is a folder; name a file in it",
                    path.display()
                )));
            }
            Ok(found) if !found.is_file() => {
                let special = File::options().write(true).open(&resolved).map_err(refuse)?;
                return Ok(Self { path: resolved, target: Target::Special(special) });
            }
            _ => {}
        }
        let folder = match resolved.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            let message = format!(
                "cannot write {}: folder `{}` does not exist; create it, or name another file",
                path.display(),
                folder.display()
            );
            return Err(Failure::input(message));
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".canopy-").suffix(".tmp");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // The process's umask takes away what the user does not want to give.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let temporary = builder.tempfile_in(folder).map_err(refuse)?;
        Ok(Self { path: resolved, target: Target::Temporary(temporary) })
    }

    /// Where the bytes go.
    pub(crate) fn as_write(&mut self) -> &mut dyn Write {
        match &mut self.target {
            Target::Temporary(temporary) => temporary.as_file_mut(),
            Target::Special(special) => special,
            Target::Stdout(waiting) => waiting,
        }
    }

    /// Gives the file its name, replacing what stood there; sends what is for standard output there.
    pub(crate) fn commit(self) -> Result<(), Failure> {
        let Self { path, target } = self;
        match target {
            Target::Temporary(temporary) => {
                temporary.persist(&path).map_err(|error| cannot_write(&path, &error.error))?;
                Ok(())
            }
            Target::Special(_) => Ok(()),
            Target::Stdout(waiting) => to_stdout(waiting),
        }
    }
}

fn to_stdout(mut waiting: tempfile::SpooledTempFile) -> Result<(), Failure> {
    let unreadable = |error| Failure::fault(format!("cannot read the content back: {error}"));
    waiting.rewind().map_err(unreadable)?;
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        match waiting.read(&mut buffer).map_err(unreadable)? {
            0 => return Ok(()),
            length => write_stdout(&buffer[..length])?,
        }
    }
}

/// What keeps a file from being written, without the name under which it would have been written first.
pub(crate) fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    let words = error.to_string();
    let words = words.split(" at path ").next().unwrap_or_default();
    Failure::input(format!("cannot write {}: {words}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        write_file(&path, b"first").unwrap();
        let mut abandoned = AtomicFile::create(&path).unwrap();
        abandoned.as_write().write_all(b"half").unwrap();
        drop(abandoned);
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_links_keep_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_file(&link, b"new").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        write_file(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
        assert!(write_file(folder.path(), b"no").is_err());
    }
}
