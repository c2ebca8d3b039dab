//! Stores of other schema versions.

use super::engine::{DirectoryLock, Engine, lock_directory};
use super::*;

/// A store as a build of version 1 left it behind, with three plans.
fn plant_version_1(directory: &Path) {
    plant(directory, "v0001");
}

/// A store from the fixtures. The end of its file, all zeros, is cut off there.
fn plant(directory: &Path, version: &str) {
    const DB_BYTES: usize = 524_287;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(version);
    let target = directory.join("store");
    fs::create_dir_all(target.join("blobs")).unwrap();
    for entry in fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        if path.ends_with("db") {
            bytes.resize(DB_BYTES, 0);
        }
        fs::write(target.join(path.file_name().unwrap()), bytes).unwrap();
    }
}

const VERSION_1_PLANS: [&str; 3] = [
    "plans/44e505cc48c4d73b2bfbe415092d50de",
    "plans/8c2c6f359346116c2b31212e53f4412e",
    "plans/9a84d483cf7a6801047f75d31f481bc5",
];

fn check_migrated(store: &Arc<dyn Store>) {
    let records = records(store);
    let listed = records.list(None, 10).unwrap();
    assert_eq!(listed.iter().map(|summary| summary.id.as_str()).collect::<Vec<_>>(), VERSION_1_PLANS);
    for summary in listed {
        let Lookup::Found(stored) = records.peek(&summary.key()).unwrap() else { panic!("{} is lost", summary.id) };
        assert_eq!(stored.plan.name, summary.id);
        assert_eq!((summary.optimality.as_str(), summary.algorithm.as_str()), ("1/1", "forest"));
    }
    assert!(check_store(Space::Plans, store.as_ref(), Repair::Report, 0).unwrap().is_clean());
}

#[test]
fn a_store_of_version_1_is_brought_up_to_date_once() {
    let directory = tempfile::tempdir().unwrap();
    plant_version_1(directory.path());
    let pending = pending_migration(directory.path()).unwrap();
    assert_eq!(pending, Some(Pending { from: 1, to: canopy_migrations::current_version(), records: 3 }));
    let opened = open_store(directory.path()).unwrap();
    let expected = Migration { from: 1, to: canopy_migrations::current_version(), records: 3, left_behind: 0 };
    assert_eq!((&opened.migration, &opened.moved_aside), (&Some(expected), &None));
    check_migrated(opened.space(Space::Plans));
    drop(opened);
    assert_eq!(pending_migration(directory.path()).unwrap(), None);
    check_migrated(&open(directory.path()));
    let mut names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["lock", "records-4", "store"], "nothing is left over");
}

/// The same plans; a build of version 2 had pinned the second and served the third twice.
#[test]
fn a_store_of_version_2_keeps_its_pins_and_uses() {
    let directory = tempfile::tempdir().unwrap();
    plant(directory.path(), "v0002");
    let opened = open_store(directory.path()).unwrap();
    let expected = Migration { from: 2, to: canopy_migrations::current_version(), records: 3, left_behind: 0 };
    assert_eq!((&opened.migration, &opened.moved_aside), (&Some(expected), &None));
    check_migrated(opened.space(Space::Plans));
    let listed = records(opened.space(Space::Plans)).list(None, 10).unwrap();
    let history: Vec<_> = listed.iter().map(|summary| (summary.pinned, summary.hits)).collect();
    assert_eq!(history, [(false, 0), (true, 0), (false, 2)]);
    for space in Space::ALL {
        let expected = if space == Space::Plans { 3 } else { 0 };
        assert_eq!(opened.space(space).keys(None, 9).unwrap().len(), expected, "{}", space.name());
    }
}

/// The same plans and a topology; a build of version 3 had pinned the second plan and served the third twice. They move
/// out of the database into files, the answers to two requests stay in it.
#[test]
fn a_store_of_version_3_has_its_records_moved_into_files() {
    let directory = tempfile::tempdir().unwrap();
    plant(directory.path(), "v0003");
    let opened = open_store(directory.path()).unwrap();
    let expected = Migration { from: 3, to: canopy_migrations::current_version(), records: 6, left_behind: 0 };
    assert_eq!((&opened.migration, &opened.moved_aside), (&Some(expected), &None));
    let listed = records(opened.space(Space::Plans)).list(None, 10).unwrap();
    let history: Vec<_> = listed.iter().map(|summary| (summary.pinned, summary.hits)).collect();
    assert_eq!(history, [(false, 0), (true, 0), (false, 2)]);
    for space in Space::ALL {
        let report = check_store(space, opened.space(space).as_ref(), Repair::Report, 0).unwrap();
        let expected = match space {
            Space::Plans => 3,
            Space::Topologies => 1,
            Space::Requests => 2,
            _ => 0,
        };
        assert!(report.is_clean() && report.intact == expected, "{}: {report:?}", space.name());
    }
    for summary in listed {
        let name = summary.key().to_string();
        let file = directory.path().join("records-4/plans").join(&name[..2]).join(&name);
        assert!(file.exists(), "{}", file.display());
    }
}

/// Records of the version before, and some that no version can read, in every space.
#[test]
fn every_space_is_brought_up_to_date() {
    fn plant_older(path: &Path, lock: &Arc<DirectoryLock>) {
        let Ok(engine) = sled::SledEngine::open(path, lock) else { panic!("a new store opens") };
        for space in Space::ALL {
            let store = engine.space(space);
            if space == Space::Plans {
                Records::new(Arc::new(engine.space(space))).put(&key(1), &plan(&key(1), 100_000)).unwrap();
            } else {
                store.put(&key(1), &encode_record(b"payload"), &encode_record(b"summary")).unwrap();
                store.put(&key(2), &encode_record(b"payload"), &[]).unwrap();
            }
            for key in store.keys(None, 9).unwrap() {
                let older = |bytes: Option<Vec<u8>>| bytes.map(|bytes| restate(&bytes)).unwrap_or_default();
                let (record, summary) = (older(store.get(&key).unwrap()), older(store.summary(&key).unwrap()));
                store.put(&key, &record, &summary).unwrap();
            }
            store.put(&key(3), b"no record", &[]).unwrap();
        }
        engine.set_schema_version(2).unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    {
        let lock = Arc::new(lock_directory(directory.path()).unwrap());
        plant_older(&directory.path().join("store"), &lock);
    }
    let opened = open_store(directory.path()).unwrap();
    let expected = Migration { from: 2, to: canopy_migrations::current_version(), records: 19, left_behind: 10 };
    assert_eq!((&opened.migration, &opened.moved_aside), (&Some(expected), &None));
    let found = records(opened.space(Space::Plans)).peek(&key(1)).unwrap();
    assert_eq!(found, Lookup::Found(plan(&key(1), 100_000).into()));
    for space in Space::ALL.into_iter().skip(1) {
        let store = opened.space(space);
        assert_eq!(store.get(&key(1)).unwrap(), Some(encode_record(b"payload")));
        assert_eq!(store.summary(&key(1)).unwrap(), Some(encode_record(b"summary")));
        assert_eq!(store.summary(&key(2)).unwrap(), Some(Vec::new()));
    }
}

/// The same record as a build of version 2 wrote it; what is empty stays so.
fn restate(record: &[u8]) -> Vec<u8> {
    let Ok(payload) = decode_record(record) else { return record.to_vec() };
    let mut older = record[..16].to_vec();
    older[4] = 2;
    let digest = blake3::Hasher::new().update(&older).update(payload).finalize();
    older.extend_from_slice(digest.as_bytes());
    older.extend_from_slice(payload);
    older
}

/// The states in which a crash can leave a migration, by the names of the directories.
#[test]
fn a_migration_interrupted_anywhere_is_finished_or_done_again() {
    let migrated_once = tempfile::tempdir().unwrap();
    plant_version_1(migrated_once.path());
    drop(open_store(migrated_once.path()).unwrap());
    // Each: where the store of version 1 is, where the new one, and whether the migration is done again.
    for (old, new, again) in [
        ("store", "store.migrating", true),
        ("store", "store.migrated", true),
        ("store.old", "store.migrated", false),
        ("store.old", "store", false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        plant_version_1(directory.path());
        if old != "store" {
            fs::rename(directory.path().join("store"), directory.path().join(old)).unwrap();
        }
        copy(&migrated_once.path().join("store"), &directory.path().join(new));
        copy(&migrated_once.path().join("records-4"), &directory.path().join("records-4"));
        let opened = open_store(directory.path()).unwrap();
        assert_eq!((opened.migration.is_some(), &opened.moved_aside), (again, &None), "{old} and {new}");
        check_migrated(opened.space(Space::Plans));
    }
}

pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn data_of_a_newer_version_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));
    let newer = canopy_migrations::current_version() + 1;
    {
        let database = ::sled::open(directory.path().join("store")).unwrap();
        let meta = database.open_tree("meta").unwrap();
        meta.insert("schema_version", &newer.to_be_bytes()).unwrap();
        database.flush().unwrap();
    }
    let Err(error) = open_store(directory.path()) else { panic!("newer data was opened") };
    assert!(canopy_planner::chain(&error).contains(&format!("schema version {newer}")), "{error}");
    assert!(!directory.path().join("store.damaged-1").exists());
}
