//! Stores of other schema versions.

use super::*;

/// A store as a build of version 1 left it behind, with three plans. The end of its file, all zeros, is cut off.
fn plant_version_1(directory: &Path) {
    const DB_BYTES: usize = 524_287;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v0001");
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
        let Lookup::Found(stored) = records.peek(&summary.key).unwrap() else { panic!("{} is lost", summary.id) };
        assert_eq!(stored.plan.id, summary.id);
        assert_eq!((summary.optimality.as_str(), summary.algorithm.as_str()), ("1/1", "forest"));
    }
    assert!(check_store(store.as_ref(), Repair::Report, 0).unwrap().is_clean());
}

#[test]
fn a_store_of_version_1_is_brought_up_to_date_once() {
    let directory = tempfile::tempdir().unwrap();
    plant_version_1(directory.path());
    let pending = pending_migration(directory.path(), StoreEngine::Sled).unwrap();
    assert_eq!(pending, Some(Pending { from: 1, to: canopy_migrations::current_version(), records: 3 }));
    let opened = open_store(directory.path(), StoreEngine::Sled).unwrap();
    let expected = Migration { from: 1, to: canopy_migrations::current_version(), records: 3, left_behind: 0 };
    assert_eq!((opened.migration, opened.moved_aside), (Some(expected), None));
    check_migrated(&opened.store);
    drop(opened.store);
    assert_eq!(pending_migration(directory.path(), StoreEngine::Sled).unwrap(), None);
    check_migrated(&open(directory.path(), StoreEngine::Sled));
    let mut names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["lock", "store"], "nothing is left over");
}

/// The states in which a crash can leave a migration, by the names of the directories.
#[test]
fn a_migration_interrupted_anywhere_is_finished_or_done_again() {
    let migrated_once = tempfile::tempdir().unwrap();
    plant_version_1(migrated_once.path());
    drop(open_store(migrated_once.path(), StoreEngine::Sled).unwrap());
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
        let opened = open_store(directory.path(), StoreEngine::Sled).unwrap();
        assert_eq!((opened.migration.is_some(), opened.moved_aside), (again, None), "{old} and {new}");
        check_migrated(&opened.store);
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
    drop(open(directory.path(), StoreEngine::Sled));
    let newer = canopy_migrations::current_version() + 1;
    {
        let database = ::sled::open(directory.path().join("store")).unwrap();
        let meta = database.open_tree("meta").unwrap();
        meta.insert("schema_version", &newer.to_be_bytes()).unwrap();
        database.flush().unwrap();
    }
    let Err(error) = open_store(directory.path(), StoreEngine::Sled) else { panic!("newer data was opened") };
    assert!(crate::failure::chain(&error).contains(&format!("schema version {newer}")), "{error}");
    assert!(!directory.path().join("store.damaged-1").exists());
}
