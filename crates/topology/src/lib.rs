//! The network between accelerators: model, units, documents, generators and hash.
//!
//! Pure: text and numbers in, a validated [`Topology`] out. It knows nothing of collectives or schedules.

mod components;
mod document;
mod draft;
mod element;
mod error;
mod fault;
mod fault_kind;
mod generate;
mod group;
mod hash;
mod hostlist;
mod index;
mod invisible;
mod limits;
mod model;
mod nodelist;
mod origin;
mod part;
mod placement;
mod plain;
mod port_graph;
mod ports;
mod quantity;
mod remeasured;
mod shorten;
mod spelling;
mod units;
mod wording;

pub use document::{
    Defaults, DocumentFormat, KindName, LinkDocument, NodeDocument, ReadError, ReadTopology, SCHEMA, TopologyDocument,
    observations, read_document, read_document_until, to_json, to_yaml,
};
pub use draft::{DraftLink, DraftNode, TopologyDraft};
pub use element::Element;
pub use error::TopologyError;
pub use fault::{Fault, FaultError, Puncture};
pub use fault_kind::FaultKind;
pub use generate::{
    COMMON_KEYS, DrawError, ExpressionError, FamilyUsage, SITE_BYTES_MAX, SiteRates, SiteRatesError, construction,
    families, generate, key_meaning,
};
pub use group::{GroupError, Transit, renumbering};
pub use hash::{TopologyHash, content_hash, identity_hash};
pub use hostlist::{HOST_FILE_BYTES_MAX, HostsError, expand_hosts, host_items, read_host_lines};
pub use index::{LinkIndex, NodeIndex, Rank};
pub use invisible::is_invisible;
pub use limits::TopologyLimits;
pub use model::{Attributes, Link, Node, NodeKind, Topology, is_cluster_name};
pub use nodelist::{read_nodes, read_nodes_file};
pub use origin::{Origin, OriginError};
pub use part::read_part;
pub use placement::{
    Participants, PlacementError, Slot, devices, hosts_named, names_hosts, own_slots, participants, same_host,
};
pub use port_graph::Ports;
pub use quantity::{Quantity, QuantityError};
pub use shorten::{shorten, shorten_to};
pub use spelling::{closest, did_you_mean, same_word};
pub use units::{Capacity, FractionError, Latency, Rate, Ratio};
pub use wording::{count, in_words, yaml_in_words};
