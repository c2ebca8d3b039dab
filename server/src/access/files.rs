//! Files that decide what callers may do: read only if they belong to the server's user or root, and no other user could
//! have changed them.

use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

/// Which users may read a file. Only its owner may write it.
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
    require_trusted_owner(metadata.uid(), rustix::process::geteuid().as_raw())?;
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

/// Refuses a file of another user, who could change it whatever its mode is.
fn require_trusted_owner(owner: u32, own: u32) -> Result<(), String> {
    if owner == own || owner == 0 {
        return Ok(());
    }
    Err(format!(
        "it belongs to user {owner}, who could change it; set `chown {own}`, the server's user, or `chown root`"
    ))
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

/// What was read from files, which may be read again while others use it.
#[derive(Debug)]
pub(crate) struct Current<T> {
    read: RwLock<(Arc<T>, Stamps)>,
    changes: watch::Sender<()>,
}

impl<T> Current<T> {
    /// What was read, and from what.
    pub(crate) fn new((value, stamps): (T, Stamps)) -> Self {
        Self { read: RwLock::new((Arc::new(value), stamps)), changes: watch::Sender::new(()) }
    }

    /// What was read last.
    pub(crate) fn get(&self) -> Arc<T> {
        Arc::clone(&self.read.read().0)
    }

    /// Tells of every change from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Reads it again if its files have changed. What cannot be used is left for the next [`Current::reload`] to report.
    pub(crate) fn catch_up<E>(&self, load: impl FnOnce() -> Result<(T, Stamps), E>) {
        if !self.read.read().1.are_current()
            && let Ok(read) = load()
        {
            self.replace(read);
        }
    }

    fn replace(&self, (value, stamps): (T, Stamps)) {
        *self.read.write() = (Arc::new(value), stamps);
        self.changes.send_replace(());
    }

    /// Reads it again if its files have changed, or in any case if `always`. True: it is another now.
    ///
    /// # Errors
    /// It cannot be used: what was read before stays, and this is said once for each state of the files.
    pub(crate) fn reload<E>(&self, always: bool, load: impl FnOnce() -> Result<(T, Stamps), E>) -> Result<bool, E> {
        let before = self.read.read().1.clone();
        if !always && before.are_current() {
            return Ok(false);
        }
        match load() {
            Ok(read) => {
                self.replace(read);
                Ok(true)
            }
            Err(error) => {
                self.read.write().1 = before.renewed();
                Err(error)
            }
        }
    }
}

fn stamp(path: &Path) -> Stamp {
    let of = |state: Metadata| (state.ino(), state.size(), state.ctime(), state.ctime_nsec());
    fs::metadata(path).ok().map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_servers_user_and_root_own_files_that_decide() {
        for (owner, own, is_taken) in [(0, 0, true), (0, 7, true), (7, 7, true), (7, 0, false), (65_534, 7, false)] {
            assert_eq!(require_trusted_owner(owner, own).is_ok(), is_taken, "{owner} {own}");
        }
    }
}
