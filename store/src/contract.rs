//! The behaviour that every kind of store must have, as checks that tests of each kind run.

#![allow(clippy::unwrap_used, reason = "tests call it, and fail where it panics")]

use std::sync::Arc;

use canopy_planner::{PlanKey, Warning};
use canopy_wire::StoredPlan;

use crate::{
    DamagedRecord, Durability, Lookup, MemoryStore, Opened, Records, Recovery, Repair, Space, Store, Upkeep,
    check_store, encode_record,
};

/// The key whose bytes are all this one.
pub fn key(byte: u8) -> PlanKey {
    PlanKey::from_bytes([byte; 32])
}

/// A plan with a file of so many bytes.
pub fn plan(key: &PlanKey, size: usize) -> StoredPlan {
    let content: Vec<u8> = (0_u8..=250).cycle().take(size).collect();
    let mut stored = StoredPlan::default();
    stored.warnings.push(Warning::new("W", "w".to_owned()));
    stored.plan.name = key.plan_id();
    stored.plan.content_key = key.to_string();
    stored.plan.artifacts.resize_with(1, Default::default);
    let file = &mut stored.plan.artifacts[0];
    file.size_bytes = size as u64;
    file.content = Some(content.into());
    stored
}

/// Spaces that are lost with the process.
pub fn in_memory() -> Opened {
    let space = || -> Arc<dyn Store> { Arc::new(MemoryStore::default()) };
    Opened {
        spaces: Space::ALL.map(|_| space()).into(),
        pins: space(),
        moved_aside: None,
        migration: None,
        recovery: Recovery::default(),
        upkeep: Upkeep::none(),
    }
}

/// Runs every check on every space of a new store each: what the other spaces hold must not show.
///
/// # Panics
/// A check failed.
pub fn check(kind: &str, mut open: impl FnMut() -> Opened) {
    type Check = fn(&str, &Arc<dyn Store>);
    const OF_A_SPACE: [Check; 6] = [
        keeps_every_size,
        quarantines_damaged_records,
        lists_in_order,
        finds_plans_by_their_ids,
        removes_summaries_with_records,
        is_checked_and_repaired,
    ];
    for check in OF_A_SPACE {
        let opened = open();
        for space in Space::ALL {
            check(&format!("{kind}, {}", space.name()), opened.space(space));
        }
    }
    is_checked_as_far_as_the_envelopes(kind, &open());
}

fn keeps_every_size(kind: &str, store: &Arc<dyn Store>) {
    let records = Records::new(Arc::clone(store));
    assert_eq!(records.get(&key(1)).unwrap(), Lookup::Missing, "{kind}");
    for size in [0, 1, 65_535, 65_536, 65_537, 1_000_000, 3] {
        let plan = plan(&key(1), size);
        records.put(&key(1), &plan).unwrap();
        assert_eq!(records.get(&key(1)).unwrap(), Lookup::Found(plan.into()), "{kind}: {size} bytes");
    }
    records.put_with(&key(2), &plan(&key(2), 200_000), Durability::Lazy).unwrap();
    assert_eq!(records.peek(&key(2)).unwrap(), Lookup::Found(plan(&key(2), 200_000).into()), "{kind}");
    assert_eq!(records.usage().unwrap().records, 2, "{kind}");
    assert_eq!(store.keys(None, 9).unwrap(), [key(1), key(2)], "{kind}");
}

fn quarantines_damaged_records(kind: &str, store: &Arc<dyn Store>) {
    let records = Records::new(Arc::clone(store));
    records.put(&key(1), &plan(&key(1), 10)).unwrap();
    records.put(&key(2), &plan(&key(2), 200_000)).unwrap();
    let summary = store.summary(&key(2)).unwrap().unwrap();
    let mut damaged = store.get(&key(2)).unwrap().unwrap();
    damaged[100_000] ^= 1;
    store.put(&key(2), &damaged, &summary).unwrap();
    assert_eq!(records.get(&key(2)).unwrap(), Lookup::Quarantined(DamagedRecord::Checksum), "{kind}");
    assert_eq!(records.get(&key(2)).unwrap(), Lookup::Missing, "{kind}: it is out of the way");
    let usage = records.usage().unwrap();
    assert_eq!((usage.records, usage.quarantined, records.corruption_count()), (1, 1, 1), "{kind}");
    assert_eq!(records.summary(&key(2)).unwrap(), None, "{kind}");

    let foreign = store.get(&key(1)).unwrap().unwrap();
    store.put(&key(3), &foreign, &summary).unwrap();
    let lookup = records.get(&key(3)).unwrap();
    assert_eq!(lookup, Lookup::Quarantined(DamagedRecord::Payload), "{kind}: a plan of another key");
}

fn lists_in_order(kind: &str, store: &Arc<dyn Store>) {
    let records = Records::new(Arc::clone(store));
    for byte in [7, 3, 0xff, 0, 5] {
        records.put(&key(byte), &plan(&key(byte), 10)).unwrap();
    }
    let all: Vec<_> = records.list(None, 100).unwrap().iter().map(|summary| summary.key()).collect();
    assert_eq!(all, [0, 3, 5, 7, 0xff].map(key), "{kind}");
    let mut paged = Vec::new();
    while let page = records.list(paged.last().copied(), 2).unwrap()
        && !page.is_empty()
    {
        paged.extend(page.iter().map(|summary| summary.key()));
    }
    assert_eq!(paged, all, "{kind}");
    assert_eq!(store.keys(Some(&key(3)), 2).unwrap(), [key(5), key(7)], "{kind}");
}

fn finds_plans_by_their_ids(kind: &str, store: &Arc<dyn Store>) {
    let records = Records::new(Arc::clone(store));
    let (zeros, other) = (PlanKey::from_bytes([0; 32]), key(9));
    for key in [zeros, other] {
        let plan = plan(&key, 10);
        records.put(&key, &plan).unwrap();
        assert_eq!(records.find(&plan.plan.name).unwrap(), Some(key), "{kind}");
    }
    for id in ["", "plans/", "plans/09", "plans/0A090909090909090909090909090909", &format!("plans/{other}")] {
        assert_eq!(records.find(id).unwrap(), None, "{kind}: {id}");
    }
    assert_eq!(records.find("plans/08080808080808080808080808080808").unwrap(), None, "{kind}");
}

fn removes_summaries_with_records(kind: &str, store: &Arc<dyn Store>) {
    let records = Records::new(Arc::clone(store));
    records.put(&key(1), &plan(&key(1), 200_000)).unwrap();
    records.put(&key(2), &plan(&key(2), 10)).unwrap();
    store.remove(&[key(1), key(3)]).unwrap();
    assert_eq!(store.get(&key(1)).unwrap(), None, "{kind}");
    assert_eq!(store.summary(&key(1)).unwrap(), None, "{kind}");
    assert_eq!(store.keys(None, 9).unwrap(), [key(2)], "{kind}");
}

fn is_checked_and_repaired(kind: &str, store: &Arc<dyn Store>) {
    let records = Records::new(Arc::clone(store));
    for byte in 1..=4 {
        records.put(&key(byte), &plan(&key(byte), 100)).unwrap();
    }
    assert!(check_store(Space::Plans, store.as_ref(), Repair::Report, 0).unwrap().is_clean(), "{kind}");
    let (record, summary) = (store.get(&key(1)).unwrap().unwrap(), store.summary(&key(1)).unwrap().unwrap());
    store.put(&key(1), &record[1..], &summary).unwrap();
    store.set_summaries(&[(key(2), summary.clone()), (key(9), summary)], Durability::Synced).unwrap();
    for repair in [Repair::Report, Repair::Fix] {
        let report = check_store(Space::Plans, store.as_ref(), repair, 0).unwrap();
        assert_eq!(report.intact, 3, "{kind}");
        assert_eq!(report.damaged, [(key(1), DamagedRecord::Magic)], "{kind}");
        assert_eq!((report.without_summary, report.without_record), (vec![key(2)], vec![key(9)]), "{kind}");
    }
    let report = check_store(Space::Plans, store.as_ref(), Repair::Fix, 0).unwrap();
    assert!(report.is_clean() && report.intact == 3 && report.quarantined == 1, "{kind}: {report:?}");
}

fn is_checked_as_far_as_the_envelopes(kind: &str, opened: &Opened) {
    for space in Space::ALL.into_iter().skip(1) {
        let store = opened.space(space);
        let intact = encode_record(b"whatever it means");
        store.put(&key(1), &intact, &intact).unwrap();
        store.put(&key(2), &intact, &[]).unwrap();
        store.put(&key(3), &intact, b"no summary").unwrap();
        store.put(&key(4), b"no record", &intact).unwrap();
        store.set_summaries(&[(key(5), intact)], Durability::Synced).unwrap();
        for (repair, quarantined) in [(Repair::Report, 0), (Repair::Fix, 1)] {
            let report = check_store(space, store.as_ref(), repair, 0).unwrap();
            let found = (report.intact, report.damaged.len(), report.without_summary, report.quarantined);
            assert_eq!(found, (3, 1, vec![key(3)], quarantined), "{kind}, {}", space.name());
            assert_eq!(report.without_record, [key(5)], "{kind}, {}", space.name());
        }
        assert!(check_store(space, store.as_ref(), Repair::Report, 0).unwrap().is_clean(), "{kind}");
        assert_eq!(store.summary(&key(3)).unwrap(), Some(Vec::new()), "to be made by whoever needs it");
    }
}
