//! The entry for bytes from outside.

use std::borrow::Cow;

use canopy_topology::{
    DocumentFormat, ReadError, ReadTopology, Topology, TopologyDocument, TopologyDraft, TopologyLimits, observations,
};

use crate::content::Content;
use crate::error::{FileError, ImportError};
use crate::kind::FileKind;
use crate::readers::{READERS, Reader};
use crate::report::Report;
use crate::source::Source;
use crate::{foreign, nearest, paste};

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
/// A text that cannot be read as it is is read without what terminals, launchers and web pages put around it.
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
    let (kind, found) = found(bytes, kind, limits, stop)?;
    let (draft, report) = match found {
        Found::Own(read) => return Ok(own(kind, read)),
        Found::Other(Content::Network(draft, report)) => (draft, report),
        Found::Other(Content::Machine(machine)) => machine.alone(),
        Found::Other(Content::Fabric(fabric)) => fabric.alone().map_err(|problem| FileError::whole(kind, problem))?,
    };
    let (topology, report) = build(draft, report, limits, stop)?;
    Ok(Imported { topology, kind, report })
}

/// A network in canopy's own words.
fn own(kind: FileKind, read: ReadTopology) -> Imported {
    Imported { topology: read.topology, kind, report: Report { assumed: read.warnings, ..Report::default() } }
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
    match found(bytes, None, limits, stop)? {
        (kind, Found::Other(content)) => Ok((kind, content)),
        (kind, Found::Own(read)) => {
            let Imported { topology, report, .. } = own(kind, read);
            Ok((kind, Content::Network(draft_of(&topology)?, report)))
        }
    }
}

/// What a text was read to.
enum Found {
    Own(ReadTopology),
    Other(Content),
}

/// Reads a text as it is, and if that fails, without what may be around it.
fn found(
    bytes: &[u8],
    kind: Option<FileKind>,
    limits: &TopologyLimits,
    stop: &dyn Fn() -> bool,
) -> Result<(FileKind, Found), ImportError> {
    let text = text(bytes, limits)?;
    // What is no network is called by its name, whatever it was taken for.
    let mut recognised_as = recognised(&text, LOOKED_AT);
    let mut text = Cow::Borrowed(&*text);
    // Ids of canopy's own files are refused for characters that nobody sees, elsewhere these say nothing.
    if !matches!(recognised_as, Ok(FileKind::Own(_)))
        && let Cow::Owned(visible) = paste::visible(&text)
    {
        recognised_as = recognised(&visible, LOOKED_AT);
        text = Cow::Owned(visible);
    }
    let source = Source { text: &text, limits, stop };
    let first = recognised_as.and_then(|found| attempt(source, kind.unwrap_or(found)));
    match first {
        Err(error) if !error.is_final() => unwrapped(source, kind, error),
        answer => answer,
    }
}

/// Reads what is left of a text without what was around it; `as_it_is` says why it could not be read as it is.
fn unwrapped(
    source: Source<'_>,
    kind: Option<FileKind>,
    as_it_is: ImportError,
) -> Result<(FileKind, Found), ImportError> {
    if source.text.len() > paste::BYTES_MAX {
        return Err(as_it_is);
    }
    let is_known = |text: &str| match recognised(text, SEARCHED) {
        Ok(FileKind::Own(_)) => text.contains("canopy:") || text.contains("\"canopy\""),
        Ok(_) => true,
        Err(_) => false,
    };
    let cleaned = paste::clean(source.text, &is_known)?;
    let (text, doubts) = match &cleaned {
        Some(cleaned) => (cleaned.text.as_str(), cleaned.doubts.as_slice()),
        None => (source.text, [].as_slice()),
    };
    let better = match recognised(text, SEARCHED) {
        Ok(found) => {
            let kind = kind.unwrap_or(found);
            let text = paste::trimmed(kind, text);
            if text == source.text {
                return Err(nearest::called(source.text, as_it_is));
            }
            attempt(Source { text: &text, ..source }, kind)
        }
        Err(error) => Err(error),
    };
    match better {
        Ok((kind, mut found)) => {
            found.doubt(doubts);
            Ok((kind, found))
        }
        // As it is, what is wrong is named by its line; of what is left, only if something was around it.
        Err(_) if cleaned.is_none() && !as_it_is.is_of_own() => Err(as_it_is),
        Err(error) if error.is_of_own() && !as_it_is.is_of_own() => Err(as_it_is),
        Err(error) => Err(nearest::called(source.text, error)),
    }
}

impl Found {
    /// Adds to what a person should know.
    fn doubt(&mut self, doubts: &[String]) {
        let assumed = match self {
            Self::Own(read) => &mut read.warnings,
            Self::Other(Content::Network(_, report)) => &mut report.left_out,
            Self::Other(Content::Machine(machine)) => &mut machine.report.left_out,
            Self::Other(Content::Fabric(fabric)) => &mut fabric.report.left_out,
        };
        assumed.extend_from_slice(doubts);
    }
}

/// Reads a text as a file of a kind.
fn attempt(source: Source<'_>, kind: FileKind) -> Result<(FileKind, Found), ImportError> {
    let Source { text, limits, stop } = source;
    if let FileKind::Own(format) = kind {
        let read = canopy_topology::read_document_until(text.as_bytes(), Some(format), limits, stop)?;
        return Ok((kind, Found::Own(read)));
    }
    let unknown = || FileError::whole(kind, "files of this kind are not read");
    let reader = Reader::of(kind).ok_or_else(unknown)?;
    Ok((kind, Found::Other((reader.read)(source)?)))
}

/// A draft from which the same topology is built.
fn draft_of(topology: &Topology) -> Result<TopologyDraft, ImportError> {
    Ok(TopologyDocument::from(topology).into_draft()?)
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

/// The text of a file, without a byte order mark; PowerShell writes UTF-16.
fn text<'a>(bytes: &'a [u8], limits: &TopologyLimits) -> Result<Cow<'a, str>, ImportError> {
    if bytes.len() > limits.bytes_max {
        return Err(ReadError::TooManyBytes { found: bytes.len(), limit: limits.bytes_max }.into());
    }
    if let Some(text) = utf16(bytes) {
        return Ok(Cow::Owned(text));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| match foreign::binary(bytes) {
        Some(what) => ImportError::Binary { what },
        None => ReadError::NotUtf8 { offset: error.valid_up_to() }.into(),
    })?;
    Ok(Cow::Borrowed(text.strip_prefix('\u{feff}').unwrap_or(text)))
}

/// Text of two bytes a character, behind its mark.
fn utf16(bytes: &[u8]) -> Option<String> {
    let (mark, rest) = bytes.split_at_checked(2)?;
    let unit: fn([u8; 2]) -> u16 = match mark {
        [0xff, 0xfe] => u16::from_le_bytes,
        [0xfe, 0xff] => u16::from_be_bytes,
        _ => return None,
    };
    let (pairs, []) = rest.as_chunks::<2>() else { return None };
    char::decode_utf16(pairs.iter().map(|&pair| unit(pair))).collect::<Result<_, _>>().ok()
}

/// Bytes that are looked at to recognise a file as it is: enough for the comments on top of a configuration file.
const LOOKED_AT: usize = 8 << 10;
/// Bytes in which a file is looked for that stands among other text.
const SEARCHED: usize = 4 << 20;

/// The kind of a file by what it begins with, in so many bytes.
fn recognised(text: &str, looked_at: usize) -> Result<FileKind, ImportError> {
    let end = (0..=looked_at.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
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
