//! A data directory: its lock, the engine's files in it, and their schema version.
//!
//! | name | what |
//! |---|---|
//! | `lock` | held by the process that owns the directory |
//! | `store` | the files of sled |
//! | `records-4` | plans, topologies, schedules and leases, a file each; faults, what became of leases, and pins, in two files each |
//! | `reproducers` | reports of plans that a check refused, for a person |
//! | `….damaged-N` | files that could not be opened, kept for a person |
//! | `….migrating`, `….migrated`, `….old` | a change of schema under way; removed or finished at the next start |

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use canopy_migrations::{Version, current_version, steps_from};

use super::engine::{DirectoryLock, Engine, io_error, lock_directory, open_or_start_anew};
use super::migrate::{Migration, clean_up, migrate};
use super::sled::SledEngine;
use super::slot::{Slot, SlotSpace};
use super::spaces::{FILED_SINCE, Recovery, Spaces, records_versions, remove_other_records};
use super::upkeep::{Health, Reopen, Upkeep};
use super::{Space, Store, StoreError};

/// Name of the files of sled in a data directory.
const DATABASE: &str = "store";
/// Name of the files of redb, which earlier releases could use instead.
const REDB: &str = "store-redb";
/// Name that those files get once their directory has been converted.
const REDB_CONVERTED: &str = "store-redb.converted";

/// A data directory that has been opened, and what happened on the way. It is this process's as long as any of the
/// spaces lives.
pub struct Opened {
    /// In the order of [`Space::ALL`].
    pub spaces: Vec<Arc<dyn Store>>,
    /// Under the keys of plans that are pinned: what of the summaries must outlive any of them.
    pub pins: Arc<dyn Store>,
    /// Where a database that could not be opened was moved, with the reason.
    pub moved_aside: Option<(PathBuf, String)>,
    /// What was brought up to date.
    pub migration: Option<Migration>,
    /// How far the database and the files beside it had to be brought in line.
    pub recovery: Recovery,
    /// Whether it can be written, and what to do until it can.
    pub upkeep: Upkeep,
}

impl Opened {
    /// One of the spaces.
    pub fn space(&self, space: Space) -> &Arc<dyn Store> {
        &self.spaces[space as usize]
    }

    /// One of the spaces, and nothing else: the others are closed.
    pub fn into_space(mut self, space: Space) -> Arc<dyn Store> {
        self.spaces.swap_remove(space as usize)
    }
}

/// Takes the lock of a data directory, creating it if needed, and opens the store in it.
///
/// A database that does not open is moved aside, and one with what can be saved of it takes its place; the other plans
/// can be computed again. Data of an older schema version is brought up to date first.
///
/// # Errors
/// [`StoreError::InUse`] when another process holds the directory; [`StoreError::Version`] when the data is of a
/// newer version; [`StoreError::OfRedb`] when it is of redb; otherwise what the file system said.
pub fn open_store(directory: &Path) -> Result<Opened, StoreError> {
    let lock = Arc::new(lock_directory(directory)?);
    open_with::<SledEngine>(directory, &lock)
}

/// What opening the data directory would bring up to date: `None` for nothing. Changes nothing.
///
/// # Errors
/// As [`open_store`]; a database that does not open is an error here.
pub fn pending_migration(directory: &Path) -> Result<Option<Pending>, StoreError> {
    let lock = Arc::new(lock_directory(directory)?);
    pending_with::<SledEngine>(directory, &lock)
}

/// Converts a data directory whose summaries are in redb, once: its records are files of their own, from which sled gets
/// its summaries when the directory is opened next. Unfinished prefetches, remembered answers to repeated requests and
/// found networks were in the database alone, and are not kept. Returns the new name of the database, which may be
/// deleted; `None` if the directory is not of redb.
///
/// # Errors
/// [`StoreError::OldRedb`] when the records are inside the database; otherwise as [`open_store`].
pub fn convert_from_redb(directory: &Path) -> Result<Option<PathBuf>, StoreError> {
    // Before the lock, which would make the directory.
    if !is_of_redb(directory) {
        return Ok(None);
    }
    let _lock = lock_directory(directory)?;
    let versions = records_versions(directory).map_err(io_error(directory, "listing its files"))?;
    if versions.into_iter().max().is_none_or(|version| version < FILED_SINCE) {
        return Err(StoreError::OldRedb { directory: directory.display().to_string() });
    }
    let converted = directory.join(REDB_CONVERTED);
    fs::rename(directory.join(REDB), &converted).map_err(io_error(directory, "renaming its database"))?;
    Ok(Some(converted))
}

/// Whether the summaries of a data directory are in redb.
pub fn is_of_redb(directory: &Path) -> bool {
    directory.join(REDB).exists() && !directory.join(DATABASE).exists()
}

/// A migration that has not been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Version of the data.
    pub from: u32,
    /// Version it would have.
    pub to: u32,
    /// Records it would rewrite.
    pub records: usize,
}

fn open_with<E: Engine + Send + Sync + 'static>(
    directory: &Path,
    lock: &Arc<DirectoryLock>,
) -> Result<Opened, StoreError> {
    let path = path_of(directory)?;
    clean_up(&path).map_err(io_error(directory, "finishing an interrupted migration"))?;
    let (engine, moved_aside) = open_or_start_anew::<E>(directory, &path, lock)?;
    let (from, steps) = pending_steps(&engine, directory)?;
    let (engine, migration) = if steps.is_empty() {
        engine.set_schema_version(from)?;
        (engine, None)
    } else {
        let (engine, migration) = migrate(engine, directory, &path, lock, from, steps)?;
        (engine, Some(migration))
    };
    let health = Health::of(directory);
    let slot = Arc::new(Slot::new(engine, directory, &path, lock, health.clone()));
    let opened = Spaces::of(|space| SlotSpace::new(&slot, space), directory, current_version(), &health)?;
    let Spaces { spaces, pins, recovery, companions } = opened;
    if moved_aside.is_some() {
        health.damaged("database", 1);
    }
    companions.into_iter().for_each(|companion| slot.accompany(companion));
    let reopen: Weak<dyn Reopen> = Arc::downgrade(&(slot as Arc<dyn Reopen>));
    let upkeep = Upkeep::new(health, reopen);
    remove_other_records(directory, current_version()).map_err(io_error(directory, "finishing a migration"))?;
    Ok(Opened { spaces, pins, moved_aside, migration, recovery, upkeep })
}

fn pending_with<E: Engine>(directory: &Path, lock: &Arc<DirectoryLock>) -> Result<Option<Pending>, StoreError> {
    let path = path_of(directory)?;
    if !path.exists() {
        return Ok(None);
    }
    let engine = E::open(&path, lock).map_err(|failure| io_error(directory, "opening it")(failure.into()))?;
    let (from, steps) = pending_steps(&engine, directory)?;
    if steps.is_empty() {
        return Ok(None);
    }
    let mut records = 0;
    for space in Spaces::of(|space| engine.space(space), directory, from, &Health::of(directory))?.spaces {
        records += space.keys(None, usize::MAX)?.len();
    }
    Ok(Some(Pending { from, to: current_version(), records }))
}

/// The version of a store and the steps to the current one. A new database has that of the files it stands beside, if
/// there are any.
fn pending_steps(engine: &impl Engine, directory: &Path) -> Result<(u32, &'static [Version]), StoreError> {
    let found = match engine.schema_version()? {
        Some(found) => found,
        None => {
            let versions = records_versions(directory).map_err(io_error(directory, "listing its files"))?;
            versions.into_iter().max().unwrap_or(current_version())
        }
    };
    let version_error = |source| StoreError::Version { directory: directory.display().to_string(), source };
    Ok((found, steps_from(found).map_err(version_error)?))
}

/// Path of the files of sled. A directory of redb must not look like an empty one.
fn path_of(directory: &Path) -> Result<PathBuf, StoreError> {
    if is_of_redb(directory) {
        return Err(StoreError::OfRedb { directory: directory.display().to_string() });
    }
    Ok(directory.join(DATABASE))
}
