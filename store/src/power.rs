//! What a power cut may leave of what was done to a disk.
//!
//! Contents of a file are there up to its last sync. Of what was written later a part may be there, in order, and of the
//! last write only its beginning, or zeros. Names in a folder are there up to its last sync, and of later changes to
//! them the first few. Nothing else is promised by POSIX.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "tests call it, and fail where it panics")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use parking_lot::Mutex;
use tempfile::TempDir;

use super::disk::{Disk, Step, Witness};
use super::doubled::DoubledSpace;
use super::filed::FiledSpace;
use super::slot::Companion as _;
use super::upkeep::Health;
use super::{MemoryStore, Store};
use crate::random::Random;

/// A folder that costs no real disk its time, where the machine has such a one.
pub fn memory_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// The spaces of faults, leases and events, on a disk whose power may be cut.
pub struct ReplanStores {
    /// What is known of broken elements.
    pub faults: Arc<dyn Store>,
    /// Leases of jobs.
    pub leases: Arc<dyn Store>,
    /// Events of leases.
    pub replans: Arc<dyn Store>,
    doubled: [Arc<DoubledSpace>; 2],
}

impl ReplanStores {
    /// Opens them in a folder. Its engine is empty: leases are in files of their own.
    pub fn open(folder: &Path, recording: Option<&Arc<Recording>>) -> Self {
        let disk = recording.map(|recording| Disk::watched(Arc::clone(recording) as Arc<_>)).unwrap_or_default();
        let (none, health) = (MemoryStore::default(), Health::of(folder));
        let space =
            |name: &'static str| DoubledSpace::open(&disk, folder.join(name), name, &none, health.clone()).unwrap().0;
        let leases = FiledSpace::open(&disk, MemoryStore::default(), folder.join("leases"), health.clone()).unwrap().0;
        let [faults, replans] = ["faults", "replans"].map(|name| Arc::new(space(name)));
        let doubled = [Arc::clone(&faults), Arc::clone(&replans)];
        Self { faults, leases: Arc::new(leases), replans, doubled }
    }

    /// What the upkeep of a store does once the disk has room again.
    pub fn settle(&self) {
        self.doubled.iter().for_each(|space| space.agree(false).unwrap());
    }
}

/// A step, as it was done. Paths are relative to the folder that is watched.
#[derive(Clone, Debug)]
enum Done {
    Folder(PathBuf),
    File(PathBuf),
    Written { path: PathBuf, offset: u64, bytes: Vec<u8> },
    Length { path: PathBuf, length: u64 },
    Synced(PathBuf),
    Renamed { from: PathBuf, to: PathBuf },
    Removed(PathBuf),
    NamesSynced(PathBuf),
}

/// Remembers what was done below a folder.
pub struct Recording {
    root: PathBuf,
    done: Mutex<Vec<Done>>,
    /// How many of the steps made what was there before.
    earlier: usize,
    /// Steps after which the disk refuses whatever takes room, if it does so.
    room_for: Mutex<Option<usize>>,
    /// Whether contents of files are synced: without, this is a disk on which nothing may be acknowledged.
    is_synced: bool,
}

impl Recording {
    /// What is there already survives.
    pub fn below(root: &Path, is_synced: bool) -> Self {
        let mut earlier = Vec::new();
        found(root, Path::new(""), &mut earlier);
        let (count, done) = (earlier.len(), Mutex::new(earlier));
        Self { root: root.to_owned(), earlier: count, room_for: Mutex::default(), done, is_synced }
    }

    /// Has the disk become full after some more steps, or have room again.
    pub fn fill_after(&self, steps: Option<usize>) {
        *self.room_for.lock() = steps;
    }

    /// How many steps were done.
    pub fn count(&self) -> usize {
        self.done.lock().len() - self.earlier
    }

    /// Makes in an empty folder what may be left if the power is cut after this number of steps.
    pub fn leave(&self, count: usize, chance: &mut Random, folder: &Path) {
        let tree = Tree::of(&self.done.lock()[..self.earlier + count], chance);
        for (path, entry) in &tree.names {
            let path = folder.join(path);
            match entry {
                Entry::Folder => fs::create_dir_all(&path).unwrap(),
                // The folder itself may be gone.
                Entry::File(file) if path.parent().is_some_and(Path::exists) => {
                    fs::write(&path, &tree.contents[*file]).unwrap();
                }
                Entry::File(_) => {}
            }
        }
    }
}

impl Witness for Recording {
    fn allows(&self, step: Step<'_>) -> io::Result<()> {
        if matches!(step, Step::Length { .. } | Step::Removed { .. } | Step::Renamed { .. } | Step::NamesSynced { .. })
        {
            return Ok(());
        }
        match &mut *self.room_for.lock() {
            None => Ok(()),
            Some(0) => Err(io::ErrorKind::StorageFull.into()),
            Some(room) => {
                *room -= 1;
                Ok(())
            }
        }
    }

    fn saw(&self, step: Step<'_>) {
        let path = |path: &Path| path.strip_prefix(&self.root).unwrap_or(Path::new("")).to_owned();
        let done = match step {
            Step::Folder { path: made } => Done::Folder(path(made)),
            Step::File { path: made } => Done::File(path(made)),
            Step::Written { path: into, offset, bytes } => {
                Done::Written { path: path(into), offset, bytes: bytes.to_vec() }
            }
            Step::Length { path: of, length } => Done::Length { path: path(of), length },
            Step::Synced { .. } if !self.is_synced => return,
            Step::Synced { path: synced } => Done::Synced(path(synced)),
            Step::Renamed { from, to } => Done::Renamed { from: path(from), to: path(to) },
            Step::Removed { path: removed } => Done::Removed(path(removed)),
            Step::NamesSynced { folder } => Done::NamesSynced(path(folder)),
        };
        self.done.lock().push(done);
    }
}

/// The steps that would have made what is in a folder, all of which survives.
fn found(root: &Path, folder: &Path, steps: &mut Vec<Done>) {
    let mut entries: Vec<_> = fs::read_dir(root.join(folder)).unwrap().map(Result::unwrap).collect();
    // In the same order whenever a seed is tried.
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = folder.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            steps.push(Done::Folder(path.clone()));
            found(root, &path, steps);
        } else {
            let bytes = fs::read(entry.path()).unwrap();
            steps.push(Done::File(path.clone()));
            steps.push(Done::Written { path: path.clone(), offset: 0, bytes });
            steps.push(Done::Synced(path));
        }
    }
    steps.push(Done::NamesSynced(folder.to_owned()));
}

#[derive(Clone, Copy, Debug)]
enum Entry {
    Folder,
    /// The number of its contents.
    File(usize),
}

/// A change of names.
enum Naming {
    Made { path: PathBuf, entry: Entry },
    Renamed { from: PathBuf, to: PathBuf },
    Removed(PathBuf),
}

impl Naming {
    /// The folders whose names change.
    fn folders(&self) -> Vec<PathBuf> {
        let of = |path: &PathBuf| path.parent().unwrap_or(Path::new("")).to_owned();
        match self {
            Self::Made { path, .. } | Self::Removed(path) => vec![of(path)],
            Self::Renamed { from, to } => vec![of(from), of(to)],
        }
    }
}

/// A change of contents.
#[derive(Debug)]
enum Writing<'a> {
    At { offset: usize, bytes: &'a [u8] },
    Length(usize),
}

/// What is left.
struct Tree {
    names: BTreeMap<PathBuf, Entry>,
    contents: Vec<Vec<u8>>,
}

impl Tree {
    fn of(done: &[Done], chance: &mut Random) -> Self {
        // Which file has which name at the moment, what was written into each and how much of that is synced.
        let mut current: BTreeMap<&Path, usize> = BTreeMap::new();
        let mut writings: Vec<(Vec<Writing<'_>>, usize)> = Vec::new();
        let mut namings: Vec<Naming> = Vec::new();
        // For each folder: how many of all namings are sure to be there.
        let mut sure: BTreeMap<PathBuf, usize> = BTreeMap::new();
        for step in done {
            match step {
                Done::Folder(path) => namings.push(Naming::Made { path: path.clone(), entry: Entry::Folder }),
                Done::File(path) => {
                    current.insert(path, writings.len());
                    namings.push(Naming::Made { path: path.clone(), entry: Entry::File(writings.len()) });
                    writings.push((Vec::new(), 0));
                }
                Done::Written { path, offset, bytes } => {
                    let offset = usize::try_from(*offset).unwrap();
                    writings[current[path.as_path()]].0.push(Writing::At { offset, bytes });
                }
                Done::Length { path, length } => {
                    let length = usize::try_from(*length).unwrap();
                    writings[current[path.as_path()]].0.push(Writing::Length(length));
                }
                Done::Synced(path) => {
                    let (of_file, synced) = &mut writings[current[path.as_path()]];
                    *synced = of_file.len();
                }
                Done::Renamed { from, to } => {
                    if let Some(file) = current.remove(from.as_path()) {
                        current.insert(to, file);
                    }
                    namings.push(Naming::Renamed { from: from.clone(), to: to.clone() });
                }
                Done::Removed(path) => {
                    current.remove(path.as_path());
                    namings.push(Naming::Removed(path.clone()));
                }
                Done::NamesSynced(folder) => _ = sure.insert(folder.clone(), namings.len()),
            }
        }
        let contents = writings.iter().map(|(of_file, synced)| contents(of_file, *synced, chance)).collect();
        Self { names: names(&namings, &sure, chance), contents }
    }
}

/// The contents of a file into which this was written, of which the first `synced` are sure to be there.
fn contents(writings: &[Writing<'_>], synced: usize, chance: &mut Random) -> Vec<u8> {
    let (whole, later) = writings.split_at(synced + chance.below(writings.len() - synced + 1));
    let mut contents = Vec::new();
    for writing in whole {
        match writing {
            Writing::At { offset, bytes } => put(&mut contents, *offset, bytes),
            Writing::Length(length) => contents.resize(*length, 0),
        }
    }
    // The next one is torn: its beginning is there, and behind it zeros or nothing.
    if let Some(Writing::At { offset, bytes }) = later.first() {
        put(&mut contents, *offset, &bytes[..chance.below(bytes.len() + 1)]);
        if chance.below(2) == 0 {
            let length = offset + chance.below(bytes.len() + 1);
            contents.resize(contents.len().max(length), 0);
        }
    }
    contents
}

fn put(contents: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    contents.resize(contents.len().max(end), 0);
    contents[offset..end].copy_from_slice(bytes);
}

/// The names after these changes, of which some are sure to be there in each folder.
fn names(namings: &[Naming], sure: &BTreeMap<PathBuf, usize>, chance: &mut Random) -> BTreeMap<PathBuf, Entry> {
    let mut there: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for naming in namings {
        for folder in naming.folders() {
            there.entry(folder.clone()).or_insert_with(|| {
                let sure = sure.get(&folder).copied().unwrap_or_default();
                sure + chance.below(namings.len() - sure + 1)
            });
        }
    }
    let mut names = BTreeMap::new();
    for (number, naming) in namings.iter().enumerate() {
        if !naming.folders().iter().any(|folder| number < there[folder]) {
            continue;
        }
        match naming {
            Naming::Made { path, entry } => _ = names.insert(path.clone(), *entry),
            Naming::Renamed { from, to } => {
                if let Some(entry) = names.remove(from) {
                    names.insert(to.clone(), entry);
                }
            }
            Naming::Removed(path) => _ = names.remove(path),
        }
    }
    names
}
