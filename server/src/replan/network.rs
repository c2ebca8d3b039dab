//! A network as a request or a lease means it, a topology and where its ranks are: which faults are its own, and by which names.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use canopy_faults::{Device, Directory, Loss, MeaningError, Remaining, Target};
use canopy_planner::PlanKey;
use canopy_topology::{NodeIndex, Slot, same_host};

use super::bases::Base;
use super::fault_logs::{Count, FaultLogs};
use super::link_set::touched;
use super::placed::{Devices, Placed};
use super::scope::{Audience, Scope};

/// A topology, and where its ranks are.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) key: PlanKey,
    pub(crate) base: Arc<Base>,
    /// The placement, where it says more of devices than the topology.
    placed: Option<Arc<Placed>>,
    devices: Option<Arc<Devices>>,
    audience: Audience,
}

impl Network {
    /// A network as those see it for whom the reports of an audience count.
    pub(crate) fn new(key: PlanKey, base: Arc<Base>, placed: Option<&Arc<Placed>>, audience: Audience) -> Self {
        if let Some(own) = base.devices() {
            return Self { key, placed: None, devices: Some(Arc::clone(own)), base, audience };
        }
        let devices = placed.and_then(|placed| Devices::placed(base.topology(), placed));
        let placed = placed.filter(|_| devices.is_some()).map(Arc::clone);
        Self { key, base, placed, devices, audience }
    }

    /// Whether its ranks are placed on machines that the topology does not name.
    pub(crate) const fn is_placed(&self) -> bool {
        self.placed.is_some()
    }

    /// Where elements have their names that are no machine's.
    pub(crate) fn own_scope(&self) -> Scope {
        match (self.base.topology().cluster(), &self.placed) {
            (Some(cluster), _) => Scope::Cluster(cluster.to_owned()),
            (None, None) => Scope::Topology(self.key),
            (None, Some(placed)) => {
                Scope::Placement { base: self.key, placement: *placed.digest(), machines: placed.machines_shown() }
            }
        }
    }

    /// Its machines, where they are known.
    pub(crate) fn machines(&self) -> impl Iterator<Item = &str> {
        self.devices.iter().flat_map(|devices| devices.machines.keys()).map(String::as_str)
    }

    /// Whether elements of a scope may be its own.
    pub(crate) fn has(&self, scope: &Scope) -> bool {
        self.audience.hears(scope)
            && match scope.host() {
                Some(name) => self.machines().any(|machine| same_host(machine, name)),
                None => *scope.place() == self.own_scope(),
            }
    }

    /// What counts as broken or slow here, by the names of the topology: each element once, in a fixed order.
    pub(crate) fn count(&self, fault_logs: &FaultLogs) -> Count {
        let mut losses: BTreeMap<Target, Remaining> = BTreeMap::new();
        let mut since_ms = 0;
        let mut add = |Loss { target, remaining }: Loss| {
            let left = losses.entry(target).or_insert(remaining);
            *left = remaining.min(*left);
        };
        let directory = OnceCell::new();
        let directory = || directory.get_or_init(|| Directory::new(self.base.topology()));
        let own_scope = self.own_scope();
        // Not all that a cluster has is in each of its parts.
        let is_in_cluster = matches!(own_scope, Scope::Cluster(_));
        for count in fault_logs.counts(&own_scope, &self.audience) {
            since_ms = since_ms.max(count.since_ms);
            let is_here = |loss: &&Loss| !is_in_cluster || directory().canonical_loss(loss).is_ok();
            count.losses.iter().filter(is_here).cloned().for_each(&mut add);
        }
        if let Some(devices) = self.devices.as_ref().filter(|_| fault_logs.has_hosts()) {
            for (machine, nodes) in &devices.machines {
                for count in fault_logs.of_host(machine, &self.audience) {
                    since_ms = since_ms.max(count.since_ms);
                    count
                        .losses
                        .iter()
                        .flat_map(|loss| self.here(directory(), (machine, nodes), loss))
                        .for_each(&mut add);
                }
            }
        }
        let losses = losses.into_iter().map(|(target, remaining)| Loss { target, remaining });
        Count { losses: Arc::new(losses.collect()), since_ms }
    }

    /// Whether what counts here is on links, see [`LinkSet::into_bytes`](super::LinkSet::into_bytes).
    pub(crate) fn touches(&self, count: &Count, links: &[u8]) -> bool {
        touched(&self.base, &count.losses).meets_bytes(links)
    }

    /// Where an element is entered of which so much is left, and by which name.
    ///
    /// # Errors
    /// It means nothing here.
    pub(crate) fn entry(
        &self,
        directory: &Directory<'_>,
        target: &Target,
        remaining: Remaining,
    ) -> Result<(Scope, Target), MeaningError> {
        if let Some(entry) = self.of_machine(directory, target)? {
            return Ok(entry);
        }
        let target = directory.canonical_loss(&Loss { target: target.clone(), remaining })?.target;
        Ok(self.on_machine(&target).unwrap_or_else(|| (self.own_scope(), target)))
    }

    /// What a loss on one of its machines is by the names of the topology. What this network does not see of the machine is nothing.
    fn here(
        &self,
        directory: &Directory<'_>,
        (machine, nodes): (&str, &BTreeMap<u32, NodeIndex>),
        Loss { target, remaining }: &Loss,
    ) -> Vec<Loss> {
        let device = |device: &Device| match device {
            Device::Slot { index, .. } => nodes.get(index).map(|&node| self.device(node)),
            Device::Nic { name, .. } => Some(self.nic_here(machine, nodes, name)),
            Device::Node { .. } => None,
        };
        let targets = match target {
            Target::Gpu { device: of } => device(of).map(|device| Target::Gpu { device }).into_iter().collect(),
            Target::Nic { device: of, port } => {
                let card = device(of).map(|device| Target::Nic { device, port: port.clone() });
                // A port that this topology knows by another name, if at all: the card is not to be trusted.
                let whole = device(of).map(|device| Target::Nic { device, port: None });
                card.filter(|card| directory.canonical(card).is_ok()).or(whole).into_iter().collect()
            }
            Target::Host { .. } => self.machine(machine, nodes),
            _ => Vec::new(),
        };
        let loss = |target| directory.canonical_loss(&Loss { target, remaining: *remaining }).ok();
        targets.into_iter().filter_map(loss).collect()
    }

    /// A machine by the names of the topology: its host, the box that is on it, or else its ranks.
    fn machine(&self, name: &str, nodes: &BTreeMap<u32, NodeIndex>) -> Vec<Target> {
        if self.placed.is_none() {
            return vec![Target::Host { name: name.to_owned() }];
        }
        let first = nodes.values().next().map(|&node| self.base.topology().node(node));
        match first.and_then(|node| node.attributes.box_name.clone()) {
            Some(name) => vec![Target::Host { name }],
            None => nodes.values().map(|&node| Target::Gpu { device: self.device(node) }).collect(),
        }
    }

    /// A NIC of a machine, by the name that the topology has for the machine.
    fn nic_here(&self, machine: &str, nodes: &BTreeMap<u32, NodeIndex>, name: &str) -> Device {
        let first = nodes.values().next().map(|&node| self.base.topology().node(node));
        let box_name = first.and_then(|node| node.attributes.box_name.clone()).filter(|_| self.is_placed());
        Device::Nic { host: box_name.unwrap_or_else(|| machine.to_owned()), name: name.to_owned() }
    }

    /// Whether it has an element that is known by its machine, or a part of it.
    pub(crate) fn has_element(&self, machine: &str, target: &Target) -> bool {
        let loss = Loss { target: target.clone(), remaining: Remaining::GONE };
        let directory = OnceCell::new();
        let directory = || directory.get_or_init(|| Directory::new(self.base.topology()));
        let machines = self.devices.iter().flat_map(|devices| &devices.machines);
        let mut meant = machines.filter(|(name, _)| same_host(name, machine));
        meant.any(|(name, nodes)| !self.here(directory(), (name, nodes), &loss).is_empty())
    }

    fn device(&self, node: NodeIndex) -> Device {
        Device::Node { id: self.base.topology().node(node).id.clone() }
    }

    /// Of a target that names one of its machines: its name on that machine.
    fn of_machine(&self, directory: &Directory<'_>, target: &Target) -> Result<Option<(Scope, Target)>, MeaningError> {
        let (Target::Gpu { device: Device::Slot { host: name, .. } }
        | Target::Nic { device: Device::Slot { host: name, .. } | Device::Nic { host: name, .. }, .. }
        | Target::Host { name }) = target
        else {
            return Ok(None);
        };
        let Some((machine, nodes)) = self.devices.as_ref().and_then(|devices| devices.machine(name)) else {
            return Ok(None);
        };
        let here = |index: u32| match nodes.get(&index) {
            Some(&node) => Ok(self.device(node)),
            None => Err(MeaningError::NoSuchDevice { host: machine.to_owned(), index, devices: nodes.len() }),
        };
        // It must mean something here as well.
        match target {
            Target::Gpu { device: Device::Slot { index, .. } } => {
                here(*index)?;
            }
            Target::Nic { device: Device::Slot { index, .. }, port } => {
                directory.canonical(&Target::Nic { device: here(*index)?, port: port.clone() })?;
            }
            Target::Nic { device: Device::Nic { name, .. }, port } => {
                let device = self.nic_here(machine, nodes, name);
                directory.canonical(&Target::Nic { device, port: port.clone() })?;
            }
            _ => {}
        }
        let scope = Scope::Host(machine.to_owned());
        let target = scope.rehosted(target.clone());
        Ok(Some((scope, target)))
    }

    /// Of a target by the names of the topology that is a machine or on one: its name there.
    fn on_machine(&self, target: &Target) -> Option<(Scope, Target)> {
        let devices = self.devices.as_ref()?;
        let slot = |id: &str| devices.slots.get(&self.base.node(id)?);
        let device = |slot: &Slot| Device::Slot { host: slot.node.clone(), index: slot.device };
        let (host, target) = match target {
            Target::Gpu { device: Device::Node { id } } => {
                let slot = slot(id)?;
                (slot.node.clone(), Target::Gpu { device: device(slot) })
            }
            Target::Nic { device: Device::Node { id }, port } => {
                let slot = slot(id)?;
                (slot.node.clone(), Target::Nic { device: device(slot), port: port.clone() })
            }
            Target::Nic { device: Device::Nic { host: name, name: nic }, port } => {
                let host = self.host_of(devices, name)?.to_owned();
                let device = Device::Nic { host: host.clone(), name: nic.clone() };
                (host, Target::Nic { device, port: port.clone() })
            }
            Target::Host { name } => {
                let host = self.host_of(devices, name)?;
                (host.to_owned(), Target::Host { name: host.to_owned() })
            }
            _ => return None,
        };
        Some((Scope::Host(host), target))
    }
}

impl Network {
    /// The machine of this name, or the one that all devices of the box of this name are on.
    fn host_of<'a>(&self, devices: &'a Devices, name: &str) -> Option<&'a str> {
        if let Some((host, _)) = devices.machines.get_key_value(name) {
            return Some(host);
        }
        let is_in_box = |node: NodeIndex| self.base.topology().node(node).attributes.box_name.as_deref() == Some(name);
        let mut hosts = devices.machines.iter().filter(|(_, nodes)| nodes.values().any(|&node| is_in_box(node)));
        let (host, _) = hosts.next()?;
        hosts.next().is_none().then_some(host)
    }
}

/// The machine of an element that no topology is named for; none: it is a machine by no name, or a device by the id of a node.
pub(crate) fn entry_by_host(target: &Target) -> Option<Scope> {
    match target {
        Target::Gpu { device: Device::Slot { host, .. } }
        | Target::Nic { device: Device::Slot { host, .. } | Device::Nic { host, .. }, .. }
        | Target::Host { name: host } => Some(Scope::Host(host.clone())),
        _ => None,
    }
}
