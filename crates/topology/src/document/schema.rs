//! The schema of canopy's topology documents, version 1, and its mapping to the model.

use std::cell::Cell;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::document::ReadError;
use crate::draft::{DraftLink, DraftNode, TopologyDraft};
use crate::limits::TopologyLimits;
use crate::model::{Attributes, Link, Node, NodeKind, Topology};
use crate::quantity::{Quantity, QuantityError};
use crate::shorten::shorten;
use crate::units::Latency;

/// Version of the schema this program reads and writes.
const VERSION: u64 = 1;

/// A topology as canopy's YAML and JSON state it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct TopologyDocument {
    /// Version of the schema; 1.
    pub canopy: u64,
    /// Name for display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Name of the cluster that the network is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Values for links that do not state their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defaults: Option<Defaults>,
    /// Compute nodes and switches.
    pub nodes: Vec<NodeDocument>,
    /// Links between them.
    pub links: Vec<LinkDocument>,
}

/// Values for links that do not state their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// Latency of a link; 0 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Quantity>,
}

/// A node of a document.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeDocument {
    /// Unique text without white space and `: > = ,`.
    pub id: String,
    /// Compute node unless stated.
    #[serde(default, skip_serializing_if = "KindName::is_compute")]
    pub kind: KindName,
    /// Rank of a compute node; all of them state one, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Whether a compute node only forwards: it has no rank and no data then.
    #[serde(default, skip_serializing_if = "is_false")]
    pub forwards: bool,
    /// Whether a switch can replicate.
    #[serde(default, skip_serializing_if = "is_false")]
    pub multicast: bool,
    /// Whether a switch can reduce.
    #[serde(default, skip_serializing_if = "is_false")]
    pub aggregate: bool,
    /// Machine the node sits in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Box (chassis) the node sits in.
    #[serde(default, rename = "box", skip_serializing_if = "Option::is_none")]
    pub box_name: Option<String>,
    /// Rail or plane the node belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rail: Option<String>,
    /// Free text for reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Bandwidth of ports that lead from the node back to itself; they carry no data but count as its ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loops: Option<Quantity>,
}

/// Kind of a node in a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KindName {
    /// A rank.
    #[default]
    Compute,
    /// A switch, which forwards, and multicasts or aggregates if it states so.
    Switch,
}

impl KindName {
    fn is_compute(&self) -> bool {
        *self == Self::Compute
    }
}

/// A link of a document: one directed link, or one in each direction, each `count` times.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkDocument {
    /// Id of the node where it starts.
    pub from: String,
    /// Id of the node where it ends.
    pub to: String,
    /// Rate of one of the `count` links, in one direction.
    pub bandwidth: Quantity,
    /// Latency; the default of the document if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Quantity>,
    /// Whether the opposite direction exists too, with the same numbers.
    #[serde(default, skip_serializing_if = "is_false")]
    pub both: bool,
    /// Number of parallel links.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

const fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_one(count: &u64) -> bool {
    *count == 1
}

impl TopologyDocument {
    /// Nodes and links of the document, in its order; ids, ranks and ends of links are checked by
    /// [`TopologyDraft::build`].
    ///
    /// # Errors
    /// Another version, a rate or latency that cannot be read, or capabilities on a compute node.
    pub fn into_draft(self) -> Result<TopologyDraft, ReadError> {
        if self.canopy != VERSION {
            return Err(ReadError::Version { found: self.canopy });
        }
        let default_latency = match self.defaults.and_then(|defaults| defaults.latency) {
            Some(quantity) => quantity.latency().map_err(at(|| "defaults.latency".to_owned()))?,
            None => Latency::default(),
        };
        let nodes = self.nodes.into_iter().enumerate().map(|(position, node)| draft_node(position, node));
        let nodes = nodes.collect::<Result<_, _>>()?;
        let mut links = Vec::with_capacity(self.links.len());
        let mut backward = Vec::new();
        for (position, link) in self.links.into_iter().enumerate() {
            let capacity = link.bandwidth.capacity().map_err(at(|| format!("links[{position}].bandwidth")))?;
            let latency = match link.latency {
                Some(quantity) => quantity.latency().map_err(at(|| format!("links[{position}].latency")))?,
                None => default_latency,
            };
            if link.both {
                let (from, to) = (link.to.clone(), link.from.clone());
                backward.push(DraftLink { from, to, capacity, latency, count: link.count });
            }
            links.push(DraftLink { from: link.from, to: link.to, capacity, latency, count: link.count });
        }
        // Opposite directions come last: `links[i]` of an error is then entry i of the document, because whatever is
        // wrong with an entry is found in its forward link first.
        links.append(&mut backward);
        Ok(TopologyDraft { name: self.name, cluster: self.cluster, nodes, links })
    }
}

/// Puts a field path in front of what is wrong with a quantity.
fn at(path: impl Fn() -> String) -> impl Fn(QuantityError) -> ReadError {
    move |problem| ReadError::Quantity { path: path(), problem }
}

fn draft_node(position: usize, node: NodeDocument) -> Result<DraftNode, ReadError> {
    let (multicast, aggregate) = (node.multicast, node.aggregate);
    let kind = match node.kind {
        KindName::Switch if node.forwards => {
            let (path, id) = (format!("nodes[{position}].forwards"), shorten(&node.id));
            return Err(ReadError::ForwardingSwitch { path, id });
        }
        KindName::Switch => NodeKind::Switch { multicast, aggregate },
        KindName::Compute if multicast || aggregate => {
            let field = if multicast { "multicast" } else { "aggregate" };
            return Err(ReadError::CapableCompute {
                path: format!("nodes[{position}].{field}"),
                id: shorten(&node.id),
            });
        }
        KindName::Compute if node.forwards => NodeKind::Forwarder,
        KindName::Compute => NodeKind::Compute,
    };
    let loops = node.loops.map(|quantity| quantity.capacity()).transpose();
    let loops = loops.map_err(at(|| format!("nodes[{position}].loops")))?;
    let attributes = Attributes { host: node.host, box_name: node.box_name, rail: node.rail, label: node.label, loops };
    Ok(DraftNode { id: node.id, kind, rank: node.rank, attributes })
}

/// Ranks are stated, latencies where not zero, and two equal opposite links are one entry. Reading it back gives an
/// equal topology. O(nodes + links log links).
impl From<&Topology> for TopologyDocument {
    fn from(topology: &Topology) -> Self {
        let nodes = (0_u32..).zip(topology.nodes()).map(|(index, node)| node_document(index, node)).collect();
        let links = topology.links();
        let has_twin = |link: &Link| {
            let start = links
                .partition_point(|other| (other.from, other.to, other.latency) < (link.to, link.from, link.latency));
            links.get(start).is_some_and(|twin| {
                (twin.from, twin.to, twin.latency, twin.capacity) == (link.to, link.from, link.latency, link.capacity)
            })
        };
        let links = links.iter().filter_map(|link| {
            let both = has_twin(link);
            // The direction that starts at the lower index speaks for both.
            (!both || link.from < link.to).then(|| LinkDocument {
                from: topology.node(link.from).id.clone(),
                to: topology.node(link.to).id.clone(),
                bandwidth: Quantity::Text(link.capacity.to_string()),
                latency: (link.latency != Latency::default()).then(|| Quantity::Text(link.latency.to_string())),
                both,
                count: 1,
            })
        });
        let links = links.collect();
        let (name, cluster) = (topology.name().map(str::to_owned), topology.cluster().map(str::to_owned));
        Self { canopy: VERSION, name, cluster, defaults: None, nodes, links }
    }
}

fn node_document(index: u32, node: &Node) -> NodeDocument {
    let Attributes { host, box_name, rail, label, loops } = node.attributes.clone();
    let loops = loops.map(|rate| Quantity::Text(rate.to_string()));
    let (kind, rank, multicast, aggregate) = match node.kind {
        NodeKind::Compute => (KindName::Compute, Some(index), false, false),
        NodeKind::Forwarder => (KindName::Compute, None, false, false),
        NodeKind::Switch { multicast, aggregate } => (KindName::Switch, None, multicast, aggregate),
    };
    let forwards = node.kind == NodeKind::Forwarder;
    NodeDocument { id: node.id.clone(), kind, rank, forwards, multicast, aggregate, host, box_name, rail, label, loops }
}

/// Reads a document and stops at the first node or link over a limit, before memory is spent on the rest.
///
/// Compact entries make a legal number of bytes hold many times the legal number of nodes, so bytes alone are no
/// bound on memory.
pub(super) struct DocumentSeed<'a> {
    pub(super) limits: &'a TopologyLimits,
    /// Whether to give up; asked between entries.
    pub(super) stop: &'a dyn Fn() -> bool,
    /// Why the document was refused as a whole, if it was: the error type of a format has no place for it.
    pub(super) refusal: &'a Cell<Option<Refusal>>,
}

/// Why a document is refused as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    /// A list is longer than its limit.
    TooMany { what: &'static str, limit: usize },
    /// Another version of the schema.
    Version { found: u64 },
    /// Nobody wants it any more.
    Stopped,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { what, limit } => write!(f, "more than {limit} {what}"),
            Self::Version { found } => write!(f, "unknown format version {found}"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

const FIELDS: &[&str] = &["canopy", "name", "cluster", "defaults", "nodes", "links"];

impl<'de> DeserializeSeed<'de> for DocumentSeed<'_> {
    type Value = TopologyDocument;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<TopologyDocument, D::Error> {
        deserializer.deserialize_struct("TopologyDocument", FIELDS, self)
    }
}

impl<'de> Visitor<'de> for DocumentSeed<'_> {
    type Value = TopologyDocument;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a topology with the fields `canopy`, `nodes` and `links`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TopologyDocument, A::Error> {
        let (mut canopy, mut name, mut cluster) = (None, None, None);
        let (mut defaults, mut nodes, mut links) = (None, None, None);
        while let Some(field) = map.next_key::<Field>()? {
            let repeated = match field {
                Field::Canopy => canopy.replace(self.version(map.next_value()?)?).is_some(),
                Field::Name => name.replace(map.next_value()?).is_some(),
                Field::Cluster => cluster.replace(map.next_value()?).is_some(),
                Field::Defaults => defaults.replace(map.next_value()?).is_some(),
                Field::Nodes => {
                    nodes.replace(map.next_value_seed(self.list("nodes", self.limits.nodes_max))?).is_some()
                }
                Field::Links => {
                    links.replace(map.next_value_seed(self.list("links", self.limits.links_max))?).is_some()
                }
            };
            if repeated {
                return Err(A::Error::duplicate_field(FIELDS[field as usize]));
            }
        }
        Ok(TopologyDocument {
            canopy: canopy.ok_or_else(|| A::Error::missing_field("canopy"))?,
            name: name.flatten(),
            cluster: cluster.flatten(),
            defaults: defaults.flatten(),
            nodes: nodes.ok_or_else(|| A::Error::missing_field("nodes"))?,
            links: links.ok_or_else(|| A::Error::missing_field("links"))?,
        })
    }
}

/// Names of [`FIELDS`], in their order.
#[derive(Clone, Copy, serde::Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Canopy,
    Name,
    Cluster,
    Defaults,
    Nodes,
    Links,
}

impl<'a> DocumentSeed<'a> {
    fn list<T>(&self, what: &'static str, limit: usize) -> ListSeed<'a, T> {
        ListSeed { what, limit, stop: self.stop, refusal: self.refusal, entries: Vec::new() }
    }

    /// Refuses another version at once: what follows may be anything.
    fn version<E: serde::de::Error>(&self, found: u64) -> Result<u64, E> {
        if found == VERSION { Ok(found) } else { Err(refuse(self.refusal, Refusal::Version { found })) }
    }
}

/// Keeps the refusal for whoever asks why reading failed, and makes the format's error of it.
fn refuse<E: serde::de::Error>(kept: &Cell<Option<Refusal>>, refusal: Refusal) -> E {
    kept.set(Some(refusal));
    E::custom(refusal)
}

struct ListSeed<'a, T> {
    what: &'static str,
    limit: usize,
    stop: &'a dyn Fn() -> bool,
    refusal: &'a Cell<Option<Refusal>>,
    entries: Vec<T>,
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for ListSeed<'_, T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListSeed<'_, T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {}", self.what)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut sequence: A) -> Result<Vec<T>, A::Error> {
        while let Some(entry) = sequence.next_element()? {
            if self.entries.len() == self.limit {
                return Err(refuse(self.refusal, Refusal::TooMany { what: self.what, limit: self.limit }));
            }
            if (self.stop)() {
                return Err(refuse(self.refusal, Refusal::Stopped));
            }
            self.entries.push(entry);
        }
        Ok(self.entries)
    }
}

/// Without limits: for documents that are already within them, such as those inside canopy's own files.
impl<'de> Deserialize<'de> for TopologyDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DocumentSeed { limits: &TopologyLimits::UNLIMITED, stop: &|| false, refusal: &Cell::new(None) }
            .deserialize(deserializer)
    }
}
