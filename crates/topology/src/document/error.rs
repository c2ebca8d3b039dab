//! Errors of reading a document.

use super::DocumentFormat;
use crate::error::TopologyError;
use crate::quantity::QuantityError;

/// Each variant says where the error is, what was found and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ReadError {
    #[error("the document has {found} bytes, over the limit of {limit}; send a smaller one or raise the limit")]
    TooManyBytes { found: usize, limit: usize },
    #[error("byte {offset} is not UTF-8 text; save the document as UTF-8")]
    NotUtf8 { offset: usize },
    #[error("{}{} line {line}, column {column}: {problem}", path.as_deref().map(|path| format!("{path}: ")).unwrap_or_default(), format.name())]
    Syntax { format: DocumentFormat, path: Option<String>, line: u64, column: u64, problem: String },
    #[error("{} line {line}, column {column}: {problem}; write a topology without deep nesting and aliases", format.name())]
    TooComplex { format: DocumentFormat, line: u64, column: u64, problem: String },
    #[error("unknown format version `canopy: {found}`; this version of canopy reads `canopy: 1`")]
    Version { found: u64 },
    #[error("{path}: {problem}")]
    Quantity { path: String, problem: QuantityError },
    #[error(
        "{path}: node `{id}` is a compute node, and only switches multicast or aggregate; give it `kind: switch` or \
         leave out this field"
    )]
    CapableCompute { path: String, id: String },
    #[error("{path}: node `{id}` is a switch, which always forwards; leave out this field")]
    ForwardingSwitch { path: String, id: String },
    #[error("stopped before the document was read")]
    Stopped,
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

impl ReadError {
    /// Path of the field at fault, such as `links[3].bandwidth`, where one field is.
    pub fn field(&self) -> Option<String> {
        match self {
            Self::TooManyBytes { .. } | Self::NotUtf8 { .. } | Self::TooComplex { .. } | Self::Stopped => None,
            Self::Syntax { path, .. } => path.clone(),
            Self::Version { .. } => Some("canopy".to_owned()),
            Self::Quantity { path, .. } | Self::CapableCompute { path, .. } | Self::ForwardingSwitch { path, .. } => {
                Some(path.clone())
            }
            Self::Topology(error) => error.field(),
        }
    }

    /// Whether the document is refused for its size, not for its content.
    pub fn is_over_limit(&self) -> bool {
        match self {
            Self::TooManyBytes { .. } | Self::TooComplex { .. } => true,
            Self::Topology(error) => error.is_over_limit(),
            _ => false,
        }
    }
}
