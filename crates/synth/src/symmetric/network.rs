//! Boxes of ranks in a network, and the switches that join them.

mod levels;
mod order;
mod parts;
mod places;

use canopy_schedule::NOBODY;
use canopy_topology::Topology;

use parts::Parts;

/// A network of boxes. Boxes have numbers in an order in which those at the same outer switches, a *pod*, follow each
/// other, and so do pods that are joined by other switches than all are, or that are all linked to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxNetwork {
    /// Most ranks of a box.
    pub places: u32,
    /// The ranks of each box by place, [`NOBODY`] where a box has fewer.
    pub ranks: Vec<Vec<u32>>,
    /// Boxes whose links differ from those of most, by number, sorted.
    pub odd: Vec<u32>,
    /// How boxes are numbered: as members of a pod, pods of a larger set, and so on, the number of the outermost sets
    /// first; their product is the number of boxes, those without ranks included.
    pub levels: Vec<u32>,
    /// By rank: bytes per second to and from other boxes.
    pub nics: Vec<(u64, u64)>,
    /// By node: the box that it is in, or [`NOBODY`].
    pub homes: Vec<u32>,
    /// Sets of boxes, by level, pods first, and by node: the set that it is in, [`NOBODY`] between sets. They are
    /// numbered in no certain order.
    pub areas: Vec<Vec<u32>>,
}

/// Most answers.
const ANSWERS_MAX: usize = 4;
/// Most ranks of a box.
const PLACES_MAX: usize = 1024;

impl BoxNetwork {
    /// Bytes per second of the place of a box to and from others; 0 where there is no rank.
    pub fn nic(&self, of_box: usize, place: usize) -> (u64, u64) {
        let rank = self.ranks.get(of_box).and_then(|ranks| ranks.get(place)).filter(|&&rank| rank != NOBODY);
        rank.and_then(|&rank| self.nics.get(rank as usize)).copied().unwrap_or((0, 0))
    }
}

/// Boxes that a network may be made of, the likeliest first: what is left in one piece when the switches with most
/// links are taken away.
///
/// Switches are taken away by falling numbers of links, all with one number at a time. Each time that makes pieces
/// smaller, is an answer: the smallest come first, and those that are single ranks for the most part last. Places of
/// boxes correspond: those of a rail are at one switch.
///
/// * **Out.** A function of the links, and of the order of ranks and switches among equals. Empty where there is one
///   box only, or where switches have more than 64 different numbers of links.
/// * **Cost.** O(links · different numbers of links that switches have), and O(links) for each of them, once it is
///   asked for.
pub fn boxes(topology: &Topology) -> impl Iterator<Item = BoxNetwork> + '_ {
    let all = Parts::all(topology, PLACES_MAX).into_iter();
    all.filter_map(|parts| places::network(topology, &parts)).take(ANSWERS_MAX)
}

/// The first of [`boxes`]: those of several ranks for the most part, or without such all.
pub fn likely_boxes(topology: &Topology) -> Vec<BoxNetwork> {
    let mut all = Parts::all(topology, PLACES_MAX);
    if all.first().is_some_and(|first| !first.are_single) {
        all.retain(|parts| !parts.are_single);
    }
    all.iter().filter_map(|parts| places::network(topology, parts)).take(ANSWERS_MAX).collect()
}
