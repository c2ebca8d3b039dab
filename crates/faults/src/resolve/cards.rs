//! NICs of machines: which nodes they are, what they are called, and which one a GPU uses.
//!
//! On some networks a NIC is no node of its own: the links that leave the machine begin at the GPU. On others, such as
//! those read from a dump of NCCL, it is a switch behind PCI switches, and several GPUs may use it.

use std::collections::{BTreeMap, BTreeSet};

use canopy_topology::{NodeIndex, NodeKind};

use crate::resolve::near::{beside, near};
use crate::resolve::{Directory, MeaningError};
use crate::target::{Device, Target};
use crate::text::shown;

/// A NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Card {
    /// The node that its links begin at: the NIC, or the GPU itself.
    pub(crate) node: NodeIndex,
    /// The far ends of its links, rising, at least one.
    pub(crate) ports: Vec<NodeIndex>,
}

impl Directory<'_> {
    /// The far ends of a device's links that leave its machine, rising; of one without a machine, of all its links. A switch
    /// is a NIC if it is on a machine and leads out of it, but to no GPU: else it joins machines itself.
    fn outside(&self, node: NodeIndex) -> Vec<NodeIndex> {
        let topology = self.topology();
        let is_switch = |node: NodeIndex| matches!(topology.node(node).kind, NodeKind::Switch { .. });
        let far_ends = self.neighbours(node).filter(|&far_end| !topology.share_machine(node, far_end));
        let ports: Vec<NodeIndex> = far_ends.collect();
        let is_card = !is_switch(node) || self.has_machine(node) && ports.iter().all(|&port| is_switch(port));
        if is_card { ports } else { Vec::new() }
    }

    /// The NIC that a device is or uses.
    pub(super) fn card(&self, device: &Device) -> Result<Card, MeaningError> {
        let node = match device {
            Device::Nic { host, name } => self.card_named(host, name)?,
            Device::Slot { .. } => self.device(device)?,
            Device::Node { id } => self.node(id)?,
        };
        let ports = self.outside(node);
        if !ports.is_empty() {
            return Ok(Card { node, ports });
        }
        let at = self.topology().node(node);
        if matches!(at.kind, NodeKind::Switch { .. }) {
            return Err(MeaningError::NotADevice { id: at.id.clone() });
        }
        let node = self.nearest_card(node).ok_or_else(|| MeaningError::NoCard { id: at.id.clone() })?;
        Ok(Card { node, ports: self.outside(node) })
    }

    /// All NICs of machines, in the order of their nodes.
    pub(crate) fn cards(&self) -> impl Iterator<Item = Card> {
        let count = u32::try_from(self.topology().nodes().len()).unwrap_or(u32::MAX);
        (0..count).filter_map(|node| self.card_at(NodeIndex::new(node)))
    }

    /// The NIC that a node is or has, if it is on a machine and links of it leave that.
    pub(crate) fn card_at(&self, node: NodeIndex) -> Option<Card> {
        if self.topology().node(node).kind == NodeKind::Forwarder || !self.has_machine(node) {
            return None;
        }
        let ports = self.outside(node);
        (!ports.is_empty()).then_some(Card { node, ports })
    }

    /// The name of a NIC: its own on its machine if no other NIC there has it, else the id of its node.
    pub(crate) fn card_device(&self, node: NodeIndex) -> Device {
        let at = self.topology().node(node);
        let by_id = || Device::Node { id: at.id.clone() };
        if self.topology().rank_of(node).is_some() {
            return by_id();
        }
        let Some(host) = at.attributes.host.as_ref().or(at.attributes.box_name.as_ref()) else { return by_id() };
        let usable = |name: &&String| {
            let device = Device::Nic { host: host.clone(), name: (*name).clone() };
            let is_valid = Target::Nic { device, port: None }.checked().is_ok();
            is_valid && self.card_named(host, name.as_str()) == Ok(node)
        };
        let names = self.names_of(node);
        match names.iter().find(usable) {
            Some(name) => Device::Nic { host: host.clone(), name: name.clone() },
            None => by_id(),
        }
    }

    /// Names of a NIC on its machine: the words of its label that are no address.
    pub(crate) fn names_of(&self, node: NodeIndex) -> Vec<String> {
        let label = self.topology().node(node).attributes.label.as_deref().unwrap_or_default();
        label.split_whitespace().filter(|word| !word.contains(':')).map(str::to_owned).collect()
    }

    /// The NIC of a machine that has this name, or whose node has this id, with or without the name of the machine.
    fn card_named(&self, host: &str, name: &str) -> Result<NodeIndex, MeaningError> {
        let (machine, nodes) = self.machine(host)?;
        let cards: Vec<NodeIndex> = nodes.iter().copied().filter(|&node| !self.outside(node).is_empty()).collect();
        let is_named = |node: &NodeIndex| {
            let id = self.topology().node(*node).id.as_str();
            let own = id.strip_prefix(machine).and_then(|id| id.strip_prefix('.')).unwrap_or(id);
            [id, own].contains(&name) || self.names_of(*node).iter().any(|word| word == name)
        };
        let mut found = cards.iter().copied().filter(is_named);
        match (found.next(), found.next()) {
            (Some(card), None) => Ok(card),
            (Some(first), Some(second)) => {
                let id = |node: NodeIndex| self.topology().node(node).id.clone();
                Err(MeaningError::AmbiguousNic { name: shown(name), first: id(first), second: id(second) })
            }
            (None, _) => {
                let names: Vec<Vec<String>> = cards.iter().map(|&card| self.names_of(card)).collect();
                let known: BTreeMap<&str, ()> = names.iter().flatten().map(|name| (name.as_str(), ())).collect();
                let near = near(name, &beside(&known, name));
                Err(MeaningError::UnknownNic { host: machine.to_owned(), name: shown(name), near })
            }
        }
    }

    fn has_machine(&self, node: NodeIndex) -> bool {
        let attributes = &self.topology().node(node).attributes;
        attributes.host.is_some() || attributes.box_name.is_some()
    }

    /// The NIC that NCCL takes for a GPU: the one with the fewest CPUs on the way, of these the nearest, of these the one with
    /// the widest way. Of several such, GPUs take one each by their index on the machine, its bits mirrored.
    ///
    /// * **Source.** NCCL, `src/graph/search.cc` and `topo.cc`, `ncclTopoGetLocalNet` for the first channel.
    /// * **Cost.** O(links of the machine · log of them).
    fn nearest_card(&self, gpu: NodeIndex) -> Option<NodeIndex> {
        let mut seen = BTreeSet::new();
        // By CPUs and links on the way: nodes, and how many bytes per second reach them.
        let mut open = BTreeMap::from([((0_usize, 0_usize), BTreeMap::from([(gpu, u128::MAX)]))]);
        while let Some(((cpus, hops), mut level)) = open.pop_first() {
            level.retain(|&node, _| seen.insert(node));
            let rate = |node: NodeIndex, width: u128| width.min(self.rate_outside(node));
            let cards = level.iter().map(|(&node, &width)| (node, rate(node, width))).filter(|(_, rate)| *rate > 0);
            let cards: Vec<(NodeIndex, u128)> = cards.collect();
            if let Some(widest) = cards.iter().map(|(_, rate)| *rate).max() {
                let tied: Vec<NodeIndex> =
                    cards.into_iter().filter(|(_, rate)| *rate == widest).map(|(node, _)| node).collect();
                let index = self.index_on_machine(gpu);
                let chosen = if tied.len().is_power_of_two() { mirrored(index, tied.len()) } else { index };
                return tied.get(chosen % tied.len()).copied();
            }
            for (&node, &width) in &level {
                for (to, capacity) in self.links_inside(node) {
                    let next = open.entry((cpus + usize::from(self.is_cpu(to)), hops + 1)).or_default();
                    let known = next.entry(to).or_default();
                    *known = (*known).max(width.min(capacity));
                }
            }
        }
        None
    }

    /// Whether a switch is the CPU of a machine, by its name.
    fn is_cpu(&self, node: NodeIndex) -> bool {
        let id = self.topology().node(node).id.as_str();
        let own = id.rsplit(['.', '-']).next().unwrap_or(id);
        own.strip_prefix("cpu").is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Where links lead from a node to switches of its machine, each once with its bytes per second.
    fn links_inside(&self, node: NodeIndex) -> BTreeMap<NodeIndex, u128> {
        let topology = self.topology();
        let mut inside = BTreeMap::new();
        for link in topology.links_from(node).map(|link| topology.link(link)) {
            let is_switch = matches!(topology.node(link.to).kind, NodeKind::Switch { .. });
            if is_switch && topology.share_machine(node, link.to) {
                *inside.entry(link.to).or_default() += u128::from(link.capacity.bytes_per_sec());
            }
        }
        inside
    }

    /// Bytes per second that leave the machine through a NIC; 0 of what is none.
    fn rate_outside(&self, node: NodeIndex) -> u128 {
        let topology = self.topology();
        let ports = self.outside(node);
        let links = topology.links_from(node).map(|link| topology.link(link));
        let outside = links.filter(|link| ports.contains(&link.to));
        outside.map(|link| u128::from(link.capacity.bytes_per_sec())).sum()
    }

    /// The index of a GPU among those of its machine.
    fn index_on_machine(&self, gpu: NodeIndex) -> usize {
        let attributes = &self.topology().node(gpu).attributes;
        let name = attributes.host.as_ref().or(attributes.box_name.as_ref());
        let nodes = name.and_then(|name| self.machine(name).ok()).map(|(_, nodes)| nodes).unwrap_or_default();
        nodes.iter().filter(|&&node| node < gpu && self.topology().rank_of(node).is_some()).count()
    }
}

/// The lower bits of a number, as many as tell `count` things apart, in the opposite order. `count` is a power of two.
const fn mirrored(number: usize, count: usize) -> usize {
    let bits = count.trailing_zeros();
    if bits == 0 { 0 } else { number.reverse_bits() >> (usize::BITS - bits) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_mirrored_within_the_count() {
        let all = |count: usize| (0..count).map(|number| mirrored(number, count)).collect::<Vec<_>>();
        assert_eq!((all(1), all(2), all(4)), (vec![0], vec![0, 1], vec![0, 2, 1, 3]));
        assert_eq!(all(8), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!((mirrored(5, 4), mirrored(9, 2)), (2, 1));
    }
}
