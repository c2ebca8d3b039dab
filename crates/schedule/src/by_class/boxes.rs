//! Classes of boxes: those with the same ranks, NICs and inner links.

use std::collections::BTreeMap;

use canopy_topology::{LinkIndex, NodeIndex, Topology};

use super::LinkKind;
use crate::check::takes_longer;
use crate::stages::{Seating, Stages};

/// Marks nodes outside all boxes.
const OUTSIDE: u32 = u32::MAX;

/// Boxes of an exchange in stages, by class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxClasses {
    /// The class of most boxes first; of as many, that of the first box.
    pub classes: Vec<BoxClass>,
    /// Pairs of boxes that exchange other than equal pieces.
    pub exceptions: usize,
    /// Boxes without ranks.
    pub empty: u32,
}

/// Boxes that have the same: ranks on the same places, NICs of the same rates, the same links inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxClass {
    /// How many there are.
    pub boxes: u32,
    /// The first one.
    pub first: u32,
    /// The one whose busiest NIC is the busiest of all, the first of these.
    pub busiest: u32,
    /// Places, those without a rank included.
    pub places: u32,
    /// Places without a rank.
    pub missing: Vec<u32>,
    /// Links into and out of the box, by the place that they are at.
    pub nics: Vec<Nic>,
    /// Links inside, and bytes per second of all of them together.
    pub inner: usize,
    /// See `inner`.
    pub inner_capacity: u128,
    /// Chunks that leave a box over all its NICs: at least, and at most.
    pub out: (u128, u128),
    /// Chunks that enter a box.
    pub into: (u128, u128),
    /// Chunks over a NIC, either way: at least, and at most.
    pub nic: (u128, u128),
    /// The NIC link that is busy longest, and the same of the links inside; `None` where there are none.
    pub busiest_nic: Option<LinkIndex>,
    /// See `busiest_nic`.
    pub busiest_inner: Option<LinkIndex>,
}

/// A link between a box and what joins boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nic {
    /// The place of its rank; that of no rank where it is at a switch of the box.
    pub place: u32,
    /// Whether it leads out of the box.
    pub is_up: bool,
    /// Bytes per second.
    pub capacity: u64,
}

/// What sets boxes apart: places with ranks, NICs, capacities inside, how they spread what enters.
type Key = (Vec<u32>, Vec<Nic>, Vec<u64>, u32);

/// Which node is in which box.
pub(super) struct Boxes {
    box_of: Vec<u32>,
    place_of: Vec<u32>,
    has_ranks: Vec<bool>,
}

impl Boxes {
    /// Ranks by their seats; switches, by the box that all their neighbours are ranks of. O(nodes + links).
    pub(super) fn of(topology: &Topology, seating: &Seating) -> Self {
        let nodes = topology.nodes().len();
        let (mut box_of, mut place_of) = (vec![OUTSIDE; nodes], vec![seating.places(); nodes]);
        for of_box in 0..seating.box_count() {
            for (place, rank) in seating.live(of_box) {
                let node = canopy_topology::Rank::new(rank).node().index();
                (box_of[node], place_of[node]) = (of_box, place);
            }
        }
        let is_rank = |node: NodeIndex| topology.rank_of(node).is_some();
        let (mut inner, mut has_ranks) = (vec![None; nodes], vec![false; nodes]);
        for link in topology.links() {
            for (node, other) in [(link.from, link.to), (link.to, link.from)] {
                let of = if is_rank(other) { box_of[other.index()] } else { OUTSIDE };
                has_ranks[node.index()] |= is_rank(other);
                let seen = inner[node.index()].get_or_insert(of);
                if *seen != of {
                    *seen = OUTSIDE;
                }
            }
        }
        for (node, found) in (0..).map(NodeIndex::new).zip(inner) {
            if !is_rank(node) {
                box_of[node.index()] = found.unwrap_or(OUTSIDE);
            }
        }
        Self { box_of, place_of, has_ranks }
    }

    /// Where a link leads.
    pub(super) fn kind(&self, topology: &Topology, link: LinkIndex) -> LinkKind {
        let link = topology.link(link);
        let [from, to] = [link.from, link.to].map(NodeIndex::index);
        match (self.box_of[from], self.box_of[to]) {
            (OUTSIDE, OUTSIDE) => match (self.has_ranks[from], self.has_ranks[to]) {
                (true, false) => LinkKind::LeafToSpine,
                (false, true) => LinkKind::SpineToLeaf,
                _ => LinkKind::BetweenSwitches,
            },
            (one, other) if one == other => LinkKind::InBox,
            (OUTSIDE, _) => LinkKind::NicDown,
            _ => LinkKind::NicUp,
        }
    }

    /// The boxes in classes. O(boxes · places + links · log links of a box).
    pub(super) fn classes(
        &self,
        topology: &Topology,
        stages: &Stages,
        seating: &Seating,
        chunks: &[u128],
    ) -> BoxClasses {
        let mut of_boxes: Vec<Vec<LinkIndex>> = vec![Vec::new(); seating.box_count() as usize];
        for (index, link) in (0..).map(LinkIndex::new).zip(topology.links()) {
            let [from, to] = [link.from, link.to].map(|node| self.box_of[node.index()]);
            for of_box in [Some(from), (to != from).then_some(to)].into_iter().flatten() {
                if let Some(links) = of_boxes.get_mut(of_box as usize) {
                    links.push(index);
                }
            }
        }
        let mut known: BTreeMap<Key, BoxClass> = BTreeMap::new();
        let mut empty = 0;
        for (of_box, links) in (0_u32..).zip(&of_boxes) {
            if seating.is_empty(of_box) {
                empty += 1;
                continue;
            }
            let found = Found::of(self, topology, of_box, links, chunks);
            let missing: Vec<u32> =
                (0..seating.places()).filter(|&place| seating.rank(of_box, place).is_none()).collect();
            let spread = stages.classes.get(&of_box).copied().unwrap_or(0);
            let class = found.class(of_box, seating.places(), missing.clone());
            let key = (missing, found.nics, found.inner, spread);
            known.entry(key).and_modify(|known| known.join(&class, topology, chunks)).or_insert(class);
        }
        let mut classes: Vec<BoxClass> = known.into_values().collect();
        classes.sort_by_key(|class| (std::cmp::Reverse(class.boxes), class.first));
        BoxClasses { classes, exceptions: stages.exceptions.len(), empty }
    }
}

/// What one box has.
struct Found {
    nics: Vec<Nic>,
    /// Capacities of the links inside, sorted.
    inner: Vec<u64>,
    out: u128,
    into: u128,
    nic: (u128, u128),
    busiest_nic: Option<LinkIndex>,
    busiest_inner: Option<LinkIndex>,
}

impl Found {
    fn of(boxes: &Boxes, topology: &Topology, of_box: u32, links: &[LinkIndex], chunks: &[u128]) -> Self {
        let mut found = Self {
            nics: Vec::new(),
            inner: Vec::new(),
            out: 0,
            into: 0,
            nic: (u128::MAX, 0),
            busiest_nic: None,
            busiest_inner: None,
        };
        for &index in links {
            let (link, load) = (topology.link(index), chunks[index.index()]);
            let capacity = link.capacity.bytes_per_sec();
            let [is_from, is_to] = [link.from, link.to].map(|node| boxes.box_of[node.index()] == of_box);
            if is_from && is_to {
                found.inner.push(capacity);
                later(topology, chunks, &mut found.busiest_inner, index);
                continue;
            }
            let end = if is_from { link.from } else { link.to };
            found.nics.push(Nic { place: boxes.place_of[end.index()], is_up: is_from, capacity });
            *(if is_from { &mut found.out } else { &mut found.into }) += load;
            found.nic = (found.nic.0.min(load), found.nic.1.max(load));
            later(topology, chunks, &mut found.busiest_nic, index);
        }
        found.nics.sort_unstable();
        found.inner.sort_unstable();
        found.nic.0 = found.nic.0.min(found.nic.1);
        found
    }

    fn class(&self, of_box: u32, places: u32, missing: Vec<u32>) -> BoxClass {
        BoxClass {
            boxes: 1,
            first: of_box,
            busiest: of_box,
            places,
            missing,
            nics: self.nics.clone(),
            inner: self.inner.len(),
            inner_capacity: self.inner.iter().map(|&capacity| u128::from(capacity)).sum(),
            out: (self.out, self.out),
            into: (self.into, self.into),
            nic: self.nic,
            busiest_nic: self.busiest_nic,
            busiest_inner: self.busiest_inner,
        }
    }
}

impl BoxClass {
    /// Ranks of each box.
    pub fn ranks(&self) -> usize {
        (self.places as usize).saturating_sub(self.missing.len())
    }

    /// Adds a later box.
    fn join(&mut self, other: &Self, topology: &Topology, chunks: &[u128]) {
        let both = |one: (u128, u128), other: (u128, u128)| (one.0.min(other.0), one.1.max(other.1));
        self.boxes += 1;
        self.out = both(self.out, other.out);
        self.into = both(self.into, other.into);
        self.nic = both(self.nic, other.nic);
        let mut nic = self.busiest_nic;
        other.busiest_nic.into_iter().for_each(|link| later(topology, chunks, &mut nic, link));
        if nic != self.busiest_nic {
            (self.busiest_nic, self.busiest) = (nic, other.busiest);
        }
        other.busiest_inner.into_iter().for_each(|link| later(topology, chunks, &mut self.busiest_inner, link));
    }
}

/// Keeps the link that is busy longer; of equal ones the one before.
fn later(topology: &Topology, chunks: &[u128], busiest: &mut Option<LinkIndex>, link: LinkIndex) {
    let load = |link: LinkIndex| (chunks[link.index()], topology.link(link).capacity.bytes_per_sec());
    if busiest.is_none_or(|busiest| takes_longer(load(link), load(busiest))) {
        *busiest = Some(link);
    }
}
