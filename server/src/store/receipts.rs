//! Answers to requests that carry an id of their own, so that a repeat gets the first answer and does nothing.
//!
//! Only answers are kept, not refusals: a request that failed has changed nothing, and trying again is what its id is
//! for. Between the deed and its receipt a crash may come; so what is done under an id must do no harm when it is done
//! again by whoever never heard of its end, or what was done must itself say by which request (see [`Open::marks`]).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use canopy_planner::{PlanKey, chain};
use parking_lot::{Condvar, Mutex};
use prost::Message;

use crate::clock;
use crate::store::deciding;
use crate::store::{DamagedRecord, SpaceOf, Store, StoreError, Stored, Summarised, decode_message, encode_message};

/// Keeps receipts in a space of the store. Clones share it. Every call may block on the disk.
#[derive(Clone)]
pub(crate) struct Receipts {
    shared: Arc<Shared>,
}

/// How many receipts are kept, and where the time comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiptOptions {
    /// Most receipts; beyond, the oldest go.
    pub(crate) count_max: usize,
    /// Most bytes of their records; beyond, the oldest go.
    pub(crate) bytes_max: u64,
    /// Age at which they are worth nothing, in milliseconds.
    pub(crate) age_max_ms: u64,
    /// Milliseconds since 1970 UTC.
    pub(crate) now_ms: fn() -> u64,
}

impl ReceiptOptions {
    /// 16,384 receipts of 16 MiB for 24 hours, by the clock of the system.
    pub(crate) const STANDARD: Self =
        Self { count_max: 16_384, bytes_max: 16 << 20, age_max_ms: 24 * 3_600_000, now_ms: clock::steady_ms };
}

struct Shared {
    space: SpaceOf<Receipt>,
    options: ReceiptOptions,
    /// Read from the summaries when first needed. Held while the disk is used.
    index: Mutex<Option<Index>>,
    /// Requests that are being done. Never held for long.
    busy: Mutex<HashSet<PlanKey>>,
    /// Some request has ended.
    ended: Condvar,
}

/// The receipts that are there, oldest first.
#[derive(Default)]
struct Index {
    by_age: BTreeSet<(u64, PlanKey)>,
    entries: HashMap<PlanKey, Summary>,
    bytes: u64,
}

/// A receipt as it is stored; the fields are only ever added to.
#[derive(Clone, PartialEq, prost::Message)]
struct Receipt {
    #[prost(bytes = "vec", tag = "1")]
    digest: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    answer: Vec<u8>,
    /// Not empty: there is no answer yet, only what the first attempt began with.
    #[prost(bytes = "vec", tag = "3")]
    begun: Vec<u8>,
}

/// What is kept beside it.
#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Summary {
    #[prost(uint64, tag = "1")]
    created_ms: u64,
    #[prost(uint64, tag = "2")]
    size_bytes: u64,
}

impl Stored for Receipt {
    fn decode(_: &PlanKey, record: Bytes) -> Result<Self, DamagedRecord> {
        decode_message(&record)
    }
}

impl Summarised for Receipt {
    type Summary = Summary;

    fn decode_summary(_: &PlanKey, summary: &[u8]) -> Result<Summary, DamagedRecord> {
        decode_message(summary)
    }
}

/// A request that carries an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repeatable {
    id: [u8; 16],
    /// Of the method and everything that is asked of it.
    digest: [u8; 32],
}

/// The id of a request is not a UUID.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a UUID such as 123e4567-e89b-42d3-a456-426614174000; make a new one for each request")]
pub(crate) struct NotAnId {
    found: String,
}

/// Why a request with an id is not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReceiptError {
    #[error("request id {id} was already used for another request; make a new one for each request")]
    Reused { id: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is to be done about a request.
pub(crate) enum Claim {
    /// Nothing: this was the answer.
    Answered(Vec<u8>),
    /// It is to be done, and nobody else does it meanwhile.
    Open(Open),
}

/// A request that is being done. Dropping it without an answer leaves it to the next one who asks.
pub(crate) struct Open {
    shared: Arc<Shared>,
    key: PlanKey,
    request: Repeatable,
    /// What an attempt began with of whose end nothing is known; else empty.
    begun: Vec<u8>,
}

impl Repeatable {
    /// Reads the id of a request with this body; none where there is no id.
    pub(crate) fn new(method: &str, id: &str, body: &impl Message) -> Result<Option<Self>, NotAnId> {
        Self::with_digest(method, id, blake3::hash(&body.encode_to_vec()).as_bytes())
    }

    /// The same for a body of this digest.
    pub(crate) fn with_digest(method: &str, id: &str, body: &[u8; 32]) -> Result<Option<Self>, NotAnId> {
        if id.is_empty() {
            return Ok(None);
        }
        let id = read_id(id)?;
        let mut hasher = blake3::Hasher::new_derive_key("canopy request digest 1");
        hasher.update(&(method.len() as u64).to_le_bytes()).update(method.as_bytes()).update(body);
        Ok(Some(Self { id, digest: *hasher.finalize().as_bytes() }))
    }

    fn key(&self) -> PlanKey {
        PlanKey::from_bytes(blake3::derive_key("canopy request id 1", &self.id))
    }
}

/// Prints the UUID.
impl fmt::Display for Repeatable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, byte) in self.id.iter().enumerate() {
            let hyphen = if matches!(position, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{hyphen}{byte:02x}")?;
        }
        Ok(())
    }
}

/// The bytes of the id of a request.
pub(crate) fn read_id(id: &str) -> Result<[u8; 16], NotAnId> {
    parse_uuid(id).ok_or_else(|| NotAnId { found: id.chars().take(80).collect() })
}

/// Reads 8-4-4-4-12 hexadecimal digits, of whatever version and case.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let is_hyphen = |position| matches!(position, 8 | 13 | 18 | 23);
    let fits = |(position, byte): (usize, u8)| match is_hyphen(position) {
        true => byte == b'-',
        false => byte.is_ascii_hexdigit(),
    };
    if text.len() != 36 || !text.bytes().enumerate().all(fits) {
        return None;
    }
    let digits: String = text.chars().filter(|&character| character != '-').collect();
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}

impl Receipts {
    pub(crate) fn new(store: Arc<dyn Store>, options: ReceiptOptions) -> Self {
        let space = SpaceOf::new(store);
        let shared = Shared { space, options, index: Mutex::default(), busy: Mutex::default(), ended: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Finds the receipt of a request, or lets the caller do it. Waits while somebody else does the same.
    pub(crate) fn claim(&self, request: &Repeatable) -> Result<Claim, ReceiptError> {
        let (shared, key) = (Arc::clone(&self.shared), request.key());
        let mut open = Open { shared, key, request: request.clone(), begun: Vec::new() };
        let mut busy = self.shared.busy.lock();
        while busy.contains(&open.key) {
            self.shared.ended.wait(&mut busy);
        }
        busy.insert(open.key);
        drop(busy);
        match self.shared.read(&open.key)? {
            Some(receipt) if receipt.digest != request.digest => Err(ReceiptError::Reused { id: request.to_string() }),
            Some(Receipt { begun, answer, .. }) if begun.is_empty() => Ok(Claim::Answered(answer)),
            Some(Receipt { begun, .. }) => {
                open.begun = begun;
                Ok(Claim::Open(open))
            }
            None => Ok(Claim::Open(open)),
        }
    }
}

impl Open {
    /// The key and the digest of the request, for what is done to be found by them where this receipt is lost.
    pub(crate) const fn marks(&self) -> (&PlanKey, &[u8; 32]) {
        (&self.key, &self.request.digest)
    }

    /// The refusal of this request, where its id was used for another one.
    pub(crate) fn reused(&self) -> ReceiptError {
        ReceiptError::Reused { id: self.request.to_string() }
    }

    /// What the first attempt at this request began with, where that was cut off; none: this is the first, which begins with `state`. Returns once that survives a crash, so that whoever does the deed again does it to what was there then, and to nothing
    /// newer.
    ///
    /// # Errors
    /// The engine failed.
    pub(crate) fn begin(&self, state: u64) -> Result<Option<u64>, StoreError> {
        if let Some(state) = self.begun.first_chunk::<8>() {
            return Ok(Some(u64::from_be_bytes(*state)));
        }
        self.shared.write(&self.key, &self.request, Vec::new(), state.to_be_bytes().to_vec())?;
        Ok(None)
    }

    /// Keeps the answer. A disk that fails costs the receipt, not the answer.
    pub(crate) fn keep(self, answer: Vec<u8>) {
        if let Err(error) = self.shared.write(&self.key, &self.request, answer, Vec::new()) {
            tracing::error!(request = %self.request, error = chain(&error), "a receipt could not be stored");
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.busy.lock().remove(&self.key);
        self.shared.ended.notify_all();
    }
}

impl Shared {
    /// The receipts that are there, read the first time. One whose summary cannot be read is removed: it is worth
    /// little, and its age is not known. O(receipts) once.
    fn index<'a>(&self, guard: &'a mut Option<Index>) -> Result<&'a mut Index, StoreError> {
        let changed = self.space.changed_summaries();
        if let Some(index) = guard.as_mut() {
            for change in changed {
                let (key, summary) = change?;
                index.strike(&key);
                summary.into_iter().for_each(|summary| index.enter(key, summary));
            }
        } else {
            let (mut index, mut unreadable) = (Index::default(), Vec::new());
            for entry in self.space.summaries() {
                match entry? {
                    (key, Some(summary)) => index.enter(key, summary),
                    (key, None) => unreadable.push(key),
                }
            }
            self.space.remove(&unreadable)?;
            *guard = Some(index);
        }
        Ok(guard.as_mut().expect("it has just been read"))
    }

    /// The receipt under this key, unless it is too old or damaged.
    fn read(&self, key: &PlanKey) -> Result<Option<Receipt>, StoreError> {
        let oldest = (self.options.now_ms)().saturating_sub(self.options.age_max_ms);
        let mut guard = self.index.lock();
        let index = self.index(&mut guard)?;
        if index.entries.get(key).is_none_or(|summary| summary.created_ms < oldest) {
            return Ok(None);
        }
        let receipt = self.space.get(key)?.found();
        if receipt.is_none() {
            index.strike(key);
        }
        Ok(receipt)
    }

    fn write(&self, key: &PlanKey, request: &Repeatable, answer: Vec<u8>, begun: Vec<u8>) -> Result<(), StoreError> {
        let receipt = Receipt { digest: request.digest.to_vec(), answer, begun };
        let record = encode_message(&receipt);
        let now = (self.options.now_ms)();
        let summary = Summary { created_ms: now, size_bytes: record.len() as u64 };
        deciding(|| {
            let mut guard = self.index.lock();
            let index = self.index(&mut guard)?;
            let old = index.oldest(self.options, now.saturating_sub(self.options.age_max_ms), summary.size_bytes);
            self.space.remove(&old)?;
            old.iter().for_each(|key| index.strike(key));
            self.space.put(key, &record, &encode_message(&summary))?;
            index.enter(*key, summary);
            Ok(())
        })
    }
}

impl Index {
    fn enter(&mut self, key: PlanKey, summary: Summary) {
        self.strike(&key);
        self.by_age.insert((summary.created_ms, key));
        self.entries.insert(key, summary);
        self.bytes += summary.size_bytes;
    }

    fn strike(&mut self, key: &PlanKey) {
        if let Some(summary) = self.entries.remove(key) {
            self.by_age.remove(&(summary.created_ms, *key));
            self.bytes -= summary.size_bytes;
        }
    }

    /// Those that go so that one more of `needed` bytes has room: the outdated ones, and the oldest beyond the limits.
    fn oldest(&self, options: ReceiptOptions, outdated_before_ms: u64, needed: u64) -> Vec<PlanKey> {
        let (mut count, mut bytes) = (self.entries.len(), self.bytes.saturating_add(needed));
        let mut going = Vec::new();
        for &(created_ms, key) in &self.by_age {
            if created_ms >= outdated_before_ms && count < options.count_max && bytes <= options.bytes_max {
                break;
            }
            count -= 1;
            bytes -= self.entries.get(&key).map_or(0, |summary| summary.size_bytes);
            going.push(key);
        }
        going
    }
}

#[cfg(test)]
mod tests;
