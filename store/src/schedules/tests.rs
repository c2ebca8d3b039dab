use canopy_canonical::{Budget, WORK_STANDARD, normalised};
use canopy_plan::Provenance;
use canopy_schedule::{Collective, CollectiveKind, Shares};
use canopy_synth::{Algorithm, Never, Silent, SumOptions, SynthesisRequest, TreeLimits, bound, synthesize};
use canopy_topology::generate;

use super::*;
use crate::MemoryStore;

fn options(bytes_max: u64, memory_bytes_max: u64) -> ScheduleOptions {
    ScheduleOptions { bytes_max, memory_bytes_max, limits: TopologyLimits::STANDARD }
}

fn key(byte: u8) -> ScheduleKey {
    ScheduleKey::from_bytes([byte; 32])
}

/// What becomes of a record.
type Damage = fn(&[u8]) -> Vec<u8>;

fn plan(expression: &str) -> Arc<PlanFile> {
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let budget = Budget { work_max: WORK_STANDARD, stop: &|| false };
    let topology = normalised(&topology, &[], budget).unwrap().unwrap().topology;
    let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count()).unwrap();
    let (limits, sums) = (TreeLimits::NONE, SumOptions::AUTO);
    let request = SynthesisRequest { limits, sums, ..SynthesisRequest::new(collective, Algorithm::Forest) };
    let schedule = synthesize(&topology, &request, &Never, &Silent).unwrap();
    let bound = bound(&topology, collective, &Shares::Equal, &Never).unwrap();
    let provenance = Provenance { version: "1".to_owned(), algorithm: "forest".to_owned() };
    let achieved = bound.upper.clone();
    Arc::new(PlanFile { topology, schedule, form: None, bound, achieved, in_network: None, provenance })
}

#[test]
fn what_is_kept_is_found_with_and_without_memory_and_after_a_restart() {
    let plan = plan("ring:5");
    for memory_bytes_max in [0, 1 << 20] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        for restart in 0..2 {
            let schedules = StoredSchedules::new(Arc::clone(&store), options(1 << 20, memory_bytes_max));
            if restart == 0 {
                assert!(!schedules.has(&key(1)));
                assert_eq!(schedules.get(&key(1), &plan.topology), None);
                schedules.put(&key(1), &plan);
            }
            assert!(schedules.has(&key(1)) && !schedules.has(&key(2)));
            assert_eq!(schedules.get(&key(1), &plan.topology).as_ref(), Some(&plan));
            assert_eq!(schedules.usage().unwrap().0, 1);
        }
    }
}

#[test]
fn a_schedule_for_another_network_is_not_handed_out() {
    let (kept, other) = (plan("ring:5"), plan("ring:6"));
    let schedules = StoredSchedules::new(Arc::new(MemoryStore::default()), options(1 << 20, 0));
    schedules.put(&key(1), &kept);
    assert_eq!(schedules.get(&key(1), &other.topology), None);
    assert!(schedules.get(&key(1), &kept.topology).is_some());
}

#[test]
fn a_damaged_record_costs_a_search_and_stays_for_a_person() {
    let plan = plan("ring:5");
    let store = Arc::new(MemoryStore::default());
    let schedules = StoredSchedules::new(Arc::clone(&store) as Arc<dyn Store>, options(1 << 20, 0));
    let damages: [Damage; 3] = [
        |record| record[..record.len() - 1].to_vec(),
        |_| encode_record(b"no plan"),
        |record| [&record[..60], &[record[60] ^ 1], &record[61..]].concat(),
    ];
    for (byte, damage) in (1_u8..).zip(damages) {
        schedules.put(&key(byte), &plan);
        let stored = stored_under(&key(byte));
        let record = store.get(&stored).unwrap().unwrap();
        store.put(&stored, &damage(&record), &[]).unwrap();
        assert_eq!(schedules.get(&key(byte), &plan.topology), None);
        assert!(!schedules.has(&key(byte)));
        assert_eq!(store.quarantined_count().unwrap(), usize::from(byte));
        schedules.put(&key(byte), &plan);
        assert!(schedules.get(&key(byte), &plan.topology).is_some());
    }
}

#[test]
fn who_is_removed_is_neither_in_memory_nor_on_the_disk() {
    let (plan, store) = (plan("ring:5"), Arc::new(MemoryStore::default()));
    let schedules = StoredSchedules::new(Arc::clone(&store) as Arc<dyn Store>, options(1 << 20, 1 << 20));
    (1..=3).for_each(|byte| schedules.put(&key(byte), &plan));
    schedules.remove(&[key(1), key(3), key(9)]);
    assert_eq!((1..=3).map(|byte| schedules.has(&key(byte))).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(schedules.get(&key(1), &plan.topology), None);
    assert!(schedules.get(&key(2), &plan.topology).is_some());
    assert_eq!(store.keys(None, 9).unwrap().len(), 1);
}

#[test]
fn those_not_used_for_longest_make_room() {
    let plan = plan("ring:5");
    let probe = StoredSchedules::new(Arc::new(MemoryStore::default()), options(1 << 20, 0));
    probe.put(&key(0), &plan);
    let size = probe.usage().unwrap().1;

    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let schedules = StoredSchedules::new(Arc::clone(&store), options(4 * size, 0));
    (1..=4).for_each(|byte| schedules.put(&key(byte), &plan));
    assert!(schedules.get(&key(1), &plan.topology).is_some());
    schedules.put(&key(5), &plan);
    let there = (1..=5).map(|byte| schedules.has(&key(byte))).collect::<Vec<_>>();
    assert_eq!((there[0], there[1], there[4]), (true, false, true), "{there:?}");
    assert!(schedules.usage().unwrap().1 <= 4 * size);
    // The disk agrees, also with who opens it anew.
    let again = StoredSchedules::new(store, options(4 * size, 0));
    assert_eq!((1..=5).map(|byte| again.has(&key(byte))).collect::<Vec<_>>(), there);
    assert_eq!(again.usage().unwrap(), schedules.usage().unwrap());

    let small = StoredSchedules::new(Arc::new(MemoryStore::default()), options(size - 1, 0));
    small.put(&key(1), &plan);
    assert_eq!(small.usage().unwrap(), (0, 0));
}
