//! The tables of `rocm-smi --showtopo` and `amd-smi topology`: how each two GPUs are linked, and their NUMA nodes.
//!
//! [`tables`] reads them. Pairs that xGMI joins in one hop have a link, all others meet at the host. Weights are
//! distances, not rates: each hop adds as much as the first, and where they and the table of hops differ, they are right.
//! Of rates only `amd-smi` has a table, which may be empty; else one link a pair is taken, with RCCL's rate.
//! Source: ROCm/rocm-smi-lib `python_smi_tools/rocm_smi.py`, ROCm/amdsmi `amdsmi_cli`; RCCL's tables for rates.

mod tables;

use canopy_topology::{Attributes, Capacity, Latency, NodeKind};

use self::tables::{Numbers, Tables, Word};
use super::groups::Groups;
use super::rates::{self, Generation};
use crate::content::Content;
use crate::error::{FileError, ImportError};
use crate::kind::FileKind;
use crate::machine::Machine;
use crate::source::Source;

/// Bytes per second of an MB/s.
const MEGABYTE: u64 = 1_000_000;

/// Most GPUs that one is linked to: MI300 has 7 links, MI250 8.
const PEERS_MAX: usize = 8;
/// Most GPUs that MI210 and MI250 link each to each.
const SMALL_MESH: usize = 4;

pub(crate) use tables::{begins, begins_amd};

/// Reads the tables of `rocm-smi` to the machine that they show.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    machine_of(FileKind::RocmSmi, source)
}

/// Reads those of `amd-smi`.
pub(crate) fn read_amd(source: Source<'_>) -> Result<Content, ImportError> {
    machine_of(FileKind::AmdSmi, source)
}

fn machine_of(kind: FileKind, source: Source<'_>) -> Result<Content, ImportError> {
    let tables = tables::read(kind, source)?;
    let pairs = linked(kind, &tables)?;
    let gpus = tables.gpus.len();
    let generation = if pairs.is_empty() { rates::PLAIN } else { rates::amd(is_mesh(gpus, &pairs)) };
    let mut machine = Machine::default();
    for (gpu, label) in tables.gpus.iter().zip(&tables.labels) {
        let attributes = Attributes { label: label.clone(), ..Attributes::default() };
        machine.draft.add_node(gpu.clone(), NodeKind::Compute, attributes);
    }
    source.require(gpus, 2 * pairs.len())?;
    for &(a, b) in &pairs {
        let rate = stated(&tables, (a, b)).unwrap_or(generation.link);
        machine.draft.add_both(&tables.gpus[a], &tables.gpus[b], rate, Latency::default());
    }
    add_cpus(&tables, generation, source, &mut machine)?;
    tell(&tables, &pairs, generation, &mut machine);
    Ok(Content::Machine(machine))
}

/// The rate of the links of a pair, where the tables state it.
fn stated(tables: &Tables, (a, b): (usize, usize)) -> Option<Capacity> {
    let megabytes = tables.rates.as_ref()?.get(a)?.get(b).copied().flatten()?;
    Capacity::from_bytes_per_sec(megabytes.checked_mul(MEGABYTE)?)
}

/// Pairs that xGMI joins in one hop: by the table of hops, and by weights below those of two.
fn linked(kind: FileKind, tables: &Tables) -> Result<Vec<(usize, usize)>, ImportError> {
    let of = |table: &Option<Numbers>, (a, b): (usize, usize)| table.as_ref()?.get(a)?.get(b).copied().flatten();
    let rows = || tables.types.iter().enumerate();
    let xgmi = || {
        rows().flat_map(|(a, row)| {
            let to = row.iter().enumerate().skip(a + 1).filter(|(_, word)| **word == Word::Xgmi);
            to.map(move |(b, _)| (a, b))
        })
    };
    let one_hop = xgmi().filter_map(|pair| of(&tables.weights, pair)).filter(|&weight| weight > 0).min();
    let is_near = |weight: u64| one_hop.is_none_or(|one_hop| weight < one_hop.saturating_mul(2));
    let is_linked = |pair: &(usize, usize)| {
        of(&tables.hops, *pair).is_none_or(|hops| hops == 1) && of(&tables.weights, *pair).is_none_or(is_near)
    };
    let pairs: Vec<(usize, usize)> = xgmi().filter(is_linked).collect();
    let mut peers = vec![0_usize; tables.gpus.len()];
    pairs.iter().flat_map(|&(a, b)| [a, b]).for_each(|gpu| peers[gpu] += 1);
    match peers.iter().position(|&count| count > PEERS_MAX) {
        None => Ok(pairs),
        Some(gpu) => {
            let (name, count) = (&tables.gpus[gpu], peers[gpu]);
            let problem = format!(
                "`{name}` is one hop from {count} others, but no GPU has so many links; describe whole GPUs, not \
                 partitions"
            );
            Err(FileError::whole(kind, problem).of_field(name).into())
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
    let silent = pairs.iter().filter(|&&pair| stated(tables, pair).is_none()).count();
    if silent < pairs.len() {
        report.understood.push("rates of links are the larger ones of the table of bandwidths".to_owned());
    }
    if silent > 0 {
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
