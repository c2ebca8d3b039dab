//! Why a document was refused.

use super::{DocumentFormat, NcclError};
use crate::error::TopologyError;
use crate::quantity::QuantityError;

/// Each variant says where, what was found, and what would be accepted.
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
    #[error("canopy: format version {found} is not known; this program reads `canopy: 1`")]
    Version { found: u64 },
    #[error("{path}: {problem}")]
    Quantity { path: String, problem: QuantityError },
    #[error(
        "{path}: node `{id}` is a compute node, and only switches multicast or aggregate; give it `kind: switch` or leave this out"
    )]
    CapableCompute { path: String, id: String },
    #[error("{path}: node `{id}` is a switch, which forwards anyway; leave this out")]
    ForwardingSwitch { path: String, id: String },
    #[error("stopped before the document was read")]
    Stopped,
    #[error(transparent)]
    Nccl(#[from] NcclError),
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
            Self::Nccl(error) => error.field(),
            Self::Topology(error) => error.field(),
        }
    }

    /// Whether the document is refused for its size, not for what it says.
    pub fn is_over_limit(&self) -> bool {
        match self {
            Self::TooManyBytes { .. } | Self::TooComplex { .. } => true,
            Self::Nccl(error) => error.is_over_limit(),
            Self::Topology(error) => error.is_over_limit(),
            _ => false,
        }
    }
}
