use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use canopy_planner::Warning;
use canopy_prerequisites::Postgres;
use canopy_wire::StoredPlan;

use super::*;

mod archives;
mod damage;
mod filed;
mod limits;
mod power;
mod reopening;
mod versions;

const ENGINES: [StoreEngine; 2] = [StoreEngine::Sled, StoreEngine::Redb];

fn key(byte: u8) -> PlanKey {
    PlanKey::from_bytes([byte; 32])
}

/// A plan with a file of so many bytes.
pub(super) fn plan(key: &PlanKey, size: usize) -> StoredPlan {
    let content: Vec<u8> = (0_u8..=250).cycle().take(size).collect();
    let mut stored = StoredPlan::default();
    stored.warnings.push(Warning::new("W", "w".to_owned()));
    stored.plan.id = key.plan_id();
    stored.plan.content_key = key.to_string();
    stored.plan.artifacts.resize_with(1, Default::default);
    let file = &mut stored.plan.artifacts[0];
    (file.size_bytes, file.content) = (size as u64, Some(content.into()));
    stored
}

fn open(directory: &Path, engine: StoreEngine) -> Arc<dyn Store> {
    open_all(directory, engine).into_space(Space::Plans)
}

fn open_all(directory: &Path, engine: StoreEngine) -> Opened {
    let opened = open_store(directory, engine).unwrap();
    assert_eq!((&opened.moved_aside, &opened.migration), (&None, &None));
    assert!(opened.recovery.is_empty(), "{:?}", opened.recovery);
    opened
}

/// Spaces that remember nothing.
fn in_memory() -> Opened {
    let space = || -> Arc<dyn Store> { Arc::new(MemoryStore::default()) };
    Opened {
        spaces: Space::ALL.map(|_| space()).into(),
        pins: space(),
        moved_aside: None,
        migration: None,
        recovery: Recovery::default(),
        upkeep: Upkeep::none(),
        others: None,
    }
}

fn records(store: &Arc<dyn Store>) -> Records {
    Records::new(Arc::clone(store))
}

/// Runs a check on a new data directory of every kind.
fn on_every_engine(check: impl Fn(&str, &Opened)) {
    check("memory", &in_memory());
    if let Some(postgres) = Postgres::shared() {
        let directory = tempfile::tempdir().unwrap();
        check("PostgreSQL", &shared::tests::Server::new(directory.path(), &postgres.database()).opened);
    }
    for engine in ENGINES {
        let directory = tempfile::tempdir().unwrap();
        check(engine.name(), &open_all(directory.path(), engine));
    }
}

/// Runs a check on every space of every kind of store: what the others hold must not show.
fn on_every_space(check: impl Fn(&str, Arc<dyn Store>)) {
    on_every_engine(|engine, opened| {
        for space in Space::ALL {
            check(&format!("{engine}, {}", space.name()), Arc::clone(opened.space(space)));
        }
    });
}

#[test]
fn what_is_put_is_got_at_every_size() {
    on_every_space(|engine, store| {
        let records = records(&store);
        assert_eq!(records.get(&key(1)).unwrap(), Lookup::Missing, "{engine}");
        for size in [0, 1, 65_535, 65_536, 65_537, 1_000_000, 3] {
            let plan = plan(&key(1), size);
            records.put(&key(1), &plan).unwrap();
            assert_eq!(records.get(&key(1)).unwrap(), Lookup::Found(plan.into()), "{engine}: {size} bytes");
        }
        records.put_with(&key(2), &plan(&key(2), 200_000), Durability::Lazy).unwrap();
        assert_eq!(records.peek(&key(2)).unwrap(), Lookup::Found(plan(&key(2), 200_000).into()), "{engine}");
        assert_eq!(records.usage().unwrap().records, 2, "{engine}");
        assert_eq!(store.keys(None, 9).unwrap(), [key(1), key(2)], "{engine}");
    });
}

#[test]
fn a_damaged_record_is_quarantined_and_never_served() {
    on_every_space(|engine, store| {
        let records = records(&store);
        records.put(&key(1), &plan(&key(1), 10)).unwrap();
        records.put(&key(2), &plan(&key(2), 200_000)).unwrap();
        let summary = store.summary(&key(2)).unwrap().unwrap();
        let mut damaged = store.get(&key(2)).unwrap().unwrap();
        damaged[100_000] ^= 1;
        store.put(&key(2), &damaged, &summary).unwrap();
        assert_eq!(records.get(&key(2)).unwrap(), Lookup::Quarantined(DamagedRecord::Checksum), "{engine}");
        assert_eq!(records.get(&key(2)).unwrap(), Lookup::Missing, "{engine}: it is out of the way");
        let usage = records.usage().unwrap();
        assert_eq!((usage.records, usage.quarantined, records.corruption_count()), (1, 1, 1), "{engine}");
        assert_eq!(records.summary(&key(2)).unwrap(), None, "{engine}");

        let foreign = store.get(&key(1)).unwrap().unwrap();
        store.put(&key(3), &foreign, &summary).unwrap();
        let lookup = records.get(&key(3)).unwrap();
        assert_eq!(lookup, Lookup::Quarantined(DamagedRecord::Payload), "{engine}: a plan of another key");
    });
}

#[test]
fn lists_are_in_order_and_pages_join_up() {
    on_every_space(|engine, store| {
        let records = records(&store);
        for byte in [7, 3, 0xff, 0, 5] {
            records.put(&key(byte), &plan(&key(byte), 10)).unwrap();
        }
        let all: Vec<_> = records.list(None, 100).unwrap().iter().map(|summary| summary.key()).collect();
        assert_eq!(all, [0, 3, 5, 7, 0xff].map(key), "{engine}");
        let mut paged = Vec::new();
        while let page = records.list(paged.last().copied(), 2).unwrap()
            && !page.is_empty()
        {
            paged.extend(page.iter().map(|summary| summary.key()));
        }
        assert_eq!(paged, all, "{engine}");
        assert_eq!(store.keys(Some(&key(3)), 2).unwrap(), [key(5), key(7)], "{engine}");
    });
}

#[test]
fn plans_are_found_by_their_ids() {
    on_every_space(|engine, store| {
        let records = records(&store);
        let (zeros, other) = (PlanKey::from_bytes([0; 32]), key(9));
        for key in [zeros, other] {
            let plan = plan(&key, 10);
            records.put(&key, &plan).unwrap();
            assert_eq!(records.find(&plan.plan.id).unwrap(), Some(key), "{engine}");
        }
        for id in ["", "plans/", "plans/09", "plans/0A090909090909090909090909090909", &format!("plans/{other}")] {
            assert_eq!(records.find(id).unwrap(), None, "{engine}: {id}");
        }
        assert_eq!(records.find("plans/08080808080808080808080808080808").unwrap(), None, "{engine}");
    });
}

#[test]
fn removed_records_are_gone_with_their_summaries() {
    on_every_space(|engine, store| {
        let records = records(&store);
        records.put(&key(1), &plan(&key(1), 200_000)).unwrap();
        records.put(&key(2), &plan(&key(2), 10)).unwrap();
        store.remove(&[key(1), key(3)]).unwrap();
        assert_eq!(store.get(&key(1)).unwrap(), None, "{engine}");
        assert_eq!(store.summary(&key(1)).unwrap(), None, "{engine}");
        assert_eq!(store.keys(None, 9).unwrap(), [key(2)], "{engine}");
    });
}

#[test]
fn what_was_stored_is_there_after_reopening() {
    for engine in ENGINES {
        let directory = tempfile::tempdir().unwrap();
        let stored = plan(&key(1), 300_000);
        let records = Records::new(open(directory.path(), engine));
        records.put(&key(1), &stored).unwrap();
        records.pin(&key(1)).unwrap();
        assert!(matches!(records.get(&key(1)).unwrap(), Lookup::Found(_)));
        drop(records);
        let records = Records::new(open(directory.path(), engine));
        let summary = records.summary(&key(1)).unwrap().unwrap();
        assert_eq!((summary.pinned, summary.hits), (true, 1), "uses are written down when the store is closed");
        assert_eq!(records.get(&key(1)).unwrap(), Lookup::Found(stored.into()));
    }
}

#[test]
fn a_directory_that_others_may_change_is_refused_and_one_that_they_may_read_is_closed() {
    use std::os::unix::fs::PermissionsExt as _;
    for engine in ENGINES {
        let modes = [(0o777, None), (0o702, None), (0o755, Some(0o750)), (0o2775, Some(0o2770)), (0o700, Some(0o700))];
        for (mode, closed) in modes {
            let directory = tempfile::tempdir().unwrap();
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
            let opened = open_store(directory.path(), engine).map(drop);
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
}

#[test]
fn a_directory_in_use_is_refused_as_such() {
    for engine in ENGINES {
        let directory = tempfile::tempdir().unwrap();
        let _first = open(directory.path(), engine);
        assert!(matches!(open_store(directory.path(), engine), Err(StoreError::InUse { .. })));
    }
}

#[test]
fn a_store_of_the_other_engine_is_not_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path(), StoreEngine::Redb));
    let Err(error) = open_store(directory.path(), StoreEngine::Sled) else { panic!("an empty store is no answer") };
    assert!(error.to_string().contains("--store-engine redb"), "{error}");
}

#[test]
fn spaces_are_apart_and_all_there_after_reopening() {
    for engine in ENGINES {
        let directory = tempfile::tempdir().unwrap();
        let opened = open_all(directory.path(), engine);
        for space in Space::ALL {
            opened.space(space).put(&key(1), space.name().as_bytes(), &[]).unwrap();
        }
        opened.space(Space::Jobs).quarantine(&key(1)).unwrap();
        drop(opened);
        let opened = open_all(directory.path(), engine);
        for space in Space::ALL {
            let (quarantined, kept) = if space == Space::Jobs { (1, None) } else { (0, Some(space.name().into())) };
            let store = opened.space(space);
            assert_eq!(store.get(&key(1)).unwrap(), kept, "{}: {}", engine.name(), space.name());
            assert_eq!(store.quarantined_count().unwrap(), quarantined, "{}: {}", engine.name(), space.name());
        }
    }
}

#[test]
fn a_directory_is_held_as_long_as_any_space_of_it() {
    for engine in ENGINES {
        let directory = tempfile::tempdir().unwrap();
        let requests = open_all(directory.path(), engine).into_space(Space::Requests);
        assert!(matches!(open_store(directory.path(), engine), Err(StoreError::InUse { .. })));
        drop(requests);
        drop(open_all(directory.path(), engine));
    }
}
