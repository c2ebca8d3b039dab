//! Files that decide who may do what: read only where others could not have changed them.

use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Who may read a file. Nobody but its owner may write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secrecy {
    /// Everybody.
    Public,
    /// Its owner and its group, as secrets are mounted in containers.
    Secret,
}

impl Secrecy {
    /// Bits of a mode that must not be set, and the mode to propose.
    const fn forbidden(self) -> (u32, &'static str) {
        match self {
            Self::Public => (0o022, "644"),
            Self::Secret => (0o037, "600"),
        }
    }
}

/// Reads a text of limited size, if its mode keeps others from changing it, and a secret from being read.
///
/// # Errors
/// Why not, and what helps.
pub(crate) fn read_guarded(path: &Path, secrecy: Secrecy, bytes_max: u64) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    let (forbidden, proposed) = secrecy.forbidden();
    if metadata.mode() & forbidden != 0 {
        let mode = metadata.mode() & 0o777;
        return Err(format!("its mode {mode:o} lets others at it; set `chmod {proposed}`"));
    }
    let mut text = String::new();
    file.take(bytes_max + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > bytes_max {
        return Err(format!("it is longer than {bytes_max} bytes"));
    }
    Ok(text)
}

/// Tells one state of a file from another: what it is, how long, and when it was changed.
type Stamp = Option<(u64, u64, i64, i64)>;

/// Files that were read, and their states then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamps(Vec<(PathBuf, Stamp)>);

impl Stamps {
    /// Notes a file, before it is read.
    pub(crate) fn note(&mut self, path: &Path) {
        self.0.push((path.to_owned(), stamp(path)));
    }

    /// Whether all files are as they were.
    pub(crate) fn are_current(&self) -> bool {
        self.0.iter().all(|(path, before)| stamp(path) == *before)
    }

    /// The same files as they are now.
    pub(crate) fn renewed(mut self) -> Self {
        for (path, state) in &mut self.0 {
            *state = stamp(path);
        }
        self
    }
}

fn stamp(path: &Path) -> Stamp {
    let of = |state: Metadata| (state.ino(), state.size(), state.ctime(), state.ctime_nsec());
    fs::metadata(path).ok().map(of)
}
