use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::store::MemoryStore;

const ID: &str = "123e4567-e89b-42d3-a456-426614174000";

fn options(now_ms: fn() -> u64) -> ReceiptOptions {
    ReceiptOptions { count_max: 3, bytes_max: 1 << 20, age_max_ms: 1000, now_ms }
}

fn request(method: &str, id: &str, name: &str) -> Repeatable {
    Repeatable::new(method, id, &name.to_owned()).unwrap().unwrap()
}

#[track_caller]
fn open(receipts: &Receipts, request: &Repeatable) -> Open {
    match receipts.claim(request).unwrap() {
        Claim::Open(open) => open,
        Claim::Answered(answer) => panic!("{request} was answered with {answer:?}"),
    }
}

#[track_caller]
fn answered(receipts: &Receipts, request: &Repeatable) -> Vec<u8> {
    match receipts.claim(request).unwrap() {
        Claim::Answered(answer) => answer,
        Claim::Open(_) => panic!("{request} was not answered"),
    }
}

#[test]
fn a_repeat_gets_the_first_answer_also_from_a_successor() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let receipts = Receipts::new(Arc::clone(&store), options(|| 5));
    let pin = request("PinPlan", ID, "plans/a");
    drop(open(&receipts, &pin));
    open(&receipts, &pin).keep(b"first".to_vec());
    assert_eq!(answered(&receipts, &pin), b"first");
    let successor = Receipts::new(store, options(|| 1004));
    assert_eq!(answered(&successor, &pin), b"first");
}

#[test]
fn a_request_that_was_cut_off_is_done_again_to_what_was_there_the_first_time() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let receipts = Receipts::new(Arc::clone(&store), options(|| 5));
    let release = request("ReleaseLease", ID, "17");
    assert_eq!(open(&receipts, &release).begin(7).unwrap(), None);
    let successor = Receipts::new(store, options(|| 6));
    let other = request("ReleaseLease", ID, "18");
    assert!(matches!(successor.claim(&other), Err(ReceiptError::Reused { .. })), "the id is that of the first");
    let again = open(&successor, &release);
    assert_eq!(again.begin(9).unwrap(), Some(7));
    again.keep(Vec::new());
    assert_eq!(answered(&successor, &release), b"");
}

#[test]
fn the_same_id_with_another_method_or_body_is_refused() {
    let receipts = Receipts::new(Arc::new(MemoryStore::default()), options(|| 5));
    open(&receipts, &request("PinPlan", ID, "plans/a")).keep(Vec::new());
    for other in [request("UnpinPlan", ID, "plans/a"), request("PinPlan", ID, "plans/b")] {
        match receipts.claim(&other) {
            Err(ReceiptError::Reused { id }) => assert_eq!(id, ID),
            _ => panic!("{other} was taken"),
        }
    }
}

#[test]
fn receipts_go_when_they_are_old_or_too_many() {
    static NOW: AtomicU64 = AtomicU64::new(1);
    let store = Arc::new(MemoryStore::default());
    let receipts = Receipts::new(Arc::<MemoryStore>::clone(&store), options(|| NOW.load(Ordering::Relaxed)));
    let numbered = |number: u64| request("PinPlan", &format!("{number:08x}{}", &ID[8..]), "plans/a");
    for number in 0..5 {
        NOW.store(number, Ordering::Relaxed);
        open(&receipts, &numbered(number)).keep(Vec::new());
    }
    assert_eq!(store.keys(None, 10).unwrap().len(), 3);
    drop(open(&receipts, &numbered(1)));
    answered(&receipts, &numbered(2));
    NOW.store(1003, Ordering::Relaxed);
    drop(open(&receipts, &numbered(2)));
    answered(&receipts, &numbered(3));
    NOW.store(5000, Ordering::Relaxed);
    open(&receipts, &numbered(9)).keep(Vec::new());
    assert_eq!(store.keys(None, 10).unwrap().len(), 1, "outdated ones make room");
}

#[test]
fn two_of_a_kind_are_done_once() {
    let receipts = Receipts::new(Arc::new(MemoryStore::default()), options(|| 5));
    let pin = request("PinPlan", ID, "plans/a");
    let first = open(&receipts, &pin);
    std::thread::scope(|scope| {
        let second = scope.spawn(|| answered(&receipts, &pin));
        first.keep(b"once".to_vec());
        assert_eq!(second.join().unwrap(), b"once");
    });
}

#[test]
fn damage_costs_the_receipt_and_nothing_else() {
    let store = Arc::new(MemoryStore::default());
    let pin = request("PinPlan", ID, "plans/a");
    let receipts = Receipts::new(Arc::<MemoryStore>::clone(&store), options(|| 5));
    open(&receipts, &pin).keep(Vec::new());
    let summary = store.summary(&pin.key()).unwrap().unwrap();
    store.put(&pin.key(), b"no record", &summary).unwrap();
    open(&receipts, &pin).keep(b"again".to_vec());
    store.put(&pin.key(), b"no record", b"no summary").unwrap();
    drop(open(&Receipts::new(Arc::<MemoryStore>::clone(&store), options(|| 5)), &pin));
}

#[test]
fn only_uuids_are_ids() {
    let read = |id: &str| Repeatable::new("PinPlan", id, &String::new());
    assert_eq!(read(""), Ok(None));
    assert_eq!(read(ID).unwrap().unwrap().to_string(), ID);
    for bad in [
        "x",
        &ID[1..],
        &ID.replace('-', "0"),
        &ID.replace('e', "g"),
        &format!("{ID}0"),
        "ä23e4567-e89b-42d3-a456-42661417400",
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
}
