//! Rank maps: the device and machine of each rank.
//!
//! Runtimes match a plan by its number of ranks only, so they run a plan for other machines without a warning, slowly
//! or wrongly. A rank map records the machines, as far as the topology or the user names them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Bound;

use crate::index::Rank;
use crate::invisible::is_invisible;
use crate::model::{Attributes, Topology};

/// Longest name of a machine in bytes, as in DNS.
const NAME_BYTES_MAX: usize = 255;

/// The place of a rank.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// Name of the machine.
    pub node: String,
    /// Index of the device on its machine, from 0, in the order of ranks.
    pub device: u32,
}

impl Slot {
    /// Whether both name one device; a machine name may be short on one side, see [`same_host`].
    pub fn is_same_device(&self, other: &Self) -> bool {
        self.device == other.device && same_host(&self.node, &other.node)
    }
}

/// Prints `gpu7:3`.
impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.node, self.device)
    }
}

/// The ranks that take part, and their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participants {
    /// The ranks of the topology that take part, in their new order; `None` for all ranks in their own order.
    pub members: Option<Vec<Rank>>,
    /// The place of each new rank; `None` if unknown.
    pub slots: Option<Vec<Slot>>,
}

/// Errors of placing ranks. Ranks are positions in the list of slots.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PlacementError {
    #[error(
        "rank {rank} is on a node whose name has {bytes} bytes; give 1 to {NAME_BYTES_MAX}, without white space and commas"
    )]
    Name { rank: usize, bytes: usize },
    #[error("ranks {first} and {rank} are both on {slot}; each device takes one rank")]
    Twice { first: usize, rank: usize, slot: Slot },
    #[error(
        "rank {rank} is on node {node}, which is not one of the topology's {nodes} nodes; name one of them, such \
             as {one}"
    )]
    NoSuchNode { rank: usize, node: String, nodes: usize, one: String },
    #[error("rank {rank} is on node {node}, which may mean {first} or {second}; write the whole name")]
    Ambiguous { rank: usize, node: String, first: String, second: String },
    #[error("rank {rank} is on {slot}, but that node has {devices} devices, counted from 0")]
    NoSuchDevice { rank: usize, slot: Slot, devices: usize },
    #[error("{found} ranks are placed, but {expected} take part; place each of them")]
    Count { found: usize, expected: usize },
    #[error(
        "rank {rank} is on {slot}, which is rank {placed} of the topology, but the list names rank {listed}; leave out \
         one of the two, or make them agree"
    )]
    Disagree { rank: usize, slot: Slot, placed: u32, listed: u32 },
    #[error(
        "rank {rank} is on node {node} and rank {first} on {other}, but the topology has them in {}; place ranks on \
         one node exactly if they share a box", if *is_one_box { "one box" } else { "two boxes" }
    )]
    Boxes { rank: usize, node: String, first: usize, other: String, is_one_box: bool },
}

impl PlacementError {
    /// The rank whose slot is at fault, if there is one.
    pub const fn rank(&self) -> Option<usize> {
        match self {
            Self::Name { rank, .. }
            | Self::Twice { rank, .. }
            | Self::NoSuchNode { rank, .. }
            | Self::Ambiguous { rank, .. }
            | Self::NoSuchDevice { rank, .. }
            | Self::Disagree { rank, .. }
            | Self::Boxes { rank, .. } => Some(*rank),
            Self::Count { .. } => None,
        }
    }
}

/// Whether both names mean one machine: they are equal, or one is the short form of the other.
pub fn same_host(a: &str, b: &str) -> bool {
    let is_short =
        |short: &str, long: &str| long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    is_short(a, b) || is_short(b, a)
}

/// The machines that a name can mean: the one with exactly this name, else up to two that it abbreviates, and those
/// that abbreviate it. O(log machines) for each part of the name.
pub fn hosts_named<'a, T>(machines: &BTreeMap<&'a str, T>, name: &str) -> Vec<&'a str> {
    if let Some((&name, _)) = machines.get_key_value(name) {
        return vec![name];
    }
    let start = format!("{name}.");
    let whole = machines.range::<str, _>((Bound::Included(start.as_str()), Bound::Unbounded));
    let whole = whole.map(|(&name, _)| name).take_while(|name| name.starts_with(&start)).take(2);
    let short = name.match_indices('.').filter_map(|(dot, _)| machines.get_key_value(name.get(..dot)?));
    whole.chain(short.map(|(&name, _)| name)).collect()
}

/// The places of ranks that the topology itself states: their `host`s if every rank names one, else their `box`es;
/// `None` if neither is complete. O(ranks).
pub fn own_slots(topology: &Topology) -> Option<Vec<Slot>> {
    let names = machines(topology)?.1;
    let mut devices: HashMap<&str, u32> = HashMap::new();
    let slot = |name: &str, next: &mut u32| {
        let slot = Slot { node: name.to_owned(), device: *next };
        *next += 1;
        slot
    };
    Some(names.iter().map(|&name| slot(name, devices.entry(name).or_default())).collect())
}

/// The device and host of each rank: from the topology's own `host`s if every rank names one, else from slots whose
/// machines are not its boxes, for the listed ranks or all. `None` if no hosts are known. Slots by box choose ranks and
/// do not name hosts.
///
/// # Errors
/// See [`participants`], for slots by which the hosts are known.
///
/// O((ranks + slots) log ranks).
pub fn devices(
    topology: &Topology,
    listed: Option<&[Rank]>,
    placed: Option<&[Slot]>,
) -> Result<Option<Vec<(Rank, Slot)>>, PlacementError> {
    if names_hosts(topology) {
        return Ok(own_slots(topology).map(|slots| topology.ranks().zip(slots).collect()));
    }
    let Some(placed) = placed else { return Ok(None) };
    check_slots(placed)?;
    if chosen(topology, placed)?.is_some() {
        return Ok(None);
    }
    let Participants { members, slots } = participants(topology, listed, Some(placed))?;
    let slots = slots.unwrap_or_default().into_iter();
    Ok(Some(match members {
        Some(members) => members.into_iter().zip(slots).collect(),
        None => topology.ranks().zip(slots).collect(),
    }))
}

/// Whether every rank of a topology names its host.
pub fn names_hosts(topology: &Topology) -> bool {
    matches!(machines(topology), Some((Named::Hosts, _)))
}

/// The ranks that take part and their places, from the list and placement of a request and the topology itself.
///
/// If the topology names the hosts of its ranks, slots are looked up among them and choose ranks, as a list of ranks
/// does. The same holds for boxes if any slot names one. Otherwise the topology does not know the nodes: slot r is the
/// place of rank r, and ranks of one box must share one node.
///
/// # Errors
/// See [`PlacementError`]. Ranks listed that are not there are left for [`Topology::group`] to refuse.
///
/// O((ranks + slots) log ranks).
pub fn participants(
    topology: &Topology,
    listed: Option<&[Rank]>,
    placed: Option<&[Slot]>,
) -> Result<Participants, PlacementError> {
    let Some(placed) = placed else {
        let own = own_slots(topology);
        let slots = match listed {
            None => own,
            Some(members) => {
                own.and_then(|own| members.iter().map(|member| own.get(member.index()).cloned()).collect())
            }
        };
        return Ok(Participants { members: listed.map(<[Rank]>::to_vec), slots });
    };
    check_slots(placed)?;
    match chosen(topology, placed)? {
        Some(chosen) => {
            let (ranks, slots): (Vec<Rank>, Vec<Slot>) = chosen.into_iter().unzip();
            if let Some(listed) = listed {
                compare(&ranks, listed, placed)?;
            }
            let is_whole = ranks.len() == topology.rank_count() as usize && ranks.iter().copied().eq(topology.ranks());
            let members = if is_whole { listed.map(<[Rank]>::to_vec) } else { Some(ranks) };
            Ok(Participants { members, slots: Some(slots) })
        }
        None => {
            let expected = listed.map_or(topology.rank_count() as usize, <[Rank]>::len);
            if placed.len() != expected {
                return Err(PlacementError::Count { found: placed.len(), expected });
            }
            check_boxes(topology, listed, placed)?;
            Ok(Participants { members: listed.map(<[Rank]>::to_vec), slots: Some(placed.to_vec()) })
        }
    }
}

/// What every rank names: its host, or else its box.
fn machines(topology: &Topology) -> Option<(Named, Vec<&str>)> {
    let names = |name: fn(&Attributes) -> Option<&str>| -> Option<Vec<&str>> {
        let ranks = topology.nodes().iter().take(topology.rank_count() as usize);
        ranks.map(|node| name(&node.attributes)).collect()
    };
    let hosts = names(|attributes| attributes.host.as_deref()).map(|hosts| (Named::Hosts, hosts));
    hosts.or_else(|| names(|attributes| attributes.box_name.as_deref()).map(|boxes| (Named::Boxes, boxes)))
}

/// What the names of a topology's machines are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Hosts,
    Boxes,
}

/// Names that can be names, and each device once.
fn check_slots(placed: &[Slot]) -> Result<(), PlacementError> {
    let mut seen: HashMap<&Slot, usize> = HashMap::with_capacity(placed.len());
    for (rank, slot) in placed.iter().enumerate() {
        // A comma separates devices wherever a rank map is written as a list.
        let is_plain = !slot.node.contains(|c: char| c == ',' || c.is_whitespace() || is_invisible(c));
        if !(1..=NAME_BYTES_MAX).contains(&slot.node.len()) || !is_plain {
            return Err(PlacementError::Name { rank, bytes: slot.node.len() });
        }
        if let Some(first) = seen.insert(slot, rank) {
            return Err(PlacementError::Twice { first, rank, slot: slot.clone() });
        }
    }
    Ok(())
}

/// The ranks that slots mean, with the slots in the words of the topology; none: the nodes are none that it names.
fn chosen(topology: &Topology, placed: &[Slot]) -> Result<Option<Vec<(Rank, Slot)>>, PlacementError> {
    let Some((named, names)) = machines(topology) else { return Ok(None) };
    let mut devices: BTreeMap<&str, Vec<Rank>> = BTreeMap::new();
    for (rank, name) in topology.ranks().zip(names) {
        devices.entry(name).or_default().push(rank);
    }
    if named == Named::Boxes && !placed.iter().any(|slot| devices.contains_key(slot.node.as_str())) {
        return Ok(None);
    }
    let mut taken: HashMap<Rank, usize> = HashMap::with_capacity(placed.len());
    let mut chosen = Vec::with_capacity(placed.len());
    for (position, slot) in placed.iter().enumerate() {
        let name = find(&devices, named, position, &slot.node)?;
        let there = devices.get(name).map(Vec::as_slice).unwrap_or_default();
        let rank = there.get(slot.device as usize).copied();
        let no_device = || PlacementError::NoSuchDevice { rank: position, slot: slot.clone(), devices: there.len() };
        let rank = rank.ok_or_else(no_device)?;
        // A short name and the whole one may have looked like two machines before.
        if let Some(first) = taken.insert(rank, position) {
            return Err(PlacementError::Twice { first, rank: position, slot: slot.clone() });
        }
        chosen.push((rank, Slot { node: name.to_owned(), device: slot.device }));
    }
    Ok(Some(chosen))
}

/// The machine of the topology that a name means; see [`hosts_named`].
fn find<'a>(
    devices: &BTreeMap<&'a str, Vec<Rank>>,
    named: Named,
    rank: usize,
    node: &str,
) -> Result<&'a str, PlacementError> {
    let found: Vec<&'a str> = match named {
        Named::Hosts => hosts_named(devices, node),
        Named::Boxes => devices.get_key_value(node).map(|(&name, _)| name).into_iter().collect(),
    };
    match found.as_slice() {
        [name] => Ok(name),
        [first, second, ..] => {
            let (first, second) = ((*first).to_owned(), (*second).to_owned());
            Err(PlacementError::Ambiguous { rank, node: node.to_owned(), first, second })
        }
        [] => {
            let one = devices.keys().next().map_or_else(String::new, |&name| name.to_owned());
            Err(PlacementError::NoSuchNode { rank, node: node.to_owned(), nodes: devices.len(), one })
        }
    }
}

/// Whether slots choose the ranks that are listed, in their order.
fn compare(ranks: &[Rank], listed: &[Rank], placed: &[Slot]) -> Result<(), PlacementError> {
    if ranks.len() != listed.len() {
        return Err(PlacementError::Count { found: ranks.len(), expected: listed.len() });
    }
    let differing = ranks.iter().zip(listed).zip(placed).enumerate().find(|(_, ((rank, listed), _))| rank != listed);
    match differing {
        None => Ok(()),
        Some((rank, ((placed, listed), slot))) => {
            let (placed, listed) = (placed.number(), listed.number());
            Err(PlacementError::Disagree { rank, slot: slot.clone(), placed, listed })
        }
    }
}

/// Where ranks name their boxes: each box is one node, and no two are the same.
fn check_boxes(topology: &Topology, listed: Option<&[Rank]>, placed: &[Slot]) -> Result<(), PlacementError> {
    let Some((Named::Boxes, boxes)) = machines(topology) else { return Ok(()) };
    let all: Vec<Rank>;
    let members = match listed {
        Some(listed) => listed,
        None => {
            all = topology.ranks().collect();
            all.as_slice()
        }
    };
    let (mut node_of, mut box_of) = (HashMap::<&str, (usize, &str)>::new(), HashMap::<&str, (usize, &str)>::new());
    for ((rank, slot), member) in placed.iter().enumerate().zip(members) {
        // Ranks that are not there are refused where the group is made.
        let Some(&in_box) = boxes.get(member.index()) else { continue };
        let node = slot.node.as_str();
        let refused = |first: usize, is_one_box: bool| {
            let other = placed.get(first).map_or_else(String::new, |slot| slot.node.clone());
            Err(PlacementError::Boxes { rank, node: node.to_owned(), first, other, is_one_box })
        };
        let (first, other) = *node_of.entry(in_box).or_insert((rank, node));
        if other != node {
            return refused(first, true);
        }
        let (first, other) = *box_of.entry(node).or_insert((rank, in_box));
        if other != in_box {
            return refused(first, false);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
