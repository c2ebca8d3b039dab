use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use canopy_wire::StoredPlan;

use super::contract::{in_memory, key, plan};
use super::*;

mod damage;
mod filed;
mod limits;
mod power;
mod reopening;
mod versions;

fn open(directory: &Path) -> Arc<dyn Store> {
    open_all(directory).into_space(Space::Plans)
}

fn open_all(directory: &Path) -> Opened {
    let opened = open_store(directory).unwrap();
    assert_eq!((&opened.moved_aside, &opened.migration), (&None, &None));
    assert!(opened.recovery.is_empty(), "{:?}", opened.recovery);
    opened
}

fn records(store: &Arc<dyn Store>) -> Records {
    Records::new(Arc::clone(store))
}

#[test]
fn stores_of_this_crate_keep_the_contract() {
    contract::check("memory", in_memory);
    let mut directories = Vec::new();
    contract::check("sled", || {
        let directory = tempfile::tempdir().unwrap();
        let opened = open_all(directory.path());
        directories.push(directory);
        opened
    });
}

#[test]
fn what_was_stored_is_there_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let stored = plan(&key(1), 300_000);
    let records = Records::new(open(directory.path()));
    records.put(&key(1), &stored).unwrap();
    records.pin(&key(1)).unwrap();
    assert!(matches!(records.get(&key(1)).unwrap(), Lookup::Found(_)));
    drop(records);
    let records = Records::new(open(directory.path()));
    let summary = records.summary(&key(1)).unwrap().unwrap();
    assert_eq!((summary.pinned, summary.hits), (true, 1), "uses are written down when the store is closed");
    assert_eq!(records.get(&key(1)).unwrap(), Lookup::Found(stored.into()));
}

#[test]
fn a_directory_that_others_may_change_is_refused_and_one_that_they_may_read_is_closed() {
    use std::os::unix::fs::PermissionsExt as _;
    let modes = [(0o777, None), (0o702, None), (0o755, Some(0o750)), (0o2775, Some(0o2770)), (0o700, Some(0o700))];
    for (mode, closed) in modes {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
        let opened = open_store(directory.path()).map(drop);
        match closed {
            None => {
                let problem = opened.unwrap_err().to_string();
                assert!(problem.contains("every user of this machine may change"), "{mode:o}: {problem}");
                assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "{mode:o}");
            }
            Some(closed) => {
                opened.unwrap();
                let found = fs::metadata(directory.path()).unwrap().permissions().mode() & 0o7777;
                assert_eq!(found, closed, "{mode:o}");
            }
        }
    }
}

#[test]
fn a_directory_in_use_is_refused_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let _first = open(directory.path());
    assert!(matches!(open_store(directory.path()), Err(StoreError::InUse { .. })));
}

/// A directory as a release with redb left it: the summaries are in a file that is no longer read.
fn of_redb(directory: &Path) {
    let records = Records::new(open(directory));
    for byte in 1..=3 {
        records.put(&key(byte), &plan(&key(byte), 1000)).unwrap();
    }
    drop(records);
    fs::remove_dir_all(directory.join("store")).unwrap();
    fs::create_dir(directory.join("store-redb")).unwrap();
    fs::write(directory.join("store-redb/db"), b"redb").unwrap();
}

#[test]
fn a_directory_of_redb_is_not_passed_over_and_is_converted_once() {
    let directory = tempfile::tempdir().unwrap();
    of_redb(directory.path());
    let Err(error) = open_store(directory.path()) else { panic!("an empty store is no answer") };
    assert!(error.to_string().contains("canopyd migrate --data-dir"), "{error}");
    let Err(error) = pending_migration(directory.path()) else { panic!("it is not read") };
    assert!(error.to_string().contains("canopyd migrate --data-dir"), "{error}");
    let converted = convert_from_redb(directory.path()).unwrap().expect("it is of redb");
    assert!(converted.join("db").exists());
    assert_eq!(convert_from_redb(directory.path()).unwrap(), None);
    let opened = open_store(directory.path()).unwrap();
    assert_eq!(opened.recovery, Recovery { restored: 3, ..Recovery::default() });
    let records = records(opened.space(Space::Plans));
    for byte in 1..=3 {
        assert_eq!(records.get(&key(byte)).unwrap(), Lookup::Found(plan(&key(byte), 1000).into()));
    }
}

/// Before version 4 the records were inside the database.
#[test]
fn a_directory_of_redb_without_files_of_records_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    of_redb(directory.path());
    fs::remove_dir_all(directory.path().join("records-4")).unwrap();
    let Err(error) = convert_from_redb(directory.path()) else { panic!("nothing would be left") };
    assert!(error.to_string().contains("the release before"), "{error}");
    assert!(directory.path().join("store-redb/db").exists());
}

#[test]
fn a_directory_that_is_not_there_is_not_made_to_be_converted() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    assert_eq!(convert_from_redb(&missing).unwrap(), None);
    assert!(!missing.exists());
}

#[test]
fn spaces_are_apart_and_all_there_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let opened = open_all(directory.path());
    for space in Space::ALL {
        opened.space(space).put(&key(1), space.name().as_bytes(), &[]).unwrap();
    }
    opened.space(Space::Jobs).quarantine(&key(1)).unwrap();
    drop(opened);
    let opened = open_all(directory.path());
    for space in Space::ALL {
        let (quarantined, kept) = if space == Space::Jobs { (1, None) } else { (0, Some(space.name().into())) };
        let store = opened.space(space);
        assert_eq!(store.get(&key(1)).unwrap(), kept, "{}", space.name());
        assert_eq!(store.quarantined_count().unwrap(), quarantined, "{}", space.name());
    }
}

#[test]
fn a_directory_is_held_as_long_as_any_space_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let requests = open_all(directory.path()).into_space(Space::Requests);
    assert!(matches!(open_store(directory.path()), Err(StoreError::InUse { .. })));
    drop(requests);
    drop(open_all(directory.path()));
}
