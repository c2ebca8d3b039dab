use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::*;
use crate::store::shared::tests::{Server, two};
use crate::store::{Gated, MemoryStore, Space};

const OPTIONS_OF_MANY: EventOptions = EventOptions { count_max: 100, ..OPTIONS };
const OPTIONS: EventOptions = EventOptions { count_max: 3, age_max_ms: u64::MAX, now_ms: || 5_000 };

fn events(count: usize) -> Vec<KeptEvent> {
    (0..count).map(|_| KeptEvent::default()).collect()
}

/// Writes so many events, one with the other.
fn append(log: &EventLog, count: usize) -> Result<Vec<Arc<KeptEvent>>, StoreError> {
    let written = log.write(events(count))?;
    let all = written.kept.clone();
    log.publish(written);
    Ok(all)
}

fn sequences(log: &EventLog, after: u64) -> Result<Vec<u64>, Expired> {
    Ok(log.after(after, 100)?.iter().map(|event| event.sequence()).collect())
}

#[test]
fn a_watch_goes_on_where_it_ended_even_after_a_restart() {
    let store = Arc::new(MemoryStore::default());
    let log = EventLog::open(Arc::clone(&store) as Arc<dyn Store>, OPTIONS).unwrap();
    assert_eq!((log.position(""), sequences(&log, 0)), (Ok(0), Ok(vec![])));
    let kept = append(&log, 2).unwrap();
    let first = kept[0].event.clone();
    assert_eq!((first.sequence, *log.watch().borrow()), (1, 2));
    let again = EventLog::open(store, OPTIONS).unwrap();
    let position = again.position(&first.resume_token).unwrap();
    assert_eq!(sequences(&again, position), Ok(vec![2]));
    append(&again, 1).unwrap();
    assert_eq!(sequences(&again, position), Ok(vec![2, 3]));
}

#[test]
fn what_is_kept_no_more_cannot_be_resumed() {
    let log = EventLog::open(Arc::new(MemoryStore::default()), OPTIONS).unwrap();
    let token_of = |kept: &[Arc<KeptEvent>]| kept[0].event.resume_token.clone();
    let first = token_of(&append(&log, 1).unwrap());
    let second = token_of(&append(&log, 1).unwrap());
    append(&log, 3).unwrap();
    assert_eq!((log.position(&first), log.position(&second)), (Err(Expired), Ok(2)));
    assert_eq!((sequences(&log, 1), sequences(&log, 2)), (Err(Expired), Ok(vec![3, 4, 5])));
    let stranger = EventLog::open(Arc::new(MemoryStore::default()), EventOptions { now_ms: || 6_000, ..OPTIONS });
    assert_eq!(stranger.unwrap().position(&second), Err(Expired), "the token is another log's");
    for broken in ["x", "-", "0-1", "1388-2", &format!("{second}0"), "ffffffffffffffff-ffffffffffffffff"] {
        assert_eq!(log.position(broken), Err(Expired), "{broken}");
    }
}

#[test]
fn old_events_go() {
    static NOW: AtomicU64 = AtomicU64::new(1000);
    let now_ms: fn() -> u64 = || NOW.load(Ordering::Relaxed);
    let options = EventOptions { count_max: 100, age_max_ms: 10, now_ms };
    let log = EventLog::open(Arc::new(MemoryStore::default()), options).unwrap();
    append(&log, 2).unwrap();
    NOW.store(1011, Ordering::Relaxed);
    append(&log, 1).unwrap();
    assert_eq!(sequences(&log, 2), Ok(vec![3]));
}

#[test]
fn a_log_that_was_copied_goes_its_own_way() {
    let store = Arc::new(MemoryStore::default());
    let open = || EventLog::open(Arc::clone(&store) as Arc<dyn Store>, OPTIONS).unwrap();
    let tokens = |log: &EventLog, count| -> Vec<String> {
        append(log, count).unwrap().iter().map(|kept| kept.event.resume_token.clone()).collect()
    };
    let shared = tokens(&open(), 2);
    EventLog::part_ways(store.as_ref(), 6_000).unwrap();
    let log = open();
    let own = tokens(&log, 1);
    let elsewhere = token(5_000, 3);
    assert_eq!(
        (log.position(&shared[1]), log.position(&own[0]), log.position(&elsewhere)),
        (Ok(2), Ok(3), Err(Expired))
    );
    EventLog::part_ways(store.as_ref(), 6_000).unwrap();
    let log = open();
    let next = tokens(&log, 1);
    assert_eq!(
        (log.position(&own[0]), log.position(&token(6_000, 4)), log.position(&next[0])),
        (Ok(3), Err(Expired), Ok(4))
    );
    EventLog::part_ways(&MemoryStore::default(), 6_000).unwrap();
}

#[test]
fn a_copy_in_another_store_is_known_as_such_for_as_long_as_the_original_has_nothing_new() {
    let (original, copy) = (Arc::new(MemoryStore::default()), Arc::new(MemoryStore::default()));
    let open = |store: &Arc<MemoryStore>| EventLog::open(Arc::clone(store) as Arc<dyn Store>, OPTIONS).unwrap();
    let head = |store: &Arc<MemoryStore>| store.get(&EventLog::HEAD).unwrap().unwrap();
    let log = open(&original);
    assert!(EventLog::is_unused(&head(&original)));
    let told = append(&log, 2).unwrap();
    assert!(!EventLog::is_unused(&head(&original)));
    for key in original.keys(None, 9).unwrap() {
        copy.put(&key, &original.get(&key).unwrap().unwrap(), &[]).unwrap();
    }
    assert!(!EventLog::is_copy_of(&head(&copy), Some(&head(&original))), "it has no name of its own yet");
    copy.put(&HEAD, &EventLog::head_of_copy(Some(&head(&original)), 6_000), &[]).unwrap();
    let copied = open(&copy);
    append(&copied, 1).unwrap();
    assert_eq!(copied.position(&told[1].event.resume_token), Ok(2));
    assert!(EventLog::is_copy_of(&head(&copy), Some(&head(&original))));
    append(&log, 1).unwrap();
    assert!(!EventLog::is_copy_of(&head(&copy), Some(&head(&original))));
    assert!(EventLog::is_copy_of(&EventLog::head_of_copy(None, 6_000), None));
}

#[test]
fn an_event_that_is_on_the_disk_is_told_even_if_an_old_one_stays() {
    let disk: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let log = EventLog::open(Gated::over(&disk, |write| write != "remove"), OPTIONS).unwrap();
    for count in 1..=5 {
        assert_eq!(append(&log, 1).unwrap().len(), 1);
        assert_eq!(*log.watch().borrow(), count);
    }
    let again = EventLog::open(disk, OPTIONS).unwrap();
    assert_eq!(sequences(&again, 0), Ok(vec![1, 2, 3, 4, 5]), "what could not go is there again");
    append(&again, 1).unwrap();
    assert_eq!(sequences(&again, 3), Ok(vec![4, 5, 6]));
}

#[test]
fn events_that_wait_for_the_disk_are_made_in_turn_and_followed_before_they_are_told() {
    let disk: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let (entered, leave) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (first, writes) = (AtomicBool::new(true), Arc::new(AtomicU64::new(0)));
    let (gate, count) = ((Arc::clone(&entered), Arc::clone(&leave)), Arc::clone(&writes));
    let store = Gated::over(&disk, move |write| {
        // The first one that is written, after the log was opened, is held up.
        if write == "put_all" && count.fetch_add(1, Ordering::Relaxed) == 1 && first.swap(false, Ordering::Relaxed) {
            gate.0.wait();
            gate.1.wait();
        }
        true
    });
    let log = EventLog::open(store, EventOptions { count_max: 100, ..OPTIONS }).unwrap();
    let followed = Arc::new(Mutex::new(Vec::new()));
    let append = |is_worth: bool| {
        let (followed, watch) = (Arc::clone(&followed), log.watch());
        let make = move || is_worth.then(|| events(1).remove(0));
        let follow = move |kept: &KeptEvent| {
            assert!(*watch.borrow() < kept.sequence(), "nobody has been told");
            followed.lock().push(kept.sequence());
        };
        log.append(Draft { make: Box::new(make), follow: Box::new(follow) }).unwrap()
    };
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(append(true)));
        entered.wait();
        let others: Vec<_> = (0..8).map(|number| scope.spawn(move || append(number % 2 == 0))).collect();
        while log.shared.waiting.lock().len() < 8 {
            std::thread::yield_now();
        }
        leave.wait();
        assert_eq!(others.into_iter().map(|other| usize::from(other.join().unwrap())).sum::<usize>(), 4);
    });
    assert_eq!(*followed.lock(), [1, 2, 3, 4, 5]);
    assert_eq!((sequences(&log, 0), writes.load(Ordering::Relaxed)), (Ok(vec![1, 2, 3, 4, 5]), 3));
}

#[test]
fn what_a_lease_says_already_is_in_every_snapshot_taken_after_it() {
    let log = EventLog::open(Arc::new(MemoryStore::default()), OPTIONS).unwrap();
    let (taken, snapshots) = std::sync::mpsc::channel();
    let taking = log.clone();
    let follow = move |kept: &KeptEvent| {
        // The lease says it from here on, and a backup comes at this moment.
        let sequence = kept.sequence();
        std::thread::spawn(move || taken.send((sequence, taking.snapshot())).unwrap());
        std::thread::sleep(Duration::from_millis(50));
    };
    log.append(Draft { make: Box::new(|| Some(events(1).remove(0))), follow: Box::new(follow) }).unwrap();
    let (sequence, snapshot) = snapshots.recv().unwrap();
    assert!(snapshot.iter().any(|(key, _)| *key == PlanKey::numbered(sequence)));
}

#[test]
fn an_event_that_cannot_be_written_is_told_to_nobody() {
    let disk: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let is_sound = Arc::new(AtomicBool::new(true));
    let sound = Arc::clone(&is_sound);
    let log = EventLog::open(Gated::over(&disk, move |_| sound.load(Ordering::Relaxed)), OPTIONS).unwrap();
    is_sound.store(false, Ordering::Relaxed);
    let draft = Draft { make: Box::new(|| Some(events(1).remove(0))), follow: Box::new(|_| panic!("it is not there")) };
    assert!(log.append(draft).is_err());
    assert_eq!((*log.watch().borrow(), sequences(&log, 0)), (0, Ok(vec![])));
    is_sound.store(true, Ordering::Relaxed);
    assert_eq!(append(&log, 1).unwrap()[0].sequence(), 1);
}

#[test]
fn a_damaged_event_ends_what_can_be_resumed_before_it() {
    let store = Arc::new(MemoryStore::default());
    let log = EventLog::open(Arc::clone(&store) as Arc<dyn Store>, OPTIONS).unwrap();
    append(&log, 3).unwrap();
    store.put_all(&[(PlanKey::numbered(2), vec![1, 2, 3])]).unwrap();
    let again = EventLog::open(store, OPTIONS).unwrap();
    assert_eq!((sequences(&again, 1), sequences(&again, 2)), (Err(Expired), Ok(vec![3])));
}

#[test]
fn a_damaged_last_event_is_not_followed_by_others() {
    let store = Arc::new(MemoryStore::default());
    let log = EventLog::open(Arc::clone(&store) as Arc<dyn Store>, OPTIONS).unwrap();
    append(&log, 3).unwrap();
    store.put_all(&[(PlanKey::numbered(3), vec![1, 2, 3])]).unwrap();
    let again = EventLog::open(store, OPTIONS).unwrap();
    assert_eq!(append(&again, 1).unwrap()[0].sequence(), 4);
    assert_eq!((sequences(&again, 2), sequences(&again, 3)), (Err(Expired), Ok(vec![4])));
}

#[test]
fn who_has_missed_events_of_another_server_reads_them_all_again() {
    let Some((servers, _folders)) = two() else { return };
    let open = |server: &Server| EventLog::open(server.space(Space::Replans), OPTIONS_OF_MANY).unwrap();
    let one = open(&servers[0]);
    let first = append(&one, 2).unwrap()[0].event.resume_token.clone();
    servers[1].hear_of_all();
    let other = open(&servers[1]);
    let (heard, hears) = (Arc::new(Mutex::new(Vec::new())), other.clone());
    let noted = Arc::clone(&heard);
    other.when_heard(move |event| noted.lock().push((event.sequence(), *hears.watch().borrow())));
    append(&one, 2).unwrap();
    servers[1].hear_of_all();
    other.follow().unwrap();
    append(&one, 3).unwrap();
    servers[1].hear_of_all();
    // As after an attempt that failed.
    *other.shared.writing.lock() = true;
    other.shared.space.catch_up();
    other.follow().unwrap();
    assert_eq!((sequences(&other, 0), other.position(&first)), (sequences(&one, 0), Ok(1)));
    assert_eq!(sequences(&other, 0).unwrap(), (1..=7).collect::<Vec<_>>());
    // Each once, before anybody is told.
    assert_eq!(*heard.lock(), [(3, 2), (4, 2), (5, 4), (6, 4), (7, 4)]);
    // Old ones go at both.
    let one = EventLog::open(servers[0].space(Space::Replans), OPTIONS).unwrap();
    append(&one, 1).unwrap();
    servers[1].hear_of_all();
    other.follow().unwrap();
    assert_eq!(sequences(&other, 5), Ok(vec![6, 7, 8]));
    assert_eq!(other.position(&first), Err(Expired));
}
