//! The place of a user's data folder, and the Unix socket of a server on it.
//!
//! A socket's address holds only some hundred bytes of path. Where a data folder's path is longer, or no UTF-8, the
//! socket is reached through an open handle of the folder instead (Linux).

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Longest path, in bytes, that every Unix has room for in a socket's address.
const PATH_BYTES_MAX: usize = 100;

/// No home directory is known, so that no data folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no home directory found for the data directory; set CANOPY_DATA_DIR")]
pub struct NoHome;

/// The data folder of this user: `$XDG_DATA_HOME/canopy`, else `~/.local/share/canopy`.
///
/// # Errors
/// No home directory is known.
pub fn data_dir_default() -> Result<PathBuf, NoHome> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data_home = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    data_home.map(|path| path.join("canopy")).ok_or(NoHome)
}

/// The Unix socket of the server on a data folder.
pub fn socket_path(data_dir: &Path) -> PathBuf {
    data_dir.join("canopy.sock")
}

/// A path that leads to the socket of a data directory and fits a socket's address, while this lives.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    _directory: Option<File>,
}

impl SocketPath {
    /// A usable path to the socket of this data directory, whether the socket exists or not.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub fn of(data_dir: &Path) -> io::Result<Self> {
        let path = socket_path(data_dir);
        // The transport of the client takes texts only.
        if path.as_os_str().len() <= PATH_BYTES_MAX && path.to_str().is_some() {
            return Ok(Self { path, _directory: None });
        }
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd as _;
            let directory = File::open(data_dir)?;
            let path = socket_path(Path::new(&format!("/proc/self/fd/{}", directory.as_raw_fd())));
            Ok(Self { path, _directory: Some(directory) })
        }
        #[cfg(not(target_os = "linux"))]
        Err(io::Error::new(io::ErrorKind::InvalidFilename, "the path of the data directory is too long for a socket"))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
