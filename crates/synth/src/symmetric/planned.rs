//! The exchange of a network of boxes, with the proof of the rate that no plan exceeds.

use std::collections::BTreeMap;

use canopy_schedule::{BoxGrid, Certificate, CollectiveKind, Inside, NOBODY, Seats, Stages, actions_of};
use canopy_topology::Topology;

use crate::symmetric::digits::{digits, empty_boxes, peers_max};
use crate::symmetric::inside_first::{self, Choice, Question};
use crate::symmetric::network::BoxNetwork;
use crate::symmetric::nics::nics_of;
use crate::symmetric::odd;
use crate::symmetric::relay;
use crate::symmetric::slowest::slowest;

/// An exchange, and what proves how good it can be at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The exchange, for the checker to judge.
    pub stages: Stages,
    /// Boxes whose links differ from those of most, by their numbers in the grid of the exchange, sorted.
    pub odd: Vec<u32>,
    /// A bound, for [`certified_bound`](canopy_schedule::certified_bound) to add up.
    pub certificate: Certificate,
}

/// Plans an allgather, a reduce-scatter or an allreduce on a network of boxes, with so many chunks for each share.
///
/// Each box gets every foreign share once, over all its NICs alike, and spreads it inside: what a cut around it
/// demands, and no more, for any number of stages. Digits of outer sets of boxes come first, so that links between
/// pods, and between groups or pods of pods, carry each share once, too.
///
/// * **None.** Another collective, or boxes within which ranks do not reach each other directly.
/// * **Cost.** O(nodes + links), and for each odd box O(Σ digits · places).
pub fn stages(
    topology: &Topology,
    network: &BoxNetwork,
    kind: CollectiveKind,
    chunks_per_share: u64,
) -> Option<Planned> {
    planned(topology, network, kind, |_| Some(Choice { chunks_per_share, inside_first: Vec::new() }))
}

/// The same where part of each run goes in the box first, so that NICs and boxes take equally long: with so many chunks
/// for each share, or with few enough.
///
/// Stages between sets of boxes, such as pods, are left as they are, and so is what boxes exchange that faults have touched, but for missing
/// ranks.
///
/// * **None.** As of [`stages`], or boxes that carry all that their NICs bring.
pub fn stages_inside_first(
    topology: &Topology,
    network: &BoxNetwork,
    kind: CollectiveKind,
    chunks: Option<u64>,
) -> Option<Planned> {
    let phases = actions_of(kind)?.len() as u64;
    let is_usual = |of_box: &u32| network.odd.binary_search(of_box).is_err();
    let usual = (0..u32::try_from(network.ranks.len()).ok()?).find(is_usual)?;
    let rates = inside_first::rates(topology, network, usual as usize)?;
    planned(topology, network, kind, |grid| {
        let first_stage = stages_between_sets(grid, network.levels.split_last()?.1)?;
        Question { grid, first_stage, rates, chunks, phases }.answer()
    })
}

/// The stages between sets of boxes, given the levels of sets: the first ones.
fn stages_between_sets(grid: &BoxGrid, levels: &[u32]) -> Option<usize> {
    let sets = levels.iter().try_fold(1_u32, |count, &size| count.checked_mul(size))?;
    (0..=grid.digits.len()).find(|&stage| grid.unit(stage) == sets)
}

fn planned(
    topology: &Topology,
    network: &BoxNetwork,
    kind: CollectiveKind,
    choose: impl FnOnce(&BoxGrid) -> Option<Choice>,
) -> Option<Planned> {
    let actions = actions_of(kind)?.to_vec();
    let boxes = u32::try_from(network.ranks.len()).ok()?;
    let peers_max = peers_max(actions.len());
    let mut levels: Vec<u32> = network.levels.iter().copied().filter(|&size| size > 1).collect();
    // Sets of boxes have the numbers of members that they have.
    if let [boxes] = levels.as_mut_slice() {
        *boxes += empty_boxes(*boxes, peers_max);
    }
    let digits = digits(&levels, peers_max);
    let turned = |of_box: u32| turned(&levels, of_box);
    let seated = levels.iter().try_fold(1_u32, |count, &size| count.checked_mul(size))?;
    let order: Vec<u32> = (0..seated).map(turned).collect();
    let seats = seats(network, &digits, &order);
    let grid = BoxGrid { places: network.places, digits, seats };
    let Choice { chunks_per_share, inside_first } = choose(&grid)?;
    let is_plain = inside_first.is_empty();
    let mut stages = Stages {
        chunks_per_share,
        actions,
        grid,
        inside: vec![Inside::Star],
        classes: BTreeMap::new(),
        inside_first,
        exceptions: BTreeMap::new(),
    };
    let nics = |grid: &BoxGrid| nics_of(grid, |of_box, place| network.nic(turned(of_box) as usize, place));
    let mut odd = Vec::new();
    if !network.odd.is_empty() {
        let seating = stages.grid.seating(topology.rank_count()).ok()?;
        let is_odd = |&of_box: &u32| network.odd.binary_search(&turned(of_box)).is_ok();
        odd = (0..seated).filter(is_odd).collect();
        let nics = nics(&stages.grid);
        let fastest = nics.iter().flatten().max().copied().unwrap_or_default();
        // Ranks that are there have counterparts, and places without ranks have no NIC.
        let has_fewer = |of_box: &u32| {
            let of_ranks =
                seating.live(*of_box).filter_map(|(place, _)| nics.get(*of_box as usize)?.get(place as usize));
            !is_plain && seating.full(*of_box).is_none() && of_ranks.into_iter().all(|nic| *nic == fastest)
        };
        let touched: Vec<u32> = odd.iter().copied().filter(|of_box| !has_fewer(of_box)).collect();
        odd::state(&mut stages, &seating, &nics, &touched);
    }
    let is_free = |ranks: &Vec<u32>| ranks.iter().all(|&rank| rank == NOBODY);
    if seated > boxes || network.ranks.iter().any(is_free) {
        let seating = stages.grid.seating(topology.rank_count()).ok()?;
        let nics = nics(&stages.grid);
        relay::state(&mut stages, &seating, &nics);
    }
    Some(Planned { stages, odd, certificate: slowest(topology, Some(network), kind) })
}

/// The number in the network of a box of the grid: in the grid, boxes of different outermost sets follow each other.
fn turned(levels: &[u32], of_box: u32) -> u32 {
    let mut rest = of_box;
    levels.iter().fold(0, |number, &size| {
        let digit = rest % size;
        rest /= size;
        number * size + digit
    })
}

/// Ranks on seats.
fn seats(network: &BoxNetwork, digits: &[u32], order: &[u32]) -> Seats {
    let places = network.places as usize;
    let ranks = |&of_box: &u32| (0..places).map(move |place| rank(network, of_box as usize, place));
    let seated: Vec<u32> = order.iter().flat_map(ranks).collect();
    Seats::of(network.places, digits, &seated)
}

fn rank(network: &BoxNetwork, of_box: usize, place: usize) -> u32 {
    network.ranks.get(of_box).and_then(|ranks| ranks.get(place)).copied().unwrap_or(NOBODY)
}
