//! Which switches multicast and add up for NCCL: NVSwitches from NVLink 4 on (NVLS).
//!
//! A network says of a switch that it multicasts and aggregates where plans may count on it. That the switches of a machine
//! do so for a runtime is a property of its generation, which rates tell: plans do not change by it, but no claim about
//! what is possible may leave it out.

use std::collections::BTreeMap;

use canopy_topology::{NodeIndex, NodeKind, Topology, TopologyDraft, TopologyLimits};

use crate::nccl::machine::HOPPER_INSIDE;

/// Least rate of a link of a GPU to an NVSwitch, in MB/s: a PCI link is slower.
const LINK_MIN: u64 = 70_000;
/// Key of an expression that says that its NVSwitches do no such thing.
const REFUSED: &str = "nvls=false";
/// Label of the switch that stands for all of a machine in NCCL's dumps, which name no box.
const DUMPED: &str = "all NVSwitches";
const CAPABLE: NodeKind = NodeKind::Switch { multicast: true, aggregate: true };

/// Switches that multicast and add up for NCCL, by index: NVSwitches of a machine whose GPUs have NVLink 4 or later by
/// their rates, unless the expression of the network says `nvls=false`. O(links log links).
pub fn nvls_switches(topology: &Topology) -> Vec<NodeIndex> {
    if topology.name().is_some_and(|name| name.split([':', ',']).any(|key| key.trim() == REFUSED)) {
        return Vec::new();
    }
    let attributes = |node: NodeIndex| &topology.node(node).attributes;
    let is_switch = |node: NodeIndex| matches!(topology.node(node).kind, NodeKind::Switch { .. });
    let is_known = |switch: NodeIndex| {
        let known = attributes(switch);
        known.box_name.is_some() || known.label.as_deref() == Some(DUMPED)
    };
    // By switch that may be one: its ranks.
    let mut found: BTreeMap<NodeIndex, Vec<NodeIndex>> = BTreeMap::new();
    let mut others: Vec<NodeIndex> = Vec::new();
    for link in topology.links().iter().filter(|link| is_switch(link.to)) {
        let is_rank = link.from.number() < topology.rank_count();
        let is_near = is_known(link.to) && attributes(link.from).box_name == attributes(link.to).box_name;
        if is_rank && is_near && link.capacity.bytes_per_sec() / 1_000_000 >= LINK_MIN {
            found.entry(link.to).or_default().push(link.from);
        } else {
            others.push(link.to);
        }
    }
    others.iter().for_each(|switch| drop(found.remove(switch)));
    found.retain(|_, ranks| ranks.len() > 1);
    // What a rank has to all of them together.
    let mut inside: BTreeMap<NodeIndex, u64> = BTreeMap::new();
    for link in topology.links().iter().filter(|link| found.contains_key(&link.to)) {
        *inside.entry(link.from).or_default() += link.capacity.bytes_per_sec() / 1_000_000;
    }
    let is_new =
        |ranks: &[NodeIndex]| ranks.iter().any(|rank| inside.get(rank).is_some_and(|&all| all >= HOPPER_INSIDE));
    found.into_iter().filter(|(_, ranks)| is_new(ranks)).map(|(switch, _)| switch).collect()
}

/// The network as NCCL has it: with [`nvls_switches`] able to multicast and aggregate; `None` if no switch can do more
/// then. O(links log links).
pub fn with_nvls(topology: &Topology) -> Option<Topology> {
    let switches = nvls_switches(topology);
    let is_more = switches.iter().any(|&switch| topology.node(switch).kind != CAPABLE);
    if is_more { with_capable(topology, &switches) } else { None }
}

/// The network with all its switches able to multicast and aggregate, as CollNet has them. O(links log links).
pub fn with_collnet(topology: &Topology) -> Option<Topology> {
    let nodes = (0..).map(NodeIndex::new).zip(topology.nodes());
    let switches = nodes.filter(|(_, node)| matches!(node.kind, NodeKind::Switch { .. }));
    with_capable(topology, &switches.map(|(index, _)| index).collect::<Vec<_>>())
}

/// The same nodes and links with these switches, in rising order, able to do both.
fn with_capable(topology: &Topology, switches: &[NodeIndex]) -> Option<Topology> {
    let mut draft = TopologyDraft::default();
    for (index, node) in (0..).map(NodeIndex::new).zip(topology.nodes()) {
        let kind = if switches.binary_search(&index).is_ok() { CAPABLE } else { node.kind };
        draft.add_node(node.id.clone(), kind, node.attributes.clone());
    }
    for link in topology.links() {
        let id = |node: NodeIndex| topology.node(node).id.clone();
        draft.add_link(id(link.from), id(link.to), link.capacity, link.latency);
    }
    // It is as large as the topology that it comes from, whose limits are not known here.
    draft.build(&TopologyLimits::UNLIMITED).ok()
}
