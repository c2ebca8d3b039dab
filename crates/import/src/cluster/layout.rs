//! Fabrics for people who have no file of theirs: `star`, `rail`, `leaf-spine:hosts=4,spines=2`.

use canopy_topology::{Latency, shorten};

use super::ComposeError;
use crate::fabric::{Attachment, Fabric, FabricHost, FabricLink, FabricSwitch, PortName};

/// Most machines that are replicated.
const BOXES_MAX: usize = 65_536;

/// A fabric by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All ports on one switch.
    Star,
    /// Port i of every machine on switch `rail<i>`; with a spine, one switch joins the rails.
    Rail {
        /// Whether there is one.
        has_spine: bool,
    },
    /// All ports of so many machines on each leaf, each leaf on all spines.
    LeafSpine {
        /// Machines per leaf, ≥ 1.
        hosts: usize,
        /// Spines, ≥ 1.
        spines: usize,
    },
}

impl std::str::FromStr for Layout {
    type Err = ComposeError;

    /// Reads `star`, `rail`, `rail:spine` or `leaf-spine:hosts=4,spines=2`.
    fn from_str(text: &str) -> Result<Self, ComposeError> {
        let refused = |problem: &str| ComposeError::Layout { found: shorten(text), problem: problem.to_owned() };
        let known = "use star, rail, rail:spine or leaf-spine:hosts=4,spines=2";
        let (name, arguments) = text.split_once(':').unwrap_or((text, ""));
        match (name, arguments) {
            ("star", "") => Ok(Self::Star),
            ("rail", "") => Ok(Self::Rail { has_spine: false }),
            ("rail", "spine") => Ok(Self::Rail { has_spine: true }),
            ("leaf-spine", arguments) => {
                let (mut hosts, mut spines) = (None, None);
                for item in arguments.split(',').filter(|item| !item.is_empty()) {
                    let (key, value) = item.split_once('=').ok_or_else(|| refused(known))?;
                    let place = match key {
                        "hosts" => &mut hosts,
                        "spines" => &mut spines,
                        _ => return Err(refused("the keys of leaf-spine are hosts and spines")),
                    };
                    let number = value.parse().ok().filter(|number| (1..=BOXES_MAX).contains(number));
                    *place = Some(number.ok_or_else(|| refused("expected a whole number from 1 to 65536"))?);
                }
                let hosts = hosts.ok_or_else(|| refused("state the machines per leaf: leaf-spine:hosts=4,spines=2"))?;
                Ok(Self::LeafSpine { hosts, spines: spines.unwrap_or(1) })
            }
            _ => Err(refused(known)),
        }
    }
}

impl Layout {
    /// The fabric that joins `machines`, in their order along the leaves; `ports` is the number of ports of each.
    ///
    /// # Errors
    /// No machine or more than 65,536 of them.
    pub fn fabric(self, ports: usize, machines: Vec<String>) -> Result<Fabric, ComposeError> {
        let boxes = machines.len();
        require_count(boxes)?;
        let mut fabric = Fabric::default();
        let mut add = |id: String| fabric.switches.push(FabricSwitch { id, ..FabricSwitch::default() });
        let (rails, leaves, spines) = match self {
            Self::Star => (0, 0, 1),
            Self::Rail { has_spine } => (ports, 0, usize::from(has_spine)),
            Self::LeafSpine { hosts, spines } => (0, boxes.div_ceil(hosts), spines),
        };
        (0..rails).for_each(|rail| add(format!("rail{rail}")));
        (0..leaves).for_each(|leaf| add(format!("leaf{leaf}")));
        (0..spines).for_each(|spine| add(if spines == 1 { "spine".to_owned() } else { format!("spine{spine}") }));
        let lower = rails + leaves;
        if lower > 0 {
            let pairs = (0..lower).flat_map(|lower_end| (0..spines).map(move |spine| (lower_end, lower + spine)));
            let link = |ends| FabricLink { ends, rate: None, count: None, latency: Latency::default() };
            fabric.links.extend(pairs.map(link));
        }
        let attachment = |switch, port| Attachment { switch, port, rate: None };
        for (host, name) in machines.into_iter().enumerate() {
            let attachments = match self {
                Self::Star => vec![attachment(0, PortName::Others)],
                Self::Rail { .. } => (0..rails).map(|rail| attachment(rail, PortName::Place(rail))).collect(),
                Self::LeafSpine { hosts, .. } => vec![attachment(host / hosts, PortName::Others)],
            };
            fabric.hosts.push(FabricHost { name, attachments });
        }
        Ok(fabric)
    }
}

/// The names `node1`, `node2` and so on.
///
/// # Errors
/// No machine or more than 65,536 of them.
pub fn numbered(machines: usize) -> Result<Vec<String>, ComposeError> {
    require_count(machines)?;
    Ok((1..=machines).map(|number| format!("node{number}")).collect())
}

fn require_count(machines: usize) -> Result<(), ComposeError> {
    if (1..=BOXES_MAX).contains(&machines) {
        return Ok(());
    }
    let (found, problem) = (format!("{machines} machines"), format!("expected 1 to {BOXES_MAX}"));
    Err(ComposeError::Layout { found, problem })
}
