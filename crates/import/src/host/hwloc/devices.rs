//! GPUs, NICs and NVSwitches among the PCI devices.

use super::{KIND, info};
use crate::error::XmlError;
use crate::error::{FileError, ImportError};
use crate::machine::{Port, is_display};
use crate::xml::Element;

/// Vendors whose displays are GPUs; boards have another for their consoles.
const GPU_VENDORS: [&str; 2] = ["10de", "1002"];
/// Programming interfaces whose devices compute.
const INTERFACES: [&str; 5] = ["CUDA", "OpenCL", "RSMI", "NVML", "LevelZero"];

/// What a PCI device is.
pub(super) enum Kind {
    Gpu,
    /// With its ports, at least one.
    Nic(Vec<NicPort>),
    NvSwitch,
    /// A display or network device that has no part, by its name.
    Other(String),
}

/// A port by the name and number of its device.
pub(super) struct NicPort {
    pub(super) device: Option<String>,
    guid: Option<u64>,
}

impl NicPort {
    pub(super) fn at(&self, node: &str) -> Port {
        Port { node: node.to_owned(), device: self.device.clone(), guid: self.guid, rate: None }
    }
}

/// A PCI device that matters.
pub(super) struct Device<'a> {
    pub(super) busid: String,
    pub(super) element: &'a Element,
    pub(super) kind: Kind,
}

impl Device<'_> {
    /// Its name, if it has no part in the machine.
    pub(super) fn left_out(&self) -> Option<&str> {
        match &self.kind {
            Kind::Other(name) => Some(name),
            _ => None,
        }
    }
}

/// All devices that matter, by bus id. O(elements log elements).
pub(super) fn find(root: &Element) -> Result<Vec<Device<'_>>, ImportError> {
    let major = root.attribute("version").and_then(|version| version.split('.').next()?.parse::<u64>().ok());
    let mut elements = Vec::new();
    pci_devices(root, &mut elements);
    // Later versions write bits where earlier ones write numbers.
    let (network, fabric) = if major.unwrap_or(1) >= 3 { (1 << 4, 1 << 5) } else { (2, 3) };
    let is_of = |object: &Element, kind: u64| match object.number("osdev_type") {
        Ok(Some(found)) => found == kind,
        _ => false,
    };
    let has = |element: &Element, kind| os_devices(element).any(|object| is_of(object, kind));
    let has_fabric = elements.iter().any(|element| has(element, fabric) || class(element) == "0207");
    let mut devices = Vec::new();
    for element in elements {
        let ports = |kind| {
            let of_kind = os_devices(element).filter(|object| is_of(object, kind));
            of_kind.map(port).collect::<Vec<_>>()
        };
        let kind = if element.attribute("subtype") == Some("NVSwitch")
            || class(element) == "0680" && vendor(element) == "10de"
        {
            Kind::NvSwitch
        } else if let Some(kind) = gpu(element) {
            kind
        } else if has(element, fabric) {
            Kind::Nic(ports(fabric))
        } else if class(element) == "0207" {
            Kind::Nic(vec![NicPort { device: None, guid: None }])
        } else if !has(element, network) {
            continue;
        } else if has_fabric {
            let names = ports(network).into_iter().filter_map(|port| port.device);
            Kind::Other(names.collect::<Vec<_>>().join(" "))
        } else {
            Kind::Nic(ports(network))
        };
        devices.push(Device { busid: busid(element)?, element, kind });
    }
    leave_out_displays(&mut devices);
    devices.sort_by(|a, b| a.busid.cmp(&b.busid));
    match devices.windows(2).find(|pair| pair[0].busid == pair[1].busid) {
        None => Ok(devices),
        Some(pair) => {
            let problem = format!("two devices have the bus id {}; give each its own", pair[1].busid);
            Err(FileError::at(KIND, pair[1].element.line, problem).of_field("object@pci_busid").into())
        }
    }
}

/// PCI devices in the order of the file. Depth is bounded by the XML reader.
fn pci_devices<'a>(object: &'a Element, found: &mut Vec<&'a Element>) {
    for child in object.children_named("object") {
        if child.attribute("type") == Some("PCIDev") {
            found.push(child);
        }
        pci_devices(child, found);
    }
}

fn os_devices(element: &Element) -> impl Iterator<Item = &Element> {
    element.children_named("object").filter(|object| object.attribute("type") == Some("OSDev"))
}

/// `0302` of `0302 [10de:20b0] [10de:134f] a1`.
fn class(element: &Element) -> &str {
    element.attribute("pci_type").unwrap_or_default().split_whitespace().next().unwrap_or_default()
}

/// `10de` of the same.
fn vendor(element: &Element) -> &str {
    ids(element).0
}

/// `10de` and `20b0` of the same.
fn ids(element: &Element) -> (&str, &str) {
    let ids = element.attribute("pci_type").and_then(|text| text.split('[').nth(1));
    let ids = ids.and_then(|ids| ids.split(']').next()).unwrap_or_default();
    ids.split_once(':').unwrap_or((ids, ""))
}

/// Whether a device is of the class of displays, and nothing says that it computes.
fn may_show(element: &Element) -> bool {
    matches!(class(element), "0300" | "0380") && !computes(element)
}

/// Whether a programming interface knows the device.
fn computes(element: &Element) -> bool {
    os_devices(element).any(|object| {
        let subtype = object.attribute("subtype").or_else(|| info(object, "CoProcType"));
        subtype.or_else(|| info(object, "Backend")).is_some_and(|subtype| INTERFACES.contains(&subtype))
    })
}

/// A job has GPUs of one vendor: displays of another than most have show pictures. O(devices).
fn leave_out_displays(devices: &mut [Device<'_>]) {
    let is_gpu = |device: &&Device<'_>| matches!(device.kind, Kind::Gpu);
    let gpus = |of: &str| devices.iter().filter(is_gpu).filter(|device| vendor(device.element) == of).count();
    let [first, second] = GPU_VENDORS.map(|of| (gpus(of), of));
    let fewer = match first.0.cmp(&second.0) {
        std::cmp::Ordering::Less => first.1,
        std::cmp::Ordering::Greater => second.1,
        std::cmp::Ordering::Equal => return,
    };
    for device in devices.iter_mut().filter(|device| vendor(device.element) == fewer) {
        if matches!(device.kind, Kind::Gpu) && may_show(device.element) {
            device.kind = Kind::Other(device.busid.clone());
        }
    }
}

/// Whether it is a GPU, or a display that is none; `None` for other devices.
fn gpu(element: &Element) -> Option<Kind> {
    let (vendor, device) = ids(element);
    match class(element) {
        _ if computes(element) => Some(Kind::Gpu),
        "0302" | "1200" => Some(Kind::Gpu),
        "0300" | "0380" if GPU_VENDORS.contains(&vendor) && !is_display(vendor, device) => Some(Kind::Gpu),
        "0300" | "0380" => Some(Kind::Other(element.attribute("pci_busid").unwrap_or_default().to_owned())),
        _ => None,
    }
}

fn port(object: &Element) -> NicPort {
    let number = info(object, "NodeGUID").or_else(|| info(object, "Address")).unwrap_or_default();
    let guid = u64::from_str_radix(&number.replace(':', ""), 16).ok().filter(|&guid| guid > 0);
    NicPort { device: object.attribute("name").map(str::to_owned), guid }
}

/// `0000:c1:00.0` in lower case.
pub(super) fn busid(element: &Element) -> Result<String, XmlError> {
    let given = element.required("pci_busid")?;
    let lower = given.to_ascii_lowercase();
    let is_usable = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    if lower.len() > 32 || !lower.bytes().all(is_usable) {
        return Err(element.unusable("pci_busid", given, "a PCI bus id such as 0000:c1:00.0"));
    }
    Ok(lower)
}
