//! Topology files of NCCL (`NCCL_TOPO_DUMP_FILE`, system version 1) and RCCL (version 2): one host.
//!
//! The file lists devices as a PCI tree and says which GPUs NVLink or xGMI joins. [`graph`] turns it into vertices and
//! links with the bandwidths NCCL itself assigns ([`rates`]); [`prune`] leaves out what leads nowhere on one host.
//! Source: NVIDIA/nccl `src/graph/topo.h`, `topo.cc`, `xml.cc`; ROCm/rccl `src/graph/topo.cc`, `rome_models.cc`.
//!
//! It does not join hosts, and ignores `gdr` (whether a NIC reaches a GPU's memory directly), which has no effect
//! within a host.

mod graph;
mod prune;
mod rates;
mod xml;

use crate::imported::{Imported, NcclError, ReadError, observations};
use crate::limits::TopologyLimits;
use crate::model::TopologyDraft;
use crate::nccl::graph::HostGraph;
use crate::nccl::xml::Element;
use crate::shorten::shorten;

/// Most warnings about one file; a file with more has one thing wrong many times.
const WARNINGS_MAX: usize = 32;

/// Reads a topology file to the network its GPUs see.
pub(crate) fn import(text: &str, limits: &TopologyLimits) -> Result<Imported, ReadError> {
    let root = xml::parse(text)?;
    let mut graph = host_graph(&root, limits)?;
    prune::prune(&mut graph);
    let mut warnings = std::mem::take(&mut graph.warnings);
    let topology = TopologyDraft::from(graph).build(limits)?;
    if warnings.len() > WARNINGS_MAX {
        let more = warnings.len() - WARNINGS_MAX;
        warnings.truncate(WARNINGS_MAX);
        warnings.push(format!("and {more} more of the kind"));
    }
    warnings.extend(observations(&topology));
    Ok(Imported { topology, warnings })
}

/// Everything the file states, nothing left out.
fn host_graph(root: &Element, limits: &TopologyLimits) -> Result<HostGraph, ReadError> {
    match root.name.as_str() {
        "system" => HostGraph::read(root, limits),
        _ => Err(NcclError::Root { found: shorten(&root.name) }.into()),
    }
}

#[cfg(test)]
mod tests;
