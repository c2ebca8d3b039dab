//! The tables of `rocm-smi --showtopo`: how each two GPUs are linked, and their NUMA nodes.
//!
//! [`tables`] reads them. Pairs that xGMI joins in one hop have a link, all others meet at the host. Weights are
//! distances, not rates, and no table counts links: one link a pair is taken, with RCCL's rate.
//! Source: ROCm/rocm-smi-lib `python_smi_tools/rocm_smi.py`; RCCL's tables for rates.

mod tables;

use canopy_topology::{Attributes, Latency, NodeKind};

use self::tables::{Tables, Word};
use super::groups::Groups;
use super::rates::{self, Generation};
use crate::content::Content;
use crate::error::{FileError, ImportError};
use crate::kind::FileKind;
use crate::machine::Machine;
use crate::source::Source;

const KIND: FileKind = FileKind::RocmSmi;

/// Most GPUs that one is linked to: MI300 has 7 links, MI250 8.
const PEERS_MAX: usize = 8;
/// Most GPUs that MI210 and MI250 link each to each.
const SMALL_MESH: usize = 4;

pub(crate) use tables::begins;

/// Reads the tables to the machine that they show.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    let tables = tables::read(source)?;
    let pairs = linked(&tables)?;
    let gpus = tables.gpus.len();
    let generation = if pairs.is_empty() { rates::PLAIN } else { rates::amd(is_mesh(gpus, &pairs)) };
    let mut machine = Machine::default();
    tables.gpus.iter().for_each(|gpu| machine.draft.add_compute(gpu.clone()));
    source.require(gpus, 2 * pairs.len())?;
    for &(a, b) in &pairs {
        machine.draft.add_both(&tables.gpus[a], &tables.gpus[b], generation.link, Latency::default());
    }
    add_cpus(&tables, generation, source, &mut machine)?;
    tell(&tables, &pairs, generation, &mut machine);
    Ok(Content::Machine(machine))
}

/// Pairs that xGMI joins in one hop.
fn linked(tables: &Tables) -> Result<Vec<(usize, usize)>, ImportError> {
    let mut peers = vec![0_usize; tables.gpus.len()];
    let mut pairs = Vec::new();
    for (a, row) in tables.types.iter().enumerate() {
        for (b, &word) in row.iter().enumerate().skip(a + 1) {
            let hops = tables.hops.as_ref().and_then(|hops| hops.get(a)?.get(b));
            if word == Word::Xgmi && hops.is_none_or(|&hops| hops == 1) {
                pairs.push((a, b));
                peers[a] += 1;
                peers[b] += 1;
            }
        }
    }
    match peers.iter().position(|&count| count > PEERS_MAX) {
        None => Ok(pairs),
        Some(gpu) => {
            let (name, count) = (&tables.gpus[gpu], peers[gpu]);
            let problem = format!(
                "`{name}` is one hop from {count} others, but no GPU has so many links; describe whole GPUs, not \
                 partitions"
            );
            Err(FileError::whole(KIND, problem).of_field(name).into())
        }
    }
}

/// Whether GPUs are linked as MI300 are: each to each, more than four.
fn is_mesh(gpus: usize, pairs: &[(usize, usize)]) -> bool {
    let mut groups = Groups::new(gpus);
    pairs.iter().for_each(|&(a, b)| groups.join(a, b));
    let members = groups.members();
    let linked = members.iter().filter(|members| members.len() > 1);
    let each_to_each: usize = linked.clone().map(|members| members.len() * (members.len() - 1) / 2).sum();
    each_to_each == pairs.len() && linked.clone().all(|members| members.len() > SMALL_MESH)
}

/// A CPU for each NUMA node, all joined.
fn add_cpus(
    tables: &Tables,
    generation: Generation,
    source: Source<'_>,
    machine: &mut Machine,
) -> Result<(), ImportError> {
    let mut nodes: Vec<Option<u64>> = tables.numa.clone();
    nodes.sort_unstable();
    nodes.dedup();
    source.require(tables.gpus.len() + nodes.len(), nodes.len().saturating_mul(nodes.len()))?;
    let id = |node: Option<u64>| node.map_or("cpu".to_owned(), |node| format!("cpu{node}"));
    for &node in &nodes {
        let label = node.map(|node| format!("NUMA {node}"));
        machine.draft.add_node(id(node), NodeKind::PLAIN_SWITCH, Attributes { label, ..Attributes::default() });
        machine.cpus.push(id(node));
    }
    for (gpu, &node) in tables.gpus.iter().zip(&tables.numa) {
        machine.draft.add_both(gpu, &id(node), generation.pcie, Latency::default());
    }
    for (place, &a) in nodes.iter().enumerate() {
        let others = nodes.iter().skip(place + 1);
        others.for_each(|&b| machine.draft.add_both(&id(a), &id(b), rates::CPUS, Latency::default()));
    }
    Ok(())
}

/// Says what was read and what was assumed.
fn tell(tables: &Tables, pairs: &[(usize, usize)], generation: Generation, machine: &mut Machine) {
    let report = &mut machine.report;
    report.understood.push(format!("{} GPUs, {} pairs linked by xGMI", tables.gpus.len(), pairs.len()));
    if !pairs.is_empty() {
        report.assumed.push(format!(
            "the tables name no GPU and no number of links: one link a pair is taken, {}, as that of {}",
            generation.link, generation.gpus
        ));
        if tables.hops.is_none() {
            report.assumed.push("the file has no table of hops: each xGMI pair is taken for one hop".to_owned());
        }
    }
    report.assumed.push(format!(
        "PCIe slots have 16 lanes of generation {}, {}; the tables do not say",
        generation.pcie_generation, generation.pcie
    ));
    if tables.numa.iter().any(Option::is_none) {
        report.assumed.push("GPUs without a NUMA node are at one CPU".to_owned());
    }
    if machine.cpus.len() > 1 {
        report.assumed.push(format!("CPUs are joined at {}, the lowest rate RCCL takes", rates::CPUS));
    }
    report.left_out.push("NICs, which the tables do not have; a dump of RCCL (NCCL_TOPO_DUMP_FILE) does".to_owned());
}

#[cfg(test)]
mod tests;
