//! What a torus has lost, and where.

use std::collections::BTreeMap;

use canopy_schedule::Action;
use canopy_topology::{NodeIndex, Topology};

use super::templates::{Templates, Time};
use crate::symmetric::torus::{Grid, Torus};

/// Marks a hop that stays.
pub(super) const STAYS: u8 = u8::MAX;
/// Marks a seat without a rank.
const NOBODY: u32 = u32::MAX;

/// A seat with links into it that are lost or slower, and what becomes of the hops over them.
pub(super) struct Touched {
    pub(super) seat: u32,
    /// By direction: bytes per second of the link into it, 0 if it is lost.
    pub(super) rates: Vec<u64>,
    /// By direction: chunks over that link.
    pub(super) loads: Vec<u64>,
    /// By tree, then by seat as the root sees it: the direction of the new hop.
    pub(super) moved: Vec<u8>,
}

impl Touched {
    /// When the link from a direction is done with one chunk more.
    pub(super) fn time(&self, heading: usize) -> Time {
        Time { shares: u128::from(self.loads[heading]) + 1, rate: self.rates[heading].into() }
    }
}

/// A torus that has lost something.
pub(super) struct Faulty<'a> {
    pub(super) grid: &'a Grid,
    /// By seat.
    pub(super) ranks: Vec<u32>,
    pub(super) lost: Vec<u32>,
    /// Bytes per second, by direction, of links that are as they were.
    pub(super) healthy: &'a [u64],
    pub(super) touched: Vec<Touched>,
    /// By seat.
    pub(super) is_touched: Vec<bool>,
    /// The least time per share that its slowest rank allows.
    pub(super) bound: Time,
}

/// Hops that replace others, by tree and root: child and parent.
pub(super) type Extra = BTreeMap<(usize, u32), Vec<(u32, u32)>>;

impl<'a> Faulty<'a> {
    /// What the network lacks; `None` if nothing.
    pub(super) fn of(
        topology: &Topology,
        torus: &Torus,
        grid: &'a Grid,
        rates: &'a [u64],
        actions: &[Action],
    ) -> Option<Self> {
        let mut ranks = vec![NOBODY; grid.seat_count() as usize];
        for (rank, &seat) in (0..).zip(&torus.seats) {
            ranks[seat as usize] = rank;
        }
        let lost: Vec<u32> = (0..).zip(&ranks).filter(|(_, rank)| **rank == NOBODY).map(|(seat, _)| seat).collect();
        let others = u128::from(topology.rank_count()).saturating_sub(1);
        let healthy: u128 = rates.iter().map(|&rate| u128::from(rate)).sum();
        let mut bound = Time { shares: others, rate: healthy };
        let (mut touched, mut is_touched) = (Vec::new(), vec![false; ranks.len()]);
        for (seat, &rank) in (0..).zip(&ranks).filter(|(_, rank)| **rank != NOBODY) {
            let into = (0..rates.len()).map(|heading| {
                let from = ranks[grid.before(seat, heading) as usize];
                let rate = |&action: &Action| match action {
                    Action::Copy => rate(topology, from, rank),
                    Action::Reduce => rate(topology, rank, from),
                };
                actions.iter().map(rate).min().unwrap_or(0)
            });
            let into: Vec<u64> = into.collect();
            if into.iter().zip(rates).any(|(&own, &healthy)| own < healthy) {
                let least = Time { shares: others, rate: into.iter().map(|&rate| u128::from(rate)).sum() };
                bound = if least.is_more_than(bound) { least } else { bound };
                is_touched[seat as usize] = true;
                touched.push(Touched { seat, rates: into, loads: Vec::new(), moved: Vec::new() });
            }
        }
        let is_any = !touched.is_empty() || !lost.is_empty();
        is_any.then_some(Self { grid, ranks, lost, healthy: rates, touched, is_touched, bound })
    }

    pub(super) fn is_live(&self, seat: u32) -> bool {
        self.ranks[seat as usize] != NOBODY
    }

    /// Directions, as bits, from which a seat may get a tree instead: from neighbours that are not below it.
    ///
    /// Trees are of shortest paths, so a neighbour is below only if it is a child.
    pub(super) fn places(&self, of_seat: &Touched, templates: &Templates, tree: usize, seen: u32, old: usize) -> u32 {
        let may = |heading: usize| {
            let from = self.grid.before(seen, heading);
            heading != old
                && of_seat.rates[heading] > 0
                && (from == 0 || templates.parent(self.grid, tree, from) != seen)
        };
        (0..of_seat.rates.len()).filter(|&heading| may(heading)).map(|heading| 1 << heading).sum()
    }
}

/// Bytes per second of the fastest link from one rank to another; 0 without one.
fn rate(topology: &Topology, from: u32, to: u32) -> u64 {
    if from == NOBODY || to == NOBODY {
        return 0;
    }
    let links = topology.links_from(NodeIndex::new(from)).map(|link| topology.link(link));
    links.filter(|link| link.to == NodeIndex::new(to)).map(|link| link.capacity.bytes_per_sec()).max().unwrap_or(0)
}
