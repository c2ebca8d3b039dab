//! The bytes of a kept topology: a record with its text, and a summary without.

use bytes::Bytes;
use canopy_planner::{PlanKey, TopologyKey};
use canopy_topology::{DocumentFormat, Topology, TopologyLimits, identity_hash, read_document};
use canopy_wire::topology_summary;
use prost::Message as _;

use super::{Kept, Purpose, id_of};
use crate::clock;
use crate::store::{DamagedRecord, Stored, Summarised, decode_message, decode_record, encode_message};

/// What is known of a kept topology: its summary, and its record together with the text. Fields are only ever added.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TopologyEntry {
    /// Where it is kept, see [`TopologyEntry::key`].
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    /// Its name for display; may be empty.
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    /// Hash of its shape, and counts.
    #[prost(message, required, tag = "3")]
    pub(crate) summary: TopologyFacts,
    /// When it was stored, in milliseconds since 1970 UTC.
    #[prost(uint64, tag = "4")]
    pub(crate) created_ms: u64,
    /// Bytes of its record. Not in records: they know their own length.
    #[prost(uint64, tag = "5")]
    pub(crate) size_bytes: u64,
    /// Canopy's JSON. In records only.
    #[prost(bytes = "bytes", tag = "6")]
    document: Bytes,
    /// Whether a lease or a fault has left it here, and nobody has put it to name it.
    #[prost(bool, tag = "7")]
    pub(crate) is_left_by_use: bool,
}

/// What a topology is known by, laid out as `canopy.v1.TopologySummary`. Fields are only ever added.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct TopologyFacts {
    /// Of its shape, 64 hexadecimal digits.
    #[prost(string, tag = "1")]
    pub(crate) hash: String,
    /// What equal hashes mean: 1 isomorphic topologies, 2 equal ones.
    #[prost(int32, tag = "2")]
    pub(crate) hash_kind: i32,
    #[prost(uint32, tag = "3")]
    pub(crate) ranks: u32,
    #[prost(uint32, tag = "4")]
    pub(crate) nodes: u32,
    /// Directed, after merging parallels.
    #[prost(uint32, tag = "5")]
    pub(crate) links: u32,
}

impl TopologyFacts {
    fn of(topology: &Topology) -> Self {
        let summary = topology_summary(topology, &TopologyKey::of(topology));
        Self {
            hash: summary.hash,
            hash_kind: summary.hash_kind,
            ranks: summary.ranks,
            nodes: summary.nodes,
            links: summary.links,
        }
    }
}

impl TopologyEntry {
    /// What it is kept for.
    pub(super) const fn purpose(&self) -> Purpose {
        if self.is_left_by_use { Purpose::Held } else { Purpose::Named }
    }

    /// What is to be known of a topology that is stored for the first time; the size is that of nothing yet.
    pub(super) fn of(key: PlanKey, topology: &Topology, now_ms: u64) -> Self {
        Self {
            key: key.as_bytes().to_vec(),
            name: topology.name().unwrap_or_default().to_owned(),
            summary: TopologyFacts::of(topology),
            created_ms: now_ms,
            ..Self::default()
        }
    }

    /// What is known of a topology that is not stored, whose text has so many bytes.
    pub(crate) fn unstored(topology: &Topology, bytes: usize) -> Self {
        let key = PlanKey::from_bytes(*identity_hash(topology).as_bytes());
        Self { size_bytes: bytes as u64, ..Self::of(key, topology, clock::unix_ms()) }
    }

    /// Where it is kept: the hash of all it says.
    pub(crate) fn key(&self) -> PlanKey {
        PlanKey::from_bytes(self.key.as_slice().try_into().expect("it was made or read for a key"))
    }

    /// The id, `topologies/…`.
    pub(crate) fn id(&self) -> String {
        id_of(&self.key())
    }

    /// The record with this text, and the same with the record's size.
    pub(super) fn encode_with(self, document: Vec<u8>) -> (Vec<u8>, Self) {
        let record = encode_message(&Self { document: document.into(), size_bytes: 0, ..self.clone() });
        let size_bytes = record.len() as u64;
        (record, Self { size_bytes, ..self })
    }

    /// The bytes kept beside the record.
    pub(super) fn encode(&self) -> Vec<u8> {
        encode_message(self)
    }

    /// The same, if it is the one of this key: an intact record under the wrong key would be a wrong answer.
    fn of_key(self, key: &PlanKey) -> Result<Self, DamagedRecord> {
        if self.key == key.as_bytes() { Ok(self) } else { Err(DamagedRecord::Payload) }
    }
}

impl Stored for Kept {
    fn decode(key: &PlanKey, record: Bytes) -> Result<Self, DamagedRecord> {
        let size_bytes = record.len() as u64;
        let payload = record.slice_ref(decode_record(&record)?);
        let entry = TopologyEntry::decode(payload).map_err(|_| DamagedRecord::Payload)?;
        let mut entry = TopologyEntry { size_bytes, ..entry.of_key(key)? };
        let document = std::mem::take(&mut entry.document);
        Ok(Self { entry, document })
    }

    fn log_damage(key: &PlanKey, damage: &DamagedRecord) {
        tracing::error!(topology = %key, %damage, "a stored topology was damaged and was quarantined");
    }
}

impl Summarised for Kept {
    type Summary = TopologyEntry;

    fn decode_summary(key: &PlanKey, summary: &[u8]) -> Result<TopologyEntry, DamagedRecord> {
        decode_message::<TopologyEntry>(summary)?.of_key(key)
    }
}

/// Whether a record holds, word for word, the topology that its key is the hash of. O(bytes), and a topology is built.
pub(crate) fn judge(key: &PlanKey, record: &[u8], limits: &TopologyLimits) -> Result<(), String> {
    let kept = Kept::decode(key, Bytes::copy_from_slice(record)).map_err(|damage| damage.to_string())?;
    let read = read_document(&kept.document, Some(DocumentFormat::Json), limits).map_err(|error| error.to_string())?;
    if identity_hash(&read.topology).as_bytes() != key.as_bytes() {
        return Err("its text belongs to another topology".to_owned());
    }
    let fresh = TopologyEntry::of(*key, &read.topology, kept.entry.created_ms);
    let stated = TopologyEntry { size_bytes: 0, is_left_by_use: false, ..kept.entry };
    if fresh == stated { Ok(()) } else { Err("its counts differ from those of its text".to_owned()) }
}
