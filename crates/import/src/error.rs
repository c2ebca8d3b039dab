//! Errors of reading a file.

mod nccl;
mod xml;

use canopy_topology::{DocumentFormat, ReadError, TopologyError, shorten};

use crate::foreign::ForeignFile;
use crate::kind::FileKind;
pub use nccl::NcclError;
pub use xml::XmlError;

/// Each variant says where the error is, what was found and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ImportError {
    #[error("this is {}, not a description of a network; {}", .0.what, .0.instead)]
    NotNetwork(ForeignFile),
    #[error("this is {what}, not a description of a network")]
    Binary { what: &'static str },
    #[error("{what}; {instead}")]
    Unknown { what: String, instead: String },
    #[error(
        "the text holds the outputs of several, {of}; give that of one alone, such as `grep '{first}' FILE` has it"
    )]
    Several { of: String, first: String },
    #[error("{}", with_remedy(.0))]
    Malformed(Box<ReadError>),
    #[error(transparent)]
    Document(ReadError),
    #[error(transparent)]
    Xml(#[from] XmlError),
    #[error(transparent)]
    Nccl(#[from] NcclError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

fn with_remedy(error: &ReadError) -> String {
    let what = error.to_string();
    what.clone() + &FileKind::Own(DocumentFormat::Yaml).remedy(&what)
}

/// Errors of YAML and JSON say what is wrong, and not what to do about it.
impl From<ReadError> for ImportError {
    fn from(error: ReadError) -> Self {
        if matches!(error, ReadError::Syntax { .. }) { Self::Malformed(Box::new(error)) } else { Self::Document(error) }
    }
}

impl ImportError {
    /// Path of the field at fault, such as `links[3].bandwidth`, where one field is.
    pub fn field(&self) -> Option<String> {
        match self {
            Self::NotNetwork(_) | Self::Binary { .. } | Self::Unknown { .. } | Self::Several { .. } => None,
            Self::Malformed(error) => error.field(),
            Self::Document(error) => error.field(),
            Self::Xml(error) => error.field(),
            Self::Nccl(error) => error.field(),
            Self::File(error) => error.field.clone(),
            Self::Topology(error) => error.field(),
        }
    }

    /// Whether no other reading can help: the file is too large, no text, or nobody waits for it any more.
    pub(crate) fn is_final(&self) -> bool {
        let is_stopped = matches!(self, Self::Document(ReadError::Stopped));
        is_stopped || self.is_over_limit() || matches!(self, Self::Binary { .. })
    }

    /// Whether the file was read as canopy's own, as are texts of which nothing is known.
    pub(crate) const fn is_of_own(&self) -> bool {
        matches!(self, Self::Malformed(_) | Self::Document(_))
    }

    /// Whether the file is refused for its size, not for its content.
    pub fn is_over_limit(&self) -> bool {
        match self {
            Self::NotNetwork(_) | Self::Binary { .. } | Self::Unknown { .. } | Self::Several { .. } => false,
            Self::Malformed(error) => error.is_over_limit(),
            Self::Document(error) => error.is_over_limit(),
            Self::Xml(error) => error.is_over_limit(),
            Self::Nccl(error) => error.is_over_limit(),
            Self::File(error) => error.is_over_limit,
            Self::Topology(error) => error.is_over_limit(),
        }
    }
}

/// What is wrong with a file of another program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {problem}{}", .kind.name(), line.map(|line| format!(" line {line}")).unwrap_or_default(), .kind.remedy(problem))]
pub struct FileError {
    /// What it was read as.
    pub kind: FileKind,
    /// Line, from 1, where the file has lines.
    pub line: Option<usize>,
    /// The field at fault, if one is.
    pub field: Option<String>,
    /// What was found, and the remedy.
    pub problem: String,
    /// Whether it is a matter of size.
    pub is_over_limit: bool,
}

impl FileError {
    /// A problem of the file as a whole.
    pub(crate) fn whole(kind: FileKind, problem: impl Into<String>) -> Self {
        Self { kind, line: None, field: None, problem: problem.into(), is_over_limit: false }
    }

    /// A problem on a line, from 1.
    pub(crate) fn at(kind: FileKind, line: usize, problem: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::whole(kind, problem) }
    }

    /// The same, with the field that it is about.
    #[must_use]
    pub(crate) fn of_field(self, field: impl AsRef<str>) -> Self {
        Self { field: Some(shorten(field.as_ref())), ..self }
    }
}
