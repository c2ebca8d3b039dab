//! What comes of a topology from outside, whatever it is written in.

mod error;
mod foreign;
mod nccl_error;

pub use self::error::ReadError;
pub use self::foreign::ForeignFile;
pub use self::nccl_error::NcclError;

pub(crate) use self::foreign::{binary as binary_kind, recognise as foreign_file};

use crate::model::Topology;

/// How a topology is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DocumentFormat {
    /// canopy's schema as YAML.
    Yaml,
    /// canopy's schema as JSON.
    Json,
    /// The topology file of NCCL or RCCL: one host.
    NcclXml,
}

impl DocumentFormat {
    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yaml => "YAML",
            Self::Json => "JSON",
            Self::NcclXml => "NCCL XML",
        }
    }

    /// Decides by the first character that is not blank: `<` is XML, `{` is JSON, anything else YAML.
    pub fn sniff(bytes: &[u8]) -> Self {
        // What is no text is refused, whatever it is taken for.
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        match text.strip_prefix('\u{feff}').unwrap_or(text).trim_start().bytes().next() {
            Some(b'<') => Self::NcclXml,
            Some(b'{') => Self::Json,
            _ => Self::Yaml,
        }
    }
}

/// A topology from outside, with what a person should know about how it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// What was read.
    pub topology: Topology,
    /// Assumptions made and things left out, one sentence each.
    pub warnings: Vec<String>,
}

/// What is unusual about a topology, though legal. O(nodes + links).
pub(crate) fn observations(topology: &Topology) -> Vec<String> {
    let mut observations = Vec::new();
    if let Some((node, entering, leaving)) = topology.first_unbalanced() {
        let id = &topology.node(node).id;
        observations.push(format!(
            "node `{id}` receives {entering} bytes/s and sends {leaving} bytes/s; algorithms that need both to be \
             equal refuse it"
        ));
    }
    if let Some((from, to)) = topology.first_unreachable() {
        let (start, end) = (&topology.node(from.node()).id, &topology.node(to.node()).id);
        let (from, to) = (from.number(), to.number());
        observations.push(format!(
            "no path leads from rank {from} (`{start}`) to rank {to} (`{end}`); add links that connect them"
        ));
    }
    observations
}
