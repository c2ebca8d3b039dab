//! Stores that go into a database and back, and commands on a database.

use std::collections::BTreeMap;

use bytes::Bytes;
use canopy_database::{Database, Jobs, NewJob, Options, Who};
use canopy_import::ClusterCounts;
use canopy_prerequisites::Postgres;
use canopy_topology::{TopologyLimits, generate};
use tempfile::TempDir;

use super::*;
use crate::store::clusters::{ClusterName, ClusterStore};
use crate::store::receipts::{Claim, ReceiptOptions, Receipts, Repeatable};
use crate::store::topologies::{TopologyStore, TopologyStoreOptions};
use crate::store::{RecordOptions, SharedSpaces, encode_record, open_shared_store};

/// What is under the keys of spaces, and which plans are pinned.
type Contents = BTreeMap<(&'static str, PlanKey), (Vec<u8>, Vec<u8>)>;

/// Of a store, but for jobs and for the name under which a log of events goes on.
fn contents(opened: &Opened) -> Contents {
    let mut contents = Contents::new();
    for space in Space::ALL.into_iter().filter(|space| *space != Space::Jobs) {
        let store = opened.space(space);
        for key in store.keys(None, usize::MAX).unwrap() {
            let (record, summary) = (store.get(&key).unwrap().unwrap(), store.summary(&key).unwrap());
            contents.insert((space.name(), key), (record, summary.unwrap_or_default()));
        }
    }
    contents.remove(&("replans", EventLog::HEAD));
    let pins = opened.pins.keys(None, usize::MAX).unwrap();
    contents.extend(pins.into_iter().map(|key| (("pins", key), Default::default())));
    contents
}

fn in_folder(directory: &Path) -> Contents {
    contents(&open_store(directory).unwrap())
}

fn connect(address: &str) -> Database {
    Database::new(&Options { address: address.parse().unwrap(), connections: 4 }).unwrap()
}

/// A server that takes part.
fn one() -> Who {
    Who { name: "one:1".to_owned(), ..Who::default() }
}

fn spaces(address: &str) -> SharedSpaces {
    let database = connect(address);
    database.migrate().unwrap();
    SharedSpaces::open(&database).unwrap()
}

fn in_database(address: &str) -> Contents {
    contents(&spaces(address).uncached())
}

/// A plan with a file of so many bytes.
fn large_plan(key: &PlanKey, size: usize) -> StoredPlan {
    let mut stored = plan(key);
    stored.plan.name = key.plan_id();
    stored.plan.artifacts.resize_with(1, Default::default);
    let file = &mut stored.plan.artifacts[0];
    (file.size_bytes, file.content) = (size as u64, Some(vec![7; size].into()));
    stored
}

/// A data directory with something in every space.
fn full() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let opened = open_store(directory.path()).unwrap();
    let space = |space: Space| Arc::clone(opened.space(space));
    let records = Records::with_pins(space(Space::Plans), Arc::clone(&opened.pins), RecordOptions::STANDARD);
    for (byte, size) in [(1, 10), (2, 200_000), (3, 3_000_000)] {
        records.put(&key(byte), &large_plan(&key(byte), size)).unwrap();
    }
    records.pin(&key(2)).unwrap();
    assert!(matches!(records.get(&key(3)).unwrap(), Lookup::Found(_)));
    let topologies = TopologyStore::new(space(Space::Topologies), TopologyStoreOptions::STANDARD);
    topologies.put(&generate("ring:4", &TopologyLimits::STANDARD).unwrap()).unwrap();
    let counts = ClusterCounts { nodes: 1, ranks: 8, switches: 2 };
    let clusters = ClusterStore::new(space(Space::Clusters), clock::unix_ms);
    clusters.put(&ClusterName::read("clusters/prod").unwrap(), counts, Bytes::from_static(b"prod")).unwrap();
    let request = Repeatable::new("PinPlan", "123e4567-e89b-42d3-a456-426614174000", &"plans/a".to_owned());
    let receipts = Receipts::new(space(Space::Requests), ReceiptOptions::STANDARD);
    let Claim::Open(open) = receipts.claim(&request.unwrap().unwrap()).unwrap() else { panic!("it is the first") };
    open.keep(b"pinned".to_vec());
    let put = |of: Space, number: u64, summary: &[u8]| {
        let record = encode_record(format!("{} {number}", of.name()).as_bytes());
        opened.space(of).put(&PlanKey::numbered(number), &record, summary).unwrap();
    };
    (0..300).for_each(|number| put(Space::Finds, number, &[]));
    put(Space::Schedules, 1, &encode_record(b"17"));
    put(Space::Jobs, 1, &[]);
    for number in 1..=2 {
        put(Space::Faults, number, &[]);
        put(Space::Leases, number, &encode_record(b"state"));
        put(Space::Replans, number, &[]);
    }
    let log = EventLog::head_of_copy(None, 5);
    opened.space(Space::Replans).put(&EventLog::HEAD, &log, &[]).unwrap();
    directory
}

const FIRST: &str = "\
topologies: 1 imported, 0 already there
clusters: 1 imported, 0 already there
schedules: 1 imported, 0 already there
finds: 300 imported, 0 already there
plans: 3 imported, 0 already there
requests: 1 imported, 0 already there
replans: 2 imported, 0 already there
faults: 2 imported, 0 already there
leases: 2 imported, 0 already there
";

#[test]
fn all_of_a_store_goes_into_a_database_and_back() {
    let Some(postgres) = Postgres::shared() else { return };
    let (address, directory) = (postgres.database(), full());
    let before = in_folder(directory.path());
    let (text, result) = run(directory.path(), &["import-store", "--database", &address]);
    result.unwrap();
    let rest = text.strip_prefix("migrated the schema of the database from version 0 to 3\n").unwrap();
    let rest = rest.strip_prefix(FIRST).unwrap_or_else(|| panic!("{text}"));
    assert!(rest.starts_with("1 unfinished jobs stay in the folder"), "{text}");
    assert_eq!(in_database(&address), before);
    assert_eq!(in_folder(directory.path()), before, "it is only read");
    // Again, with the same end.
    let (text, result) = run(directory.path(), &["import-store", "--database", &address]);
    result.unwrap();
    assert!(text.contains("plans: 0 imported, 3 already there\n"), "{text}");
    assert!(text.contains("faults, leases and replans: imported by an earlier run\n"), "{text}");
    assert_eq!(in_database(&address), before);
    let back = directory.path().join("back");
    let arguments = ["import-store", "--back", "--database", &address];
    let (text, result) = run(&back, &arguments);
    result.unwrap();
    assert_eq!(text, FIRST);
    assert_eq!(in_folder(&back), before);
    let error = run(&back, &arguments).1.unwrap_err();
    assert!(matches!(error, MaintenanceError::NotEmpty { .. }) && error.exit_status() == 2, "{error}");
    // A server finds it all.
    let cache = tempfile::tempdir().unwrap();
    let (opened, _others) = open_shared_store(cache.path(), &connect(&address)).unwrap();
    let records = Records::with_pins(Arc::clone(opened.space(Space::Plans)), opened.pins, RecordOptions::STANDARD);
    let usage = records.usage().unwrap();
    assert_eq!((usage.records, usage.pinned), (3, 1));
    assert_eq!(records.get(&key(3)).unwrap(), Lookup::Found(large_plan(&key(3), 3_000_000).into()));
    assert_eq!(records.summary(&key(3)).unwrap().unwrap().hits, 2);
}

#[test]
fn an_interrupted_import_goes_on_from_there() {
    let Some(postgres) = Postgres::shared() else { return };
    let (address, directory) = (postgres.database(), full());
    run(directory.path(), &["import-store", "--database", &address]).1.unwrap();
    let whole = in_database(&address);
    let opened = spaces(&address).uncached();
    opened.space(Space::Plans).remove(&[key(3)]).unwrap();
    opened.space(Space::Leases).remove(&[PlanKey::numbered(2)]).unwrap();
    opened.space(Space::Replans).remove(&[EventLog::HEAD]).unwrap();
    let (text, result) = run(directory.path(), &["import-store", "--database", &address]);
    result.unwrap();
    assert!(text.contains("plans: 1 imported, 2 already there\n"), "{text}");
    assert!(text.contains("leases: 1 imported, 1 already there\n"), "{text}");
    assert_eq!(in_database(&address), whole);
    assert!(spaces(&address).uncached().space(Space::Replans).get(&EventLog::HEAD).unwrap().is_some());
}

#[test]
fn leases_of_others_are_not_mixed_with_those_of_a_folder() {
    let Some(postgres) = Postgres::shared() else { return };
    let (address, directory) = (postgres.database(), full());
    let opened = spaces(&address).uncached();
    opened.space(Space::Leases).put(&PlanKey::numbered(9), &encode_record(b"another"), &[]).unwrap();
    let before = in_database(&address);
    let error = run(directory.path(), &["import-store", "--database", &address]).1.unwrap_err();
    assert!(error.describe().contains("0 faults, 1 leases and 0 events"), "{}", error.describe());
    assert!(error.describe().contains("--without-leases") && error.exit_status() == 2, "{}", error.describe());
    assert_eq!(in_database(&address), before, "nothing was changed");
    let (text, result) = run(directory.path(), &["import-store", "--database", &address, "--without-leases"]);
    result.unwrap();
    assert!(text.contains("plans: 3 imported") && text.contains("faults, leases and replans: left out\n"), "{text}");
    let leases = spaces(&address).uncached().space(Space::Leases).keys(None, 9).unwrap();
    assert_eq!(leases, [PlanKey::numbered(9)]);
}

#[test]
fn damaged_records_are_left_out_and_counted() {
    let Some(postgres) = Postgres::shared() else { return };
    let (address, directory) = (postgres.database(), filled());
    {
        let store = open_store(directory.path()).unwrap().into_space(Space::Plans);
        store.put(&key(1), b"no record", b"no summary").unwrap();
    }
    let (text, result) = run(directory.path(), &["import-store", "--database", &address]);
    result.unwrap();
    assert!(text.contains("plans: 1 imported, 0 already there, 1 damaged and left out\n"), "{text}");
    assert!(text.ends_with("faults, leases and replans: the folder has none\n"), "{text}");
}

#[test]
fn plans_may_be_imported_while_servers_are_there_but_leases_may_not() {
    let Some(postgres) = Postgres::shared() else { return };
    let (address, directory, cache) = (postgres.database(), filled(), tempfile::tempdir().unwrap());
    let database = connect(&address);
    let (opened, others) = open_shared_store(cache.path(), &database).unwrap();
    let server = Jobs::join(&database, one()).unwrap();
    assert_eq!(database.servers().unwrap(), ["one:1"]);
    let plans = Arc::clone(opened.space(Space::Plans));
    let records = Records::with_pins(plans, Arc::clone(&opened.pins), RecordOptions::STANDARD);
    records.put(&key(2), &plan(&key(2))).unwrap();
    assert_eq!(records.usage().unwrap().pinned, 0);
    // The folder of an earlier build: the pin is in the summary alone.
    let (text, result) = run(directory.path(), &["import-store", "--database", &address]);
    result.unwrap();
    assert!(text.contains("plans: 1 imported, 1 already there\n"), "{text}");
    others.hear_of_all().unwrap();
    let usage = records.usage().unwrap();
    assert_eq!((usage.records, usage.pinned), (2, 1), "the server has heard of it");
    let full = full();
    let error = run(full.path(), &["import-store", "--database", &address]).1.unwrap_err();
    assert!(error.describe().contains("servers use the database: one:1; stop them"), "{}", error.describe());
    assert_eq!(error.exit_status(), 6);
    let back = directory.path().join("back");
    let error = run(&back, &["import-store", "--back", "--database", &address]).1.unwrap_err();
    assert!(matches!(error, MaintenanceError::ServersThere { .. }) && !back.exists(), "{error}");
    let job = NewJob { operation: 1, key: [7; 32], weight: 1, ..NewJob::default() };
    server.submit(&job, std::time::Duration::ZERO).unwrap();
    server.part().unwrap();
    assert!(database.servers().unwrap().is_empty());
    run(full.path(), &["import-store", "--database", &address]).1.unwrap();
    let (text, result) = run(&back, &["import-store", "--back", "--database", &address]);
    result.unwrap();
    assert!(text.contains("1 unfinished jobs stay in the database"), "{text}");
}

#[test]
fn the_schema_is_migrated_and_a_dry_run_only_says_so() {
    let Some(postgres) = Postgres::shared() else { return };
    let (address, directory) = (postgres.database(), tempfile::tempdir().unwrap());
    let nowhere = directory.path().join("nowhere");
    let migrate = |more: &[&str]| {
        let (text, result) = run(&nowhere, &[&["migrate", "--database", &address], more].concat());
        result.unwrap();
        text
    };
    assert_eq!(migrate(&["--dry-run"]), "would migrate the schema of the database from version 0 to 3\n");
    assert_eq!(connect(&address).schema_version().unwrap(), 0);
    assert_eq!(migrate(&[]), "migrated the schema of the database from version 0 to 3\n");
    assert_eq!(connect(&address).schema_version().unwrap(), 3);
    for more in [&["--dry-run"][..], &[]] {
        assert_eq!(migrate(more), "nothing to do: the schema of the database has version 3\n");
    }
    assert!(!nowhere.exists());
}

#[test]
fn a_database_is_backed_up_checked_and_restored() {
    let Some(postgres) = Postgres::shared() else { return };
    let (address, other, directory) = (postgres.database(), postgres.database(), full());
    run(directory.path(), &["import-store", "--database", &address]).1.unwrap();
    let server = Jobs::join(&connect(&address), one()).unwrap();
    let file = directory.path().join("all.canopy");
    let file = file.to_str().unwrap();
    let nowhere = directory.path().join("nowhere");
    let (text, result) = run(&nowhere, &["backup", file, "--database", &address]);
    result.unwrap();
    assert!(text.starts_with("3 plans, 1 topology, 1 cluster, 2 leases and 2 faults written"), "{text}");
    for command in [&["restore", file][..], &["fsck"]] {
        let error = run(&nowhere, &[command, &["--database", &address]].concat()).1.unwrap_err();
        assert!(matches!(error, MaintenanceError::ServersThere { .. }), "{error}");
    }
    server.part().unwrap();
    let (text, result) = run(&nowhere, &["restore", file, "--database", &other]);
    result.unwrap();
    assert!(text.contains("3 plans, 1 topology, 1 cluster, 2 leases and 2 faults restored"), "{text}");
    let in_archives =
        |(space, _): &(&str, PlanKey), _: &mut (Vec<u8>, Vec<u8>)| !["schedules", "finds", "requests"].contains(space);
    let (mut expected, mut found) = (in_database(&address), in_database(&other));
    expected.retain(in_archives);
    found.retain(in_archives);
    // That all pins are apart is said by the first server.
    expected.retain(|(space, key), _| *space != "pins" || *key != PlanKey::from_bytes([0xff; 32]));
    assert_eq!(found, expected);
    let (text, result) = run(&nowhere, &["fsck", "--database", &other]);
    result.unwrap();
    assert!(text.contains("2 leases of ") && text.contains("0 damaged, 0 in quarantine"), "{text}");
    assert!(!nowhere.exists(), "a database needs no directory");
}

#[test]
fn what_cannot_be_imported_is_refused_with_what_to_do() {
    let Some(postgres) = Postgres::shared() else { return };
    let (address, directory) = (postgres.database(), filled());
    let error = run(directory.path(), &["import-store"]).1.unwrap_err();
    assert!(error.describe().contains("--database") && error.exit_status() == 2, "{}", error.describe());
    let nowhere = directory.path().join("nowhere");
    let error = run(&nowhere, &["import-store", "--database", &address]).1.unwrap_err();
    assert!(matches!(error, MaintenanceError::NoStore { .. }) && !nowhere.exists(), "{error}");
    for command in [&["import-store", "--back"][..], &["fsck"], &["backup", "/dev/null"]] {
        let error = run(&nowhere, &[command, &["--database", &address]].concat()).1.unwrap_err();
        assert!(matches!(error, MaintenanceError::NoSchema) && !nowhere.exists(), "{error}");
    }
    assert_eq!(connect(&address).schema_version().unwrap(), 0, "a look makes nothing");
    let _server = open_store(directory.path()).unwrap();
    let error = run(directory.path(), &["import-store", "--database", &address]).1.unwrap_err();
    assert_eq!(error.exit_status(), 6);
}
