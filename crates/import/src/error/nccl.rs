//! Errors of reading a topology file of NCCL.

use super::XmlError;

/// Each variant says where the error is, what was found and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum NcclError {
    #[error(transparent)]
    Xml(#[from] XmlError),
    #[error("the root element is `{found}`, not `system`; send a topology file of NCCL or RCCL")]
    Root { found: String },
    #[error("line {line}: <{element}> adds up to more than 18446744073709551615 bytes/s; use smaller numbers")]
    RateOverflow { line: usize, element: String },
    #[error("line {line}: two GPUs have the bus id {busid}; give each its own")]
    DuplicateBusId { line: usize, busid: String },
    #[error("line {line}: two <cpu> elements have numaid=\"{numaid}\"; give each its own")]
    DuplicateCpu { line: usize, numaid: String },
    #[error("line {line}: the device {busid} has several <gpu> elements; describe whole GPUs, not partitions")]
    SeveralGpus { line: usize, busid: String },
    #[error(
        "the file describes {hosts} hosts that no NVSwitch joins; keep the <cpu> elements of one host_hash, or run NCCL on one host, and join \
         machines with `canopy network replicate` or `compose`"
    )]
    SeveralHosts { hosts: usize },
    #[error(
        "the file names no GPU (no <gpu>, and no <pci> of class 0x03 or 0x12); send what NCCL_TOPO_DUMP_FILE writes on the machine"
    )]
    NoGpu,
}

impl NcclError {
    /// Element and attribute at fault, such as `xgmi@count`, where one is.
    pub fn field(&self) -> Option<String> {
        match self {
            Self::Xml(error) => error.field(),
            Self::RateOverflow { element, .. } => Some(element.clone()),
            Self::DuplicateBusId { .. } => Some("pci@busid".to_owned()),
            Self::DuplicateCpu { .. } => Some("cpu@numaid".to_owned()),
            Self::SeveralHosts { .. } => Some("cpu@host_hash".to_owned()),
            Self::SeveralGpus { .. } => Some("pci".to_owned()),
            Self::Root { .. } | Self::NoGpu => None,
        }
    }

    /// Whether the file is refused for its size, not for its content.
    pub fn is_over_limit(&self) -> bool {
        matches!(self, Self::Xml(error) if error.is_over_limit())
    }
}
