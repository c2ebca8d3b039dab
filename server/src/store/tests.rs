use std::fs;

use canopy_proto::v1::{Artifact, Plan, Warning};

use super::*;

fn key(byte: u8) -> PlanKey {
    PlanKey::from_bytes([byte; 32])
}

/// A plan with a file of so many bytes.
fn plan(key: &PlanKey, size: usize) -> StoredPlan {
    let content: Vec<u8> = (0_u8..=250).cycle().take(size).collect();
    let artifact = Artifact { size_bytes: size as u64, content: Some(content.into()), ..Artifact::default() };
    let plan = Plan { content_key: key.to_string(), artifacts: vec![artifact], ..Plan::default() };
    StoredPlan { plan, warnings: vec![Warning { code: "W".to_owned(), text: "w".to_owned() }] }
}

fn open(directory: &std::path::Path) -> SledStore {
    let opened = SledStore::open(directory).unwrap();
    assert_eq!(opened.moved_aside, None);
    opened.store
}

/// What every store promises, whatever it is made of.
fn check_conformance(store: std::sync::Arc<dyn Store>) {
    let records = Records::new(std::sync::Arc::clone(&store));
    assert_eq!(records.get(&key(1)).unwrap(), Lookup::Missing);
    for size in [0, 1, 65_535, 65_536, 65_537, 1_000_000, 3] {
        let plan = plan(&key(1), size);
        records.put(&key(1), &plan).unwrap();
        assert_eq!(records.get(&key(1)).unwrap(), Lookup::Found(plan.into()), "{size} bytes");
    }
    records.put(&key(2), &plan(&key(2), 200_000)).unwrap();
    assert_eq!(records.count().unwrap(), 2);

    let mut damaged = store.get(&key(2)).unwrap().unwrap();
    damaged[100_000] ^= 1;
    store.put(&key(2), &damaged).unwrap();
    assert_eq!(records.get(&key(2)).unwrap(), Lookup::Quarantined(DamagedRecord::Checksum));
    assert_eq!(records.get(&key(2)).unwrap(), Lookup::Missing, "it is out of the way");
    assert_eq!((records.count().unwrap(), records.corruption_count()), (1, 1));

    let foreign = store.get(&key(1)).unwrap().unwrap();
    store.put(&key(3), &foreign).unwrap();
    assert_eq!(records.get(&key(3)).unwrap(), Lookup::Quarantined(DamagedRecord::Payload), "a plan of another key");
}

#[test]
fn memory_conforms() {
    check_conformance(std::sync::Arc::new(MemoryStore::default()));
}

#[test]
fn sled_conforms() {
    let directory = tempfile::tempdir().unwrap();
    check_conformance(std::sync::Arc::new(open(directory.path())));
}

#[test]
fn what_was_stored_is_there_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let stored = plan(&key(1), 300_000);
    Records::new(std::sync::Arc::new(open(directory.path()))).put(&key(1), &stored).unwrap();
    let records = Records::new(std::sync::Arc::new(open(directory.path())));
    assert_eq!(records.get(&key(1)).unwrap(), Lookup::Found(stored.into()));
}

#[test]
fn a_directory_in_use_is_refused_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let _first = open(directory.path());
    assert!(matches!(SledStore::open(directory.path()), Err(StoreError::InUse { .. })));
}

#[test]
fn a_store_that_does_not_open_is_moved_aside_and_an_empty_one_works() {
    let directory = tempfile::tempdir().unwrap();
    Records::new(std::sync::Arc::new(open(directory.path()))).put(&key(1), &plan(&key(1), 10)).unwrap();
    fs::write(directory.path().join("store").join("conf"), b"this is no configuration of sled").unwrap();
    let opened = SledStore::open(directory.path()).unwrap();
    let (aside, reason) = opened.moved_aside.expect("the damaged one is kept");
    assert_eq!(aside, directory.path().join("store.damaged-1"));
    assert!(aside.join("db").exists() && !reason.is_empty());
    let records = Records::new(std::sync::Arc::new(opened.store));
    assert_eq!(records.get(&key(1)).unwrap(), Lookup::Missing);
    records.put(&key(1), &plan(&key(1), 10)).unwrap();
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
    let error = SledStore::open(directory.path()).unwrap_err();
    assert!(crate::failure::chain(&error).contains(&format!("schema version {newer}")), "{error}");
    assert!(!directory.path().join("store.damaged-1").exists());
}
