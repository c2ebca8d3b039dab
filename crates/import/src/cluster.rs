//! Machines joined by a fabric: the network of the machines that are asked for.

mod attach;
mod layout;
mod levels;
mod model;
mod part;
mod rates;

use std::collections::{BTreeSet, HashMap};

use canopy_topology::{
    Attributes, DraftLink, DraftNode, FaultError, GroupError, HostsError, Latency, NodeKind, Topology, TopologyDraft,
    TopologyLimits,
};

use crate::dead_ends::dead_ends;
use crate::error::ImportError;
use crate::fabric::{Fabric, FabricHost};
use crate::machine::{Machine, Port, listed};
use crate::read::build;
use crate::report::Report;
use attach::{Joined, joined};
pub use layout::{Layout, numbered};
use levels::Uplinks;
pub use model::{ClusterCounts, ClusterModel};
pub use part::{machines_of, part_of};
pub use rates::{Rates, RatesError};

/// Errors of composing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ComposeError {
    #[error("the list of nodes is empty; name the machines of the job")]
    NoNodes,
    #[error("node `{node}` is not in the cluster, which has {known}")]
    UnknownNode { node: String, known: String },
    #[error("node `{node}` is of two kinds of machines; name it once")]
    TwoKinds { node: String },
    #[error("node `{node}` is of no kind of machine; give one for all, or name it with its kind")]
    NoKind { node: String },
    #[error("the machine of node `{node}` has no port; give a dump with its NICs, or add `nic` elements to the table")]
    NoPort { node: String },
    #[error("no port of node `{node}` is joined to a switch: the fabric names {named}, the machine has {found}")]
    NoneJoined { node: String, named: String, found: String },
    #[error("the rate of port {port} of node `{node}` is unknown; state it with `nic=400Gb/s`")]
    NoRate { node: String, port: String },
    #[error("layout `{found}`: {problem}")]
    Layout { found: String, problem: String },
    #[error("rank {rank} (`{node}`) is on no machine; state its `host` or `box`")]
    NoMachine { rank: u32, node: String },
    #[error(transparent)]
    Group(#[from] GroupError),
    #[error(transparent)]
    Puncture(#[from] FaultError),
    #[error(transparent)]
    Hosts(#[from] HostsError),
    #[error(transparent)]
    Import(#[from] ImportError),
}

/// Machines of one kind.
#[derive(Clone, Debug)]
pub struct MachineOf {
    /// What is in one; `None` for a machine that is one rank with one port.
    pub machine: Option<Machine>,
    /// Their names; `None` for all that no other kind names.
    pub hosts: Option<Vec<String>>,
}

/// Machines and what joins them.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Kinds of machines, at least one.
    pub machines: Vec<MachineOf>,
    /// What joins them.
    pub fabric: Fabric,
    /// Rates that files do not state.
    pub rates: Rates,
}

impl Cluster {
    /// Names of all machines, in the order of the fabric.
    pub fn nodes(&self) -> Vec<String> {
        self.fabric.nodes()
    }

    /// Whether every machine of the fabric that is of some kind can be joined, and how many GPUs they have together.
    ///
    /// # Errors
    /// As [`compose`] for one of them. No limit counts: a cluster may be larger than a network that is planned.
    ///
    /// O(fabric + machines · ports).
    pub fn check(&self) -> Result<(usize, Report), ComposeError> {
        let kinds = Kinds::of(&self.machines)?;
        let (known, unknown): (Vec<&FabricHost>, Vec<&FabricHost>) =
            self.fabric.hosts.iter().partition(|host| kinds.machine(&host.name).is_some());
        let parts = known.into_iter().map(|host| kinds.part(host, &self.rates)).collect::<Result<Vec<_>, _>>()?;
        if parts.is_empty() {
            return Err(ComposeError::NoNodes);
        }
        let mut report = self.report();
        tell(&parts, &self.fabric, &mut report);
        report.assumed.extend(kinds.uplinks(&self.fabric, &self.rates).assumed(0..self.fabric.links.len()));
        if !unknown.is_empty() {
            let names = listed(unknown.iter().map(|host| host.name.as_str()));
            report.left_out.push(format!("{} machines of no kind: {names}", unknown.len()));
        }
        Ok((parts.iter().map(|part| part.machine.gpu_count()).sum(), report.shortened()))
    }

    /// How the files were read.
    fn report(&self) -> Report {
        let mut report = self.fabric.report.clone();
        let machines = self.machines.iter().filter_map(|kind| kind.machine.as_ref());
        machines.for_each(|machine| report.append(machine.report.clone()));
        report
    }
}

/// Builds the network of the machines that take part, `nodes` in the order of their ranks, and nothing else.
///
/// Ranks are numbered machine by machine in the order of `nodes`, inside one by the ranks of its GPUs. Devices are named
/// `HOST.DEVICE`, such as `gpu001.gpu0` and `gpu001.nic-0000.18.00.0`; switches of the fabric keep their names.
///
/// * **Errors.** Names that the fabric or no kind of machine has, machines without a usable port, unknown rates, limits.
/// * **Cost.** O(fabric + devices of the machines) and that of building the topology.
pub fn compose(
    cluster: &Cluster,
    nodes: &[String],
    limits: &TopologyLimits,
    stop: &dyn Fn() -> bool,
) -> Result<(Topology, Report), ComposeError> {
    let Cluster { machines, fabric, rates } = cluster;
    if nodes.is_empty() {
        return Err(ComposeError::NoNodes);
    }
    let kinds = Kinds::of(machines)?;
    let hosts = located(fabric, nodes)?;
    let mut report = cluster.report();
    let parts = hosts.into_iter().map(|host| kinds.part(host, rates)).collect::<Result<Vec<_>, _>>()?;
    let devices: usize = parts.iter().map(|part| part.machine.draft.nodes.len()).sum();
    let links: usize = parts.iter().map(|part| part.machine.draft.links.len() + 2 * part.joined.cables.len()).sum();
    limits.check(devices, links).map_err(ImportError::from)?;
    let mut draft = TopologyDraft::default();
    parts.iter().for_each(|part| part.add_devices(&mut draft));
    add_fabric(fabric, &parts, rates, (&mut draft, &mut report), &kinds)?;
    parts.iter().for_each(|part| part.add_cables(fabric, &mut draft));
    tell(&parts, fabric, &mut report);
    Ok(build(draft, report, limits, stop)?)
}

/// Kinds of machines, pruned to what a network between machines needs, by name.
struct Kinds {
    machines: Vec<Machine>,
    by_host: HashMap<String, usize>,
    other: Option<usize>,
}

impl Kinds {
    fn of(machines: &[MachineOf]) -> Result<Self, ComposeError> {
        let mut kinds = Self { machines: Vec::new(), by_host: HashMap::new(), other: None };
        for (number, MachineOf { machine, hosts }) in machines.iter().enumerate() {
            let mut machine = machine.clone().unwrap_or_else(one_rank);
            machine.prune(true);
            kinds.machines.push(machine);
            match hosts {
                None => kinds.other = Some(number),
                Some(hosts) => {
                    for host in hosts {
                        if kinds.by_host.insert(host.clone(), number).is_some_and(|other| other != number) {
                            return Err(ComposeError::TwoKinds { node: host.clone() });
                        }
                    }
                }
            }
        }
        Ok(kinds)
    }

    fn machine(&self, node: &str) -> Option<&Machine> {
        let number = self.by_host.get(node).copied().or(self.other)?;
        self.machines.get(number)
    }

    /// The links of a fabric between the machines of all kinds, whether they take part or not.
    fn uplinks(&self, fabric: &Fabric, rates: &Rates) -> Uplinks {
        Uplinks::of(fabric, rates, |host| {
            let machine = self.machine(&host.name)?;
            Some(joined(&host.name, machine, host, rates).ok()?.cables)
        })
    }

    /// A machine with its cables.
    fn part<'a>(&'a self, host: &'a FabricHost, rates: &Rates) -> Result<Part<'a>, ComposeError> {
        let node = host.name.as_str();
        let machine = self.machine(node).ok_or_else(|| ComposeError::NoKind { node: node.to_owned() })?;
        Ok(Part { node, machine, joined: joined(node, machine, host, rates)? })
    }
}

/// A machine of which nothing is known: one rank, with a port.
fn one_rank() -> Machine {
    let mut machine = Machine::default();
    machine.draft.add_compute("rank");
    machine.ports.push(Port { node: "rank".to_owned(), device: None, guid: None, rate: None });
    machine
}

/// The machines of the fabric that have these names.
fn located<'a>(fabric: &'a Fabric, nodes: &[String]) -> Result<Vec<&'a FabricHost>, ComposeError> {
    let by_name: HashMap<&str, &FabricHost> = fabric.hosts.iter().map(|host| (host.name.as_str(), host)).collect();
    let find = |node: &String| {
        by_name.get(node.as_str()).copied().ok_or_else(|| ComposeError::UnknownNode {
            node: node.clone(),
            known: listed(fabric.hosts.iter().map(|host| host.name.as_str())),
        })
    };
    nodes.iter().map(find).collect()
}

/// A machine that takes part.
struct Part<'a> {
    node: &'a str,
    machine: &'a Machine,
    joined: Joined,
}

impl Part<'_> {
    /// What a device is called in the cluster.
    fn name(&self, device: &str) -> String {
        let node = self.node;
        if self.machine.draft.nodes.len() == 1 { node.to_owned() } else { format!("{node}.{device}") }
    }

    fn add_devices(&self, draft: &mut TopologyDraft) {
        let mut devices: Vec<&DraftNode> = self.machine.draft.nodes.iter().collect();
        devices.sort_by_key(|device| (device.kind != NodeKind::Compute, device.rank));
        for DraftNode { id, kind, attributes, .. } in devices {
            let (host, box_name) = (Some(self.node.to_owned()), Some(self.node.to_owned()));
            draft.add_node(self.name(id), *kind, Attributes { host, box_name, ..attributes.clone() });
        }
        draft.links.extend(self.machine.draft.links.iter().map(|link| DraftLink {
            from: self.name(&link.from),
            to: self.name(&link.to),
            ..link.clone()
        }));
    }

    fn add_cables(&self, fabric: &Fabric, draft: &mut TopologyDraft) {
        for cable in &self.joined.cables {
            let device = self.name(&self.machine.ports[cable.port].node);
            draft.add_both(&device, &fabric.switches[cable.switch].id, cable.rate, Latency::default());
        }
    }
}

/// Adds the switches that join the parts, and the cables between them.
fn add_fabric(
    fabric: &Fabric,
    parts: &[Part<'_>],
    rates: &Rates,
    (draft, report): (&mut TopologyDraft, &mut Report),
    kinds: &Kinds,
) -> Result<(), ComposeError> {
    let mut is_joined = vec![false; fabric.switches.len()];
    parts.iter().flat_map(|part| &part.joined.cables).for_each(|cable| is_joined[cable.switch] = true);
    let uplinks = kinds.uplinks(fabric, rates);
    let kept = kept(fabric, &is_joined);
    let is_used = |number: &usize| kept[fabric.links[*number].ends.0] && kept[fabric.links[*number].ends.1];
    report.assumed.extend(uplinks.assumed((0..fabric.links.len()).filter(is_used)));
    for (switch, _) in fabric.switches.iter().zip(&kept).filter(|(_, kept)| **kept) {
        let kind = NodeKind::Switch { multicast: switch.reduces, aggregate: switch.reduces };
        draft.add_node(switch.id.clone(), kind, Attributes { label: switch.label.clone(), ..Attributes::default() });
    }
    for (link, rate) in fabric.links.iter().zip(uplinks.rates) {
        let (a, b) = link.ends;
        if let (true, true, Some(capacity)) = (kept[a], kept[b], rate) {
            for (from, to) in [(a, b), (b, a)] {
                let (from, to) = (fabric.switches[from].id.clone(), fabric.switches[to].id.clone());
                let count = link.count.unwrap_or(1);
                draft.links.push(DraftLink { from, to, capacity, latency: link.latency, count });
            }
        }
    }
    Ok(())
}

/// Switches that are left once those go that join nothing: without a machine and with fewer than two neighbours.
fn kept(fabric: &Fabric, is_joined: &[bool]) -> Vec<bool> {
    let mut neighbours = vec![BTreeSet::new(); fabric.switches.len()];
    for link in &fabric.links {
        neighbours[link.ends.0].insert(link.ends.1);
        neighbours[link.ends.1].insert(link.ends.0);
    }
    let others: Vec<usize> = is_joined.iter().map(|&is_joined| 2 * usize::from(is_joined)).collect();
    let mut kept = vec![true; fabric.switches.len()];
    dead_ends(neighbours, &others).into_iter().for_each(|switch| kept[switch] = false);
    kept
}

/// Says what was composed, and what was not used.
fn tell(parts: &[Part<'_>], fabric: &Fabric, report: &mut Report) {
    let gpus: usize = parts.iter().map(|part| part.machine.gpu_count()).sum();
    let ports: usize = parts.iter().map(|part| part.joined.cables.len()).sum();
    report.understood.push(format!(
        "{} of {} machines of the fabric, {gpus} ranks, {ports} ports joined to switches",
        parts.len(),
        fabric.hosts.len()
    ));
    let unused = parts.iter().flat_map(|part| {
        let node = part.node;
        part.joined.unused.iter().map(move |&port| {
            let Port { node: device, device: name, .. } = &part.machine.ports[port];
            format!("{node}.{}", name.as_ref().unwrap_or(device))
        })
    });
    let unused: Vec<String> = unused.collect();
    if !unused.is_empty() {
        report.left_out.push(format!(
            "{} ports that the fabric does not name: {}",
            unused.len(),
            listed(unused.iter().map(String::as_str))
        ));
    }
    let missing: Vec<&str> = parts.iter().flat_map(|part| part.joined.missing.iter().map(String::as_str)).collect();
    if !missing.is_empty() {
        let listed = listed(missing.iter().copied());
        report.left_out.push(format!("{} cables to ports that their machine does not have: {listed}", missing.len()));
    }
}

#[cfg(test)]
mod tests;
