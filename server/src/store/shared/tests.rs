use canopy_database::Options;
use canopy_import::ClusterCounts;
use canopy_prerequisites::Postgres;
use canopy_store::contract::{self, key, plan};
use canopy_topology::{TopologyLimits, generate};
use tempfile::TempDir;

use super::*;
use crate::clock;
use crate::store::clusters::{ClusterName, ClusterStore};
use crate::store::receipts::{Claim, ReceiptOptions, Receipts, Repeatable};
use crate::store::topologies::{TopologyStore, TopologyStoreOptions};
use crate::store::{Eviction, Lookup, RecordOptions, Records};

/// One of the servers on a database.
pub(crate) struct Server {
    pub(in crate::store) opened: Opened,
    others: Others,
    database: Database,
}

impl Server {
    pub(crate) fn new(directory: &Path, address: &str) -> Self {
        let database = Database::new(&Options { address: address.parse().unwrap(), connections: 4 }).unwrap();
        let (opened, others) = open_shared_store(directory, &database).unwrap();
        Self { opened, others, database }
    }

    pub(crate) fn space(&self, space: Space) -> Arc<dyn Store> {
        Arc::clone(self.opened.space(space))
    }

    pub(crate) fn others(&self) -> Others {
        self.others.clone()
    }

    /// Waits until all that has changed up to now is heard of.
    pub(crate) fn hear_of_all(&self) {
        self.others.hear_of_all().unwrap();
    }

    fn records(&self, bytes_max: u64) -> Records {
        let options = RecordOptions { bytes_max, ..RecordOptions::STANDARD };
        Records::with_pins(self.space(Space::Plans), Arc::clone(&self.opened.pins), options)
    }
}

/// Two servers on a database of their own.
pub(crate) fn two() -> Option<([Server; 2], [TempDir; 2])> {
    let address = Postgres::shared()?.database();
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    Some((folders.each_ref().map(|folder| Server::new(folder.path(), &address)), folders))
}

#[test]
fn a_store_in_a_database_keeps_the_contract_of_all_stores() {
    let Some(postgres) = Postgres::shared() else { return };
    let mut folders = Vec::new();
    contract::check("PostgreSQL", || {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::new(folder.path(), &postgres.database());
        folders.push(folder);
        server.opened
    });
}

#[test]
fn a_plan_of_one_server_is_served_by_the_other_and_then_from_its_disk() {
    let Some(([one, other], folders)) = two() else { return };
    let made = plan(&key(1), 200_000);
    one.records(1 << 30).put(&key(1), &made).unwrap();
    other.hear_of_all();
    let records = other.records(1 << 30);
    records.follow().unwrap();
    assert_eq!(records.get(&key(1)).unwrap(), Lookup::Found(made.clone().into()));
    let cached = other.space(Space::Plans).get(&key(1)).unwrap().unwrap();
    drop((records, other));
    // What is on the disk is used only if it is what the database has.
    let cache = open_store(&folders[1].path().join(CACHE)).unwrap();
    assert_eq!(cache.space(Space::Plans).get(&key(1)).unwrap(), Some(cached.clone()));
    let mut damaged = cached;
    damaged[100_000] ^= 1;
    cache.space(Space::Plans).put(&key(1), &damaged, &[]).unwrap();
    cache.space(Space::Plans).put(&key(2), &damaged, &[]).unwrap();
    drop(cache);
    let address = one.database.address().clone();
    let database = Database::new(&Options { address, connections: 4 }).unwrap();
    let (opened, _others) = open_shared_store(folders[1].path(), &database).unwrap();
    let records = Records::new(Arc::clone(opened.space(Space::Plans)));
    assert_eq!(records.get(&key(1)).unwrap(), Lookup::Found(made.into()));
    assert_eq!(records.get(&key(2)).unwrap(), Lookup::Missing, "the database does not have it");
    drop((records, opened));
    let cache = open_store(&folders[1].path().join(CACHE)).unwrap();
    assert_eq!(cache.space(Space::Plans).keys(None, 9).unwrap(), [key(1)]);
}

#[test]
fn what_one_server_pins_the_other_does_not_evict() {
    let Some(([one, other], _folders)) = two() else { return };
    let (ones, others) = (one.records(1 << 20), other.records(1 << 20));
    for byte in 1..=3 {
        ones.put(&key(byte), &plan(&key(byte), 200_000)).unwrap();
    }
    hear(&others, &other);
    assert_eq!(others.usage().unwrap().records, 3);
    // Neither has heard of what the other one does.
    assert!(ones.pin(&key(1)).unwrap().unwrap().pinned);
    assert_eq!(others.evict(&key(1)).unwrap(), Eviction::Pinned);
    assert_eq!(others.evict(&key(2)).unwrap(), Eviction::Evicted);
    assert_eq!(ones.pin(&key(2)).unwrap(), None);
    assert_eq!(ones.get(&key(2)).unwrap(), Lookup::Missing);
    // Room is made by what is least worth, whoever stored it; what is pinned stays.
    for byte in 4..=9 {
        others.put(&key(byte), &plan(&key(byte), 200_000)).unwrap();
    }
    hear(&ones, &one);
    let (of_one, of_other) = (ones.usage().unwrap(), others.usage().unwrap());
    assert_eq!(of_one, of_other);
    assert!(of_one.bytes <= 1 << 20 && of_one.pinned == 1, "{of_one:?}");
    assert!(matches!(ones.get(&key(1)).unwrap(), Lookup::Found(_)));
}

#[test]
fn uses_at_both_servers_are_counted() {
    let Some(([one, other], _folders)) = two() else { return };
    let (ones, others) = (one.records(1 << 30), other.records(1 << 30));
    ones.put(&key(1), &plan(&key(1), 10)).unwrap();
    hear(&others, &other);
    for records in [&ones, &others] {
        for _ in 0..5 {
            records.get(&key(1)).unwrap();
        }
    }
    ones.write_back().unwrap();
    // It has not heard of those.
    others.write_back().unwrap();
    hear(&ones, &one);
    for records in [ones, others] {
        assert_eq!(records.summary(&key(1)).unwrap().unwrap().hits, 10);
    }
}

#[test]
fn topologies_and_clusters_are_known_to_both_servers() {
    let Some(([one, other], _folders)) = two() else { return };
    let topologies = [&one, &other].map(|server| {
        let options = TopologyStoreOptions { count_max: 2, ..TopologyStoreOptions::STANDARD };
        TopologyStore::new(server.space(Space::Topologies), options)
    });
    let topology = |expression| generate(expression, &TopologyLimits::STANDARD).unwrap();
    let (entry, is_new) = topologies[0].put(&topology("ring:4")).unwrap();
    assert!(is_new);
    // It has not heard of it, and says that it was there all the same.
    let (again, is_new) = topologies[1].put(&topology("ring:4")).unwrap();
    assert_eq!((again, is_new), (entry, false));
    topologies[1].put(&topology("ring:5")).unwrap();
    one.hear_of_all();
    topologies[0].follow().unwrap();
    assert_eq!(topologies[0].usage().unwrap().count, 2);
    let clusters = [&one, &other].map(|server| ClusterStore::new(server.space(Space::Clusters), clock::unix_ms));
    let (name, counts) =
        (ClusterName::read("clusters/prod").unwrap(), ClusterCounts { nodes: 1, ranks: 8, switches: 2 });
    let put =
        |of: usize, text: &'static str| clusters[of].put(&name, counts, bytes::Bytes::from_static(text.as_bytes()));
    assert!(put(0, "one").unwrap().created);
    let second = put(1, "other").unwrap();
    assert!(second.changed && !second.created);
    assert!(!put(0, "other").unwrap().changed);
    assert!(clusters[1].remove(&name).unwrap().is_some());
    assert!(clusters[0].remove(&name).unwrap().is_none());
}

#[test]
fn a_repeat_at_the_other_server_gets_the_first_answer() {
    let Some(([one, other], _folders)) = two() else { return };
    let id = "123e4567-e89b-42d3-a456-426614174000";
    let request = Repeatable::new("PinPlan", id, &"plans/a".to_owned()).unwrap().unwrap();
    let [ones, others] =
        [&one, &other].map(|server| Receipts::new(server.space(Space::Requests), ReceiptOptions::STANDARD));
    let (first, second) = (ones.claim(&request).unwrap(), others.claim(&request).unwrap());
    let (Claim::Open(first), Claim::Open(second)) = (first, second) else { panic!("both are the first to ask") };
    first.keep(b"first".to_vec());
    drop(second);
    other.hear_of_all();
    match others.claim(&request).unwrap() {
        Claim::Answered(answer) => assert_eq!(answer, b"first"),
        Claim::Open(_) => panic!("it was answered"),
    }
}

#[test]
fn a_directory_is_one_servers() {
    let Some(postgres) = Postgres::shared() else { return };
    let (address, folder) = (postgres.database(), tempfile::tempdir().unwrap());
    let server = Server::new(folder.path(), &address);
    let database = server.database.clone();
    let second = open_shared_store(folder.path(), &database).map(drop);
    assert!(matches!(second, Err(StoreError::InUse { .. })), "{second:?}");
    drop(server);
    open_shared_store(folder.path(), &database).map(drop).unwrap();
}

/// Has the records of a server learn what others have changed up to now.
fn hear(records: &Records, server: &Server) {
    server.hear_of_all();
    records.follow().unwrap();
}
