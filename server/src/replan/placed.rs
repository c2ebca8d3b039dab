//! Where ranks are: the machines and devices of a placement, or of a topology that names them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use canopy_planner::PlanKey;
use canopy_topology::{NodeIndex, Rank, Slot, Topology, devices, names_hosts, same_host};

/// Most machines of a placement that are named.
const MACHINES_SHOWN: usize = 4;

/// Where a request places ranks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Ranks of the topology; empty: all.
    pub(super) ranks: Vec<Rank>,
    pub(super) slots: Vec<Slot>,
    /// Tells it from other placements.
    digest: PlanKey,
}

impl Placed {
    /// The ranks that a request lists, none for all, and where they are.
    pub(crate) fn new((ranks, slots): (Vec<u32>, Vec<Slot>)) -> Arc<Self> {
        let mut hasher = blake3::Hasher::new_derive_key("canopy placement 1");
        hasher.update(&(ranks.len() as u64).to_le_bytes());
        for rank in &ranks {
            hasher.update(&rank.to_le_bytes());
        }
        for Slot { node, device } in &slots {
            hasher.update(&(node.len() as u64).to_le_bytes()).update(node.as_bytes()).update(&device.to_le_bytes());
        }
        let digest = PlanKey::from_bytes(*hasher.finalize().as_bytes());
        Arc::new(Self { ranks: ranks.into_iter().map(Rank::new).collect(), slots, digest })
    }

    /// Tells it from other placements.
    pub(crate) const fn digest(&self) -> &PlanKey {
        &self.digest
    }

    /// Names of machines, in the order in which they first come.
    pub(crate) fn machines(&self) -> impl Iterator<Item = &str> {
        let mut last = None;
        self.slots.iter().map(|slot| slot.node.as_str()).filter(move |&name| last.replace(name) != Some(name))
    }

    /// The first of them in a row.
    pub(super) fn machines_shown(&self) -> String {
        let mut names: Vec<&str> = self.machines().collect();
        names.sort_unstable();
        names.dedup();
        let more = names.len().saturating_sub(MACHINES_SHOWN);
        names.truncate(MACHINES_SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", names.join(","))
    }
}

/// Which devices of which machines nodes are.
#[derive(Debug)]
pub(crate) struct Devices {
    /// By machine, by the number of the device there.
    pub(super) machines: BTreeMap<String, BTreeMap<u32, NodeIndex>>,
    pub(super) slots: HashMap<NodeIndex, Slot>,
}

impl Devices {
    /// Those of a topology that names its hosts.
    pub(super) fn own(topology: &Topology) -> Option<Arc<Self>> {
        names_hosts(topology).then(|| devices(topology, None, None).ok().flatten().map(Self::new)).flatten()
    }

    /// Those of a topology whose ranks are placed on machines that it does not name.
    pub(super) fn placed(topology: &Topology, placed: &Placed) -> Option<Arc<Self>> {
        let listed = Some(placed.ranks.as_slice()).filter(|ranks| !ranks.is_empty());
        devices(topology, listed, Some(&placed.slots)).ok().flatten().map(Self::new)
    }

    fn new(known: Vec<(Rank, Slot)>) -> Arc<Self> {
        let mut machines: BTreeMap<String, BTreeMap<u32, NodeIndex>> = BTreeMap::new();
        for (rank, Slot { node, device }) in &known {
            machines.entry(node.clone()).or_default().insert(*device, rank.node());
        }
        Arc::new(Self { machines, slots: known.into_iter().map(|(rank, slot)| (rank.node(), slot)).collect() })
    }

    /// Names of machines.
    pub(super) fn machines(&self) -> impl Iterator<Item = &str> {
        self.machines.keys().map(String::as_str)
    }

    /// The one machine that a name means, whole or short.
    pub(super) fn machine(&self, name: &str) -> Option<(&str, &BTreeMap<u32, NodeIndex>)> {
        if let Some((name, nodes)) = self.machines.get_key_value(name) {
            return Some((name, nodes));
        }
        let mut found = self.machines.iter().filter(|(known, _)| same_host(known, name));
        let (known, nodes) = found.next()?;
        found.next().is_none().then_some((known.as_str(), nodes))
    }
}
