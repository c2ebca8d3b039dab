//! XML of hwloc's `lstopo`, versions 1 to 3: sockets, PCIe with its rates, GPUs, NICs, and what joins GPUs.
//!
//! [`devices`] finds GPUs and NICs, [`tree`] the PCIe switches above them, [`matrix`] the rates of NVLink and xGMI.
//! hwloc has an object for each port of a PCIe switch: one that leads to a single device is part of its link, and the
//! slower rate counts.
//! Source: open-mpi/hwloc `hwloc/topology-xml.c`, `include/hwloc.h`, `hwloc/topology-nvml.c`.

mod devices;
mod matrix;
mod tree;

use std::collections::HashMap;

use canopy_topology::{Attributes, Capacity, Latency, NodeKind, shorten};

use self::devices::{Device, Kind};
use super::rates;
use crate::content::Content;
use crate::error::{FileError, ImportError};
use crate::kind::FileKind;
use crate::machine::{Machine, listed};
use crate::nccl::between_cpus_of;
use crate::source::Source;
use crate::xml::{self, Element};

const KIND: FileKind = FileKind::Hwloc;

/// Whether a file that begins like this is one.
pub(crate) fn begins(start: &str) -> bool {
    start.contains("<topology")
}

/// Reads the file to the machine that it describes.
pub(crate) fn read(source: Source<'_>) -> Result<Content, ImportError> {
    let root = xml::parse(KIND, source)?;
    if root.name != "topology" {
        let found = shorten(&root.name);
        let problem = format!("the root element is `{found}`, not `topology`; send what `lstopo --of xml` writes");
        return Err(FileError::whole(KIND, problem).into());
    }
    let devices = devices::find(&root)?;
    let mut builder = Builder::default();
    for device in &devices {
        builder.add_device(device)?;
    }
    if builder.gpus == 0 {
        let problem = "the file names no GPU: no PCIDev of class 0302, 0300, 0380 or 1200; run `lstopo --of xml` on \
                       the machine, with I/O devices";
        return Err(FileError::whole(KIND, problem).into());
    }
    builder.add_tree(&root)?;
    let places = builder.machine.cpus.len();
    source.require(builder.machine.draft.nodes.len(), places.saturating_mul(places))?;
    builder.join_cpus(&root);
    builder.add_matrices(&root, source)?;
    builder.tell(&devices);
    let draft = &builder.machine.draft;
    source.require(draft.nodes.len(), draft.links.len())?;
    Ok(Content::Machine(builder.machine))
}

/// What a number of a matrix stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Node(String),
    NvSwitch,
}

/// The machine so far.
#[derive(Default)]
struct Builder {
    machine: Machine,
    gpus: usize,
    /// Nodes by the bus ids of devices.
    node_at: HashMap<String, String>,
    /// By `gp_index`, which is how matrices name objects.
    end_of: HashMap<u64, End>,
    /// PCIe links of which the file does not say the rate.
    silent_links: usize,
    /// GPUs whose PCIe link is as slow as that of an idle one.
    slow_gpus: usize,
    /// Links of matrices, and those that lead to what is no GPU, NVSwitch or CPU.
    matrix_links: usize,
    lost_links: usize,
}

impl Builder {
    fn add_node(&mut self, id: &str, kind: NodeKind, label: Option<String>) {
        self.machine.draft.add_node(id, kind, Attributes { label, ..Attributes::default() });
    }

    fn add_both(&mut self, a: &str, b: &str, rate: Capacity) {
        self.machine.draft.add_both(a, b, rate, Latency::default());
    }

    /// A GPU or a NIC, without its links; devices come by bus id, and so do ranks.
    fn add_device(&mut self, device: &Device<'_>) -> Result<(), ImportError> {
        let dotted = device.busid.replace(':', ".");
        let (id, end) = match &device.kind {
            Kind::NvSwitch => (None, End::NvSwitch),
            Kind::Gpu => {
                let id = format!("gpu{}", self.gpus);
                self.gpus += 1;
                self.add_node(&id, NodeKind::Compute, Some(device.busid.clone()));
                (Some(id.clone()), End::Node(id))
            }
            Kind::Nic(ports) => {
                let id = format!("nic-{dotted}");
                let names = ports.iter().filter_map(|port| port.device.as_deref());
                let label = std::iter::once(device.busid.as_str()).chain(names).collect::<Vec<_>>().join(" ");
                self.add_node(&id, NodeKind::PLAIN_SWITCH, Some(label));
                self.machine.ports.extend(ports.iter().map(|port| port.at(&id)));
                (Some(id.clone()), End::Node(id))
            }
            Kind::Other(_) => return Ok(()),
        };
        for object in std::iter::once(device.element).chain(device.element.children_named("object")) {
            if let Some(index) = object.number("gp_index")? {
                self.end_of.insert(index, end.clone());
            }
        }
        if let Some(id) = id {
            self.node_at.insert(device.busid.clone(), id);
        }
        Ok(())
    }

    /// Every CPU with every other, at the rate of their make.
    fn join_cpus(&mut self, root: &Element) {
        let cpus = self.machine.cpus.clone();
        if cpus.len() < 2 {
            return;
        }
        let info = |name| info_below(root, name).unwrap_or_default();
        let number = |name| info(name).parse().unwrap_or(0);
        let ids = (number("CPUFamilyNumber"), number("CPUModelNumber"));
        let known = between_cpus_of(info("Architecture"), info("CPUVendor"), ids, false);
        let rate = known.and_then(Capacity::from_bytes_per_sec).unwrap_or(rates::CPUS);
        for (place, a) in cpus.iter().enumerate() {
            cpus.iter().skip(place + 1).for_each(|b| self.add_both(a, b, rate));
        }
        let why = if known.is_some() { "which NCCL takes for their make" } else { "the lowest rate NCCL takes" };
        self.machine.report.assumed.push(format!("CPUs are joined at {rate}, {why}; the file does not say"));
    }

    /// Says what was read, assumed and left out.
    fn tell(&mut self, devices: &[Device<'_>]) {
        let nics = devices.iter().filter(|device| matches!(device.kind, Kind::Nic(_))).count();
        let report = &mut self.machine.report;
        let joined = self.matrix_links;
        report.understood.push(format!("{} GPUs, {nics} NICs, {joined} directed links of NVLink or xGMI", self.gpus));
        report.assumed.push("the file has no ranks; GPUs are ranked by their bus ids".to_owned());
        if joined == 0 {
            let text = "NVLink and xGMI are unknown: GPUs are joined by PCIe alone; use an lstopo with NVML or RSMI, \
                        or a dump of NCCL (NCCL_TOPO_DUMP_FILE)";
            report.assumed.push(text.to_owned());
        }
        if self.silent_links > 0 {
            let (count, rate) = (self.silent_links, rates::PCIE_4);
            report
                .assumed
                .push(format!("{count} PCIe links have no rate; 16 lanes of generation 4, {rate}, are taken"));
        }
        if self.slow_gpus > 0 {
            report.assumed.push(format!(
                "{} GPUs have PCIe links below 7GB/s, as idle ones do; run lstopo while they work, if they were",
                self.slow_gpus
            ));
        }
        let others: Vec<&str> = devices.iter().filter_map(Device::left_out).collect();
        if !others.is_empty() {
            let listed = listed(others.iter().copied());
            report.left_out.push(format!("{} other displays and network devices: {listed}", others.len()));
        }
        if self.lost_links > 0 {
            report.left_out.push(format!("{} links to objects that are no GPU, NVSwitch or CPU", self.lost_links));
        }
    }
}

/// The value of an `info` element directly inside.
fn info<'a>(object: &'a Element, name: &str) -> Option<&'a str> {
    let found = object.children_named("info").find(|info| info.attribute("name") == Some(name));
    found.and_then(|info| info.attribute("value"))
}

/// The first such value anywhere inside. O(elements).
fn info_below<'a>(object: &'a Element, name: &str) -> Option<&'a str> {
    info(object, name).or_else(|| object.children_named("object").find_map(|child| info_below(child, name)))
}

#[cfg(test)]
mod tests;
