//! Migrates a store of an older schema version.
//!
//! The new store is written beside the old one, and takes its name when it is complete and on the disk: a crash at any
//! moment leaves one that is whole, and the next start goes on from there. Files of records have the version in the name
//! of their folder, so those of either store are out of the other's way.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use canopy_migrations::{Version, current_version};

use super::engine::{DirectoryLock, Engine, OpenFailure, io_error};
use super::spaces::{Spaces, remove_other_records};
use super::upgrade::upgrade;
use super::upkeep::Health;
use super::{Space, Store, StoreError};
use crate::clock;

/// What a migration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Version of the data before.
    pub from: u32,
    /// Version of the data now.
    pub to: u32,
    /// Records that were brought up to date.
    pub records: usize,
    /// Records that could not be read and were left behind; such plans will be computed again.
    pub left_behind: usize,
}

/// Names of a migration's files beside the store.
struct Names {
    /// The new store while it is being written.
    migrating: PathBuf,
    /// The new store when it is complete.
    migrated: PathBuf,
    /// The old store, about to be removed.
    old: PathBuf,
}

impl Names {
    fn beside(path: &Path) -> Self {
        let with = |suffix: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        Self { migrating: with(".migrating"), migrated: with(".migrated"), old: with(".old") }
    }
}

/// Finishes or undoes a migration that was interrupted. A new store counts once it bears the name of a complete one
/// and the old one is out of the way; until then the old one does, and the migration is done again.
pub(super) fn clean_up(path: &Path) -> io::Result<()> {
    let names = Names::beside(path);
    if !path.exists() && names.migrated.exists() {
        fs::rename(&names.migrated, path)?;
    }
    for leftover in [names.migrating, names.migrated, names.old] {
        if leftover.exists() {
            fs::remove_dir_all(leftover)?;
        }
    }
    Ok(())
}

/// Writes a new store at the place of `old`, which is removed.
pub(super) fn migrate<E: Engine>(
    old: E,
    directory: &Path,
    path: &Path,
    lock: &Arc<DirectoryLock>,
    from: u32,
    steps: &[Version],
) -> Result<(E, Migration), StoreError> {
    let names = Names::beside(path);
    let failed = |doing| io_error(directory, doing);
    let open = |path: &Path| {
        E::open(path, lock).map_err(|failure: OpenFailure| failed("opening its successor")(failure.into()))
    };
    // What an interrupted migration may have left.
    remove_other_records(directory, from).map_err(failed("removing an unfinished successor"))?;
    let new = open(&names.migrating)?;
    let mut migration = Migration { from, to: current_version(), records: 0, left_behind: 0 };
    let health = Health::of(directory);
    let old_spaces = Spaces::of(|space| old.space(space), directory, from, &health)?.spaces;
    let new_spaces = Spaces::of(|space| new.space(space), directory, current_version(), &health)?.spaces;
    for (space, (old, new)) in Space::ALL.into_iter().zip(old_spaces.iter().zip(&new_spaces)) {
        copy_space(space, old.as_ref(), new.as_ref(), steps, &mut migration)?;
    }
    new.set_schema_version(current_version())?;
    drop((old_spaces, new_spaces, old, new));
    for path in [path, &names.migrating] {
        E::wait_until_closed(path).map_err(failed("closing it for migration"))?;
    }
    let renamed = fs::rename(&names.migrating, &names.migrated)
        .and_then(|()| fs::rename(path, &names.old))
        .and_then(|()| fs::rename(&names.migrated, path))
        .and_then(|()| File::open(directory)?.sync_all())
        .and_then(|()| fs::remove_dir_all(&names.old));
    renamed.map_err(failed("putting its successor in place"))?;
    Ok((open(path)?, migration))
}

/// Writes every record of a space, brought up to date, into the same space of another store.
fn copy_space(
    space: Space,
    old: &dyn Store,
    new: &dyn Store,
    steps: &[Version],
    migration: &mut Migration,
) -> Result<(), StoreError> {
    for key in old.all_keys() {
        let key = key?;
        let record = old.get(&key)?.unwrap_or_default();
        let Some(entry) = upgrade(steps, space, &key, record, old.summary(&key)?, clock::unix_ms()) else {
            migration.left_behind += 1;
            continue;
        };
        new.put(&key, &entry.record, &entry.summary)?;
        migration.records += 1;
    }
    Ok(())
}
