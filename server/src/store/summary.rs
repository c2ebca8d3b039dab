//! What is known of a stored plan without reading it.

use std::time::Duration;

use canopy_planner::{PlanKey, ScheduleKey};
use canopy_wire::StoredPlan;

use super::{DamagedRecord, decode_message, encode_message};

/// A stored plan in a few hundred bytes: kept beside the record, so that listing plans reads no contents.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanSummary {
    /// Where the plan is stored.
    pub key: PlanKey,
    /// The plan's id, `plans/…`.
    pub id: String,
    /// What it does.
    pub collective: StatedCollective,
    /// Name of the algorithm that made it.
    pub algorithm: String,
    /// Hash of the network's shape, as the plan states it.
    pub topology_hash: String,
    /// Number of ranks.
    pub ranks: u32,
    /// achieved ÷ bound, reduced, `num/den`.
    pub optimality: String,
    /// Achieved algbw in bytes per second, an exact fraction.
    pub achieved: String,
    /// Upper bound on algbw in bytes per second, an exact fraction.
    pub bound: String,
    /// Bytes of the stored record.
    pub size_bytes: u64,
    /// When it was stored first, in milliseconds since 1970 UTC.
    pub created_ms: u64,
    /// When it was asked for last, in milliseconds since 1970 UTC; never before `created_ms`.
    pub last_used_ms: u64,
    /// How often it was taken from the store.
    pub hits: u64,
    /// Whether it is kept whatever happens.
    pub pinned: bool,
    /// How long it took to make, in milliseconds.
    pub synthesis_ms: u64,
    /// The plan that was asked for when this one was last sent in its place.
    pub stood_in_for: Option<PlanKey>,
    /// The tenant whose plan it is alone; empty: everybody's.
    pub tenant: String,
    /// The schedules that it was made of.
    pub schedules: Vec<ScheduleKey>,
    /// What it was asked for by, where that is known; whoever stores the plan says what these bytes mean.
    pub asked: Vec<u8>,
}

/// What a plan says that it does, laid out as `canopy.v1.CollectiveSpec`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct StatedCollective {
    /// Its number on the wire.
    #[prost(int32, tag = "1")]
    pub kind: i32,
    /// The rank with a role of its own.
    #[prost(uint32, optional, tag = "2")]
    pub root: Option<u32>,
}

/// The layout of a stored summary, without what the plan's key says. Fields are only ever added.
#[derive(Clone, PartialEq, prost::Message)]
struct Fields {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(string, tag = "2")]
    id: String,
    #[prost(message, optional, tag = "3")]
    collective: Option<StatedCollective>,
    #[prost(string, tag = "4")]
    algorithm: String,
    #[prost(string, tag = "5")]
    topology_hash: String,
    #[prost(uint32, tag = "6")]
    ranks: u32,
    #[prost(string, tag = "7")]
    optimality: String,
    #[prost(string, tag = "8")]
    achieved: String,
    #[prost(string, tag = "9")]
    bound: String,
    #[prost(uint64, tag = "10")]
    size_bytes: u64,
    #[prost(uint64, tag = "11")]
    created_ms: u64,
    #[prost(uint64, tag = "12")]
    last_used_ms: u64,
    #[prost(uint64, tag = "13")]
    hits: u64,
    #[prost(bool, tag = "14")]
    pinned: bool,
    #[prost(uint64, tag = "15")]
    synthesis_ms: u64,
    #[prost(bytes = "vec", tag = "16")]
    stood_in_for: Vec<u8>,
    #[prost(string, tag = "17")]
    tenant: String,
    #[prost(bytes = "vec", repeated, tag = "18")]
    schedules: Vec<Vec<u8>>,
    #[prost(bytes = "vec", tag = "19")]
    asked: Vec<u8>,
}

impl PlanSummary {
    /// The summary of a plan that is stored for the first time.
    pub(crate) fn of(key: PlanKey, stored: &StoredPlan, size_bytes: u64, now_ms: u64) -> Self {
        let plan = &stored.plan;
        let quality = plan.quality.clone().unwrap_or_default();
        let topology = plan.topology.clone().unwrap_or_default();
        let collective = plan.collective.unwrap_or_default();
        let provenance = plan.provenance.clone().unwrap_or_default();
        let synthesis = Duration::try_from_secs_f64(provenance.wall_ms / 1e3).unwrap_or_default();
        // Of what it says that it was made of, nothing that is no key.
        let schedules: Vec<ScheduleKey> =
            provenance.schedules.iter().filter_map(|digits| ScheduleKey::from_digits(digits)).collect();
        Self {
            key,
            id: plan.id.clone(),
            collective: StatedCollective { kind: collective.kind, root: collective.root },
            algorithm: plan.algorithm.clone(),
            topology_hash: topology.hash,
            ranks: topology.ranks,
            optimality: quality.optimality,
            achieved: quality.achieved,
            bound: quality.bound,
            size_bytes,
            created_ms: now_ms,
            last_used_ms: now_ms,
            hits: 0,
            pinned: false,
            synthesis_ms: u64::try_from(synthesis.as_millis()).unwrap_or(u64::MAX),
            stood_in_for: None,
            tenant: provenance.tenant,
            schedules,
            asked: Vec::new(),
        }
    }

    /// The bytes kept beside the record: the envelope of a record around the fields.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let fields = Fields {
            key: self.key.as_bytes().to_vec(),
            id: self.id.clone(),
            collective: Some(self.collective),
            algorithm: self.algorithm.clone(),
            topology_hash: self.topology_hash.clone(),
            ranks: self.ranks,
            optimality: self.optimality.clone(),
            achieved: self.achieved.clone(),
            bound: self.bound.clone(),
            size_bytes: self.size_bytes,
            created_ms: self.created_ms,
            last_used_ms: self.last_used_ms,
            hits: self.hits,
            pinned: self.pinned,
            synthesis_ms: self.synthesis_ms,
            stood_in_for: self.stood_in_for.map(|key| key.as_bytes().to_vec()).unwrap_or_default(),
            tenant: self.tenant.clone(),
            schedules: self.schedules.iter().map(|key| key.as_bytes().to_vec()).collect(),
            asked: self.asked.clone(),
        };
        encode_message(&fields)
    }

    /// Reads what [`PlanSummary::encode`] wrote for this key.
    pub(crate) fn decode(key: &PlanKey, bytes: &[u8]) -> Result<Self, DamagedRecord> {
        let fields: Fields = decode_message(bytes)?;
        if fields.key != key.as_bytes() {
            return Err(DamagedRecord::Payload);
        }
        Ok(Self {
            key: *key,
            id: fields.id,
            collective: fields.collective.unwrap_or_default(),
            algorithm: fields.algorithm,
            topology_hash: fields.topology_hash,
            ranks: fields.ranks,
            optimality: fields.optimality,
            achieved: fields.achieved,
            bound: fields.bound,
            size_bytes: fields.size_bytes,
            created_ms: fields.created_ms,
            last_used_ms: fields.last_used_ms,
            hits: fields.hits,
            pinned: fields.pinned,
            synthesis_ms: fields.synthesis_ms,
            stood_in_for: fields.stood_in_for.try_into().ok().map(PlanKey::from_bytes),
            tenant: fields.tenant,
            schedules: keys(fields.schedules).ok_or(DamagedRecord::Payload)?,
            asked: fields.asked,
        })
    }

    /// The same with the uses, the pin and the creation of another, and what that was asked for by where nothing else is known.
    pub(crate) fn with_history_of(&self, other: &Self) -> Self {
        let Self { created_ms, hits, pinned, stood_in_for, .. } = *other;
        let last_used_ms = self.last_used_ms.max(other.last_used_ms);
        let asked = if self.asked.is_empty() { other.asked.clone() } else { self.asked.clone() };
        Self { created_ms, last_used_ms, hits, pinned, stood_in_for, asked, ..self.clone() }
    }

    /// Whether both are of the same record, whatever its history.
    pub(crate) fn describes_same_as(&self, other: &Self) -> bool {
        let bare = |summary: &Self| Self {
            created_ms: 0,
            last_used_ms: 0,
            hits: 0,
            pinned: false,
            stood_in_for: None,
            asked: Vec::new(),
            ..summary.clone()
        };
        bare(self) == bare(other)
    }

    /// Adds uses that have not been written down.
    pub(crate) fn add_uses(&mut self, uses: Uses) {
        self.hits = self.hits.saturating_add(uses.count);
        self.last_used_ms = self.last_used_ms.max(uses.last_ms);
        self.stood_in_for = uses.stood_in_for.or(self.stood_in_for);
    }
}

fn keys(fields: Vec<Vec<u8>>) -> Option<Vec<ScheduleKey>> {
    fields.into_iter().map(|bytes| bytes.try_into().ok().map(ScheduleKey::from_bytes)).collect()
}

/// Uses of a plan that its stored summary does not know of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uses {
    /// How many.
    pub(crate) count: u64,
    /// When the last one was, in milliseconds since 1970 UTC.
    pub(crate) last_ms: u64,
    /// The plan that it was sent in place of last, if it was.
    pub(crate) stood_in_for: Option<PlanKey>,
}
