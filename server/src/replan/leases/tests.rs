use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::clock::Steady;
use crate::store::MemoryStore;

const OPTIONS: LeaseOptions = LeaseOptions { count_max: 3, bytes_max: 1000, now_ms: || 7 };

fn terms(job: &str) -> LeaseTerms {
    let items = vec![Item { original: vec![1; 32].into(), links: vec![0b101].into(), ranks: 4, ..Item::default() }];
    LeaseTerms { job: job.to_owned(), base: vec![2; 32], items, ..LeaseTerms::default() }
}

fn state(plan: &str) -> LeaseState {
    let valid = ValidPlan { plan: plan.to_owned(), lost: vec![2], ..ValidPlan::default() };
    LeaseState { expire_ms: 10, ttl_ms: 3, items: vec![valid], is_ending: false }
}

#[test]
fn leases_survive_a_restart_with_what_became_of_them() {
    let store = Arc::new(MemoryStore::default());
    let leases = Leases::open(Arc::clone(&store) as Arc<dyn Store>, OPTIONS).unwrap();
    let first = leases.acquire(terms("a"), state("plans/a"), |_| Ok(())).unwrap();
    let second = leases.acquire(terms("b"), state("plans/b"), |_| Ok(())).unwrap();
    assert_eq!(number_of(&second.name()), Some(second.terms.number));
    leases.follow(second.terms.number, 0, state("plans/c").items.remove(0));
    let renewed = leases.renew(second.terms.number, Some(5)).unwrap().unwrap().state;
    assert_eq!((renewed.expire_ms, renewed.ttl_ms, renewed.items[0].plan.as_str()), (12, 5, "plans/c"));
    assert!(leases.renew(99, None).unwrap().is_none());
    assert_eq!(leases.release(&[first.terms.number, 99]).unwrap(), 1);
    let again = Leases::open(store, OPTIONS).unwrap();
    assert_eq!((again.len(), again.get(first.terms.number).is_none()), (1, true));
    let kept = again.get(second.terms.number).unwrap();
    assert_eq!((&kept.terms, kept.state.items[0].plan.as_str()), (&second.terms, "plans/c"));
    let survivors = kept.state.items[0].survivors(kept.terms.items[0].ranks);
    assert_eq!(survivors, [0, 1, 3]);
    let third = again.acquire(terms("c"), state(""), |_| Ok(())).unwrap();
    assert!(third.terms.number > second.terms.number, "names are not given twice");
}

#[test]
fn leases_are_limited_in_number_and_size() {
    let leases = Leases::open(Arc::new(MemoryStore::default()), OPTIONS).unwrap();
    let large = LeaseTerms { job: "x".repeat(1000), ..terms("") };
    assert!(matches!(leases.acquire(large, state(""), |_| Ok(())), Err(LeaseError::TooLarge { .. })));
    let numbers: Vec<u64> =
        (0..3).map(|_| leases.acquire(terms("a"), state(""), |_| Ok(())).unwrap().terms.number).collect();
    assert!(matches!(leases.acquire(terms("a"), state(""), |_| Ok(())), Err(LeaseError::TooMany { count: 3 })));
    assert_eq!(leases.release(&numbers).unwrap(), 3);
    assert_eq!(leases.shared.table.lock().bytes(), 0);
}

#[test]
fn who_renews_in_time_is_not_ended_and_others_are() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let options = LeaseOptions { now_ms: || NOW.load(Ordering::Relaxed), ..OPTIONS };
    let store = Arc::new(MemoryStore::default());
    let leases = Leases::open(Arc::clone(&store) as Arc<dyn Store>, options).unwrap();
    let [kept, ended] = ["a", "b"].map(|job| leases.acquire(terms(job), state(""), |_| Ok(())).unwrap().terms.number);
    NOW.store(9, Ordering::Relaxed);
    let expire = || leases.expire(|_| Ok::<(), StoreError>(())).unwrap();
    assert_eq!(expire(), 0);
    leases.renew(kept, Some(2)).unwrap();
    NOW.store(10, Ordering::Relaxed);
    assert_eq!((expire(), expire()), (1, 0));
    let again = Leases::open(store, options).unwrap();
    assert_eq!((again.get(kept).is_some(), again.get(ended).is_some()), (true, false));
}

/// The clock of the system is set 8 days ahead for four seconds, and then an hour back.
#[test]
fn a_lease_lasts_as_long_as_it_was_given_whatever_the_clock_is_set_to() {
    const START: u64 = 1_000_000_000;
    static CLOCK: Steady = Steady::beginning_at(START);
    static ELAPSED: AtomicU64 = AtomicU64::new(0);
    let now_ms = || CLOCK.now_ms(ELAPSED.load(Ordering::Relaxed));
    let leases = Leases::open(Arc::new(MemoryStore::default()), LeaseOptions { now_ms, ..OPTIONS }).unwrap();
    leases.acquire(terms("a"), LeaseState { expire_ms: START + 10_000, ..state("") }, |_| Ok(())).unwrap();
    let expired_after = |elapsed_ms: u64, shift_ms: i64| {
        ELAPSED.store(elapsed_ms, Ordering::Relaxed);
        CLOCK.observe((START + elapsed_ms).saturating_add_signed(shift_ms), elapsed_ms);
        leases.expire(|_| Ok::<(), StoreError>(())).unwrap()
    };
    let (days, hour) = (8 * 24 * 3_600_000, -3_600_000);
    let expired = [(1_000, 0), (2_000, days), (6_000, 0), (7_000, hour), (9_999, hour), (10_000, hour)]
        .map(|(elapsed_ms, shift_ms)| expired_after(elapsed_ms, shift_ms));
    assert_eq!(expired, [0, 0, 0, 0, 0, 1]);
}

#[test]
fn a_lease_is_told_of_before_it_is_gone_and_held_until_that_can_be_done() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let options = LeaseOptions { now_ms: || NOW.load(Ordering::Relaxed), ..OPTIONS };
    let leases = Leases::open(Arc::new(MemoryStore::default()), options).unwrap();
    let numbers = ["a", "b", "c"].map(|job| leases.acquire(terms(job), state(""), |_| Ok(())).unwrap().terms.number);
    NOW.store(10, Ordering::Relaxed);
    let tell = |lease: &Lease| {
        assert!(leases.get(lease.terms.number).is_some());
        if lease.terms.number == numbers[1] { Err(StoreError::Full { needed: 1, pinned: 0, limit: 0 }) } else { Ok(()) }
    };
    assert!(leases.expire(tell).is_err());
    assert_eq!(numbers.map(|number| leases.get(number).is_some()), [false, true, true]);
    assert_eq!(leases.expire(|_| Ok::<(), StoreError>(())).unwrap(), 2);
}

#[test]
fn what_an_event_says_holds_at_once_and_is_written_later() {
    let store = Arc::new(MemoryStore::default());
    let leases = Leases::open(Arc::clone(&store) as Arc<dyn Store>, OPTIONS).unwrap();
    let number = leases.acquire(terms("a"), state("plans/a"), |_| Ok(())).unwrap().terms.number;
    leases.follow(number, 0, state("plans/b").items.remove(0));
    let plan = |leases: &Leases| leases.get(number).unwrap().state.items[0].plan.clone();
    let reopened = || Leases::open(Arc::clone(&store) as Arc<dyn Store>, OPTIONS).unwrap();
    assert_eq!((plan(&leases), plan(&reopened())), ("plans/b".to_owned(), "plans/a".to_owned()));
    leases.renew(number, None).unwrap();
    leases.follow(number, 0, state("plans/c").items.remove(0));
    leases.renew(number, None).unwrap();
    assert_eq!((leases.write_behind().unwrap(), plan(&reopened()).as_str()), (false, "plans/c"));
}

#[test]
fn a_damaged_lease_goes_into_quarantine() {
    let store = Arc::new(MemoryStore::default());
    let leases = Leases::open(Arc::clone(&store) as Arc<dyn Store>, OPTIONS).unwrap();
    let number = leases.acquire(terms("a"), state(""), |_| Ok(())).unwrap().terms.number;
    store.put(&PlanKey::numbered(number), &[1, 2, 3], &encode_message(&state(""))).unwrap();
    let again = Leases::open(Arc::clone(&store) as Arc<dyn Store>, OPTIONS).unwrap();
    assert_eq!((again.len(), store.quarantined_count().unwrap()), (0, 1));
}

#[test]
fn only_whole_names_name_a_lease() {
    for name in ["leases/", "leases/12", "lease/0000000000000001", "leases/00000000000000zz", "leases/+000000000000001"]
    {
        assert_eq!(number_of(name), None, "{name}");
    }
    assert_eq!(number_of("leases/00000000000000ff"), Some(255));
}
