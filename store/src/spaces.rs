//! The spaces of a data directory: which of them are in files, and where.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::{fs, io};

use super::disk::Disk;
use super::doubled::DoubledSpace;
use super::engine::io_error;
use super::filed::FiledSpace;
use super::slot::Companion;
use super::upkeep::Health;
use super::{MemoryStore, Space, Store, StoreError};

/// Where it is kept which plans are pinned.
const PINS: &str = "pins";

/// First schema version that keeps records of some spaces in files.
pub(super) const FILED_SINCE: u32 = 4;

/// What was done because the database and the files of records beside it did not agree: after a crash for a record or
/// two, for many where the database was damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Records that only the files knew, and that are served again.
    pub restored: usize,
    /// Records whose file is gone.
    pub lost: usize,
    /// Files that only the folder knew, and that are damaged.
    pub quarantined: usize,
}

impl Recovery {
    /// Whether there was nothing to do.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The spaces of a data directory, those whose records are files included.
pub(super) struct Spaces {
    /// In the order of [`Space::ALL`].
    pub(super) spaces: Vec<Arc<dyn Store>>,
    /// Under the keys of plans that are pinned.
    pub(super) pins: Arc<dyn Store>,
    pub(super) recovery: Recovery,
    /// Those that an engine must agree with.
    pub(super) companions: Vec<Weak<dyn Companion>>,
}

impl Spaces {
    /// Opens the spaces of data of this schema version. `engine` gives the part of each in the engine.
    pub(super) fn of<S: Store>(
        engine: impl Fn(Space) -> S,
        directory: &Path,
        version: u32,
        health: &Health,
    ) -> Result<Self, StoreError> {
        let (mut recovery, mut companions) = (Recovery::default(), Vec::new());
        let disk = &Disk::default();
        if version >= FILED_SINCE {
            let folder = records_folder(directory, version);
            disk.make_folder(&folder).map_err(io_error(&folder, "making its folder"))?;
        }
        let open = |space: Space| -> Result<Arc<dyn Store>, StoreError> {
            if version < FILED_SINCE {
                return Ok(Arc::new(engine(space)));
            }
            let folder = records_folder(directory, version).join(space.name());
            if space.is_doubled() {
                // Earlier builds had them in the engine.
                let (doubled, _) = DoubledSpace::open(disk, folder, space.name(), &engine(space), health.clone())?;
                let doubled = Arc::new(doubled);
                companions.push(companion(&doubled));
                return Ok(doubled);
            }
            if space == Space::Leases {
                // Their owner reads all of them at every start, and what an engine says of them may be older than the files.
                let (filed, part) = FiledSpace::open(disk, MemoryStore::default(), folder, health.clone())?;
                recovery.quarantined += part.quarantined;
                return Ok(Arc::new(filed));
            }
            if !space.is_filed() {
                return Ok(Arc::new(engine(space)));
            }
            let (filed, part) = FiledSpace::open(disk, engine(space), folder, health.clone())?;
            recovery.restored += part.restored;
            recovery.lost += part.lost;
            recovery.quarantined += part.quarantined;
            let filed = Arc::new(filed);
            companions.push(companion(&filed));
            Ok(filed)
        };
        let spaces = Space::ALL.into_iter().map(open).collect::<Result<_, _>>()?;
        let pins: Arc<dyn Store> = if version < FILED_SINCE {
            Arc::new(MemoryStore::default())
        } else {
            let folder = records_folder(directory, version).join(PINS);
            let pins = Arc::new(DoubledSpace::open(disk, folder, PINS, &MemoryStore::default(), health.clone())?.0);
            companions.push(companion(&pins));
            pins
        };
        Ok(Self { spaces, pins, recovery, companions })
    }
}

fn companion<C: Companion + 'static>(space: &Arc<C>) -> Weak<dyn Companion> {
    let space: Weak<C> = Arc::downgrade(space);
    space
}

/// Where data of this schema version has the files of its records.
fn records_folder(directory: &Path, version: u32) -> PathBuf {
    directory.join(format!("{RECORDS}{version}"))
}

/// How the names of folders of records begin; the schema version follows.
const RECORDS: &str = "records-";

/// The schema versions whose folders of records there are.
pub(super) fn records_versions(directory: &Path) -> io::Result<Vec<u32>> {
    let mut versions = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        versions.extend(name.to_str().and_then(|name| name.strip_prefix(RECORDS)?.parse::<u32>().ok()));
    }
    Ok(versions)
}

/// Removes what a migration has left of other versions: unfinished files, or those it was made from.
pub(super) fn remove_other_records(directory: &Path, version: u32) -> io::Result<()> {
    for other in records_versions(directory)?.into_iter().filter(|&other| other != version) {
        fs::remove_dir_all(records_folder(directory, other))?;
    }
    Ok(())
}
