//! Which port of a machine each cable of the fabric is on, and how fast.

use canopy_topology::Capacity;

use super::ComposeError;
use super::rates::Rates;
use crate::fabric::{Attachment, FabricHost, PortName};
use crate::machine::{Machine, Port, listed};

/// A cable between a port and a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cable {
    /// Position of the port in the machine, and of the switch in the fabric.
    pub(super) port: usize,
    pub(super) switch: usize,
    pub(super) rate: Capacity,
}

/// How a machine is joined to a fabric.
#[derive(Clone, Debug, Default)]
pub(super) struct Joined {
    pub(super) cables: Vec<Cable>,
    /// Ports without a cable.
    pub(super) unused: Vec<usize>,
    /// Ports that the fabric names and the machine does not have.
    pub(super) missing: Vec<String>,
}

/// Finds the port of every cable. Ports that no cable names are divided evenly among cables that name none.
///
/// O(ports · cables).
pub(super) fn joined(node: &str, machine: &Machine, host: &FabricHost, rates: &Rates) -> Result<Joined, ComposeError> {
    if machine.ports.is_empty() {
        return Err(ComposeError::NoPort { node: node.to_owned() });
    }
    let is_unknown = matches!(machine.ports.as_slice(), [Port { device: None, guid: None, .. }]);
    let mut joined = Joined::default();
    let mut is_used = vec![false; machine.ports.len()];
    let mut open: Vec<&Attachment> = Vec::new();
    for attachment in &host.attachments {
        let found = match &attachment.port {
            PortName::Others => {
                open.push(attachment);
                continue;
            }
            PortName::Place(place) => machine.ports.get(*place).map(|_| *place),
            // A machine of which nothing is known has one port, which stands for all.
            PortName::Device(..) if is_unknown => Some(0),
            PortName::Device(device, guid) => machine.ports.iter().position(|port| is_named(port, device, *guid)),
        };
        match found {
            Some(port) => {
                is_used[port] = true;
                joined.cables.push(cable(node, machine, port, attachment, rates)?);
            }
            None => joined.missing.push(format!("{node}.{}", words(&attachment.port))),
        }
    }
    let free = (0..machine.ports.len()).filter(|&port| !is_used[port]);
    match open.len() {
        0 => joined.unused = free.collect(),
        count => {
            for (place, port) in free.enumerate() {
                joined.cables.push(cable(node, machine, port, open[place % count], rates)?);
            }
        }
    }
    if joined.cables.is_empty() {
        return Err(ComposeError::NoneJoined {
            node: node.to_owned(),
            named: listed(
                host.attachments
                    .iter()
                    .map(|attachment| words(&attachment.port))
                    .collect::<Vec<_>>()
                    .iter()
                    .map(String::as_str),
            ),
            found: listed(machine.ports.iter().map(name)),
        });
    }
    Ok(joined)
}

/// Whether a port is meant: by its GUID if both know it, else by its name.
fn is_named(port: &Port, device: &str, guid: Option<u64>) -> bool {
    match (port.guid, guid) {
        (Some(a), Some(b)) if a == b => true,
        _ => port.device.as_deref() == Some(device),
    }
}

fn name(port: &Port) -> &str {
    port.device.as_deref().unwrap_or(&port.node)
}

fn words(port: &PortName) -> String {
    match port {
        PortName::Others => "any port".to_owned(),
        PortName::Device(device, _) => device.clone(),
        PortName::Place(place) => format!("port {place}"),
    }
}

/// The rate that is stated wins over that of the port; a cable that is slower than both counts.
fn cable(
    node: &str,
    machine: &Machine,
    port: usize,
    attachment: &Attachment,
    rates: &Rates,
) -> Result<Cable, ComposeError> {
    let of_port = rates.nic.or(machine.ports[port].rate);
    let rate = of_port
        .into_iter()
        .chain(attachment.rate)
        .min()
        .ok_or_else(|| ComposeError::NoRate { node: node.to_owned(), port: name(&machine.ports[port]).to_owned() })?;
    Ok(Cable { port, switch: attachment.switch, rate })
}
