//! Which job runs on which plans: on the disk before it is acknowledged.
//!
//! What a lease is about never changes and is its record; what becomes of it is its summary.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use canopy_proto::v1;
use prost::Message;

use crate::clock;
use crate::key::PlanKey;
use crate::order::Priority;
use crate::store::{Durability, Store, StoreError, decode_record, encode_record};

/// Summaries read at a time.
const PAGE: usize = 1024;
/// What every name begins with.
const FOLDER: &str = "leases/";

/// How many leases are kept, and where the time comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseOptions {
    /// Most leases.
    pub(crate) count_max: usize,
    /// Most bytes of their records.
    pub(crate) bytes_max: usize,
    /// Milliseconds since 1970 UTC.
    pub(crate) now_ms: fn() -> u64,
}

impl LeaseOptions {
    /// 100,000 leases, 256 MiB, and the clock of the system.
    pub(crate) const STANDARD: Self = Self { count_max: 100_000, bytes_max: 256 << 20, now_ms: clock::unix_ms };
}

/// What a lease is about; fields are only ever added.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Deed {
    #[prost(uint64, tag = "1")]
    pub(crate) number: u64,
    #[prost(string, tag = "2")]
    pub(crate) job: String,
    /// Empty: everybody's.
    #[prost(string, tag = "3")]
    pub(crate) tenant: String,
    #[prost(enumeration = "v1::Priority", tag = "4")]
    pub(crate) priority: i32,
    /// Key of the sound network.
    #[prost(bytes = "vec", tag = "5")]
    pub(crate) base: Vec<u8>,
    /// What is held.
    #[prost(message, repeated, tag = "6")]
    pub(crate) items: Vec<Item>,
    #[prost(uint64, tag = "7")]
    pub(crate) created_ms: u64,
}

/// A plan that is held.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Item {
    /// What was asked for; the topology by its id or expression.
    #[prost(message, optional, tag = "1")]
    pub(crate) request: Option<v1::PlanRequest>,
    /// Key of the plan for the sound network.
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) original: Vec<u8>,
    /// The links that it is on, see [`LinkSet`](super::footprint::LinkSet).
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) links: Vec<u8>,
    /// Number of its ranks.
    #[prost(uint32, tag = "4")]
    pub(crate) ranks: u32,
}

/// What has become of a lease; fields are only ever added.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Standing {
    #[prost(uint64, tag = "1")]
    pub(crate) expire_ms: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) ttl_ms: u64,
    /// One for each item.
    #[prost(message, repeated, tag = "3")]
    pub(crate) items: Vec<Valid>,
}

/// The plan that is valid now in place of one that is held.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Valid {
    /// `plans/…`; empty: there is none.
    #[prost(string, tag = "1")]
    pub(crate) plan: String,
    /// What it avoids, see [`Avoided`]; empty: nothing, it is the original.
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) avoided: Vec<u8>,
    /// Why there is none.
    #[prost(message, optional, tag = "3")]
    pub(crate) error: Option<v1::OperationError>,
    /// Ranks of the request that it lacks, rising.
    #[prost(uint32, repeated, tag = "4")]
    pub(crate) lost: Vec<u32>,
    /// The last event that said so; 0: none.
    #[prost(uint64, tag = "5")]
    pub(crate) event: u64,
    /// Whether a better one may follow for the same faults.
    #[prost(bool, tag = "6")]
    pub(crate) is_provisional: bool,
    /// The faults themselves, as texts, where they are few: whether more of them matter can be told without them only by planning again.
    #[prost(string, repeated, tag = "7")]
    pub(crate) faults: Vec<String>,
}

/// Tells one set of faults from another: the hash of their texts in order.
pub(crate) type Avoided = [u8; 32];

/// A lease.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) deed: Arc<Deed>,
    pub(crate) standing: Standing,
}

impl Lease {
    pub(crate) fn name(&self) -> String {
        name_of(self.deed.number)
    }

    pub(crate) fn base(&self) -> Option<PlanKey> {
        self.deed.base.as_slice().try_into().ok().map(PlanKey::from_bytes)
    }

    /// Priorities that this build does not know count as those of a job that starts.
    pub(crate) fn priority(&self) -> Priority {
        let stated = self.deed.priority();
        Priority::ALL.into_iter().find(|priority| priority.on_the_wire() == stated).unwrap_or(Priority::JobStart)
    }

    /// The lease on the wire. `is_replanning`: of an item, whether another plan is being made.
    pub(crate) fn describe(&self, is_replanning: impl Fn(u32) -> bool) -> v1::Lease {
        let Deed { job, tenant, priority, items, created_ms, .. } = &*self.deed;
        let plan = |((number, item), valid): ((u32, &Item), &Valid)| v1::LeasedPlan {
            original: key_from(&item.original).map(|key| key.plan_id()).unwrap_or_default(),
            current: valid.plan.clone(),
            is_replanning: is_replanning(number),
            error: valid.error.clone(),
            survivors: match valid.lost.is_empty() {
                true => Vec::new(),
                false => (0..item.ranks).filter(|rank| valid.lost.binary_search(rank).is_err()).collect(),
            },
        };
        v1::Lease {
            name: self.name(),
            job: job.clone(),
            topology: self.base().map(|key| crate::topologies::id_of(&key)).unwrap_or_default(),
            plans: (0..).zip(items).zip(&self.standing.items).map(plan).collect(),
            priority: *priority,
            create_time: Some(crate::job::timestamp(*created_ms)),
            expire_time: Some(crate::job::timestamp(self.standing.expire_ms)),
            tenant: tenant.clone(),
        }
    }
}

/// A key that was written down.
pub(crate) fn key_from(bytes: &[u8]) -> Option<PlanKey> {
    bytes.try_into().ok().map(PlanKey::from_bytes)
}

pub(crate) fn name_of(number: u64) -> String {
    format!("{FOLDER}{number:016x}")
}

/// The number of the lease of this name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(FOLDER)?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    (name_of(number) == name).then_some(number)
}

/// Why a lease is not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeaseError {
    #[error("{count} leases are held, as many as may be; release some, or let them expire")]
    TooMany { count: usize },
    #[error("leases hold {held} bytes, and this one of {found} would exceed the limit of {limit}; release some")]
    TooLarge { held: usize, found: usize, limit: usize },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// All leases. Clones share them. Every call but [`Leases::get`] may block on the disk.
#[derive(Clone)]
pub(crate) struct Leases {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn Store>,
    options: LeaseOptions,
    table: Mutex<Table>,
}

struct Table {
    leases: BTreeMap<u64, Lease>,
    bytes: usize,
    /// The last number that was given.
    last: u64,
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Leases {
    /// Reads what is kept. A lease that cannot be read goes into quarantine.
    ///
    /// # Errors
    /// The engine failed.
    pub(crate) fn open(store: Arc<dyn Store>, options: LeaseOptions) -> Result<Self, StoreError> {
        let mut table = Table { leases: BTreeMap::new(), bytes: 0, last: 0 };
        let mut after = None;
        loop {
            let page = store.summaries(after.as_ref(), PAGE)?;
            let Some(&(last, _)) = page.last() else { break };
            after = Some(last);
            for (key, summary) in page {
                table.last = table.last.max(key.number());
                let Some(record) = store.get(&key)? else {
                    store.remove(&[key])?;
                    continue;
                };
                match read(&key, &record, &summary) {
                    Some(lease) => {
                        table.bytes += record.len();
                        table.leases.insert(lease.deed.number, lease);
                    }
                    None => {
                        tracing::error!(
                            lease = name_of(key.number()),
                            "a lease cannot be read; it is in quarantine now"
                        );
                        store.quarantine(&key)?;
                    }
                }
            }
        }
        // Names of leases that have ended are not given again while anybody may remember them.
        table.last = table.last.max((options.now_ms)());
        Ok(Self { shared: Arc::new(Shared { store, options, table: Mutex::new(table) }) })
    }

    /// Keeps a lease, and gives it its number.
    pub(crate) fn acquire(&self, mut deed: Deed, standing: Standing) -> Result<Lease, LeaseError> {
        let LeaseOptions { count_max, bytes_max, now_ms } = self.shared.options;
        let mut table = self.lock();
        if table.leases.len() >= count_max {
            return Err(LeaseError::TooMany { count: table.leases.len() });
        }
        deed.number = table.last + 1;
        deed.created_ms = now_ms();
        let record = encode_record(&deed.encode_to_vec());
        if table.bytes + record.len() > bytes_max {
            let (held, found) = (table.bytes, record.len());
            return Err(LeaseError::TooLarge { held, found, limit: bytes_max });
        }
        self.shared.store.put(&PlanKey::numbered(deed.number), &record, &encode_record(&standing.encode_to_vec()))?;
        table.last = deed.number;
        table.bytes += record.len();
        let lease = Lease { deed: Arc::new(deed), standing };
        table.leases.insert(lease.deed.number, lease.clone());
        Ok(lease)
    }

    /// The lease of this number, if it is held.
    pub(crate) fn get(&self, number: u64) -> Option<Lease> {
        self.lock().leases.get(&number).cloned()
    }

    /// Changes what has become of a lease; returns it once that survives a crash. `None`: it is not held.
    pub(crate) fn change(&self, number: u64, change: impl FnOnce(&mut Standing)) -> Result<Option<Lease>, StoreError> {
        let mut table = self.lock();
        let Some(lease) = table.leases.get_mut(&number) else { return Ok(None) };
        let mut standing = lease.standing.clone();
        change(&mut standing);
        let summary = (PlanKey::numbered(number), encode_record(&standing.encode_to_vec()));
        self.shared.store.set_summaries(&[summary], Durability::Synced)?;
        lease.standing = standing;
        Ok(Some(lease.clone()))
    }

    /// Lets go of leases; returns how many were held.
    pub(crate) fn release(&self, numbers: &[u64]) -> Result<usize, StoreError> {
        let mut table = self.lock();
        let held: Vec<u64> = numbers.iter().copied().filter(|number| table.leases.contains_key(number)).collect();
        let keys: Vec<PlanKey> = held.iter().copied().map(PlanKey::numbered).collect();
        self.shared.store.remove(&keys)?;
        for number in &held {
            if let Some(lease) = table.leases.remove(number) {
                table.bytes = table.bytes.saturating_sub(encode_record(&lease.deed.encode_to_vec()).len());
            }
        }
        Ok(held.len())
    }

    /// The leases that `wanted` picks, by their numbers.
    pub(crate) fn select(&self, wanted: impl Fn(&Lease) -> bool) -> Vec<Lease> {
        self.lock().leases.values().filter(|lease| wanted(lease)).cloned().collect()
    }

    /// Number of leases.
    pub(crate) fn len(&self) -> usize {
        self.lock().leases.len()
    }

    /// Now, by the clock of the leases.
    pub(crate) fn now_ms(&self) -> u64 {
        (self.shared.options.now_ms)()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.shared.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(key: &PlanKey, record: &[u8], summary: &[u8]) -> Option<Lease> {
    let deed = Deed::decode(decode_record(record).ok()?).ok()?;
    let standing = Standing::decode(decode_record(summary).ok()?).ok()?;
    let is_whole =
        PlanKey::numbered(deed.number) == *key && deed.items.len() == standing.items.len() && deed.base.len() == 32;
    is_whole.then(|| Lease { deed: Arc::new(deed), standing })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    const OPTIONS: LeaseOptions = LeaseOptions { count_max: 3, bytes_max: 1000, now_ms: || 7 };

    fn deed(job: &str) -> Deed {
        let items = vec![Item { original: vec![1; 32], links: vec![0b101], ranks: 4, ..Item::default() }];
        Deed { job: job.to_owned(), base: vec![2; 32], items, ..Deed::default() }
    }

    fn standing(plan: &str) -> Standing {
        let valid = Valid { plan: plan.to_owned(), lost: vec![2], ..Valid::default() };
        Standing { expire_ms: 10, ttl_ms: 3, items: vec![valid] }
    }

    #[test]
    fn leases_survive_a_restart_with_what_became_of_them() {
        let store = Arc::new(MemoryStore::default());
        let leases = Leases::open(Arc::clone(&store) as Arc<dyn Store>, OPTIONS).unwrap();
        let first = leases.acquire(deed("a"), standing("plans/a")).unwrap();
        let second = leases.acquire(deed("b"), standing("plans/b")).unwrap();
        assert_eq!(number_of(&second.name()), Some(second.deed.number));
        let changed = leases.change(second.deed.number, |known| *known = standing("plans/c")).unwrap();
        assert_eq!(changed.map(|lease| lease.standing), Some(standing("plans/c")));
        assert!(leases.change(99, |_| ()).unwrap().is_none());
        assert_eq!(leases.release(&[first.deed.number, 99]).unwrap(), 1);
        let again = Leases::open(store, OPTIONS).unwrap();
        assert_eq!((again.len(), again.get(first.deed.number).is_none()), (1, true));
        let kept = again.get(second.deed.number).unwrap();
        assert_eq!((&kept.deed, kept.standing.items[0].plan.as_str()), (&second.deed, "plans/c"));
        let shown = kept.describe(|_| true);
        assert_eq!((shown.plans[0].survivors.as_slice(), shown.plans[0].is_replanning), (&[0, 1, 3][..], true));
        let third = again.acquire(deed("c"), standing("")).unwrap();
        assert!(third.deed.number > second.deed.number, "names are not given twice");
    }

    #[test]
    fn leases_are_limited_in_number_and_size() {
        let leases = Leases::open(Arc::new(MemoryStore::default()), OPTIONS).unwrap();
        let large = Deed { job: "x".repeat(1000), ..deed("") };
        assert!(matches!(leases.acquire(large, standing("")), Err(LeaseError::TooLarge { .. })));
        let numbers: Vec<u64> = (0..3).map(|_| leases.acquire(deed("a"), standing("")).unwrap().deed.number).collect();
        assert!(matches!(leases.acquire(deed("a"), standing("")), Err(LeaseError::TooMany { count: 3 })));
        assert_eq!(leases.release(&numbers).unwrap(), 3);
        assert_eq!(leases.lock().bytes, 0);
    }

    #[test]
    fn a_damaged_lease_goes_into_quarantine() {
        let store = Arc::new(MemoryStore::default());
        let leases = Leases::open(Arc::clone(&store) as Arc<dyn Store>, OPTIONS).unwrap();
        let number = leases.acquire(deed("a"), standing("")).unwrap().deed.number;
        store.put(&PlanKey::numbered(number), &[1, 2, 3], &encode_record(&standing("").encode_to_vec())).unwrap();
        let again = Leases::open(Arc::clone(&store) as Arc<dyn Store>, OPTIONS).unwrap();
        assert_eq!((again.len(), store.quarantined_count().unwrap()), (0, 1));
    }

    #[test]
    fn only_whole_names_name_a_lease() {
        for name in
            ["leases/", "leases/12", "lease/0000000000000001", "leases/00000000000000zz", "leases/+000000000000001"]
        {
            assert_eq!(number_of(name), None, "{name}");
        }
        assert_eq!(number_of("leases/00000000000000ff"), Some(255));
    }
}
