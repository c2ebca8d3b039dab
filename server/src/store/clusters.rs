//! Stored clusters, by the names that their operators give them. What a description means is not known here.

use std::sync::Arc;

use bytes::Bytes;
use canopy_import::ClusterCounts;
use canopy_planner::PlanKey;
use canopy_topology::is_cluster_name;
use parking_lot::Mutex;

use crate::store::{
    DamagedRecord, Lookup, SpaceOf, Store, StoreError, Stored, Summarised, decode_message, encode_message,
};
use crate::store::{MayBeOvertaken, deciding};

/// What every name begins with.
pub(crate) const FOLDER: &str = "clusters/";
/// Most clusters.
pub(crate) const COUNT_MAX: usize = 256;
/// Most bytes of their descriptions.
pub(crate) const BYTES_MAX: u64 = 256 << 20;

/// Keeps clusters in a space of the store. Clones share it. Every call may block on the disk.
#[derive(Clone)]
pub(crate) struct ClusterStore {
    space: SpaceOf<KeptCluster>,
    now_ms: fn() -> u64,
    /// Held while anything changes.
    changing: Arc<Mutex<()>>,
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
    /// The description as it was sent. In records only.
    #[prost(bytes = "bytes", tag = "8")]
    pub(crate) description: Bytes,
    /// BLAKE3 of the description.
    #[prost(bytes = "bytes", tag = "9")]
    pub(crate) digest: Bytes,
}

/// Why a cluster was not kept or not found. Names are shortened by whoever tells of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterStoreError {
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

impl MayBeOvertaken for ClusterStoreError {
    fn is_overtaken(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_overtaken())
    }
}

/// What became of a cluster that was put.
#[derive(Debug)]
pub(crate) struct PutCluster {
    pub(crate) cluster: KeptCluster,
    pub(crate) created: bool,
    pub(crate) changed: bool,
}

/// Where a cluster is kept.
#[derive(Clone, Debug)]
pub(crate) struct ClusterName {
    name: String,
    key: PlanKey,
}

impl ClusterName {
    /// Reads `clusters/…`; `None` if that cannot name a cluster.
    pub(crate) fn read(name: &str) -> Option<Self> {
        let inner = name.strip_prefix(FOLDER).filter(|inner| is_cluster_name(inner))?;
        let mut hasher = blake3::Hasher::new_derive_key("canopy cluster 1");
        let key = PlanKey::from_bytes(*hasher.update(inner.as_bytes()).finalize().as_bytes());
        Some(Self { name: name.to_owned(), key })
    }

    /// The name without its folder, as topologies state it.
    pub(crate) fn inner(&self) -> &str {
        self.name.strip_prefix(FOLDER).unwrap_or(&self.name)
    }

    pub(crate) const fn key(&self) -> &PlanKey {
        &self.key
    }
}

impl ClusterStore {
    pub(crate) fn new(store: Arc<dyn Store>, now_ms: fn() -> u64) -> Self {
        Self { space: SpaceOf::new(store), now_ms, changing: Arc::default() }
    }

    /// Keeps a cluster under its name; returns once that survives a crash.
    pub(crate) fn put(
        &self,
        name: &ClusterName,
        counts: ClusterCounts,
        description: Bytes,
    ) -> Result<PutCluster, ClusterStoreError> {
        deciding(|| {
            let _alone = self.changing.lock();
            self.space.catch_up();
            self.put_in_turn(name, counts, description.clone())
        })
    }

    fn put_in_turn(
        &self,
        name: &ClusterName,
        counts: ClusterCounts,
        description: Bytes,
    ) -> Result<PutCluster, ClusterStoreError> {
        let known = match self.get(name) {
            // It is stored again, as the refusal says.
            Err(ClusterStoreError::Damaged { .. }) => None,
            known => known?,
        };
        if let Some(cluster) = known.as_ref().filter(|known| known.description == description) {
            return Ok(PutCluster { cluster: cluster.clone(), created: false, changed: false });
        }
        let now_ms = (self.now_ms)();
        let created_ms = known.as_ref().map_or(now_ms, |known| known.created_ms);
        let (record, cluster) = KeptCluster::encoded(name, counts, (created_ms, now_ms), description);
        self.require_room(&name.key, cluster.size_bytes)?;
        self.space.put(&name.key, &record, &encode_message(&cluster))?;
        Ok(PutCluster { cluster, created: known.is_none(), changed: true })
    }

    /// The cluster of this name with its description.
    pub(crate) fn get(&self, name: &ClusterName) -> Result<Option<KeptCluster>, ClusterStoreError> {
        self.read(&name.key, &name.name)
    }

    /// The same without its description, from the summary: no record is read where there is one.
    pub(crate) fn summary(&self, name: &ClusterName) -> Result<Option<KeptCluster>, ClusterStoreError> {
        let summary = self.space.summary(&name.key)?;
        match summary.and_then(|summary| KeptCluster::decode_summary(&name.key, &summary).ok()) {
            Some(cluster) => Ok(Some(cluster)),
            None => self.get(name),
        }
    }

    /// Removes the cluster of this name; returns the bytes of its record.
    pub(crate) fn remove(&self, name: &ClusterName) -> Result<Option<u64>, ClusterStoreError> {
        deciding(|| {
            let _alone = self.changing.lock();
            self.space.catch_up();
            let Some(cluster) = self.get(name)? else { return Ok(None) };
            self.space.remove(&[name.key])?;
            Ok(Some(cluster.size_bytes))
        })
    }

    /// Learns what other servers have changed.
    pub(crate) fn follow(&self) {
        let _alone = self.changing.lock();
        self.space.catch_up();
    }

    /// Shows all clusters to `take`, without their descriptions, in the order of their keys.
    pub(crate) fn for_each(&self, mut take: impl FnMut(KeptCluster)) -> Result<(), ClusterStoreError> {
        for entry in self.space.summaries() {
            let (key, summary) = entry?;
            match summary {
                Some(cluster) => take(cluster),
                None => self.read(&key, FOLDER)?.into_iter().for_each(&mut take),
            }
        }
        Ok(())
    }

    fn read(&self, key: &PlanKey, name: &str) -> Result<Option<KeptCluster>, ClusterStoreError> {
        match self.space.get(key)? {
            Lookup::Found(cluster) => Ok(Some(cluster)),
            Lookup::Missing => Ok(None),
            Lookup::Quarantined(damage) => Err(ClusterStoreError::Damaged { name: name.to_owned(), damage }),
        }
    }

    fn require_room(&self, key: &PlanKey, found: u64) -> Result<(), ClusterStoreError> {
        let (mut count, mut held) = (1, 0_u64);
        for entry in self.space.summaries() {
            let (other, summary) = entry?;
            if other != *key {
                count += 1;
                held = held.saturating_add(summary.map_or(0, |summary| summary.size_bytes));
            }
        }
        if count > COUNT_MAX {
            return Err(ClusterStoreError::TooMany);
        }
        if held.saturating_add(found) > BYTES_MAX {
            return Err(ClusterStoreError::TooLarge { held, found });
        }
        Ok(())
    }
}

impl KeptCluster {
    /// The record, and what is known of it.
    fn encoded(
        name: &ClusterName,
        ClusterCounts { nodes, ranks, switches }: ClusterCounts,
        (created_ms, updated_ms): (u64, u64),
        description: Bytes,
    ) -> (Vec<u8>, Self) {
        let (nodes, ranks, switches) = (nodes as u64, ranks as u64, switches as u64);
        let name = name.name.clone();
        let digest = Bytes::copy_from_slice(blake3::hash(&description).as_bytes());
        let whole = Self { name, nodes, ranks, switches, created_ms, updated_ms, size_bytes: 0, description, digest };
        let record = encode_message(&whole);
        let size_bytes = record.len() as u64;
        (record, Self { size_bytes, description: Bytes::new(), ..whole })
    }

    /// The same, if it is the one of this key.
    fn of_key(self, key: &PlanKey) -> Result<Self, DamagedRecord> {
        let own = ClusterName::read(&self.name).ok_or(DamagedRecord::Payload)?;
        if own.key == *key { Ok(self) } else { Err(DamagedRecord::Payload) }
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

#[cfg(test)]
mod tests;
