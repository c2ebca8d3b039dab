//! Fingerprints of topologies: BLAKE3 over an unambiguous encoding.
//!
//! Every number is eight bytes, little endian; every text is preceded by its length; every list by its count. Two
//! topologies with equal encodings are therefore equal in all that is encoded. The context strings carry a version:
//! a changed encoding gets a new one, so that stored fingerprints never match by accident.

use std::fmt;

use crate::model::{Node, NodeKind, Topology};

const CONTENT_CONTEXT: &str = "canopy topology 2026 content hash, version 1";
const IDENTITY_CONTEXT: &str = "canopy topology 2026 identity hash, version 1";

/// A BLAKE3 fingerprint, 256 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopologyHash([u8; 32]);

impl TopologyHash {
    /// Wraps the bytes of another fingerprint of a topology, such as that of its canonical form.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The raw bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// 64 hexadecimal digits, lower case.
impl fmt::Display for TopologyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TopologyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Fingerprint of what a schedule depends on: kinds, capabilities, capacities and latencies, in index order.
///
/// Names, ids and attributes do not count, nor does the order of the source's links. Ranks do, and so does the order
/// of switches, which is by id: renaming a switch may change the hash, so a cache keyed by it may miss but never
/// mis-hit. O(nodes + links).
pub fn content_hash(topology: &Topology) -> TopologyHash {
    let mut encoder = Encoder::new(CONTENT_CONTEXT);
    encoder.content(topology);
    encoder.finish()
}

/// Fingerprint of everything a person can see: the content, the display name, the cluster, ids and attributes. O(nodes + links).
pub fn identity_hash(topology: &Topology) -> TopologyHash {
    let mut encoder = Encoder::new(IDENTITY_CONTEXT);
    encoder.content(topology);
    encoder.optional_text(topology.name());
    for node in topology.nodes() {
        let Node { id, attributes, kind: _ } = &**node;
        encoder.text(id);
        let named = [&attributes.host, &attributes.box_name, &attributes.rail, &attributes.label];
        if named.iter().all(|name| name.is_none()) {
            encoder.numbers([0; 8]);
        } else {
            named.into_iter().for_each(|name| encoder.optional_text(name.as_deref()));
        }
    }
    // Left out where there are none, so that older fingerprints hold.
    let loops = topology.nodes().iter().enumerate().filter_map(|(index, node)| Some((index, node.attributes.loops?)));
    for (index, rate) in loops {
        encoder.number(index as u64);
        encoder.number(rate.bytes_per_sec());
    }
    if let Some(cluster) = topology.cluster() {
        // No index of a node is as large.
        encoder.number(u64::MAX);
        encoder.text(cluster);
    }
    encoder.finish()
}

/// Bytes that are hashed at once: handing them over one number at a time costs many times as much.
const BUFFER_BYTES: usize = 64 << 10;

struct Encoder {
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
}

impl Encoder {
    fn new(context: &str) -> Self {
        Self { hasher: blake3::Hasher::new_derive_key(context), buffer: Vec::with_capacity(BUFFER_BYTES) }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush();
        }
        if bytes.len() > BUFFER_BYTES {
            self.hasher.update(bytes);
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    fn flush(&mut self) {
        self.hasher.update(&self.buffer);
        self.buffer.clear();
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// Several at once: room for them is looked for once.
    fn numbers<const COUNT: usize>(&mut self, numbers: [u64; COUNT]) {
        self.bytes(numbers.map(u64::to_le_bytes).as_flattened());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    fn optional_text(&mut self, text: Option<&str>) {
        self.number(u64::from(text.is_some()));
        self.text(text.unwrap_or_default());
    }

    fn content(&mut self, topology: &Topology) {
        self.number(topology.nodes().len() as u64);
        for node in topology.nodes() {
            self.number(match node.kind {
                NodeKind::Compute => 0,
                NodeKind::Forwarder => 8,
                NodeKind::Switch { multicast, aggregate } => 1 | u64::from(multicast) << 1 | u64::from(aggregate) << 2,
            });
        }
        self.number(topology.links().len() as u64);
        for link in topology.links() {
            let ends = [link.from, link.to].map(|end| u64::from(end.number()));
            self.numbers([ends[0], ends[1], link.capacity.bytes_per_sec(), link.latency.nanos()]);
        }
    }

    fn finish(mut self) -> TopologyHash {
        self.flush();
        TopologyHash(*self.hasher.finalize().as_bytes())
    }
}
