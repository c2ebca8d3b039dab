//! A space whose records are files, one each; an engine keeps the summaries.
//!
//! An engine of one log or one file takes more room than what lives in it, and a damaged byte there costs records that
//! are far from it. A file of its own costs what it holds, and is damaged alone. The files are what counts: what the
//! engine has lost is read from them when the space is opened.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use canopy_planner::PlanKey;
use parking_lot::{Mutex, RwLock};

use super::disk::{Disk, UNFINISHED};
use super::engine::io_error;
use super::file::{head, read_summary, record_range};
use super::slot::Companion;
use super::upkeep::Health;
use super::{DiskRoom, Durability, Recovery, Store, StoreError};

/// Files read by one thread at least.
const SHARE_MIN: usize = 1024;
const QUARANTINE: &str = "quarantine";

/// A key, and the summary in its file; none: that is damaged.
type ReadSummary = (PlanKey, Option<Vec<u8>>);

/// One space: records in files below a folder, summaries in a space of an engine whose records stay empty.
pub(super) struct FiledSpace<S> {
    index: S,
    disk: Disk,
    folder: PathBuf,
    /// Keys of all files: 32 bytes for each record.
    keys: Mutex<BTreeSet<PlanKey>>,
    /// Shared by whoever changes anything; alone by who compares all files with the index.
    changing: RwLock<()>,
    health: Health,
}

impl<S: Store> FiledSpace<S> {
    /// Opens the files below this folder, which is made if needed, and brings the index in line with them.
    ///
    /// O(records) names and summaries; of files that the index does not know the first kilobyte.
    pub(super) fn open(disk: &Disk, index: S, folder: PathBuf, health: Health) -> Result<(Self, Recovery), StoreError> {
        let failed = |doing| io_error(&folder, doing);
        let make_folder = |path| disk.make_folder(path).map_err(failed("making its folders"));
        make_folder(&folder)?;
        // This syncs the names of all folders in it, also those that an earlier process made.
        make_folder(&folder.join(QUARANTINE))?;
        let keys = list_files(disk, &folder).map_err(failed("listing its files"))?;
        let (keys, changing) = (Mutex::new(keys), RwLock::default());
        let space = Self { index, disk: disk.clone(), keys, folder, changing, health };
        let recovery = space.reconcile()?;
        Ok((space, recovery))
    }

    /// Makes summaries that are missing from the files they belong to, and forgets those without a file.
    fn reconcile(&self) -> Result<Recovery, StoreError> {
        let mut unknown = self.keys.lock().clone();
        let (mut lost, index): (_, &dyn Store) = (Vec::new(), &self.index);
        for entry in index.all_summaries() {
            lost.extend(Some(entry?.0).filter(|key| !unknown.remove(key)));
        }
        self.index.remove(&lost)?;
        let mut recovery = Recovery { lost: lost.len(), ..Recovery::default() };
        let mut found = Vec::new();
        for (key, summary) in self.summaries_in_files(&unknown.into_iter().collect::<Vec<_>>())? {
            match summary {
                Some(summary) => found.push((key, summary)),
                None => {
                    self.set_aside(&key)?;
                    recovery.quarantined += 1;
                }
            }
        }
        if !found.is_empty() {
            self.index.set_summaries(&found, Durability::Synced)?;
        }
        recovery.restored = found.len();
        Ok(recovery)
    }

    /// Reads the summaries of some records from their files. Most of it is the system's work, for which all
    /// processors are used.
    fn summaries_in_files(&self, keys: &[PlanKey]) -> Result<Vec<ReadSummary>, StoreError> {
        let read = |key: &PlanKey| {
            let file = File::open(self.path_of(key)).map_err(self.failed("reading a record"))?;
            let summary = read_summary(BufReader::new(file), key).map_err(self.failed("reading a record"))?;
            Ok((*key, summary))
        };
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let share = keys.len().div_ceil(threads).max(SHARE_MIN);
        let parts: Vec<Result<Vec<_>, StoreError>> = thread::scope(|scope| {
            let begun: Vec<_> =
                keys.chunks(share).map(|keys| scope.spawn(|| keys.iter().map(read).collect())).collect();
            begun.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        Ok(parts.into_iter().collect::<Result<Vec<_>, StoreError>>()?.into_iter().flatten().collect())
    }

    fn failed(&self, doing: &'static str) -> impl Fn(io::Error) -> StoreError {
        io_error(&self.folder, doing)
    }

    fn path_of(&self, key: &PlanKey) -> PathBuf {
        let name = key.to_string();
        self.folder.join(format!("{name:.2}")).join(name)
    }

    /// The error of a write that failed, of which the store is told.
    fn unwritten(&self, doing: &'static str) -> impl Fn(io::Error) -> StoreError {
        self.health.file_failed(&self.folder, doing)
    }

    /// Writes a file in place of an earlier one; if asked to, returns only once it survives a crash of the machine.
    fn write(&self, key: &PlanKey, parts: [&[u8]; 2], durability: Durability) -> io::Result<()> {
        let path = self.path_of(key);
        let folder = path.parent().expect("files of records are in folders");
        if !folder.exists() {
            // Also for a lazy write: whoever finds the folder there relies on it.
            self.disk.make_folder(folder)?;
        }
        self.disk.replace(&path, &parts, durability).map(drop)
    }

    /// The index follows at leisure where it does not hold anything wrong meanwhile: from the file it can be made again.
    fn put_with(&self, key: &PlanKey, record: &[u8], summary: &[u8], durability: Durability) -> Result<(), StoreError> {
        let _changing = self.changing.read();
        let too_long = || self.failed("writing a record")(io::Error::other("its summary is too long"));
        let head = head(key, summary).ok_or_else(too_long)?;
        self.write(key, [&head, record], durability).map_err(self.unwritten("writing a record"))?;
        let is_new = self.keys.lock().insert(*key);
        let durability = if is_new { Durability::Lazy } else { Durability::Synced };
        let indexed = self.index.set_summaries(&[(*key, summary.to_vec())], durability);
        if indexed.is_err() && is_new {
            // What is refused must not be there after a restart.
            self.keys.lock().remove(key);
            let path = self.path_of(key);
            let removed = self.disk.remove(&path);
            removed
                .and_then(|_| path.parent().map_or(Ok(()), |folder| self.disk.sync_names(folder)))
                .map_err(self.unwritten("taking a record back"))?;
        }
        indexed
    }

    /// Writes a summary into the file of its record. A file that is damaged or not there is left as it is.
    fn write_summary(&self, key: &PlanKey, summary: &[u8]) -> Result<(), StoreError> {
        let Some(file) = self.read(key)? else { return Ok(()) };
        let (Some(record), Some(head)) = (record_range(&file, key), head(key, summary)) else { return Ok(()) };
        let record = file.get(record).unwrap_or_default();
        self.write(key, [&head, record], Durability::Synced).map_err(self.unwritten("writing a summary"))
    }

    fn set_aside(&self, key: &PlanKey) -> Result<(), StoreError> {
        let aside = self.folder.join(QUARANTINE).join(key.to_string());
        self.disk.rename(&self.path_of(key), &aside).map_err(self.failed("quarantining a record"))?;
        self.health.damaged(&self.folder.file_name().unwrap_or_default().to_string_lossy(), 1);
        self.keys.lock().remove(key);
        self.index.remove(&[*key])
    }

    fn read(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        self.disk.read(&self.path_of(key)).map_err(self.failed("reading a record"))
    }
}

impl<S: Store> Store for FiledSpace<S> {
    /// What a damaged file holds is given as it is: it is no record, and whoever reads it will notice.
    fn get(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(mut file) = self.read(key)? else { return Ok(None) };
        if let Some(record) = record_range(&file, key) {
            file.drain(..record.start);
        }
        Ok(Some(file))
    }

    fn put(&self, key: &PlanKey, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        self.put_with(key, record, summary, Durability::Synced)
    }

    fn put_lazily(&self, key: &PlanKey, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        self.put_with(key, record, summary, Durability::Lazy)
    }

    fn remove(&self, keys: &[PlanKey]) -> Result<(), StoreError> {
        let _changing = self.changing.read();
        let mut folders = BTreeSet::new();
        for key in keys {
            let path = self.path_of(key);
            if self.disk.remove(&path).map_err(self.failed("removing a record"))? {
                folders.extend(path.parent().map(Path::to_owned));
            }
            self.keys.lock().remove(key);
        }
        for folder in folders {
            self.disk.sync_names(&folder).map_err(self.failed("removing a record"))?;
        }
        self.index.remove(keys)
    }

    fn quarantine(&self, key: &PlanKey) -> Result<(), StoreError> {
        let _changing = self.changing.read();
        self.set_aside(key)
    }

    fn summary(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        self.index.summary(key)
    }

    /// Synced summaries go into the files as well, so that a pin outlives the index.
    fn set_summaries(&self, summaries: &[(PlanKey, Vec<u8>)], durability: Durability) -> Result<(), StoreError> {
        let _changing = self.changing.read();
        if durability == Durability::Synced {
            for (key, summary) in summaries {
                self.write_summary(key, summary)?;
            }
        }
        self.index.set_summaries(summaries, durability)
    }

    fn summaries(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<(PlanKey, Vec<u8>)>, StoreError> {
        self.index.summaries(after, limit)
    }

    fn keys(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<PlanKey>, StoreError> {
        let from = after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        Ok(self.keys.lock().range((from, std::ops::Bound::Unbounded)).take(limit).copied().collect())
    }

    fn room_bytes(&self) -> Option<u64> {
        DiskRoom::of(&self.folder).map(DiskRoom::for_plans)
    }

    fn quarantined_count(&self) -> Result<usize, StoreError> {
        let aside = self.disk.names(&self.folder.join(QUARANTINE));
        Ok(aside.map_err(self.failed("counting its quarantine"))?.len())
    }
}

impl<S: Store> Companion for FiledSpace<S> {
    fn agree(&self, was_reopened: bool) -> Result<(), StoreError> {
        if !was_reopened {
            return Ok(());
        }
        let _alone = self.changing.write();
        self.reconcile().map(drop)
    }
}

/// Keys of the files below a folder. Files that a crash left unfinished are removed; anything else that is no record's
/// is not canopy's and stays.
fn list_files(disk: &Disk, folder: &Path) -> io::Result<BTreeSet<PlanKey>> {
    let mut keys = BTreeSet::new();
    for (shard, is_folder) in disk.names(folder)? {
        if shard == QUARANTINE || !is_folder {
            continue;
        }
        let path = folder.join(&shard);
        for (name, _) in disk.names(&path)? {
            let Some(name) = name.to_str() else { continue };
            if name.starts_with(UNFINISHED) {
                disk.remove(&path.join(name))?;
            } else if shard.to_str() == name.get(..2)
                && let Some(key) = PlanKey::from_digits(name).filter(|key| key.to_string() == name)
            {
                keys.insert(key);
            }
        }
    }
    Ok(keys)
}
