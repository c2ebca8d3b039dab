//! Topology documents: canopy's own schema, as YAML and as JSON.
//!
//! [`read_document`] refuses oversized and non-UTF-8 input and decides between the two. [`TopologyDocument`] is the schema
//! of version 1, the same for both.

mod bare;
mod error;
mod observations;
mod schema;
mod text;
mod write;

pub use error::ReadError;
pub use observations::observations;
pub use schema::{Defaults, KindName, LinkDocument, NodeDocument, TopologyDocument};
pub use write::{to_json, to_yaml};

use crate::limits::TopologyLimits;
use crate::model::Topology;

/// The JSON Schema (draft 7) of documents, by which editors complete and check them.
pub const SCHEMA: &str = include_str!("../schema/topology.schema.json");

/// How a document is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DocumentFormat {
    /// YAML.
    Yaml,
    /// JSON.
    Json,
}

impl DocumentFormat {
    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yaml => "YAML",
            Self::Json => "JSON",
        }
    }

    /// Decides by the first character that is not blank: `{` is JSON, anything else YAML.
    pub fn sniff(bytes: &[u8]) -> Self {
        // What is no text is refused, whatever it is taken for.
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        match text.strip_prefix('\u{feff}').unwrap_or(text).trim_start().starts_with('{') {
            true => Self::Json,
            false => Self::Yaml,
        }
    }
}

/// A topology that was read, with what a person should know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadTopology {
    /// What was read.
    pub topology: Topology,
    /// What is unusual about it, one sentence each.
    pub warnings: Vec<String>,
}

/// Reads a topology from bytes; `None` decides on the format by the first character.
///
/// # Errors
/// Names the field at fault and what it accepts. Refuses input over a limit before building anything, and never panics.
///
/// O(bytes) in time and memory, and the cost of [`TopologyDraft::build`](crate::TopologyDraft::build).
pub fn read_document(
    bytes: &[u8],
    format: Option<DocumentFormat>,
    limits: &TopologyLimits,
) -> Result<ReadTopology, ReadError> {
    read_document_until(bytes, format, limits, &|| false)
}

/// As [`read_document`], but can be stopped.
///
/// # Errors
/// As [`read_document`]; [`ReadError::Stopped`] soon after `stop` returns true. It is asked for each node and link.
pub fn read_document_until(
    bytes: &[u8],
    format: Option<DocumentFormat>,
    limits: &TopologyLimits,
    stop: &dyn Fn() -> bool,
) -> Result<ReadTopology, ReadError> {
    if bytes.len() > limits.bytes_max {
        return Err(ReadError::TooManyBytes { found: bytes.len(), limit: limits.bytes_max });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| ReadError::NotUtf8 { offset: error.valid_up_to() })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document = match format.unwrap_or_else(|| DocumentFormat::sniff(bytes)) {
        DocumentFormat::Yaml => text::parse_yaml(text, limits, stop)?,
        DocumentFormat::Json => text::parse_json(text, limits, stop)?,
    };
    let mut warnings = bare::doubts(&document);
    let draft = document.into_draft()?;
    ask(stop)?;
    let topology = draft.build_until(limits, stop)?.ok_or(ReadError::Stopped)?;
    ask(stop)?;
    warnings.extend(observations(&topology));
    Ok(ReadTopology { topology, warnings })
}

fn ask(stop: &dyn Fn() -> bool) -> Result<(), ReadError> {
    if stop() { Err(ReadError::Stopped) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
