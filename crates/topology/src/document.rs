//! Topology documents: reading what users send, and canopy's own YAML/JSON schema.
//!
//! [`read_document`] is the one entry for bytes from outside: it refuses oversized and non-UTF-8 input, decides
//! between the formats, and hands on. [`TopologyDocument`] is the schema of version 1, the same for YAML and JSON.

mod schema;
mod text;
mod write;

pub use schema::{Defaults, KindName, LinkDocument, NodeDocument, TopologyDocument};
pub use write::{to_json, to_yaml};

use crate::imported::{self, DocumentFormat, Imported, ReadError, observations};
use crate::limits::TopologyLimits;
use crate::nccl;

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
) -> Result<Imported, ReadError> {
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
) -> Result<Imported, ReadError> {
    if bytes.len() > limits.bytes_max {
        return Err(ReadError::TooManyBytes { found: bytes.len(), limit: limits.bytes_max });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| match imported::binary_kind(bytes) {
        Some(what) => ReadError::Binary { what },
        None => ReadError::NotUtf8 { offset: error.valid_up_to() },
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some(file) = imported::foreign_file(text) {
        return Err(ReadError::Foreign(file));
    }
    let document = match format.unwrap_or_else(|| DocumentFormat::sniff(bytes)) {
        DocumentFormat::Yaml => text::parse_yaml(text, limits, stop)?,
        DocumentFormat::Json => text::parse_json(text, limits, stop)?,
        DocumentFormat::NcclXml => return nccl::import(text, limits),
    };
    let draft = document.into_draft()?;
    ask(stop)?;
    let topology = draft.build_until(limits, stop)?.ok_or(ReadError::Stopped)?;
    ask(stop)?;
    let warnings = observations(&topology);
    Ok(Imported { topology, warnings })
}

fn ask(stop: &dyn Fn() -> bool) -> Result<(), ReadError> {
    if stop() { Err(ReadError::Stopped) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
