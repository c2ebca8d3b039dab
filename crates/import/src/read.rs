//! The entry for bytes from outside.

use canopy_topology::{
    DocumentFormat, ReadError, Topology, TopologyDocument, TopologyDraft, TopologyLimits, observations,
};

use crate::content::Content;
use crate::error::{FileError, ImportError};
use crate::foreign;
use crate::kind::FileKind;
use crate::readers::{READERS, Reader};
use crate::report::Report;
use crate::source::Source;

/// A network that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The network.
    pub topology: Topology,
    /// What the file was read as.
    pub kind: FileKind,
    /// What was understood, assumed and left out.
    pub report: Report,
}

/// Reads a network from bytes; `None` recognises the kind of file by its content.
///
/// A machine is read as the network of its GPUs, and a fabric as that of its machines, if it says how fast its cables are.
///
/// # Errors
/// Names the line or field at fault and what is accepted. Refuses input over a limit before building anything, and never
/// panics. O(bytes) in time and memory, and the cost of [`TopologyDraft::build`].
pub fn read(bytes: &[u8], kind: Option<FileKind>, limits: &TopologyLimits) -> Result<Imported, ImportError> {
    read_until(bytes, kind, limits, &|| false)
}

/// As [`read`], but can be stopped.
///
/// # Errors
/// As [`read`]; [`ReadError::Stopped`] soon after `stop` returns true.
pub fn read_until(
    bytes: &[u8],
    kind: Option<FileKind>,
    limits: &TopologyLimits,
    stop: &dyn Fn() -> bool,
) -> Result<Imported, ImportError> {
    let text = text(bytes, limits)?;
    // What is no network is called by its name, whatever it was taken for.
    let found = recognised(text)?;
    let kind = kind.unwrap_or(found);
    if let FileKind::Own(format) = kind {
        let read = canopy_topology::read_document_until(text.as_bytes(), Some(format), limits, stop)?;
        let report = Report { assumed: read.warnings, ..Report::default() };
        return Ok(Imported { topology: read.topology, kind, report });
    }
    let (draft, report) = match content(text, kind, limits, stop)? {
        Content::Network(draft, report) => (draft, report),
        Content::Machine(machine) => machine.alone(),
        Content::Fabric(fabric) => fabric.alone().map_err(|problem| FileError::whole(kind, problem))?,
    };
    let (topology, report) = build(draft, report, limits, stop)?;
    Ok(Imported { topology, kind, report })
}

/// Reads what a file describes, as parts of a cluster need it.
///
/// # Errors
/// As [`read`].
pub fn read_content(
    bytes: &[u8],
    limits: &TopologyLimits,
    stop: &dyn Fn() -> bool,
) -> Result<(FileKind, Content), ImportError> {
    let text = text(bytes, limits)?;
    let kind = recognised(text)?;
    if let FileKind::Own(format) = kind {
        let read = canopy_topology::read_document_until(text.as_bytes(), Some(format), limits, stop)?;
        let report = Report { assumed: read.warnings, ..Report::default() };
        return Ok((kind, Content::Network(draft_of(&read.topology)?, report)));
    }
    Ok((kind, content(text, kind, limits, stop)?))
}

/// A draft from which the same topology is built.
fn draft_of(topology: &Topology) -> Result<TopologyDraft, ImportError> {
    Ok(TopologyDocument::from(topology).into_draft()?)
}

fn content(
    text: &str,
    kind: FileKind,
    limits: &TopologyLimits,
    stop: &dyn Fn() -> bool,
) -> Result<Content, ImportError> {
    let unknown = || FileError::whole(kind, "files of this kind are not read");
    let reader = Reader::of(kind).ok_or_else(unknown)?;
    (reader.read)(Source { text, limits, stop })
}

/// Builds the network and adds what is unusual about it.
pub(crate) fn build(
    draft: TopologyDraft,
    report: Report,
    limits: &TopologyLimits,
    stop: &dyn Fn() -> bool,
) -> Result<(Topology, Report), ImportError> {
    let topology = draft.build_until(limits, stop)?.ok_or(ReadError::Stopped)?;
    let mut report = report.shortened();
    report.assumed.extend(observations(&topology));
    Ok((topology, report))
}

fn text<'a>(bytes: &'a [u8], limits: &TopologyLimits) -> Result<&'a str, ImportError> {
    if bytes.len() > limits.bytes_max {
        return Err(ReadError::TooManyBytes { found: bytes.len(), limit: limits.bytes_max }.into());
    }
    let text = std::str::from_utf8(bytes).map_err(|error| match foreign::binary(bytes) {
        Some(what) => ImportError::Binary { what },
        None => ReadError::NotUtf8 { offset: error.valid_up_to() }.into(),
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Bytes that are looked at to recognise a file: enough for the comments on top of a configuration file.
const LOOKED_AT: usize = 8 << 10;

/// The kind of a file by what it begins with.
fn recognised(text: &str) -> Result<FileKind, ImportError> {
    let end = (0..=LOOKED_AT.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    let start = format!("\n{}", text[..end].to_ascii_lowercase());
    let own = FileKind::Own(DocumentFormat::sniff(text.as_bytes()));
    // canopy's own documents may hold any text as an id.
    if start.contains("\ncanopy:") || start.contains("\"canopy\"") && start.contains("\"nodes\"") {
        return Ok(own);
    }
    if let Some(reader) = READERS.iter().find(|reader| (reader.begins)(&start)) {
        return Ok(reader.kind);
    }
    match foreign::recognise(&start) {
        Some(file) => Err(ImportError::NotNetwork(file)),
        // So that the error names its root element.
        None if start.trim_start().starts_with('<') => Ok(FileKind::NcclXml),
        None => Ok(own),
    }
}
