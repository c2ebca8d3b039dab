//! The two tiers of a topology: its boxes, what joins them, and the rates that faults leave.
//!
//! Boxes have the same number of ranks, numbered one after the other. Inside, a switch joins them, several in the same
//! proportions, or a link each pair. Outside, each rank has links to the switch of its rail, or to that of all ranks; one
//! without has a dead NIC. In place of a switch there may be several that block nowhere, see `hubs`. The structure is that of the healthy network;
//! faults change rates.

mod boxes;
mod capacities;
mod error;
mod hubs;

use std::collections::BTreeSet;

use canopy_topology::{Fault, Topology};

use self::boxes::Structure;
use self::capacities::Capacities;
pub use self::error::NetworkError;
use self::hubs::{Hub, id, require_open, require_proportions};
use crate::tiers::{RATE_MAX, Rates, Tiers};

/// Most ranks of a topology that is recognised.
pub const NETWORK_RANKS_MAX: u32 = 1_024;

/// A topology of two tiers, after faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its boxes and rates. Lost ranks have their links inside, so that they count, and dead NICs.
    pub tiers: Tiers,
    /// The topology after faults, without the ranks that are lost.
    pub topology: Topology,
    /// Ranks that faults have taken: nothing can be sent from or to them.
    pub lost: Vec<u32>,
    /// Other ranks whose NIC is dead in one direction at least. Empty where there is one box, whose ranks need no NICs.
    pub dead_nics: Vec<u32>,
}

impl Network {
    /// Recognises a healthy topology, and applies faults to it.
    ///
    /// In a box joined in pairs, a rank's rate inside is the sum of its links there, and each link has its own.
    ///
    /// * **Errors.** [`NetworkError`], with the node or link that does not fit.
    /// * **Cost.** O((nodes + links)·levels), and O(ranks·box size) for boxes joined in pairs.
    pub fn recognise(healthy: &Topology, faults: &[Fault]) -> Result<Self, NetworkError> {
        let ranks = healthy.rank_count();
        if ranks > NETWORK_RANKS_MAX {
            return Err(NetworkError::TooManyRanks { ranks });
        }
        let whole = Capacities::new(healthy, healthy);
        let structure = Structure::of(healthy, &whole)?;
        if faults.is_empty() {
            return Self::of(healthy, &structure, (&whole, &whole), (healthy.clone(), BTreeSet::new()));
        }
        let puncture = healthy.puncture(faults)?;
        let alive: BTreeSet<usize> = puncture.survivors.iter().map(|rank| rank.number() as usize).collect();
        let lost = (0..ranks as usize).filter(|rank| !alive.contains(rank)).collect();
        let left = Capacities::new(healthy, &puncture.topology);
        Self::of(healthy, &structure, (&whole, &left), (puncture.topology, lost))
    }

    fn of(
        healthy: &Topology,
        structure: &Structure,
        (whole, left): (&Capacities, &Capacities),
        (topology, lost): (Topology, BTreeSet<usize>),
    ) -> Result<Self, NetworkError> {
        let ranks = healthy.rank_count() as usize;
        let size = structure.box_size;
        for (of_box, hubs) in structure.inner.iter().enumerate() {
            let of_box = of_box * size..(of_box + 1) * size;
            hubs.iter().try_for_each(|hub| require_open(healthy, left, hub))?;
            if hubs.len() > 1 {
                require_same_parts(healthy, left, of_box, hubs)?;
            }
        }
        structure.outer.iter().try_for_each(|hub| require_open(healthy, left, hub))?;
        let none = || Vec::with_capacity(ranks);
        let mut rates = Rates { inner_out: none(), inner_in: none(), outer_out: none(), outer_in: none() };
        let mut cut_off = CutOff { out: vec![false; ranks], into: vec![false; ranks] };
        for rank in 0..ranks {
            let hub = structure.outer.iter().find(|hub| hub.ranks.contains(&rank));
            let nic = hub.map_or((0, 0), |hub| hub.rates(left, rank));
            // A lost rank is sent nothing; its links count as they were.
            let healthy_inside = if size == 1 { (nic.0.max(1), nic.1.max(1)) } else { inside(structure, whole, rank) };
            let is_whole = size == 1 || lost.contains(&rank);
            let (out, into) = if is_whole { healthy_inside } else { inside(structure, left, rank) };
            cut_off.out[rank] = out == 0;
            cut_off.into[rank] = into == 0;
            // A rank that is cut off has its rate, too, and dead pairs.
            let ways = [
                (nic.0, "out of its NIC", &mut rates.outer_out),
                (nic.1, "into its NIC", &mut rates.outer_in),
                (if out == 0 { healthy_inside.0 } else { out }, "to its box", &mut rates.inner_out),
                (if into == 0 { healthy_inside.1 } else { into }, "from its box", &mut rates.inner_in),
            ];
            for (rate, way, rates) in ways {
                let known = u64::try_from(rate).ok().filter(|&rate| rate <= RATE_MAX);
                rates.push(known.ok_or_else(|| NetworkError::TooFast { node: id(healthy, rank), way, rate })?);
            }
        }
        let pairs = pairs(structure, left, &cut_off);
        let has_nics = ranks > size;
        let is_dead = |rank: &usize| rates.outer_out[*rank] == 0 || rates.outer_in[*rank] == 0;
        let dead_nics = (0..ranks).filter(|rank| has_nics && !lost.contains(rank)).filter(is_dead);
        let dead_nics = dead_nics.filter_map(number).collect();
        let lost = lost.into_iter().filter_map(number).collect();
        let box_size = number(size).unwrap_or(u32::MAX);
        let tiers = Tiers::new(structure.fabric, box_size, rates)?;
        let tiers = if pairs.is_empty() { tiers } else { tiers.in_pairs(pairs)? };
        Ok(Self { tiers, topology, lost, dead_nics })
    }
}

fn number(rank: usize) -> Option<u32> {
    u32::try_from(rank).ok()
}

/// Ranks without a link to their box, and without one from it.
struct CutOff {
    out: Vec<bool>,
    into: Vec<bool>,
}

/// What a rank has to its box, and from it.
fn inside(structure: &Structure, capacities: &Capacities, rank: usize) -> (u128, u128) {
    let of_box = rank / structure.box_size;
    let hubs = structure.inner.get(of_box).map_or(&[][..], Vec::as_slice);
    let sum = |pairs: &mut dyn Iterator<Item = (u128, u128)>| {
        pairs.fold((0, 0), |sum: (u128, u128), rates| (sum.0 + rates.0, sum.1 + rates.1))
    };
    match hubs.is_empty() {
        false => sum(&mut hubs.iter().map(|hub| hub.rates(capacities, rank))),
        true => {
            let others = of_box * structure.box_size..(of_box + 1) * structure.box_size;
            sum(&mut others.map(|other| (capacities.get(rank, other), capacities.get(other, rank))))
        }
    }
}

/// Rates from each rank to each place of its box, where links join the pairs of any box, or a rank is cut off from its box;
/// others over a switch have no limit of their own.
fn pairs(structure: &Structure, capacities: &Capacities, cut_off: &CutOff) -> Vec<u64> {
    let (size, ranks) = (structure.box_size, cut_off.out.len());
    let are_whole = !cut_off.out.iter().chain(&cut_off.into).any(|is_cut_off| *is_cut_off);
    if size == 1 || (are_whole && structure.inner.iter().all(|hubs| !hubs.is_empty())) {
        return Vec::new();
    }
    let link = |from: usize, to: usize| {
        if structure.inner[from / size].is_empty() {
            // No more than all links of the rank together.
            u64::try_from(capacities.get(from, to)).unwrap_or(RATE_MAX)
        } else {
            RATE_MAX * u64::from(from != to && !cut_off.out[from] && !cut_off.into[to])
        }
    };
    (0..ranks)
        .flat_map(|from| (0..size).map(move |place| (from, from / size * size + place)))
        .map(|(from, to)| link(from, to))
        .collect()
}

/// Several switches of a box count as one if all ranks divide their links among them alike.
fn require_same_parts(
    healthy: &Topology,
    capacities: &Capacities,
    ranks: std::ops::Range<usize>,
    hubs: &[Hub],
) -> Result<(), NetworkError> {
    let of = |rank: usize| -> [(usize, Vec<u128>); 2] {
        let (out, into) = hubs.iter().map(|hub| hub.rates(capacities, rank)).unzip();
        [(rank, out), (rank, into)]
    };
    require_proportions(healthy, &ranks.flat_map(of).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
