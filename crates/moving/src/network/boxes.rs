//! Boxes of ranks, and what joins them inside and outside, on a healthy network.

use canopy_topology::{NodeKind, Topology};

use super::capacities::Capacities;
use super::error::NetworkError;
use super::hubs::{Hub, hubs, id};
use crate::tiers::Fabric;

/// What a healthy network is.
pub(super) struct Structure {
    pub(super) box_size: usize,
    pub(super) fabric: Fabric,
    /// Hubs that join the ranks of a box, by box; without any, links join all pairs.
    pub(super) inner: Vec<Vec<Hub>>,
    /// Hubs between boxes: those of rails, or that of a full fabric.
    pub(super) outer: Vec<Hub>,
}

impl Structure {
    pub(super) fn of(topology: &Topology, capacities: &Capacities) -> Result<Self, NetworkError> {
        let forwarder = topology.nodes().iter().find(|node| node.kind == NodeKind::Forwarder);
        if let Some(node) = forwarder {
            return Err(NetworkError::Forwarder { node: node.id.clone() });
        }
        let ranks = topology.rank_count() as usize;
        let hubs = hubs(topology, capacities);
        let box_size = box_size(topology, capacities, &hubs)?;
        let boxes = ranks / box_size;
        let (mut inner, mut outer) = (Vec::new(), Vec::new());
        inner.resize_with(boxes, Vec::new);
        for hub in hubs {
            match (hub.ranks.first(), hub.ranks.last()) {
                // Switches of one rank join nothing.
                (Some(first), Some(last)) if first == last && ranks > 1 => {}
                (Some(first), Some(last)) if first / box_size == last / box_size && box_size > 1 => {
                    inner[first / box_size].push(hub);
                }
                (Some(_), Some(_)) => outer.push(hub),
                // Switches without ranks carry nothing.
                _ => {}
            }
        }
        if box_size > 1 {
            inner.iter().enumerate().try_for_each(|(of_box, hubs)| {
                require_joined(topology, capacities, of_box * box_size..(of_box + 1) * box_size, hubs)
            })?;
        }
        let (fabric, outer) = fabric(topology, box_size, outer)?;
        Ok(Self { box_size, fabric, inner, outer })
    }
}

/// Ranks of a box: those that links between ranks, and switches of some ranks in a row, join.
fn box_size(topology: &Topology, capacities: &Capacities, hubs: &[Hub]) -> Result<usize, NetworkError> {
    let ranks = topology.rank_count() as usize;
    let mut parts = Parts::new(ranks);
    for rank in 0..ranks {
        capacities.targets(rank).filter(|&other| other < ranks).for_each(|other| parts.join(rank, other));
    }
    let rows: Vec<(usize, usize)> = hubs.iter().filter_map(|hub| row(hub, ranks)).collect();
    let is_of_box = |&(first, last): &(usize, usize)| {
        // What joins whole boxes, or some of a box and others, joins boxes: a rank at the end has a dead NIC.
        let holds = |other: &(usize, usize)| other.0 < other.1 && first <= other.0 && other.1 <= last;
        let pairs = (first..=last).any(|rank| parts.first(rank) != rank && parts.first(rank) >= first);
        let splits = (first..=last).any(|rank| parts.first(rank) != parts.first(first));
        let joins_boxes = rows.iter().any(|other| *other != (first, last) && holds(other)) || (pairs && splits);
        !joins_boxes
    };
    let of_boxes: Vec<(usize, usize)> = rows.iter().copied().filter(is_of_box).collect();
    for (first, last) in of_boxes {
        (first..last).for_each(|rank| parts.join(rank, rank + 1));
    }
    let firsts: Vec<usize> = (0..ranks).map(|rank| parts.first(rank)).collect();
    let mut size = firsts.iter().filter(|&&first| first == 0).count();
    if size == 1 && firsts.iter().enumerate().all(|(rank, first)| rank == *first) && is_one_box(topology) {
        size = ranks;
    } else {
        require_even(topology, &firsts, size)?;
    }
    Ok(size)
}

/// The first and the last rank of a hub whose ranks follow each other, but for one of all ranks.
fn row(hub: &Hub, ranks: usize) -> Option<(usize, usize)> {
    let (&first, &last) = (hub.ranks.first()?, hub.ranks.last()?);
    (last - first + 1 == hub.ranks.len() && hub.ranks.len() < ranks).then_some((first, last))
}

/// Refuses boxes of other sizes than the first, and such whose ranks do not follow each other.
fn require_even(topology: &Topology, firsts: &[usize], size: usize) -> Result<(), NetworkError> {
    for (rank, &first) in firsts.iter().enumerate() {
        if first == rank / size * size {
            continue;
        }
        let found = firsts.iter().filter(|&&other| other == first).count();
        let other = id(topology, 0);
        return Err(match found == size {
            true => NetworkError::Scattered { node: id(topology, first), other: id(topology, rank) },
            false => NetworkError::UnevenBoxes { node: id(topology, rank), found, other, expected: size },
        });
    }
    match firsts.len() % size {
        0 => Ok(()),
        found => {
            let (node, other) = (id(topology, firsts.len() - 1), id(topology, 0));
            Err(NetworkError::UnevenBoxes { node, found, other, expected: size })
        }
    }
}

/// Whether all ranks say that they are in the same box, where links do not tell: on one switch.
fn is_one_box(topology: &Topology) -> bool {
    let ranks = topology.nodes().iter().take(topology.rank_count() as usize);
    let mut names = ranks.map(|node| node.attributes.box_name.as_ref().or(node.attributes.host.as_ref()));
    let Some(Some(first)) = names.next() else { return false };
    names.all(|name| name == Some(first))
}

/// Refuses a box whose ranks are joined neither by switches nor in pairs.
fn require_joined(
    topology: &Topology,
    capacities: &Capacities,
    ranks: std::ops::Range<usize>,
    hubs: &[Hub],
) -> Result<(), NetworkError> {
    for from in ranks.clone() {
        let pairs = capacities.targets(from).find(|to| ranks.contains(to));
        if let (Some(hub), Some(_)) = (hubs.first(), pairs) {
            return Err(NetworkError::Mixed { switch: id(topology, hub.first()), node: id(topology, from) });
        }
        let missing = match hubs.iter().find(|hub| !hub.ranks.contains(&from)) {
            Some(hub) => hub.ranks.first().copied(),
            None if hubs.is_empty() => ranks.clone().find(|&to| to != from && capacities.get(from, to) == 0),
            None => None,
        };
        if let Some(to) = missing {
            return Err(NetworkError::NotJoined { from: id(topology, from), to: id(topology, to) });
        }
    }
    Ok(())
}

/// What joins boxes. Ranks that nothing joins with other boxes have dead NICs.
fn fabric(topology: &Topology, box_size: usize, outer: Vec<Hub>) -> Result<(Fabric, Vec<Hub>), NetworkError> {
    let ranks = topology.rank_count() as usize;
    if outer.is_empty() && ranks > box_size {
        return Err(NetworkError::NoFabric { node: id(topology, 0), other: id(topology, box_size) });
    }
    let mut of: Vec<Option<&Hub>> = vec![None; ranks];
    for hub in &outer {
        for &rank in &hub.ranks {
            if let Some(first) = of[rank].replace(hub) {
                let (first, second) = (id(topology, first.first()), id(topology, hub.first()));
                return Err(NetworkError::SecondFabric { node: id(topology, rank), first, second });
            }
        }
    }
    if outer.len() < 2 {
        return Ok((Fabric::Full, outer));
    }
    let mut rails: Vec<Option<&Hub>> = vec![None; box_size];
    for hub in &outer {
        let place = |rank: &usize| rank % box_size;
        let first = hub.ranks.first().copied().unwrap_or_default();
        if let Some(&rank) = hub.ranks.iter().find(|rank| place(rank) != place(&first)) {
            let (switch, node, other) = (id(topology, hub.first()), id(topology, first), id(topology, rank));
            return Err(NetworkError::Places { switch, node, other });
        }
        if let Some(other) = rails[place(&first)].replace(hub) {
            let (first, second) = (id(topology, other.first()), id(topology, hub.first()));
            return Err(NetworkError::SecondRail { first, second });
        }
    }
    Ok((Fabric::Rails, outer))
}

/// Ranks that belong together.
struct Parts(Vec<usize>);

impl Parts {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    /// The first of those that belong to a rank.
    fn first(&self, rank: usize) -> usize {
        let mut at = rank;
        while self.0[at] != at {
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, first: usize, rank: usize) {
        let (one, other) = (self.first(first), self.first(rank));
        let (least, greatest) = (one.min(other), one.max(other));
        self.0[greatest] = least;
        // Ways stay short where ranks are joined one after the other.
        self.0[rank] = least;
    }
}
