//! Orbit forests for tori, healthy or with faults, with the proof of the rate that no plan exceeds.

mod bound;
mod circles;
mod faulty;
mod mend;
mod regrow;
mod templates;
mod transport;

use std::collections::BTreeMap;

use canopy_schedule::{Certificate, CollectiveKind, Generator, Motion, Orbits, Seats, Template, Turn, actions_of};
use canopy_topology::Topology;

use crate::symmetric::torus::{Grid, Torus};
use faulty::Faulty;
use templates::Templates;

/// An orbit forest, and what proves how good it can be at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedOrbits {
    /// The forest, for the checker to judge.
    pub orbits: Orbits,
    /// A bound, for [`certified_bound`](canopy_schedule::certified_bound) to add up.
    pub certificate: Certificate,
}

/// Plans an allgather, a reduce-scatter or an allreduce on a torus.
///
/// Trees consist of shortest paths, and load links of all directions in proportion to their rates as far as shortest
/// paths allow: then the cut around one rank proves them optimal. Where cables or ranks are lost, trees that met them
/// take other parents, so that the links into each rank beside a fault share what the lost one carried.
///
/// * **Source.** Templates: the transport problem of Hitchcock 1941 on classes of ranks by the directions of shortest
///   paths to them.
/// * **None.** Another collective, or faults so close to each other that a rank has no other parent.
/// * **Cost.** O(ranks · trees per rank); for each link that is lost or slower as much again. There are 12 at most.
pub fn orbits(topology: &Topology, torus: &Torus, kind: CollectiveKind) -> Option<PlannedOrbits> {
    let actions = actions_of(kind)?.to_vec();
    let grid = Grid::new(&torus.sides, &torus.steps);
    if grid.headings.is_empty() || torus.seats.len() != topology.rank_count() as usize {
        return None;
    }
    let rates: Vec<u64> = grid.headings.iter().map(|heading| torus.rates[heading.dimension]).collect();
    let templates = Templates::new(&grid, &rates)?;
    let patches = match Faulty::of(topology, torus, &grid, &rates, &actions) {
        Some(faulty) => faulty.mend(&templates)?,
        None => Vec::new(),
    };
    let of_number = |into: &Vec<u8>| {
        let parent = |(seat, &heading): (u32, &u8)| if seat == 0 { 0 } else { grid.before(seat, heading.into()) };
        Template { root: 0, weight: 1, parents: (0..).zip(into).map(parent).collect(), over: BTreeMap::new() }
    };
    let orbits = Orbits {
        chunks_per_share: templates.into.len() as u64,
        actions,
        seat_count: grid.seat_count(),
        seats: seats(torus),
        generators: (0..torus.sides.len()).map(|digit| generator(&grid, digit)).collect(),
        templates: templates.into.iter().map(of_number).collect(),
        patches,
    };
    Some(PlannedOrbits { orbits, certificate: bound::certificate(topology, kind) })
}

/// One digit grows by 1.
fn generator(grid: &Grid, digit: usize) -> Generator {
    let (unit, size) = (grid.unit(digit), grid.sides[digit]);
    let turn = Turn { first: 0, count: grid.seat_count(), unit, size, step: 1 };
    Generator { order: size, motion: Motion::Turns(vec![turn]) }
}

/// Ranks on seats, in as few numbers as they can be told.
fn seats(torus: &Torus) -> Seats {
    if !torus.seats.is_sorted() {
        return Seats::Listed(torus.seats.clone());
    }
    let mut taken = torus.seats.iter().peekable();
    let empty = (0..torus.seat_count()).filter(|seat| taken.next_if_eq(&seat).is_none());
    Seats::InOrder { empty: empty.collect() }
}
