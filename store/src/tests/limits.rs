//! How much is kept, and what goes first.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// Bytes of a record beyond its file, generously.
const OVERHEAD: u64 = 1024;

fn limited(bytes_max: u64) -> (Records, Arc<dyn Store>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let options = RecordOptions { bytes_max, now_ms: || 1_000, ..RecordOptions::STANDARD };
    (Records::with_options(Arc::clone(&store), options), store)
}

/// A plan that took so long to make.
fn costly(key: &PlanKey, size: usize, wall_ms: f64) -> StoredPlan {
    let mut stored = plan(key, size);
    stored.plan.provenance.get_or_insert_default().wall_time = canopy_wire::duration_of_ms(wall_ms);
    stored
}

fn kept(records: &Records) -> Vec<PlanKey> {
    records.list(None, 100).unwrap().iter().map(|summary| summary.key()).collect()
}

#[test]
fn what_is_least_worth_per_byte_goes_first() {
    let (records, _) = limited(4 * (10_000 + OVERHEAD));
    records.put(&key(1), &costly(&key(1), 10_000, 5_000.0)).unwrap();
    records.put(&key(2), &costly(&key(2), 10_000, 10.0)).unwrap();
    records.put(&key(3), &costly(&key(3), 10_000, 20.0)).unwrap();
    for _ in 0..9 {
        assert!(matches!(records.get(&key(2)).unwrap(), Lookup::Found(_)));
    }
    records.put(&key(4), &costly(&key(4), 20_000, 1.0)).unwrap();
    assert_eq!(kept(&records), [1, 2, 4].map(key), "20 ms unused go before 10 ms used nine times");
    assert_eq!(records.eviction_count(), 1);
    let usage = records.usage().unwrap();
    assert!(usage.bytes <= usage.bytes_max && usage.records == 3);
}

#[test]
fn pinned_plans_stay_and_unpinned_ones_go_again() {
    let (records, _) = limited(2 * (10_000 + OVERHEAD));
    records.put(&key(1), &costly(&key(1), 10_000, 1.0)).unwrap();
    assert!(records.pin(&key(1)).unwrap().unwrap().pinned);
    for byte in 2..6 {
        records.put(&key(byte), &costly(&key(byte), 10_000, 1e6)).unwrap();
        assert_eq!(kept(&records), [1, byte].map(key));
    }
    assert_eq!(records.evict(&key(1)).unwrap(), Eviction::Pinned);
    assert!(!records.unpin(&key(1)).unwrap().unwrap().pinned);
    records.put(&key(6), &costly(&key(6), 10_000, 1e6)).unwrap();
    assert_eq!(kept(&records), [5, 6].map(key));
    assert_eq!(records.evict(&key(5)).unwrap(), Eviction::Evicted);
    assert_eq!(records.evict(&key(5)).unwrap(), Eviction::Missing);
    assert_eq!(records.pin(&key(5)).unwrap(), None);
}

#[test]
fn a_plan_that_does_not_fit_beside_the_pinned_ones_is_refused_and_nothing_is_lost() {
    let (records, _) = limited(30_000);
    records.put(&key(1), &plan(&key(1), 10_000)).unwrap();
    records.put(&key(2), &plan(&key(2), 10_000)).unwrap();
    records.pin(&key(1)).unwrap();
    let error = records.put(&key(3), &plan(&key(3), 25_000)).unwrap_err();
    assert!(matches!(error, StoreError::Full { limit: 30_000, .. }), "{error}");
    assert!(error.to_string().contains("unpin plans or raise the limit"));
    assert_eq!(kept(&records), [1, 2].map(key));
}

#[test]
fn replacing_a_plan_keeps_its_pin_and_its_uses() {
    let (records, _) = limited(1 << 20);
    records.put(&key(1), &plan(&key(1), 10)).unwrap();
    records.pin(&key(1)).unwrap();
    records.get(&key(1)).unwrap();
    records.put(&key(1), &plan(&key(1), 5_000)).unwrap();
    let summary = records.summary(&key(1)).unwrap().unwrap();
    assert!(summary.pinned && summary.hits == 1 && summary.size_bytes > 5_000);
    let usage = records.usage().unwrap();
    assert_eq!((usage.bytes, usage.pinned_bytes, usage.pinned), (summary.size_bytes, summary.size_bytes, 1));
}

#[test]
fn uses_are_written_down_within_a_minute_of_use() {
    static NOW_MS: AtomicU64 = AtomicU64::new(1_000);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let options =
        RecordOptions { bytes_max: 1 << 20, now_ms: || NOW_MS.load(Ordering::Relaxed), ..RecordOptions::STANDARD };
    let records = Records::with_options(Arc::clone(&store), options);
    records.put(&key(1), &plan(&key(1), 10)).unwrap();
    let written = || PlanSummary::decode(&key(1), &store.summary(&key(1)).unwrap().unwrap()).unwrap();
    for (now_ms, hits_written) in [(2_000, 0), (61_000, 0), (61_001, 3), (100_000, 3), (121_002, 5)] {
        NOW_MS.store(now_ms, Ordering::Relaxed);
        records.get(&key(1)).unwrap();
        assert_eq!(written().hits, hits_written, "at {now_ms} ms");
    }
    assert_eq!(written().last_used_ms, 121_002);
    records.note_use(&key(1)).unwrap();
    let summary = records.summary(&key(1)).unwrap().unwrap();
    assert_eq!((summary.hits, summary.created_ms), (6, 1_000), "what is not written down yet counts, too");
}

#[test]
fn a_summary_that_cannot_be_read_is_made_again() {
    let (first, store) = limited(1 << 20);
    first.put(&key(1), &plan(&key(1), 10)).unwrap();
    let before = first.summary(&key(1)).unwrap();
    store.set_summaries(&[(key(1), vec![1, 2, 3]), (key(2), vec![4])], Durability::Synced).unwrap();
    let options = RecordOptions { bytes_max: 1 << 20, now_ms: || 1_000, ..RecordOptions::STANDARD };
    let second = Records::with_options(Arc::clone(&store), options);
    assert_eq!(kept(&second), [key(1)], "the one without a record is gone");
    assert_eq!(second.summary(&key(1)).unwrap(), before);
}

/// Overwrites plans of so many bytes over and over; the files must stay below twice the live data and one segment of
/// room per key.
fn check_disk_use(keys: u8, overwrites: usize, size: usize) -> (u64, u64) {
    let directory = tempfile::tempdir().unwrap();
    let records = Records::new(open(directory.path()));
    for round in 0..overwrites {
        let key = key(u8::try_from(round % usize::from(keys)).unwrap());
        let mut stored = plan(&key, size);
        stored.plan.steps = u32::try_from(round).unwrap();
        records.put(&key, &stored).unwrap();
    }
    let live = records.usage().unwrap().bytes;
    (disk_use(directory.path()), live)
}

fn disk_use(path: &Path) -> u64 {
    let metadata = fs::symlink_metadata(path).unwrap();
    if !metadata.is_dir() {
        return metadata.len();
    }
    fs::read_dir(path).unwrap().map(|entry| disk_use(&entry.unwrap().path())).sum()
}

#[test]
fn overwriting_does_not_eat_the_disk() {
    const KEYS: u8 = 20;
    // How much sled has not yet rewritten depends on when its threads run.
    const KEYS_ROOM: u64 = 512 * 1024 * KEYS as u64;
    let (used, live) = check_disk_use(KEYS, 120, 1_000_000);
    assert!(used <= 2 * live + KEYS_ROOM, "{used} bytes on the disk for {live}");
}
