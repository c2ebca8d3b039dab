//! The graph of a file: a vertex per GPU, PCI switch, CPU and NIC, and one for all NVSwitches together.
//!
//! A file may describe several hosts that NVSwitches join: CPUs say by `host_hash` which is theirs. Bus ids and links
//! between CPUs are those of a host.
//!
//! Built in the order NCCL does: the PCI tree first, then NVLink and its kin, then links between PCI switches and
//! between CPUs. Nothing is left out here.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use canopy_topology::{Capacity, TopologyLimits, shorten};

use super::rates;
use crate::error::ImportError;
use crate::error::NcclError;
use crate::machine::{Port, is_display, is_virtual, listed};
use crate::report::Report;
use crate::xml::Element;

/// What a vertex is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VertexKind {
    Gpu,
    Cpu,
    /// Anything else that forwards: PCI switch, NVSwitch, NIC.
    Switch,
}

/// A device, or the NVSwitches together.
#[derive(Debug)]
pub(super) struct Vertex {
    pub(super) kind: VertexKind,
    pub(super) id: String,
    /// What the machine calls it, where that is not its id.
    pub(super) label: Option<String>,
    /// Rank the file gives a GPU.
    pub(super) rank: Option<u64>,
}

/// A directed link between two vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostLink {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) bytes_per_sec: u64,
}

/// Devices of one host, or of several that NVSwitches join, and the links between them.
#[derive(Debug, Default)]
pub(super) struct HostGraph {
    pub(super) vertices: Vec<Vertex>,
    pub(super) links: Vec<HostLink>,
    /// Ports of NICs, with the vertex of the NIC.
    pub(super) ports: Vec<(usize, Port)>,
    pub(super) report: Report,
}

/// Whether a PCI class is that of a GPU: display controllers (0x03) and processing accelerators (0x12).
pub(super) fn is_gpu_class(class: &str) -> bool {
    class_starts(class, "03") || class_starts(class, "12")
}

fn class_starts(class: &str, prefix: &str) -> bool {
    let digits = class.strip_prefix("0x").or_else(|| class.strip_prefix("0X")).unwrap_or(class);
    digits.starts_with(prefix)
}

/// `0000:c1:00.0` as files and people write it, in lower case with a domain of at least four digits.
fn normal_busid(element: &Element, attribute: &'static str) -> Result<String, NcclError> {
    let given = element.required(attribute)?;
    let lower = given.to_ascii_lowercase();
    let usable = lower.len() <= 32 && lower.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'));
    if !usable {
        return Err(element.unusable(attribute, given, "a PCI bus id such as 0000:c1:00.0").into());
    }
    let (domain, device) = match lower.matches(':').count() {
        0 | 1 => ("", lower.as_str()),
        _ => lower.split_once(':').unwrap_or(("", &lower)),
    };
    Ok(format!("{:0>4}:{device}", domain.trim_start_matches('0')))
}

impl HostGraph {
    /// Reads a `system` element.
    pub(super) fn read(system: &Element, limits: &TopologyLimits) -> Result<Self, ImportError> {
        let version = system.required("version")?;
        let rccl = match version {
            "1" => false,
            "2" => true,
            _ => return Err(system.unusable("version", version, "1 (NCCL) or 2 (RCCL)").into()),
        };
        let mut reader = Reader { hosts: hosts(system), ..Reader::default() };
        let stated = system.children_named("cpu").filter_map(|cpu| cpu.attribute("numaid"));
        reader.numaids = stated.map(Cow::Borrowed).collect();
        for cpu in system.children_named("cpu") {
            reader.host = reader.host_of(cpu)?;
            reader.add_cpu(cpu)?;
        }
        if reader.gpus.is_empty() {
            return Err(NcclError::NoGpu.into());
        }
        let cpu_pairs = reader.cpus.len().saturating_mul(reader.cpus.len());
        limits.check(reader.graph.vertices.len(), reader.graph.links.len().saturating_add(cpu_pairs))?;
        reader.add_gpu_links()?;
        if reader.hosts.len() > 1 && reader.nvswitch.is_none() {
            return Err(NcclError::SeveralHosts { hosts: reader.hosts.len() }.into());
        }
        reader.add_pci_links()?;
        reader.add_cpu_links(rccl)?;
        reader.warn();
        let mut graph = reader.graph;
        graph.assign_ranks();
        Ok(graph)
    }

    fn add_both(&mut self, a: usize, b: usize, bytes_per_sec: u64) {
        self.add_link(a, b, bytes_per_sec);
        self.add_link(b, a, bytes_per_sec);
    }

    /// A link that carries nothing is none.
    fn add_link(&mut self, from: usize, to: usize, bytes_per_sec: u64) {
        if bytes_per_sec > 0 {
            self.links.push(HostLink { from, to, bytes_per_sec });
        }
    }

    /// Keeps the file's ranks if they are 0 to N−1, else numbers GPUs in the order of the file; names GPUs by rank.
    fn assign_ranks(&mut self) {
        let gpus = || self.vertices.iter().filter(|vertex| vertex.kind == VertexKind::Gpu);
        let mut stated: Vec<u64> = gpus().filter_map(|gpu| gpu.rank).collect();
        stated.sort_unstable();
        let complete = stated.len() == gpus().count() && (0..).zip(&stated).all(|(wanted, rank)| wanted == *rank);
        if !complete {
            let found = if stated.is_empty() { "has no ranks" } else { "does not give every GPU its rank from 0" };
            self.report.assumed.push(format!("the file {found}; GPUs are ranked in its order"));
        }
        let gpus = self.vertices.iter_mut().filter(|vertex| vertex.kind == VertexKind::Gpu);
        for (position, gpu) in (0_u64..).zip(gpus) {
            let rank = gpu.rank.filter(|_| complete).unwrap_or(position);
            gpu.rank = Some(rank);
            gpu.id = format!("gpu{rank}");
        }
    }
}

/// The hosts that CPUs are in, in the order of the file.
fn hosts(system: &Element) -> Vec<&str> {
    let mut known = BTreeSet::new();
    let all = system.children_named("cpu").filter_map(|cpu| cpu.attribute("host_hash"));
    all.filter(|host| known.insert(*host)).collect()
}

/// A GPU on its way to its links.
struct Gpu<'a> {
    vertex: usize,
    host: usize,
    cpu: usize,
    /// Its `gpu` element; static files of clouds have none.
    element: Option<&'a Element>,
}

/// The graph, and what later passes need to look up.
#[derive(Default)]
struct Reader<'a> {
    graph: HostGraph,
    hosts: Vec<&'a str>,
    /// Number of the host that is being read.
    host: usize,
    /// Vertices of CPUs with their hosts.
    cpus: Vec<(usize, usize, &'a Element)>,
    gpus: Vec<Gpu<'a>>,
    /// How often each name of a vertex was asked for.
    names: BTreeMap<String, u32>,
    /// GPUs by host and bus id.
    gpu_at: BTreeMap<(usize, String), usize>,
    /// Other PCI devices and switches by host and bus id: the first, where real files give one id to several.
    device_at: BTreeMap<(usize, String), usize>,
    pci_links: Vec<(usize, usize, &'a Element)>,
    nvswitch: Option<usize>,
    /// Numbers that CPUs have, in any host.
    numaids: BTreeSet<Cow<'a, str>>,
    /// Interfaces that software made, and ports without a speed.
    virtual_ports: Vec<&'a str>,
    silent_ports: usize,
    /// Names of elements that are not read, with their numbers.
    skipped: BTreeMap<&'a str, usize>,
}

impl<'a> Reader<'a> {
    /// Adds a vertex; an id that is taken gets a number behind it. GPUs get their ids with their ranks.
    fn add_vertex(&mut self, kind: VertexKind, name: String, label: Option<String>) -> usize {
        let id = match self.names.get_mut(&name) {
            Some(uses) if kind != VertexKind::Gpu => {
                *uses += 1;
                // No name holds `#`, so the numbered id is free.
                format!("{name}#{uses}")
            }
            _ => name.clone(),
        };
        self.names.entry(name).or_insert(1);
        self.graph.vertices.push(Vertex { kind, id, label, rank: None });
        self.graph.vertices.len() - 1
    }

    /// The number of a CPU's host: 0 where the file has one.
    fn host_of(&self, cpu: &Element) -> Result<usize, NcclError> {
        if self.hosts.len() < 2 {
            return Ok(0);
        }
        let host = cpu.required("host_hash")?;
        Ok(self.hosts.iter().position(|other| *other == host).unwrap_or_default())
    }

    /// A name with that of its host, where there are several.
    fn named(&self, name: String) -> String {
        if self.hosts.len() < 2 { name } else { format!("host{}-{name}", self.host) }
    }

    fn add_cpu(&mut self, element: &'a Element) -> Result<(), NcclError> {
        let stated = element.required("numaid")?;
        // Virtual machines and desktop boards have no number.
        let free =
            || (0..).map(|number: usize| number.to_string()).find(|number| !self.numaids.contains(number.as_str()));
        let numaid = if stated == "-1" { free().unwrap_or_default() } else { stated.to_owned() };
        let numaid = numaid.as_str();
        if !numaid.bytes().all(|byte| byte.is_ascii_digit()) || numaid.len() > 9 {
            return Err(element.unusable("numaid", numaid, "a whole number").into());
        }
        let id = self.named(format!("cpu{numaid}"));
        if self.names.contains_key(&id) {
            return Err(NcclError::DuplicateCpu { line: element.line, numaid: numaid.to_owned() });
        }
        self.numaids.insert(Cow::Owned(numaid.to_owned()));
        let cpu = self.add_vertex(VertexKind::Cpu, id, None);
        self.cpus.push((cpu, self.host, element));
        for child in &element.children {
            match child.name.as_str() {
                "pci" => self.add_pci(child, cpu, cpu)?,
                "nic" => self.add_virtual_nic(child.children_named("net"), cpu, numaid)?,
                "net" => self.add_virtual_nic(std::iter::once(child), cpu, numaid)?,
                name => *self.skipped.entry(name).or_insert(0) += 1,
            }
        }
        Ok(())
    }

    /// A NIC behind no PCI device the file knows: at the CPU, without a bottleneck.
    fn add_virtual_nic(
        &mut self,
        ports: impl Iterator<Item = &'a Element>,
        cpu: usize,
        numaid: &str,
    ) -> Result<(), NcclError> {
        let (virtual_ports, ports): (Vec<&Element>, Vec<_>) =
            ports.partition(|port| name(port).is_some_and(is_virtual));
        self.virtual_ports.extend(virtual_ports.into_iter().filter_map(name));
        if ports.is_empty() {
            return Ok(());
        }
        let nic = self.add_vertex(VertexKind::Switch, self.named(format!("nic-cpu{numaid}")), None);
        self.graph.add_both(cpu, nic, rates::LOCAL);
        self.add_ports(ports.into_iter(), nic)
    }

    fn add_ports(&mut self, ports: impl Iterator<Item = &'a Element>, nic: usize) -> Result<(), NcclError> {
        for port in ports {
            if let Some(name) = name(port).filter(|name| is_virtual(name)) {
                self.virtual_ports.push(name);
                continue;
            }
            let device = name(port).map(str::to_owned);
            if let Some(device) = &device {
                self.name_device(nic, device);
            }
            let guid = port.attribute("guid").and_then(guid).filter(|&guid| guid > 0);
            let stated = rates::net(port)?;
            self.silent_ports += usize::from(stated.is_none());
            let rate = Capacity::from_bytes_per_sec(stated.unwrap_or(rates::UNKNOWN_PORT));
            self.graph.ports.push((nic, Port { node: String::new(), device, guid, rate }));
        }
        Ok(())
    }

    /// Adds the name of a port to what the machine calls its NIC.
    fn name_device(&mut self, nic: usize, device: &str) {
        let label = &mut self.graph.vertices[nic].label;
        let known = label.take().filter(|known| !known.split(' ').any(|word| word == device));
        *label = Some(known.map_or_else(|| device.to_owned(), |known| format!("{known} {device}")));
    }

    /// A device or PCI switch and everything below it. Depth is bounded by the XML reader.
    fn add_pci(&mut self, element: &'a Element, parent: usize, cpu: usize) -> Result<(), NcclError> {
        let busid = normal_busid(element, "busid")?;
        let class = element.attribute("class").unwrap_or_default();
        let dotted = busid.replace(':', ".");
        let holds = |name| element.children_named(name).next().is_some();
        let label = Some(busid.clone());
        let mut gpu_elements = element.children_named("gpu");
        let vertex = match gpu_elements.next() {
            Some(gpu) => {
                if gpu_elements.next().is_some() {
                    return Err(NcclError::SeveralGpus { line: element.line, busid });
                }
                self.add_gpu(Some(gpu), label, cpu)?
            }
            None if is_gpu_class(class) && !shows(element) => self.add_gpu(None, label, cpu)?,
            None if holds("nic") || holds("net") || class_starts(class, "02") => {
                self.add_vertex(VertexKind::Switch, self.named(format!("nic-{dotted}")), label)
            }
            None if holds("pci") || class_starts(class, "0604") => {
                self.add_vertex(VertexKind::Switch, self.named(format!("pci-{dotted}")), label)
            }
            None => {
                *self.skipped.entry("pci").or_insert(0) += 1;
                return Ok(());
            }
        };
        if self.graph.vertices[vertex].kind == VertexKind::Gpu {
            if self.gpu_at.insert((self.host, busid.clone()), vertex).is_some() {
                return Err(NcclError::DuplicateBusId { line: element.line, busid });
            }
        } else {
            self.device_at.entry((self.host, busid)).or_insert(vertex);
        }
        if class_starts(class, "02") && !holds("nic") && !holds("net") {
            // Files that clouds hand out name the device alone: it has a port of a rate that others must state.
            self.graph.ports.push((vertex, Port { node: String::new(), device: None, guid: None, rate: None }));
        }
        self.graph.add_both(vertex, parent, rates::pci(element)?);
        for child in &element.children {
            match child.name.as_str() {
                "pci" => self.add_pci(child, vertex, cpu)?,
                "nic" => self.add_ports(child.children_named("net"), vertex)?,
                "net" => self.add_ports(std::iter::once(child), vertex)?,
                "pcilink" => self.pci_links.push((vertex, self.host, child)),
                "gpu" => {}
                name => *self.skipped.entry(name).or_insert(0) += 1,
            }
        }
        Ok(())
    }

    fn add_gpu(&mut self, element: Option<&'a Element>, label: Option<String>, cpu: usize) -> Result<usize, NcclError> {
        let vertex = self.add_vertex(VertexKind::Gpu, String::new(), label);
        self.graph.vertices[vertex].rank = element.map(|gpu| gpu.number("rank")).transpose()?.flatten();
        self.gpus.push(Gpu { vertex, host: self.host, cpu, element });
        Ok(vertex)
    }

    fn add_gpu_links(&mut self) -> Result<(), NcclError> {
        for index in 0..self.gpus.len() {
            let Gpu { vertex, host, cpu, element } = self.gpus[index];
            self.host = host;
            let Some(gpu) = element else { continue };
            let (sm, gcn) = (gpu.number("sm")?, gpu.attribute("gcn").unwrap_or_default());
            for link in &gpu.children {
                match link.name.as_str() {
                    "nvlink" => self.add_gpu_link(vertex, cpu, link, rates::nvlink(link, sm)?)?,
                    "xgmi" => self.add_gpu_link(vertex, cpu, link, rates::xgmi(link, gcn)?)?,
                    "c2c" => self.graph.add_both(vertex, cpu, rates::c2c(link)?),
                    name => *self.skipped.entry(name).or_insert(0) += 1,
                }
            }
        }
        Ok(())
    }

    /// NVLink or xGMI: the class of the far end decides what it leads to.
    fn add_gpu_link(&mut self, gpu: usize, cpu: usize, link: &Element, rate: u64) -> Result<(), NcclError> {
        let class = link.attribute("tclass").unwrap_or_default();
        if class_starts(class, "068001") {
            self.graph.add_both(gpu, cpu, rate);
            return Ok(());
        }
        if !is_gpu_class(class) && link.name == "nvlink" {
            let nvswitch = match self.nvswitch {
                Some(vertex) => vertex,
                None => self.add_vertex(VertexKind::Switch, "nvs".to_owned(), Some("all NVSwitches".to_owned())),
            };
            self.nvswitch = Some(nvswitch);
            self.graph.add_both(gpu, nvswitch, rate);
            return Ok(());
        }
        // The peer states the opposite direction itself.
        let target = normal_busid(link, "target")?;
        let (line, name) = (link.line, &link.name);
        match self.gpu_at.get(&(self.host, target.clone())) {
            Some(&peer) if peer == gpu => {
                self.graph
                    .report
                    .left_out
                    .push(format!("line {line}: <{name}> leads from {target} to itself; left out"));
            }
            Some(&peer) => self.graph.add_link(gpu, peer, rate),
            None => self
                .graph
                .report
                .left_out
                .push(format!("line {line}: <{name}> leads to {target}, which is not a GPU of the file; left out")),
        }
        Ok(())
    }

    fn add_pci_links(&mut self) -> Result<(), NcclError> {
        for (vertex, host, link) in std::mem::take(&mut self.pci_links) {
            let target = normal_busid(link, "target")?;
            match self.device_at.get(&(host, target.clone())) {
                Some(&peer) if peer != vertex => self.graph.add_link(vertex, peer, rates::LOCAL),
                _ => {
                    let line = link.line;
                    self.graph.report.left_out.push(format!("line {line}: <pcilink> leads to {target}; left out"));
                }
            }
        }
        Ok(())
    }

    /// Every CPU with every other of its host.
    fn add_cpu_links(&mut self, rccl: bool) -> Result<(), NcclError> {
        let mut unknown = false;
        for &(from, host, element) in &self.cpus {
            let rate = rates::between_cpus(element, rccl)?;
            unknown |= rate.is_none();
            for &(to, ..) in self.cpus.iter().filter(|&&(to, other, _)| to != from && other == host) {
                self.graph.add_link(from, to, rate.unwrap_or(rates::UNKNOWN_CPUS));
            }
        }
        if unknown && self.cpus.len() > 1 {
            self.graph.report.assumed.push("unknown CPU model; assuming 6 GB/s to other CPUs".to_owned());
        }
        Ok(())
    }

    /// Says what the file lacks or what was not read.
    fn warn(&mut self) {
        let silent = self.gpus.iter().filter(|gpu| gpu.element.is_none()).count();
        if silent > 0 {
            let text =
                format!("NVLink unknown: {silent} GPUs have no <gpu> element, so only their PCI links are known");
            self.graph.report.assumed.push(text);
        }
        if self.silent_ports > 0 {
            let (count, rate) = (self.silent_ports, Capacity::from_bytes_per_sec(rates::UNKNOWN_PORT));
            let rate = rate.map(|rate| rate.to_string()).unwrap_or_default();
            self.graph.report.assumed.push(format!(
                "{count} ports state no speed: {rate} (10Gb/s) is taken, as NCCL does; state it with `--rates nic=400Gb/s`"
            ));
        }
        if !self.virtual_ports.is_empty() {
            let (count, names) = (self.virtual_ports.len(), listed(self.virtual_ports.iter().copied()));
            self.graph.report.left_out.push(format!("{count} virtual interfaces, which are no wires: {names}"));
        }
        if self.hosts.len() > 1 {
            let text = format!("the NVSwitches of all {} hosts are one NVLink domain", self.hosts.len());
            self.graph.report.assumed.push(text);
        }
        for (name, count) in &self.skipped {
            self.graph
                .report
                .left_out
                .push(format!("{count} <{}> elements are of an unknown kind; left out", shorten(name)));
        }
    }
}

/// What a port is called.
fn name(port: &Element) -> Option<&str> {
    port.attribute("name")
}

/// Whether a device of the class of GPUs shows pictures alone.
fn shows(device: &Element) -> bool {
    let id = |attribute| device.attribute(attribute).unwrap_or_default();
    is_display(id("vendor"), id("device"))
}

/// `0x1a2b` as a number.
fn guid(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    u64::from_str_radix(digits, 16).ok()
}
