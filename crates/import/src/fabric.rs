//! What joins machines: switches, cables, and which machine is where.

use canopy_topology::{Attributes, Capacity, DraftLink, Latency, NodeKind, TopologyDraft};

use crate::report::Report;

/// A network between machines whose insides it does not know.
#[derive(Clone, Debug, Default)]
pub struct Fabric {
    /// Switches, in the order of the file.
    pub switches: Vec<FabricSwitch>,
    /// Cables between switches, each in both directions.
    pub links: Vec<FabricLink>,
    /// Machines, in the order of the file.
    pub hosts: Vec<FabricHost>,
    /// What was understood, assumed and left out.
    pub report: Report,
}

/// A switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FabricSwitch {
    /// Unique among switches; anything but white space and `: > = ,`.
    pub id: String,
    /// What else it is called.
    pub label: Option<String>,
    /// Whether it can multicast and reduce.
    pub reduces: bool,
}

/// Cables between two switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricLink {
    /// Positions of the switches.
    pub ends: (usize, usize),
    /// Rate of one in each direction; `None` if the file does not say.
    pub rate: Option<Capacity>,
    /// Number of them, if the file says; ≥ 1.
    pub count: Option<u64>,
    /// Latency of each.
    pub latency: Latency,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FabricHost {
    /// Its name.
    pub name: String,
    /// Where it is joined.
    pub attachments: Vec<Attachment>,
}

/// A cable from a machine to a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Position of the switch.
    pub switch: usize,
    /// Which port of the machine it leaves from.
    pub port: PortName,
    /// Rate in each direction; `None` if the file does not say.
    pub rate: Option<Capacity>,
}

/// A port of a machine as a fabric calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortName {
    /// Every port that no other attachment of the machine names.
    Others,
    /// By the name of its device, such as `mlx5_0`, and its GUID, where that is known.
    Device(String, Option<u64>),
    /// By its place among the ports of the machine, from 0.
    Place(usize),
}

impl Fabric {
    /// Names of its machines, in their order.
    pub fn nodes(&self) -> Vec<String> {
        self.hosts.iter().map(|host| host.name.clone()).collect()
    }

    /// The network of its machines, each a rank, with the rates of the file; a sentence if it does not say all of them.
    pub(crate) fn alone(self) -> Result<(TopologyDraft, Report), String> {
        let unknown = |what: &str| {
            format!(
                "the file does not say how fast {what} is; name the machines and the rates: `canopy network compose \
                 --fabric FILE --nodes HOSTS --rates nic=400Gb/s,leaf-spine=400Gb/s`"
            )
        };
        let Self { switches, links, hosts, report } = self;
        let mut draft = TopologyDraft::default();
        hosts.iter().for_each(|host| draft.add_compute(host.name.clone()));
        for FabricSwitch { id, label, reduces } in &switches {
            let kind = NodeKind::Switch { multicast: *reduces, aggregate: *reduces };
            draft.add_node(id.clone(), kind, Attributes { label: label.clone(), ..Attributes::default() });
        }
        for host in &hosts {
            for attachment in &host.attachments {
                let rate = attachment.rate.ok_or_else(|| unknown(&format!("the link of `{}`", host.name)))?;
                draft.add_both(&host.name, &switches[attachment.switch].id, rate, Latency::default());
            }
        }
        for FabricLink { ends, rate, count, latency } in &links {
            let (from, to) = (&switches[ends.0].id, &switches[ends.1].id);
            let capacity = rate.ok_or_else(|| unknown(&format!("a link between `{from}` and `{to}`")))?;
            let count = count.unwrap_or(1);
            for (from, to) in [(from, to), (to, from)] {
                let (from, to) = (from.clone(), to.clone());
                draft.links.push(DraftLink { from, to, capacity, latency: *latency, count });
            }
        }
        Ok((draft, report))
    }
}
