//! What is cheap to count in a network, for families to guess their parameters from.

use std::collections::BTreeMap;

use canopy_topology::{Capacity, Latency, NodeIndex, NodeKind, Topology};

/// Directed links by capacity.
pub(crate) type Rates = BTreeMap<Capacity, usize>;

/// Counts of a network of ranks and plain switches whose links have one latency.
pub(crate) struct Summary<'a> {
    topology: &'a Topology,
    latency: Latency,
    pub(crate) ranks: usize,
    pub(crate) switches: usize,
    pub(crate) links: usize,
    /// Links between ranks.
    pub(crate) among_ranks: Rates,
    /// Links from ranks to switches; as many lead back.
    pub(crate) to_switches: Rates,
    /// Links between switches.
    pub(crate) among_switches: Rates,
}

/// What a switch is joined with.
#[derive(Clone, Copy)]
pub(crate) struct Side {
    /// The least and the greatest capacity of its links to ranks, where it has any.
    pub(crate) to_ranks: Option<(Capacity, Capacity)>,
    /// Whether it has links to switches.
    pub(crate) has_switches: bool,
}

impl<'a> Summary<'a> {
    /// Counts. `None` where the network can be no member of any family: where a node only forwards, a switch replicates
    /// or reduces, latencies differ, there are no links, or those from switches to ranks are not like those back.
    /// O(nodes + links log links).
    pub(crate) fn of(topology: &'a Topology) -> Option<Self> {
        let is_plain = |kind| matches!(kind, NodeKind::Compute | NodeKind::PLAIN_SWITCH);
        let latency = topology.links().first()?.latency;
        if !topology.nodes().iter().all(|node| is_plain(node.kind)) {
            return None;
        }
        let ranks = topology.rank_count() as usize;
        let mut rates: [Rates; 4] = Default::default();
        for link in topology.links() {
            if link.latency != latency {
                return None;
            }
            let kinds = 2 * usize::from(link.from.index() >= ranks) + usize::from(link.to.index() >= ranks);
            *rates[kinds].entry(link.capacity).or_default() += 1;
        }
        let [among_ranks, to_switches, from_switches, among_switches] = rates;
        let (switches, links) = (topology.nodes().len() - ranks, topology.links().len());
        (to_switches == from_switches).then_some(Self {
            topology,
            latency,
            ranks,
            switches,
            links,
            among_ranks,
            to_switches,
            among_switches,
        })
    }

    /// The expression of a member with the latency of the network.
    pub(crate) fn expression(&self, family: &str, parameters: &str) -> String {
        let latency = self.latency;
        let latency = if latency == Latency::default() { String::new() } else { format!(",lat={latency}") };
        format!("{family}:{parameters}{latency}")
    }

    /// The latency of every link.
    pub(crate) const fn latency(&self) -> Latency {
        self.latency
    }

    /// The capacity of every link, if there are no switches and all are alike.
    pub(crate) fn uniform(&self) -> Option<Capacity> {
        let mut rates = self.among_ranks.keys();
        let only = rates.next().filter(|_| rates.next().is_none() && self.switches == 0);
        only.copied()
    }

    /// The capacity of the links between ranks and switches, if each rank has one and they are alike, and no ranks are
    /// joined directly.
    pub(crate) fn host_rate(&self) -> Option<Capacity> {
        let (&rate, &count) = self.to_switches.first_key_value()?;
        (self.among_ranks.is_empty() && count == self.ranks && self.to_switches.len() == 1).then_some(rate)
    }

    /// Number of links that leave each node.
    pub(crate) fn degrees(&self) -> impl Iterator<Item = usize> + '_ {
        (0_u32..).take(self.topology.nodes().len()).map(|node| self.topology.links_from(NodeIndex::new(node)).len())
    }

    /// Whether so many links leave every node.
    pub(crate) fn is_regular(&self, degree: usize) -> bool {
        self.degrees().all(|found| found == degree)
    }

    /// What each switch is joined with. O(links).
    pub(crate) fn sides_of_switches(&self) -> Vec<Side> {
        let mut sides = vec![Side { to_ranks: None, has_switches: false }; self.switches];
        for link in self.topology.links() {
            let Some(side) = link.from.index().checked_sub(self.ranks).and_then(|switch| sides.get_mut(switch)) else {
                continue;
            };
            if link.to.index() < self.ranks {
                let (least, greatest) = side.to_ranks.unwrap_or((link.capacity, link.capacity));
                side.to_ranks = Some((least.min(link.capacity), greatest.max(link.capacity)));
            } else {
                side.has_switches = true;
            }
        }
        sides
    }

    /// How many nodes there are at each distance from a node, itself included. O(nodes + links).
    pub(crate) fn layers(&self, first: NodeIndex) -> Vec<usize> {
        let mut is_reached = vec![false; self.topology.nodes().len()];
        is_reached[first.index()] = true;
        let mut layer = vec![first];
        let mut layers = Vec::new();
        while !layer.is_empty() {
            layers.push(layer.len());
            let mut next = Vec::new();
            for link in layer.iter().flat_map(|&node| self.topology.links_from(node)) {
                let to = self.topology.link(link).to;
                if !std::mem::replace(&mut is_reached[to.index()], true) {
                    next.push(to);
                }
            }
            layer = next;
        }
        layers
    }
}
