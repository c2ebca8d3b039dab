//! The files of the log: the last one is written to, full ones are only read, the oldest are removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use canopy_access::Chain;
use rustix::fs::{FallocateFlags, fallocate};

/// Bytes after which a file is full.
const FILE_BYTES: u64 = 64 << 20;
/// Bytes that are taken from the disk ahead: as many lines as may be on their way when the disk becomes full.
const RESERVE_BYTES: u64 = 4 << 20;
const BEFORE_NUMBER: &str = "audit-";
const BEHIND_NUMBER: &str = ".jsonl";

/// The folder of a log, and the file that is written to.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    bytes_max: u64,
    file: File,
    /// Bytes of whole lines in the file.
    length: u64,
    reserved: u64,
    pub(super) chain: Chain,
}

impl Folder {
    /// Opens a folder, which is made if needed. What stands behind the last whole line was never acknowledged, and is
    /// cut off.
    pub(super) fn open(path: &Path, bytes_max: u64) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let (chain, file, length) = match files(path)?.last() {
            Some(last) => go_on(last)?,
            None => (Chain::default(), create(path, 1)?, 0),
        };
        let mut folder = Self { path: path.to_owned(), bytes_max, file, length, reserved: 0, chain };
        folder.reserve()?;
        Ok(folder)
    }

    /// Writes lines and has the disk keep them. After an error none of them is there.
    pub(super) fn append(&mut self, lines: &str, chain: Chain) -> io::Result<()> {
        let written = self.file.write_all(lines.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Whatever is there of them goes. If even that fails, the next start cuts it off.
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.length += lines.len() as u64;
        self.chain = chain;
        Ok(())
    }

    /// Sees to it that there is room for what comes: in this file, or in a new one.
    pub(super) fn reserve(&mut self) -> io::Result<()> {
        if self.length >= FILE_BYTES {
            self.file = create(&self.path, self.chain.number() + 1)?;
            (self.length, self.reserved) = (0, 0);
            self.remove_oldest()?;
        }
        if self.reserved < self.length + RESERVE_BYTES / 2 {
            let wanted = self.length + RESERVE_BYTES;
            match fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, wanted) {
                // Where a file system cannot do that, a full disk is noticed as it is written to.
                Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => self.reserved = wanted,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn remove_oldest(&self) -> io::Result<()> {
        let mut all = files(&self.path)?;
        let mut bytes = 0;
        let mut kept = 0;
        for path in all.iter().rev() {
            bytes += fs::metadata(path)?.len();
            if bytes > self.bytes_max && kept > 0 {
                break;
            }
            kept += 1;
        }
        all.truncate(all.len() - kept);
        all.iter().try_for_each(fs::remove_file)
    }
}

/// The files of a folder, oldest first.
fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(BEFORE_NUMBER) && name.ends_with(BEHIND_NUMBER) {
            found.push(path);
        }
    }
    // Numbers have leading zeros.
    found.sort();
    Ok(found)
}

/// A new file, whose first line has this number.
fn create(path: &Path, number: u64) -> io::Result<File> {
    let name = format!("{BEFORE_NUMBER}{number:015}{BEHIND_NUMBER}");
    let file = OpenOptions::new().create_new(true).append(true).mode(0o600).open(path.join(name))?;
    // So that the name survives a loss of power.
    File::open(path)?.sync_all()?;
    Ok(file)
}

/// Where a file ends: its last whole line, and the file to go on in.
fn go_on(path: &Path) -> io::Result<(Chain, File, u64)> {
    let mut text = Vec::new();
    File::open(path)?.read_to_end(&mut text)?;
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let file = OpenOptions::new().append(true).open(path)?;
    if whole < text.len() {
        file.set_len(whole as u64)?;
        file.sync_all()?;
        tracing::warn!(path = %path.display(), bytes = text.len() - whole, "an audit line that was never acknowledged is cut off");
    }
    let invalid =
        |problem: String| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {problem}", path.display()));
    let text = std::str::from_utf8(&text[..whole]).map_err(|error| invalid(error.to_string()))?;
    let chain = match text.lines().next_back() {
        Some(line) => Chain::after(line).map_err(|error| invalid(error.to_string()))?.0,
        None => before_first(path).ok_or_else(|| invalid("it is empty, and so is its name".to_owned()))?,
    };
    Ok((chain, file, whole as u64))
}

/// Where the log was before the first line of a file that has none yet: what the file before it ends with.
fn before_first(path: &Path) -> Option<Chain> {
    let all = files(path.parent()?).ok()?;
    let before = all.iter().rev().find(|other| other.as_path() < path);
    match before {
        Some(before) => {
            let text = fs::read_to_string(before).ok()?;
            Chain::after(text.lines().next_back()?).ok().map(|(chain, _)| chain)
        }
        None => Some(Chain::default()),
    }
}
