//! The files of the log: the last one is written to, full ones are only read, the oldest are removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use canopy_access::audit::{Chain, file_name, is_file_name};
use rustix::fs::{FallocateFlags, fallocate};

/// Bytes after which a file is full.
const FILE_BYTES: u64 = 64 << 20;
/// Bytes that are taken from the disk ahead: as many lines as may be on their way when the disk becomes full.
const RESERVE_BYTES: u64 = 4 << 20;
/// Bytes that are read first on the way back to the last line; then as many as were read already.
const BLOCK_BYTES: usize = 64 << 10;

/// The folder of a log, and the file that is written to.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    bytes_max: u64,
    file: File,
    /// Path of the file.
    current: PathBuf,
    /// Bytes of whole lines in the file.
    length: u64,
    reserved: u64,
    pub(super) chain: Chain,
}

impl Folder {
    /// Opens a folder, which is made if needed. What stands behind the last whole line was never acknowledged, and is
    /// cut off.
    pub(super) fn open(path: &Path, bytes_max: u64) -> io::Result<Self> {
        make_folder(path)?;
        let (chain, (file, current), length) = match files(path)?.pop() {
            Some(last) => {
                let (chain, file, length) = go_on(&last)?;
                (chain, (file, last), length)
            }
            None => (Chain::default(), create(path, 1)?, 0),
        };
        let mut folder = Self { path: path.to_owned(), bytes_max, file, current, length, reserved: 0, chain };
        folder.reserve()?;
        Ok(folder)
    }

    /// Whether the file is still where it was made, and holds all of its lines: nothing else removes, replaces or cuts it.
    pub(super) fn is_whole(&self) -> io::Result<bool> {
        let own = self.file.metadata()?;
        match fs::symlink_metadata(&self.current) {
            Ok(found) => {
                let is_same = (found.dev(), found.ino()) == (own.dev(), own.ino());
                Ok(is_same && own.nlink() > 0 && own.len() >= self.length)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Goes on in a new file after the last was lost. The number of its first line shows which lines are missing.
    pub(super) fn replace_lost(&mut self) -> io::Result<()> {
        make_folder(&self.path)?;
        (self.file, self.current) = create(&self.path, self.chain.number() + 1)?;
        (self.length, self.reserved) = (0, 0);
        Ok(())
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
            (self.file, self.current) = create(&self.path, self.chain.number() + 1)?;
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
        if is_file_name(name) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Makes a folder for its owner alone, unless it is there.
fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A new file, whose first line has this number, and its path.
fn create(path: &Path, number: u64) -> io::Result<(File, PathBuf)> {
    let path_of_file = path.join(file_name(number));
    let file = OpenOptions::new().create_new(true).append(true).mode(0o600).open(&path_of_file)?;
    // So that the name survives a loss of power.
    File::open(path)?.sync_all()?;
    Ok((file, path_of_file))
}

/// The chain at the end of a file, the file to go on in, and the bytes of its whole lines.
fn go_on(path: &Path) -> io::Result<(Chain, File, u64)> {
    let file = OpenOptions::new().read(true).append(true).open(path)?;
    let length = file.metadata()?.len();
    let Tail { whole, last } = tail(&file, length)?;
    if whole < length {
        file.set_len(whole)?;
        file.sync_all()?;
        tracing::warn!(
            path = %path.display(),
            bytes = length - whole,
            "an audit line that was never acknowledged is cut off"
        );
    }
    let chain = match last {
        Some(line) => chain_after(path, &line)?,
        None => before_first(path)?,
    };
    Ok((chain, file, whole))
}

/// The end of a file.
struct Tail {
    /// Bytes of its whole lines.
    whole: u64,
    /// The last of them, without its line break.
    last: Option<Vec<u8>>,
}

/// Reads a file of this length from its end, back to where its last whole line begins.
fn tail(file: &File, length: u64) -> io::Result<Tail> {
    let mut read = Vec::new();
    let mut from = length;
    loop {
        let break_before = |end: usize| read[..end].iter().rposition(|&byte| byte == b'\n');
        let end = break_before(read.len());
        let begin = end.and_then(break_before);
        let offset = |at: usize| from + at as u64;
        match (end, begin) {
            (Some(end), Some(begin)) => {
                return Ok(Tail { whole: offset(end) + 1, last: Some(read[begin + 1..end].to_vec()) });
            }
            (Some(end), None) if from == 0 => {
                return Ok(Tail { whole: offset(end) + 1, last: Some(read[..end].to_vec()) });
            }
            (None, _) if from == 0 => return Ok(Tail { whole: 0, last: None }),
            _ => {}
        }
        let block = usize::try_from(from).unwrap_or(usize::MAX).min(read.len().max(BLOCK_BYTES));
        from -= block as u64;
        let mut longer = vec![0; block];
        file.read_exact_at(&mut longer, from)?;
        longer.append(&mut read);
        read = longer;
    }
}

fn chain_after(path: &Path, line: &[u8]) -> io::Result<Chain> {
    let invalid = |problem: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}, last line: {problem}", path.display()))
    };
    let line = std::str::from_utf8(line).map_err(|error| invalid(&error))?;
    Chain::after(line).map(|(chain, _)| chain).map_err(|error| invalid(&error))
}

/// The chain before the first line of a file that has no line yet: that at the end of the file before it.
fn before_first(path: &Path) -> io::Result<Chain> {
    let all = path.parent().map_or_else(|| Ok(Vec::new()), files)?;
    let Some(before) = all.iter().rev().find(|other| other.as_path() < path) else { return Ok(Chain::default()) };
    let file = File::open(before)?;
    match tail(&file, file.metadata()?.len())?.last {
        Some(line) => chain_after(before, &line),
        None => Err(io::Error::new(io::ErrorKind::InvalidData, format!("{} has no line", before.display()))),
    }
}

#[cfg(test)]
mod tests {
    use canopy_access::audit::Entry;

    use super::*;

    fn entry(object: &str) -> Entry {
        Entry { object: object.to_owned(), ..Entry::default() }
    }

    fn append(folder: &mut Folder, object: &str) {
        let mut chain = folder.chain.clone();
        let line = chain.next_line(entry(object));
        folder.append(&line, chain).unwrap();
    }

    fn open(path: &Path) -> io::Result<Folder> {
        Folder::open(path, 1 << 30)
    }

    #[test]
    fn a_file_that_is_taken_away_is_noticed_and_the_next_one_shows_what_is_missing() {
        type Harm = fn(&Path, &Path);
        let harms: [Harm; 5] = [
            |_, file| fs::remove_file(file).unwrap(),
            |_, file| fs::rename(file, file.with_extension("moved")).unwrap(),
            |_, file| {
                fs::rename(file, file.with_extension("moved")).unwrap();
                fs::copy(file.with_extension("moved"), file).unwrap();
            },
            |_, file| drop(File::create(file).unwrap()),
            |folder, _| fs::remove_dir_all(folder).unwrap(),
        ];
        for (number, harm) in harms.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("audit");
            let mut log = open(&path).unwrap();
            ["a", "b"].into_iter().for_each(|object| append(&mut log, object));
            assert!(log.is_whole().unwrap());
            harm(&path, &path.join(file_name(1)));
            assert!(!log.is_whole().unwrap(), "harm {number}");
            log.replace_lost().unwrap();
            append(&mut log, "c");
            assert!(log.is_whole().unwrap(), "harm {number}");
            let last = fs::read_to_string(path.join(file_name(3))).unwrap();
            assert!(last.contains("\"number\":3"), "{last}");
            assert_eq!(open(&path).unwrap().chain, log.chain);
        }
    }

    #[test]
    fn a_log_goes_on_after_its_last_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let mut log = open(path).unwrap();
        assert_eq!(open(path).unwrap().chain, Chain::default());
        for length in [10, 5, 3 * BLOCK_BYTES, 20] {
            append(&mut log, &"x".repeat(length));
            let again = open(path).unwrap();
            assert_eq!((&again.chain, again.length), (&log.chain, log.length));
        }
        let file = path.join(file_name(1));
        for rest in [1, 2 * BLOCK_BYTES] {
            log.file.write_all("{".repeat(rest).as_bytes()).unwrap();
            assert_eq!(open(path).unwrap().chain, log.chain);
            assert_eq!(fs::metadata(&file).unwrap().len(), log.length);
        }
        log.file.write_all(b"{}\n").unwrap();
        let problem = open(path).unwrap_err().to_string();
        assert!(problem.contains("000000000000001.jsonl, last line: the line has no `hash`"), "{problem}");
    }

    #[test]
    fn a_file_without_a_line_goes_on_after_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let mut log = open(path).unwrap();
        append(&mut log, "a");
        create(path, 2).unwrap();
        let mut again = open(path).unwrap();
        assert_eq!((&again.chain, again.length), (&log.chain, 0));
        append(&mut again, "b");
        assert_eq!(open(path).unwrap().chain.number(), 2);
        fs::write(path.join(file_name(1)), "").unwrap();
        fs::write(path.join(file_name(2)), "").unwrap();
        assert!(open(path).unwrap_err().to_string().contains("has no line"));
    }
}
