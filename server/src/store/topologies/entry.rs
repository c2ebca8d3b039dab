//! The bytes of a kept topology: a record with its text, and a summary without.

use bytes::Bytes;
use canopy_planner::{PlanKey, TopologyKey};
use canopy_topology::{DocumentFormat, Topology, TopologyLimits, identity_hash, read_document};
use canopy_wire::topology_summary;
use prost::Message as _;

use super::{Kept, id_of};
use crate::store::{DamagedRecord, Stored, Summarised, decode_message, decode_record, encode_message};

/// What is known of a kept topology without its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TopologyEntry {
    /// Where it is kept: the hash of all it says.
    pub(crate) key: PlanKey,
    /// Its name for display; may be empty.
    pub(crate) name: String,
    /// Hash of its shape, and counts.
    pub(crate) summary: TopologyFacts,
    /// Bytes of its record.
    pub(crate) size_bytes: u64,
    /// When it was stored, in milliseconds since 1970 UTC.
    pub(crate) created_ms: u64,
    /// Whether a lease or a fault has left it here, and nobody has put it to name it.
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

/// The layout of both record and summary. Fields are only ever added.
#[derive(Clone, PartialEq, prost::Message)]
struct Fields {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, optional, tag = "3")]
    summary: Option<TopologyFacts>,
    #[prost(uint64, tag = "4")]
    created_ms: u64,
    /// Summaries only: a record knows its own length.
    #[prost(uint64, tag = "5")]
    size_bytes: u64,
    /// Records only: canopy's JSON.
    #[prost(bytes = "bytes", tag = "6")]
    document: Bytes,
    #[prost(bool, tag = "7")]
    is_left_by_use: bool,
}

impl TopologyEntry {
    /// What is to be known of a topology that is stored for the first time; the size is that of nothing yet.
    pub(super) fn of(key: PlanKey, topology: &Topology, now_ms: u64) -> Self {
        let name = topology.name().unwrap_or_default().to_owned();
        let summary = TopologyFacts::of(topology);
        Self { key, name, summary, size_bytes: 0, created_ms: now_ms, is_left_by_use: false }
    }

    /// The id, `topologies/…`.
    pub(crate) fn id(&self) -> String {
        id_of(&self.key)
    }

    /// The record with this text, and the same with the record's size.
    pub(super) fn encode_with(self, document: Vec<u8>) -> (Vec<u8>, Self) {
        let record = encode_message(&Fields { document: document.into(), ..self.fields() });
        let size_bytes = record.len() as u64;
        (record, Self { size_bytes, ..self })
    }

    /// The bytes kept beside the record.
    pub(super) fn encode(&self) -> Vec<u8> {
        encode_message(&Fields { size_bytes: self.size_bytes, ..self.fields() })
    }

    fn fields(&self) -> Fields {
        Fields {
            key: self.key.as_bytes().to_vec(),
            name: self.name.clone(),
            summary: Some(self.summary.clone()),
            created_ms: self.created_ms,
            size_bytes: 0,
            document: Bytes::new(),
            is_left_by_use: self.is_left_by_use,
        }
    }

    fn from_fields(key: &PlanKey, fields: Fields, size_bytes: u64) -> Result<Self, DamagedRecord> {
        let Fields { name, summary, created_ms, is_left_by_use, .. } = fields;
        match summary {
            // An intact record under the wrong key would be a wrong answer.
            Some(summary) if fields.key == key.as_bytes() => {
                Ok(Self { key: *key, name, summary, size_bytes, created_ms, is_left_by_use })
            }
            _ => Err(DamagedRecord::Payload),
        }
    }
}

impl Stored for Kept {
    fn decode(key: &PlanKey, record: Bytes) -> Result<Self, DamagedRecord> {
        let size_bytes = record.len() as u64;
        let payload = record.slice_ref(decode_record(&record)?);
        let mut fields = Fields::decode(payload).map_err(|_| DamagedRecord::Payload)?;
        let document = std::mem::take(&mut fields.document);
        Ok(Self { entry: TopologyEntry::from_fields(key, fields, size_bytes)?, document })
    }

    fn log_damage(key: &PlanKey, damage: &DamagedRecord) {
        tracing::error!(topology = %key, %damage, "a stored topology was damaged and is in quarantine");
    }
}

impl Summarised for Kept {
    type Summary = TopologyEntry;

    fn decode_summary(key: &PlanKey, summary: &[u8]) -> Result<TopologyEntry, DamagedRecord> {
        let fields: Fields = decode_message(summary)?;
        let size_bytes = fields.size_bytes;
        TopologyEntry::from_fields(key, fields, size_bytes)
    }
}

/// Whether a record holds, word for word, the topology that its key is the hash of. O(bytes), and a topology is built.
pub(crate) fn judge(key: &PlanKey, record: &[u8], limits: &TopologyLimits) -> Result<(), String> {
    let kept = Kept::decode(key, Bytes::copy_from_slice(record)).map_err(|damage| damage.to_string())?;
    let read = read_document(&kept.document, Some(DocumentFormat::Json), limits).map_err(|error| error.to_string())?;
    if identity_hash(&read.topology).as_bytes() != key.as_bytes() {
        return Err("its text is that of another topology".to_owned());
    }
    let fresh = TopologyEntry::of(*key, &read.topology, kept.entry.created_ms);
    let stated = TopologyEntry { size_bytes: 0, is_left_by_use: false, ..kept.entry };
    if fresh == stated { Ok(()) } else { Err("it states other counts than its text has".to_owned()) }
}
