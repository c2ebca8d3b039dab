//! Leases as they are written down.

use bytes::Bytes;
use canopy_faults::Loss;
use canopy_planner::PlanKey;

use super::Lease;
use crate::failure::KeptRefusal;
use crate::store::{decode_message, encode_message};

/// What a lease is about; fields are only ever added.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LeaseTerms {
    #[prost(uint64, tag = "1")]
    pub(crate) number: u64,
    #[prost(string, tag = "2")]
    pub(crate) job: String,
    /// Empty: everybody's.
    #[prost(string, tag = "3")]
    pub(crate) tenant: String,
    /// Its number on the wire.
    #[prost(int32, tag = "4")]
    pub(crate) priority: i32,
    /// Key of the sound network.
    #[prost(bytes = "vec", tag = "5")]
    pub(crate) base: Vec<u8>,
    /// What is held.
    #[prost(message, repeated, tag = "6")]
    pub(crate) items: Vec<Item>,
    #[prost(uint64, tag = "7")]
    pub(crate) created_ms: u64,
    /// The key and the digest of the request that acquired it; both are empty where that had no id.
    #[prost(bytes = "vec", tag = "8")]
    pub(crate) request_key: Vec<u8>,
    #[prost(bytes = "vec", tag = "9")]
    pub(crate) request_digest: Vec<u8>,
    /// The tenant that acquired it, isolated or not; empty for none. Leases that were acquired before there were owners
    /// have none.
    #[prost(string, optional, tag = "10")]
    pub(crate) owner: Option<String>,
}

/// A plan that is held.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Item {
    /// What was asked for, a `canopy.v1.PlanSpec`; the topology by its id or expression.
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) request: Bytes,
    /// Key of the plan for the sound network.
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) original: Bytes,
    /// The links that it is on, see [`LinkSet`](super::link_set::LinkSet).
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) links: Bytes,
    /// Number of its ranks.
    #[prost(uint32, tag = "4")]
    pub(crate) ranks: u32,
}

impl Item {
    /// Key of the plan for the sound network. That of a lease which was read from the disk is one.
    pub(crate) fn original_key(&self) -> PlanKey {
        key_from(&self.original).unwrap_or(PlanKey::from_bytes([0; 32]))
    }
}

/// What has become of a lease; fields are only ever added.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LeaseState {
    #[prost(uint64, tag = "1")]
    pub(crate) expire_ms: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) ttl_ms: u64,
    /// One for each item.
    #[prost(message, repeated, tag = "3")]
    pub(crate) items: Vec<ValidPlan>,
    /// Whether it is about to be told of as expired, so that nobody can renew it.
    #[prost(bool, tag = "4")]
    pub(crate) is_ending: bool,
}

/// The plan that is valid now in place of one that is held.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ValidPlan {
    /// `plans/…`; empty: there is none.
    #[prost(string, tag = "1")]
    pub(crate) plan: String,
    /// What it avoids, see [`Avoided`]; empty: nothing, it is the original.
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) avoided: Vec<u8>,
    /// Why there is none.
    #[prost(message, optional, tag = "3")]
    pub(crate) error: Option<KeptRefusal>,
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

/// Tells one set of losses from another, see [`Avoided`].
pub(in crate::replan) fn digest(losses: &[Loss]) -> Avoided {
    let mut hasher = blake3::Hasher::new_derive_key("canopy losses 1");
    for text in losses.iter().map(Loss::to_string) {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// A key that was written down.
pub(super) fn key_from(bytes: &[u8]) -> Option<PlanKey> {
    bytes.try_into().ok().map(PlanKey::from_bytes)
}

/// What has become of a lease, as it is written down.
pub(super) fn summary_of(lease: &Lease) -> (PlanKey, Vec<u8>) {
    (PlanKey::numbered(lease.terms.number), encode_message(&*lease.state))
}

/// The lease of this key, as it was written down; none: it cannot be read.
pub(super) fn read(key: &PlanKey, record: &[u8], summary: &[u8]) -> Option<Lease> {
    let (terms, state): (LeaseTerms, LeaseState) = (decode_message(record).ok()?, decode_message(summary).ok()?);
    let has_keys = key_from(&terms.base).is_some() && terms.items.iter().all(|item| key_from(&item.original).is_some());
    let is_whole = PlanKey::numbered(terms.number) == *key && terms.items.len() == state.items.len() && has_keys;
    is_whole.then(|| Lease::new(terms, state, record.len()))
}
