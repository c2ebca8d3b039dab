//! Stored clusters, by the names that their operators give them, and networks of parts of them.
//!
//! A cluster is kept as its description was sent, and read again when it is first used. A part that was composed lately is
//! at hand as the text of its network.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use canopy_import::{ClusterCounts, ClusterModel, ComposeError, Report};
use canopy_planner::{PlanKey, chain};
use canopy_proto::v1;
use canopy_topology::{HostsError, TopologyLimits, expand_hosts, is_cluster_name, shorten, to_json};
use canopy_wire::{ClusterError, cluster_model};
use parking_lot::Mutex;
use prost::Message as _;

use crate::reading::on_a_deep_stack;
use crate::store::{
    DamagedRecord, Lookup, SpaceOf, Store, StoreError, Stored, Summarised, decode_message, encode_message,
};

/// What every name begins with.
pub(crate) const FOLDER: &str = "clusters/";
/// Most clusters.
const COUNT_MAX: usize = 256;
/// Most bytes of their descriptions.
const BYTES_MAX: u64 = 256 << 20;
/// Most clusters that are at hand as they were read, and most bytes of the text of parts.
const MODELS_MAX: usize = 16;
const PARTS_BYTES_MAX: usize = 64 << 20;
/// Most machines of a part.
const NODES_MAX: usize = 65_536;

/// Keeps clusters in a space of the store. Clones share it. Every call may block on the disk.
#[derive(Clone)]
pub(crate) struct ClusterStore {
    shared: Arc<Shared>,
}

struct Shared {
    space: SpaceOf<KeptCluster>,
    now_ms: fn() -> u64,
    /// Held while anything changes.
    changing: Mutex<()>,
    at_hand: Mutex<AtHand>,
}

/// Clusters and parts in memory, of which the first to come is the first to go.
#[derive(Default)]
struct AtHand {
    models: VecDeque<Model>,
    parts: HashMap<[u8; 32], Bytes>,
    arrivals: VecDeque<[u8; 32]>,
    bytes: usize,
}

/// A cluster as it was read.
#[derive(Clone)]
struct Model {
    key: PlanKey,
    /// Of its description.
    digest: [u8; 32],
    cluster: Arc<ClusterModel>,
}

/// What is known of a stored cluster, and in its record the description as well. Fields are only ever added.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct KeptCluster {
    /// `clusters/…`.
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    /// Machines, ranks and switches.
    #[prost(uint64, tag = "2")]
    pub(crate) nodes: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) ranks: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) switches: u64,
    /// When it was stored first, and when its description changed last, in milliseconds since 1970 UTC.
    #[prost(uint64, tag = "5")]
    pub(crate) created_ms: u64,
    #[prost(uint64, tag = "6")]
    pub(crate) updated_ms: u64,
    /// Bytes of its record. Not in records: they know their own length.
    #[prost(uint64, tag = "7")]
    pub(crate) size_bytes: u64,
    /// `canopy.v1.ClusterDescription`. In records only.
    #[prost(bytes = "bytes", tag = "8")]
    description: Bytes,
}

/// Why a cluster was not kept, or has no such part.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterFailure {
    #[error("cluster `{name}` is not stored; store it with `canopy cluster put`, or list the clusters")]
    Unknown { name: String },
    #[error("`{name}` does not name a cluster; use {FOLDER} and 1 to 63 letters, digits and `- _ .`")]
    Name { name: String },
    #[error(transparent)]
    Description(#[from] ClusterError),
    #[error("description: {}", chain(_0))]
    Machines(ComposeError),
    #[error("nodes: {}", chain(_0))]
    Part(ComposeError),
    #[error("nodes: {_0}")]
    Hosts(HostsError),
    #[error("the limit of {COUNT_MAX} clusters is reached; delete some")]
    TooMany,
    #[error(
        "stored clusters hold {held} bytes, and this one of {found} bytes would exceed the limit of {BYTES_MAX}; delete some"
    )]
    TooLarge { held: u64, found: u64 },
    #[error("the stored cluster `{name}` is damaged and was quarantined: {damage}; store it again")]
    Damaged { name: String, damage: DamagedRecord },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What became of a cluster that was put.
#[derive(Debug)]
pub(crate) struct PutCluster {
    pub(crate) cluster: KeptCluster,
    pub(crate) created: bool,
    pub(crate) changed: bool,
    pub(crate) report: Report,
}

impl ClusterStore {
    pub(crate) fn new(store: Arc<dyn Store>, now_ms: fn() -> u64) -> Self {
        let (changing, at_hand) = (Mutex::default(), Mutex::default());
        Self { shared: Arc::new(Shared { space: SpaceOf::new(store), now_ms, changing, at_hand }) }
    }

    /// Keeps a cluster once every machine of it can be joined; returns once that survives a crash.
    pub(crate) fn put(
        &self,
        name: &str,
        description: &v1::ClusterDescription,
        limits: &TopologyLimits,
        gone: &(dyn Fn() -> bool + Sync),
    ) -> Result<PutCluster, ClusterFailure> {
        let key = key_of(name)?;
        let model = read_model(description, limits, gone)?;
        let (counts, report) = model.check().map_err(ClusterFailure::Machines)?;
        let text = Bytes::from(description.encode_to_vec());
        let _alone = self.shared.changing.lock();
        let known = self.shared.read(&key, name)?;
        if let Some(cluster) = known.as_ref().filter(|known| known.description == text) {
            return Ok(PutCluster { cluster: cluster.clone(), created: false, changed: false, report });
        }
        let now_ms = (self.shared.now_ms)();
        let created_ms = known.as_ref().map_or(now_ms, |known| known.created_ms);
        let (record, cluster) = KeptCluster::encoded(name, counts, (created_ms, now_ms), text);
        self.shared.require_room(&key, cluster.size_bytes)?;
        self.shared.space.put(&key, &record, &encode_message(&cluster))?;
        self.shared.at_hand.lock().forget(&key);
        Ok(PutCluster { cluster, created: known.is_none(), changed: true, report })
    }

    /// The cluster of this name with its description.
    pub(crate) fn get(&self, name: &str) -> Result<(KeptCluster, v1::ClusterDescription), ClusterFailure> {
        let cluster = self.shared.known(&key_of(name)?, name)?;
        let description = cluster.described()?;
        Ok((cluster, description))
    }

    /// Names of its machines, in their order.
    pub(crate) fn nodes(&self, name: &str, limits: &TopologyLimits) -> Result<Vec<String>, ClusterFailure> {
        let model = self.shared.model(&key_of(name)?, name, limits, &|| false)?;
        model.cluster.nodes().map_err(ClusterFailure::Machines)
    }

    /// Removes the cluster of this name; returns the bytes of its record.
    pub(crate) fn remove(&self, name: &str) -> Result<u64, ClusterFailure> {
        let key = key_of(name)?;
        let _alone = self.shared.changing.lock();
        let cluster = self.shared.known(&key, name)?;
        self.shared.space.remove(&[key])?;
        self.shared.at_hand.lock().forget(&key);
        Ok(cluster.size_bytes)
    }

    /// Shows all clusters to `take`, without their descriptions, in the order of their keys.
    pub(crate) fn for_each(&self, mut take: impl FnMut(KeptCluster)) -> Result<(), ClusterFailure> {
        for entry in self.shared.space.summaries() {
            let (key, summary) = entry?;
            match summary {
                Some(cluster) => take(cluster),
                None => self.shared.read(&key, "")?.into_iter().for_each(&mut take),
            }
        }
        Ok(())
    }

    /// The network among some machines of a cluster, in canopy's JSON; all of them if none is named.
    pub(crate) fn part(
        &self,
        wanted: &v1::ClusterNodes,
        limits: &TopologyLimits,
        gone: &(dyn Fn() -> bool + Sync),
    ) -> Result<Bytes, ClusterFailure> {
        let key = key_of(&wanted.cluster)?;
        let Model { digest, cluster: model, .. } = self.shared.model(&key, &wanted.cluster, limits, gone)?;
        let mut hasher = blake3::Hasher::new_derive_key("canopy part of a cluster 1");
        hasher.update(&digest);
        let part = *hasher.update(&wanted.encode_to_vec()).finalize().as_bytes();
        if let Some(text) = self.shared.at_hand.lock().parts.get(&part) {
            return Ok(text.clone());
        }
        let nodes = match wanted.nodes.is_empty() {
            true => model.nodes().map_err(ClusterFailure::Part)?,
            false => expanded(&wanted.nodes).map_err(ClusterFailure::Hosts)?,
        };
        let composed = model.part(&nodes, limits, &|| gone()).map_err(ClusterFailure::Part)?;
        let name = wanted.cluster.strip_prefix(FOLDER).unwrap_or_default();
        let unfit = |_| ClusterFailure::Name { name: shorten(&wanted.cluster) };
        let text = Bytes::from(to_json(&composed.in_cluster(name).map_err(unfit)?));
        self.shared.at_hand.lock().keep(part, &text);
        Ok(text)
    }
}

impl Shared {
    fn read(&self, key: &PlanKey, name: &str) -> Result<Option<KeptCluster>, ClusterFailure> {
        match self.space.get(key)? {
            Lookup::Found(cluster) => Ok(Some(cluster)),
            Lookup::Missing => Ok(None),
            Lookup::Quarantined(damage) => Err(ClusterFailure::Damaged { name: shorten(name), damage }),
        }
    }

    fn known(&self, key: &PlanKey, name: &str) -> Result<KeptCluster, ClusterFailure> {
        self.read(key, name)?.ok_or_else(|| ClusterFailure::Unknown { name: shorten(name) })
    }

    /// The cluster as it was read, at hand or read again.
    fn model(
        &self,
        key: &PlanKey,
        name: &str,
        limits: &TopologyLimits,
        gone: &(dyn Fn() -> bool + Sync),
    ) -> Result<Model, ClusterFailure> {
        if let Some(model) = self.at_hand.lock().models.iter().find(|known| known.key == *key) {
            return Ok(model.clone());
        }
        let _alone = self.changing.lock();
        let known = self.known(key, name)?;
        let digest = *blake3::hash(&known.description).as_bytes();
        let cluster = Arc::new(read_model(&known.described()?, limits, gone)?);
        let model = Model { key: *key, digest, cluster };
        self.at_hand.lock().learn(model.clone());
        Ok(model)
    }

    fn require_room(&self, key: &PlanKey, found: u64) -> Result<(), ClusterFailure> {
        let (mut count, mut held) = (1, 0_u64);
        for entry in self.space.summaries() {
            let (other, summary) = entry?;
            if other != *key {
                count += 1;
                held = held.saturating_add(summary.map_or(0, |summary| summary.size_bytes));
            }
        }
        if count > COUNT_MAX {
            return Err(ClusterFailure::TooMany);
        }
        if held.saturating_add(found) > BYTES_MAX {
            return Err(ClusterFailure::TooLarge { held, found });
        }
        Ok(())
    }
}

impl AtHand {
    fn learn(&mut self, model: Model) {
        self.models.retain(|known| known.key != model.key);
        if self.models.len() >= MODELS_MAX {
            self.models.pop_front();
        }
        self.models.push_back(model);
    }

    fn forget(&mut self, key: &PlanKey) {
        self.models.retain(|known| known.key != *key);
    }

    fn keep(&mut self, part: [u8; 32], text: &Bytes) {
        if self.parts.insert(part, text.clone()).is_none() {
            self.arrivals.push_back(part);
            self.bytes += text.len();
        }
        while self.bytes > PARTS_BYTES_MAX {
            let Some(first) = self.arrivals.pop_front() else { break };
            self.bytes -= self.parts.remove(&first).map_or(0, |text| text.len());
        }
    }
}

impl KeptCluster {
    /// The record, and what is known of it.
    fn encoded(
        name: &str,
        ClusterCounts { nodes, ranks, switches }: ClusterCounts,
        (created_ms, updated_ms): (u64, u64),
        description: Bytes,
    ) -> (Vec<u8>, Self) {
        let (nodes, ranks, switches) = (nodes as u64, ranks as u64, switches as u64);
        let name = name.to_owned();
        let whole = Self { name, nodes, ranks, switches, created_ms, updated_ms, size_bytes: 0, description };
        let record = encode_message(&whole);
        let size_bytes = record.len() as u64;
        (record, Self { size_bytes, description: Bytes::new(), ..whole })
    }

    fn described(&self) -> Result<v1::ClusterDescription, ClusterFailure> {
        let damage = DamagedRecord::Payload;
        v1::ClusterDescription::decode(self.description.clone())
            .map_err(|_| ClusterFailure::Damaged { name: self.name.clone(), damage })
    }

    /// The same, if it is the one of this key.
    fn of_key(self, key: &PlanKey) -> Result<Self, DamagedRecord> {
        let own = key_of(&self.name).map_err(|_| DamagedRecord::Payload)?;
        if own == *key { Ok(self) } else { Err(DamagedRecord::Payload) }
    }
}

impl Stored for KeptCluster {
    fn decode(key: &PlanKey, record: Bytes) -> Result<Self, DamagedRecord> {
        let size_bytes = record.len() as u64;
        Ok(Self { size_bytes, ..decode_message::<Self>(&record)?.of_key(key)? })
    }

    fn log_damage(key: &PlanKey, damage: &DamagedRecord) {
        tracing::error!(cluster = %key, %damage, "a stored cluster was damaged and was quarantined");
    }
}

impl Summarised for KeptCluster {
    type Summary = Self;

    fn decode_summary(key: &PlanKey, summary: &[u8]) -> Result<Self, DamagedRecord> {
        decode_message::<Self>(summary)?.of_key(key)
    }
}

fn read_model(
    description: &v1::ClusterDescription,
    limits: &TopologyLimits,
    gone: &(dyn Fn() -> bool + Sync),
) -> Result<ClusterModel, ClusterFailure> {
    Ok(on_a_deep_stack(|| cluster_model(description, limits, gone))?)
}

/// Machines of several hostlists, each once.
fn expanded(lists: &[String]) -> Result<Vec<String>, HostsError> {
    let bytes: usize = lists.iter().map(|list| list.len() + 1).sum();
    if lists.len() > NODES_MAX || bytes > canopy_topology::HOST_FILE_BYTES_MAX {
        return Err(HostsError::TooMany);
    }
    expand_hosts(&lists.join(","))
}

/// Where the cluster of this name is kept.
fn key_of(name: &str) -> Result<PlanKey, ClusterFailure> {
    let refused = || ClusterFailure::Name { name: shorten(name) };
    let inner = name.strip_prefix(FOLDER).filter(|inner| is_cluster_name(inner)).ok_or_else(refused)?;
    let mut hasher = blake3::Hasher::new_derive_key("canopy cluster 1");
    Ok(PlanKey::from_bytes(*hasher.update(inner.as_bytes()).finalize().as_bytes()))
}

#[cfg(test)]
mod tests;
