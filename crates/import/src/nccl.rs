//! Topology files of NCCL (`NCCL_TOPO_DUMP_FILE`, system version 1) and RCCL (version 2): one host, or several that
//! NVSwitches join.
//!
//! The file lists devices as a PCI tree and says which GPUs NVLink or xGMI joins. [`graph`] turns it into vertices and
//! links with the bandwidths NCCL itself assigns ([`rates`]).
//! Source: NVIDIA/nccl `src/graph/topo.h`, `topo.cc`, `xml.cc`; ROCm/rccl `src/graph/topo.cc`, `rome_models.cc`.
//!
//! It ignores `gdr` (whether a NIC reaches a GPU's memory directly).

mod drawn;
mod graph;
mod rates;

use self::graph::HostGraph;
pub(crate) use self::rates::between_cpus_of;
use crate::content::Content;
use crate::error::{ImportError, NcclError};
use crate::kind::FileKind;
use crate::machine::Machine;
use crate::source::Source;
use crate::xml;
use canopy_topology::shorten;

/// Whether a file that begins like this is one.
pub(crate) fn begins(start: &str) -> bool {
    start.contains("<system")
}

/// Reads a topology file to the machine that it describes, nothing left out.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    let root = xml::parse(FileKind::NcclXml, source)?;
    match root.name.as_str() {
        "system" => Ok(Content::Machine(Machine::from(HostGraph::read(&root, source.limits)?))),
        _ => Err(NcclError::Root { found: shorten(&root.name) }.into()),
    }
}

#[cfg(test)]
mod tests;
