//! One machine: its GPUs, what joins them, and the ports that lead out.

mod prune;
mod wires;

use canopy_topology::{Capacity, NodeKind, TopologyDraft};

use crate::report::Report;
pub(crate) use wires::{is_display, is_virtual};

/// A machine as a dump or a table describes it.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Devices and the links between them. GPUs are compute nodes, in rank order. What leads only to ports is there, too.
    pub draft: TopologyDraft,
    /// Where a fabric can join it.
    pub ports: Vec<Port>,
    /// Ids of nodes that are CPUs: they go unless something needs them.
    pub cpus: Vec<String>,
    /// What was understood, assumed and left out.
    pub report: Report,
}

/// A port of a NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Id of the node of the draft that it is on: the NIC, or the GPU itself.
    pub node: String,
    /// What the machine calls it, such as `mlx5_0`.
    pub device: Option<String>,
    /// Its GUID in an InfiniBand network, or the MAC address as a number.
    pub guid: Option<u64>,
    /// Its rate in each direction; `None` if the file does not say.
    pub rate: Option<Capacity>,
}

/// Most ids a sentence lists.
const SHOWN_MAX: usize = 12;

impl Machine {
    /// The network of its GPUs alone, with a sentence about ports that lead nowhere then, which is what every machine has.
    pub(crate) fn alone(mut self) -> (TopologyDraft, Report) {
        self.prune(false);
        let Self { draft, ports, mut report, .. } = self;
        if !ports.is_empty() {
            let names = ports.iter().map(|port| port.device.as_ref().unwrap_or(&port.node).as_str());
            report.understood.push(format!(
                "ports that lead out of the machine, to no other that the file knows: {}; join machines with `canopy \
                 network replicate` or `compose`",
                listed(names)
            ));
        }
        (draft, report)
    }

    /// GPUs of the machine.
    pub fn gpu_count(&self) -> usize {
        self.draft.nodes.iter().filter(|node| node.kind == NodeKind::Compute).count()
    }
}

/// The first of some names, and how many more there are.
pub(crate) fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(SHOWN_MAX);
    let mut shown = names.take(SHOWN_MAX).collect::<Vec<_>>().join(" ");
    if more > 0 {
        shown += &format!(" and {more} more");
    }
    shown
}
