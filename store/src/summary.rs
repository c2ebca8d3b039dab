//! The summary of a stored plan, known without reading the plan.

use std::collections::BTreeSet;
use std::time::Duration;

use canopy_planner::{PlanKey, ScheduleKey};
use canopy_wire::Exact as _;
use canopy_wire::StoredPlan;

use super::{DamagedRecord, decode_message, encode_message};

/// A stored plan in a few hundred bytes: kept beside the record, so that listing plans reads no contents. Fields are
/// only ever added.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PlanSummary {
    /// Where the plan is stored, see [`PlanSummary::key`].
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The plan's id, `plans/…`.
    #[prost(string, tag = "2")]
    pub id: String,
    /// What it does.
    #[prost(message, required, tag = "3")]
    pub collective: StatedCollective,
    /// Name of the algorithm that made it.
    #[prost(string, tag = "4")]
    pub algorithm: String,
    /// Hash of the network's shape, as the plan states it.
    #[prost(string, tag = "5")]
    pub topology_hash: String,
    /// Number of ranks.
    #[prost(uint32, tag = "6")]
    pub ranks: u32,
    /// achieved ÷ bound, reduced, `num/den`.
    #[prost(string, tag = "7")]
    pub optimality: String,
    /// Achieved algbw in bytes per second, an exact fraction.
    #[prost(string, tag = "8")]
    pub achieved: String,
    /// Upper bound on algbw in bytes per second, an exact fraction.
    #[prost(string, tag = "9")]
    pub bound: String,
    /// Bytes of the stored record.
    #[prost(uint64, tag = "10")]
    pub size_bytes: u64,
    /// When it was stored first, in milliseconds since 1970 UTC.
    #[prost(uint64, tag = "11")]
    pub created_ms: u64,
    /// When it was asked for last, in milliseconds since 1970 UTC; never before `created_ms`.
    #[prost(uint64, tag = "12")]
    pub last_used_ms: u64,
    /// How often it was taken from the store.
    #[prost(uint64, tag = "13")]
    pub hits: u64,
    /// Whether it is kept whatever happens.
    #[prost(bool, tag = "14")]
    pub pinned: bool,
    /// How long it took to make, in milliseconds.
    #[prost(uint64, tag = "15")]
    pub synthesis_ms: u64,
    /// Key of the plan that was asked for when this one was last sent in its place; empty: none was.
    #[prost(bytes = "vec", tag = "16")]
    pub stood_in_for: Vec<u8>,
    /// The tenant whose plan it is alone; empty: everybody's.
    #[prost(string, tag = "17")]
    pub tenant: String,
    /// Keys of the schedules that it was made of, see [`PlanSummary::schedules`].
    #[prost(bytes = "vec", repeated, tag = "18")]
    pub schedules: Vec<Vec<u8>>,
    /// What it was asked for by, where that is known; whoever stores the plan says what these bytes mean.
    #[prost(bytes = "vec", tag = "19")]
    pub asked: Vec<u8>,
    /// Name of the network, where it has one.
    #[prost(string, tag = "20")]
    pub network: String,
    /// Formats of its files by their numbers on the wire, in rising order, each once.
    #[prost(int32, repeated, tag = "21")]
    pub formats: Vec<i32>,
    /// What was broken or slow in its network, in words.
    #[prost(string, tag = "22")]
    pub without: String,
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

impl PlanSummary {
    /// The summary of a plan that is stored for the first time.
    pub fn of(key: PlanKey, stored: &StoredPlan, size_bytes: u64, now_ms: u64) -> Self {
        let plan = &stored.plan;
        let quality = plan.quality.clone().unwrap_or_default();
        let topology = plan.topology.clone().unwrap_or_default();
        let collective = plan.collective.unwrap_or_default();
        let provenance = plan.provenance.clone().unwrap_or_default();
        let synthesis: Duration = provenance.wall_time.and_then(|time| time.try_into().ok()).unwrap_or_default();
        // Of what it says that it was made of, nothing that is no key.
        let schedules = provenance.schedules.iter().filter_map(|digits| ScheduleKey::from_digits(digits));
        Self {
            key: key.as_bytes().to_vec(),
            id: plan.name.clone(),
            collective: StatedCollective { kind: collective.kind, root: collective.root },
            algorithm: plan.algorithm.clone(),
            topology_hash: topology.hash,
            ranks: topology.ranks,
            optimality: quality.optimality.exact().to_owned(),
            achieved: quality.achieved.exact().to_owned(),
            bound: quality.bound.exact().to_owned(),
            size_bytes,
            created_ms: now_ms,
            last_used_ms: now_ms,
            hits: 0,
            pinned: false,
            synthesis_ms: u64::try_from(synthesis.as_millis()).unwrap_or(u64::MAX),
            stood_in_for: Vec::new(),
            tenant: provenance.tenant,
            schedules: schedules.map(|key| key.as_bytes().to_vec()).collect(),
            asked: Vec::new(),
            network: plan.network.clone(),
            without: plan.without.clone(),
            formats: plan.artifacts.iter().map(|file| file.format).collect::<BTreeSet<_>>().into_iter().collect(),
        }
    }

    /// The bytes kept beside the record: the envelope of a record around the fields.
    pub fn encode(&self) -> Vec<u8> {
        encode_message(self)
    }

    /// Reads what [`PlanSummary::encode`] wrote for this key.
    pub fn decode(key: &PlanKey, bytes: &[u8]) -> Result<Self, DamagedRecord> {
        let summary: Self = decode_message(bytes)?;
        let has_keys = summary.schedules.iter().all(|key| key.len() == 32);
        if has_keys && summary.key == key.as_bytes() { Ok(summary) } else { Err(DamagedRecord::Payload) }
    }

    /// Where the plan is stored.
    pub fn key(&self) -> PlanKey {
        PlanKey::from_bytes(self.key.as_slice().try_into().expect("it was made or read for a key"))
    }

    /// The plan that was asked for when this one was last sent in its place.
    pub fn stood_in_for(&self) -> Option<PlanKey> {
        self.stood_in_for.as_slice().try_into().ok().map(PlanKey::from_bytes)
    }

    /// The schedules that it was made of.
    pub fn schedules(&self) -> Vec<ScheduleKey> {
        let keys = self.schedules.iter().filter_map(|key| key.as_slice().try_into().ok());
        keys.map(ScheduleKey::from_bytes).collect()
    }

    /// The same with the uses, the pin and the creation of another, and what that was asked for by where nothing else is known.
    pub fn with_history_of(&self, other: &Self) -> Self {
        let Self { created_ms, hits, pinned, .. } = *other;
        let last_used_ms = self.last_used_ms.max(other.last_used_ms);
        let asked = if self.asked.is_empty() { other.asked.clone() } else { self.asked.clone() };
        let stood_in_for = other.stood_in_for.clone();
        Self { created_ms, last_used_ms, hits, pinned, stood_in_for, asked, ..self.clone() }
    }

    /// Whether both are of the same record, whatever its history. Summaries of 0.1.0 lack the network, its
    /// faults and the formats.
    pub fn describes_same_as(&self, other: &Self) -> bool {
        let bare = |summary: &Self| Self {
            created_ms: 0,
            last_used_ms: 0,
            hits: 0,
            pinned: false,
            stood_in_for: Vec::new(),
            asked: Vec::new(),
            network: String::new(),
            without: String::new(),
            formats: Vec::new(),
            ..summary.clone()
        };
        bare(self) == bare(other)
    }

    /// Adds uses that have not been written down.
    pub fn add_uses(&mut self, uses: Uses) {
        self.hits = self.hits.saturating_add(uses.count);
        self.last_used_ms = self.last_used_ms.max(uses.last_ms);
        if let Some(wanted) = uses.stood_in_for {
            self.stood_in_for = wanted.as_bytes().to_vec();
        }
    }
}

/// Uses of a plan that its stored summary does not know of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// How many.
    pub count: u64,
    /// When the last one was, in milliseconds since 1970 UTC.
    pub last_ms: u64,
    /// The plan that it was sent in place of last, if it was.
    pub stood_in_for: Option<PlanKey>,
}

impl Uses {
    /// Counts earlier uses, too.
    pub fn add(&mut self, earlier: Self) {
        self.count = self.count.saturating_add(earlier.count);
        self.last_ms = self.last_ms.max(earlier.last_ms);
        self.stood_in_for = self.stood_in_for.or(earlier.stood_in_for);
    }
}
