//! PCIe between devices and CPUs.

use std::collections::HashSet;

use canopy_topology::{Capacity, NodeKind};

use super::{Builder, End, devices};
use crate::error::ImportError;
use crate::error::XmlError;
use crate::host::rates;
use crate::xml::Element;

/// Slower links may be those of idle GPUs, which fall back to generation 1: 16 lanes of it carry 4 GB/s.
const SLOW: u64 = 7_000_000_000;

/// What a link upwards leads from: a device or a switch, with the slowest rate on the way so far.
struct Branch {
    id: String,
    rate: Option<Capacity>,
}

impl Builder {
    /// A CPU for every object that I/O devices are below, and the switches between them.
    pub(super) fn add_tree(&mut self, root: &Element) -> Result<(), ImportError> {
        let mut names = HashSet::new();
        root.children_named("object").try_for_each(|object| self.add_object(object, &mut names))
    }

    /// An object that is no I/O device. Depth is bounded by the XML reader.
    fn add_object(&mut self, object: &Element, names: &mut HashSet<String>) -> Result<(), ImportError> {
        let mut branches = Vec::new();
        for child in object.children_named("object") {
            match child.attribute("type") {
                Some("Bridge" | "PCIDev") => branches.extend(self.branches(child)?),
                _ => self.add_object(child, names)?,
            }
        }
        if branches.is_empty() {
            return Ok(());
        }
        let (mut id, label) = place(object);
        if !names.insert(id.clone()) {
            id = format!("{id}-{}", names.len());
            names.insert(id.clone());
        }
        self.add_node(&id, NodeKind::PLAIN_SWITCH, label);
        if let Some(index) = object.number("gp_index")? {
            self.end_of.insert(index, End::Node(id.clone()));
        }
        branches.into_iter().for_each(|branch| self.link(branch, &id));
        self.machine.cpus.push(id);
        Ok(())
    }

    /// What a bridge or a device has to link upwards: nothing, if no GPU or NIC is there.
    fn branches(&mut self, object: &Element) -> Result<Vec<Branch>, ImportError> {
        let rate = speed(object)?;
        if object.attribute("type") == Some("PCIDev") {
            let Some(id) = self.node_at.get(&devices::busid(object)?).cloned() else { return Ok(Vec::new()) };
            let is_slow = |rate: Capacity| rate.bytes_per_sec() < SLOW;
            self.slow_gpus += usize::from(rate.is_some_and(is_slow) && id.starts_with("gpu"));
            return Ok(vec![Branch { id, rate }]);
        }
        let mut branches = Vec::new();
        for child in object.children_named("object") {
            if matches!(child.attribute("type"), Some("Bridge" | "PCIDev")) {
                branches.extend(self.branches(child)?);
            }
        }
        // A host bridge is part of the CPU.
        if object.attribute("bridge_type").is_some_and(|kind| kind.starts_with('0')) {
            return Ok(branches);
        }
        if branches.len() < 2 {
            let slower = |branch: Branch| Branch { rate: branch.rate.into_iter().chain(rate).min(), ..branch };
            return Ok(branches.into_iter().map(slower).collect());
        }
        let busid = devices::busid(object)?;
        let id = format!("pci-{}", busid.replace(':', "."));
        self.add_node(&id, NodeKind::PLAIN_SWITCH, Some(busid));
        branches.into_iter().for_each(|branch| self.link(branch, &id));
        Ok(vec![Branch { id, rate }])
    }

    fn link(&mut self, branch: Branch, parent: &str) {
        self.silent_links += usize::from(branch.rate.is_none());
        self.add_both(&branch.id, parent, branch.rate.unwrap_or(rates::PCIE_4));
    }
}

/// Id and label of a CPU: by its NUMA node if it has one, else by what the object is.
fn place(object: &Element) -> (String, Option<String>) {
    let kind = object.attribute("type").unwrap_or_default();
    let is_node = |object: &&Element| object.attribute("type") == Some("NUMANode");
    let mut below = object.children_named("object").filter(is_node);
    let node = match (below.next(), below.next()) {
        _ if is_node(&object) => Some(object),
        (Some(node), None) => Some(node),
        _ => None,
    };
    let index = |object: &Element| object.attribute("os_index").and_then(|index| index.parse::<u32>().ok());
    if let Some(index) = node.and_then(index) {
        return (format!("cpu{index}"), Some(format!("NUMANode {index}")));
    }
    match (kind, index(object)) {
        ("Package" | "Socket", Some(index)) => (format!("package{index}"), None),
        _ => ("machine".to_owned(), None),
    }
}

/// The rate of the link above a device, which files give in GB/s with up to nine decimals; none for 0.
fn speed(object: &Element) -> Result<Option<Capacity>, XmlError> {
    let Some(text) = object.attribute("pci_link_speed") else { return Ok(None) };
    let unusable = || object.unusable("pci_link_speed", text, "GB/s such as 31.507692");
    if text.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        return Ok(None);
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(unusable());
    }
    format!("{text}GB/s").parse().map(Some).map_err(|_| unusable())
}
