//! Names that a network's nodes have in their labels: PCI addresses and serial numbers, which monitors call devices by.

use std::collections::BTreeMap;

use canopy_topology::{NodeIndex, Topology};

use crate::feeds::Aliases;
use crate::resolve::Directory;
use crate::target::Target;

/// How serial numbers of GPUs and of their parts begin.
const SERIALS: [&str; 2] = ["GPU-", "MIG-"];

impl Aliases {
    /// These and the names in the labels of a network's nodes: words that are PCI addresses or names of NICs, on the node's host
    /// or box, and serial numbers such as `GPU-4a1c…`, anywhere. A network without machines is one machine.
    ///
    /// What is an alias already stays what it is; what would be two nodes is neither. O(bytes of labels · log names).
    #[must_use]
    pub fn with_labels(mut self, topology: &Topology) -> Self {
        let mut found: BTreeMap<String, Option<Target>> = BTreeMap::new();
        let directory = Directory::new(topology);
        for (index, node) in (0..).map(NodeIndex::new).zip(topology.nodes()) {
            let attributes = &node.attributes;
            let machine = attributes.host.as_deref().or(attributes.box_name.as_deref());
            let is_nic = topology.rank_of(index).is_none() && directory.card_at(index).is_some();
            let target = if is_nic {
                Target::Nic { device: directory.card_device(index), port: None }
            } else {
                Target::of_node(node)
            };
            let mut name = |name: String| {
                let known = found.entry(name).or_insert_with(|| Some(target.clone()));
                if known.as_ref() != Some(&target) {
                    *known = None;
                }
            };
            for word in attributes.label.as_deref().unwrap_or_default().split_whitespace() {
                match (pci_address(word), machine) {
                    (Some(address), Some(machine)) => {
                        short_forms(machine).for_each(|machine| name(format!("{machine}/{address}")));
                    }
                    (Some(address), None) => name(address),
                    (None, Some(machine)) if is_nic => {
                        short_forms(machine).for_each(|machine| name(format!("{machine}/{word}")));
                    }
                    (None, _) if SERIALS.iter().any(|start| word.starts_with(start)) => name(word.to_owned()),
                    (None, _) => {}
                }
            }
        }
        for (name, target) in found {
            if let Some(target) = target {
                self.0.entry(name).or_insert(target);
            }
        }
        self
    }
}

/// A machine's name and those that it has without its last parts: `n7.row.site`, `n7.row`, `n7`.
pub(super) fn short_forms(machine: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(machine), |name| name.rsplit_once('.').map(|(short, _)| short))
}

/// A name of a device, alone or behind that of its machine, with a PCI address in its one form.
pub(super) fn normal(name: &str) -> String {
    match name.rsplit_once('/') {
        None => pci_address(name).unwrap_or_else(|| name.to_owned()),
        Some((machine, device)) => pci_address(device).map_or_else(|| name.to_owned(), |it| format!("{machine}/{it}")),
    }
}

/// `0000:3b:00.0` of what Linux, NVML (`00000000:3B:00.0`) and kernel messages (`0000:3b:00`) write.
fn pci_address(text: &str) -> Option<String> {
    let hex = |digits: &str, digits_max: usize| {
        let is_hex = (1..=digits_max).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hex { u32::from_str_radix(digits, 16).ok() } else { None }
    };
    let (place, function) = text.split_once('.').unwrap_or((text, "0"));
    let (bus, device) = place.rsplit_once(':')?;
    let (domain, bus) = bus.split_once(':').unwrap_or(("0", bus));
    let (domain, bus, device) = (hex(domain, 8)?, hex(bus, 2)?, hex(device, 2)?);
    Some(format!("{domain:04x}:{bus:02x}:{device:02x}.{:x}", hex(function, 1)?))
}

#[cfg(test)]
mod tests {
    use canopy_topology::{TopologyLimits, read_document};

    use super::*;

    #[test]
    fn addresses_have_one_form() {
        for text in ["0000:3b:00.0", "00000000:3B:00.0", "3b:00.0", "0000:3b:00", "0:3b:0"] {
            assert_eq!(pci_address(text).as_deref(), Some("0000:3b:00.0"), "{text}");
        }
        assert_eq!(pci_address("10001:02:1f.7").as_deref(), Some("10001:02:1f.7"));
        for text in ["", "3b", "3b:00.x", "0:0:0:0", "+1:00", "3b:00.", "3b:00.10", "000000000:3b:00.0", "3bé:00"] {
            assert_eq!(pci_address(text), None, "{text}");
        }
    }

    #[test]
    fn labels_name_nodes_on_their_machines() {
        let yaml = "canopy: 1\nnodes:\n\
            - {id: a, host: n1.east, label: \"rank 3 0000:3B:00.0 GPU-1\"}\n- {id: b, host: n1.east, label: \"0000:3c:00.0 GPU-2\"}\n\
            - {id: c, host: n2.east, label: \"0000:3b:00.0 GPU-2\"}\n- {id: s, kind: switch, host: n2.east, label: \"c0:00\"}\n\
            links:\n- {from: a, to: s, bandwidth: 1GB/s, both: true}\n- {from: b, to: s, bandwidth: 1GB/s, both: true}\n\
            - {from: c, to: s, bandwidth: 1GB/s, both: true}\n";
        let topology = read_document(yaml.as_bytes(), None, &TopologyLimits::STANDARD).unwrap().topology;
        let aliases = Aliases::read("n1/0000:3c:00.0 gpu:mine").unwrap().with_labels(&topology);
        let named = |machine, name| aliases.device(machine, name).map(ToString::to_string);
        for (machine, name, target) in [
            ("n1", "0000:3b:00", Some("gpu:a")),
            ("n1.east", "3B:00.0", Some("gpu:a")),
            ("n1.east.site", "3B:00.0", Some("gpu:a")),
            ("n1", "0000:3c:00.0", Some("gpu:mine")),
            ("n2", "0000:3b:00.0", Some("gpu:c")),
            ("n2", "0000:c0:00.0", Some("switch:s")),
            ("n3", "0000:3b:00.0", None),
            ("n3", "GPU-1", Some("gpu:a")),
            ("n1", "GPU-2", None),
            ("n1", "3", None),
        ] {
            assert_eq!(named(machine, name).as_deref(), target, "{machine}/{name}");
        }
    }

    /// As NCCL's files are imported: they say one host's addresses.
    #[test]
    fn devices_of_nccl_files_are_known_by_their_addresses() {
        let yaml = "canopy: 1\nnodes: [{id: gpu0, label: \"0000:3b:00.0\"}, {id: gpu1, label: \"0000:3c:00.0\"}]\n\
            links: [{from: gpu0, to: gpu1, bandwidth: 1GB/s, both: true}]\n";
        let topology = read_document(yaml.as_bytes(), None, &TopologyLimits::STANDARD).unwrap().topology;
        let aliases = Aliases::default().with_labels(&topology);
        assert_eq!(aliases.device("any", "0000:3c:00").map(ToString::to_string).as_deref(), Some("gpu:gpu1"));
    }
}
