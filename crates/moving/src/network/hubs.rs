//! What switches join: connected switches are one hub. A hub of several switches counts as one if it blocks nowhere.

use std::collections::{BTreeMap, BTreeSet};

use canopy_topology::Topology;

use super::capacities::Capacities;
use super::error::NetworkError;

/// Connected switches.
pub(super) struct Hub {
    /// By index of their nodes.
    pub(super) switches: BTreeSet<usize>,
    /// Ranks with a link to or from any of them.
    pub(super) ranks: BTreeSet<usize>,
}

impl Hub {
    /// Its first switch, for messages.
    pub(super) fn first(&self) -> usize {
        self.switches.first().copied().unwrap_or_default()
    }

    /// What a rank has to it, and from it.
    pub(super) fn rates(&self, capacities: &Capacities, rank: usize) -> (u128, u128) {
        let switches = || self.switches.iter().copied();
        let out = switches().map(|switch| capacities.get(rank, switch)).sum();
        (out, switches().map(|switch| capacities.get(switch, rank)).sum())
    }
}

/// All hubs of a network, by their first switches.
pub(super) fn hubs(topology: &Topology, capacities: &Capacities) -> Vec<Hub> {
    let count = topology.rank_count() as usize;
    let switches: BTreeSet<usize> = (count..topology.nodes().len()).collect();
    let connected = components(capacities, &switches);
    let ranks = |switches: &BTreeSet<usize>| {
        let neighbours = switches.iter().flat_map(|&switch| capacities.neighbours(switch));
        neighbours.filter(|&node| node < count).collect()
    };
    connected.into_iter().map(|switches| Hub { ranks: ranks(&switches), switches }).collect()
}

/// Connected parts of some nodes.
fn components(capacities: &Capacities, nodes: &BTreeSet<usize>) -> Vec<BTreeSet<usize>> {
    let mut left = nodes.clone();
    let mut all = Vec::new();
    while let Some(first) = left.pop_first() {
        let (mut part, mut open) = (BTreeSet::from([first]), vec![first]);
        while let Some(node) = open.pop() {
            for next in capacities.neighbours(node) {
                if left.remove(&next) {
                    part.insert(next);
                    open.push(next);
                }
            }
        }
        all.push(part);
    }
    all
}

/// What the ends below have to the switches of a hub and from them, by switch.
type Below = BTreeMap<usize, (u128, u128)>;

/// Refuses a hub of several switches that may block.
///
/// Switches with ranks are the lowest level. Without them, what is above falls into planes. If all of the lowest level
/// divide what they have above among the planes in the same proportions, and have as much above as below, then traffic
/// that is divided in these proportions fits, whatever ranks send; each plane is a hub of the same kind.
pub(super) fn require_open(topology: &Topology, capacities: &Capacities, hub: &Hub) -> Result<(), NetworkError> {
    if hub.switches.len() == 1 {
        return Ok(());
    }
    let mut below = Below::new();
    for &rank in &hub.ranks {
        let (out, into) = hub.rates(capacities, rank);
        if let Some(switch) = only(topology, capacities, rank, &hub.switches)? {
            let sums = below.entry(switch).or_default();
            *sums = (sums.0 + out, sums.1 + into);
        }
    }
    require_level(topology, capacities, &hub.switches, &below)
}

fn require_level(
    topology: &Topology,
    capacities: &Capacities,
    switches: &BTreeSet<usize>,
    below: &Below,
) -> Result<(), NetworkError> {
    if below.len() < 2 {
        return Ok(());
    }
    let above: BTreeSet<usize> = switches.iter().copied().filter(|switch| !below.contains_key(switch)).collect();
    let planes = components(capacities, &above);
    let mut ends = vec![Below::new(); planes.len()];
    let mut rows = Vec::new();
    for (&leaf, &(sent, received)) in below {
        if let Some(other) = capacities.neighbours(leaf).find(|node| *node != leaf && below.contains_key(node)) {
            let (first, second) = (id(topology, leaf), id(topology, other));
            return Err(NetworkError::SameLevel { first, second });
        }
        let (mut ups, mut downs) = (Vec::new(), Vec::new());
        for (plane, ends) in planes.iter().zip(&mut ends) {
            let switch = only(topology, capacities, leaf, plane)?;
            let (up, down) =
                switch.map_or((0, 0), |switch| (capacities.get(leaf, switch), capacities.get(switch, leaf)));
            ups.push(up);
            downs.push(down);
            if let Some(switch) = switch {
                let sums = ends.entry(switch).or_default();
                *sums = (sums.0 + up, sums.1 + down);
            }
        }
        for (found, needed, way) in [(&ups, sent, "to"), (&downs, received, "from")] {
            let found = found.iter().sum();
            if found < needed {
                return Err(NetworkError::Blocks { switch: id(topology, leaf), way, found, needed });
            }
        }
        rows.extend([(leaf, ups), (leaf, downs)]);
    }
    require_proportions(topology, &rows)?;
    planes.iter().zip(&ends).try_for_each(|(plane, ends)| require_level(topology, capacities, plane, ends))
}

/// The only one of some switches that a node is linked with, if it is with any.
fn only(
    topology: &Topology,
    capacities: &Capacities,
    node: usize,
    switches: &BTreeSet<usize>,
) -> Result<Option<usize>, NetworkError> {
    let linked: BTreeSet<usize> = capacities.neighbours(node).filter(|other| switches.contains(other)).collect();
    let mut linked = linked.into_iter();
    match (linked.next(), linked.next()) {
        (Some(first), Some(second)) => {
            let (node, first, second) = (id(topology, node), id(topology, first), id(topology, second));
            Err(NetworkError::TwoLinks { node, first, second })
        }
        (first, _) => Ok(first),
    }
}

/// Refuses nodes that divide their links among some others in different proportions.
pub(super) fn require_proportions(topology: &Topology, rows: &[(usize, Vec<u128>)]) -> Result<(), NetworkError> {
    let mut rows = rows.iter().filter(|(_, row)| row.iter().any(|&rate| rate > 0));
    let Some((first, model)) = rows.next() else { return Ok(()) };
    let whole: u128 = model.iter().sum();
    for (node, row) in rows {
        let sum: u128 = row.iter().sum();
        let fits = |(&rate, &of_first): (&u128, &u128)| {
            let (one, other) = (rate.checked_mul(whole), of_first.checked_mul(sum));
            one.is_some() && one == other
        };
        if !row.iter().zip(model).all(fits) {
            return Err(NetworkError::Proportions { node: id(topology, *node), other: id(topology, *first) });
        }
    }
    Ok(())
}

/// The id of a node.
pub(super) fn id(topology: &Topology, node: usize) -> String {
    topology.nodes().get(node).map(|node| node.id.clone()).unwrap_or_default()
}
