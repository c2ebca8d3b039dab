use canopy_topology::{DocumentFormat, TopologyLimits, generate, read_document};

use super::*;
use crate::store::MemoryStore;

fn topology_store_on(store: &Arc<MemoryStore>, count_max: usize, bytes_max: u64) -> TopologyStore {
    let options = TopologyStoreOptions { count_max, bytes_max, now_ms: || 7 };
    TopologyStore::new(Arc::<MemoryStore>::clone(store), options)
}

fn topologies() -> (Arc<MemoryStore>, TopologyStore) {
    let store = Arc::new(MemoryStore::default());
    let topologies = topology_store_on(&store, 100, 1 << 20);
    (store, topologies)
}

fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn all(topologies: &TopologyStore) -> Vec<String> {
    let mut ids = Vec::new();
    topologies.for_each(|entry| ids.push(entry.id())).unwrap();
    ids
}

#[test]
fn equal_topologies_are_kept_once_and_read_back_whole() {
    let (store, topologies) = topologies();
    let (ring, created) = topologies.put(&topology("ring:4")).unwrap();
    assert!(created && ring.created_ms == 7);
    let (again, created) = topologies.put(&topology("ring:4")).unwrap();
    assert_eq!((&again, created), (&ring, false));
    let (named, created) = topologies.put(&topology("ring:4").with_name(Some("other".to_owned()))).unwrap();
    assert!(created && named.key() != ring.key(), "a name can be seen, and makes another topology");
    let kept = topologies.get(&ring.id()).unwrap().unwrap();
    let read = read_document(&kept.document, Some(DocumentFormat::Json), &TopologyLimits::STANDARD).unwrap();
    assert_eq!((read.topology, kept.entry), (topology("ring:4"), ring.clone()));
    // Another server on the same store.
    let second = topology_store_on(&store, 100, 1 << 20);
    assert_eq!(all(&second).len(), 2);
    let usage = second.usage().unwrap();
    assert_eq!((usage.count, usage.bytes), (2, ring.size_bytes + named.size_bytes));
    assert_eq!(second.remove(&ring.id()).unwrap(), Some(ring.size_bytes));
    assert_eq!((second.remove(&ring.id()).unwrap(), all(&second)), (None, vec![named.id()]));
}

#[test]
fn ids_that_name_nothing_find_nothing() {
    let (_, topologies) = topologies();
    let id = topologies.put(&topology("ring:4")).unwrap().0.id();
    for wrong in ["", "topologies/", "ring:4", &id[1..], &id[..id.len() - 1], &id.to_uppercase(), &format!("{id}0")] {
        assert_eq!(topologies.get(wrong).unwrap(), None, "{wrong}");
    }
}

#[test]
fn what_exceeds_the_limits_is_refused_and_what_is_there_stays() {
    let store = Arc::new(MemoryStore::default());
    let one = topology_store_on(&store, 1, 1 << 20);
    let ring = one.put(&topology("ring:4")).unwrap().0;
    assert!(matches!(one.put(&topology("ring:5")), Err(TopologyStoreError::TooMany { count: 1 })));
    assert!(!one.put(&topology("ring:4")).unwrap().1, "what is there already takes no room");
    let small = topology_store_on(&store, 9, 8 * (ring.size_bytes + 10) / 7);
    assert!(matches!(small.put(&topology("ring:5")), Err(TopologyStoreError::TooLarge { .. })));
    assert_eq!(all(&small), [ring.id()]);
}

#[test]
fn damage_is_put_aside_and_said_once() {
    let (store, topologies) = topologies();
    let ring = topologies.put(&topology("ring:4")).unwrap().0;
    let mut record = store.get(&ring.key()).unwrap().unwrap();
    *record.last_mut().unwrap() ^= 1;
    store.put(&ring.key(), &record, &ring.encode()).unwrap();
    assert!(matches!(topologies.get(&ring.id()), Err(TopologyStoreError::Damaged { .. })));
    assert_eq!((topologies.get(&ring.id()).unwrap(), store.quarantined_count().unwrap()), (None, 1));
    assert!(topologies.put(&topology("ring:4")).unwrap().1, "it can be put again");
    // A summary that is missing is made again from the record.
    store.set_summaries(&[(ring.key(), Vec::new())], Durability::Synced).unwrap();
    assert_eq!(all(&topology_store_on(&store, 9, 1 << 20)), [ring.id()]);
}

#[test]
fn what_is_taken_in_must_be_what_its_key_says() {
    let (store, topologies) = topologies();
    let key = topologies.put(&topology("ring:4")).unwrap().0.key();
    let record = store.get(&key).unwrap().unwrap();
    assert_eq!(entry::judge(&key, &record, &TopologyLimits::STANDARD), Ok(()));
    let mut fields = Kept::decode(&key, Bytes::from(record.clone())).unwrap();
    fields.document = to_json(&topology("ring:5")).into();
    let (forged, _) = fields.entry.encode_with(fields.document.to_vec());
    assert!(entry::judge(&key, &forged, &TopologyLimits::STANDARD).unwrap_err().contains("another topology"));
    let (_, other) = self::topologies();
    assert!(other.take_in(&key, &record).unwrap());
    assert!(!other.take_in(&key, &record).unwrap());
    assert_eq!(all(&other), [id_of(&key)]);
    assert!(other.take_in(&key, b"no record").is_err());
}

#[test]
fn what_nothing_uses_leaves_for_others_and_leases_and_faults_find_room_in_any_case() {
    let store = Arc::new(MemoryStore::default());
    let topologies = topology_store_on(&store, 200, 1 << 30);
    let ring = |ranks: u32| topology(&format!("ring:{ranks}"));
    let held = topologies.put_for(&ring(3), Purpose::Held).unwrap().0;
    let left = topologies.put_for(&ring(4), Purpose::Held).unwrap().0;
    let pinned = topologies.put(&ring(5)).unwrap().0;
    let used = BTreeSet::from([held.key(), pinned.key()]);
    topologies.ask_what_is_in_use(move || used.clone());
    let first = topologies.put(&ring(6)).unwrap().0;
    let second = topologies.put(&ring(7)).unwrap().0;
    // 175 of 200 may be named.
    for ranks in 8..178 {
        topologies.put(&ring(ranks)).unwrap();
    }
    assert_eq!((topologies.usage().unwrap().count, topologies.usage().unwrap().removed), (175, 0));
    let is_there = |entry: &TopologyEntry| topologies.get(&entry.id()).unwrap().is_some();
    topologies.touch(&first.key()).unwrap();
    topologies.put(&ring(178)).unwrap();
    assert!(!is_there(&left), "what a lease has left behind goes first");
    topologies.put(&ring(179)).unwrap();
    assert!(!is_there(&second) && is_there(&first), "then what was used first");
    for ranks in 180..300 {
        topologies.put(&ring(ranks)).unwrap();
    }
    assert!(is_there(&held) && is_there(&pinned), "what is in use stays");
    for ranks in 300..325 {
        topologies.put_for(&ring(ranks), Purpose::Held).unwrap();
    }
    let usage = topologies.usage().unwrap();
    assert_eq!((usage.count, usage.count_max), (200, 200));
    topologies.put_for(&ring(325), Purpose::Held).unwrap();
    assert_eq!(topologies.usage().unwrap().count, 200, "there is always room for what is used");
    let again = topology_store_on(&store, 200, 1 << 30);
    assert_eq!(again.usage().unwrap().count, 200);
    assert!(!again.put(&ring(325)).unwrap().1);
    let named = again.get(&id_of(&PlanKey::from_bytes(*identity_hash(&ring(325)).as_bytes()))).unwrap().unwrap();
    assert!(named.entry.is_left_by_use, "the record says how it came");
}

#[test]
fn what_is_all_in_use_is_refused_and_named() {
    let store = Arc::new(MemoryStore::default());
    let topologies = topology_store_on(&store, 1, 1 << 20);
    topologies.ask_what_is_in_use(BTreeSet::new);
    topologies.put(&topology("ring:4")).unwrap();
    assert!(
        matches!(topologies.put(&topology("ring:5")), Err(TopologyStoreError::TooMany { count: 1 })),
        "it was used just now"
    );
}
